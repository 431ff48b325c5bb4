"""Reading a page as a reader does: tables by caption, and figures back from their text."""

from __future__ import annotations

import re
from html.parser import HTMLParser

PREFIXES = {"P": 1e15, "T": 1e12, "G": 1e9, "M": 1e6, "k": 1e3, "m": 1e-3, "µ": 1e-6, "n": 1e-9}
FIGURE = re.compile(r"(-?[\d,]+(?:\.\d+)?(?:e[+-]?\d+)?)\s*(%|[PTGMkmµn](?=s|B|FLOP|\b)|)")


class Tables(HTMLParser):
    """The tables of a page: rows of texts, the head first, by caption."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self._rows: list[list[str]] = []
        self._into: list[str] | None = None
        self._caption: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        if tag == "caption":
            self._into = self._caption = []
        elif tag == "tr":
            self._rows.append([])
        elif tag in ("th", "td"):
            self._into = []
        elif tag == "table":
            self._rows = []

    def handle_endtag(self, tag: str) -> None:
        if tag in ("th", "td") and self._into is not None:
            self._rows[-1].append(" ".join("".join(self._into).split()))
            self._into = None
        elif tag == "caption":
            self._into = None
        elif tag == "table":
            self.tables["".join(self._caption).strip()] = self._rows

    def handle_data(self, data: str) -> None:
        if self._into is not None:
            self._into.append(data)

    def rows(self, caption: str) -> list[dict[str, str]]:
        """Return the rows of the table whose caption begins so, by the names of its head."""
        (table,) = (rows for name, rows in self.tables.items() if name.startswith(caption))
        head, *body = table
        return [dict(zip(head, row, strict=True)) for row in body]


def figures_in(text: str) -> list[float]:
    """Return the quantities of a text in base units: 20.9 ms is 0.0209, 65% is 0.65."""
    found = []
    for digits, unit in FIGURE.findall(text):
        factor = 0.01 if unit == "%" else PREFIXES.get(unit, 1.0)
        found.append(float(digits.replace(",", "")) * factor)
    return found


def figure(text: str) -> float:
    """Return the only, or the first, quantity of a text."""
    return figures_in(text)[0]
