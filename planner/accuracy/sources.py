"""Runs of other people's set-ups: how far off they are, and what a benchmark's habits are worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from planner.accuracy.holdout import Held, Holdout, error, source_interval
from planner.accuracy.tables import errors_of, flows, serves, shares, stats, table
from planner.calibration.table import from_json
from planner.runs.predict import predict

QUANTITIES = (("tpot_ms", "TPOT"), ("ttft_ms", "TTFT"))

HEAD = """\
A source is who published a run: its flags, client, lengths and versions are habits that its rows
share. Two sources make up most rows and tune their engines for the benchmark; the others run what
an engine's documentation says. A user's set-up is a draw from sources, so that the interval of a
user's question is never narrower than that of sources left out.
"""


def sources(holdout: Holdout, held: Mapping[str, Sequence[Held]]) -> str:
    """Return the section on sources: errors of each left out, intervals, and its habits."""
    rows = [one for one in held["source"] if serves(one)]
    names = sorted({one.fold for one in rows})
    parts = ["## Sources\n", HEAD]
    for column, title in QUANTITIES:
        cells = [
            (name, stats(errors_of(rows, column, lambda h, name=name: flows(h) and h.fold == name)))
            for name in names
        ]
        parts += [f"### {title}, one source left out\n", table("source", cells)]
    return "\n".join([*parts, _held(rows, names), _habits(holdout, held["model"])])


def _held(rows: Sequence[Held], names: Sequence[str]) -> str:
    lines = [
        "### Intervals of sources\n",
        "Share of a source's runs inside the interval that the other sources left out make.\n",
        "| source | runs | TPOT | TTFT |\n|---|---|---|---|",
    ]
    for name in names:
        inside = [one for one in rows if one.fold == name and flows(one)]
        others = [one for one in rows if one.fold != name]
        cells = []
        for column, _ in QUANTITIES:
            low, high = np.log(source_interval(others, column))
            errors = np.array([e for one in inside if (e := error(one, column)) is not None])
            cells.append(f"{((errors >= low) & (errors <= high)).mean():.0%}")
        lines.append(f"| {name} | {len(inside)} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _habits(holdout: Holdout, held: Sequence[Held]) -> str:
    """What is lost where lengths, arrivals and set-up of a benchmark are not taken from it."""
    known = [one for one in held if flows(one)]
    lines = [
        "### Habits of benchmarks\n",
        (
            "Runs predicted with what is known of their benchmark (lengths, arrivals, room, how "
            "requests are taken in) and as the question of a user, who says none of it; the model "
            "left out.\n"
        ),
        "| median, mean | TPOT | TTFT |\n|---|---|---|",
        f"| with the benchmark's habits | {_both(known, 'tpot_ms')} | {_both(known, 'ttft_ms')} |",
    ]
    errors: dict[str, list[float]] = {column: [] for column, _ in QUANTITIES}
    keys = np.array([subject.tags["model"] for subject in holdout.subjects])
    n = holdout.serving
    for model in sorted({one.fold for one in known}):
        out = keys == model
        figures = from_json(holdout.refit.without(out[:n], out[n:]))
        plain = [one.row.anonymous() for one in known if one.fold == model]
        for row, found in zip(plain, predict(plain, figures), strict=True):
            for column, errors_of_column in errors.items():
                errors_of_column.append(float(np.log(row.measured[column] / found.values[column])))
    cells = [_of(shares(errors[column])) for column, _ in QUANTITIES]
    return "\n".join([*lines, f"| as a user asks | {' | '.join(cells)} |", ""])


def _both(rows: Sequence[Held], column: str) -> str:
    return _of(shares(errors_of(rows, column, flows)))


def _of(share: np.ndarray) -> str:
    return f"{np.median(share):.1%}, {share.mean():.1%}"
