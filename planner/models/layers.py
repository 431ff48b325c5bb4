"""Helpers the family importers share: equal neighbouring layers become one group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from planner.models.parts import Block, LayerGroup


def grouped(
    blocks: Iterable[tuple[Block, tuple[tuple[str, str], ...]]] | Iterable[Block],
) -> tuple[LayerGroup, ...]:
    """Return groups of equal layers, in order of first appearance.

    Accepts blocks, or pairs of a block and its format exceptions as (role, format) pairs. Order
    within the network does not change parameters, caches or the work of a step.
    """
    counts: Counter[tuple[Block, tuple[tuple[str, str], ...]]] = Counter()
    for item in blocks:
        counts[item if isinstance(item, tuple) else (item, ())] += 1
    return tuple(
        LayerGroup(count, block, formats=dict(formats))
        for (block, formats), count in counts.items()
    )
