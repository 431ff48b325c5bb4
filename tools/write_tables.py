"""Write the answers to the questions in docs/tables.md anew.

    python tools/write_tables.py

A block of ```sql is followed by one of ```text with what DuckDB answers over the table that the
page's command makes.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from pathlib import Path

from planner.cli import main

PAGE = Path(__file__).parents[1] / "docs" / "tables.md"
QUESTION = re.compile(r"^```sql\n(.*?)^```\n```text\n(.*?)^```$", re.M | re.S)


def make_table(text: str) -> None:
    """Make the table of the page in the current directory."""
    command = re.findall(r"^```console\n\$ planner (.*?)^```$", text, re.M | re.S)[0]
    main(shlex.split(command.replace("\\\n", " ")))


def answer(sql: str) -> str:
    """Return what a question is answered, as aligned text."""
    import duckdb

    relation = duckdb.sql(sql)
    rows = [tuple(relation.columns), *relation.fetchall()]
    cells = [[_text(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    )
    return "\n".join(lines) + "\n"


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def rewrite() -> None:
    """Write all answers of the page anew."""
    text = PAGE.read_text("utf-8")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        make_table(text)
        for sql, before in QUESTION.findall(text):
            block = f"```sql\n{sql}```\n```text\n"
            text = text.replace(f"{block}{before}```", f"{block}{answer(sql)}```")
    PAGE.write_text(text, "utf-8")


if __name__ == "__main__":
    rewrite()
