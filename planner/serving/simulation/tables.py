"""Step times of a deployment as tables that plain Python reads in nanoseconds.

A step's time is separable (`planner.step.evaluator`): a decode step is x(B) + s(B)·y(C) for B
sequences of C cached tokens on average; what prompts add is l(P + R) − l(R) for P tokens that ride
beside R, the prompts' own attention, and a constant for each step that carries any.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.deployment import Deployment
from planner.roofline import Array
from planner.serving.prompts import PromptLoad
from planner.step.timing import Features, item_time

CELLS = 1024
"""Cells of the table over contexts [-]."""
TOKENS = 96
"""Token counts at which linear weights are evaluated [-]."""
LENGTHS = 48
"""Prompt lengths at which their attention is evaluated [-]."""
OVERHEADS = ("layer", "step", "layer mixed", "step mixed")
"""Items that a step has once however many prompts it carries."""


@dataclass(frozen=True, slots=True, eq=False)
class StepTables:
    """Times of a replica's steps [s]."""

    decode_s: list[float]
    """x(B) with an empty cache, by whole batches from 0."""
    cached: list[float]
    """s(B), relative to the largest batch's."""
    context_s: list[float]
    """y(C) of the largest batch, by cells of the context."""
    cell: float
    """Width of such a cell [token]."""
    linear_s: list[float]
    """l(n), by whole tokens on a rank from 0."""
    lengths: Array
    """Prompt lengths [token]."""
    attention_s: Array
    """Attention of whole prompts of those lengths."""
    overhead_s: float
    """What a step has more on account of prompts."""

    def attention_of(self, isl: Array) -> Array:
        """Return the time of the attention of whole prompts of `isl` tokens [s]."""
        return np.interp(isl, self.lengths, self.attention_s)

    def step_s(self, batch: int, context: float) -> float:
        """Return the time of a decode step of `batch` sequences of mean `context` [s]."""
        at = context / self.cell
        low = int(at)
        row = self.context_s
        y = row[low] + (at - low) * (row[low + 1] - row[low])
        return self.decode_s[batch] + self.cached[batch] * y


def tables(
    deployment: Deployment, most_batch: int, longest: float, prefix_hit: float = 0.0
) -> StepTables:
    """Return the tables of a deployment for up to `most_batch` sequences of `longest` tokens."""
    batches = np.unique(np.round(np.geomspace(1, most_batch, 160)))
    tokens = deployment.tokens_per_step
    far = float(longest)
    near_s, far_s = (
        np.asarray(deployment.time_s(batches, context)) * tokens for context in (1.0, far)
    )
    whole = np.arange(most_batch + 1, dtype=float)
    near, more = np.interp(whole, batches, near_s), np.interp(whole, batches, far_s - near_s)
    near[0] = more[0] = 0.0
    contexts = np.linspace(0.0, far, CELLS + 1)
    sampled = np.unique(np.concatenate([[1.0], np.geomspace(1.0, far, 64)]))
    of_context = np.asarray(deployment.time_s(float(most_batch), sampled)) * tokens - near_s[-1]
    y = np.interp(contexts, sampled, of_context)
    top = more[-1] if more[-1] > 0 else 1.0
    linear, lengths, attention, overhead = _of_prompts(deployment, most_batch, far, prefix_hit)
    return StepTables(
        decode_s=near.tolist(),
        cached=(more / top).tolist(),
        context_s=[*y.tolist(), float(y[-1])],
        cell=far / CELLS,
        linear_s=linear.tolist(),
        lengths=lengths,
        attention_s=attention,
        overhead_s=overhead,
    )


def _of_prompts(
    deployment: Deployment, most_batch: int, longest: float, prefix_hit: float
) -> tuple[Array, Array, Array, float]:
    """Return l(n) by whole tokens, prompt lengths with their attention, and a step's overhead."""
    ranks = deployment.sharding.attention_dp
    lengths = np.unique(np.round(np.geomspace(1.0, longest, LENGTHS)))
    load = PromptLoad(deployment, lengths, prefix_hit, lengths)
    reached = load.efficiency.column(slice(None))
    own = int(load.own.sum())
    added = load.added(float(ranks), 0.0)
    own_s = item_time(added.features, reached)[:own] * reached.scale
    once = np.array([item.kind in OVERHEADS for item in load.items[:own]])
    attention = own_s[~once].sum(axis=0)
    overhead = float((own_s[once] / load.steps).sum(axis=0)[0])

    most = int(deployment.engine.chunk_tokens + most_batch * deployment.queries + 1)
    counts = np.unique(np.round(np.geomspace(1, most, TOKENS)))
    step = deployment.prompt_step
    features = step.features(
        np.full(counts.shape, float(ranks)), np.full(counts.shape, 1.0), counts
    )
    shared = Features(
        *(getattr(features, n)[~load.own] for n in ("compute_s", "memory_s", "launches", "visits"))
    )
    rows = load.efficiency.column(slice(own, own + int((~load.own).sum())))
    linear_s = (item_time(shared, rows) * rows.scale).sum(axis=0)
    whole = np.arange(most + 1, dtype=float)
    table = np.interp(whole, counts, linear_s)
    table[0] = 0.0
    return table, lengths, attention, overhead
