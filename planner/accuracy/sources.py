"""Runs of other people's set-ups: how far off they are, and what a benchmark's habits are worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from planner.accuracy.holdout import USER, Held, Holdout, error
from planner.accuracy.intervals import source_interval
from planner.accuracy.tables import errors_of, flows, serves, shares, stats, table

QUANTITIES = (("tpot_ms", "TPOT"), ("ttft_ms", "TTFT"))

HEAD = """\
A source is who published a run: its flags, client, lengths and versions are habits that its rows
share. Two sources make up most rows and tune their engines for the benchmark; the others run what
an engine's documentation says. A user's set-up is a draw from sources, so that the interval of a
user's question is never narrower than that of sources left out.
"""


def sources(holdout: Holdout, held: Mapping[str, Sequence[Held]]) -> str:
    """Return the section on sources: errors of each left out, intervals, and its habits."""
    of_users = [one for one in holdout.held(USER) if flows(one)]
    rows = [one for one in held["source"] if serves(one)]
    names = sorted({one.fold for one in rows})
    parts = ["## Sources\n", HEAD]
    for column, title in QUANTITIES:
        cells = [
            (name, stats(errors_of([h for h in rows if h.fold == name], column, flows)))
            for name in names
        ]
        parts += [f"### {title}, one source left out\n", table("source", cells)]
    return "\n".join([*parts, _held(of_users, names), _habits(held["source"], of_users)])


def _held(rows: Sequence[Held], names: Sequence[str]) -> str:
    lines = [
        "### Intervals of sources\n",
        (
            "Share of a source's runs, asked for as a user would, inside the interval that the "
            "other sources left out make.\n"
        ),
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


def _habits(held: Sequence[Held], of_users: Sequence[Held]) -> str:
    """What is lost where arrivals, room and set-up of a benchmark are not taken from it."""
    lines = [
        "### Habits of benchmarks\n",
        (
            "Runs of a source left out, predicted with what is known of their benchmark (arrivals, "
            "room, set-up, how requests are taken in), and as a user asks, who says none of it.\n"
        ),
        "| median, mean | TPOT | TTFT |\n|---|---|---|",
    ]
    known = [one for one in held if flows(one)]
    for name, rows in (("with the benchmark's habits", known), ("as a user asks", of_users)):
        lines.append(f"| {name} | {_both(rows, 'tpot_ms')} | {_both(rows, 'ttft_ms')} |")
    return "\n".join([*lines, ""])


def _both(rows: Sequence[Held], column: str) -> str:
    share = shares(errors_of(rows, column, flows))
    return f"{np.median(share):.1%}, {share.mean():.1%}"
