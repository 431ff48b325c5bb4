"""Llama and the dense decoders that differ from it by biases, norms, windows and tying."""

from __future__ import annotations

from planner.models.decoder import Importer, Moe, Shape, Traits, decoder
from planner.models.reader import Reader
from planner.models.windows import patterned, switched, uniform


def _qk_norm(reader: Reader, shape: Shape) -> int:
    """Cohere and StableLM: a norm over all heads, where the file asks for it."""
    normed = reader.flag("use_qk_norm", "qk_layernorm")
    return (shape.heads + shape.kv_heads) * shape.head_dim if normed else 0


def _sub_norms(reader: Reader, shape: Shape) -> int:
    """BitNet: a norm inside the MLP, of its width, and one inside attention."""
    return reader.size("intermediate_size") + shape.hidden


def _xielu(reader: Reader, shape: Shape) -> int:
    """Apertus: two learned scalars of the activation (its constants are not in checkpoints)."""
    del reader, shape
    return 2


def _stablelm_norms(reader: Reader) -> int:
    return 2 if reader.flag("use_parallel_residual") else 4


_SIZES_7B = {
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "vocab_size": 32000,
}
_LLAMA = Traits(
    qkv_bias="attention_bias",
    out_bias="attention_bias",
    mlp_bias="mlp_bias",
    nested_defaults={**_SIZES_7B, "intermediate_size": 11008},
)
_MISTRAL = Traits(
    windows=uniform(4096),
    defaults={"num_key_value_heads": 8},
    nested_defaults={**_SIZES_7B, "intermediate_size": 14336},
)
_QWEN2 = Traits(qkv_bias=True, windows=switched)
_GLM4 = Traits(
    qkv_bias="attention_bias", norms=4, defaults={"attention_bias": True, "head_dim": 128}
)
_MINISTRAL3 = Traits(windows=uniform(), defaults={"num_key_value_heads": 8, "head_dim": 128})
_QWEN3 = Traits(
    qkv_bias="attention_bias",
    out_bias="attention_bias",
    qk_norm="head",
    windows=switched,
    defaults={"head_dim": 128},
)
_OLMO2 = Traits(qkv_bias="attention_bias", out_bias="attention_bias", qk_norm="full")
_HUNYUAN = Traits(qkv_bias="attention_bias", out_bias="attention_bias", qk_norm="head")

_TABLE: dict[str, Traits] = {
    "llama": _LLAMA,
    "Yi": _LLAMA,
    "aquila": _LLAMA,
    "xverse": _LLAMA,
    "helium": _LLAMA,
    "granite": _LLAMA,
    "cwm": Traits(windows=patterned(4, 8192)),
    "exaone": Traits(),
    "baichuan": Traits(),
    "arcee": Traits(gated=False, mlp_bias="mlp_bias"),
    "mistral": _MISTRAL,
    "ministral": Traits(windows=patterned(None, 4096), defaults={"num_key_value_heads": 8}),
    "ministral3": _MINISTRAL3,
    "mistral3": _MINISTRAL3,
    "qwen2": _QWEN2,
    "qwen2_vl": _QWEN2,
    "qwen2_vl_text": _QWEN2,
    "qwen2_5_vl": _QWEN2,
    "qwen2_5_vl_text": _QWEN2,
    "qwen2_5_omni_text": _QWEN2,
    "mimo": Traits(qkv_bias=True, windows=switched, mtp=True),
    "qwen3": _QWEN3,
    "qwen3_vl": _QWEN3,
    "qwen3_vl_text": _QWEN3,
    "smollm3": Traits(
        qkv_bias="attention_bias",
        out_bias="attention_bias",
        mlp_bias="mlp_bias",
        windows=switched,
        tied=True,
        defaults={"num_key_value_heads": 4},
    ),
    "seed_oss": Traits(
        qkv_bias="attention_bias",
        out_bias="attention_out_bias",
        mlp_bias="mlp_bias",
        defaults={"attention_bias": True, "head_dim": 128},
    ),
    "exaone4": Traits(qk_norm="head", windows=patterned(4, 4096)),
    "olmo": Traits(qkv_bias="attention_bias", out_bias="attention_bias", norms=0, final_norms=0),
    "olmo2": _OLMO2,
    "olmo3": Traits(
        qkv_bias="attention_bias",
        out_bias="attention_bias",
        qk_norm="full",
        windows=patterned(4, 4096),
    ),
    "cohere": Traits(
        qkv_bias="attention_bias", out_bias="attention_bias", norms=1, qk_norm=_qk_norm, tied=True
    ),
    "cohere2": Traits(
        qkv_bias="attention_bias",
        out_bias="attention_bias",
        norms=1,
        tied=True,
        windows=patterned(4, 4096),
    ),
    "stablelm": Traits(
        qkv_bias="use_qkv_bias", norms=_stablelm_norms, final_norms=2, qk_norm=_qk_norm
    ),
    "orion": Traits(norms=4, final_norms=2),
    "internlm": Traits(qkv_bias="bias", out_bias="bias", defaults={"bias": True}),
    "internlm2": Traits(qkv_bias="bias", out_bias="bias"),
    "internlm3": Traits(qkv_bias="qkv_bias", out_bias="bias", mlp_bias="bias"),
    "glm": Traits(qkv_bias="attention_bias", defaults={"attention_bias": True, "head_dim": 128}),
    "glm4": _GLM4,
    "glm4v_text": _GLM4,
    "phi3": Traits(windows=uniform()),
    "phi3_v": Traits(windows=uniform()),
    "phi4mm": Traits(windows=uniform()),
    "phi4_multimodal": Traits(windows=uniform()),
    "nemotron": Traits(
        qkv_bias="attention_bias",
        out_bias="attention_bias",
        mlp_bias="mlp_bias",
        norms=4,
        final_norms=2,
        gated=False,
    ),
    "apertus": Traits(
        qkv_bias="attention_bias",
        out_bias="attention_bias",
        qk_norm="head",
        gated=False,
        dense_other=_xielu,
    ),
    "bitnet": Traits(qkv_bias="attention_bias", out_bias="attention_bias", dense_other=_sub_norms),
    "ernie4_5": Traits(qkv_bias="use_bias", out_bias="use_bias", mlp_bias="use_bias", tied=True),
    "hunyuan_v1_dense": _HUNYUAN,
    "minicpm": Traits(tied=True, moe=Moe(width=("intermediate_size",))),
}

MODEL_TYPES: dict[str, Importer] = {name: decoder(traits) for name, traits in _TABLE.items()}
