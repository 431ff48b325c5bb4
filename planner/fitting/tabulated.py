"""Serving rows of many deployments at once, their steps and prompts read off curves.

What a step and the prompts in it take depends on the sequences that run, and on nothing that is
fitted. So both are evaluated once for every row, over all batches it can run, and the steady state
of all rows is then solved together, with curves in the place of the evaluator. Between their nodes
they are straight lines of logarithms; where prompts begin to share steps, and where steps are full,
they bend, so that nodes stand there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from planner.fitting.scaled import ScaledServing
from planner.roofline import Array, Numeric
from planner.runs.groups import Ints
from planner.serving.prompts import Prompts
from planner.serving.steady import Habits, Queueing, steady_state

SPANS = 5
"""Spans of a curve: prompts alone in a step, held, side by side, sharing it, and filling it."""
NODES = 16
"""Straight lines of a span: they miss a curve by some parts in ten thousand [-]."""
FIGURES = ("step_s", "own_s", "held_s", "bunched_s")
"""What curves give: the time of a step, and those of prompts."""


class Tabulated:
    """Rows of serving, one after the other."""

    def __init__(self, parts: Sequence[ScaledServing]) -> None:
        """Evaluate the curves of rows; each part is those of one deployment."""
        self.admitted = np.concatenate([part.admitted for part in parts])
        bends = np.concatenate([part.bends for part in parts], axis=1)
        top = np.log(self.admitted)
        inner = np.clip(np.log(np.maximum(bends, 1.0)), 0.0, top)
        self.bounds = np.stack([np.zeros_like(top), *np.sort(inner, axis=0), top])
        """Logarithms of the batches between which spans lie, shape (span + 1, row)."""
        share = np.arange(SPANS * NODES + 1) / NODES
        span = np.minimum(share.astype(int), SPANS - 1)
        width = np.diff(self.bounds, axis=0)
        nodes = np.exp(self.bounds[span] + (share - span)[:, None] * width[span])
        ends = np.cumsum([len(part.clients) for part in parts])
        columns = np.split(nodes, ends[:-1], axis=1)
        tables = [part.curves(running) for part, running in zip(parts, columns, strict=True)]
        with np.errstate(divide="ignore", invalid="ignore"):
            self.curves = np.log(np.concatenate([table[0] for table in tables], axis=2))
        """Logarithms of FIGURES at the nodes, shape (figure, node, row) [s]."""
        self.spread, self.most = (
            _by_row(parts, [table[place] for table in tables]) for place in (1, 2)
        )
        self.clients, self.osl, self.room = (
            _by_row(parts, [getattr(part, name) for part in parts])
            for name in ("clients", "osl", "room")
        )
        self.queueing = _queueing(parts)
        self.habits, self.ranks = _habits(parts)
        self.rows: Ints = np.arange(len(self.admitted))

    def at(self, running: Array) -> Array:
        """Return FIGURES at batches of shape (variant, row), shape (figure, variant, row) [s]."""
        log = np.clip(np.log(running), 0.0, self.bounds[-1])
        span = sum((log > bound for bound in self.bounds[1:-1]), np.zeros(log.shape, dtype=int))
        low = self.bounds[span, self.rows]
        width = self.bounds[span + 1, self.rows] - low
        within = np.where(width > 0, (log - low) / np.maximum(width, 1e-12), 0.0)
        place = (span + np.minimum(within, 1.0)) * NODES
        before = np.minimum(place.astype(int), SPANS * NODES - 1)
        first, second = (self.curves[:, before + more, self.rows] for more in (0, 1))
        return np.asarray(np.exp(first + (place - before) * (second - first)))

    def predict(self, scales: Array) -> Mapping[str, Array]:
        """Return figures of rows at scales of shape (variant, row, 3), shape (variant, row)."""
        step, prompt, start = np.moveaxis(scales, 2, 0)
        last: list[Any] = [None, None]

        def figures(running: Array) -> Array:
            if last[0] is not running:  # the loop asks for steps and for prompts at one batch
                last[:] = running, self.at(running)
            return np.asarray(last[1])

        def prompts_at(running: Array) -> Prompts:
            own_s, held_s, bunched_s = figures(running)[1:] * prompt
            return Prompts(own_s, held_s, bunched_s, self.spread, self.most)

        state = steady_state(
            lambda running: np.asarray(step * figures(running)[0]),
            prompts_at,
            np.broadcast_to(self.clients, step.shape),
            self.osl,
            self.room,
            replace(self.queueing, scale=self.queueing.scale * start),
            lambda begun: self.habits.wait(begun, self.ranks),
        )
        return {"ttft_ms": state.ttft_s * 1e3, "tpot_ms": state.tpot_s * 1e3}


def _by_row(parts: Sequence[ScaledServing], values: Sequence[Numeric]) -> Array:
    """Return a value of each part for each of its rows."""
    pairs = zip(parts, values, strict=True)
    return np.concatenate([np.broadcast_to(value, len(part.clients)) for part, value in pairs])


QUEUEING = ("first_s", "burst", "wait", "ahead", "together", "scale")


def _queueing(parts: Sequence[ScaledServing]) -> Queueing:
    """Return how engines let requests in, row by row: arrays in the place of its numbers."""
    columns: Any = (_by_row(parts, [getattr(p.queueing, name) for p in parts]) for name in QUEUEING)
    return Queueing(*columns)


def _habits(parts: Sequence[ScaledServing]) -> tuple[Habits, Array]:
    """Return how engines were set up, and their attention-DP ranks, row by row."""
    ranks = _by_row(parts, [part.ranks for part in parts])
    waits = _by_row(parts, [part.habits.rank_wait for part in parts])
    polls = _by_row(parts, [part.habits.poll for part in parts])
    return Habits(polls, np.where(ranks > 1, waits, 0.0)), ranks
