"""What a question says of an engine's memory: each setting's effect, its origin, its refusal."""

from __future__ import annotations

from typing import Any

import pytest

from planner import Scenario, plan
from planner.answer import MemoryAnswer
from planner.deployment import deployment_of
from planner.engines.setting_columns import settings_of
from planner.engines.settings import InvalidSetting, Lora, MemorySettings
from planner.errors import one_line
from tests.models.configs import llama

GIB = 2.0**30
QWEN = {"model": "Qwen/Qwen2.5-7B-Instruct", "gpu": "h100-sxm5"}


def memory(**fields: Any) -> MemoryAnswer:
    return plan(Scenario(**{**QWEN, "engine": "vllm", "engine_version": "0.19.0", **fields})).memory


def notes(**fields: Any) -> set[str]:
    result = plan(Scenario(**{**QWEN, "engine": "vllm", "engine_version": "0.19.0", **fields}))
    return {note.code for note in result.notes}


def test_a_share_of_memory_is_planned_with() -> None:
    # vLLM 0.19.0 on H100 prints 75.23 GiB requested at 0.95: 79.19 GiB in all
    more = memory(memory_fraction=0.95).kv_pool_bytes_per_gpu - memory().kv_pool_bytes_per_gpu
    assert more / GIB == pytest.approx(0.05 * 79.19, rel=1e-3)


def test_a_pool_is_taken_as_given() -> None:
    tokens = 1000 * 16
    given = memory(kv_pool_bytes=tokens * 57_344, memory_fraction=0.5)
    assert given.kv_pool_tokens == tokens
    assert given.kv_pool_bytes_per_gpu == tokens * 57_344
    assert "kv_pool_beyond_memory" in notes(kv_pool_bytes=80e9)


def test_engine_caps_are_told_from_memory() -> None:
    capped, free = memory(max_sequences=8, context=[512]), memory(context=[32_768])
    assert (capped.max_batch, capped.binds) == (8, "engine_cap")
    assert free.binds == "memory"
    assert memory(attention_dp=2, tp=1, max_sequences=8, context=[512]).max_batch == 16


def test_a_smaller_step_leaves_more_for_the_cache() -> None:
    assert memory(max_batched_tokens=2048).activation_bytes_per_gpu < (
        memory().activation_bytes_per_gpu
    )
    whole = memory(chunked_prefill=False)  # a step holds the longest prompt, 32,768 tokens
    assert whole.activation_bytes_per_gpu > memory().activation_bytes_per_gpu
    assert whole.activation_bytes_per_gpu == pytest.approx(
        memory(max_batched_tokens=32_768).activation_bytes_per_gpu
    )


def test_the_longest_context_is_the_one_given() -> None:
    assert memory(max_model_len=4096).max_context == 4096
    refused = plan(Scenario(**QWEN, engine="vllm", max_model_len=4096, context=[8192], batch=[1]))
    assert not refused.memory.fits
    assert refused.memory.max_batch == 0
    assert "context_beyond_max_model_len" in {note.code for note in refused.notes}


def test_an_engine_does_not_start_for_a_context_that_does_not_fit() -> None:
    assert "max_model_len_does_not_fit" in notes(kv_pool_bytes=1000 * 57_344)
    assert "max_model_len_does_not_fit" not in notes(kv_pool_bytes=1000 * 57_344, max_model_len=512)
    capped = notes(kv_pool_bytes=1000 * 57_344, engine="sglang")
    assert "max_model_len_capped" in capped
    assert "max_model_len_does_not_fit" not in capped


def test_blocks_are_as_long_as_given() -> None:
    assert memory(block_size=64, kv_pool_bytes=100 * 57_344).kv_pool_tokens == 64


def test_states_take_one_block_where_no_prefix_is_cached() -> None:
    hybrid = {"model": "Qwen/Qwen3-Next-80B-A3B-Instruct", "tp": 4, "context": [100]}
    cached = memory(**hybrid, max_sequences=2**20)
    assert memory(**hybrid, max_sequences=2**20, prefix_caching=False).max_batch > cached.max_batch


def test_graphs_take_memory_from_vllm_0_20_on() -> None:
    on, off = memory(engine_version="0.20.0"), memory(engine_version="0.20.0", graphs="off")
    assert off.graph_bytes_per_gpu == 0
    assert off.kv_pool_bytes_per_gpu - on.kv_pool_bytes_per_gpu == pytest.approx(
        on.graph_bytes_per_gpu
    )
    assert memory(graphs="off").kv_pool_bytes_per_gpu == memory().kv_pool_bytes_per_gpu


def test_sglang_keeps_less_free_for_fewer_graphs() -> None:
    # server_args: 2 MiB for each sequence of the largest captured batch, 256 on 80 GB; at least
    # 10 GiB are kept
    few = memory(engine="sglang", engine_version=None, graphs=16)
    more = (
        few.kv_pool_bytes_per_gpu
        - memory(engine="sglang", engine_version=None).kv_pool_bytes_per_gpu
    )
    assert 0 < more <= 240 * 2 * 2**20


def test_ranks_share_the_tokens_of_a_latent() -> None:
    latent = {"model": "deepseek-ai/DeepSeek-V3", "gpu": "h200-sxm", "tp": 8}
    alone, shared = memory(**latent), memory(**latent, decode_cp=8)
    assert shared.kv_pool_tokens == pytest.approx(8 * (alone.kv_pool_tokens or 0), rel=1e-3)
    assert "decode_cp" in notes(**latent, decode_cp=8)


def test_adapters_are_held_beside_the_weights() -> None:
    # q 3584² · k, v 3584×512 · o 3584² · gate, up 3584×18944 · down 18944×3584 in 28 layers
    widths = 2 * 3584 + 2 * (3584 + 512) + 2 * 3584 + 3 * (3584 + 18_944)
    lora = {"adapters": 4, "rank": 16}
    assert memory(lora=lora).adapter_bytes_per_gpu == 4 * 16 * widths * 28 * 2
    assert "adapters" in notes(lora=lora)


def test_encoders_are_loaded_unless_left_out() -> None:
    gemma = {"model": "google/gemma-3-27b-it", "engine": None, "engine_version": None}
    loaded, without = memory(**gemma), memory(**gemma, vision="off")
    assert loaded.weights_bytes_per_gpu - without.weights_bytes_per_gpu == 2 * 423_060_336
    assert "encoder_loaded" in notes(**gemma)
    assert "encoder_loaded" not in notes(**gemma, vision=False)


def test_an_encoder_of_sound_is_loaded_too() -> None:
    """Voxtral's: its projector is 5120 x hidden + hidden x hidden, its tower 32 layers of 1280."""
    heard = {
        "model_type": "voxtral",
        "text_config": llama(),
        "audio_config": {
            "model_type": "voxtral_encoder",
            "hidden_size": 1280,
            "intermediate_size": 5120,
            "num_hidden_layers": 32,
            "num_mel_bins": 128,
            "max_source_positions": 1500,
        },
    }
    # Two convolutions of 3 taps, positions, layers whose keys have no bias, the last norm.
    tower = 3 * 128 * 1280 + 3 * 1280**2 + 2 * 1280 + 1500 * 1280 + 2 * 1280
    tower += 32 * (4 * 1280**2 + 3 * 1280 + 2 * 1280 * 5120 + 5120 + 1280 + 4 * 1280)
    projector = 5120 * 4096 + 4096**2
    question = {"model": heard, "engine": None, "engine_version": None}
    loaded, without = memory(**question), memory(**question, vision="off")
    saved = loaded.weights_bytes_per_gpu - without.weights_bytes_per_gpu
    assert saved == 2 * (tower + projector)
    assert "encoder_loaded" in notes(**question)


def test_layers_of_llama_cpp_may_stay_on_the_host() -> None:
    file = {"engine": "llama.cpp", "engine_version": None, "weights": "q4_k_m"}
    whole, half = memory(**file), memory(**file, layers_on_gpu=14)
    assert half.weights_bytes_per_gpu < whole.weights_bytes_per_gpu / 2
    assert memory(**file, layers_on_gpu=29).weights_bytes_per_gpu == pytest.approx(
        whole.weights_bytes_per_gpu
    )
    assert "layers_on_host" in notes(**file, layers_on_gpu=14)


def test_llama_cpp_holds_the_cells_it_is_given() -> None:
    file = {"engine": "llama.cpp", "engine_version": None, "max_model_len": 16_384}
    assert memory(**file).kv_pool_tokens == 16_384
    assert memory(**file, context=[4096]).max_batch == 4


def test_hosts_split_the_links() -> None:
    assert "beyond_link_domain" in notes(tp=4, nodes=2)
    assert "beyond_link_domain" not in notes(tp=4)


def test_what_was_used_is_listed_with_its_origin() -> None:
    used = {s.name: (s.value, s.source) for s in memory(max_sequences=64).settings}
    assert used["max_sequences"] == (64, "given")
    assert used["memory_fraction"] == (0.9, "vLLM 0.19.0 default")
    assert used["max_model_len"] == (32_768, "the model's")
    assert used["block_size"] == (16, "vLLM 0.19.0 default")
    neutral = memory(engine=None, engine_version=None).settings
    assert {s.source for s in neutral} == {"no engine: assumed", "the model's"}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"layers_on_gpu": 4}, "layers_on_gpu: not of vLLM; accepted: with llama.cpp"),
        ({"max_model_len": 65_536}, "max_model_len: 65536 exceeds the 32768 tokens"),
        ({"decode_cp": 3, "tp": 4}, "decode_cp: 3 does not divide the 1 copies"),
        (
            {"decode_cp": 2, "tp": 8, "model": "openai/gpt-oss-120b"},
            "decode_cp: 2 does not divide the 1 copies",
        ),
        ({"nodes": 3, "tp": 4}, "nodes: 3 does not divide the 4 GPUs of a replica; accepted: 1, 2"),
        (
            {"chunked_prefill": False, "max_model_len": 8192, "max_batched_tokens": 2048},
            "max_batched_tokens: 2048 without chunked_prefill",
        ),
        (
            {"engine": "llama.cpp", "engine_version": None, "memory_fraction": 0.5},
            "memory_fraction: not of llama.cpp",
        ),
        (
            {"engine": "llama.cpp", "engine_version": None, "layers_on_gpu": 99},
            "layers_on_gpu: 99 exceeds the 28 layers",
        ),
        (
            {"engine": None, "engine_version": None, "graphs": "off"},
            "graphs: not of engine-neutral",
        ),
    ],
)
def test_impossible_settings_are_refused_in_one_line(fields: dict[str, Any], message: str) -> None:
    scenario = Scenario(**{**QWEN, "engine": "vllm", "engine_version": "0.19.0", **fields})
    with pytest.raises(InvalidSetting) as caught:
        deployment_of(scenario)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "fields",
    [
        {"memory_fraction": 0},
        {"memory_fraction": 1.01},
        {"max_sequences": 0},
        {"graphs": "maybe"},
        {"lora": {"adapters": 1}},
        {"vision": "sometimes"},
        {"kv_pool_bytes": -1},
    ],
)
def test_values_out_of_range_name_their_field(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(fields))) as caught:
        Scenario(**QWEN, **fields)
    assert next(iter(fields)) in one_line(caught.value)


def test_columns_of_rows_give_settings() -> None:
    row = {
        "gpu_memory_utilization": "0.95",
        "max_model_len": "8192.0",
        "lora": "4:16",
        "graphs": "off",
        "vision": "off",
        "block_size": "",
    }
    assert settings_of(row) == MemorySettings(
        memory_fraction=0.95, max_model_len=8192, lora=Lora(4, 16), graphs="off", vision=False
    )
    with pytest.raises(InvalidSetting, match=r"^memory_fraction: '1.5'"):
        settings_of({"gpu_memory_utilization": "1.5"})


FP8 = "Qwen/Qwen3-32B-FP8"


@pytest.mark.parametrize(
    ("model", "changes", "text"),
    [
        # vLLM and SGLang take 8 bits from a cache's scales alone, TensorRT-LLM from its weights.
        (FP8, {"engine": "vllm"}, "vLLM keeps the cache as bf16 beside fp8_block weights"),
        (FP8, {"engine": "sglang"}, "SGLang keeps the cache as bf16"),
        (FP8, {"engine": "trtllm"}, "TensorRT-LLM keeps the cache as fp8"),
        ("Qwen/Qwen3-32B", {"engine": "vllm", "weights": "fp8"}, "kv=fp8 says otherwise"),
        (FP8, {"engine": "vllm", "kv": "bf16"}, None),
        (FP8, {}, None),
        ("Qwen/Qwen3-32B", {"engine": "vllm"}, None),
        # Its config.json has kv_cache_quant_algo FP8: scales come with it.
        ("nvidia/Llama-3.1-70B-Instruct-FP8", {"engine": "vllm", "tp": 2}, None),
        ("deepseek-ai/DeepSeek-V3.2", {"engine": "vllm", "tp": 16}, None),
    ],
)
def test_a_cache_format_that_weights_do_not_decide_is_noted(
    model: str, changes: dict[str, Any], text: str | None
) -> None:
    answer = plan(Scenario(model=model, gpu="h100-sxm5", batch=1, context=4096, **changes))
    notes = [note.text for note in answer.notes if note.code == "assumed_cache_format"]
    assert len(notes) == (text is not None)
    assert text is None or text in notes[0]
