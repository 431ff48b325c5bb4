"""Files that the user names, read as text within a size."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from planner.handover.documents import MOST_BYTES
from planner.handover.refusal import Unreadable


def read_texts(files: Sequence[Path], most: int = MOST_BYTES) -> dict[str, str]:
    """Return the text of each file by its name; `-` is the standard input.

    Raises Unreadable or OSError, one line that names the file.
    """
    texts = {}
    for path in files:
        if str(path) == "-":
            content = sys.stdin.buffer.read(most + 1)
        else:
            with path.open("rb") as file:
                content = file.read(most + 1)
        if len(content) > most:
            raise Unreadable(f"{path}: more than {most} bytes")
        try:
            texts[str(path)] = content.decode("utf-8-sig").replace("\r\n", "\n")
        except UnicodeDecodeError:
            raise Unreadable(f"{path}: not text in UTF-8") from None
    return texts
