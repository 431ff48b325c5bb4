"""Weights as an engine loads them: fused, split, padded, with its tables and allocator's rounding.

A checkpoint's bytes (`ModelSpec.weights_bytes`) are the lower bound. Engines add the rows that pad
a vocabulary, the columns that pad a block-scaled expert, a table of rotary angles, copies of a
latent's up-projection, an image encoder, and what the allocator cannot hand out again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from planner.models.parts import Formats, LayerGroup, Part
from planner.models.spec import ModelSpec, group_formats
from planner.precision import get_format
from planner.step.parallel import Sharding


@dataclass(frozen=True, slots=True, eq=False)
class Loading:
    """What an engine adds to the bytes of a checkpoint; the defaults add nothing."""

    allocator_step_bytes: int = 0
    """Sizes a large allocation is rounded up to [byte]; 0 counts tensors exactly."""
    rotary_bytes: float = 0.0
    """Bytes of a value of the rotary table, of max context × rotary width values [byte]."""
    rotary_tables: Mapping[str, int] = field(default_factory=dict)
    """Tables' worth of a model type whose angles are scaled; 1 for the others [-]."""
    copied_kernels: tuple[str, ...] = ()
    """Linears kept a second time at 16 bits where they are quantised (absorbed up-projections of a
    latent)."""
    latent_bytes: float = 0.0
    """Kept by the attention of a model that has such linears [byte]."""
    vocab_multiple: int = 1
    """Rows a vocabulary is padded to a multiple of [-]."""
    expert_multiple: Mapping[str, int] = field(default_factory=dict)
    """Inner widths of routed experts are padded to a multiple of this, by format [-]."""
    encoder: bool = False
    """Whether an image encoder is loaded."""
    replicated_encoders: tuple[str, ...] = ()
    """Model types whose image encoder every rank holds whole."""


_LARGE = 10 * 2**20
"""Smallest request that PyTorch's allocator gives a segment of its own [byte]."""
_SPLIT = 2**20
"""Largest rest of a segment that stays with the request [byte]."""


def loaded_bytes(
    spec: ModelSpec,
    formats: Formats,
    sharding: Sharding,
    rules: Loading | None = None,
    layers_on_gpu: int | None = None,
) -> float:
    """Return the weight bytes of one GPU, the mean over pipeline stages [byte].

    Linears that run as one launch are one tensor (q, k and v; gate and up); the experts of a layer
    are two. Of `layers_on_gpu` layers that many are on the GPU, and what lies outside of layers
    where there is one more than the model has.
    """
    rules = rules or Loading()
    layers = sum(
        _allocated(size, rules) * copies
        for size, copies in _tensors(spec, formats, sharding, rules)
    )
    outside = _outside(spec, formats, sharding, rules)
    if layers_on_gpu is not None:
        layers *= min(1.0, layers_on_gpu / spec.layers)
        outside *= layers_on_gpu > spec.layers
    return (layers + outside) / sharding.pp


_ADAPTER_BYTES = 2.0
"""Bytes of an adapter's value: engines keep them at 16 bits [byte]."""


def adapter_bytes(spec: ModelSpec, sharding: Sharding, adapters: int, rank: int) -> float:
    """Return the bytes of low-rank adapters on one GPU, the mean over pipeline stages [byte].

    rank·(inputs + outputs) values beside every linear of mixers and feed-forward networks, routed
    experts aside (Hu et al., "LoRA", 2021); outputs are split as the linear's are.
    """
    values = sum(
        group.count * (linear.inputs + linear.outputs / min(sharding.tp, linear.ways))
        for group in spec.groups
        for part in group.block.parts
        for linear in part.linears()
    )
    return adapters * rank * values * _ADAPTER_BYTES / sharding.pp


def _allocated(size: float, rules: Loading) -> float:
    """Bytes a tensor takes: a rest of up to 1 MiB of its 2 MiB steps stays with it.

    CUDACachingAllocator, PyTorch 2 (kRoundLarge, kMinLargeAlloc, kSmallSize).
    """
    step = rules.allocator_step_bytes
    if not step or size < _LARGE:
        return size
    rest = math.ceil(size / step) * step - size
    return size + (rest if rest <= _SPLIT else 0.0)


def _tensors(
    spec: ModelSpec, formats: Formats, sharding: Sharding, rules: Loading
) -> Iterator[tuple[float, float]]:
    """Yield the bytes of each tensor of the layers on one rank, and its copies."""
    own = get_format(spec.quantization.vectors or spec.dtype).bytes
    for group in spec.groups:
        chosen = group_formats(group, formats)
        yield group.block.other_params * own, group.copies
        for part in group.block.parts:
            yield (part.other_params() + part.buffers()) * own, group.copies
            yield from _linears(part, group, chosen, sharding, own, rules)
            yield from _experts(part, group, chosen, sharding, rules)


def _linears(
    part: Part, group: LayerGroup, formats: Formats, sharding: Sharding, own: float, rules: Loading
) -> Iterator[tuple[float, float]]:
    fused: dict[str, float] = {}
    biases = 0.0
    for linear in part.linears():
        if not linear.stored:
            continue
        share = 1.0 / min(sharding.tp, linear.ways)
        values = linear.inputs * linear.outputs * share
        fused[linear.kernel] = (
            fused.get(linear.kernel, 0.0) + values * formats.weights[linear.role].bytes
        )
        if linear.bias:
            biases += linear.outputs * own * share
        if linear.kernel in rules.copied_kernels and formats.weights[linear.role].bytes < own:
            yield values * own, group.copies
    for size in fused.values():
        yield size, group.copies
    if biases:
        yield biases, group.copies


def _experts(
    part: Part, group: LayerGroup, formats: Formats, sharding: Sharding, rules: Loading
) -> Iterator[tuple[float, float]]:
    routed = part.routed()
    if routed is None:
        return
    weights = formats.weights["experts"]
    ups = routed.ups
    multiple = rules.expert_multiple.get(weights.id, 1)
    if multiple == 1:
        size = routed.experts * routed.params * weights.bytes / sharding.ranks
        yield size * ups / (ups + 1), group.copies
        yield size / (ups + 1), group.copies
        return
    split = routed.width / (sharding.ranks / sharding.ep)
    each = routed.experts * weights.bytes / sharding.ep
    yield each * ups * split * _padded(routed.inputs, multiple), group.copies
    yield each * routed.inputs * _padded(split, multiple), group.copies


def _padded(width: float, multiple: int) -> float:
    return math.ceil(width / multiple) * multiple


def _outside(spec: ModelSpec, formats: Formats, sharding: Sharding, rules: Loading) -> float:
    """Embedding, head, final norms, rotary tables and encoders on one rank [byte]."""
    own = get_format(spec.quantization.vectors or spec.dtype).bytes
    tp = sharding.tp
    pad = (_padded(spec.vocab, rules.vocab_multiple) - spec.vocab) * spec.hidden
    total = _allocated(
        (spec.embedding_params + pad) * formats.weights["embedding"].bytes / tp, rules
    )
    if not spec.tied_embeddings:
        head = (spec.lm_head_params + pad) * formats.weights["head"].bytes / tp
        total += _allocated(head, rules)
    total += spec.other_params * own
    if rules.rotary_bytes:
        angles = (spec.max_context or 0) * sum(_rotary_widths(spec))
        total += angles * rules.rotary_bytes * rules.rotary_tables.get(spec.model_type, 1)
    if rules.latent_bytes and _copies_any(spec, rules):
        total += rules.latent_bytes
    if rules.encoder:
        whole = spec.model_type in rules.replicated_encoders
        total += spec.encoder_params * own / (1 if whole else tp)
    return total


def _copies_any(spec: ModelSpec, rules: Loading) -> bool:
    return any(
        linear.kernel in rules.copied_kernels
        for group in spec.groups
        for part in group.block.mixers
        for linear in part.linears()
    )


def _rotary_widths(spec: ModelSpec) -> set[int]:
    """Widths of the rotary tables: one each head width, or rotary part of a latent's head."""
    widths = (part.rotary_width for group in spec.groups for part in group.block.mixers)
    return {width for width in widths if width}
