"""Export and import of one workspace."""

from __future__ import annotations

from sqlalchemy.orm import Session

from api.catalog import own
from api.catalog.own import ACCELERATOR, MODEL
from api.measurements.changes import RowsChange
from api.measurements.transfer import import_measurement
from api.services import Services
from api.web.idempotency import Once, StoredResponse, replayed, write_in, write_once
from api.workspace.reading import read_workspace
from api.workspace.schemas import Workspace
from api.workspace.writing import write_workspace


class Workspaces:
    """Export and import of one workspace."""

    def __init__(self, services: Services, workspace: str) -> None:
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
