"""Dense decoders against a plain Llama of the same sizes: what each type adds, worked by hand.

All have 8 layers of 256 values, 8 heads of 32, 2 KV heads, an MLP of 1024 and 1000 tokens. What a
type adds is read off its modelling code in the reference implementation (norms, biases, ties).
"""

from __future__ import annotations

import math
from typing import Any

import pytest

from planner.models.attention import Attention
from planner.models.spec import ModelSpec
from tests.models.layers import layer_kernels, parts_of, read, token_flops, weights

SIZES: dict[str, Any] = {
    "hidden_size": 256,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "intermediate_size": 1024,
    "vocab_size": 1000,
    "tie_word_embeddings": False,
}
H, LAYERS, HEAD, WIDTH, VOCAB = 256, 8, 32, 1024, 1000
Q, KV = 8 * HEAD, 2 * HEAD
ATTENTION = H * Q + 2 * H * KV + Q * H
MLP = 3 * H * WIDTH
LLAMA = 2 * VOCAB * H + LAYERS * (ATTENTION + MLP + 2 * H) + H


def small(model_type: str, **changes: Any) -> ModelSpec:
    fields = {**SIZES, "model_type": model_type, **changes}
    return read(**{name: value for name, value in fields.items() if value is not None})


def test_the_plain_one() -> None:
    """2·256,000 + 8·(163,840 + 786,432 + 512) + 256."""
    assert LLAMA == 512_000 + 8 * 950_784 + 256 == 8_118_528
    assert small("llama").total_params == LLAMA


QK_HEAD = 2 * HEAD
QK_FULL = Q + KV
QKV_BIAS = Q + 2 * KV
MLP_BIAS = 2 * WIDTH + H


@pytest.mark.parametrize(
    ("model_type", "changes", "a_layer", "once"),
    [
        ("Yi", {}, 0, 0),
        ("granite", {"attention_bias": True}, QKV_BIAS + H, 0),
        ("llama", {"mlp_bias": True}, MLP_BIAS, 0),
        # q, k and v have biases, the output has none; no switch turns them off.
        ("qwen2", {}, QKV_BIAS, 0),
        ("qwen2", {"attention_bias": False}, QKV_BIAS, 0),
        ("mimo", {}, QKV_BIAS, 0),
        # A norm of one head's width for q and for k.
        ("qwen3", {}, QK_HEAD, 0),
        ("qwen3", {"attention_bias": True}, QK_HEAD + QKV_BIAS + H, 0),
        ("hunyuan_v1_dense", {}, QK_HEAD, 0),
        ("exaone4", {}, QK_HEAD, 0),
        # Norms over all heads.
        ("olmo2", {}, QK_FULL, 0),
        ("olmo3", {}, QK_FULL, 0),
        # OLMo's norms and nanochat's have no weights, nor has the last.
        ("olmo", {}, -2 * H, -H),
        ("nanochat", {}, -2 * H - H * WIDTH, -H),
        # One norm a layer before attention and MLP together; a head of its own all the same.
        ("cohere", {"use_qk_norm": False}, -H, 0),
        ("cohere", {"use_qk_norm": True}, -H + QK_FULL, 0),
        ("cohere2", {}, -H, 0),
        # LayerNorms of weight and bias.
        ("orion", {}, 2 * H, H),
        ("stablelm", {"use_qkv_bias": False, "use_parallel_residual": False}, 2 * H, H),
        ("stablelm", {"use_qkv_bias": True, "use_parallel_residual": True}, QKV_BIAS, H),
        # Two matrices instead of three, and LayerNorms.
        ("nemotron", {}, 2 * H - H * WIDTH, H),
        ("arcee", {}, -H * WIDTH, 0),
        ("jais2", {"attention_bias": False, "mlp_bias": False}, 2 * H - H * WIDTH, H),
        # Its class has biases on everything: q, k, v and output, up and down.
        ("jais2", {}, 2 * H - H * WIDTH + QKV_BIAS + H + WIDTH + H, H),
        # Norms before and after attention and MLP.
        ("glm4", {"attention_bias": False}, 2 * H, 0),
        ("glm4", {"attention_bias": True}, 2 * H + QKV_BIAS, 0),
        ("glm", {"attention_bias": True}, QKV_BIAS, 0),
        ("hyperclovax", {"use_post_norm": True}, 2 * H, 0),
        ("hyperclovax", {"use_post_norm": False}, 0, 0),
        # xIELU: two scalars a layer; two matrices.
        ("apertus", {}, QK_HEAD + 2 - H * WIDTH, 0),
        # Four vectors that weigh two attention maps.
        ("diffllama", {}, 4 * HEAD, 0),
        # BitNet: a norm inside the MLP and one of the attention's output.
        ("bitnet", {}, WIDTH + H, 0),
        # A sink a head.
        ("granite_swa", {}, 8, 0),
        # InternLM: biases on all four projections, or on none.
        ("internlm", {"bias": True}, QKV_BIAS + H, 0),
        ("internlm2", {"bias": False}, 0, 0),
        ("internlm3", {"qkv_bias": True, "bias": False}, QKV_BIAS, 0),
        ("internlm3", {"qkv_bias": False, "bias": True}, H + MLP_BIAS, 0),
        ("seed_oss", {"attention_bias": True, "attention_out_bias": False}, QKV_BIAS, 0),
        ("seed_oss", {"attention_bias": True, "attention_out_bias": True}, QKV_BIAS + H, 0),
        ("ernie4_5", {"use_bias": True}, QKV_BIAS + H + MLP_BIAS, 0),
        # A norm scaled by the delay through two matrices of rank 32.
        ("voxtral_realtime_text", {}, 2 * 32 * H, 0),
        # A gate of the output's width, and norms before and after.
        ("muse_glimmer_text", {}, H * Q + 2 * H, 0),
        ("mistral", {}, 0, 0),
        ("phi3", {}, 0, 0),
        ("smollm3", {}, 0, 0),
        ("baichuan", {}, 0, 0),
        ("gemma", {}, 0, 0),
        # Four norms a layer; with a norm of q and k from the third generation on.
        ("gemma2", {}, 2 * H, 0),
        ("gemma3_text", {}, 2 * H + QK_HEAD, 0),
    ],
)
def test_parameters_beside_a_llamas(
    model_type: str, changes: dict[str, Any], a_layer: int, once: int
) -> None:
    spec = small(model_type, **changes)
    assert spec.total_params - LLAMA == LAYERS * a_layer + once
    assert spec.kv_elements_per_token * 1.0 + _windowed(spec) == LAYERS * 2 * KV


def _windowed(spec: ModelSpec) -> float:
    """Values that windows keep of a token [value]."""
    kept = parts_of(spec, Attention)
    return sum(n * 2 * KV for n, part in kept if not math.isinf(part.window))


@pytest.mark.parametrize(
    ("model_type", "tied"),
    [
        ("llama", False),
        ("qwen2", False),
        ("mistral", False),
        ("cohere", True),
        ("cohere2", True),
        ("smollm3", True),
        ("ernie4_5", True),
        ("gemma", True),
        ("gemma2", True),
        ("gemma3_text", True),
        ("minicpm", True),
        ("voxtral_realtime_text", True),
        ("starcoder2", True),
    ],
)
def test_what_ties_head_and_embedding_unless_told(model_type: str, tied: bool) -> None:
    spec = small(model_type, tie_word_embeddings=None)
    assert spec.tied_embeddings == tied
    apart = small(model_type, tie_word_embeddings=False)
    assert apart.total_params - spec.total_params == (VOCAB * H if tied else 0)


def _full(*layers: int) -> list[bool]:
    return [index in layers for index in range(LAYERS)]


@pytest.mark.parametrize(
    ("model_type", "changes", "window", "full"),
    [
        # The whole model slides, unless the file says null.
        ("mistral", {}, 4096, _full()),
        ("ministral3", {}, None, _full(*range(8))),
        ("mistral", {"sliding_window": 512}, 512, _full()),
        ("phi3", {"sliding_window": 2047}, 2047, _full()),
        ("phi3", {}, None, _full(*range(8))),
        # A window that no sequence fills is none.
        ("phi3", {"sliding_window": 8192, "max_position_embeddings": 4096}, None, _full(*range(8))),
        ("phi3", {"sliding_window": 0}, None, _full(*range(8))),
        # Qwen: only where use_sliding_window says so, from max_window_layers on.
        ("qwen2", {"sliding_window": 1024}, None, _full(*range(8))),
        (
            "qwen2",
            {"sliding_window": 1024, "use_sliding_window": True, "max_window_layers": 6},
            1024,
            _full(*range(6)),
        ),
        (
            "qwen3",
            {
                "sliding_window": 64,
                "use_sliding_window": True,
                "layer_types": ["sliding_attention", "full_attention"] * 4,
            },
            64,
            _full(1, 3, 5, 7),
        ),
        # Gemma 2 alternates, Gemma 3 is full in every sixth, Cohere 2 and OLMo 3 in every fourth.
        ("gemma2", {"sliding_window": 128}, 128, _full(1, 3, 5, 7)),
        ("gemma3_text", {"sliding_window": 512}, 512, _full(5)),
        (
            "gemma3_text",
            {"sliding_window": 512, "sliding_window_pattern": 2},
            512,
            _full(1, 3, 5, 7),
        ),
        ("cohere2", {}, 4096, _full(3, 7)),
        ("olmo3", {"sliding_window": 100}, 100, _full(3, 7)),
        ("exaone4", {"sliding_window": 100, "sliding_window_pattern": "LLLG"}, 100, _full(3, 7)),
        (
            "exaone4",
            {"sliding_window": 100, "sliding_window_pattern": "LG"},
            100,
            _full(1, 3, 5, 7),
        ),
        # Full layers come first.
        ("granite_swa", {}, 128, _full(0, 4)),
        # layer_types wins over any period.
        (
            "gemma3_text",
            {
                "sliding_window": 16,
                "layer_types": ["full_attention"] * 2 + ["sliding_attention"] * 6,
            },
            16,
            _full(0, 1),
        ),
    ],
)
def test_which_layers_slide(
    model_type: str, changes: dict[str, Any], window: int | None, full: list[bool]
) -> None:
    spec = small(**{"model_type": model_type, **changes})
    reach = {part.window: n for n, part in parts_of(spec, Attention)}
    expected = {math.inf: sum(full), float(window or 0): LAYERS - sum(full)}
    assert reach == {length: n for length, n in expected.items() if n}
    assert spec.kv_elements_per_token == sum(full) * 2 * KV
    assert spec.window_elements == (LAYERS - sum(full)) * 2 * KV * (window or 0)


@pytest.mark.parametrize(
    ("model_type", "extra"),
    # What a layer multiplies a token with beside the plain matrices, in weights.
    [
        ("llama", 0),
        ("qwen2", 0),
        ("qwen3", 0),
        ("arcee", -H * WIDTH),
        ("nemotron", -H * WIDTH),
        ("muse_glimmer_text", H * Q),
        ("gemma3_text", 0),
        ("cohere2", 0),
    ],
)
def test_flops_and_bytes_of_a_layer(model_type: str, extra: int) -> None:
    spec = small(model_type)
    kernels = [k for named in layer_kernels(spec.groups[0]).values() for k in named]
    assert token_flops(kernels) == 2 * (ATTENTION + MLP + extra)
    biases = 2 * QKV_BIAS if model_type == "qwen2" else 0
    assert weights(kernels) == 2 * (ATTENTION + MLP + extra) + biases


def test_minicpm_is_dense_without_experts_and_a_mixture_with_them() -> None:
    dense = small("minicpm")
    assert dense.kind == "dense"
    mixture = small("minicpm", num_experts=8, num_experts_per_tok=2)
    assert mixture.kind == "moe"
    assert mixture.total_params - dense.total_params == LAYERS * (7 * MLP + 8 * H)
    assert mixture.active_params - dense.total_params == LAYERS * (MLP + 8 * H)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sliding_window_pattern": "LXG"}, "sliding_window_pattern: 'LXG'; accepted: a period"),
        ({"sliding_window_pattern": 0}, "sliding_window_pattern: 0; accepted: a period"),
        ({"layer_types": ["full_attention"]}, "layer_types: 1 entries for 8 layers"),
        ({"sliding_window": -5}, "sliding_window: -5 is out of range"),
        ({"vocab_size": None}, "vocab_size or padded_vocab_size: missing"),
        ({"num_hidden_layers": 5000}, "5000 is out of range; accepted: 1 to 4096"),
        ({"intermediate_size": 10.5}, "intermediate_size: 10.5 is out of range"),
        ({"hidden_size": "256"}, "hidden_size: '256' is not a whole number of 1 or more"),
        ({"head_dim": True}, "head_dim: True is not a whole number"),
    ],
)
def test_what_cannot_be_read_names_the_field(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as raised:
        small("exaone4", **changes)
    assert "\n" not in str(raised.value)


def test_doge_with_product_keys_is_refused() -> None:
    with pytest.raises(ValueError, match="is_moe: true is not read; accepted: false"):
        small("doge", is_moe=True)
