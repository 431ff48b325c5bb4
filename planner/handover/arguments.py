"""Parsers of engines' command lines, built from what their packages say they take.

Names, types, defaults and spellings are those of `planner/engines/data/parsers`, one file for each
release that was read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any

from planner.engines.names import FOLDER, read_json
from planner.engines.versions import numbers, version_of
from planner.handover.facts import engine_facts
from planner.handover.shell import Word

NEGATIONS = ("--no-", "-no-", "-nkvo", "-nocb")
"""What a flag begins with that turns its argument off; the short ones are llama.cpp's."""
_KINDS = {"str", "int", "float", "bool", "None", "Path", "N", "dict", "list"}
_CHOICE = re.compile(r"[\w.+-]+(?:\|[\w.+-]+)+$")
_SIZE = re.compile(r"(-?\d+(?:\.\d+)?)([kKmMgGtT]?i?)$")
_POWERS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument as an engine's package states it."""

    name: str
    type: str
    default: Any
    flags: tuple[str, ...]

    @property
    def flag(self) -> str:
        """The spelling to write: the first long one."""
        return next((each for each in self.flags if each.startswith("--")), self.flags[0])

    @property
    def is_switch(self) -> bool:
        """Whether it takes no value."""
        return set(self.type.split("|")) <= {"bool", "None"}

    @property
    def takes_many(self) -> bool:
        """Whether it takes one value or more."""
        return "list[" in self.type.lower()

    @property
    def choices(self) -> tuple[str, ...]:
        """The values it takes; empty where it takes others, too."""
        if not _CHOICE.match(self.type):
            return ()
        values = self.type.split("|")
        named = [value for value in values if value not in _KINDS and not value[:1].isupper()]
        free = {"str", "int", "float", "dict"} & set(values)
        return () if free or len(named) < len([v for v in values if v != "None"]) else tuple(named)


@dataclass(frozen=True, slots=True)
class Given:
    """A value that a command line or a configuration gives an argument."""

    argument: str
    value: Any
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Fault:
    """A word that was not understood, and why."""

    line: int
    text: str
    why: str


@dataclass(slots=True)
class Parsed:
    """A command line read: the values by argument, the rest, and what was not understood."""

    given: dict[str, Given] = field(default_factory=dict)
    rest: list[Word] = field(default_factory=list)
    """Words that belong to no argument."""
    faults: list[Fault] = field(default_factory=list)
    repeated: list[Given] = field(default_factory=list)
    """Values that a later one of the same argument replaces."""


@dataclass(frozen=True, slots=True, eq=False)
class ArgumentParser:
    """The arguments of one release."""

    engine: str
    version: str
    arguments: Mapping[str, Argument]
    flags: Mapping[str, Argument]
    dashes: bool
    """Whether underscores and hyphens are the same in a flag."""
    abbreviations: bool = False
    used: frozenset[str] = frozenset()
    """Arguments whose values a plan depends on."""

    def argument(self, flag: str) -> tuple[Argument, bool] | None:
        """Return the argument a flag belongs to, and whether the flag negates it."""
        spelled = self._spelled(flag)
        if spelled in self.flags:
            argument = self.flags[spelled]
            negates = spelled.startswith(NEGATIONS) and not argument.name.startswith("no_")
            return argument, negates
        if spelled.startswith("--no-") and f"--{spelled[5:]}" in self.flags:
            argument = self.flags[f"--{spelled[5:]}"]
            return (argument, True) if argument.is_switch else None
        if self.abbreviations and spelled.startswith("--") and len(spelled) > 3:
            longer = {id(a): a for f, a in self.flags.items() if f.startswith(spelled)}
            if len(longer) == 1:
                return next(iter(longer.values())), False
        return None

    def _spelled(self, flag: str) -> str:
        return flag.replace("_", "-") if self.dashes and flag.startswith("--") else flag

    def parse(self, words: Sequence[Word]) -> Parsed:
        """Return what the words after the command's name say."""
        parsed, at = Parsed(), 0
        while at < len(words):
            word = words[at]
            at += 1
            if not word.text.startswith("-") or _is_number(word.text) or len(word.text) < 2:
                parsed.rest.append(word)
                continue
            flag, sign, inline = word.text.partition("=")
            base, dot, path = flag.partition(".")
            match = self.argument(base if dot else flag)
            if match is None:
                known = f"not an argument of {self.engine} {self.version}"
                following = words[at] if at < len(words) else None
                text = word.text
                if not sign and following and not following.text.startswith("-"):
                    text, at = f"{text} {following.text}", at + 1
                parsed.faults.append(Fault(word.line, text, known))
                continue
            argument, negates = match
            if argument.is_switch:
                at = self._switch(parsed, argument, word, inline if sign else None, negates, at)
                continue
            values = [Word(inline, word.line, word.open)] if sign else []
            while not sign and at < len(words) and _is_value(words[at].text):
                values.append(words[at])
                at += 1
                if not argument.takes_many:
                    break
            self._value(parsed, argument, word, values, path)
        return parsed

    def _switch(
        self,
        parsed: Parsed,
        argument: Argument,
        word: Word,
        inline: str | None,
        negates: bool,
        at: int,
    ) -> int:
        value = True
        if inline is not None:
            if inline.lower() not in {"true", "false", "1", "0"}:
                parsed.faults.append(Fault(word.line, word.text, "takes no value"))
                return at
            value = inline.lower() in {"true", "1"}
        self._put(parsed, Given(argument.name, value is not negates, word.line, word.text))
        return at

    def _value(
        self, parsed: Parsed, argument: Argument, word: Word, values: list[Word], path: str
    ) -> None:
        flag = word.text.partition("=")[0]
        text = " ".join([flag, *(each.text for each in values)])
        if not values:
            parsed.faults.append(Fault(word.line, flag, "needs a value"))
            return
        if any(each.open for each in values) and argument.name not in self.used:
            self._put(parsed, Given(argument.name, text, word.line, text))
            return
        if any(each.open for each in values):
            why = "its value comes from a variable that is not given here"
            parsed.faults.append(Fault(word.line, text, why))
            return
        if path:
            self._put_part(
                parsed, argument, path, Given(argument.name, values[0].text, word.line, text)
            )
            return
        texts = [each.text for each in values]
        try:
            value = (
                [converted(argument, t) for t in texts]
                if argument.takes_many
                else converted(argument, texts[0])
            )
        except ValueError as error:
            parsed.faults.append(Fault(word.line, text, str(error)))
            return
        self._put(parsed, Given(argument.name, value, word.line, text))

    def _put(self, parsed: Parsed, given: Given) -> None:
        if given.argument in parsed.given:
            parsed.repeated.append(parsed.given[given.argument])
        parsed.given[given.argument] = given

    def _put_part(self, parsed: Parsed, argument: Argument, path: str, given: Given) -> None:
        """Put in `--argument.key value`, which is one key of an object."""
        before = parsed.given.get(argument.name)
        content = dict(before.value) if before and isinstance(before.value, Mapping) else {}
        content[path] = _plain(given.value)
        parsed.given[argument.name] = Given(argument.name, content, given.line, given.text)


def _is_number(text: str) -> bool:
    return re.match(r"-?\d+(\.\d+)?$", text) is not None


def _is_value(text: str) -> bool:
    return not text.startswith("-") or _is_number(text) or text == "-"


def _plain(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def converted(argument: Argument, text: str) -> Any:
    """Return a value as the argument's type has it; raises ValueError saying what is taken."""
    kinds = set(argument.type.split("|"))
    if argument.choices:
        if text not in argument.choices:
            raise ValueError(f"takes {', '.join(argument.choices)}")
        return int(text) if text.isdigit() else text
    if text[:1] in "{[" and not kinds <= {"str", "None", "int", "float"}:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise ValueError("takes JSON, which this is not") from None
    if kinds & {"int", "N"} and not kinds & {"str"}:
        return _whole(text)
    if "float" in kinds:
        try:
            value = float(text)
        except ValueError:
            raise ValueError("takes a number") from None
        if value != value or abs(value) == float("inf"):
            raise ValueError("takes a finite number")
        return value
    return text


def _whole(text: str) -> int | str:
    """Return a count; vLLM's take `8k` (thousand) and `8K` (1024), and `auto`."""
    size = _SIZE.match(text)
    if size and len(text) < 20:
        unit = size[2].removesuffix("i")
        factor = _BINARY[unit] if unit in _BINARY else _POWERS[unit.lower()]
        value = Fraction(size[1]) * factor
        if value.denominator == 1:
            return int(value)
    if text in {"auto", "all"}:
        return text
    raise ValueError("takes a whole number")


def parser_of(engine: str, version: str | None = None) -> ArgumentParser:
    """Return the parser of a release: that of the newest read up to `version`, else the oldest.

    Without a version, or with one that is a date, the newest.
    """
    parsed = version_of(version)
    return _parser(engine, parsed[1] if parsed and parsed[0] != "date" else None)


def parser_versions(engine: str) -> tuple[str, ...]:
    """Return the releases whose arguments were read, oldest first."""
    names = (path.stem for path in (FOLDER / "parsers").glob(f"{engine}-*.json"))
    return tuple(sorted((n.removeprefix(f"{engine}-") for n in names), key=numbers))


@cache
def _parser(engine: str, version: tuple[int, ...] | None) -> ArgumentParser:
    known = parser_versions(engine)
    older = [v for v in known if version is None or numbers(v) <= version]
    file = (older or known[:1])[-1]
    facts = engine_facts(engine)
    rows = read_json(f"parsers/{engine}-{file}.json")["arguments"]
    arguments = dict(_arguments(rows, facts.underscores))
    for name, kind, flag in facts.more_arguments:
        arguments.setdefault(name, Argument(name, kind, None, (flag,)))
    flags = {flag: argument for argument in arguments.values() for flag in argument.flags}
    if facts.dashes:
        flags = {flag.replace("_", "-"): argument for flag, argument in flags.items()}
    # an argument's own spelling wins over an alias that another's row lists
    flags |= {
        f"--{name.replace('_', '-')}": argument
        for name, argument in arguments.items()
        if not facts.underscores and f"--{name.replace('_', '-')}" in argument.flags
    }
    return ArgumentParser(
        engine, file, arguments, flags, facts.dashes, facts.abbreviations, facts.used
    )


def _arguments(
    rows: Mapping[str, Sequence[Any]], underscores: bool
) -> Iterable[tuple[str, Argument]]:
    for name, row in rows.items():
        listed = tuple(row[2]) if len(row) > 2 else ()
        own = f"--{name if underscores else name.strip('_').replace('_', '-')}"
        flags = listed if underscores and listed else tuple(dict.fromkeys((own, *listed)))
        yield name, Argument(name, row[0], row[1], flags)
