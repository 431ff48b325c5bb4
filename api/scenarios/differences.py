"""What changed between two answers to one question."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from api.scenarios.schemas import Difference

MOST = 500
"""Differences listed at most."""


def differences(stored: dict[str, Any], recomputed: dict[str, Any]) -> tuple[list[Difference], int]:
    """Return the figures of two plans that differ, and how many more there are than are listed.

    A field that an earlier release did not know counts as one that was left out: null. A part of
    the plan that it did not have is no difference.
    """
    before, after = (
        dict(_leaves({k: v for k, v in plan.items() if k in stored and k != "editions"}))
        for plan in (stored, recomputed)
    )
    changed = [
        _difference(name, before.get(name), after.get(name))
        for name in dict.fromkeys([*before, *after])
        if before.get(name) != after.get(name)
    ]
    return changed[:MOST], max(0, len(changed) - MOST)


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}[{index}]")
    else:
        yield path, value


def _difference(name: str, before: Any, after: Any) -> Difference:
    numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in (before, after))
    return Difference(
        figure=name,
        stored=before,
        recomputed=after,
        difference=after - before if numbers else None,
        ratio=after / before if numbers and before else None,
    )
