"""Export and import of one workspace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

from sqlalchemy.orm import Session

from api.catalog import own
from api.catalog.own import ACCELERATOR, MODEL
from api.measurements.changes import RowsChange
from api.measurements.transfer import import_measurement
from api.services import Services
from api.store.tables import new_id
from api.web.idempotency import Once, StoredResponse, replayed, write_in, write_once
from api.web.problem import Problem
from api.workspace.lines import export_lines
from api.workspace.loading import KINDS, LINES, PAGE_BYTES, Line, LineImport
from api.workspace.reading import read_workspace
from api.workspace.schemas import ImportedLines, Workspace
from api.workspace.writing import write_workspace


class Workspaces:
    """Export and import of one workspace."""

    def __init__(self, services: Services, workspace: str) -> None:
        self.services = services
        self.database = services.database
        self.calibrations = services.calibrations
        self.workspace = workspace

    def export(self) -> bytes:
        """Return the whole workspace, from one state of the database."""
        with self.database.reading() as session:
            document = read_workspace(session, self.workspace)
        return document.model_dump_json(exclude_unset=True).encode()

    def load(self, document: Workspace, once: Once) -> StoredResponse:
        """Store an export in one transaction; raises 409 where an own id is something else."""
        for model in document.models:
            own.check(MODEL, model.config)
        for accelerator in document.accelerators:
            own.check(ACCELERATOR, accelerator.spec)

        measured = dict(import_measurement(self.workspace, item) for item in document.measurements)

        def make(session: Session) -> StoredResponse:
            session.add_all(measured)
            imported = write_workspace(session, self.workspace, document)
            return StoredResponse(imported.model_dump_json().encode())

        if not measured:
            return write_once(self.database, once, make)
        added = {row.id: runs for row, runs in measured.items()}
        return self.calibrations.change(
            self.workspace,
            RowsChange(
                after=lambda rows: {**rows, **added},
                write=lambda session, _: write_in(session, once, make),
                before=lambda: replayed(self.database, once),
            ),
        )

    def lines(self, cursor: str | None, limit: int | None) -> Iterator[bytes]:
        """Return the workspace as lines, from a cursor on; raises 400 for one of something else."""
        return export_lines(self.database, self.workspace, cursor, limit)

    async def load_lines(self, body: AsyncIterator[bytes], name: str | None) -> ImportedLines:
        """Store lines as they come, a page at a time.

        Raises a 4xx problem that names the line where one is not acceptable; pages before it are
        stored.
        """
        loading = LineImport(self.services, self.workspace, name or new_id())
        lane = self.services.lanes["refit"]
        await asyncio.wrap_future(lane.submit(int))  # a full lane refuses before anything is read
        async for page in pages(body, self.services.settings.max_import_bytes):
            await asyncio.wrap_future(lane.go_on(loading.page, page))
        await asyncio.wrap_future(lane.go_on(loading.end))
        counts = {f"{kind}s": loading.stored[kind] for kind in KINDS}
        return ImportedLines(
            name=loading.name, skipped=loading.skipped, complete=loading.complete, **counts
        )


async def pages(body: AsyncIterator[bytes], most: int) -> AsyncIterator[list[Line]]:
    """Yield the lines of a body, numbered from 1, as many as are stored together.

    Raises 413 for a line of more than `most` bytes.
    """
    rest, page, size, number = b"", [], 0, 0
    async for chunk in _ended(body):
        *whole, rest = (rest + chunk).split(b"\n")
        if len(rest) > most:
            raise Problem(413, f"line {number + len(whole) + 1}: accepted: {most} bytes at most")
        for line in whole:
            number += 1
            if not line.strip():
                continue
            page.append((number, line))
            size += len(line)
            if len(page) == LINES or size > PAGE_BYTES:
                yield page
                page, size = [], 0
    if page:
        yield page


async def _ended(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield a body, and the end of its last line."""
    async for chunk in body:
        yield chunk
    yield b"\n"
