"""Routes of a whole workspace."""

from __future__ import annotations

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import JSONBody

from api.web.answer import as_json
from api.web.idempotency import Once
from api.web.parameters import IdempotencyKey
from api.workspace.schemas import Imported, Workspace
from api.workspace.service import Workspaces

PATH = "/v1/workspace"


class WorkspaceController(Controller):
    """Export and import."""

    path = PATH
    tags = ["workspace"]  # noqa: RUF012 - the framework's own protocol

    @get("/export", operation_id="exportWorkspace", sync_to_thread=True)
    def export(self, workspaces: NamedDependency[Workspaces]) -> Response[Workspace]:
        """Export everything in the workspace as one document, API keys excepted."""
        return as_json(workspaces.export())

    @post("/import", operation_id="importWorkspace", sync_to_thread=True, opt={"lane": "refit"})
    def load(
        self,
        data: JSONBody[Workspace],
        workspaces: NamedDependency[Workspaces],
        raw: NamedDependency[bytes],
        idempotency_key: IdempotencyKey = None,
    ) -> Response[Imported]:
        """Store an export under new ids, all of it or nothing."""
        once = Once.of(workspaces.workspace, idempotency_key, f"{PATH}/import", raw)
        return workspaces.load(data, once).response()
