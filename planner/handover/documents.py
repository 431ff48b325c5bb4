"""YAML and JSON documents read safely, with the line of every key.

Text is never run or rendered: templates are refused, tags other than YAML's own are refused, and
size, depth and what aliases expand to are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from planner.handover.refusal import Unreadable

MOST_BYTES = 256 * 1024
"""Bytes of a file."""
MOST_VALUES = 20_000
"""Values of a file, aliases expanded."""
MOST_DEPTH = 40
"""Objects within objects."""
MOST_DOCUMENTS = 100
_TEMPLATE = re.compile(r"\{\{-?\s*(?:[.$\w(/]|\")|\{%|<%|\$\{\{")
_JSON_TEXT = re.compile(r"'[^'\n]*'|\"(?:[^\"\\\n]|\\.)*\"")
_PREFIX = "tag:yaml.org,2002:"
_COLLECTIONS = {None, "!", f"{_PREFIX}seq", f"{_PREFIX}map"}
_LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Map(dict[Any, Any]):
    """An object, and the line of each key."""

    lines: dict[Any, int]
    line: int = 1


class Seq(list[Any]):
    """A list, and the line of each item."""

    lines: list[int]
    line: int = 1


def line_of(parent: Any, key: Any, default: int = 1) -> int:
    """Return the line of a key or an item."""
    if isinstance(parent, Map):
        return parent.lines.get(key, parent.line)
    if isinstance(parent, Seq) and isinstance(key, int) and key < len(parent.lines):
        return parent.lines[key]
    return default


def refuse_templates(text: str, first_line: int = 1) -> None:
    """Raise Unreadable where a text is a template that would have to be rendered first."""
    for number, line in enumerate(text.splitlines(), first_line):
        if "{{" in line or "{%" in line or "<%" in line:
            bare = _JSON_TEXT.sub("", line) if '{"' in line else line
            if _TEMPLATE.search(bare):
                raise Unreadable(
                    f"line {number}: a template is not rendered here; accepted: what "
                    "`helm template` or `kustomize build` prints"
                )


def documents(text: str, first_line: int = 1) -> list[Any]:
    """Return the documents of a YAML text; `first_line` is that of its first line.

    Raises Unreadable, one line that names the line of the text.
    """
    size = len(text.encode("utf-8", "replace"))
    if size > MOST_BYTES:
        raise Unreadable(f"file: {size} bytes; accepted: {MOST_BYTES} at most")
    refuse_templates(text, first_line)
    try:
        return list(_Builder(first_line).build(text))
    except yaml.YAMLError as error:
        line, problem = first_line, None
        if isinstance(error, yaml.MarkedYAMLError):
            line += error.problem_mark.line if error.problem_mark else 0
            problem = error.problem
        problem = problem or "a character that YAML does not have"
        raise Unreadable(f"line {line}: not YAML: {' '.join(str(problem).split())}") from None


class _Builder:
    """Builds values from the parser's events, which come one after another whatever the depth."""

    def __init__(self, first_line: int) -> None:
        self.first = first_line
        self.scalars = yaml.SafeLoader("")
        self.values = 0
        self.anchors: dict[str, tuple[Any, int]] = {}

    def build(self, text: str) -> Iterator[Any]:
        events = yaml.parse(text, Loader=_LOADER)
        count = 0
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                count += 1
                if count > MOST_DOCUMENTS:
                    raise Unreadable(f"file: more than {MOST_DOCUMENTS} documents")
                self.anchors = {}
                yield self._value(next(events), events, 0)

    def _line(self, event: Any) -> int:
        return self.first + int(event.start_mark.line)

    def _count(self, amount: int, line: int) -> None:
        self.values += amount
        if self.values > MOST_VALUES:
            raise Unreadable(f"line {line}: more than {MOST_VALUES} values, aliases expanded")

    def _value(self, event: Any, events: Iterator[Any], depth: int) -> Any:
        line = self._line(event)
        if depth > MOST_DEPTH:
            raise Unreadable(f"line {line}: more than {MOST_DEPTH} objects within each other")
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self.anchors:
                raise Unreadable(f"line {line}: alias *{event.anchor} stands for nothing above it")
            value, amount = self.anchors[event.anchor]
            self._count(amount, line)
            return value
        before = self.values
        self._count(1, line)
        if isinstance(event, yaml.ScalarEvent):
            value = self._scalar(event, line)
        elif event.tag not in _COLLECTIONS:
            raise Unreadable(f"line {line}: tag {event.tag[:60]} is not read")
        elif isinstance(event, yaml.SequenceStartEvent):
            value = self._sequence(events, depth, line)
        else:
            value = self._mapping(events, depth, line)
        if event.anchor is not None:
            self.anchors[event.anchor] = value, self.values - before
        return value

    def _scalar(self, event: Any, line: int) -> Any:
        tag = event.tag
        if tag is None or tag == "!":
            tag = self.scalars.resolve(yaml.ScalarNode, event.value, event.implicit)
        if not tag.startswith(_PREFIX):
            raise Unreadable(f"line {line}: tag {tag[:60]} is not read")
        if tag in {f"{_PREFIX}timestamp", f"{_PREFIX}merge", f"{_PREFIX}value"}:
            return event.value
        try:
            return self.scalars.construct_object(yaml.ScalarNode(tag, event.value))
        except (ValueError, OverflowError, yaml.YAMLError):
            raise Unreadable(
                f"line {line}: {event.value[:40]!r} is not what its tag says"
            ) from None

    def _sequence(self, events: Iterator[Any], depth: int, line: int) -> Seq:
        items, lines = Seq(), []
        for event in events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            block = isinstance(event, yaml.ScalarEvent) and event.style in ("|", ">")
            lines.append(self._line(event) + block)  # its text begins on the line below
            items.append(self._value(event, events, depth + 1))
        items.lines, items.line = lines, line
        return items

    def _mapping(self, events: Iterator[Any], depth: int, line: int) -> Map:
        items, lines = Map(), {}
        merged: list[Any] = []
        for event in events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            at = self._line(event)
            key = self._value(event, events, depth + 1)
            value = self._value(next(events), events, depth + 1)
            if key == "<<" and isinstance(value, (Map, Seq)):
                merged += value if isinstance(value, Seq) else [value]
                continue
            if isinstance(key, (Map, Seq)):
                raise Unreadable(f"line {at}: a key is an object; accepted: text")
            if key in items:
                raise Unreadable(f"line {at}: key {str(key)[:60]!r} is there twice")
            items[key], lines[key] = value, at
        for other in merged:
            if isinstance(other, Map):
                for key, value in other.items():
                    if key not in items:
                        items[key], lines[key] = value, other.lines[key]
        items.lines, items.line = lines, line
        return items
