"""Kernels placed one by one: FLOPs and bytes worked by hand from published configs.

Sizes are those of each model's config.json (named beside the numbers). Activations, caches and
states have two bytes a value unless said otherwise. Decode is 2 sequences of 4096 cached tokens,
prefill one prompt of 4096, of which token i attends to i: 4096·4097/2 pairs in all.
"""

from __future__ import annotations

import math

import pytest

from planner.hw import get_accelerator
from planner.models import get_model
from planner.step.placement import Phase, PlacedKernel, place

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
V3 = "deepseek-ai/DeepSeek-V3"
V32 = "deepseek-ai/DeepSeek-V3.2"
V4 = "deepseek-ai/DeepSeek-V4-Flash"
GPT_OSS = "openai/gpt-oss-20b"
JAMBA = "ai21labs/Jamba-v0.1"
CODESTRAL = "mistralai/Mamba-Codestral-7B-v0.1"
QWEN_NEXT = "Qwen/Qwen3-Next-80B-A3B-Instruct"
KIMI = "moonshotai/Kimi-Linear-48B-A3B-Instruct"
MINIMAX = "MiniMaxAI/MiniMax-Text-01"
LFM2 = "FastFlowLM/LFM2-1.2B-NPU2"
RWKV5 = "RWKV/rwkv-5-world-3b"

N = 4096
PAIRS = N * (N + 1) // 2
FP8 = 1 + 4 / 128**2
"""A byte a weight and a scale of four bytes a block of 128×128 (weight_block_size) [byte]."""


def kernel(
    model: str, layer: str, name: str, phase: Phase, batch: int, context: int = N
) -> PlacedKernel:
    spec = get_model(model)
    rows = place(spec, get_accelerator("h100-sxm5"), spec.formats(), batch, context, phase).kernels
    (row,) = (row for row in rows if (row.layer, row.name) == (layer, name))
    return row


DECODE = [
    # 4096 inputs; 32 query and 8 key and 8 value heads of 128: one launch reads its input once.
    (LLAMA, "1", "qkv_proj", 2 * 2 * 4096 * 6144, 2 * (4096 * 6144 + 2 * (4096 + 6144))),
    # Gate and up of 14336 are one launch.
    (LLAMA, "1", "mlp_up", 2 * 2 * 4096 * 28672, 2 * (4096 * 28672 + 2 * (4096 + 28672))),
    (LLAMA, "1", "mlp_down", 2 * 2 * 14336 * 4096, 2 * (14336 * 4096 + 2 * (14336 + 4096))),
    # 2·32·(128 + 128) FLOPs a pair; 8 heads' keys and values, and 32 heads' queries and outputs.
    (LLAMA, "1", "attention", 2 * N * 4 * 32 * 128, 2 * 2 * (N * 2048 + 2 * 32 * 128)),
    (LLAMA, "1", "norm", 2 * 6 * 4096, 2 * 2 * 2 * 4096),
    (LLAMA, "1", "activation", 2 * 5 * 14336, 2 * 2 * 3 * 14336),
    (LLAMA, "1", "residual_add", 2 * 4096, 2 * 2 * 3 * 4096),
    (LLAMA, "end", "lm_head", 2 * 2 * 4096 * 128256, 2 * (4096 * 128256 + 2 * (4096 + 128256))),
    # Heads of 64 in a window of 128: 64 of queries, 8 of keys and values.
    (GPT_OSS, "1", "attention_window", 2 * 128 * 4 * 64 * 64, 4 * (128 * 1024 + 2 * 64 * 64)),
    # Absorbed: 128 heads of 512 + 64 against the latent, 512 of it summed; outputs of 512.
    (
        V3,
        "1",
        "attention_latent",
        2 * N * 2 * 128 * (576 + 512),
        2 * 2 * (N * 576 + 128 * (576 + 512)),
    ),
    # Absorbed, too: keys take a query of 128 to 512, values an output of 512 to 128. FP8 weights.
    (
        V3,
        "1",
        "kv_b_proj",
        2 * 2 * 512 * 32768,
        FP8 * 512 * 32768 + 4 * 128 * (128 + 512 + 512 + 128),
    ),
    # The down-projections of query (1536) and keys and values (576) read the same hidden state.
    (V3, "1", "kv_a_proj", 2 * 2 * 7168 * 2112, FP8 * 7168 * 2112 + 4 * (7168 + 2112)),
    # Two tokens hit 256·(1 − (1 − 8/256)²) = 15.75 experts of 3·7168·2048 values; each
    # of 8 reads 7168, writes 4096 (gate and up), reads 2048 and writes 7168.
    (
        V3,
        "2",
        "experts",
        2 * 2 * 8 * 3 * 7168 * 2048,
        FP8 * 15.75 * 3 * 7168 * 2048 + 4 * 8 * (7168 + 4096 + 2048 + 7168),
    ),
    # 8 routed experts and the shared one, of width 2048.
    (V3, "2", "activation", 2 * 5 * 9 * 2048, 2 * 2 * 3 * 9 * 2048),
    # 64 index heads of 128 and a weight each; one key of 128 a cached token.
    (V32, "1", "indexer", 2 * N * 2 * 64 * 128, 2 * 2 * (N * 128 + 64 * 129)),
    # Queries from their latent (1536), key and head weights from the hidden state.
    (
        V32,
        "1",
        "indexer_proj",
        2 * 2 * (1536 * 8192 + 7168 * 192),
        FP8 * (1536 * 8192 + 7168 * 192) + 4 * (1536 + 7168 + 8192 + 192),
    ),
    # The indexer leaves 2048 tokens.
    (V32, "1", "attention_latent", 2 * 2048 * 2 * 128 * 1088, 2 * 2 * (2048 * 576 + 128 * 1088)),
    # 64 heads of 512 over a window of 128 tokens; keys are the values.
    (V4, "3", "attention_window", 2 * 128 * 4 * 64 * 512, 4 * (128 * 512 + 2 * 64 * 512)),
    # One entry per 128 tokens; queries and outputs are the window's, whose launch it shares.
    (V4, "3", "attention_compressed", 2 * 32 * 4 * 64 * 512, 4 * 32 * 512),
    # 8 blocks of 4096×1024 on the diagonal read all 64·512 values. FP8 weights.
    (V4, "3", "o_a_proj", 2 * 2 * 4096 * 8192, FP8 * 4096 * 8192 + 4 * (32768 + 8192)),
    # 64 index heads of 128 over one key per 4 tokens.
    (V4, "4", "indexer", 2 * N / 4 * 2 * 64 * 128, 4 * (N / 4 * 128 + 64 * 129)),
    # State 8192·16 and window 8192·4, read and written; x, z, Δ, B, C of 16 and the output.
    (
        JAMBA,
        "1",
        "mamba_scan",
        2 * (7 * 8192 * 16 + 2 * 8192 * 4),
        4 * (2 * 8192 * 20 + 4 * 8192 + 2 * 16),
    ),
    # 128 heads of 64×128, 8 groups: convolution over 8192 + 2·8·128; z, Δ and the output beside.
    (
        CODESTRAL,
        "1",
        "mamba_scan",
        2 * (5 * 8192 * 128 + 2 * 10240 * 4),
        4 * (2 * (8192 * 128 + 10240 * 4) + 8192 + 10240 + 128 + 8192),
    ),
    # 32 value heads of 128×128, 16 key heads: q and k 2048 each, v, z and the output 4096 each.
    (
        QWEN_NEXT,
        "1",
        "delta_scan",
        2 * (7 * 32 * 128 * 128 + 2 * 8192 * 4),
        4 * (2 * (32 * 128 * 128 + 8192 * 4) + 2 * 2048 + 3 * 4096 + 2 * 32),
    ),
    # 32 heads of 128×128; q, k, v, decay, gate and output of 4096, β of 32.
    (
        KIMI,
        "1",
        "delta_scan",
        2 * (7 * 32 * 128 * 128 + 2 * 12288 * 4),
        4 * (2 * (32 * 128 * 128 + 12288 * 4) + 6 * 4096 + 32),
    ),
    # Decay and gate each go through a rank of 128 of their own: two inputs, two outputs.
    (KIMI, "1", "kda_gates_up", 2 * 4 * 128 * 4096, 4 * 128 * 4096 + 4 * 2 * (128 + 4096)),
    # 64 heads of 128×128; q, k, v, gate and output of 8192.
    (MINIMAX, "1", "linear_scan", 2 * 5 * 64 * 128 * 128, 4 * (2 * 64 * 128 * 128 + 5 * 8192)),
    # A convolution of 3 taps over 2048 between two gates.
    (LFM2, "1", "conv_scan", 2 * (6 * 2048 + 2 * 2048), 4 * (2 * 3 * 2048 + 4 * 2048)),
    # 40 heads of 64×64 and two shifts of 2560, in four bytes; r, k, v, gate and output of 2560.
    (RWKV5, "1", "rwkv_scan", 2 * 7 * 2560 * 64, 2 * 2 * 4 * (2560 * 64 + 2 * 2560) + 4 * 5 * 2560),
    # r, k, v and the gate each read a mix of their own of two hidden states.
    (RWKV5, "1", "rwkv_in", 2 * 2 * 4 * 2560**2, 2 * 4 * 2560**2 + 4 * 4 * (2560 + 2560)),
    # Squared ReLU of 7/2·2560 keys, without a gate of their width.
    (RWKV5, "1", "activation", 2 * 4 * 8960, 2 * 2 * 2 * 8960),
]

PREFILL = [
    (LLAMA, "1", "qkv_proj", 2 * N * 4096 * 6144, 2 * (4096 * 6144 + N * (4096 + 6144))),
    (LLAMA, "1", "mlp_up", 2 * N * 4096 * 28672, 2 * (4096 * 28672 + N * (4096 + 28672))),
    (LLAMA, "1", "attention", PAIRS * 4 * 32 * 128, 2 * N * (2048 + 2 * 32 * 128)),
    (LLAMA, "1", "norm", N * 6 * 4096, N * 2 * 2 * 4096),
    (LLAMA, "1", "activation", N * 5 * 14336, N * 2 * 3 * 14336),
    (LLAMA, "1", "residual_add", N * 4096, N * 2 * 3 * 4096),
    # Only the prompt's last token needs logits.
    (LLAMA, "end", "lm_head", 2 * 4096 * 128256, 2 * (4096 * 128256 + 4096 + 128256)),
    # The first 128 tokens attend to those before, the other ones to 128.
    (
        GPT_OSS,
        "1",
        "attention_window",
        (128 * 129 / 2 + (N - 128) * 128) * 4 * 64 * 64,
        2 * N * (1024 + 2 * 64 * 64),
    ),
    # Expanded: queries and keys of 128 + 64, values of 128, of each of 128 heads; the rotary part
    # of the keys is one for all heads and is counted with the latent, as it is cached.
    (
        V3,
        "1",
        "attention_latent",
        PAIRS * 2 * 128 * (192 + 128),
        2 * N * (576 + 128 * (192 + 128 + 128 + 128)),
    ),
    # 32,768 token visits hit every expert.
    (
        V3,
        "2",
        "experts",
        N * 2 * 8 * 3 * 7168 * 2048,
        FP8 * 256 * 3 * 7168 * 2048 + 2 * N * 8 * (7168 + 4096 + 2048 + 7168),
    ),
    (V3, "2", "activation", N * 5 * 9 * 2048, N * 2 * 3 * 9 * 2048),
    (V32, "1", "indexer", PAIRS * 2 * 64 * 128, 2 * N * (128 + 64 * 129)),
    (
        V4,
        "3",
        "attention_window",
        (128 * 129 / 2 + (N - 128) * 128) * 4 * 64 * 512,
        2 * N * (512 + 2 * 64 * 512),
    ),
    (V4, "3", "attention_compressed", PAIRS / 128 * 4 * 64 * 512, 2 * N / 128 * 512),
    (V4, "4", "indexer", PAIRS / 4 * 2 * 64 * 128, 2 * (N / 4 * 128 + N * 64 * 129)),
    # A scan moves its state once a prompt, whatever the tokens.
    (
        JAMBA,
        "1",
        "mamba_scan",
        N * (7 * 8192 * 16 + 2 * 8192 * 4),
        2 * (2 * 8192 * 20 + N * (4 * 8192 + 2 * 16)),
    ),
    (
        QWEN_NEXT,
        "1",
        "delta_scan",
        N * (7 * 32 * 128 * 128 + 2 * 8192 * 4),
        2 * (2 * (32 * 128 * 128 + 8192 * 4) + N * (2 * 2048 + 3 * 4096 + 2 * 32)),
    ),
    (MINIMAX, "1", "linear_scan", N * 5 * 64 * 128 * 128, 2 * (2 * 64 * 128 * 128 + N * 5 * 8192)),
    (LFM2, "1", "conv_scan", N * 8 * 2048, 2 * (2 * 3 * 2048 + N * 4 * 2048)),
    (RWKV5, "1", "rwkv_scan", N * 7 * 2560 * 64, 2 * 4 * (2560 * 64 + 2 * 2560) + 2 * N * 5 * 2560),
]


@pytest.mark.parametrize(("model", "layer", "name", "flops", "size"), DECODE)
def test_kernels_of_a_decode_step(
    model: str, layer: str, name: str, flops: float, size: float
) -> None:
    row = kernel(model, layer, name, "decode", batch=2)
    assert (row.flops, row.bytes) == (pytest.approx(flops), pytest.approx(size))


@pytest.mark.parametrize(("model", "layer", "name", "flops", "size"), PREFILL)
def test_kernels_of_a_prompt(model: str, layer: str, name: str, flops: float, size: float) -> None:
    row = kernel(model, layer, name, "prefill", batch=1)
    assert (row.flops, row.bytes) == (pytest.approx(flops), pytest.approx(size))


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("q_b_proj", 4.656e8),  # 1536·24576 + 8192·2·(1536 + 24576)
        ("kv_b_proj", 5.62e8),  # 512·32768 + 8192·2·(512 + 32768)
        ("o_proj", 5.033e8),  # 16384·7168 + 8192·2·(16384 + 7168)
    ],
)
def test_projections_of_deepseek_v3_over_8192_tokens(name: str, size: float) -> None:
    row = kernel(V3, "1", name, "prefill", batch=1, context=8192)
    assert row.bytes == pytest.approx(size, rel=5e-4)


def test_the_head_is_the_checkpoints() -> None:
    """248,320 × 2048 values at 4.5 bits (NVFP4 and its scales), as the checkpoint stores it."""
    row = kernel("nvidia/Qwen3.6-35B-A3B-NVFP4", "end", "lm_head", "decode", batch=1)
    stored = 248_320 * 2048 * 4.5 / 8
    assert stored == pytest.approx(2.861e8, rel=2e-4)
    assert row.bytes == stored + 2 * (2048 + 248_320)


@pytest.mark.parametrize("phase", ["decode", "prefill"])
def test_bytes_over_bandwidth_and_flops_over_peak_bound_the_time(phase: Phase) -> None:
    """H100 SXM datasheet: 3.35 TB/s; the bound is the larger of the two times."""
    spec = get_model(LLAMA)
    gpu = get_accelerator("h100-sxm5")
    for row in place(spec, gpu, spec.formats(), 8, 1024, phase).kernels:
        memory, compute = row.bytes / 3.35e12, row.flops / gpu.peak(row.format)
        assert row.time_s == pytest.approx(max(memory, compute))
        assert row.bound == ("compute" if compute > memory else "memory")
        assert row.arithmetic_intensity == pytest.approx(row.flops / row.bytes)


def test_every_launch_is_one_row() -> None:
    """q, k and v split differently over GPUs, but run as one product."""
    spec = get_model(LLAMA)
    rows = place(spec, get_accelerator("h100-sxm5"), spec.formats(), 1, 1).kernels
    names = [row.name for row in rows if row.layer == "1"]
    assert len(names) == len(set(names))
    assert all(row.bytes > 0 and math.isfinite(row.time_s) for row in rows)


@pytest.mark.parametrize(
    ("name", "weights", "values"),
    [
        # q, k, v: 8192 read whole, (8192 + 2·1024)/4 written; Llama-3.1-70B, bf16, 4 ranks
        ("qkv_proj", 2 * 8192 * 10240 / 4, 8192 + 10240 / 4),
        # heads' outputs split, what is summed whole
        ("o_proj", 2 * 8192 * 8192 / 4, 8192 / 4 + 8192),
        ("mlp_up", 2 * 2 * 8192 * 28672 / 4, 8192 + 2 * 28672 / 4),
        ("mlp_down", 2 * 28672 * 8192 / 4, 28672 / 4 + 8192),
        # SwiGLU of the rank's part: two values read, one written
        ("activation", 0, 3 * 28672 / 4),
        # every rank norms and adds the whole hidden state
        ("norm", 0, 2 * 8192),
        ("residual_add", 0, 3 * 8192),
    ],
)
def test_a_rank_moves_its_part_and_what_is_whole(name: str, weights: float, values: float) -> None:
    """Columns then rows are split (Megatron-LM): 8,192 tokens of a prompt, two bytes a value."""
    spec = get_model("meta-llama/Llama-3.1-70B-Instruct")
    gpu = get_accelerator("h100-sxm5")
    placed = place(spec, gpu, spec.formats(), 1, 8192, "prefill", tp=4)
    assert placed.tp == 4
    (row,) = (one for one in placed.kernels if one.name == name)
    assert row.bytes == pytest.approx(weights + 2 * 8192 * values)


@pytest.mark.parametrize("tp", [1, 2, 8])
@pytest.mark.parametrize("phase", ["decode", "prefill"])
def test_ranks_share_the_work(tp: int, phase: Phase) -> None:
    """FLOPs of products divide by the ranks; bytes by less, for something is whole on each."""
    spec = get_model("deepseek-ai/DeepSeek-V3")
    gpu = get_accelerator("h200-sxm")
    one = place(spec, gpu, spec.formats(), 4, 2048, phase).kernels
    many = place(spec, gpu, spec.formats(), 4, 2048, phase, tp=tp).kernels
    for whole, part in zip(one, many, strict=True):
        assert whole.flops / tp * (1 - 1e-9) <= part.flops <= whole.flops * (1 + 1e-9)
        assert whole.bytes / tp * (1 - 1e-9) <= part.bytes <= whole.bytes * (1 + 1e-9)
    by_name = {(row.layer, row.name): row for row in one}
    for row in many:
        if row.name in ("q_b_proj", "kv_b_proj", "o_proj", "mlp_up", "mlp_down", "lm_head"):
            assert row.flops == pytest.approx(by_name[row.layer, row.name].flops / tp)
        if row.name in ("norm", "residual_add", "kv_a_proj", "router"):
            assert row.bytes == pytest.approx(by_name[row.layer, row.name].bytes)


def test_heads_that_do_not_divide_are_refused() -> None:
    spec = get_model("meta-llama/Llama-3.1-70B-Instruct")
    with pytest.raises(ValueError, match="tp: 3 does not divide the 64 attention heads"):
        place(spec, get_accelerator("h100-sxm5"), spec.formats(), 1, 1, tp=3)
