"""Run the commands of docs/roofline.md and put what they print below them.

python tools/roofline_page.py
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

from planner.cli import main

PAGE = Path(__file__).parents[1] / "docs" / "roofline.md"
BLOCK = re.compile(r"^```text\n\$ planner ([^\n]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def printed(command: str) -> str:
    """Return what a command of the planner prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        main(shlex.split(command))
    return out.getvalue()


def renewed(text: str) -> str:
    """Return a page with the output of its commands as it is now."""
    return BLOCK.sub(lambda block: f"```text\n$ planner {block[1]}\n{printed(block[1])}```", text)


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text("utf-8")), "utf-8")
