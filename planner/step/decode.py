"""One decode step: the model's kernel laws under a sharding, evaluated for batch and context.

Everything is array arithmetic over (kernel, *points): a scalar question is the 0-d case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from planner.kernels import Kernel, expected_distinct_experts
from planner.models.parts import Formats
from planner.models.spec import ModelSpec, group_kernels
from planner.roofline import Array, Numeric, Work
from planner.step.parallel import Sharding

_SCALED = (
    "launches",
    "flops_per_token",
    "flops_per_cached",
    "weight_bytes",
    "bytes_per_sequence",
    "bytes_per_cached",
)


def step_kernels(spec: ModelSpec, formats: Formats, prompt: bool = False) -> tuple[Kernel, ...]:
    """Return the kernels of a decode step (or a prompt) over all layers, the LM head last."""
    kernels = [
        replace(kernel, **{name: getattr(kernel, name) * group.count for name in _SCALED})
        for group in spec.groups
        for kernel in group_kernels(group, formats, prompt)
    ]
    return (*kernels, spec.head_kernel(formats))


class Laws:
    """The coefficients of kernel laws (see `planner.kernels.Kernel`), stacked as columns."""

    def __init__(self, kernels: Sequence[Kernel], points: int) -> None:
        """Stack `kernels` into arrays of shape (kernel, 1, …) with `points` trailing axes."""

        def column(name: str) -> Array:
            values = np.array([getattr(kernel, name) for kernel in kernels], dtype=float)
            return values.reshape(values.shape + (1,) * points)

        self.flops_per_token = column("flops_per_token")
        self.flops_per_cached = column("flops_per_cached")
        self.weight_bytes = column("weight_bytes")
        self.bytes_per_sequence = column("bytes_per_sequence")
        self.bytes_per_cached = column("bytes_per_cached")
        self.window = column("window")
        self.top_k = column("top_k")
        self.routed = column("experts") > 0
        self.experts = np.where(self.routed, column("experts"), 1.0)
        self.weight_ways = column("weight_ways")
        self.flop_ways = column("flop_ways")
        self.cache_ways = column("cache_ways")
        self.launches = column("launches")
        self.heads = np.where(np.isfinite(self.cache_ways), self.cache_ways, 0.0)


class Step:
    """A step of a model under a sharding; `work` evaluates it."""

    def __init__(self, kernels: Sequence[Kernel], sharding: Sharding) -> None:
        """Keep the kernels of a step over all layers of one replica."""
        self.kernels = tuple(kernels)
        self.sharding = sharding
        self._laws: dict[int, Laws] = {}

    @cached_property
    def unrouted(self) -> Step:
        """The same step reading all experts whatever the batch."""
        return Step(tuple(kernel.unrouted() for kernel in self.kernels), self.sharding)

    def laws(self, points: int) -> Laws:
        """Return the coefficients shaped to broadcast over `points` axes."""
        if points not in self._laws:
            self._laws[points] = Laws(self.kernels, points)
        return self._laws[points]

    def work(self, batch: Numeric, context: Numeric, queries: Numeric = 1.0) -> StepWork:
        """Return the work of one step for `batch` sequences with `context` cached tokens each.

        `batch` [-] and `context` [token] broadcast; `queries` is the tokens a sequence puts through
        a step [-]: 1, more where drafts are verified, the prompt's length in a prefill.
        """
        batch, context = np.broadcast_arrays(
            np.asarray(batch, dtype=float), np.asarray(context, dtype=float)
        )
        law, split = self.laws(batch.ndim), self.sharding
        micro = np.maximum(batch / split.pp, np.minimum(batch, 1.0))
        sequences = np.maximum(micro / split.attention_dp, np.minimum(micro, 1.0))

        attended = np.minimum(context, law.window)
        flops = (law.flops_per_token + law.flops_per_cached * attended) * queries
        cache = law.bytes_per_sequence + law.bytes_per_cached * attended
        hit = _share_hit(law, micro * queries)
        weights = law.weight_bytes * hit

        flop_share = np.where(
            law.routed, micro / split.ranks, sequences / np.minimum(split.tp, law.flop_ways)
        )
        weight_share = np.where(law.routed, 1.0 / split.ranks, split.share(law.weight_ways))
        cache_share = split.share(law.cache_ways)
        experts_hit = law.experts * hit / split.ep
        visits = np.where(
            law.routed,
            law.launches / 2 * experts_hit,
            law.launches * law.heads * cache_share * sequences,
        )
        return StepWork(
            rank=Work(flops * flop_share, weights * weight_share + cache * sequences * cache_share),
            flops=flops * batch,
            weight_bytes=weights * weight_share * split.ranks * (batch / micro),
            cache_bytes=cache * batch * split.tp * cache_share,
            visits=visits,
            rank_tokens=sequences * queries,
            stage_tokens=micro * queries,
        )


def _share_hit(law: Laws, tokens: Array) -> Array:
    """Share of a kernel's weights a step reads: the distinct experts hit, or all [-]."""
    return np.where(
        law.routed, expected_distinct_experts(law.experts, law.top_k, tokens) / law.experts, 1.0
    )


@dataclass(frozen=True, slots=True, eq=False)
class StepWork:
    """Work of a step by kernel, arrays of shape (kernel, *points).

    With pp > 1 a step is pp microbatches; `rank` is one of them over all layers.
    """

    rank: Work
    """On the busiest rank, what one sequence waits for."""
    flops: Array
    """Over all GPUs; what replicated ranks repeat counts once [FLOP]."""
    weight_bytes: Array
    """Weights read over all GPUs and microbatches [byte]."""
    cache_bytes: Array
    """Cache and state moved over all GPUs, copies on replicating ranks included [byte]."""
    visits: Array
    """Pieces of work on a rank that cost time beside their bytes: experts hit, or (sequence, KV
    head) pairs, over all layers [-]."""
    rank_tokens: Array
    """Tokens of a microbatch on one attention-DP rank, shape (*points) [token]."""
    stage_tokens: Array
    """Tokens of a microbatch on all ranks of a stage, shape (*points) [token]."""

    @property
    def bytes(self) -> Array:
        """Bytes moved over all GPUs by kernel [byte]."""
        return self.weight_bytes + self.cache_bytes

    @property
    def intensity(self) -> Array:
        """Arithmetic intensity of the whole step, shape (*points) [FLOP/byte]."""
        return np.asarray(np.divide(self.flops.sum(axis=0), self.bytes.sum(axis=0)))
