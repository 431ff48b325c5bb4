"""The blocks of a cache pool, and how many sequences they hold: an engine's page rule, resolved.

A pool is a few stores (one where all layers share their blocks). Of each, a sequence of c tokens
that has its prompt behind it holds

    held(c) = Σ count·(⌈min(c, reach)/tokens⌉ + extra)

blocks, and one whose prompt still runs in steps of `ahead` tokens

    peak(c) = Σ count·(⌈min(c, reach + ahead)/tokens⌉ + extra)

over its groups of layers: windows free what lies behind them only after the step that passed it.
Prompts run in one step at a time, so that n sequences fit where (n − 1)·held + peak ≤ blocks; with
n = 1 this is the check an engine makes when it starts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from planner.roofline import Array, Numeric

UNBOUNDED = 2**62
"""Reach of layers that keep every token [token]."""


@dataclass(frozen=True, slots=True)
class Term:
    """Blocks that one kind of layers takes of a store."""

    count: float
    """Blocks a page of `tokens` takes: groups of layers, or bytes where blocks are bytes [-]."""
    tokens: int = 1
    """Tokens of a page [token]."""
    reach: int = UNBOUNDED
    """Tokens a sequence keeps at most [token]."""
    extra: float = 0.0
    """Pages taken besides: a window that starts within one, the state of a sequence [-]."""
    ahead: int = 0
    """Tokens of unfinished steps kept beside the reach [token]."""
    weight: float = 1.0
    """Share of a block that the engine counts in what it prints [-]."""

    def held(self, context: Numeric) -> Numeric:
        """Return the blocks a sequence of `context` tokens holds [-]."""
        return self._pages(context, self.reach)

    def peak(self, context: Numeric) -> Numeric:
        """Return the blocks it holds while its prompt runs [-]."""
        return self._pages(context, self.reach + self.ahead)

    def _pages(self, context: Numeric, reach: int) -> Numeric:
        within = np.minimum(context, reach)
        return self.count * (np.ceil(within / self.tokens) + self.extra)


@dataclass(frozen=True, slots=True)
class Store:
    """Blocks of one kind and the layers that take them."""

    blocks: float
    terms: tuple[Term, ...]
    _rows: tuple[tuple[float, int, int, float, int], ...] = field(init=False, repr=False)
    """The terms as plain numbers: they are read for every point of a plan."""

    def __post_init__(self) -> None:
        rows = tuple((t.count, t.tokens, t.reach, t.extra, t.reach + t.ahead) for t in self.terms)
        object.__setattr__(self, "_rows", rows)

    def needed(self, sequences: float, context: float) -> float:
        """Return the blocks that `sequences` of `context` tokens take, one in its prompt [-]."""
        held = float(sum(term.held(context) for term in self.terms))
        peak = float(sum(term.peak(context) for term in self.terms))
        return sequences * held if peak == held else (sequences - 1.0) * held + peak

    def sequences(self, context: float) -> float:
        """Return the sequences of `context` tokens it holds; infinity where they take nothing."""
        held = peak = 0.0
        for count, tokens, reach, extra, furthest in self._rows:
            if context <= reach:
                held += count * (-(-context // tokens) + extra)
                peak += count * (-(-context // tokens) + extra)
            else:
                held += count * (-(-reach // tokens) + extra)
                within = context if context < furthest else furthest
                peak += count * (-(-within // tokens) + extra)
        if not held:
            return math.inf
        if peak == held:
            return self.blocks // held
        return (self.blocks - peak) // held + 1.0 if peak <= self.blocks else 0.0

    def roughly(self, sequences: float, most: int) -> tuple[int, int]:
        """Return two contexts between which the longest lies that `sequences` may have [token].

        They follow from pages that are not rounded up, and from pages that are all one larger.
        """
        return self._unrounded(sequences, most, 1.0), self._unrounded(sequences, most, 0.0)

    def _unrounded(self, sequences: float, most: int, more: float) -> int:
        """Return the context up to `most` at which blocks run out, pages being linear."""
        left, slope = self.blocks, 0.0
        corners = []
        for count, tokens, reach, extra, furthest in self._rows:
            left -= sequences * count * (extra + more)
            slope += sequences * count / tokens
            if reach < most:
                corners.append((reach, (sequences - 1.0) * count / tokens))
                corners.append((furthest, count / tokens))
        context = 0.0
        for corner, less in sorted(corners):
            if left < slope * (corner - context):
                break
            left -= slope * (corner - context)
            context, slope = float(corner), slope - less
        if left < 0:
            return 0
        room = left / slope if slope > 1e-300 else math.inf
        return int(min(context + room, most))


@dataclass(frozen=True, slots=True)
class Pool:
    """What one rank of a replica keeps caches and states in."""

    stores: tuple[Store, ...]
    printed: int | None
    """Tokens the engine prints for it; None where nothing grows [token]."""
    longest_start: int = UNBOUNDED
    """Longest context the engine starts for, where its check counts fewer blocks [token]."""

    def sequences(self, context: float) -> float:
        """Return the sequences of `context` tokens it holds at once [-]."""
        if context > self.longest_start:
            return 0.0
        room = math.inf
        for store in self.stores:
            held = store.sequences(context)
            room = held if held < room else room
        return room

    def sequences_of(self, contexts: Array) -> Array:
        """Return the same for an array of contexts, of its shape."""
        rooms = []
        for store in self.stores:
            held = sum(term.held(contexts) for term in store.terms) + np.zeros_like(contexts)
            peak = sum(term.peak(contexts) for term in store.terms) + np.zeros_like(contexts)
            with np.errstate(divide="ignore", invalid="ignore"):
                windows = np.floor_divide(store.blocks - peak, held) + 1.0
                plain = np.floor_divide(store.blocks, held)
            room = np.where(peak == held, plain, np.where(peak > store.blocks, 0.0, windows))
            rooms.append(np.where(held > 0, room, np.inf))
        return np.asarray(np.where(contexts > self.longest_start, 0.0, np.minimum.reduce(rooms)))

    def fits(self, sequences: float, context: float) -> bool:
        """Return whether so many sequences of `context` tokens fit."""
        return context <= self.longest_start and all(
            store.needed(sequences, context) <= store.blocks for store in self.stores
        )

    def longest(self, sequences: float, most: int) -> int:
        """Return the longest context that `sequences` may have, `most` at most [token]."""
        low = high = most = min(most, self.longest_start)
        for store in self.stores:
            below, above = store.roughly(sequences, most)
            low, high = min(low, below), min(high, above + 1)
        high = min(high, most)
        low = low if self.sequences(low) >= sequences else 0
        while low < high:
            middle = (low + high + 1) // 2
            if self.sequences(middle) >= sequences:
                low = middle
            else:
                high = middle - 1
        return low
