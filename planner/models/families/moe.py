"""Mixtures of experts under grouped-query attention."""

from __future__ import annotations

import math
from dataclasses import replace

from planner.models.decoder import (
    Importer,
    Moe,
    Shape,
    Traits,
    decoder,
    decoder_blocks,
    read_attention,
    read_decoder,
    read_shape,
)
from planner.models.mlp import Dense, Experts
from planner.models.parts import Block
from planner.models.reader import ConfigReader, every
from planner.models.spec import ModelSpec
from planner.models.windows import patterned, switched, uniform

_BIAS = "attention_bias"
_OWN_WIDTH = ("intermediate_size",)
"""`intermediate_size` is the expert's width."""


def _configured_head_norm(reader: ConfigReader, shape: Shape) -> int:
    return 2 * shape.head_dim if reader.flag("use_qk_norm") else 0


def _sinks(reader: ConfigReader, shape: Shape) -> int:
    """gpt-oss: a learned sink per head."""
    del reader
    return shape.heads


def _ernie_sparse(reader: ConfigReader, layers: int) -> list[bool]:
    first = reader.size("moe_layer_start_index", default=0, zero=True)
    last = reader.raw("moe_layer_end_index")
    end = layers if last in (None, -1) else reader.check_size("moe_layer_end_index", last, True) + 1
    step = reader.size("moe_layer_interval", default=1)
    return [first <= index < end and (index + 1) % step == 0 for index in range(layers)]


def _llama4_sparse(reader: ConfigReader, layers: int) -> list[bool]:
    listed = reader.sequence("moe_layers")
    if listed:
        return [index in listed for index in range(layers)]
    step = reader.size("interleave_moe_layer_step", default=1)
    return every(step, layers, offset=step - 1)


def _llama4_windows(reader: ConfigReader, layers: int) -> list[float]:
    """Chunks on the layers with rotary positions: all but every fourth unless listed."""
    chunk = (
        float(reader.size("attention_chunk_size"))
        if reader.has("attention_chunk_size")
        else (math.inf if reader.stated("attention_chunk_size") else 8192)
    )
    kinds = reader.pattern(layers, "layer_types")
    if kinds:
        chunked = [kind == "chunked_attention" for kind in kinds]
    else:
        listed = reader.sequence("no_rope_layers")
        chunked = (
            [bool(flag) for flag in listed]
            if listed
            else [(index + 1) % 4 != 0 for index in range(layers)]
        )
    return [chunk if cut else math.inf for cut in chunked]


def _arctic_sparse(reader: ConfigReader, layers: int) -> list[bool]:
    step = reader.size("moe_layer_frequency", default=2)
    return every(step, layers, offset=step - 1)


def _arctic(reader: ConfigReader) -> ModelSpec:
    """Arctic: a dense MLP as wide as the network beside the experts, with a norm of its own."""
    traits = Traits(
        windows=uniform(),
        moe=Moe(width=_OWN_WIDTH, sparse=_arctic_sparse),
        defaults={"num_experts_per_tok": 2, "num_local_experts": 8},
    )
    reader.defaults = traits.defaults
    shape = read_shape(reader)
    residual = Dense(shape.hidden, shape.hidden)
    blocks = decoder_blocks(reader, shape, traits)
    return read_decoder(
        reader,
        shape,
        traits,
        [
            Block(block.mixers, (*block.mlps, residual), block.other_params + shape.hidden)
            if block.mlps[0].routed()
            else block
            for block in blocks
        ],
    )


def _dbrx(reader: ConfigReader) -> ModelSpec:
    """DBRX: heads in attn_config, experts in ffn_config."""
    attn, ffn = reader.nested("attn_config"), reader.nested("ffn_config")
    attn = attn or ConfigReader({}, "attn_config.", reader)
    ffn = ffn or ConfigReader({}, "ffn_config.", reader)
    shape = read_shape(reader, kv_heads=attn.size("kv_n_heads", default=1))
    moe = Moe(width=("ffn_hidden_size",))
    return read_decoder(
        reader,
        shape,
        Traits(),
        decoder_blocks(ffn, shape, Traits(moe=moe), sparse=[True] * shape.layers),
    )


def _muse_spark(reader: ConfigReader) -> ModelSpec:
    """Muse Spark: experts work between a projection down and one up, each under a norm."""
    traits = Traits(
        qkv_bias=_BIAS,
        out_bias=_BIAS,
        output_gate=True,
        norms=5,
        windows=patterned(4, 2048),
        moe=Moe(_OWN_MOE),
    )
    shape = read_shape(reader)
    inner = reader.size("moe_hidden_size")
    narrowed = [
        replace(
            block,
            mlps=tuple(
                replace(part, inner=inner, other=part.other + 2 * inner)
                if isinstance(part, Experts)
                else part
                for part in block.mlps
            ),
        )
        for block in decoder_blocks(reader, shape, traits)
    ]
    return read_decoder(reader, shape, traits, narrowed)


def _hunyuan_large(reader: ConfigReader) -> ModelSpec:
    """Hunyuan-Large: with `use_cla`, keys and values are made by one layer of every few."""
    traits = Traits(
        qkv_bias=_BIAS,
        out_bias=_BIAS,
        qk_norm=_configured_head_norm,
        moe=Moe(width=("moe_intermediate_size", "intermediate_size")),
    )
    shape = read_shape(reader)
    factor = reader.size("cla_share_factor", default=1) if reader.flag("use_cla") else 1
    makes = read_attention(reader, shape, traits, math.inf)
    norms = makes.norm_params // 2
    takes = replace(makes, own_kv=False, norm_params=norms)
    return read_decoder(
        reader,
        shape,
        traits,
        [
            Block((makes if owns else takes,), block.mlps, block.other_params)
            for block, owns in zip(
                decoder_blocks(reader, shape, traits), every(factor, shape.layers), strict=True
            )
        ],
    )


_QWEN3_MOE = Traits(
    qkv_bias=_BIAS,
    out_bias=_BIAS,
    qk_norm="head",
    windows=switched,
    moe=Moe(),
    defaults={"num_key_value_heads": 4},
)
_HUNYUAN_V1 = Traits(
    qkv_bias=_BIAS, out_bias=_BIAS, qk_norm="head", moe=Moe(), defaults={"num_shared_expert": 1}
)
_BAILING = Traits(
    qkv_bias="use_qkv_bias",
    out_bias="use_bias",
    qk_norm=_configured_head_norm,
    moe=Moe(correction="moe_router_enable_expert_bias"),
    mtp=True,
)
_OWN_MOE = ("moe_intermediate_size",)
_SHARED_OWN = ("shared_expert_intermediate_size",)
_LAGUNA = Traits(
    qkv_bias=_BIAS,
    out_bias=_BIAS,
    qk_norm="head",
    head_gate="gating",
    windows=patterned(None, 512),
    moe=Moe(_OWN_MOE, _SHARED_OWN, correction=True),
)
_LLAMA4 = Traits(
    qkv_bias=_BIAS,
    out_bias=_BIAS,
    windows=_llama4_windows,
    width=lambda reader, _: reader.size("intermediate_size_mlp"),
    moe=Moe(width=_OWN_WIDTH, shared_width=_OWN_WIDTH, sparse=_llama4_sparse),
    defaults={"intermediate_size_mlp": 16384, "head_dim": 128},
)
_DEEPSEEK_LIKE = Moe(correction=True)
_GLM4_MOE = Traits(
    qkv_bias=_BIAS, qk_norm=_configured_head_norm, moe=_DEEPSEEK_LIKE, mtp=True, floor_heads=True
)

_TABLE: dict[str, Traits] = {
    "mixtral": Traits(
        windows=uniform(), moe=Moe(width=_OWN_WIDTH), defaults={"num_key_value_heads": 8}
    ),
    "qwen2_moe": Traits(
        qkv_bias="qkv_bias",
        windows=switched,
        moe=Moe(shared_width=("shared_expert_intermediate_size",), shared_gate=True),
        defaults={"qkv_bias": True, "shared_expert_intermediate_size": 5632},
    ),
    "qwen3_moe": _QWEN3_MOE,
    "qwen3_vl_moe": _QWEN3_MOE,
    "qwen3_vl_moe_text": _QWEN3_MOE,
    "qwen3_omni_moe_text": replace(_QWEN3_MOE, floor_heads=True),
    "olmoe": Traits(qkv_bias=_BIAS, out_bias=_BIAS, qk_norm="full", moe=Moe(width=_OWN_WIDTH)),
    "phimoe": Traits(
        qkv_bias=_BIAS,
        out_bias=_BIAS,
        norms=4,
        final_norms=2,
        windows=uniform(),
        head_bias="lm_head_bias",
        moe=Moe(width=_OWN_WIDTH),
    ),
    "granitemoe": Traits(qkv_bias=_BIAS, out_bias=_BIAS, moe=Moe(width=_OWN_WIDTH)),
    "granitemoeshared": Traits(
        qkv_bias=_BIAS,
        out_bias=_BIAS,
        moe=Moe(width=_OWN_WIDTH, shared_width=("shared_intermediate_size",)),
    ),
    "hunyuan_v1_moe": _HUNYUAN_V1,
    "llama4": _LLAMA4,
    "llama4_text": _LLAMA4,
    "gpt_oss": Traits(
        qkv_bias=_BIAS,
        out_bias=_BIAS,
        qk_norm=_sinks,
        windows=patterned(2, 128),
        moe=Moe(width=_OWN_WIDTH, bias=True, router_bias=True),
        defaults={"attention_bias": True, "head_dim": 64},
    ),
    "deepseek": Traits(qkv_bias=_BIAS, out_bias=_BIAS, moe=Moe()),
    "glm4_moe": _GLM4_MOE,
    "glm4v_moe_text": _GLM4_MOE,
    "dots1": Traits(qkv_bias=_BIAS, out_bias=_BIAS, qk_norm="head", moe=_DEEPSEEK_LIKE),
    "solar_open": Traits(qkv_bias=_BIAS, moe=_DEEPSEEK_LIKE, defaults={"head_dim": 128}),
    "exaone_moe": Traits(qk_norm="head", windows=patterned(4, 4096), moe=_DEEPSEEK_LIKE),
    "bailing_moe": _BAILING,
    "bailing_moe_v2": _BAILING,
    "ernie4_5_moe": Traits(
        qkv_bias="use_bias",
        out_bias="use_bias",
        mlp_bias="use_bias",
        tied=True,
        moe=Moe(correction=True, sparse=_ernie_sparse, shared_bias="use_bias"),
        head_bias="use_bias",
    ),
    "afmoe": Traits(
        qkv_bias=_BIAS,
        out_bias=_BIAS,
        qk_norm="head",
        output_gate=True,
        norms=4,
        windows=patterned(4, 1024),
        moe=Moe(_OWN_MOE, correction=True),
    ),
    "granitemoe_swa": Traits(
        qkv_bias=_BIAS,
        out_bias=_BIAS,
        sinks=True,
        windows=patterned(4, 128, first=True),
        moe=Moe(width=_OWN_WIDTH, shared_width=("shared_intermediate_size",)),
    ),
    "mellum": Traits(
        qkv_bias=_BIAS,
        out_bias=_BIAS,
        qk_norm="head",
        windows=patterned(None, 1024),
        moe=Moe(_OWN_MOE),
    ),
    "flint": Traits(
        qkv_bias=_BIAS,
        out_bias=_BIAS,
        qk_norm="head",
        sinks=True,
        windows=patterned(4, 513),
        moe=Moe(_OWN_MOE, _SHARED_OWN, correction=True),
    ),
    "kolibri1": Traits(
        qk_norm="head", norms=4, windows=patterned(5, 513), moe=Moe(_OWN_MOE, _SHARED_OWN)
    ),
    "sarvam_moe": replace(_GLM4_MOE, moe=Moe(_OWN_MOE, correction=True)),
    "laguna": _LAGUNA,
    "cohere2_moe": Traits(
        qkv_bias=_BIAS,
        out_bias=_BIAS,
        norms=1,
        tied=True,
        windows=patterned(4, 4096),
        moe=Moe(_OWN_WIDTH),
    ),
    "hy_v3": Traits(
        qkv_bias=_BIAS,
        out_bias=_BIAS,
        mlp_bias="mlp_bias",
        qk_norm="head",
        moe=Moe(_OWN_MOE, correction=True, shared_bias="mlp_bias"),
    ),
    "flex_olmo": Traits(qkv_bias=_BIAS, out_bias=_BIAS, qk_norm="full", moe=Moe(width=_OWN_WIDTH)),
    "aria_text": Traits(
        qkv_bias=_BIAS, out_bias=_BIAS, moe=Moe(width=_OWN_WIDTH, shared_bias="mlp_bias")
    ),
    "unlimited_ocr_text": Traits(
        qkv_bias=_BIAS,
        out_bias=_BIAS,
        mlp_bias="mlp_bias",
        windows=patterned(None, math.inf),
        moe=Moe(_OWN_MOE, shared_bias="mlp_bias"),
    ),
    "minimax_m2": Traits(qk_norm="full", moe=Moe(width=_OWN_WIDTH, correction=True)),
}

MODEL_TYPES: dict[str, Importer] = {
    **{name: decoder(traits) for name, traits in _TABLE.items()},
    "arctic": _arctic,
    "dbrx": _dbrx,
    "hunyuan": _hunyuan_large,
    "muse_spark_text": _muse_spark,
}
