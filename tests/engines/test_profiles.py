"""Profiles: every figure has a source, versions and devices change what they should."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest

from planner.deployment import Options, deploy
from planner.engines.profiles import EDITION, UnknownEngine, engines, get_engine
from planner.hw import get_accelerator
from planner.models import get_model
from planner.step.parallel import Sharding


def test_every_figure_has_a_source_and_a_confidence() -> None:
    for engine in engines().values():
        assert engine.figures
        for name, figure in engine.figures.items():
            assert len(figure.source) > 10, name
            assert figure.confidence in {"documented", "source_code", "fitted", "assumed"}


def test_every_source_is_used() -> None:
    data = json.loads(
        files("planner.engines")
        .joinpath(f"data/engines-{EDITION}.json")
        .read_text(encoding="utf-8")
    )
    used = json.dumps(data["engines"])
    assert all(f'"source": "{key}"' in used for key in data["sources"])


@pytest.mark.parametrize("name", ["vLLM", "sglang", "trtllm", "llama.cpp", " VLLM "])
def test_names_in_any_case(name: str) -> None:
    assert get_engine(name).id == name.strip().lower()


def test_an_unknown_engine_is_one_line() -> None:
    with pytest.raises(UnknownEngine) as caught:
        get_engine("ollama")
    assert str(caught.value) == (
        "engine: unknown engine 'ollama'; accepted: vllm, sglang, trtllm, llama.cpp"
    )


@pytest.mark.parametrize(
    ("version", "copies", "printed"),
    [
        ("0.11.0", 9.7, "blocks"),
        ("0.16.2", 9.7, "blocks"),
        ("2025-07", 9.7, "blocks"),
        ("0.17.0", 3.75, "blocks"),
        ("0.19.0", 3.75, "blocks"),
        ("nightly 2026-04", 3.75, "blocks"),
        ("0.22", 3.75, "requests"),
        ("nightly-dev-20260601-d3bae71e", 3.75, "requests"),
        ("", 3.75, "requests"),
        ("of my own", 3.75, "requests"),
        (None, 3.75, "requests"),
    ],
)
def test_vllm_drifts_by_version(version: str | None, copies: float, printed: str) -> None:
    engine = get_engine("vllm", version)
    assert engine.overheads.logits_copies == copies
    assert engine.paging.printed == printed


@pytest.mark.parametrize(
    ("engine", "gpu", "chunk", "sequences"),
    [  # vLLM get_batch_defaults; SGLang server_args
        ("vllm", "h100-sxm5", 8192, 1024),
        ("vllm", "mi300x", 8192, 1024),
        ("vllm", "a100-sxm4-80gb", 2048, 256),
        ("vllm", "l4", 2048, 256),
        ("sglang", "l4", 2048, 4096),
        ("sglang", "l40s", 4096, 4096),
        ("sglang", "h200-sxm", 8192, 4096),
        ("sglang", "b200-sxm", 16384, 4096),
        ("trtllm", "b200-sxm", 8192, 2048),
    ],
)
def test_defaults_by_device_memory(engine: str, gpu: str, chunk: int, sequences: int) -> None:
    found = get_engine(engine).on(get_accelerator(gpu))
    assert (found.chunk_tokens, found.max_sequences) == (chunk, sequences)
    assert found.on(get_accelerator(gpu)) is found


@pytest.mark.parametrize(
    ("engine", "weights", "kv"),
    [
        ("trtllm", "fp8", "fp8"),
        ("trtllm", "nvfp4", "fp8"),
        ("trtllm", None, "bf16"),
        ("vllm", "fp8", "bf16"),
        ("sglang", "nvfp4", "bf16"),
        ("llama.cpp", "q8_0", "fp16"),
    ],
)
def test_default_cache_format(engine: str, weights: str | None, kv: str) -> None:
    spec, gpu = get_model("meta-llama/Llama-3.1-8B"), get_accelerator("b200-sxm")
    found = deploy(spec, gpu, Sharding(), Options(weights=weights, engine=engine))
    assert found.formats.kv.id == kv
