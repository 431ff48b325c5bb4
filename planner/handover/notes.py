"""What `planner manifest` notes of a scenario that no argument says, in a comment or annotation."""

from __future__ import annotations

import json
import re
from typing import Any

from planner.handover.refusal import Unreadable

ANNOTATION = "decode-planner/question"
COMMENT = re.compile(r"^[ \t]*#[ \t]*decode-planner:[ \t]*(\{.*\})[ \t]*$", re.MULTILINE)


def noted(text: str, line: int) -> dict[str, Any]:
    """Return the fields noted. Raises Unreadable naming the line."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise Unreadable(f"line {line}: what planner noted is no JSON object")
    return content


def noted_in_comment(text: str) -> tuple[dict[str, Any], int]:
    """Return the fields noted in a comment of a text, and its line; none where there is none."""
    match = COMMENT.search(text)
    if match is None:
        return {}, 1
    line = text.count("\n", 0, match.start()) + 1
    return noted(match[1], line), line
