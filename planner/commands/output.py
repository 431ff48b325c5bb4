"""Printing: tables that fit the terminal, 80 columns in a pipe, JSON on request."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pydantic import BaseModel

    from planner.answer import NoteAnswer
    from planner.models.spec import Note
    from planner.plans.resolved import ResolvedLine

BOUND_COLOURS = {
    "memory": "cyan",
    "compute": "green",
    "launch": "yellow",
    "communication": "magenta",
}


WIDTH = 80
"""Characters of a line in a pipe."""
NARROWEST = 8
"""Characters that a column of text keeps when a table has to shrink."""
NAME = 18
"""Characters that the first column keeps as long as others can shrink."""
READABLE = 20
"""Characters that the last column keeps as long as others can shrink."""
GAP = 2
"""Characters between two columns."""


def line_width() -> int:
    """Return the characters of a line: the terminal's, or 80 in a pipe."""
    return max(40, shutil.get_terminal_size().columns) if sys.stdout.isatty() else WIDTH


def print_json(result: BaseModel) -> None:
    """Print an answer as JSON, the same as REST gives."""
    click.echo(result.model_dump_json(indent=2))


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], title: str = "", legend: str = ""
) -> None:
    """Print a table as wide as the line; the first and last column are left-aligned.

    Cells of text are folded where a table is too wide. `legend` explains its words.
    """
    lines = [tuple(columns), *(tuple(row) for row in rows)]
    if title:
        print_text(title)
    widths = fitted(list(zip(*lines, strict=True)))
    for number, line in enumerate(lines):
        for cells in _folded(line, widths):
            _print_cells(cells, widths, head=number == 0)
    if legend:
        print_text(legend, dim=True)


def fitted(columns: Sequence[Sequence[str]]) -> list[int]:
    """Return the widths of columns of cells [character], the widest shrunk until a line holds them.

    Words are kept whole, and the last column readable, as long as others can give way.
    """
    fitting = [max(map(len, cells)) for cells in columns]
    room = line_width() - GAP * (len(fitting) - 1)
    words = [_longest_word(cells) for cells in columns]
    widest = [min(fitting[0], NAME), *words[1:-1], max(words[-1], READABLE)]
    for floors in (widest, [len(columns[0][0]), *words[1:]], [NARROWEST] * len(columns)):
        while sum(fitting) > room:
            over = [i for i, width in enumerate(fitting) if width > floors[i]]
            if not over:
                break
            fitting[max(over, key=lambda i: fitting[i])] -= 1
    return fitting


def _longest_word(cells: Sequence[str]) -> int:
    """Characters that stay together: a word, or a figure with its unit."""
    parts = ([cell] if cell[:1].isdigit() else cell.split() for cell in cells)
    return max((len(part) for cell in parts for part in cell), default=0)


def _folded(line: Sequence[str], widths: Sequence[int]) -> Iterable[list[str]]:
    """Yield the lines that a row of cells takes; a name too long for its column has its own."""
    name, rest = line[0], line[1:]
    if len(name) > widths[0]:
        yield [name, *[""] * len(rest)]
        name = ""
    cells = [
        [name],
        *(
            textwrap.wrap(cell, width, break_on_hyphens=False) or [""]
            for cell, width in zip(rest, widths[1:], strict=True)
        ),
    ]
    for number in range(max(map(len, cells))):
        yield [cell[number] if number < len(cell) else "" for cell in cells]


def _print_cells(cells: Sequence[str], widths: Sequence[int], *, head: bool) -> None:
    colour = sys.stdout.isatty()
    last = len(cells) - 1
    shown = []
    for i, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        text = cell.ljust(width) if i in (0, last) else cell.rjust(width)
        if colour:
            text = click.style(text, bold=head or None, fg=BOUND_COLOURS.get(cell))
        shown.append(text if i < last or colour else text.rstrip())
    click.echo((" " * GAP).join(shown).rstrip())


def print_text(text: str, *, dim: bool = False) -> None:
    """Print a sentence, folded to the line."""
    for line in textwrap.wrap(text, line_width(), break_on_hyphens=False):
        click.secho(line, dim=dim and sys.stdout.isatty())


def print_verdict(text: str) -> None:
    """Print the one-sentence answer."""
    click.secho(text, bold=sys.stdout.isatty())


def print_resolved(rows: Iterable[ResolvedLine]) -> None:
    """Print what a scenario was resolved to, and what of it was assumed."""
    for row in rows:
        text = f"{row.text} (assumed)" if row.assumed else row.text
        lines = textwrap.wrap(text, line_width() - 13, break_on_hyphens=False)
        for number, line in enumerate(lines):
            click.echo(f"{row.label if number == 0 else '':11}  {line}")


def print_notes(notes: Iterable[NoteAnswer | Note]) -> None:
    """Print what the reader must know."""
    for note in notes:
        click.secho(f"note: {note.text} [{note.code}]", dim=sys.stdout.isatty())
