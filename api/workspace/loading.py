"""Lines of an export into a workspace, page by page: each page is stored as a whole or not at all.

What became of everything is stored under the name of the import, with the page: sent again under
the same name, from any line on, nothing is stored twice.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from pydantic import BaseModel
from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from api.catalog import own
from api.catalog.own import ACCELERATOR, MODEL
from api.catalog.schemas import OwnAccelerator, OwnModel
from api.measurements.changes import RowsChange
from api.measurements.transfer import ExportedMeasurement, import_measurement
from api.services import Services
from api.store.tables import ImportedRow, new_id
from api.web.body import read, refuse_nul
from api.web.problem import Problem
from api.workspace.lines import FORMAT
from api.workspace.schemas import ExportedComparison, ExportedScenario
from api.workspace.writing import add_scenarios, comparison_row

LINES = 200
"""Lines stored in one transaction, at most."""
PAGE_BYTES = 4_000_000
"""Size of such lines, about [byte]."""

Line = tuple[int, bytes]
"""A line with its number in the body."""
KINDS: dict[str, type[BaseModel]] = {
    "model": OwnModel,
    "accelerator": OwnAccelerator,
    "measurement": ExportedMeasurement,
    "scenario": ExportedScenario,
    "comparison": ExportedComparison,
}


@dataclass
class LineImport:
    """An import in progress."""

    services: Services
    workspace: str
    name: str
    stored: Counter[str] = field(default_factory=Counter)
    skipped: int = 0
    lines: int = 0
    """Lines that are stored or skipped."""
    complete: bool = False
    measured: bool = False

    def page(self, lines: Sequence[Line]) -> None:
        """Store lines; raises a 4xx problem that names the line, with nothing of them stored."""
        things = [thing for number, text in lines if (thing := self._thing(number, text))]
        stored: Counter[str] = Counter()
        with self.services.database.writing() as session:
            known = self._known(session, [thing.ident for thing in things])
            new = [thing for thing in things if thing.ident not in known]
            for kind, write in WRITERS.items():
                chosen = [thing for thing in new if thing.kind == kind]
                if chosen:
                    write(self, session, chosen)
                    stored[kind] += len(chosen)
        self.stored += stored
        self.skipped += len(things) - len(new)
        self.lines = lines[-1][0]

    def end(self) -> None:
        """Refit the workspace to the measurements that came in."""
        if self.measured:
            same: RowsChange[bool] = RowsChange(lambda rows: rows, lambda *_: True)
            self.services.calibrations.change(self.workspace, same)

    def _thing(self, number: int, text: bytes) -> _Thing | None:
        """Return what a line holds, None for one that only says where it stands."""
        try:
            refuse_nul(text)
            line = msgspec.json.decode(text)
            kind, value = next(iter(line.items()))
            if kind == "format" and value != FORMAT:
                raise Problem(422, f"format: {str(value)[:60]!r}; accepted: {FORMAT}")
            self.complete = self.complete or kind == "end"
            if kind in {"format", "cursor", "end"}:
                return None
            if kind not in KINDS or len(line) != 1:
                raise Problem(422, f"accepted: one of {', '.join(KINDS)}")
            document = read(KINDS[kind], value)
        except Problem as problem:
            raise self._at(number, problem) from None
        except (ValueError, AttributeError, StopIteration, RecursionError):
            raise self._at(number, Problem(400, "not an object of JSON")) from None
        self.measured = self.measured or kind == "measurement"
        return _Thing(number, kind, _ident(kind, document, text), document)

    def _at(self, number: int, problem: Problem) -> Problem:
        detail = f"line {number}: {problem.detail}; {self.lines} lines before are stored: send the"
        detail = f"{detail} rest under the name {self.name} to go on"
        return Problem(problem.status, detail[:2000], kind=problem.kind, errors=problem.errors)

    def _known(self, session: Session, idents: Sequence[str]) -> dict[str, str]:
        """Return the new ids of things that this import has stored before."""
        query = select(ImportedRow.exported_id, ImportedRow.new_id).where(
            ImportedRow.workspace == self.workspace,
            ImportedRow.name == self.name,
            ImportedRow.exported_id.in_(idents),
        )
        return dict(session.execute(query).tuples().all())

    def _remember(self, session: Session, things: Sequence[_Thing], new: Sequence[str]) -> None:
        rows = [
            {
                "workspace": self.workspace,
                "name": self.name,
                "exported_id": one.ident,
                "new_id": ident,
            }
            for one, ident in zip(things, new, strict=True)
        ]
        session.execute(insert(ImportedRow), rows)

    def _own(self, session: Session, things: Sequence[_Thing]) -> None:
        for one in things:
            kind = MODEL if one.kind == "model" else ACCELERATOR
            document: Any = one.document
            content = document.config if kind == MODEL else document.spec
            try:
                own.check(kind, content)
                own.store(session, self.workspace, kind, document.id, content)
            except Problem as problem:
                raise self._at(one.number, problem) from None

    def _measurements(self, session: Session, things: Sequence[_Thing]) -> None:
        rows = []
        for one in things:
            try:
                # of the kind of its line
                rows.append(import_measurement(self.workspace, one.document)[0])  # type: ignore[arg-type]
            except Problem as problem:
                raise self._at(one.number, problem) from None
        session.add_all(rows)
        self._remember(session, things, [row.id for row in rows])

    def _scenarios(self, session: Session, things: Sequence[_Thing]) -> None:
        scenarios: list[Any] = [one.document for one in things]
        self._remember(session, things, add_scenarios(session, self.workspace, scenarios))

    def _comparisons(self, session: Session, things: Sequence[_Thing]) -> None:
        new = [new_id() for _ in things]
        for one, ident in zip(things, new, strict=True):
            comparison: Any = one.document
            session.add(
                comparison_row(
                    self.workspace, comparison, ident, self._known(session, _named(comparison))
                )
            )
        self._remember(session, things, new)


@dataclass(frozen=True, slots=True)
class _Thing:
    """What a line holds."""

    number: int
    kind: str
    ident: str
    """Its id in the export, a digest where it has none."""
    document: BaseModel


def _ident(kind: str, document: Any, text: bytes) -> str:
    given = IDENTS[kind](document) if kind in IDENTS else None
    return given or hashlib.sha256(text).hexdigest()


IDENTS: dict[str, Callable[[Any], str | None]] = {
    "scenario": lambda scenario: scenario.id,
    "comparison": lambda comparison: comparison.answer.id,
}
"""The ids of things that have one; others are known by their content."""


def _named(comparison: ExportedComparison) -> list[str]:
    """Return the ids of scenarios that a comparison names."""
    sources = [source.scenario_id for source in comparison.answer.sources]
    compared = [item for item in comparison.asked.scenarios if isinstance(item, str)]
    return [ident for ident in (*sources, *compared) if ident]


WRITERS: dict[str, Callable[[LineImport, Session, Sequence[_Thing]], None]] = {
    "model": LineImport._own,
    "accelerator": LineImport._own,
    "measurement": LineImport._measurements,
    "scenario": LineImport._scenarios,
    "comparison": LineImport._comparisons,
}
