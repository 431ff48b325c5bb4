"""What changed between two versions of an engine, in words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any


def drift(
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    old_rules: Mapping[str, Any],
    new_rules: Mapping[str, Any],
) -> str:
    """Return a report: arguments added, removed and changed, tables, functions to read again.

    `old` and `new` are whole parsers, the rules those of the facts of either version.
    """
    lines = [f"{new['engine']}: {old['version']} to {new['version']}"]
    before, after = old["arguments"], new["arguments"]
    added = [f"+ {name}: {_text(after[name])}" for name in sorted(after.keys() - before.keys())]
    removed = [f"- {name}: {_text(before[name])}" for name in sorted(before.keys() - after.keys())]
    both = sorted(before.keys() & after.keys())
    changed = [line for name in both for line in _changes(name, before[name], after[name])]
    lines.append(
        f"arguments: {len(after)}; {len(added)} added, {len(removed)} removed, "
        f"{len(changed)} changed"
    )
    lines += [*changed, *removed, *added]
    lines += _tables(old_rules, new_rules)
    lines += _functions(old["by_hand"], new["by_hand"])
    return "\n".join(lines)


def _text(row: list[Any]) -> str:
    return f"{row[0]} = {json.dumps(row[1])}"


def _changes(name: str, old: list[Any], new: list[Any]) -> Iterator[str]:
    if old[1] != new[1]:
        yield f"~ {name}: default {json.dumps(old[1])} to {json.dumps(new[1])}"
    if old[0] != new[0]:
        gone = [part for part in old[0].split("|") if part not in new[0].split("|")]
        come = [part for part in new[0].split("|") if part not in old[0].split("|")]
        words = [*(f"without {part}" for part in gone), *(f"with {part}" for part in come)]
        yield f"~ {name}: type {', '.join(words) or 'in another order'}"
    if old[2:] != new[2:]:
        yield f"~ {name}: flags {json.dumps(old[2:])} to {json.dumps(new[2:])}"


def _tables(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(old.keys() | new.keys()):
        before, after = (side.get(name, {}).get("rows", []) for side in (old, new))
        if before != after:
            yield f"table of {name} by device:"
            yield from (f"  - {json.dumps(row)}" for row in before if row not in after)
            yield from (f"  + {json.dumps(row)}" for row in after if row not in before)


def _functions(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name, {}), new.get(name, {})
        if not after:
            yield f"gone: {name} ({before['file']}:{before['line']}), whose rules were read by hand"
        elif before.get("digest") != after["digest"]:
            yield f"to be read by hand: {name} ({after['file']}:{after['line']}) is not the same"
