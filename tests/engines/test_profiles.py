"""Profiles: every figure has a source, versions and devices change what they should."""

from __future__ import annotations

import json

import pytest

from planner import Scenario, plan
from planner.deployment import Options, deploy
from planner.engines.names import EDITION, edition, engine_data, engine_names, names_text
from planner.engines.profiles import UnknownEngine, engines, get_engine
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
    data = engine_data()
    used = json.dumps(data["engines"])
    assert all(f'"source": "{key}"' in used for key in data["sources"])


@pytest.mark.parametrize("name", ["vLLM", "sglang", "trtllm", "llama.cpp", " VLLM "])
def test_names_in_any_case(name: str) -> None:
    assert get_engine(name).id == name.strip().lower()


def test_an_unknown_engine_is_one_line() -> None:
    with pytest.raises(UnknownEngine) as caught:
        get_engine("ollama")
    assert str(caught.value) == (
        f"engine: unknown engine 'ollama'; accepted: {', '.join(engine_names())}"
    )


def test_the_names_are_those_of_the_data() -> None:
    first = ("vllm", "sglang", "trtllm", "llama.cpp", "lmdeploy")
    assert engine_names()[:5] == first  # whichever are added follow
    assert names_text().replace(" or ", ", ") == ", ".join(engine_names())
    assert engine_data()["edition"] == EDITION <= edition()


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
    ("version", "fraction", "graphs"),
    [  # vllm/config/cache.py: 0.9 up to 0.19.1, 0.92 from 0.20.0 on; gpu_worker.py takes CUDA
        # graphs from the pool since then
        ("0.11.0", 0.9, False),
        ("0.19.1", 0.9, False),
        ("2026-03", 0.9, False),
        ("0.20.0", 0.92, True),
        ("0.20", 0.92, True),
        ("nightly-20260502", 0.92, True),
        ("0.33.0", 0.92, True),
        ("0.40", 0.92, True),
        (None, 0.92, True),
    ],
)
def test_what_vllm_plans_with(version: str | None, fraction: float, graphs: bool) -> None:
    engine = get_engine("vllm", version)
    assert engine.memory_fraction == fraction
    assert ("graphs" in engine.after_fraction) == graphs


@pytest.mark.parametrize(
    ("engine", "version", "gpu", "tp", "chunk", "sequences", "graph"),
    [  # vLLM arg_utils.get_batch_defaults and _set_cudagraph_sizes; SGLang memory_hook, server_args
        ("vllm", "0.24.0", "h100-sxm5", 1, 8192, 1024, 512),
        ("vllm", "0.24.0", "b200-sxm", 1, 8192, 1024, 512),
        ("vllm", "0.28.0", "b200-sxm", 1, 16384, 1024, 1024),
        ("vllm", "0.28.0", "mi300x", 1, 16384, 1024, 512),
        ("vllm", "0.32.0", "dgx-spark-gb10", 1, 8192, 1024, 512),
        ("vllm", None, "dgx-spark-gb10", 1, 2048, 256, 512),
        ("vllm", None, "h100-sxm5", 8, 8192, 1024, 512),
        ("vllm", None, "a100-sxm4-80gb", 1, 2048, 256, 512),
        ("vllm", None, "l4", 1, 2048, 256, 512),
        ("sglang", None, "t4", 1, 2048, 4096, 8),
        ("sglang", None, "rtx-5090", 1, 4096, 4096, 48),
        ("sglang", None, "rtx-5090", 4, 4096, 4096, 160),
        ("sglang", "0.5.19", "rtx-5090", 1, 2048, 4096, 24),
        ("sglang", "0.5.3", "rtx-5090", 1, 2048, 4096, 16),
        ("sglang", None, "l40s", 1, 4096, 4096, 32),
        ("sglang", None, "l40s", 8, 4096, 4096, 160),
        ("sglang", None, "h100-sxm5", 2, 8192, 4096, 256),
        ("sglang", None, "h100-sxm5", 4, 8192, 4096, 512),
        ("sglang", None, "h200-sxm", 1, 8192, 4096, 256),
        ("sglang", None, "b200-sxm", 1, 16384, 4096, 512),
        ("sglang", "0.4.0", "l40s", 1, 8192, 4096, 160),
        ("trtllm", None, "b200-sxm", 1, 8192, 2048, 128),
        ("lmdeploy", None, "a100-sxm4-80gb", 1, 8192, 384, 0),
        ("lmdeploy", None, "h100-sxm5", 1, 8192, 1024, 0),
        ("lmdeploy", None, "l4", 1, 8192, 128, 0),
    ],
)
def test_defaults_by_version_device_and_split(
    engine: str, version: str | None, gpu: str, tp: int, chunk: int, sequences: int, graph: int
) -> None:
    profile = get_engine(engine, version).on(get_accelerator(gpu), tp)
    limits = (profile.chunk_tokens, profile.max_sequences, profile.graph_sequences)
    assert limits == (chunk, sequences, graph)
    assert profile.on(get_accelerator(gpu), tp) is profile


@pytest.mark.parametrize(
    ("version", "gpu", "tp", "share"),
    [  # worked from SGLang's own lines: (memory − reserve)/memory in MiB, memory as nominal here
        ("0.4.0", "h100-sxm5", 8, 0.81),
        ("0.4.6", "h100-sxm5", 1, 0.88),
        ("0.5.2", "h100-sxm5", 8, 1 - (9.5 + 8 / 2) / 80),
        ("0.5.2", "b200-sxm", 8, 1 - 32 / 180),
        ("0.5.9", "h100-sxm5", 8, 1 - (512 + 1.5 * 8192 + 2 * 512 + 1024) / 1024 / 80),
        ("0.5.23", "h100-sxm5", 8, 1 - (512 + 58 * 8 + 1.5 * 8192 + 2 * 512 + 1024) / 1024 / 80),
        ("0.5.23", "rtx-4090", 1, 1 - (512 + 50 * 8 + 1.5 * 4096 + 2 * 48 + 128) / 1024 / 24),
        ("0.5.23", "a100-sxm4-40gb", 1, 1 - (512 + 50 * 8 + 1.5 * 4096 + 2 * 32 + 128) / 1024 / 40),
    ],
)
def test_the_share_sglang_keeps_for_weights_and_cache(
    version: str, gpu: str, tp: int, share: float
) -> None:
    accelerator = get_accelerator(gpu)
    profile = get_engine("sglang", version).on(accelerator, tp)
    if profile.reserve is None:
        assert profile.memory_fraction == share
        return
    gib = {"h100-sxm5": 80, "b200-sxm": 180, "rtx-4090": 24, "a100-sxm4-40gb": 40}[gpu]
    total = gib * 2.0**30
    reserve = profile.reserve.of(total, profile.chunk_tokens, profile.graph_sequences, Sharding(tp))
    assert 1 - reserve / total == pytest.approx(share, rel=1e-6)


@pytest.mark.parametrize(
    ("engine", "version", "gpu", "figure", "text"),
    [
        ("vllm", None, "h100-sxm5", "memory_fraction", "0.92 (vLLM 0.33.0 default)"),
        ("vllm", "0.24", "h100-sxm5", "memory_fraction", "0.92 (vLLM 0.24.0 default)"),
        ("vllm", "0.20.1", "h100-sxm5", "memory_fraction", "0.92 (vLLM 0.20.0 default)"),
        ("vllm", None, "b200-sxm", "chunk_tokens", "16384 (vLLM 0.33.0 default from 160 GiB)"),
        ("vllm", None, "h100-sxm5", "kv_block_tokens", "16 (vLLM: documented)"),
        (
            "sglang",
            None,
            "rtx-5090",
            "graph_sequences",
            "48 (SGLang 0.5.23 default from 20 GiB below 35 GiB below TP 4)",
        ),
        ("llama.cpp", None, "m3-max", "chunk_tokens", "512 (llama.cpp 11312 default)"),
    ],
)
def test_a_default_says_whose_it_is(
    engine: str, version: str | None, gpu: str, figure: str, text: str
) -> None:
    profile = get_engine(engine, version).on(get_accelerator(gpu))
    assert profile.stated(figure) == text


def test_a_default_says_where_it_stands() -> None:
    figure = get_engine("vllm", "0.33.0").figures["memory_fraction"]
    assert figure.source.startswith("vllm/config/cache.py:215 in vllm-0.33.0-")
    assert (figure.argument, figure.confidence) == ("gpu_memory_utilization", "source_code")


@pytest.mark.parametrize(
    ("version", "tokens"),
    [
        # 80 layers · 8/2 KV heads · 2 · 128 · 2 byte = 163,840 byte a token. 0.02 · 79.19 GiB more
        # from 0.20 on; 0.3 GiB + 80 · 17.92 MiB of CUDA graphs less
        ("0.19.0", 9744),
        ("0.33.0", 8992),
    ],
)
def test_the_pool_of_one_deployment_at_two_versions(version: str, tokens: int) -> None:
    scenario = Scenario(
        model="meta-llama/Llama-3.1-70B-Instruct",
        gpu="h100-sxm5",
        tp=2,
        engine="vllm",
        engine_version=version,
    )
    assert plan(scenario).memory.kv_pool_tokens == tokens


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
