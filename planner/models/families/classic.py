"""Decoders of the LayerNorm age: GPT-2 to Falcon, with biases, ungated MLPs and own names."""

from __future__ import annotations

from dataclasses import replace

from planner.models.decoder import (
    WIDTH,
    Importer,
    Shape,
    Traits,
    decoder,
    four_times,
    read_decoder,
    read_shape,
)
from planner.models.reader import Reader
from planner.models.spec import ModelSpec
from planner.models.windows import uniform

_BIASED = Traits(
    qkv_bias=True,
    out_bias=True,
    mlp_bias=True,
    norms=4,
    final_norms=2,
    gated=False,
    tied=True,
    width=four_times,
)
"""Biases everywhere and two LayerNorms of weight and bias."""


def _phi_norm(reader: Reader, shape: Shape) -> int:
    return 4 * shape.head_dim if reader.flag("qk_layernorm") else 0


def _half(reader: Reader, shape: Shape) -> int:
    """Qwen 1 states the width of gate and up together."""
    del shape
    return reader.size(*WIDTH) // 2


def _bloom(reader: Reader) -> ModelSpec:
    shape = read_shape(reader)
    return read_decoder(reader, shape, _BIASED, other_params=2 * shape.hidden)


def _gpt2(reader: Reader) -> ModelSpec:
    shape = read_shape(reader)
    positions = reader.size("n_positions", "max_position_embeddings", default=1024)
    return read_decoder(reader, shape, _BIASED, extra_embedding_params=positions * shape.hidden)


def _bigcode(reader: Reader) -> ModelSpec:
    shape = read_shape(reader, kv_heads=1 if reader.flag("multi_query", default=True) else None)
    positions = reader.size("n_positions", default=1024)
    return read_decoder(reader, shape, _BIASED, extra_embedding_params=positions * shape.hidden)


def _opt(reader: Reader) -> ModelSpec:
    """OPT: two spare positions, and embeddings that may be narrower than the network."""
    shape = read_shape(reader)
    bias = reader.flag("enable_bias", default=True)
    final = 2 if reader.flag("do_layer_norm_before", default=True) else 0
    traits = replace(_BIASED, qkv_bias=bias, out_bias=bias, mlp_bias=bias, final_norms=final)
    positions = (reader.size("max_position_embeddings") + 2) * shape.hidden
    width = reader.size("word_embed_proj_dim", default=shape.hidden)
    projections = 2 * width * shape.hidden if width != shape.hidden else 0
    saved = shape.vocab * (shape.hidden - width)
    return read_decoder(
        reader, shape, traits, extra_embedding_params=positions - saved, other_params=projections
    )


def _mpt(reader: Reader) -> ModelSpec:
    """MPT: sizes in attn_config, biases unless no_bias, learned positions unless ALiBi."""
    attn = reader.nested("attn_config") or Reader({}, "attn_config.", reader)
    shape = read_shape(reader, kv_heads=attn.optional_size("kv_n_heads") or None)
    bias = not reader.flag("no_bias", default=True)
    ratio = reader.size("expansion_ratio", default=4)
    traits = Traits(
        bias,
        bias,
        bias,
        norms=4 if bias else 2,
        final_norms=2 if bias else 1,
        gated=False,
        tied=True,
        width=lambda *_: ratio * shape.hidden,
    )
    positions = 0 if attn.flag("alibi", default=True) else reader.size("max_seq_len")
    return read_decoder(reader, shape, traits, extra_embedding_params=positions * shape.hidden)


def _falcon(reader: Reader) -> ModelSpec:
    """Falcon: `num_kv_heads` counts in the new architecture only; before it, multi-query is 1."""
    new = reader.flag("new_decoder_architecture")
    heads = reader.size("num_attention_heads", "n_head")
    if new:
        kv_heads = reader.size("num_kv_heads", "n_head_kv", default=heads)
    else:
        kv_heads = 1 if reader.flag("multi_query", default=True) else heads
    bias = reader.flag("bias")
    if new:
        norms = 2 * reader.size("num_ln_in_parallel_attn", default=2)
    else:
        norms = 2 if reader.flag("parallel_attn", default=True) else 4
    traits = replace(_BIASED, qkv_bias=bias, out_bias=bias, mlp_bias=bias, norms=norms)
    return read_decoder(reader, read_shape(reader, kv_heads=kv_heads), traits)


def _chatglm(reader: Reader) -> ModelSpec:
    """ChatGLM 2 and later: groups count only under multi_query_attention."""
    grouped = reader.flag("multi_query_attention")
    shape = read_shape(reader, kv_heads=None if grouped else reader.size("num_attention_heads"))
    traits = Traits(qkv_bias="add_qkv_bias", out_bias="add_bias_linear", mlp_bias="add_bias_linear")
    return read_decoder(reader, shape, traits)


_TABLE: dict[str, Traits] = {
    "gptj": Traits(
        mlp_bias=True, norms=2, final_norms=2, gated=False, head_bias=True, width=four_times
    ),
    "codegen": Traits(
        mlp_bias=True, norms=2, final_norms=2, gated=False, head_bias=True, width=four_times
    ),
    "gpt_neox": Traits(
        qkv_bias="attention_bias",
        out_bias="attention_bias",
        mlp_bias=True,
        norms=4,
        final_norms=2,
        gated=False,
        defaults={"attention_bias": True},
    ),
    "phi": Traits(
        qkv_bias=True,
        out_bias=True,
        mlp_bias=True,
        norms=2,
        final_norms=2,
        qk_norm=_phi_norm,
        gated=False,
        head_bias=True,
        width=four_times,
    ),
    "phi3small": Traits(
        qkv_bias=True, out_bias=True, mlp_bias=True, norms=4, final_norms=2, tied=True
    ),
    "starcoder2": Traits(
        qkv_bias="use_bias",
        out_bias="use_bias",
        mlp_bias="use_bias",
        norms=4,
        final_norms=2,
        gated=False,
        tied=True,
        windows=uniform(),
        defaults={"use_bias": True, "num_key_value_heads": 2},
    ),
    "qwen": Traits(qkv_bias=True, width=_half),
}

MODEL_TYPES: dict[str, Importer] = {
    **{name: decoder(traits) for name, traits in _TABLE.items()},
    "bloom": _bloom,
    "gpt2": _gpt2,
    "gpt_bigcode": _bigcode,
    "opt": _opt,
    "mpt": _mpt,
    "falcon": _falcon,
    "RefinedWeb": _falcon,
    "RefinedWebModel": _falcon,
    "chatglm": _chatglm,
}
