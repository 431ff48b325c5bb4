"""How engines count the GPUs of a replica: read, written, and read back.

vLLM and LMDeploy count tensor-parallel ranks within one data-parallel rank, SGLang over all of
them, TensorRT-LLM splits attention or holds it whole, llama.cpp has a list of shares (the engines'
documentation, as docs/engines.md names it).
"""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from planner.handover.arguments import Given, Parsed, parser_of
from planner.handover.facts import engine_facts, started_engines
from planner.handover.refusal import Unwritable
from planner.handover.shell import script
from planner.handover.split import READERS, WRITERS, Split, read_split, write_split
from planner.scenario import Scenario

FIELDS = ("tp", "pp", "ep", "attention_dp", "replicas")


def parsed(engine: str, line: str, version: str | None = None) -> Parsed:
    (command,) = script(f"x {line}").commands
    return parser_of(engine, version).parse(command[1:])


def split_of(engine: str, line: str, *, moe: bool = True, gpus: int = 0) -> Split:
    return read_split(engine_facts(engine), parsed(engine, line).given, moe, gpus)


def sizes(split: Split) -> dict[str, int]:
    return {name: getattr(split, name) for name in FIELDS if getattr(split, name) != 1}


@pytest.mark.parametrize(
    ("engine", "line", "moe", "result"),
    [
        ("vllm", "", True, {}),
        ("vllm", "-tp 4 -pp 2", False, {"tp": 4, "pp": 2}),
        # Data-parallel ranks share the experts of a mixture, and are whole copies otherwise.
        ("vllm", "-tp 2 -dp 8", True, {"tp": 2, "attention_dp": 8}),
        ("vllm", "-tp 2 -dp 8", False, {"tp": 2, "replicas": 8}),
        # Experts are spread over all ranks: 2 · 8.
        (
            "vllm",
            "-tp 2 -dp 8 --enable-expert-parallel",
            True,
            {"tp": 2, "attention_dp": 8, "ep": 16},
        ),
        ("vllm", "-tp 4 --enable-expert-parallel", True, {"tp": 4, "ep": 4}),
        ("vllm", "-tp 4 --enable-expert-parallel", False, {"tp": 4}),
        ("vllm", "-tp 4 --no-enable-expert-parallel", True, {"tp": 4}),
        # SGLang: 16 ranks of which 8 hold attention whole leave tp = 16/8.
        ("sglang", "--tp 16 --dp 8 --enable-dp-attention", True, {"tp": 2, "attention_dp": 8}),
        (
            "sglang",
            "--tp-size 16 --dp-size 16 --enable-dp-attention --ep-size 16",
            True,
            {"attention_dp": 16, "ep": 16},
        ),
        ("sglang", "--tp-size 8 --attn-dp-size 4", True, {"tp": 2, "attention_dp": 4}),
        ("sglang", "--tp-size 2 --dp-size 4", True, {"tp": 2, "replicas": 4}),
        ("sglang", "--tp-size 4 --pp-size 2 --ep-size 4", True, {"tp": 4, "pp": 2, "ep": 4}),
        ("trtllm", "--tp_size 8 --ep_size 8", True, {"tp": 8, "ep": 8}),
        ("lmdeploy", "--tp 4", True, {"tp": 4}),
        ("lmdeploy", "--tp 2 --dp 4 --ep 8", True, {"tp": 2, "attention_dp": 4, "ep": 8}),
        ("llama.cpp", "--tensor-split 3,1", False, {"pp": 2}),
        ("llama.cpp", "--tensor-split 1,1,0 --split-mode row", False, {"tp": 2}),
        ("llama.cpp", "--split-mode none --tensor-split 1,1", False, {}),
        ("llama.cpp", "--split-mode row", False, {}),
    ],
)
def test_splits_that_are_read(engine: str, line: str, moe: bool, result: dict[str, int]) -> None:
    split = split_of(engine, line, moe=moe)
    assert sizes(split) == result
    assert split.faults == []
    product = split.tp * split.pp * split.attention_dp
    assert (split.gpus, split.gpus_started) == (product, product * split.replicas)
    assert set(split.given) >= set(result) - {"pp", "tp"}


@pytest.mark.parametrize(
    ("mode", "gpus", "result"),
    [
        ("", 4, {"pp": 4}),
        ("--split-mode row", 4, {"tp": 4}),
        ("--split-mode none", 4, {}),
        ("--split-mode row", 0, {}),
        ("", 1, {}),
    ],
)
def test_llama_cpp_takes_all_gpus_it_sees(mode: str, gpus: int, result: dict[str, int]) -> None:
    """It splits by layers over all devices unless told otherwise."""
    assert sizes(split_of("llama.cpp", mode, moe=False, gpus=gpus)) == result


def test_attention_of_tensorrt_llm_is_split_or_whole() -> None:
    """`enable_attention_dp` gives each of the 8 ranks the whole attention of its own sequences."""
    facts = engine_facts("trtllm")
    ranks = {"tensor_parallel_size": Given("tensor_parallel_size", 8, 1, "--tp_size 8")}
    switch = Given("enable_attention_dp", True, 3, "enable_attention_dp: true")
    whole = read_split(facts, {**ranks, "enable_attention_dp": switch}, True, 0)
    assert sizes(whole) == {"attention_dp": 8}
    assert whole.given["attention_dp"].line == 3
    off = Given("enable_attention_dp", False, 3, "enable_attention_dp: false")
    assert sizes(read_split(facts, {**ranks, "enable_attention_dp": off}, True, 0)) == {"tp": 8}
    assert sizes(read_split(facts, {"enable_attention_dp": switch}, True, 0)) == {}


def test_ranks_of_one_host() -> None:
    """16 data-parallel ranks, 8 of them on this host."""
    split = split_of("vllm", "--data-parallel-size 16 --data-parallel-size-local 8")
    assert (split.attention_dp, split.local, split.gpus) == (16, 8, 16)
    assert split_of("vllm", "--data-parallel-size 16").local is None


@pytest.mark.parametrize("value", [0, -2, True, 2.0, "auto", None, 2**20 + 1])
def test_counts_that_are_none_are_faults(value: Any) -> None:
    one = Given("tensor_parallel_size", value, 7, "-tp ?")
    split = read_split(engine_facts("vllm"), {"tensor_parallel_size": one}, True, 0)
    assert sizes(split) == {}
    (fault,) = split.faults
    assert (fault.line, fault.text, fault.why) == (7, "-tp ?", "takes a whole number above zero")


def test_ranks_that_attention_does_not_divide() -> None:
    split = split_of("sglang", "--tp-size 6 --dp-size 4 --enable-dp-attention")
    assert sizes(split) == {"tp": 6}
    (fault,) = split.faults
    assert fault.why == "does not divide tp_size = 6"


@pytest.mark.parametrize(
    ("engine", "version", "fields", "moe", "result"),
    [
        ("vllm", None, {}, True, {}),
        (
            "vllm",
            None,
            {"tp": 4, "pp": 2},
            False,
            {"tensor_parallel_size": 4, "pipeline_parallel_size": 2},
        ),
        (
            "vllm",
            None,
            {"tp": 2, "attention_dp": 4, "ep": 8},
            True,
            {"tensor_parallel_size": 2, "data_parallel_size": 4, "enable_expert_parallel": True},
        ),
        ("sglang", "0.5.23", {"tp": 2, "attention_dp": 4}, True, {"tp_size": 8, "attn_dp_size": 4}),
        (
            "sglang",
            "0.5.14",
            {"tp": 2, "attention_dp": 4},
            True,
            {"tp_size": 8, "dp_size": 4, "enable_dp_attention": True},
        ),
        (
            "trtllm",
            None,
            {"attention_dp": 8, "ep": 8},
            True,
            {"tensor_parallel_size": 8, "moe_expert_parallel_size": 8, "enable_attention_dp": True},
        ),
        ("trtllm", None, {"tp": 8}, True, {"tensor_parallel_size": 8}),
        (
            "lmdeploy",
            None,
            {"tp": 2, "attention_dp": 4, "ep": 8},
            True,
            {"tp": 2, "dp": 4, "ep": 8},
        ),
        ("llama.cpp", None, {}, False, {"split_mode": "none"}),
        ("llama.cpp", None, {"pp": 3}, False, {"split_mode": "layer", "tensor_split": "1,1,1"}),
        ("llama.cpp", None, {"tp": 2}, False, {"split_mode": "row", "tensor_split": "1,1"}),
    ],
)
def test_splits_that_are_written(
    engine: str, version: str | None, fields: dict[str, int], moe: bool, result: dict[str, Any]
) -> None:
    scenario = Scenario(model="x", gpu="l4", **fields)
    parser = parser_of(engine, version)
    assert write_split(engine_facts(engine), parser, scenario, moe) == result


@pytest.mark.parametrize(
    ("engine", "fields", "moe", "message"),
    [
        ("vllm", {"tp": 4, "ep": 2}, True, "ep: 2 with vllm; accepted: 1 or 4"),
        ("vllm", {"tp": 4, "ep": 4}, False, "ep: the model has no experts; accepted: 1"),
        ("vllm", {"attention_dp": 2}, False, "attention_dp: a dense model has none with vllm"),
        ("lmdeploy", {"pp": 2}, True, "pp: 2 is not of lmdeploy; accepted: 1"),
        ("trtllm", {"tp": 2, "attention_dp": 2}, True, "tp: 2 with attention_dp in trtllm"),
        ("llama.cpp", {"ep": 2, "tp": 2}, True, "ep: 2 is not of llama.cpp; accepted: 1"),
        ("llama.cpp", {"attention_dp": 2}, True, "attention_dp: 2 is not of llama.cpp"),
        ("llama.cpp", {"tp": 2, "pp": 2}, True, "pp: 2 with tp in llama.cpp; accepted: 1"),
    ],
)
def test_splits_that_an_engine_does_not_have(
    engine: str, fields: dict[str, int], moe: bool, message: str
) -> None:
    scenario = Scenario(model="x", gpu="l4", **fields)
    with pytest.raises(Unwritable, match=f"^{message}"):
        write_split(engine_facts(engine), parser_of(engine), scenario, moe)


@settings(max_examples=60, deadline=None)
@given(
    engine=st.sampled_from(started_engines()),
    tp=st.sampled_from([1, 2, 4, 8]),
    pp=st.sampled_from([1, 2, 3]),
    attention_dp=st.sampled_from([1, 2, 16]),
    experts=st.booleans(),
    moe=st.booleans(),
)
def test_what_is_written_is_read_back(
    engine: str, tp: int, pp: int, attention_dp: int, experts: bool, moe: bool
) -> None:
    """Whatever split an engine can say, its own count of ranks comes back as the same split."""
    ep = tp * attention_dp if experts and moe else 1
    scenario = Scenario(model="x", gpu="l4", tp=tp, pp=pp, ep=ep, attention_dp=attention_dp)
    facts = engine_facts(engine)
    written: dict[str, Any] = {}
    with contextlib.suppress(Unwritable):
        written = write_split(facts, parser_of(engine), scenario, moe)
    assume(written or (tp, pp, attention_dp) == (1, 1, 1))
    given_ = {name: Given(name, value, 1, name) for name, value in written.items()}
    split = read_split(facts, given_, moe, 0)
    assert split.faults == []
    stated = {"tp": tp, "pp": pp, "ep": ep, "attention_dp": attention_dp}
    assert sizes(split) == {name: value for name, value in stated.items() if value != 1}


def test_each_engine_has_a_rule() -> None:
    rules = {engine_facts(engine).split["rule"] for engine in started_engines()}
    assert rules == set(READERS) == set(WRITERS)
