"""What a view of the page shows: texts by element, charts by name, and what is wrong by field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from api.web.problem import Problem
from planner.errors import InvalidInput, named, one_line

Query = list[tuple[str, str]]


@dataclass(slots=True)
class Shown:
    """One view, filled by a query."""

    texts: dict[str, str]
    """Of the form, by field."""
    errors: dict[str, str] = field(default_factory=dict)
    html: dict[str, str] = field(default_factory=dict)
    charts: dict[str, Any] = field(default_factory=dict)
    title: str = "Decode planner"
    more: dict[str, Any] = field(default_factory=dict)
    """Other values of its template."""

    @property
    def query(self) -> str:
        """The query that fills the form so."""
        return urlencode(self.texts)

    def refuse(self, error: Problem | InvalidInput, name: str = "") -> None:
        """Put the words of a refusal beside the field they are about."""
        if isinstance(error, Problem):
            self.errors.update(errors_of(error))
        else:
            message = one_line(error)
            self.errors[name or named(message)] = message

    def document(self) -> dict[str, Any]:
        """Return what a script of the page takes."""
        return {
            "errors": self.errors,
            "html": self.html,
            "charts": self.charts,
            "title": self.title,
        }


def errors_of(problem: Problem) -> dict[str, str]:
    """Return the messages of a problem by field, in its own words."""
    by_field = {error.field.partition(".")[0]: error.message for error in problem.errors}
    return by_field or {"": problem.detail}


def texts_of(query: Iterable[tuple[str, str]], defaults: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of a form, the defaults where nothing was sent."""
    sent = {name: text.strip() for name, text in query if text.strip()}
    return sent or dict(defaults)
