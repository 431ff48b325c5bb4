"""Memory an engine keeps beside weights and cache: activations, buffers of links, CUDA graphs.

An engine profiles one step of `chunk_tokens` tokens that ends in sampling for `max_sequences`
sequences, and keeps the peak. The peak is either the sampler's, which holds copies of the fp32
logits, or that of the widest layer; a mixture of experts keeps its workspace beside either. The
coefficients are an engine's data.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.models.parts import Formats, Part, RoutedExperts
from planner.models.spec import ModelSpec
from planner.step.parallel import Sharding

_LOGIT_BYTES = 4.0
_ACTIVATION_BYTES = 2.0
_NARROW = ("fp8", "fp4", "nvfp4", "int8")
"""Arithmetic for which a layer's input is copied into one byte a value."""


@dataclass(frozen=True, slots=True, eq=False)
class Overheads:
    """Coefficients of what an engine keeps; the defaults keep nothing."""

    logits_copies: float = 0.0
    """Copies of the fp32 logits of `max_sequences` sequences alive in the sampler [-]."""
    hidden_copies: float = 0.0
    """Copies of a chunk's hidden states alive meanwhile [-]."""
    layer_copies: float = 0.0
    """Copies of a chunk's hidden states alive in the widest layer [-]."""
    narrow_copies: float = 0.0
    """More of them where activations are quantised [-]."""
    workspace_copies: float = 0.0
    """Size of the workspace of experts over its two intermediate results [-]."""
    encoder_bytes: float = 0.0
    """Kept for an image encoder [byte]."""
    process_bytes: float = 0.0
    """Memory outside the framework's allocator on one GPU: context, libraries [byte]."""
    link_bytes: float = 0.0
    """Buffers of collectives between GPUs of one link domain [byte]."""
    link_bytes_per_gpu: float = 0.0
    """And for each GPU of the group [byte]."""
    host_link_bytes: float = 0.0
    """Buffers of collectives between GPUs without a link of their own [byte]."""
    graph_bytes: float = 0.0
    """CUDA graphs [byte]."""
    graph_bytes_per_layer: float = 0.0
    """And for each layer [byte]."""


@dataclass(frozen=True, slots=True, eq=False)
class Reserve:
    """What an engine keeps free of weights and cache, where it has a rule for it."""

    bytes: float = 0.0
    prompt_graph_bytes: float = 0.0
    """For graphs of prompts [byte]."""
    latent_prompt_graph_bytes: float = 0.0
    """The same for latent attention [byte]."""
    bytes_per_chunk_token: float = 0.0
    least_chunk_tokens: int = 0
    """Chunks count as at least so many tokens [token]."""
    bytes_per_graph_sequence: float = 0.0
    bytes_per_gpu: float = 0.0
    bytes_per_rank_sequence: float = 0.0
    """For each attention-DP rank and sequence of the largest graph, where there is more than one
    rank [byte]."""
    many_sequences: int = 2**30
    """Sequences of the largest graph above which that is half as much again [-]."""
    least_bytes: float = 0.0
    """At least this much on a device of `least_from_bytes` [byte]."""
    least_from_bytes: float = 0.0
    draft_bytes: float = 0.0
    """Beside that, where drafts are verified [byte]."""
    decimals: int = 12
    """Decimals to which the share that is left is rounded [-]."""
    encoder_share: float = 1.0
    """Share of the rest that is taken where an encoder of images of usual size is loaded [-]."""
    encoder_params: float = 1.0
    """Parameters of such an encoder [-]."""

    def of(
        self,
        total: float,
        chunk_tokens: int,
        graph_sequences: int,
        sharding: Sharding,
        latent: bool = False,
        drafts: int = 0,
    ) -> float:
        """Return the reserve on a device with `total` bytes [byte]."""
        ranks = sharding.attention_dp if sharding.attention_dp > 1 else 0
        each = self.bytes_per_rank_sequence * (1.5 if graph_sequences > self.many_sequences else 1)
        reserve = (
            self.bytes
            + (self.latent_prompt_graph_bytes if latent else self.prompt_graph_bytes)
            + self.bytes_per_chunk_token * max(chunk_tokens, self.least_chunk_tokens)
            + self.bytes_per_graph_sequence * graph_sequences
            + self.bytes_per_gpu * sharding.tp * sharding.attention_dp * sharding.pp
            + each * graph_sequences * ranks
        )
        if total >= self.least_from_bytes:
            reserve = max(reserve, self.least_bytes)
        return reserve + (self.draft_bytes if drafts else 0.0)

    def with_encoder(self, params: float) -> float:
        """Return the share of the rest that is taken with an image encoder of so many parameters:
        a tenth less for each time it is as large again, 0.8 to 1.05 of the usual [-]."""
        if not params or self.encoder_share == 1.0:
            return 1.0
        more = 1.0 - 0.1 * (params / self.encoder_params - 1.0)
        return self.encoder_share * min(max(more, 0.8), 1.05)


def activation_bytes(
    spec: ModelSpec,
    formats: Formats,
    sharding: Sharding,
    rules: Overheads,
    chunk_tokens: int,
    sequences: int,
) -> float:
    """Return the profiled peak of activations on one GPU [byte].

    max(logits_copies·S·V·4 + hidden_copies·T·h·2, T·(widest layer + layer_copies·h·2)) and the
    experts' workspace, T·k·(max(2·w, h) + w)·2 for width w on the GPU.
    """
    hidden = chunk_tokens * spec.hidden * _ACTIVATION_BYTES
    logits = sequences * spec.vocab * _LOGIT_BYTES
    encoder = rules.encoder_bytes if spec.vision_params else 0.0
    sampler = rules.logits_copies * logits + rules.hidden_copies * hidden + encoder
    layer = workspace = 0.0
    for group in spec.groups:
        for part in group.block.parts:
            if routed := part.routed():
                workspace = max(workspace, _workspace(routed, sharding))
                continue
            width, narrow = _width(part, formats, sharding)
            copies = rules.layer_copies + (rules.narrow_copies if narrow else 0.0)
            layer = max(layer, chunk_tokens * width + copies * hidden)
    if not rules.layer_copies:
        layer = 0.0
    return max(sampler, layer) + rules.workspace_copies * chunk_tokens * workspace


def _width(part: Part, formats: Formats, sharding: Sharding) -> tuple[float, bool]:
    """Bytes of intermediate values a token has in a part on one GPU; whether any is narrow."""
    linears = part.linears()
    if not linears:
        return 0.0, False
    last = linears[-1]
    inputs = last.inputs / min(sharding.tp, last.ways)
    outputs = sum(linear.outputs / min(sharding.tp, linear.ways) for linear in linears)
    narrow = formats.weights[last.role].compute in _NARROW
    return (outputs + inputs) * _ACTIVATION_BYTES + (inputs if narrow else 0.0), narrow


def _workspace(routed: RoutedExperts, sharding: Sharding) -> float:
    """Bytes a token's routed intermediate results take on one GPU [byte]."""
    width = routed.width * sharding.ep / sharding.ranks
    return routed.top_k * (max(2 * width, routed.inputs) + width) * _ACTIVATION_BYTES


def buffer_bytes(sharding: Sharding, rules: Overheads, linked: bool) -> float:
    """Return what lies outside the framework's allocator on one GPU [byte]."""
    if sharding.gpus == 1:
        return rules.process_bytes
    if not linked:
        return rules.process_bytes + rules.host_link_bytes
    return rules.process_bytes + rules.link_bytes + rules.link_bytes_per_gpu * sharding.gpus


def graph_bytes(spec: ModelSpec, sharding: Sharding, rules: Overheads) -> float:
    """Return the bytes of captured CUDA graphs on one GPU [byte]."""
    return rules.graph_bytes + rules.graph_bytes_per_layer * spec.layers / sharding.pp
