"""Printing: rich tables on a terminal, aligned plain text in a pipe, JSON on request."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pydantic import BaseModel

    from planner.answer import NoteAnswer
    from planner.models.spec import Note

BOUND_COLOURS = {
    "memory": "cyan",
    "compute": "green",
    "launch": "yellow",
    "communication": "magenta",
}


WIDEST = 44
"""Characters a plain column is padded to at most; longer cells run on."""


def print_json(result: BaseModel) -> None:
    """Print an answer as JSON, the same as REST gives."""
    click.echo(result.model_dump_json(indent=2))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], title: str = "") -> None:
    """Print a table; the first column is left-aligned, the others right, as figures are."""
    rows = [tuple(row) for row in rows]
    if sys.stdout.isatty():
        _print_rich(columns, rows, title)
        return
    if title:
        click.echo(title)
    widths = [
        min(max(len(line[i]) for line in [columns, *rows]), WIDEST) for i in range(len(columns))
    ]
    for line in [columns, *rows]:
        cells = [
            cell.ljust(width) if i == 0 or i == len(widths) - 1 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        click.echo("  ".join(cells).rstrip())


def _print_rich(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD)
    for i, column in enumerate(columns):
        table.add_column(
            column, justify="left" if i in (0, len(columns) - 1) else "right", overflow="fold"
        )
    for row in rows:
        table.add_row(*(Text(cell, style=BOUND_COLOURS.get(cell, "")) for cell in row))
    Console().print(table)


def print_verdict(text: str) -> None:
    """Print the one-sentence answer."""
    click.secho(text, bold=sys.stdout.isatty())


def print_notes(notes: Iterable[NoteAnswer | Note]) -> None:
    """Print what the reader must know, one line each."""
    for note in notes:
        click.secho(f"note: {note.text} [{note.code}]", dim=sys.stdout.isatty())
