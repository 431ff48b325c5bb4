"""Tables of errors in Markdown, and which rows are in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from planner.accuracy.holdout import Held, error
from planner.roofline import Array

Select = Callable[[Held], bool]


def serves(held: Held) -> bool:
    """Return whether a row is a serving run."""
    return held.mode == "serving"


def flows(held: Held) -> bool:
    """Return whether a row is a serving run that does not queue."""
    return serves(held) and held.row.remarks.get("queued") != "1"


def spread(held: Held) -> bool:
    """Return whether a run that does not queue spreads whole experts over ranks."""
    return flows(held) and held.row.count("moe_ep") > 1


def whole(held: Held) -> bool:
    """Return whether a run that does not queue is of a mixture whose experts all ranks share."""
    return flows(held) and "moe" in held.subject.tags.get("network", "") and not spread(held)


def sound(held: Held) -> bool:
    """Return whether a row is a decode run without doubt."""
    return held.row.kind == "decode" and not held.doubt


def decodes(held: Held) -> bool:
    """Return whether a row is a decode run."""
    return held.row.kind == "decode"


def llama(held: Held) -> bool:
    """Return whether a row is a single stream of llama.cpp, without doubt."""
    inputs = held.row.inputs
    return sound(held) and inputs["engine"] == "llama.cpp" and held.row.count("batch") == 1


def stats(errors: Iterable[float]) -> str:
    """Return rows, median, mean, P90 of |predicted/measured − 1| and median log bias as cells."""
    values = np.array(list(errors))
    if not len(values):
        return "0 | – | – | – | –"
    share = shares(values)
    return (
        f"{len(values)} | {np.median(share):.1%} | {share.mean():.1%} | "
        f"{np.quantile(share, 0.9):.1%} | {-np.median(values):+.1%}"
    )


def errors_of(rows: Iterable[Held], name: str, select: Select) -> list[float]:
    """Return the log errors of a quantity over the rows selected that have it."""
    return [e for held in rows if select(held) and (e := error(held, name)) is not None]


HEADER = "| n | median | mean | P90 | bias |\n"


def table(first: str, rows: Iterable[tuple[str, str]]) -> str:
    """Return a table of names and the cells `stats` gives."""
    lines = [f"| {first} {HEADER}|---|---|---|---|---|---|"]
    return "\n".join([*lines, *(f"| {name} | {cells} |" for name, cells in rows), ""])


def label(way: str) -> str:
    """Return the name of a way of leaving out."""
    return "within the fit" if way == "nothing" else f"one {way} left out"


def shares(errors: Iterable[float]) -> Array:
    """Return |predicted/measured − 1| of log errors [-]."""
    return np.asarray(np.abs(np.exp(-np.array(list(errors))) - 1))
