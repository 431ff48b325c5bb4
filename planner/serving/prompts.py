"""What prompts take from decoding: steps of their own, or a ride on the steps that decode.

An engine that mixes (`Engine.mixes_prompts`) puts the tokens of a prompt through the same step as
those that decode: weights are read, kernels launched and collectives started anyway, so that what
the prompt takes is what its tokens add to them, k·(t(T/k + R) − t(R)) for T tokens in k chunks
beside R that decode, and its own attention, state updates and host work. One that alternates stops
decoding for the whole of it: R = 0, and nothing is taken off.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from planner.calibration.subject import PHASED, PROMPT
from planner.deployment import Deployment
from planner.roofline import Array, Bools, Numeric
from planner.step.model_steps import prompt_context
from planner.step.timing import Efficiency, Features, Item, item_time


@dataclass(frozen=True, slots=True, eq=False)
class Added:
    """What the prompts of a step add to it; arrays of shape (item, point)."""

    features: Features
    coefficient: Array
    """Times each counts: positive in steps with the prompts, negative in those without [-]."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """Times of prompts [s]."""

    own_s: Numeric
    """What a prompt's own client waits for it."""
    held_s: Numeric
    """What a prompt alone takes from the decoding."""
    bunched_s: Numeric
    """What one of many takes that fill the tokens a step may hold together."""
    spread: Numeric = 0.0
    """Share of the tokens that a step may hold which a prompt takes, where prompts wait for steps
    with room; 0 where decoding waits until all prompts are done [-]."""
    most: Numeric = 1.0
    """Prompts that share a step at most [-]."""


@dataclass(frozen=True, eq=False)
class PromptLoad:
    """Prompts of a deployment under load; arrays broadcast."""

    deployment: Deployment
    isl: Array
    prefix_hit: Numeric
    of_a_token: Array
    """Length of the prompt a random token belongs to [token]."""

    @property
    def fresh(self) -> Array:
        """Tokens of a prompt that are not cached [token]."""
        return prompt_context(self.isl, self.prefix_hit)[1]

    @property
    def steps(self) -> Array:
        """Steps that a prompt spreads over [-]."""
        return np.ceil(self.fresh / self.deployment.engine.chunk_tokens)

    @property
    def most(self) -> Array:
        """Prompts that a step takes at most on one attention-DP rank [-]."""
        return np.maximum(np.floor(self.deployment.engine.chunk_tokens / self.fresh), 1.0)

    def together(
        self, running: Numeric, osl: Numeric, poll: Numeric = 1.0, rank_wait: Numeric = 0.0
    ) -> Array:
        """Return the prompts that share a step, on all ranks together [-].

        New ones are looked for every `poll` steps. Attention-DP ranks step together, so that a
        prompt on one stops them all; where it is held until every rank has one, for `rank_wait`
        steps at most, they run side by side.
        """
        ranks = self.deployment.sharding.attention_dp
        begun = running / osl
        least = np.clip(begun * rank_wait, 1.0, ranks)
        return np.asarray(np.clip(begun * poll, least, ranks * self.most))

    def at(
        self, running: Array, osl: Array, poll: Numeric = 1.0, rank_wait: Numeric = 0.0
    ) -> Prompts:
        """Return the times of prompts beside `running` sequences of `osl` output tokens."""
        one = self.deployment
        ranks, pp = one.sharding.attention_dp, one.sharding.pp
        prompts, many = self.together(running, osl, poll, rank_wait), self.most * ranks
        step_s, full_s = self.time_s(np.stack(np.broadcast_arrays(prompts, many)), running)
        return Prompts(
            own_s=step_s,
            held_s=step_s / np.maximum(prompts, pp),
            bunched_s=full_s / np.maximum(many, pp),
            spread=self.fresh / one.engine.chunk_tokens / ranks * one.engine.mixes_prompts,
            most=many,
        )

    @property
    def mixes(self) -> bool:
        """Whether prompts share steps with what decodes."""
        return self.deployment.engine.mixes_prompts

    @cached_property
    def own(self) -> Bools:
        """Which items of the step are the prompt's own, whatever shares it."""
        return np.array([item.kind in PHASED for item in self.deployment.prompt_step.items])

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """What prompts add to a step: their own items; the shared with them, and without."""
        names = RIDING if self.mixes else {}
        pairs = list(zip(self.deployment.prompt_step.items, self.own, strict=True))
        own = [Item(names.get(item.kind, item.kind), item.format) for item, own in pairs if own]
        shared = [item for item, own in pairs if not own]
        return (*own, *shared, *(shared if self.mixes else ()))

    def added(self, prompts: Numeric, running: Numeric) -> Added:
        """Return what `prompts` on all ranks together add to steps of `running` sequences."""
        one, own = self.deployment, self.own
        points = np.broadcast_arrays(
            np.asarray(prompts, float),
            np.asarray(running, float),
            *prompt_context(self.isl, self.prefix_hit, self.of_a_token),
            self.steps,
        )
        prompts, running, context, fresh, chunks = (x.ravel() for x in points)
        stage = np.maximum(prompts, one.sharding.pp)  # of `Step`, which runs a prompt alone
        beside = running * one.queries / stage * self.mixes
        tokens = [fresh, *(fresh / chunks + beside, beside)[: 1 + self.mixes]]
        rows = len(tokens)
        together = one.prompt_step.features(
            np.tile(prompts, rows), np.tile(context, rows), np.concatenate(tokens)
        )
        alone, *shared = (_points(together, at, rows) for at in range(rows))
        alone = _chosen(alone, own)
        parts = [(replace(alone, launches=alone.launches * chunks), np.ones_like(chunks))]
        for features, sign in zip(shared, (1.0, -1.0), strict=False):
            parts.append((_chosen(features, ~own), sign * chunks))

        return Added(
            Features(*(np.concatenate([getattr(f, n) for f, _ in parts]) for n in FEATURES)),
            np.concatenate([np.broadcast_to(c, f.compute_s.shape) for f, c in parts]),
        )

    @cached_property
    def efficiency(self) -> Efficiency:
        """What the items reach."""
        one = self.deployment
        return one.calibration.efficiency(self.items, one.subject, PROMPT)

    def time_s(self, prompts: Numeric, running: Numeric) -> Array:
        """Return the time that `prompts` together add to steps of `running` sequences [s]."""
        added = self.added(prompts, running)
        reached = self.efficiency.column(slice(None))
        seconds = item_time(added.features, reached) * reached.scale
        shape = np.broadcast_shapes(np.shape(prompts), np.shape(running), self.isl.shape)
        return np.asarray((seconds * added.coefficient).sum(axis=0)).reshape(shape)


RIDING = {"layer": "layer mixed", "step": "step mixed"}
"""Overheads that a step of an engine that mixes has on account of prompts, by those of a prompt
alone: the host prepares them while the device works, and graphs do not run."""

FEATURES = ("compute_s", "memory_s", "launches", "visits")


def _points(features: Features, at: int, parts: int) -> Features:
    """Return one of so many equal parts of the points."""
    size = features.compute_s.shape[1] // parts
    return Features(*(getattr(features, n)[:, at * size : (at + 1) * size] for n in FEATURES))


def _chosen(features: Features, items: Bools) -> Features:
    return Features(*(getattr(features, name)[items] for name in FEATURES))
