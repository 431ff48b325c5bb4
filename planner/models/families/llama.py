"""Llama and the dense decoders that differ from it by biases, norms, windows and tying."""

from __future__ import annotations

from dataclasses import replace

from planner.models.decoder import Importer, Moe, Shape, Traits, decoder, read_shape
from planner.models.reader import ConfigError, ConfigReader
from planner.models.spec import ModelSpec
from planner.models.windows import patterned, switched, uniform


def _qk_norm(reader: ConfigReader, shape: Shape) -> int:
    """Cohere and StableLM: a norm over all heads, where the file asks for it."""
    normed = reader.flag("use_qk_norm", "qk_layernorm")
    return (shape.heads + shape.kv_heads) * shape.head_dim if normed else 0


def _sub_norms(reader: ConfigReader, shape: Shape) -> int:
    """BitNet: a norm inside the MLP, of its width, and one inside attention."""
    return reader.size("intermediate_size") + shape.hidden


def _xielu(reader: ConfigReader, shape: Shape) -> int:
    """Apertus: two learned scalars of the activation (its constants are not in checkpoints)."""
    del reader, shape
    return 2


def _post_norms(reader: ConfigReader) -> int:
    """HyperCLOVA X: two more norms under `use_post_norm`."""
    return 4 if reader.flag("use_post_norm") else 2


def _doge_vectors(reader: ConfigReader, shape: Shape) -> int:
    """Doge: query and key norms, and the mask's scale and projection a KV head.

    Raises ConfigError where experts are retrieved by product keys, which is not modelled.
    """
    if reader.flag("is_moe"):
        raise ConfigError(f"{reader.path}is_moe: true is not read; accepted: false")
    width = shape.kv_heads * shape.head_dim
    biases = shape.kv_heads if reader.flag("attention_bias") else 0
    return 2 * shape.head_dim + shape.kv_heads + width * shape.kv_heads + biases


def _lambdas(reader: ConfigReader, shape: Shape) -> int:
    """DiffLlama: four vectors that weigh the two attention maps of a layer."""
    del reader
    return 4 * shape.head_dim


def _adaptive_norm(reader: ConfigReader, shape: Shape) -> int:
    """Voxtral Realtime: a norm scaled by the delay, through two matrices of rank 32."""
    del reader
    return 2 * 32 * shape.hidden


def _stablelm_norms(reader: ConfigReader) -> int:
    return 2 if reader.flag("use_parallel_residual") else 4


_LLAMA = Traits(qkv_bias="attention_bias", out_bias="attention_bias", mlp_bias="mlp_bias")
_MISTRAL = Traits(windows=uniform(4096))
_QWEN2 = Traits(qkv_bias=True, windows=switched)
_GLM4 = Traits(qkv_bias="attention_bias", norms=4)
_MINISTRAL3 = Traits(windows=uniform(), defaults={"num_key_value_heads": 8, "head_dim": 128})
_QWEN3 = Traits(
    qkv_bias="attention_bias",
    out_bias="attention_bias",
    qk_norm="head",
    windows=switched,
    defaults={"head_dim": 128},
)
_APERTUS = Traits(
    qkv_bias="attention_bias",
    out_bias="attention_bias",
    qk_norm="head",
    gated=False,
    dense_other=_xielu,
)
_OLMO2 = Traits(qkv_bias="attention_bias", out_bias="attention_bias", qk_norm="full")
_HUNYUAN = Traits(qkv_bias="attention_bias", out_bias="attention_bias", qk_norm="head")

_TABLE: dict[str, Traits] = {
    "llama": _LLAMA,
    "Yi": _LLAMA,
    "aquila": _LLAMA,
    "xverse": _LLAMA,
    "granite": _LLAMA,
    "cwm": replace(_LLAMA, windows=patterned(4, 8192)),
    "exaone": _LLAMA,
    "iquestcoder": _LLAMA,
    "cosmos3_edge_text": replace(_LLAMA, gated=False, ties=False),
    "granite_docling_text": _LLAMA,
    "doge": replace(_LLAMA, qk_norm=_doge_vectors, norms=4),
    "hyperclovax": replace(_LLAMA, norms=_post_norms),
    "granite_swa": replace(_LLAMA, sinks=True, windows=patterned(4, 128, first=True)),
    "diffllama": replace(_LLAMA, qk_norm=_lambdas),
    "baichuan": Traits(),
    "arcee": replace(_LLAMA, gated=False),
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
    "internlm3": Traits(
        qkv_bias=("qkv_bias", "attention_bias"),
        out_bias=("bias", "attention_bias"),
        mlp_bias=("bias", "mlp_bias"),
    ),
    "glm": Traits(qkv_bias="attention_bias", defaults={"attention_bias": True, "head_dim": 128}),
    "glm4": _GLM4,
    "glm4v_text": Traits(qkv_bias=True, norms=4),
    "glm_ocr_text": Traits(norms=4),
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
    "voxtral_realtime_text": Traits(windows=uniform(), dense_other=_adaptive_norm, tied=True),
    "apertus": _APERTUS,
    "apertus1p5_text": _APERTUS,
    "jais2": replace(_LLAMA, norms=4, final_norms=2, gated=False),
    "nanochat": Traits(
        qkv_bias="attention_bias", out_bias="attention_bias", norms=0, final_norms=0, gated=False
    ),
    "muse_glimmer_text": Traits(
        qkv_bias="attention_bias",
        out_bias="attention_bias",
        output_gate=True,
        norms=4,
        windows=patterned(4, 2048),
    ),
    "bitnet": Traits(qkv_bias="attention_bias", out_bias="attention_bias", dense_other=_sub_norms),
    "ernie4_5": Traits(qkv_bias="use_bias", out_bias="use_bias", mlp_bias="use_bias", tied=True),
    "hunyuan_v1_dense": _HUNYUAN,
    "minicpm": Traits(tied=True, moe=Moe(width=("intermediate_size",))),
}


def read_helium(reader: ConfigReader) -> ModelSpec:
    """Read a Helium, whose output projection is as square as the residual stream is wide."""
    shape = read_shape(reader)
    if shape.heads * shape.head_dim != shape.hidden:
        raise ConfigError(
            f"{reader.path}head_dim: {shape.heads} heads of {shape.head_dim} values do not make"
            f" the {shape.hidden} that the output projection reads"
        )
    return decoder(replace(_LLAMA, out_bias=False))(reader)


MODEL_TYPES: dict[str, Importer] = {name: decoder(traits) for name, traits in _TABLE.items()}
MODEL_TYPES["helium"] = read_helium
