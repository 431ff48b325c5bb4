"""Mamba, Mamba-2 and Falcon-Mamba (no attention at all), and Jamba (every eighth layer)."""

from __future__ import annotations

import math

from planner.models.assembly import assemble
from planner.models.decoder import (
    Importer,
    Moe,
    Traits,
    read_attention,
    read_decoder,
    read_dense,
    read_experts,
    read_shape,
)
from planner.models.families.nemotron import state_dtype
from planner.models.parts import Block
from planner.models.reader import ConfigReader, every
from planner.models.recurrent import Convolution, Mamba1, Mamba2
from planner.models.spec import ModelSpec

_JAMBA = Traits(
    moe=Moe(("intermediate_size",)),
    defaults={"num_key_value_heads": 8, "num_experts": 16, "num_experts_per_tok": 2},
)


def read_mamba(reader: ConfigReader) -> ModelSpec:
    """Read a Mamba or Falcon-Mamba: every layer is one norm and one Mamba-1 mixer."""
    hidden = reader.size("hidden_size", "d_model")
    # Falcon-Mamba states an `expand` it does not use: the width decides.
    inner = reader.size("intermediate_size", "d_inner", default=0)
    mixer = Mamba1(
        hidden=hidden,
        inner=inner or hidden * reader.size("expand", default=2),
        state=reader.size("state_size", default=16),
        rank=_rank(reader, "time_step_rank", hidden),
        convolution=Convolution(
            inner or hidden * reader.size("expand", default=2),
            reader.size("conv_kernel", default=4),
            reader.flag("use_conv_bias", default=True),
        ),
        bias=reader.flag("use_bias"),
    )
    layers = reader.size("num_hidden_layers", "n_layer")
    return assemble(
        reader,
        [Block((mixer,), other_params=hidden)] * layers,
        hidden=hidden,
        vocab=reader.size("vocab_size"),
        tied=True,
        state_dtype=state_dtype(reader),
    )


def read_mamba2(reader: ConfigReader) -> ModelSpec:
    """Read a Mamba-2: every layer is one norm and one Mamba-2 mixer."""
    hidden = reader.size("hidden_size", "d_model")
    head_dim = reader.size("head_dim", default=64)
    mixer = Mamba2(
        hidden=hidden,
        heads=reader.size(
            "num_heads", default=reader.size("expand", default=2) * hidden // head_dim
        ),
        head_dim=head_dim,
        state=reader.size("state_size", default=128),
        groups=reader.size("n_groups", default=8),
        taps=reader.size("conv_kernel", default=4),
        conv_bias=reader.flag("use_conv_bias", default=True),
        bias=reader.flag("use_bias"),
    )
    layers = reader.size("num_hidden_layers", "n_layer")
    return assemble(
        reader,
        [Block((mixer,), other_params=hidden)] * layers,
        hidden=hidden,
        vocab=reader.size("vocab_size"),
        state_dtype=state_dtype(reader),
    )


def read_jamba(reader: ConfigReader) -> ModelSpec:
    """Read a Jamba: attention and mixtures of experts at a period and offset each."""
    reader.defaults = _JAMBA.defaults
    shape = read_shape(reader)
    attention = read_attention(reader, shape, _JAMBA, math.inf)
    inner = shape.hidden * reader.size("mamba_expand", default=2)
    state = reader.size("mamba_d_state", default=16)
    rank = _rank(reader, "mamba_dt_rank", shape.hidden)
    mamba = Mamba1(
        hidden=shape.hidden,
        inner=inner,
        state=state,
        rank=rank,
        convolution=Convolution(
            inner,
            reader.size("mamba_d_conv", default=4),
            reader.flag("mamba_conv_bias", default=True),
        ),
        bias=reader.flag("mamba_proj_bias"),
        norm_params=rank + 2 * state,
    )
    full = every(
        reader.size("attn_layer_period", default=8),
        shape.layers,
        reader.size("attn_layer_offset", default=4, zero=True),
    )
    mixture = every(
        reader.size("expert_layer_period", default=2),
        shape.layers,
        reader.size("expert_layer_offset", default=1, zero=True),
    )
    several = reader.size("num_experts") > 1
    dense = (read_dense(reader, shape, _JAMBA),)
    experts = read_experts(reader, shape, _JAMBA.moe or Moe()) if several else dense
    blocks = [
        Block((attention if is_full else mamba,), experts if moe else dense, 2 * shape.hidden)
        for is_full, moe in zip(full, mixture, strict=True)
    ]
    return read_decoder(reader, shape, _JAMBA, blocks)


def _rank(reader: ConfigReader, name: str, hidden: int) -> int:
    """Return the rank of the time step: "auto" is a sixteenth of the hidden size, rounded up."""
    value = reader.raw(name)
    if value is None or value == "auto":
        return math.ceil(hidden / 16)
    return reader.size(name)


MODEL_TYPES: dict[str, Importer] = {
    "mamba": read_mamba,
    "falcon_mamba": read_mamba,
    "mamba2": read_mamba2,
    "jamba": read_jamba,
}
