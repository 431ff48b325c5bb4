"""What is wrong with a deployment, by code: severity, meaning and fix of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from planner.answer import Answer
from planner.handover.facts import read_facts

Severity = Literal["error", "warning", "note"]
"""`error`: it does not start, or not as it says; `warning`: it wastes or hides something."""


class Finding(Answer):
    """One fault of a file."""

    code: str
    severity: Severity
    line: int
    message: str
    fix: str


@dataclass(frozen=True, slots=True)
class Code:
    """What a code means, for rules' descriptions."""

    severity: Severity
    title: str


CODES: dict[str, Code] = {
    name: Code(row[0], row[1]) for name, row in read_facts("lints.json")["codes"].items()
}
"""All codes."""


def finding(code: str, line: int, message: str, fix: str) -> Finding:
    """Return a finding of a code."""
    return Finding(
        code=code,
        severity=CODES[code].severity,
        line=max(line, 1),
        message=" ".join(message.split())[:400],
        fix=fix,
    )
