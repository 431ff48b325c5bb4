"""Engines as plain values: every figure has a source, a unit where its name has one."""

from __future__ import annotations

import json

import pytest

from planner.engines.describe import engine_facts, list_engines, unit
from planner.engines.profiles import UnknownEngine
from planner.engines.support import UnknownVersion, UnsupportedDevice
from planner.hw import get_accelerator


def figure(name: str, facts: dict[str, object]) -> dict[str, object]:
    listed = facts["figures"]
    assert isinstance(listed, list)
    return next(one for one in listed if one["name"] == name)


def test_listed_engines_are_those_a_scenario_may_name() -> None:
    listed = {engine["id"]: engine for engine in list_engines()}
    assert {"vllm", "sglang", "trtllm", "llama.cpp"} <= set(listed)
    assert "neutral" not in listed
    assert listed["trtllm"]["backends"] == {"NVIDIA gpu": "CUDA", "NVIDIA edge": "CUDA"}
    assert "serving" in listed["vllm"]["measured"]
    assert json.loads(json.dumps(list_engines())) == list_engines()


@pytest.mark.parametrize("name", ["neutral", *(engine["id"] for engine in list_engines())])
def test_every_figure_has_a_source(name: str) -> None:
    facts = engine_facts(name)
    assert json.loads(json.dumps(facts)) == facts
    assert facts["figures"]
    for one in facts["figures"]:
        assert one["source"]
        assert one["confidence"] in {"documented", "source_code", "fitted", "assumed"}


def test_figures_are_those_of_the_accelerator() -> None:
    """vLLM v1 arg_utils: 2048 tokens a step below 70 GiB, 8192 from there on (0.17.0)."""
    small, large = (
        engine_facts("vllm", "0.17.0", get_accelerator(gpu)) for gpu in ("l4", "h100-sxm5")
    )
    assert figure("chunk_tokens", small)["value"] == 2048
    assert figure("chunk_tokens", large)["value"] == 8192
    assert figure("chunk_tokens", large)["unit"] == "token"


def test_a_default_says_of_which_release_and_argument() -> None:
    """vLLM 0.33.0 takes 0.92 of the memory: `gpu_memory_utilization` in its config/cache.py."""
    fraction = figure("memory_fraction", engine_facts("vllm", "0.33.0"))
    assert fraction["value"] == 0.92
    assert fraction["argument"] == "gpu_memory_utilization"
    assert "vLLM 0.33.0" in str(fraction["default_of"])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("kv_block_tokens", "token"),
        ("max_sequences", "sequence"),
        ("overheads.process_bytes", "byte"),
        ("overheads.link_bytes_per_gpu", "byte/gpu"),
        ("reserve.bytes_per_chunk_token", "byte/chunk token"),
        ("memory_fraction", ""),
        ("overheads.layer_copies", ""),
    ],
)
def test_a_unit_is_the_last_word_of_a_name(name: str, expected: str) -> None:
    assert unit(name) == expected


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(UnknownEngine, match="accepted: vllm, sglang"):
        engine_facts("vlm")
    with pytest.raises(UnknownVersion, match="engine_version: 'latest' is no version of vLLM"):
        engine_facts("vllm", "latest")
    with pytest.raises(UnsupportedDevice, match="TensorRT-LLM is not known to run on mi300x"):
        engine_facts("trtllm", None, get_accelerator("mi300x"))
