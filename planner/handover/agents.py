"""The MCP server of the tools, by the official SDK (extra `mcp`)."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache, wraps
from importlib.metadata import version
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import ToolAnnotations
from pydantic import ValidationError

from planner.errors import InvalidInput, one_line
from planner.handover.tools import INSTRUCTIONS, TOOLS, Answered

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def server() -> MCPServer[Any]:
    """Return a server that answers the tools."""
    return MCPServer(
        name="decode-planner",
        title="LLM decode capacity planner",
        instructions=INSTRUCTIONS,
        version=version("decode-planner"),
        log_level="WARNING",
        tools=list(_tools()),
    )


@cache
def _tools() -> tuple[Tool, ...]:
    hints = ToolAnnotations(
        read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    )
    return tuple(
        Tool.from_function(
            answering(function),
            name=name,
            description=inspect.cleandoc(function.__doc__ or ""),
            annotations=hints,
        )
        for name, function in TOOLS.items()
    )


def answering(function: Callable[..., Answered]) -> Callable[..., Answered]:
    """Return a tool whose refusals reach the agent as one line; other errors do not."""

    @wraps(function)
    def answer(**arguments: Any) -> Answered:
        try:
            return function(**arguments)
        except (InvalidInput, ValidationError) as error:
            raise ToolError(one_line(error)) from None

    return answer


def loopback(port: int) -> TransportSecuritySettings:
    """Return the hosts and origins that may speak to a server on a port of this machine."""
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[f"{host}:{port}" for host in LOOPBACK],
        allowed_origins=[f"http://{host}:{port}" for host in LOOPBACK],
    )
