"""What every decoder has around its layers: number format, context, embedding, head, final norm."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from planner.models.attention import Attention
from planner.models.layers import grouped
from planner.models.parts import Block, LayerGroup
from planner.models.quantization import read_quantization
from planner.models.reader import ConfigReader
from planner.models.spec import ModelSpec
from planner.precision import UnknownFormat, get_format

CONTEXT = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "max_sequence_length",
    "context_length",
)
LONGEST = ("model_max_length",)
"""The longest context a model was trained for, which may exceed the table of positions."""


def read_dtype(reader: ConfigReader) -> str:
    """Return the id of the checkpoint's own format; a missing one is bf16, with a note."""
    name = reader.raw("dtype", "torch_dtype")
    if isinstance(name, str):
        try:
            return get_format(name.removeprefix("torch.")).id
        except UnknownFormat:
            pass
    fault = "is missing" if name is None else f"{name!r} is unknown"
    reader.note(
        "assumed_dtype",
        f"torch_dtype {fault}: bf16 assumed; what is not quantised would take twice the bytes in"
        " fp32",
    )
    return "bf16"


def read_context(reader: ConfigReader) -> int | None:
    """Return the longest context [token]: the larger of positions and `model_max_length`."""
    stated = [
        reader.size(*names)
        for names in (CONTEXT, LONGEST)
        if any(reader.config.get(name) is not None for name in names)
    ]
    if stated:
        return max(stated)
    return reader.size(*CONTEXT, *LONGEST) if reader.has(*CONTEXT, *LONGEST) else None


def _filled(block: Block, longest: int | None) -> Block:
    """Return a layer without a window that no sequence of `longest` tokens can fill."""
    if longest is None:
        return block
    mixers = tuple(
        replace(part, window=math.inf)
        if isinstance(part, Attention) and longest <= part.window < math.inf
        else part
        for part in block.mixers
    )
    return replace(block, mixers=mixers) if mixers != block.mixers else block


def assemble(
    reader: ConfigReader,
    blocks: Iterable[Block] | tuple[LayerGroup, ...],
    *,
    hidden: int,
    vocab: int,
    tied: bool = False,
    ties: bool = True,
    other_params: int | None = None,
    head_params: int | None = None,
    **fields: Any,
) -> ModelSpec:
    """Return the spec of layers: embedding, head, final norm (one vector unless `other_params`).

    `tied` is the default of tie_word_embeddings, which counts if the class `ties` at all; `fields`
    are other fields of ModelSpec.
    """
    longest = read_context(reader)
    items = tuple(
        item if isinstance(item, LayerGroup) else _filled(item, longest) for item in blocks
    )
    groups = tuple(item for item in items if isinstance(item, LayerGroup))
    return ModelSpec(
        id="",
        model_type="",
        hidden=hidden,
        vocab=vocab,
        groups=groups + grouped(item for item in items if isinstance(item, Block)),
        tied_embeddings=ties and reader.tied(tied),
        dtype=read_dtype(reader),
        quantization=read_quantization(reader),
        head_params=head_params,
        other_params=hidden if other_params is None else other_params,
        max_context=longest,
        **fields,
    )
