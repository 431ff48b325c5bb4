"""Rows that share a deployment, so that they are computed at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.deployment import Deployment

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of one deployment."""

    deployment: Deployment
    rows: Ints
    """Their positions among all rows."""


def grouped(deployments: Sequence[Deployment]) -> list[Group]:
    """Return rows grouped by deployment and subject."""
    groups: dict[tuple[int, tuple[tuple[str, str], ...]], list[int]] = {}
    for position, one in enumerate(deployments):
        key = (id(one.step), tuple(sorted(one.subject.tags.items())))
        groups.setdefault(key, []).append(position)
    return [Group(deployments[rows[0]], np.array(rows)) for rows in groups.values()]
