"""Serving engines over REST: the library's figures, each with its source."""

from __future__ import annotations

import pytest

from planner.engines.describe import engine_facts, list_engines
from planner.hw import get_accelerator
from tests.api.conftest import CARD, Client
from tests.api.test_errors import check


def test_the_list_and_each_profile_are_the_library_s(shared: Client) -> None:
    document = shared.get("/v1/engines").json()
    assert document["items"] == list_engines()
    assert document["edition"]
    for item in document["items"]:
        assert shared.get(f"/v1/engines/{item['id']}").json() == engine_facts(item["id"])


def test_a_profile_is_of_a_version_and_an_accelerator(shared: Client) -> None:
    query = {"version": "0.5.14", "gpu": "H200-SXM", "tp": 8}
    expected = engine_facts("sglang", "0.5.14", get_accelerator("h200-sxm"), 8)
    assert shared.get("/v1/engines/sglang", params=query).json() == expected


def test_an_own_accelerator_is_one(client: Client) -> None:
    client.post("/v1/accelerators", json={"id": "card", "spec": CARD})
    answer = client.get("/v1/engines/vllm?gpu=own/card")
    assert answer.json() == client.get("/v1/engines/vllm?gpu=h100-sxm5").json()


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("vlm", 404, "engine: unknown engine 'vlm'; accepted: vllm"),
        ("vllm?version=latest", 422, "engine_version: 'latest' is no version of vLLM"),
        ("vllm?gpu=h1000", 422, "gpu: unknown"),
        ("vllm?gpu=own/nope", 422, "gpu: unknown accelerator"),
        ("trtllm?gpu=mi300x", 422, "engine: TensorRT-LLM is not known to run on mi300x"),
        ("vllm?pp=4", 400, "pp: unknown query parameter"),
    ],
)
def test_what_is_not_known_is_a_problem(
    shared: Client, path: str, status: int, message: str
) -> None:
    assert message in check(shared.get(f"/v1/engines/{path}"), status).detail
