"""The agent's tools behind the service's keys."""

from __future__ import annotations

from typing import Any

import pytest

from planner.plans.planning import plan
from planner.scenario import Scenario
from tests.api.conftest import Keyed

pytest.importorskip("mcp")

HEADERS = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}


def call(keyed: Keyed, headers: dict[str, str], arguments: dict[str, Any]) -> Any:
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "plan", "arguments": arguments},
    }
    return keyed.client.post("/mcp", json=body, headers={**HEADERS, **headers})


def test_a_key_is_needed_and_reading_is_enough(keyed: Keyed, question: dict[str, Any]) -> None:
    assert call(keyed, {}, {"scenario": question}).status_code == 401
    answer = call(keyed, keyed.reader, {"scenario": question})
    assert answer.status_code == 200, answer.text
    content = answer.json()["result"]["structuredContent"]
    assert content == plan(Scenario(**question)).model_dump(mode="json")


def test_a_page_is_refused(keyed: Keyed, question: dict[str, Any]) -> None:
    headers = {**keyed.reader, "Origin": "http://evil.example"}
    assert call(keyed, headers, {"scenario": question}).status_code == 403


def test_bad_input_is_an_error_of_the_tool(keyed: Keyed, question: dict[str, Any]) -> None:
    answer = call(keyed, keyed.reader, {"scenario": {**question, "gpu": "/etc/passwd.json"}})
    result = answer.json()["result"]
    assert result["isError"]
    assert "gpu" in result["content"][0]["text"]
