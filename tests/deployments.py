"""Random deployments: any model of the catalogue on any accelerator, split, run and set anyhow.

Many are refused (a split that divides no heads, a setting the engine lacks): ways to ask must
refuse them alike, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from planner import Scenario, plan
from planner.errors import InvalidInput
from planner.hw import list_accelerators
from planner.models.listing import all_facts

MODELS = tuple(facts["id"] for facts in all_facts())
GPUS = tuple(gpu.id for gpu in list_accelerators() if gpu.memory_bytes)
ENGINES = (
    (None, None),
    ("vllm", None),
    ("vllm", "0.11.0"),
    ("vllm", "0.19.0"),
    ("vllm", "0.24.0"),
    ("sglang", None),
    ("sglang", "0.4.8"),
    ("trtllm", None),
    ("llama.cpp", None),
    ("lmdeploy", None),
)

COMMON = ("h100-sxm5", "h200-sxm", "b200-sxm", "a100-sxm4-80gb", "rtx-4090", "mi300x")


def rarely(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return mostly None, the default."""
    return st.one_of(*[st.none()] * 7, values)


deployments = st.fixed_dictionaries(
    {
        "model": st.sampled_from(MODELS),
        "gpu": st.one_of(st.sampled_from(COMMON), st.sampled_from(COMMON), st.sampled_from(GPUS)),
        "tp": st.sampled_from([1, 1, 2, 4, 8]),
        "pp": st.sampled_from([1, 1, 1, 2]),
        "ep": st.sampled_from([1] * 9 + [2]),
        "attention_dp": st.sampled_from([1] * 5 + [2]),
        "kv": rarely(st.just("fp8")),
        "engine and version": st.sampled_from(ENGINES),
        "context": st.lists(st.integers(1, 60_000), min_size=1, max_size=1),
        "memory_fraction": rarely(st.floats(0.3, 1.0)),
        "kv_pool_bytes": rarely(st.floats(0, 2e11)),
        "max_sequences": rarely(st.integers(1, 5000)),
        "max_batched_tokens": rarely(st.integers(1, 40_000)),
        "max_model_len": rarely(st.integers(1, 200_000)),
        "block_size": rarely(st.sampled_from([1, 16, 32, 64, 256])),
        "prefix_caching": rarely(st.booleans()),
        "chunked_prefill": rarely(st.booleans()),
        "graphs": rarely(st.sampled_from(["on", "off", 64])),
        "kv_offload_bytes": rarely(st.floats(0, 1e12)),
        "decode_cp": rarely(st.sampled_from([1, 2, 4])),
        "nodes": rarely(st.sampled_from([1, 2])),
        "lora": rarely(st.just({"adapters": 3, "rank": 16})),
        "layers_on_gpu": rarely(rarely(st.integers(0, 40))),
        "vision": rarely(st.booleans()),
        "speculation": rarely(st.just({"drafts": 2})),
    }
)
"""Fields of a scenario; `form` makes them one."""


def form(fields: dict[str, Any]) -> dict[str, Any]:
    """Return a scenario's fields of random ones."""
    engine, version = fields["engine and version"]
    rest = {name: value for name, value in fields.items() if name != "engine and version"}
    return {**rest, "engine": engine, "engine_version": version}


def answer_or_refusal(ask: Callable[[], Any]) -> Any:
    """Return what is answered, or the line with which it is refused."""
    try:
        return ask()
    except InvalidInput as error:
        return str(error)


def planned_memory(fields: dict[str, Any]) -> Any:
    """Return the memory of a plan, or the line with which it is refused."""
    return answer_or_refusal(lambda: plan(Scenario(**form(fields))).memory)
