"""ModelSpec: a language model as layer groups, and the arithmetic of its size."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from planner.kernels import Kernel
from planner.models.gemms import linear_kernels
from planner.models.mixes import mix_formats
from planner.models.parts import Block, Formats, LayerGroup, Part
from planner.precision import Format, get_format


@dataclass(frozen=True, slots=True)
class Note:
    """Something a reader of the answer must know: an assumption, a fallback, a doubt."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Quantization:
    """How a checkpoint stores its weights."""

    id: str
    """Name for people: none, fp8, awq, mxfp4… [-]."""
    formats: Mapping[str, Format | str] = field(default_factory=dict)
    """Format of each role that is not in the model's own type."""
    kv: str | None = None
    """Format of the KV cache the checkpoint brings scales for."""
    vectors: str | None = None
    """Format of norms, biases and other vectors, where it is not the model's own type."""


@dataclass(frozen=True, eq=False)
class ModelSpec:
    """Everything the planner knows of a model; compared by identity."""

    id: str
    model_type: str
    hidden: int
    vocab: int
    groups: tuple[LayerGroup, ...]
    tied_embeddings: bool
    dtype: str = "bf16"
    """The model's own number format."""
    quantization: Quantization = Quantization("none")
    head_params: int | None = None
    """Parameters of the LM head; None means vocab·hidden [-]."""
    extra_embedding_params: int = 0
    """Looked-up tables beside the token embedding: positions, per-layer embeddings [-]."""
    other_params: int = 0
    """Parameters outside layers, embedding and head: final norm, projections [-]."""
    mtp: tuple[LayerGroup, ...] = ()
    """Multi-token-prediction layers; not counted in `total_params`."""
    mtp_other_params: int = 0
    vision_params: int = 0
    """Parameters of image and video encoders and their projection: loaded by engines, unless told
    not to, and not used to decode [-]."""
    audio_params: int = 0
    """Those of an audio encoder [-]."""
    params_range: tuple[int, int] | None = None
    """Least and most `total_params` where the architecture is assumed, not known [-]."""
    encoder_range: tuple[int, int] | None = None
    """Least and most `encoder_params` where an encoder's type is not known [-]."""
    unread_bytes: float = 0.0
    """Bytes the checkpoint's files hold beyond what its config explains; negative where fewer."""
    max_context: int | None = None
    state_dtype: str | None = None
    """Format the checkpoint asks for its recurrent state in."""
    source: str = ""
    unchecked: bool = False
    """Whether its fields were recalled and never compared with a published copy."""
    notes: tuple[Note, ...] = ()

    def _parts(
        self, groups: tuple[LayerGroup, ...] | None = None
    ) -> Iterator[tuple[LayerGroup, Part]]:
        for group in self.groups if groups is None else groups:
            for part in group.block.parts:
                yield group, part

    @property
    def stored_as(self) -> str:
        """What the checkpoint's weights are stored in: its quantisation, else its own type."""
        return self.dtype if self.quantization.id == "none" else self.quantization.id

    def weights_name(self, weights: str | None) -> str:
        """Return the weight format asked for by its own name; None is what the checkpoint has.

        Raises UnknownFormat.
        """
        if weights is None or weights.strip().lower() == self.stored_as:
            return self.stored_as
        return get_format(weights, "weights").id

    @property
    def layers(self) -> int:
        """Layers of the decoding network [-]."""
        return sum(group.count for group in self.groups)

    @property
    def embedding_params(self) -> int:
        """Looked-up parameters: token embedding and other tables [-]."""
        return self.vocab * self.hidden + self.extra_embedding_params

    @property
    def lm_head_params(self) -> int:
        """Parameters of the output head, whether stored apart or tied [-]."""
        return self.vocab * self.hidden if self.head_params is None else self.head_params

    @cached_property
    def total_params(self) -> int:
        """Parameters of the network that decodes, without multi-token-prediction layers [-]."""
        head = 0 if self.tied_embeddings else self.lm_head_params
        return self.embedding_params + head + self.other_params + _stored_params(self.groups)

    @property
    def encoder_params(self) -> int:
        """Parameters of all encoders beside the decoder [-]."""
        return self.vision_params + self.audio_params

    @property
    def encoder_bytes(self) -> float:
        """Bytes of them in the model's own type [byte]."""
        return self.encoder_params * get_format(self.dtype).bytes

    @cached_property
    def routed_params(self) -> int:
        """Parameters of routed experts [-]."""
        return sum(
            group.copies * routed.experts * routed.params
            for group, part in self._parts()
            if (routed := part.routed())
        )

    @cached_property
    def active_params(self) -> int:
        """Parameters one token uses: routed experts × top-k/experts, everything else whole [-]."""
        visited = sum(
            group.copies * routed.top_k * routed.params
            for group, part in self._parts()
            if (routed := part.routed())
        )
        untrained = sum(group.copies * part.buffers() for group, part in self._parts())
        return self.total_params - self.routed_params - untrained + visited

    @cached_property
    def latent(self) -> bool:
        """Whether any layer's attention caches a latent of all heads."""
        return any(part.latent_cache for _, part in self._parts())

    @cached_property
    def mtp_params(self) -> int:
        """Parameters of the multi-token-prediction layers [-]."""
        return self.mtp_other_params + _stored_params(self.mtp)

    @cached_property
    def kv_elements_per_token(self) -> float:
        """Values one sequence's cache grows by per token, over all layers, windows full [value]."""
        return sum(
            group.count * cache.elements_per_token
            for group, part in self._parts()
            for cache in part.caches()
            if math.isinf(cache.window)
        )

    @cached_property
    def window_elements(self) -> float:
        """Values one sequence keeps in full sliding windows, over all layers [value]."""
        return sum(
            group.count * cache.elements_per_token * cache.window
            for group, part in self._parts()
            for cache in part.caches()
            if not math.isinf(cache.window)
        )

    @cached_property
    def state_elements(self) -> int:
        """Values of recurrent state one sequence keeps, over all layers [value]."""
        return sum(
            group.count * state.elements for group, part in self._parts() for state in part.states()
        )

    @property
    def kind(self) -> str:
        """dense, moe, hybrid, hybrid+moe, or ssm where nothing is cached per token."""
        parts = [part for _, part in self._parts()]
        recurrent = any(part.states() and not part.caches() for part in parts)
        if recurrent and not any(part.caches() for part in parts):
            return "ssm"
        moe = "moe" if any(part.routed() for part in parts) else ""
        return "+".join(filter(None, ("hybrid" if recurrent else "", moe))) or "dense"

    def formats(self, weights: str | None = None, kv: str | None = None) -> Formats:
        """Return the formats to run with: the checkpoint's own, or `weights` for its linears.

        Naming what the checkpoint is stored as (`stored_as`) is no override. Router and vectors
        keep the model's own type under one; see `_override_roles`. Raises UnknownFormat.
        """
        name = self.weights_name(weights)
        own = name == self.stored_as
        if own:
            by_role: Mapping[str, Format | str] = self.quantization.formats
        else:
            chosen = get_format(name)
            roles = _override_roles(chosen, "moe" in self.kind)
            by_role = mix_formats(
                self.groups, self.hidden, self.tied_embeddings, chosen.id
            ) or dict.fromkeys(roles, chosen)
        cache = kv or (self.quantization.kv if own else None)
        formats = Formats.of(
            self.dtype,
            by_role,
            kv=cache or _cache_type(self.dtype),
            state=self.state_dtype or _cache_type(self.dtype),
        )
        return replace(formats, checkpoint=own)

    def weights_bytes(self, formats: Formats | None = None, tp: int = 1, ranks: int = 1) -> float:
        """Bytes of weights as stored, scales included, without multi-token prediction [byte].

        With `tp` and `ranks`, those on one rank: linears, embedding and head split `tp` ways as far
        as each can be, experts over all `ranks`; norms and other vectors replicate.
        """
        formats = formats or self.formats()
        own = self._vector_bytes()
        total = self.embedding_params * formats.weights["embedding"].bytes / tp
        if not self.tied_embeddings:
            total += self.lm_head_params * formats.weights["head"].bytes / tp
        total += self.other_params * own
        if formats.checkpoint:
            total += self.unread_bytes / tp
        return total + sum(_group_bytes(g, formats, own, tp, ranks) for g in self.groups)

    def drafting(self) -> ModelSpec:
        """Return the network with its multi-token-prediction layers loaded beside the others."""
        if not self.mtp:
            return self
        other = self.other_params + self.mtp_other_params
        return replace(
            self, groups=self.groups + self.mtp, other_params=other, mtp=(), mtp_other_params=0
        )

    def mtp_bytes(self) -> float:
        """Bytes of the multi-token-prediction layers as stored [byte]."""
        formats, own = self.formats(), self._vector_bytes()
        layers = sum(_group_bytes(group, formats, own, 1, 1) for group in self.mtp)
        return self.mtp_other_params * own + layers

    def _vector_bytes(self) -> float:
        return get_format(self.quantization.vectors or self.dtype).bytes

    def head_kernel(self, formats: Formats) -> Kernel:
        """The product with the LM head, once a step; a tied head reads the embedding table."""
        weights = formats.weights["embedding" if self.tied_embeddings else "head"]
        return Kernel(
            name="lm_head",
            kind="gemm",
            compute=weights.compute,
            activation_values_per_token=self.hidden + self.vocab,
            whole_values_per_token=self.hidden,
            flops_per_token=2.0 * self.lm_head_params,
            weight_bytes=self.lm_head_params * weights.bytes,
            weight_format=weights.id,
        )


LINEAR_ROLES = ("attention", "mlp", "experts", "shared_experts", "mixer", "indexer")
"""Roles a weight-format override applies to."""


def _override_roles(chosen: Format, moe: bool) -> tuple[str, ...]:
    """Roles that checkpoints in a format hold in it.

    Embedding and head only in whole-file formats. Four-bit block formats leave the mixers of a
    mixture of experts in 16 bits: the ignore lists of nvidia/Kimi-K2.5-NVFP4, MiniMax-M2.5-NVFP4
    and Qwen3.5-122B-A10B-NVFP4, of openai/gpt-oss and of moonshotai/Kimi-K2.5 (INT4).
    """
    if chosen.whole_file:
        return (*LINEAR_ROLES, "embedding", "head")
    if moe and chosen.id in ("mxfp4", "mxfp4_w4a4", "nvfp4", "int4", "int4_g128"):
        return ("mlp", "experts", "shared_experts")
    return LINEAR_ROLES


def _cache_type(dtype: str) -> str:
    return "bf16" if dtype == "fp32" else dtype


def part_params(part: Part) -> int:
    """Parameters of one part, routed experts included [-]."""
    stored = sum(linear.params for linear in part.linears() if linear.stored)
    routed = part.routed()
    experts = routed.experts * routed.params if routed else 0
    return stored + part.other_params() + part.buffers() + experts


def _block_params(block: Block) -> int:
    return block.other_params + sum(part_params(part) for part in block.parts)


def _stored_params(groups: tuple[LayerGroup, ...]) -> int:
    return sum(group.copies * _block_params(group.block) for group in groups)


def group_formats(group: LayerGroup, formats: Formats) -> Formats:
    """Return `formats` with the group's own exceptions applied."""
    if not (group.formats and formats.checkpoint):
        return formats
    changed = {role: get_format(name) for role, name in group.formats.items()}
    return replace(formats, weights={**formats.weights, **changed})


def _group_bytes(group: LayerGroup, formats: Formats, own: float, tp: int, ranks: int) -> float:
    formats = group_formats(group, formats)
    total = group.block.other_params * own
    for part in group.block.parts:
        total += (part.other_params() + part.buffers()) * own
        if routed := part.routed():
            stored = routed.experts * routed.params * formats.weights["experts"].bytes
            total += stored / ranks
        for linear in part.linears():
            if linear.stored:
                matrix = linear.inputs * linear.outputs * formats.weights[linear.role].bytes
                bias = linear.outputs * own if linear.bias else 0.0
                total += (matrix + bias) / min(tp, linear.ways)
    return group.copies * total


def group_kernels(group: LayerGroup, formats: Formats, prompt: bool = False) -> tuple[Kernel, ...]:
    """Return the kernels one layer of the group runs in a decode step, or over a prompt."""
    formats = group_formats(group, formats)
    kernels: list[Kernel] = []
    for part in group.block.parts:
        kernels += linear_kernels(part.linears(), formats, prompt)
        kernels += part.prompt_kernels(formats) if prompt else part.core_kernels(formats)
    return tuple(kernels)
