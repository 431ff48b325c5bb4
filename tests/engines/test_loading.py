"""Weights as engines load them, against "Model loading took" of start-up logs and hand counts."""

from __future__ import annotations

import pytest

from planner.engines.loading import Loading, loaded_bytes
from planner.engines.memory import plan_memory
from planner.engines.overheads import Overheads, activation_bytes, buffer_bytes
from planner.engines.profiles import GIB, get_engine, reported_bytes
from planner.engines.settings import MemorySettings
from planner.hw import get_accelerator
from planner.hw.inline import override
from planner.models import get_model
from planner.step.parallel import Sharding

VLLM = get_engine("vllm", "0.19.0")


@pytest.mark.parametrize(
    "model",
    [
        "Qwen/Qwen2.5-7B-Instruct",
        "deepseek-ai/DeepSeek-V3",
        "openai/gpt-oss-120b",
        "google/gemma-3-27b-it",
        "nvidia/Nemotron-H-8B-Base-8K",
        "ibm-granite/granite-3.3-8b-instruct",
    ],
)
@pytest.mark.parametrize(("tp", "dp"), [(1, 1), (2, 1), (4, 2)])
def test_without_rules_the_checkpoint_is_loaded(model: str, tp: int, dp: int) -> None:
    spec = get_model(model)
    split = Sharding(tp, attention_dp=dp)
    stored = spec.weights_bytes(spec.formats(), tp, split.ranks)
    assert loaded_bytes(spec, spec.formats(), split) == pytest.approx(stored, rel=1e-12)


@pytest.mark.parametrize(
    ("model", "tp", "gib"),
    [  # vLLM 0.19.0 on H100, rows M0049 to M0051, M0043, M0076, M0037, M0067, M0073, M0065, M0010
        ("Qwen/Qwen2.5-7B-Instruct", 1, 14.25),
        ("Qwen/Qwen2.5-7B-Instruct", 2, 7.12),
        ("Qwen/Qwen2.5-7B-Instruct", 4, 3.55),
        ("Qwen/Qwen2.5-72B-Instruct", 2, 67.80),
        ("Qwen/Qwen2.5-72B-Instruct", 4, 33.98),
        ("moonshotai/Kimi-Dev-72B", 4, 34.01),
        ("ibm-granite/granite-3.1-8b-instruct", 4, 3.87),
        ("mistralai/Mistral-Small-3.1-24B-Instruct-2503", 4, 11.86),
        ("deepseek-ai/DeepSeek-V2-Lite-Chat", 4, 7.51),
        ("google/gemma-3-27b-it", 1, 51.45),
    ],
)
def test_loaded_weights_of_logs(model: str, tp: int, gib: float) -> None:
    spec = get_model(model)
    found = loaded_bytes(spec, spec.formats(), Sharding(tp), VLLM.loading) / GIB
    assert found == pytest.approx(gib, rel=0.0015)


def test_allocator_keeps_rests_of_up_to_a_mib() -> None:
    # Qwen2.5-7B, per layer: q, k, v 31.5 MiB (+0.5), gate and up 259 (+1), down 129.5 (+0.5),
    # o 24.5 (its 1.5 of 26 are split off); embedding and head 1,039.5 (+0.5 each).
    spec = get_model("Qwen/Qwen2.5-7B-Instruct")
    exact = loaded_bytes(spec, spec.formats(), Sharding())
    rounded = loaded_bytes(spec, spec.formats(), Sharding(), Loading(allocator_step_bytes=2**21))
    assert (rounded - exact) / 2**20 == pytest.approx(28 * 2 + 2 * 0.5, abs=0.01)


def test_vocabularies_are_padded() -> None:
    spec = get_model("ibm-granite/granite-3.3-8b-instruct")
    assert spec.vocab % 64  # 49,159: padded to 49,216
    more = loaded_bytes(spec, spec.formats(), Sharding(), Loading(vocab_multiple=64))
    rows = -spec.vocab % 64
    tables = 1 if spec.tied_embeddings else 2
    assert more - loaded_bytes(spec, spec.formats(), Sharding()) == rows * spec.hidden * 2 * tables


def test_block_scaled_experts_are_padded() -> None:
    # gpt-oss: 2,880 wide both ways, padded to 3,072 where products run over it.
    spec = get_model("openai/gpt-oss-120b")
    rules = Loading(expert_multiple={"mxfp4": 256})
    exact = loaded_bytes(spec, spec.formats(), Sharding())
    experts = spec.routed_params * spec.formats().weights["experts"].bytes
    padded = loaded_bytes(spec, spec.formats(), Sharding(), rules)
    assert padded - exact == pytest.approx(experts / 15, rel=0.01)


def test_quantised_up_projections_of_a_latent_are_kept_twice() -> None:
    spec = get_model("deepseek-ai/DeepSeek-V3")  # 61 layers, 512 × 128·(128 + 128), FP8
    rules = Loading(copied_kernels=("kv_b_proj",))
    more = loaded_bytes(spec, spec.formats(), Sharding(8), rules)
    less = loaded_bytes(spec, spec.formats(), Sharding(8))
    assert more - less == pytest.approx(61 * 512 * 128 * 256 * 2 / 8)


def test_pipelines_divide_and_overheads_default_to_nothing() -> None:
    spec = get_model("meta-llama/Llama-3.1-70B-Instruct")
    one, two = (loaded_bytes(spec, spec.formats(), Sharding(1, pp), VLLM.loading) for pp in (1, 2))
    assert two == pytest.approx(one / 2)
    assert activation_bytes(spec, spec.formats(), Sharding(), Overheads(), 8192, 1024) == 0
    assert buffer_bytes(Sharding(8), Overheads(), linked=True) == 0


def test_the_peak_is_the_samplers_or_the_widest_layers() -> None:
    spec = get_model("Qwen/Qwen2.5-7B-Instruct")
    sampler = Overheads(logits_copies=1)
    layer = Overheads(layer_copies=1)
    formats = spec.formats()
    assert activation_bytes(spec, formats, Sharding(), sampler, 8192, 1024) == 1024 * 152_064 * 4
    # gate, up and down's output and input: (2·18,944 + 3,584 + 18,944)·2 B, and a hidden state
    widest = 8192 * ((3 * 18_944 + 3_584) * 2 + 3_584 * 2)
    assert activation_bytes(spec, formats, Sharding(), layer, 8192, 1024) == widest


def test_a_driver_reports_less_than_a_datasheet() -> None:
    h100 = get_accelerator("h100-sxm5")
    # 75.23 GiB requested at 0.95 by vLLM 0.19.0
    assert reported_bytes(h100) / GIB == pytest.approx(75.23 / 0.95, rel=1e-3)
    larger = override(h100, {"memory_bytes": 2 * h100.memory(), "source": "test"})
    assert reported_bytes(larger) == pytest.approx(2 * reported_bytes(h100))


def test_pool_by_fraction_and_by_reserve() -> None:
    spec = get_model("Qwen/Qwen2.5-7B-Instruct")
    gpu, split, formats = get_accelerator("h100-sxm5"), Sharding(), spec.formats()

    def pool(engine: str, fraction: float | None = None) -> float:
        profile = get_engine(engine)
        return (
            plan_memory(
                spec, gpu, split, formats, profile, MemorySettings(memory_fraction=fraction)
            ).kv_pool_bytes_per_gpu
            / GIB
        )

    assert pool("vllm", 0.95) - pool("vllm", 0.9) == pytest.approx(0.05 * 79.19, rel=1e-3)
    # SGLang on 80 GB keeps 512 + 1.5·8192 + 2·256 + 128 MiB and 8 for each of 58 prompt sizes,
    # 13,904 in all (0.5.23, memory_hook)
    kept = 13_904 / 1024
    sglang = get_engine("sglang").on(gpu)
    buffers = buffer_bytes(split, sglang.overheads, linked=False) / GIB
    total = reported_bytes(gpu) / GIB
    weights = loaded_bytes(spec, formats, split, sglang.loading) / GIB
    assert pool("sglang") == pytest.approx(round(1 - kept / total, 3) * (total - buffers) - weights)
    # TensorRT-LLM takes 0.9 of what weights, activations and buffers leave
    trt = plan_memory(spec, gpu, split, formats, get_engine("trtllm"))
    taken = trt.weights_bytes_per_gpu + trt.activation_bytes_per_gpu + trt.buffer_bytes_per_gpu
    assert trt.kv_pool_bytes_per_gpu == pytest.approx(0.9 * (reported_bytes(gpu) - taken))


def test_neutral_is_a_tenth_of_nominal_memory_less() -> None:
    spec = get_model("Qwen/Qwen2.5-7B-Instruct")
    gpu = get_accelerator("h100-sxm5")
    found = plan_memory(spec, gpu, Sharding(), spec.formats(), get_engine(None))
    assert found.kv_pool_bytes_per_gpu == pytest.approx(0.9 * gpu.memory() - spec.weights_bytes())


def test_sequences_take_whole_blocks() -> None:
    spec = get_model("Qwen/Qwen2.5-7B-Instruct")
    gpu = get_accelerator("h100-sxm5")
    tokens = MemorySettings(kv_pool_bytes=64 * 57_344)  # 28 layers · 2 · 4 heads · 128 · 2 B
    few = plan_memory(spec, gpu, Sharding(), spec.formats(), VLLM, tokens)
    assert few.max_batch(16) == 4
    assert few.max_batch(17) == 2
    assert few.max_context(2, 32_768) == 32
    assert few.kv_pool_tokens == 64


def test_sglang_gives_windows_and_states_pools_of_their_own() -> None:
    gpu = get_accelerator("h200-sxm")
    windows = get_model("openai/gpt-oss-120b")  # 18 growing layers, 18 with windows, all alike
    found = plan_memory(windows, gpu, Sharding(2), windows.formats(), get_engine("sglang"))
    a_token = 1.8 * found.gpu_sequence_bytes.per_token  # swa_full_tokens_ratio 0.8
    assert found.kv_pool_tokens == int(found.kv_pool_bytes_per_gpu / a_token)
    hybrid = get_model("Qwen/Qwen3-Next-80B-A3B-Instruct")
    split = plan_memory(hybrid, gpu, Sharding(2), hybrid.formats(), get_engine("sglang"))
    pool = split.kv_pool_bytes_per_gpu
    # 36 layers of 16 of 32 heads of 128×128, and of 3 inputs of (2·16 + 32)·128 / 2 channels
    state = 36 * 2 * (16 * 128 * 128 + 3 * 4096)
    share = 0.4737  # mamba_full_memory_ratio 0.9: 0.9/1.9
    assert split.max_batch(1) == int(pool * share / state)
    cache = split.gpu_sequence_bytes.per_token
    assert split.kv_pool_tokens == int(pool * (1 - share) / cache)
    assert split.max_batch(262_144) == int(pool * (1 - share) / (cache * 262_144))
