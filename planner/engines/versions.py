"""Versions of engines: releases, dates of builds and numbers of builds, and how they compare."""

from __future__ import annotations

import re

Version = tuple[str, tuple[int, ...]]
"""What a version is (`release`, `date` or `build`) and its numbers, which compare."""

_RELEASE = re.compile(r"^v?(\d+(?:\.\d+)+)")
_DATE = re.compile(r"(20\d\d)-?(0[1-9]|1[0-2])")
_BUILD = re.compile(r"^b?(\d{3,5})\b")


def version_of(text: str | None) -> Version | None:
    """Return what a version is and its numbers; None where it cannot be read.

    A release ("0.17.0", "1.0.0rc3"), the date of a build ("2025-07", "nightly-dev-20260402") or
    its number ("b6118", "6118").
    """
    text = (text or "").strip()
    if release := _RELEASE.match(text):
        return "release", numbers(release[1])
    if date := _DATE.search(text):
        return "date", (int(date[1]), int(date[2]))
    if build := _BUILD.match(text):
        return "build", (int(build[1]),)
    return None


def numbers(text: str) -> tuple[int, ...]:
    """Return all numbers in a version, which compare: `0.5.8.post1` is (0, 5, 8, 1).

    Zeros at the end are left out, as 0.33 means 0.33.0.
    """
    parts = [int(part) for part in re.findall(r"\d+", text)]
    while parts and not parts[-1]:
        parts.pop()
    return tuple(parts)
