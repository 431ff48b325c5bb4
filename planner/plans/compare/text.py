"""A comparison as Markdown and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

from planner.plans.compare.answers import Attribution, Comparison, FigureRow
from planner.units import number, scaled, seconds

CSV_COLUMNS = (
    "section",
    "figure",
    "unit",
    "scenario",
    "step",
    "value",
    "difference",
    "ratio",
    "best",
)


def to_markdown(comparison: Comparison) -> str:
    """Return tables of figures, winners, the Pareto set and the attributions."""
    return "\n".join(_markdown(comparison)) + "\n"


def _markdown(comparison: Comparison) -> Iterator[str]:
    labels = [column.label for column in comparison.columns]
    named = list(enumerate(labels))
    yield f"# Comparison against {_cell(comparison.baseline)}"
    yield ""
    yield from _table(
        ["figure", *labels],
        [
            [f"{row.figure} ({row.meaning})", *(_value(row, i, name) for i, name in named)]
            for row in comparison.figures
            if any(value is not None for value in row.values)
        ],
    )
    yield "Bold is the best of those that fit; in brackets the ratio to the baseline."
    yield ""
    over = ", ".join(comparison.pareto.criteria)
    yield f"Pareto set over {over}: {', '.join(map(_cell, comparison.pareto.members)) or 'none'}."
    for beaten in comparison.pareto.dominated:
        yield f"{_cell(beaten.label)} is beaten by {_cell(beaten.by)}."
    for item in comparison.attributions:
        yield from _attribution(item)
    notes = [
        f"{column.label}: {note.text}" for column in comparison.columns for note in column.notes
    ] + [note.text for note in comparison.notes]
    if notes:
        yield ""
        yield "## Notes"
        yield ""
        yield from (f"- {_cell(note)}" for note in dict.fromkeys(notes))
    used = comparison.editions
    yield ""
    yield (
        f"Editions: models {used.models}, hardware {used.hardware}, engines {used.engines}, "
        f"calibration {used.calibration}."
    )


def _attribution(item: Attribution) -> Iterator[str]:
    yield ""
    yield f"## From {_cell(item.baseline)} to {_cell(item.other)}"
    yield ""
    yield f"{_cell(item.verdict)}."
    if item.contributions:
        yield ""
        names = ["+".join(step.fields) for step in item.steps]
        yield from _table(
            ["figure", item.baseline, *names, item.other, "difference"],
            [
                [
                    c.figure,
                    _shown(c.baseline, c.unit),
                    *(_signed(v, c.unit) for v in c.steps),
                    _shown(c.other, c.unit),
                    _signed(c.difference, c.unit),
                ]
                for c in item.contributions
            ],
        )
        changes = [
            f"{name}: {_setting(step.before[name])} → {_setting(step.after[name])}"
            for step in item.steps
            for name in step.fields
        ]
        yield f"Changed in this order: {_cell('; '.join(changes))}."
    yield ""
    rows = [
        [row.kernel, _ms(row.baseline_s), _ms(row.other_s), _ms(row.difference_s, "+")]
        for row in item.kernels
    ]
    sums = [sum(getattr(row, name) for row in item.kernels) for name in SUMMED]
    bold = [f"**{_ms(value, sign)}**" for value, sign in zip(sums, ("", "", "+"), strict=True)]
    rows.append(["**sum**", *bold])
    yield from _table(["kernel [ms]", item.baseline, item.other, "difference"], rows)


def _ms(value: float, sign: str = "") -> str:
    shown = f"{value * 1e3:{sign}.4f}"
    return "0" if float(shown) == 0 else shown


SUMMED = ("baseline_s", "other_s", "difference_s")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(map(_cell, head))} |"
    yield f"|---|{'---:|' * (len(head) - 1)}"
    for row in rows:
        yield f"| {' | '.join(map(_cell, row))} |"
    yield ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _value(row: FigureRow, index: int, label: str) -> str:
    value, ratio = row.values[index], row.ratios[index]
    if value is None:
        return "–"
    shown = _shown(value, row.unit)
    text = f"**{shown}**" if label in row.best else shown
    return text if ratio is None or ratio == 1.0 else f"{text} ({ratio:.3g}×)"


def _shown(value: float, unit: str) -> str:
    if unit == "s":
        return seconds(value, 4)
    if unit == "USD":
        return f"{value:.4g} USD"
    if unit in {"byte", "FLOP"}:
        return scaled(value, {"byte": "B"}.get(unit, unit), 4)
    if unit == "" and float(value).is_integer():
        return f"{value:,.0f}"
    return f"{number(value, 4)} {unit}".rstrip()


def _signed(value: float, unit: str) -> str:
    return "0" if value == 0 else f"{'+' if value > 0 else '−'}{_shown(abs(value), unit)}"


def _setting(value: object) -> str:
    if isinstance(value, dict):
        return str(value.get("id") or value.get("_name_or_path") or "inline")
    if isinstance(value, list):
        return ",".join(map(str, value[:4])) + ("…" if len(value) > 4 else "")
    return "default" if value is None else str(value)


def to_csv(comparison: Comparison) -> str:
    """Return one row for each figure of each scenario, each attributed step and each kernel."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for row in _rows(comparison):
        writer.writerow([_plain(cell) for cell in row])
    return text.getvalue()


def _rows(comparison: Comparison) -> Iterator[tuple[object, ...]]:
    for row in comparison.figures:
        for index, column in enumerate(comparison.columns):
            best = "best" if column.label in row.best else ""
            yield (
                "figure",
                row.figure,
                row.unit,
                column.label,
                "",
                row.values[index],
                row.differences[index],
                row.ratios[index],
                best,
            )
    for item in comparison.attributions:
        names = ["+".join(step.fields) for step in item.steps]
        for c in item.contributions:
            for name, value in zip(names, c.steps, strict=True):
                yield "attribution", c.figure, c.unit, item.other, name, "", value, "", ""
        for kernel in item.kernels:
            yield (
                "kernel",
                "tpot_s",
                "s",
                item.other,
                kernel.kernel,
                kernel.other_s,
                kernel.difference_s,
                "",
                "",
            )


def _plain(cell: object) -> object:
    """Return a cell that no spreadsheet takes for a formula."""
    if isinstance(cell, str) and cell[:1] in {"=", "+", "-", "@", "\t", "\r"}:
        return f"'{cell}"
    return "" if cell is None else cell
