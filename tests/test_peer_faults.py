"""The faults other planners were seen to have, each with a test that this one does not share it.

Numbered as in a survey of fifteen tools run side by side in 2026.
"""

from __future__ import annotations

import numpy as np
import pytest

from planner.engines.memory import sequence_bytes
from planner.hw import get_accelerator
from planner.models import get_model
from planner.models.huggingface import import_config
from planner.plans.planning import plan
from planner.scenario import Scenario
from planner.step.model_steps import decode_kernels, model_step
from planner.step.parallel import Sharding

LLAMA_70B = "meta-llama/Llama-3.1-70B-Instruct"
LLAMA_8B = "meta-llama/Llama-3.1-8B-Instruct"
MIXTRAL = "mistralai/Mixtral-8x7B-Instruct-v0.1"
V3 = "deepseek-ai/DeepSeek-V3"


def roofline_tpot(model: str, gpu: str, **load: object) -> float:
    return plan(Scenario(model=model, gpu=gpu, **load)).points[0].roofline_tpot_s


def weight_bytes(model: str, batch: float, sharding: Sharding | None = None) -> float:
    spec = get_model(model)
    step = model_step(spec, get_accelerator("h200-sxm"), sharding or Sharding(), spec.formats())
    return float(step.of_batch(batch).weight_bytes)


def test_1_bandwidth_is_multiplied_by_tp() -> None:
    one = roofline_tpot(LLAMA_70B, "h100-sxm5", tp=1, batch=1, context=2048)
    eight = roofline_tpot(LLAMA_70B, "h100-sxm5", tp=8, batch=1, context=2048)
    assert one / eight == pytest.approx(8, rel=1e-6)


def test_2_moe_weights_read_grow_with_batch() -> None:
    """Mixtral has 8 experts and visits 2: 46.7 B parameters in all, 12.9 B active."""
    experts = next(
        k for k in decode_kernels(get_model(MIXTRAL), get_model(MIXTRAL).formats()) if k.experts
    )
    rest = weight_bytes(MIXTRAL, 1) - experts.weight_bytes * 2 / 8
    assert weight_bytes(MIXTRAL, 128) == pytest.approx(rest + experts.weight_bytes, rel=1e-9)
    assert weight_bytes(MIXTRAL, 2) == pytest.approx(rest + experts.weight_bytes * 3.5 / 8)


def test_2_mla_is_not_charged_as_heads() -> None:
    assert get_model(V3).kv_elements_per_token * 1 == 35_136  # B/token at 8 bits


def test_3_throughput_counts_output_tokens_only() -> None:
    point = plan(Scenario(model=LLAMA_8B, gpu="h100-sxm5", batch=32, context=2304)).points[0]
    assert point.tokens_per_s == pytest.approx(32 / point.tpot_s.p50)


def test_4_gigabytes_are_not_gibibytes_per_second() -> None:
    """8.03 B parameters less the embedding table at 16 bits over 3.35 TB/s, and 1 token of KV."""
    expected = ((8_030_261_248 - 128_256 * 4096 - 65 * 4096) * 2 + 131_072) / 3.35e12
    assert roofline_tpot(LLAMA_8B, "h100-sxm5", batch=1, context=1) == pytest.approx(
        expected, rel=1e-3
    )


def test_4_and_9_deepseek_has_its_experts_and_fits_eight_h200() -> None:
    spec = get_model(V3)
    assert spec.total_params == pytest.approx(671e9, rel=0.001)
    assert spec.weights_bytes() == pytest.approx(671e9, rel=0.02)
    assert plan(Scenario(model=V3, gpu="h200-sxm", tp=8, context=2048)).memory.fits


def test_5_an_infeasible_batch_is_said_to_be_one() -> None:
    answer = plan(Scenario(model=LLAMA_8B, gpu="a100-sxm4-80gb", batch=512, context=8192))
    assert not answer.memory.fits
    assert answer.memory.max_batch < 60
    assert "infeasible_batch" in {note.code for note in answer.notes}


def test_5_expert_reads_of_deepseek_at_batch_128() -> None:
    """256 experts, 8 a token: 128 tokens hit 98% of them, not 8."""
    assert weight_bytes(V3, 128) > 0.97 * weight_bytes(V3, 1e6)
    assert weight_bytes(V3, 1) < 0.07 * weight_bytes(V3, 1e6)


@pytest.mark.parametrize(
    ("model", "experts"),
    [(V3, 256), ("moonshotai/Kimi-K2-Instruct", 384), (MIXTRAL, 8), ("openai/gpt-oss-120b", 128)],
)
def test_6_real_configs_are_read_as_mixtures(model: str, experts: int) -> None:
    kernels = decode_kernels(get_model(model), get_model(model).formats())
    assert {k.experts for k in kernels} - {0} == {experts}


def test_6_time_rises_with_batch() -> None:
    batches = [1, 2, 8, 32, 128]
    answer = plan(
        Scenario(model=LLAMA_70B, gpu="h100-sxm5", tp=4, weights="fp8", batch=batches, context=8192)
    )
    times = [point.tpot_s.p50 for point in answer.points]
    assert times == sorted(times)


def test_7_kv_traffic_uses_kv_heads_and_the_head_is_counted_whole() -> None:
    spec = get_model(LLAMA_8B)
    step = model_step(spec, get_accelerator("h200-sxm"), Sharding(), spec.formats())
    assert float(step.at(128.0, 8192.0).cache_bytes) == 128 * 8192 * 131_072
    assert step.kernels[-1].name == "lm_head"
    assert step.kernels[-1].flops_per_token == 2 * 128_256 * 4096


def test_7_head_dim_is_read_not_derived() -> None:
    """Qwen3-32B: 64 heads of 128 on a hidden size of 5120; 8 KV heads, 64 layers."""
    assert get_model("Qwen/Qwen3-32B").kv_elements_per_token == 64 * 2 * 8 * 128


def test_8_peaks_are_dense() -> None:
    assert get_accelerator("h100-sxm5").peak("bf16") == pytest.approx(989.4e12, rel=1e-3)
    assert roofline_tpot(MIXTRAL, "h100-sxm5", tp=2, batch=1, context=1) == pytest.approx(
        3.85e-3, rel=0.02
    )


def test_9_gpt_oss_uses_its_head_dim() -> None:
    """36 layers of 8 KV heads of 64: 73,728 B in all, half of it in windows of 128 tokens."""
    spec = get_model("openai/gpt-oss-120b")
    assert spec.kv_elements_per_token * 2 == 36_864
    assert spec.window_elements * 2 == 36_864 * 128


def test_9_the_pool_shards_kv_heads() -> None:
    eight = plan(Scenario(model=LLAMA_70B, gpu="h100-sxm5", tp=8, context=8192)).memory
    expected = eight.kv_pool_bytes_per_gpu * 8 / 327_680
    assert eight.kv_pool_tokens == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("model", "active"), [(V3, 37e9), ("moonshotai/Kimi-K2-Instruct", 32e9)])
def test_10_active_parameters(model: str, active: float) -> None:
    assert get_model(model).active_params == pytest.approx(active, rel=0.03)


@pytest.mark.parametrize("tp", [1, 2, 8])
def test_10_and_11_the_latent_is_replicated_under_tp_and_split_under_attention_dp(tp: int) -> None:
    spec = get_model(V3)
    formats = spec.formats()
    one = sequence_bytes(spec, Sharding(), formats).per_token
    assert one == 70_272
    assert sequence_bytes(spec, Sharding(tp=tp), formats).per_token == one
    spread = plan(Scenario(model=V3, gpu="h200-sxm", attention_dp=8, ep=8, context=8192)).memory
    shared = plan(Scenario(model=V3, gpu="h200-sxm", tp=8, context=8192)).memory
    assert spread.max_batch > 5 * shared.max_batch


@pytest.mark.parametrize(
    ("model", "bytes_per_token"),
    [
        ("deepseek-ai/DeepSeek-V3.2", 85_888),  # 61 × (576 + 128) × 2
        ("moonshotai/Kimi-K2.5", 70_272),
        ("nvidia/Nemotron-H-56B-Base-8K", 40_960),  # 10 of 118 layers
        ("Qwen/Qwen3.5-397B-A17B", 30_720),  # 15 of 60 layers
        (LLAMA_8B, 131_072),
    ],
)
def test_11_and_15_cache_bytes_per_token(model: str, bytes_per_token: int) -> None:
    assert get_model(model).kv_elements_per_token * 2 == bytes_per_token


def test_12_gqa_is_not_ignored() -> None:
    spec = get_model(LLAMA_8B)
    assert spec.kv_elements_per_token == 2 * 32 * 1024  # 1024 = 8 heads of 128, not hidden 4096


def test_13_feed_forward_width_need_not_be_a_multiple_of_hidden() -> None:
    spec = get_model("meta-llama/Meta-Llama-3-70B")
    assert 28_672 % 8_192
    assert spec.total_params == 70_553_706_496


def test_14_kv_bytes_count_fully() -> None:
    short = plan(Scenario(model=LLAMA_8B, gpu="h100-sxm5", batch=64, context=1024)).points[0]
    long = plan(Scenario(model=LLAMA_8B, gpu="h100-sxm5", batch=64, context=9216)).points[0]
    assert long.bytes - short.bytes == 64 * 8192 * 131_072


def test_guessed_architecture_is_noted() -> None:
    config = {
        "model_type": "brandnew",
        "hidden_size": 1024,
        "num_hidden_layers": 4,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "intermediate_size": 4096,
        "vocab_size": 32000,
        "torch_dtype": "bfloat16",
    }
    notes = {note.code for note in import_config(config).notes}
    assert "assumed_architecture" in notes


def test_sliding_layers_are_capped() -> None:
    """Gemma-3-27B: 52 of 62 layers keep 1,024 tokens; past it only 10 layers grow."""
    spec = get_model("google/gemma-3-27b-it")
    step = model_step(spec, get_accelerator("h200-sxm"), Sharding(), spec.formats())
    cache = step.of_context(np.array([1024.0, 8192.0, 16384.0])).cache_bytes
    per_token = np.diff(cache) / [7168, 8192]
    np.testing.assert_allclose(per_token, 10 * 2 * 16 * 128 * 2)
