"""Decoders of the LayerNorm age: GPT-2 to Falcon, with biases, ungated MLPs and own names."""

from __future__ import annotations

import math
from collections.abc import Callable
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
from planner.models.reader import ConfigReader
from planner.models.spec import ModelSpec
from planner.models.windows import patterned, uniform

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


def _phi_norm(reader: ConfigReader, shape: Shape) -> int:
    return 4 * shape.head_dim if reader.flag("qk_layernorm") else 0


def _half(reader: ConfigReader, shape: Shape) -> int:
    """Qwen 1 states the width of gate and up together."""
    del shape
    return reader.size(*WIDTH) // 2


def _bloom(reader: ConfigReader) -> ModelSpec:
    shape = read_shape(reader)
    return read_decoder(reader, shape, _BIASED, other_params=2 * shape.hidden)


def _gpt2(reader: ConfigReader) -> ModelSpec:
    shape = read_shape(reader)
    positions = reader.size("n_positions", "max_position_embeddings", default=1024)
    return read_decoder(reader, shape, _BIASED, extra_embedding_params=positions * shape.hidden)


def _bigcode(reader: ConfigReader) -> ModelSpec:
    shape = read_shape(reader, kv_heads=1 if reader.flag("multi_query", default=True) else None)
    positions = reader.size("n_positions", default=1024)
    return read_decoder(reader, shape, _BIASED, extra_embedding_params=positions * shape.hidden)


def _opt(reader: ConfigReader) -> ModelSpec:
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
        reader,
        shape,
        traits,
        head_params=shape.vocab * width,
        extra_embedding_params=positions - saved,
        other_params=projections,
    )


def _mpt(reader: ConfigReader) -> ModelSpec:
    """MPT: sizes in attn_config, biases unless no_bias, learned positions unless ALiBi."""
    attn = reader.nested("attn_config") or ConfigReader({}, "attn_config.", reader)
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


def _falcon(reader: ConfigReader) -> ModelSpec:
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


def _chatglm(reader: ConfigReader) -> ModelSpec:
    """ChatGLM 2 and later: groups count only under multi_query_attention."""
    grouped = reader.flag("multi_query_attention")
    shape = read_shape(reader, kv_heads=None if grouped else reader.size("num_attention_heads"))
    traits = Traits(qkv_bias="add_qkv_bias", out_bias="add_bias_linear", mlp_bias="add_bias_linear")
    return read_decoder(reader, shape, traits)


def _positions(*names: str, spare: int = 0) -> Callable[[ConfigReader, Shape], int]:
    """Return a reader of the parameters of a table of learned positions."""
    return lambda reader, shape: (reader.size(*names) + spare) * shape.hidden


def _learned(traits: Traits, positions: Callable[[ConfigReader, Shape], int]) -> Importer:
    """Return the importer of a decoder with a table beside the token embedding."""

    def read(reader: ConfigReader) -> ModelSpec:
        shape = read_shape(reader)
        return read_decoder(reader, shape, traits, extra_embedding_params=positions(reader, shape))

    return read


def _gpt_neo_windows(reader: ConfigReader, layers: int) -> list[float]:
    """GPT-Neo: `attention_layers` says global or local; missing, they alternate."""
    window = float(reader.size("window_size"))
    kinds = reader.pattern(layers, "attention_layers")
    if kinds is None:
        kinds = ["local" if index % 2 else "global" for index in range(layers)]
    return [window if kind == "local" else math.inf for kind in kinds]


def _multiple(reader: ConfigReader, shape: Shape) -> int:
    return shape.hidden * reader.size("intermediate_multiple_size")


def _neox_japanese(reader: ConfigReader) -> ModelSpec:
    """GPT-NeoX Japanese: no biases but one of attention, in the last layer."""
    shape = read_shape(reader)
    traits = Traits(norms=4, final_norms=2, gated=False, width=_multiple)
    return read_decoder(reader, shape, traits, other_params=shape.hidden)


def _modernbert(reader: ConfigReader) -> ModelSpec:
    """ModernBERT decoder: no first norm, one of the embeddings, a dense layer before the head."""
    shape = read_shape(reader)
    bias = reader.flag("norm_bias")
    traits = Traits(
        qkv_bias="attention_bias",
        out_bias="attention_bias",
        mlp_bias="mlp_bias",
        norms=4 if bias else 2,
        final_norms=2 if bias else 1,
        tied=True,
        windows=patterned(3, reader.size("local_attention", default=128) / 2, first=True),
        head_bias="decoder_bias",
    )
    head = shape.hidden * (shape.hidden + (2 if bias else 1))
    return read_decoder(reader, shape, traits, other_params=head)


def _molmo2(reader: ConfigReader) -> ModelSpec:
    """Molmo 2: a second table of tokens for pictures, which the head leaves out."""
    shape = read_shape(reader)
    traits = Traits(qkv_bias=("qkv_bias", "attention_bias"), qk_norm="head", ties=False)
    table = reader.size("additional_vocab_size", default=0, zero=True) * shape.hidden
    return read_decoder(reader, shape, traits, extra_embedding_params=table)


def _cpmant(reader: ConfigReader) -> ModelSpec:
    """CPM-Ant: rows for prompts and segments, and a table of relative positions."""
    shape = read_shape(reader)
    prompts = reader.size("prompt_types") * reader.size("prompt_length")
    segments = reader.size("segment_types")
    pairs = segments * segments + reader.size("position_bias_num_buckets")
    table = (prompts + segments) * shape.hidden
    return read_decoder(
        reader,
        shape,
        Traits(ties=False),
        extra_embedding_params=table,
        other_params=pairs * shape.heads,
    )


_TABLE: dict[str, Traits] = {
    "ctrl": replace(_BIASED, head_bias=True),
    "persimmon": replace(_BIASED, tied=False, qk_norm=_phi_norm),
    "xglm": _BIASED,
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
    "gpt-sw3": _gpt2,
    "biogpt": _learned(_BIASED, _positions("max_position_embeddings", spare=2)),
    "openai-gpt": _learned(replace(_BIASED, final_norms=0), _positions("n_positions")),
    "gpt_neo": _learned(
        replace(_BIASED, qkv_bias=False, windows=_gpt_neo_windows),
        _positions("max_position_embeddings"),
    ),
    "git": _learned(
        replace(_BIASED, tied=False, head_bias=True), _positions("max_position_embeddings")
    ),
    "modernbert-decoder": _modernbert,
    "gpt_neox_japanese": _neox_japanese,
    "cpmant": _cpmant,
    "molmo2_text": _molmo2,
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
