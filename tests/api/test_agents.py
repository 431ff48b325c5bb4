"""The agent's tools behind the service's keys."""

from __future__ import annotations

import json
from typing import Any

import pytest

from planner.plans.planning import plan
from planner.scenario import Scenario
from tests.api.conftest import CARD, CONFIG, Keyed

pytest.importorskip("mcp")

HEADERS = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}


def call(
    keyed: Keyed, headers: dict[str, str], arguments: dict[str, Any], name: str = "plan"
) -> Any:
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments},
    }
    return keyed.client.post("/mcp", json=body, headers={**HEADERS, **headers})


def tool(keyed: Keyed, headers: dict[str, str], name: str, arguments: dict[str, Any]) -> Any:
    """The answer of a tool that does not refuse."""
    result = call(keyed, headers, arguments, name).json()["result"]
    assert not result["isError"], result["content"]
    return result["structuredContent"]


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


def test_own_objects_are_known_by_id_as_in_rest(keyed: Keyed, question: dict[str, Any]) -> None:
    stored = (
        ("/v1/models", {"id": "mine", "config": CONFIG}),
        ("/v1/accelerators", {"id": "card", "spec": CARD}),
    )
    for path, body in stored:
        assert keyed.client.post(path, json=body, headers=keyed.writer).status_code in {200, 201}
    own = {**question, "model": "own/mine", "gpu": "own/card", "tp": 1}
    load = {"concurrency": 4, "isl": 1000, "osl": 100}
    serving = {k: v for k, v in own.items() if k not in {"batch", "context"}} | load
    for scenario in (own, serving):
        rest = keyed.client.post("/v1/plans", json=scenario, headers=keyed.reader)
        assert rest.status_code == 200, rest.text
        answer = tool(keyed, keyed.reader, "plan", {"scenario": scenario})
        assert answer == rest.json()
        assert answer["scenario"]["gpu"] == "own/card"
    request = {"model": "own/mine", "gpu": ["own/card", "h200-sxm"], "tpot_ms": 50}
    rest = keyed.client.post("/v1/recommendations", json=request, headers=keyed.reader)
    assert tool(keyed, keyed.reader, "recommend", {"request": request}) == rest.json()
    query = {
        "files": {"a.sh": "vllm serve /models/mine --max-model-len 4096"},
        "question": {"model": "own/mine", "gpu": "own/card"},
    }
    rest = keyed.client.post("/v1/checks", json=query, headers=keyed.reader)
    assert rest.status_code == 200, rest.text
    verdicts = [one["verdict"] for one in tool(keyed, keyed.reader, "check", query)["checks"]]
    assert verdicts == [one["verdict"] for one in rest.json()["checks"]]
    compared = tool(keyed, keyed.reader, "compare", {"scenarios": [own, {**own, "kv": "fp8"}]})
    assert '"own/mine"' in json.dumps(compared)
    assert tool(keyed, keyed.reader, "find_model", {"text": "mine"})["own"] == ["own/mine"]
    assert tool(keyed, keyed.reader, "find_accelerator", {"text": "nothing"})["own"] == []


def test_own_objects_of_others_are_not_known(keyed: Keyed, question: dict[str, Any]) -> None:
    keyed.client.post("/v1/models", json={"id": "secret", "config": CONFIG}, headers=keyed.writer)
    scenario = {**question, "model": "own/secret"}
    result = call(keyed, keyed.stranger, {"scenario": scenario}).json()["result"]
    assert result["isError"]
    assert result["content"][0]["text"].endswith(
        "model: unknown model 'own/secret'; own ones: none yet"
    )
    assert tool(keyed, keyed.stranger, "find_model", {"text": ""})["own"] == []
