"""Write the output of the commands in docs/jobs/*.md anew.

    python tools/write_jobs.py

A block that begins with ```console holds `$ planner …` and what it prints. Ages of prices are
counted to the day in `DAY`, so that the output is the same on any other.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from datetime import date
from pathlib import Path

from planner.cli import main
from planner.plans import money

ROOT = Path(__file__).parents[1]
DAY = date(2026, 12, 1)


class Day(date):
    """The day that prices are counted to."""

    @classmethod
    def today(cls) -> Day:
        """Return it."""
        return cls(DAY.year, DAY.month, DAY.day)


def output(command: str) -> str:
    """Return what a command prints."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        main(shlex.split(command.replace("\\\n", " ")))
    return text.getvalue()


def commands(text: str) -> list[tuple[str, str]]:
    """Return the commands of a page, each with the output that stands there."""
    examples = []
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.M | re.S):
        lines = block.split("\n")
        end = 0
        while lines[end].endswith("\\"):
            end += 1
        command = "\n".join(lines[: end + 1]).removeprefix("$ planner ")
        examples.append((command, "\n".join(lines[end + 1 :])))
    return examples


def rewrite(path: Path) -> None:
    """Write the outputs of one page anew."""
    text = path.read_text("utf-8")
    for command, before in commands(text):
        block = f"$ planner {command}\n"
        text = text.replace(f"{block}{before}```", f"{block}{output(command)}```")
    path.write_text(text, "utf-8")


if __name__ == "__main__":
    money.date = Day
    for page in sorted(ROOT.glob("docs/jobs/*.md")):
        rewrite(page)
