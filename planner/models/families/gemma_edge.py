"""Gemma 3n and Gemma 4: per-layer embeddings, keys and values shared by the last layers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

from planner.models.attention import Attention
from planner.models.decoder import (
    Importer,
    Moe,
    Shape,
    Traits,
    norm_params,
    read_attention,
    read_decoder,
    read_experts,
    read_shape,
)
from planner.models.mlp import Dense, Experts, Projection
from planner.models.parts import Auxiliary, Block, Linear, Part
from planner.models.reader import ConfigError, ConfigReader
from planner.models.spec import ModelSpec
from planner.models.windows import patterned

_COMMON = {
    "head_dim": 256,
    "sliding_window": 512,
    "vocab_size_per_layer_input": 262144,
    "hidden_size_per_layer_input": 256,
}
_GEMMA3N = Traits(
    qkv_bias="attention_bias",
    out_bias="attention_bias",
    qk_norm="head",
    norms=4,
    tied=True,
    windows=patterned(5, 512),
    defaults={
        **_COMMON,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "vocab_size": 262400,
        "altup_num_inputs": 4,
        "laurel_rank": 64,
        "num_kv_shared_layers": 15,
    },
)
_GEMMA4 = Traits(
    qkv_bias="attention_bias",
    out_bias="attention_bias",
    qk_norm="head",
    norms=4,
    tied=True,
    windows=patterned(6, 512),
    moe=Moe(("moe_intermediate_size",)),
    defaults={**_COMMON, "num_key_value_heads": 4, "global_head_dim": 512, "vocab_size": 262144},
)
_GEMMA4_UNIFIED = replace(
    _GEMMA4,
    windows=patterned(6, 1024),
    defaults={**_GEMMA4.defaults, "sliding_window": 1024, "hidden_size_per_layer_input": 0},
)


@dataclass(frozen=True, slots=True)
class LayerScalar(Auxiliary):
    """The one stored number a Gemma 4 layer's output is multiplied with."""

    def linears(self) -> tuple[Linear, ...]:
        """None."""
        return ()

    def other_params(self) -> int:
        """None."""
        return 0

    def buffers(self) -> int:
        """One."""
        return 1


@dataclass(frozen=True, slots=True)
class AltUp(Auxiliary):
    """Alternating updates: predicts and corrects `streams` copies of the hidden state.

    Baykal et al., "Alternating updates for efficient transformers", 2023.
    """

    hidden: int
    streams: int

    def linears(self) -> tuple[Linear, ...]:
        """None."""
        return ()

    def other_params(self) -> int:
        """Router and its norm, output scale, prediction and correction coefficients."""
        return self.hidden * (self.streams + 2) + self.streams**2 * (self.streams + 1)


def read_gemma4(reader: ConfigReader, traits: Traits = _GEMMA4) -> ModelSpec:
    """Read a Gemma 4: full layers have heads of their own size, the last may share their cache."""
    reader.defaults = traits.defaults
    shape = read_shape(reader)
    same = reader.flag("attention_k_eq_v")
    global_heads = reader.optional_size("num_global_key_value_heads") if same else None
    wide = replace(
        shape, head_dim=reader.size("global_head_dim"), kv_heads=global_heads or shape.kv_heads
    )
    extra, norms = _mixture(reader, shape)
    width = reader.size("intermediate_size")
    shared_width = width * (2 if reader.flag("use_double_wide_mlp") else 1)
    inputs, input_norm = _per_layer_input(reader, shape)
    blocks = []
    for window, own in _layers(reader, shape, traits):
        full = math.isinf(window)
        attention = _shared(reader, wide if full else shape, traits, window, own)
        attention = replace(attention, own_v=not (same and full))
        dense = Dense(shape.hidden, width if own else shared_width)
        blocks.append(
            Block(
                (attention,),
                (dense, *extra, *inputs, LayerScalar()),
                (4 + norms) * shape.hidden + input_norm,
            )
        )
    return _with_inputs(reader, shape, traits, blocks)


def _layers(reader: ConfigReader, shape: Shape, traits: Traits) -> list[tuple[float, bool]]:
    """Return, layer by layer, its window and whether it computes keys and values itself."""
    shared = reader.size("num_kv_shared_layers", default=0, zero=True)
    if shared >= shape.layers:
        raise ConfigError(
            f"{reader.path}num_kv_shared_layers: {shared}; accepted: 0 to {shape.layers - 1}"
        )
    first = shape.layers - shared
    windows = traits.windows(reader, shape.layers)
    return [(window, index < first) for index, window in enumerate(windows)]


def _shared(
    reader: ConfigReader, shape: Shape, traits: Traits, window: float, own: bool
) -> Attention:
    attention = read_attention(reader, shape, traits, window)
    if own:
        return attention
    return replace(
        attention, own_kv=False, norm_params=norm_params(reader, shape, traits) // 2
    )  # the key norm goes with the keys


def _mixture(reader: ConfigReader, shape: Shape) -> tuple[tuple[Part, ...], int]:
    """Return the experts beside the dense MLP, and the norms they add."""
    if not reader.flag("enable_moe_block"):
        return (), 0
    routed, *_ = read_experts(reader, shape, _GEMMA4.moe or Moe())
    if isinstance(routed, Experts):
        routed = replace(routed, other=shape.hidden + routed.experts)  # input and expert scales
    return (routed,), 3


def _per_layer_input(reader: ConfigReader, shape: Shape) -> tuple[tuple[Part, ...], int]:
    """Return the gate and projection of a layer's own embedding, and their norm."""
    width = reader.size("hidden_size_per_layer_input", zero=True)
    if not width:
        return (), 0
    return (
        (
            Projection("per_layer_gate", shape.hidden, width),
            Projection("per_layer_proj", width, shape.hidden),
        ),
        shape.hidden,
    )


def _with_inputs(
    reader: ConfigReader, shape: Shape, traits: Traits, blocks: list[Block], *once: Part
) -> ModelSpec:
    """Return the spec; what runs `once` a step is put into the first layer."""
    width = reader.size("hidden_size_per_layer_input", zero=True)
    table = 0
    if width:
        outputs = shape.layers * width
        once = (Projection("per_layer_model_proj", shape.hidden, outputs), *once)
        table = reader.size("vocab_size_per_layer_input") * outputs
    first = blocks[0]
    blocks[0] = replace(first, mixers=(*once, *first.mixers))
    return read_decoder(
        reader, shape, traits, blocks, other_params=width, extra_embedding_params=table
    )


def read_gemma3n(reader: ConfigReader) -> ModelSpec:
    """Read a Gemma 3n: alternating updates of four streams and low-rank residuals (LAuReL)."""
    reader.defaults = _GEMMA3N.defaults
    shape = read_shape(reader)
    streams = reader.size("altup_num_inputs")
    rank = reader.size("laurel_rank")
    beside = (
        AltUp(shape.hidden, streams),
        Projection("laurel", shape.hidden, rank),
        Projection("laurel", rank, shape.hidden),
    )
    inputs, input_norm = _per_layer_input(reader, shape)
    widths = reader.raw("intermediate_size")
    if not isinstance(widths, list):
        widths = [reader.size("intermediate_size", default=16384)] * shape.layers
    if len(widths) < shape.layers:
        raise ConfigError(
            f"{reader.path}intermediate_size: {len(widths)} entries for {shape.layers} layers"
        )
    blocks = [
        Block(
            (_shared(reader, shape, _GEMMA3N, window, own), *beside),
            (Dense(shape.hidden, reader.check_size("intermediate_size", width)), *inputs),
            5 * shape.hidden + input_norm,
        )
        for (window, own), width in zip(_layers(reader, shape, _GEMMA3N), widths, strict=False)
    ]
    streams_in_out = [Projection("altup_proj", shape.hidden, shape.hidden)] * (2 * (streams - 1))
    return _with_inputs(reader, shape, _GEMMA3N, blocks, *streams_in_out)


MODEL_TYPES: dict[str, Importer] = {
    "gemma3n": read_gemma3n,
    "gemma3n_text": read_gemma3n,
    "gemma4": read_gemma4,
    "gemma4_text": read_gemma4,
    "gemma4_unified": partial(read_gemma4, traits=_GEMMA4_UNIFIED),
    "gemma4_unified_text": partial(read_gemma4, traits=_GEMMA4_UNIFIED),
}
