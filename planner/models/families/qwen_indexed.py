"""Qwen3.8-Flash-Next (Qwen4-Exp): gated delta layers, indexed attention, hashed n-grams."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from planner.kernels import Kernel
from planner.models.attention import Indexer
from planner.models.caches import State
from planner.models.decoder import (
    Importer,
    Moe,
    Shape,
    Traits,
    next_token_layers,
    read_attention,
    read_decoder,
    read_experts,
    read_shape,
)
from planner.models.families.nemotron import state_dtype
from planner.models.families.qwen_delta import full_layers, read_delta
from planner.models.parts import Auxiliary, Block, Formats, Linear, Mixer, Part
from planner.models.reader import ConfigError, ConfigReader
from planner.models.recurrent import Convolution, RecurrentMixer, scan
from planner.models.spec import ModelSpec

_TRAITS = Traits(
    qkv_bias="attention_bias",
    out_bias="attention_bias",
    qk_norm="head",
    output_gate=True,
    gate_bias=True,
    moe=Moe(("moe_intermediate_size",), ("shared_expert_intermediate_size",), shared_gate=True),
)
_MOST_NGRAM_HEADS = 256
"""Tables of n-grams of one network that are sized here; published ones have 16 [-]."""


@dataclass(frozen=True, slots=True)
class GatedResidual(Auxiliary):
    """Low-rank weights that read `streams` residual streams and those that write to them."""

    hidden: int
    streams: int
    rank: int
    writes: bool = True

    def linears(self) -> tuple[Linear, ...]:
        """Down and up again to a weight for each value of each stream; a weight for each stream."""
        width = self.streams * self.hidden
        read = (
            Linear("hyper_down", width, self.rank, "other", ways=1),
            Linear("hyper_up", self.rank, width, "other", ways=1),
        )
        if not self.writes:
            return read
        return (*read, Linear("hyper_write", width, self.streams, "other", ways=1))

    def other_params(self) -> int:
        """The norm of the streams."""
        return self.streams * self.hidden


@dataclass(frozen=True, slots=True)
class HashedNgrams(RecurrentMixer):
    """What hashed n-grams of tokens add to the streams, behind a dilated convolution.

    The tables they are looked up in count as embeddings.
    """

    hidden: int
    streams: int
    width: int
    """Values looked up for a token [value]."""
    taps: int
    dilation: int

    @property
    def convolution(self) -> Convolution:
        """The convolution over all streams; it looks back over `dilation` tokens a tap."""
        rows = (self.taps - 1) * self.dilation
        return Convolution(self.streams * self.hidden, self.taps, rows=rows)

    def linears(self) -> tuple[Linear, ...]:
        """A key for each stream and one value."""
        return (
            Linear("ngram_proj", self.width, self.streams * self.hidden, "other", ways=1),
            Linear("ngram_proj", self.width, self.hidden, "other", ways=1),
        )

    def other_params(self) -> int:
        """Norms of key, stream and value, and the convolution."""
        return 3 * self.streams * self.hidden + self.convolution.params

    def states(self) -> tuple[State, ...]:
        """The convolution's window."""
        return (self.convolution.window(1),)

    @property
    def sharded_heads(self) -> int | None:
        """None: every rank runs it whole."""
        return None

    def core_kernels(self, formats: Formats) -> tuple[Kernel, ...]:
        """The convolution."""
        values = 3 * self.streams * self.hidden
        return (scan(formats, "ngram_conv", self.states(), self.convolution.flops, values),)


def read_qwen_indexed(reader: ConfigReader) -> ModelSpec:
    """Read a Qwen4-Exp: every fourth layer attends to the blocks of tokens its indexer picks."""
    shape = read_shape(reader)
    streams = reader.size("hc_count")
    rank = reader.size("hc_lowrank")
    mixing = GatedResidual(shape.hidden, streams, rank)
    mixers: dict[bool, tuple[Part, ...]] = {
        True: (mixing, *_indexed(reader, shape)),
        False: (mixing, read_delta(reader, shape)),
    }
    experts = (mixing, *read_experts(reader, shape, _TRAITS.moe or Moe()))
    blocks = [Block(mixers[full], experts) for full in _indexed_layers(reader, shape.layers)]
    layers = _ngram_layers(reader, shape.layers)
    table = 0
    if layers:
        ngrams, table = _ngrams(reader, shape, streams, len(layers))
        reader.note(
            "lookup_tables",
            f"{table:,} parameters are tables of n-grams of which a token reads {ngrams.width:,}"
            " values a layer; active_params counts them whole, as it does the embedding",
        )
        for index in layers:
            block = blocks[index]
            blocks[index] = Block((ngrams, *block.mixers), block.mlps)
    # The streams are read once more before the head.
    last = GatedResidual(shape.hidden, streams, rank, writes=False)
    final = Block(blocks[-1].mixers, (*blocks[-1].mlps, last))
    spec = read_decoder(
        reader,
        shape,
        replace(_TRAITS, final_norms=0),
        [*blocks[:-1], final],
        extra_embedding_params=table,
    )
    return replace(
        spec,
        mtp=next_token_layers(reader, shape, Block(mixers[True], experts)),
        state_dtype=state_dtype(reader),
    )


def _indexed_layers(reader: ConfigReader, layers: int) -> list[bool]:
    """Return which layers attend; files name those `full_attention` or `indexed_attention`."""
    kinds = reader.pattern(layers, "layer_types")
    if kinds is not None and "indexed_attention" in kinds:
        accepted = {"indexed_attention": True, "linear_attention": False}
        if not all(isinstance(kind, str) and kind in accepted for kind in kinds):
            raise ConfigError(f"{reader.path}layer_types: accepted: {', '.join(accepted)}")
        return [accepted[kind] for kind in kinds]
    return full_layers(reader, layers)


def _indexed(reader: ConfigReader, shape: Shape) -> tuple[Mixer, ...]:
    """Return the indexer, whose keys are cached token by token, and the attention it picks for."""
    head_dim = reader.size("indexer_head_dim")
    indexer = Indexer(
        hidden=shape.hidden,
        query_inputs=shape.hidden,
        heads=reader.size("indexer_n_heads"),
        head_dim=head_dim,
        norm_params=2 * head_dim,
        head_weights=False,
    )
    if reader.size("indexer_kv_heads", default=1) != 1:
        raise ConfigError(f"{reader.path}indexer_kv_heads: accepted: 1")
    attention = read_attention(reader, shape, _TRAITS, math.inf)
    return indexer, replace(attention, attended=reader.size("indexer_budget"))


def _ngram_layers(reader: ConfigReader, layers: int) -> list[int]:
    """Return the layers that add n-grams, counted from 0; `ple_layer_ids` counts from 1."""
    stated = reader.raw("ple_layer_ids") or []
    if not isinstance(stated, list) or not all(
        type(index) is int and 1 <= index <= layers for index in stated
    ):
        raise ConfigError(f"{reader.path}ple_layer_ids: accepted: a list of 1 to {layers}")
    return sorted({index - 1 for index in stated})


def _ngrams(
    reader: ConfigReader, shape: Shape, streams: int, layers: int
) -> tuple[HashedNgrams, int]:
    """Return what a layer adds, and the parameters of the tables of all `layers`.

    Each order of n-gram from 2 has `heads_per_ngram` tables; the tables' lengths are the primes
    after `ngram_vocab_size_base`, one after the other, and a layer's are stored in one piece,
    rounded up to `make_ngram_vocab_size_divisible_by`.
    """
    size = reader.size("ngram_size")
    heads = (size - 1) * reader.size("heads_per_ngram")
    width = reader.size("ple_embed_dim", default=shape.hidden)
    if not 0 < heads * layers <= _MOST_NGRAM_HEADS:
        raise ConfigError(
            f"{reader.path}heads_per_ngram: {heads * layers} tables of n-grams;"
            f" accepted: 1 to {_MOST_NGRAM_HEADS}"
        )
    if width % heads:
        raise ConfigError(f"{reader.path}ple_embed_dim: {heads} tables do not divide {width}")
    lengths = primes_from(reader.size("ngram_vocab_size_base"), heads * layers)
    unit = reader.size("make_ngram_vocab_size_divisible_by")
    rows = 0
    for first in range(0, heads * layers, heads):
        rows += math.ceil(sum(lengths[first : first + heads]) / unit) * unit
    ngrams = HashedNgrams(
        shape.hidden, streams, width, reader.size("ple_conv_kernel_size"), dilation=size
    )
    return ngrams, rows * (width // heads)


def primes_from(start: int, count: int) -> list[int]:
    """Return the first `count` primes not below `start`."""
    primes: list[int] = []
    number = max(start, 2)
    while len(primes) < count:
        if all(number % divisor for divisor in range(2, math.isqrt(number) + 1)):
            primes.append(number)
        number += 1
    return primes


MODEL_TYPES: dict[str, Importer] = dict.fromkeys(
    ("qwen4_exp", "qwen4_exp_text", "qwen3_8_flash_next", "qwen3_8_flash_next_text"),
    read_qwen_indexed,
)
