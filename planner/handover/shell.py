"""Shell text as words with their lines: split, never run.

Quotes, backslashes, comments, here-documents and command separators are those of POSIX sh. What a
shell would substitute (`$NAME`, `$(…)`, backticks) is looked up in the assignments at hand, and
otherwise stays as it stands and is marked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.handover.refusal import Unreadable

MOST_WORDS = 5_000
"""Words of a text; a command line has tens."""
_VARIABLE = re.compile(r"\$\((\w+)\)|\$\{(\w+)(?::-([^}$]*))?\}|\$(\w+)")
_PLAIN = re.compile(r"[\w./:,=@%+-]+")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a command line."""

    text: str
    line: int
    open: bool = False
    """Whether it holds a substitution that is not known."""


@dataclass(slots=True)
class Script:
    """The commands of a text, and the files its here-documents write."""

    commands: list[list[Word]] = field(default_factory=list)
    files: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Text and first line of each here-document, by the name of the file it is written to."""


def substituted(text: str, known: Mapping[str, str]) -> tuple[str, bool]:
    """Return a text with the variables that are known put in, and whether some are not."""
    unknown = "`" in text

    def value(match: re.Match[str]) -> str:
        nonlocal unknown
        name = match[1] or match[2] or match[4]
        given = known.get(name, match[3])
        if given is None:
            unknown = True
            return match[0]
        return given

    return _VARIABLE.sub(value, text), unknown or "$(" in _VARIABLE.sub("", text)


def script(text: str, first_line: int = 1, known: Mapping[str, str] | None = None) -> Script:
    """Return the commands of a shell text; lines count from `first_line`.

    Raises Unreadable where a quote is left open or there are too many words.
    """
    return _Reader(text, first_line, dict(known or {})).read()


class _Reader:
    """Reads a text from left to right."""

    def __init__(self, text: str, line: int, known: dict[str, str]) -> None:
        self.text, self.line, self.known = text, line, known
        self.at = 0
        self.result = Script()
        self.words: list[Word] = []
        self.documents: list[tuple[str, str]] = []
        self.count = 0

    def read(self) -> Script:
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "\n":
                self._end_command()
                self._next_line()
                self._read_documents()
            elif char in " \t\r":
                self.at += 1
            elif self.text.startswith("\\\n", self.at):
                self.at += 1
                self._next_line()
            elif char == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif self.text.startswith("<<", self.at):
                self._here_document()
            elif char in ";&|()":
                self.at += 1
                self._end_command()
            elif char in "<>":
                self.at += 1
                self._add(Word(char, self.line))
            else:
                self._add(self._word())
        self._end_command()
        return self.result

    def _next_line(self) -> None:
        self.at += 1
        self.line += 1

    def _add(self, word: Word) -> None:
        self.count += 1
        if self.count > MOST_WORDS:
            raise Unreadable(f"line {word.line}: more than {MOST_WORDS} words")
        self.words.append(word)

    def _end_command(self) -> None:
        words = list(self.words)
        self.words.clear()
        while words and (words[0].text == "export" or _ASSIGNMENT.match(words[0].text)):
            name, sign, value = words.pop(0).text.partition("=")
            if sign:
                self.known[name] = value
        if words:
            self.result.commands.append(words)

    def _word(self) -> Word:
        line, text, unknown = self.line, "", False
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in " \t\r\n;&|<>" or (char in "()" and not text.endswith("$")):
                break
            if char in "'\"":
                part, open_ = self._quoted(char)
            elif char == "\\":
                part, open_ = self._escaped()
            elif char == "$" or char == "`":
                part, open_ = self._variable()
            else:
                plain = _PLAIN.match(self.text, self.at)
                part, open_ = (plain[0] if plain else char), False
                self.at += len(part)
            text, unknown = text + part, unknown or open_
        return Word(text, line, unknown)

    def _escaped(self) -> tuple[str, bool]:
        following = self.text[self.at + 1 : self.at + 2]
        self.at += 1
        if following == "\n":
            self._next_line()
            return "", False
        self.at += 1
        return following, False

    def _quoted(self, quote: str) -> tuple[str, bool]:
        start, line, escapes = self.at + 1, self.line, quote == '"'
        end = start
        while end < len(self.text) and self.text[end] != quote:
            end += 2 if escapes and self.text[end] == "\\" else 1
        if end >= len(self.text):
            raise Unreadable(f"line {line}: a quote {quote} is never closed")
        inner = self.text[start:end]
        self.at = end + 1
        self.line += inner.count("\n")
        if not escapes:
            return inner, False
        return substituted(re.sub(r'\\(["\\$`\n])', r"\1", inner), self.known)

    def _variable(self) -> tuple[str, bool]:
        match = _VARIABLE.match(self.text, self.at)
        if match:
            self.at = match.end()
            return substituted(match[0], self.known)
        if self.text.startswith("$(", self.at):
            end = self.text.find(")", self.at)
            end = len(self.text) - 1 if end < 0 else end
        else:
            close = self.text.find("`", self.at + 1) if self.text[self.at] == "`" else self.at
            end = len(self.text) - 1 if close < 0 else close
        part = self.text[self.at : end + 1]
        self.at = end + 1
        self.line += part.count("\n")
        return part, True

    def _here_document(self) -> None:
        match = re.compile(r"<<-?\s*(['\"]?)(\w+)\1").match(self.text, self.at)
        if not match:
            self.at += 2
            return
        names = [b.text for a, b in zip(self.words, self.words[1:], strict=False) if a.text == ">"]
        self.documents.append((match[2], names[-1] if names else ""))
        self.at = match.end()

    def _read_documents(self) -> None:
        while self.documents:
            mark, name = self.documents.pop(0)
            first, lines = self.line, []
            while self.at < len(self.text):
                end = self.text.find("\n", self.at)
                end = len(self.text) if end < 0 else end
                content = self.text[self.at : end]
                self.at = end
                if self.at < len(self.text):
                    self._next_line()
                if content.strip() == mark:
                    break
                lines.append(content)
            self.result.files[name] = ("\n".join(lines) + "\n", first)
