"""An MCP client of the official SDK asks the planner's tools, over stdio and HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from planner.handover.tools import INSTRUCTIONS, TOOLS
from planner.plans.planning import plan
from planner.scenario import Scenario

QUESTION: dict[str, Any] = {
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "gpu": "h100-sxm5",
    "engine": "vllm",
    "concurrency": 8,
    "isl": 1000,
    "osl": 200,
}


def calls() -> dict[str, dict[str, Any]]:
    """Arguments with which each tool answers."""
    return {
        "find_model": {"text": "llama 3.1 8b"},
        "find_accelerator": {"text": "h100", "min_memory_gb": 80},
        "plan": {"scenario": Scenario(**QUESTION)},
        "recommend": {"request": _request()},
        "check": {"files": {"a.sh": "vllm serve Qwen/Qwen2.5-7B-Instruct"}, "question": _asked()},
        "compare": {"scenarios": [Scenario(**QUESTION), Scenario(**{**QUESTION, "kv": "fp8"})]},
        "explain": {"scenario": Scenario(**QUESTION), "figure": "tpot_s"},
        "accuracy": {"scenario": Scenario(**QUESTION)},
    }


def _request() -> Any:
    from planner.plans.recommend import RecommendationRequest

    return RecommendationRequest(model=QUESTION["model"], gpu=["h100-sxm5"])


def _asked() -> Any:
    from planner.handover.checking import CheckQuestion

    return CheckQuestion(gpu="h100-sxm5")


def test_at_most_eight_tools_say_when_to_call_them() -> None:
    assert len(TOOLS) <= 8
    assert set(calls()) == set(TOOLS)
    assert all("Call it" in (tool.__doc__ or "") for tool in TOOLS.values())
    assert "Prefer these tools to what you remember" in INSTRUCTIONS


@pytest.mark.parametrize("name", TOOLS)
def test_a_tool_answers_with_editions(name: str) -> None:
    answer = TOOLS[name](**calls()[name])
    assert answer["editions"]["models"]
    assert json.loads(json.dumps(answer)) == answer


def test_a_tool_opens_no_file(tmp_path: Any) -> None:
    path = tmp_path / "gpu.json"
    path.write_text("{}")
    for field in ("model", "gpu"):
        with pytest.raises(ValueError, match=field):
            TOOLS["plan"](scenario=Scenario(**{**QUESTION, field: str(path)}))


@pytest.fixture
def address() -> Iterator[str]:
    """A server over HTTP, started as users start it."""
    pytest.importorskip("mcp")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-c", "from planner.cli import main; main()"]
    process = subprocess.Popen([*command, "mcp", "--http", "--port", str(port)])
    try:
        for _ in range(200):
            with socket.socket() as attempt:
                if attempt.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(timeout=20)


async def ask(server: Any) -> tuple[set[str], Any, Any]:
    """The names of a server's tools, whether they only read, and its plan of the question."""
    from mcp import Client

    async with Client(server) as client:
        tools = (await client.list_tools()).tools
        reads = all(tool.annotations and tool.annotations.read_only_hint for tool in tools)
        result = await client.call_tool("plan", {"scenario": QUESTION})
        wrong = await client.call_tool("plan", {"scenario": {**QUESTION, "gpu": "no-such"}})
        assert wrong.is_error
        assert "gpu: unknown accelerator" in str(wrong.content)
        return {tool.name for tool in tools}, reads, result.structured_content


def expected() -> tuple[set[str], bool, Any]:
    return set(TOOLS), True, plan(Scenario(**QUESTION)).model_dump(mode="json")


def test_a_client_gets_the_plan_of_rest_over_stdio() -> None:
    mcp = pytest.importorskip("mcp")
    command = "from planner.cli import main; main(['mcp'])"
    parameters = mcp.StdioServerParameters(
        command=sys.executable, args=["-c", command], env={**os.environ}
    )
    assert asyncio.run(ask(parameters)) == expected()


def test_a_client_gets_the_plan_of_rest_over_http(address: str) -> None:
    assert asyncio.run(ask(address)) == expected()


def test_a_page_of_another_origin_is_refused(address: str) -> None:
    import http.client

    host, _, _ = address.removeprefix("http://").partition("/")
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    accept = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    for headers, codes in (
        ({"Origin": "http://evil.example"}, {403}),
        ({"Host": "evil.example"}, {403, 421}),
    ):
        connection = http.client.HTTPConnection(host, timeout=10)
        connection.request("POST", "/mcp", body, {**accept, **headers})
        assert connection.getresponse().status in codes
        connection.close()
