"""RWKV-5, RWKV-6 and RWKV-7: time mixing with matrix-valued states, channel mixing."""

from __future__ import annotations

from dataclasses import replace

from planner.models.assembly import assemble
from planner.models.decoder import Importer
from planner.models.parts import Block
from planner.models.reader import ConfigError, ConfigReader
from planner.models.rwkv import Rwkv, RwkvChannelMix
from planner.models.spec import ModelSpec


def read_rwkv5(reader: ConfigReader) -> ModelSpec:
    """Read an RWKV-5 (version 5.2): five square projections, a decay and a bonus a channel."""
    hidden = reader.size("hidden_size")
    width = reader.size("attention_hidden_size", default=hidden)
    # Mixes of k, v, r and g, decay and bonus, and the group norm of the read-out.
    time = Rwkv(hidden, width, _head_size(reader, width), vectors=4 * hidden + 4 * width)
    channel = RwkvChannelMix(hidden, _width(reader, hidden, 7 / 2), vectors=2 * hidden)
    return _rwkv(reader, hidden, time, channel)


def read_rwkv6(reader: ConfigReader) -> ModelSpec:
    """Read an RWKV-6: as RWKV-5, with low-rank mixes and decays that follow the token."""
    hidden = reader.size("hidden_size")
    width = reader.size("attention_hidden_size", default=hidden)
    small = hidden < 4096
    mix, decay = (32, 64) if small else (64, 128)
    time = Rwkv(
        hidden,
        width,
        _head_size(reader, width),
        low_rank=(*[mix] * 5, decay),
        vectors=6 * hidden + 4 * width,
        vectors_read=5,
    )
    channel = RwkvChannelMix(hidden, _width(reader, hidden, 7 / 2), vectors=2 * hidden)
    return _rwkv(reader, hidden, time, channel)


def read_rwkv7(reader: ConfigReader) -> ModelSpec:
    """Read an RWKV-7: four square projections, low ranks for decay, rate, value mix and gate.

    The first layer mixes no value, since there is none before it.
    """
    hidden = reader.size("hidden_size")
    value_rank = reader.size("v_low_rank_dim", default=32)
    ranks = (
        reader.size("decay_low_rank_dim", default=64),
        reader.size("a_low_rank_dim", default=64),
        reader.size("gate_low_rank_dim", default=128),
    )
    # Mixes of r, w, k, v, a and g; bases of w, a and v; k_k, k_a and r_k; the group norm.
    time = Rwkv(
        hidden,
        hidden,
        _head_size(reader, hidden),
        square=4,
        low_rank=(*ranks, value_rank),
        vectors=14 * hidden,
        flops_per_value=9,
        vectors_read=6,
    )
    first = replace(time, low_rank=ranks, vectors=13 * hidden)
    width = _width(reader, hidden, 4)
    channel = RwkvChannelMix(hidden, width, receptance=False, vectors=hidden)
    return _rwkv(reader, hidden, time, channel, first)


def _head_size(reader: ConfigReader, width: int) -> int:
    size = reader.size("head_size", "head_dim", default=64)
    if width % size:
        raise ConfigError(f"{reader.path}head_size: {size} does not divide the width {width}")
    return size


def _width(reader: ConfigReader, hidden: int, ratio: float) -> int:
    """Return the stated width, or `ratio` times the hidden size in steps of 32."""
    stated = reader.optional_size("intermediate_size")
    return stated or int(hidden * ratio) // 32 * 32


def _rwkv(
    reader: ConfigReader,
    hidden: int,
    time: Rwkv,
    channel: RwkvChannelMix,
    first: Rwkv | None = None,
) -> ModelSpec:
    """Return the spec: two LayerNorms a layer, one before the first and one after the last."""
    layers = reader.size("num_hidden_layers")
    block = Block((time,), (channel,), 4 * hidden)
    return assemble(
        reader,
        [replace(block, mixers=(first or time,)), *[block] * (layers - 1)],
        hidden=hidden,
        vocab=reader.size("vocab_size", default=65536),
        other_params=4 * hidden,
        # States are kept in single precision by the reference implementation.
        state_dtype="fp32",
    )


MODEL_TYPES: dict[str, Importer] = {"rwkv5": read_rwkv5, "rwkv6": read_rwkv6, "rwkv7": read_rwkv7}
