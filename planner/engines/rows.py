"""Tables of values by device and split: the first row that matches counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.engines.defaults import Rows
from planner.hw import Accelerator

GIB = 2.0**30


def row_for(rows: Rows, accelerator: Accelerator, tp: int) -> Mapping[str, Any] | None:
    """Return the row that holds on an accelerator at a tensor parallel size; None without one.

    A row may bound the device's memory (`from_gib`, `below_gib` [GiB]) and the tensor parallel size
    (`tp_from`, `tp_below`), and say of the device's name what it must not contain (`except`) or
    must (`only`).
    """
    gib = float(accelerator.memory_bytes or 0.0) / GIB
    return next((row for row in rows if _holds(row, accelerator.id, gib, tp)), None)


def row_anywhere(rows: Rows) -> Mapping[str, Any] | None:
    """Return the row of the smallest device, of one GPU: what holds where neither is known."""
    open_below = (
        row for row in rows if not any(name in row for name in ("from_gib", "tp_from", "only"))
    )
    return next(open_below, rows[-1] if rows else None)


def condition(row: Mapping[str, Any]) -> str:
    """Return in words what a row holds for, empty where it holds everywhere."""
    words = (
        ("from_gib", "from {:g} GiB"),
        ("below_gib", "below {:g} GiB"),
        ("tp_from", "from TP {}"),
        ("tp_below", "below TP {}"),
    )
    parts = [text.format(row[name]) for name, text in words if name in row]
    parts += [f"not on {', '.join(row['except'])}"] if "except" in row else []
    parts += [f"on {', '.join(row['only'])}"] if "only" in row else []
    return " ".join(parts)


def is_table(rows: Rows) -> bool:
    """Whether a value depends on the device or the split."""
    return len(rows) > 1 or any(condition(row) for row in rows)


def _holds(row: Mapping[str, Any], device: str, gib: float, tp: int) -> bool:
    return (
        row.get("from_gib", 0.0) <= gib < row.get("below_gib", float("inf"))
        and row.get("tp_from", 0) <= tp < row.get("tp_below", float("inf"))
        and not any(word in device for word in row.get("except", ()))
        and ("only" not in row or any(word in device for word in row["only"]))
    )
