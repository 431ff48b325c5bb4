"""Routes of a whole workspace."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Controller, Request, Response, get, post
from litestar.di import NamedDependency
from litestar.params import JSONBody, QueryParameter
from litestar.response import Stream

from api.lanes import streamed
from api.services import services
from api.web.accept import BYTES, JSON_LINES
from api.web.answer import as_json
from api.web.idempotency import Once
from api.web.parameters import Cursor, IdempotencyKey
from api.workspace.schemas import Imported, ImportedLines, Workspace
from api.workspace.service import Workspaces

PATH = "/v1/workspace"
LINES = JSON_LINES[-1]


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

    @get(
        "/lines",
        operation_id="exportLines",
        sync_to_thread=True,
        opt={"produces": (LINES,), "streams": (LINES,)},
    )
    def lines(
        self,
        request: Request[Any, Any, Any],
        workspaces: NamedDependency[Workspaces],
        cursor: Cursor = None,
        limit: Annotated[
            int | None, QueryParameter(ge=1, le=2**31 - 1, description="things at most")
        ] = None,
    ) -> Stream:
        """Export everything as lines of JSON, API keys excepted; resumed at any cursor in them."""
        pieces = workspaces.lines(cursor, limit)
        lane = services(request).lanes["store"]
        return Stream(streamed(lane, pieces), headers={"content-type": LINES})


class LinesController(Controller):
    """Import by lines: its body has no limit, and is stored as it comes."""

    path = f"{PATH}/lines"
    tags = ["workspace"]  # noqa: RUF012 - the framework's own protocol

    @post(
        operation_id="importLines",
        request_max_body_size=None,
        opt={"consumes": (*JSON_LINES, BYTES), "reads_stream": True},
    )
    async def load(
        self,
        request: Request[Any, Any, Any],
        workspaces: NamedDependency[Workspaces],
        name: Annotated[
            str | None,
            QueryParameter(
                pattern="^[A-Za-z0-9._-]{1,64}$",
                description="of the import; what was stored under it is not stored again",
            ),
        ] = None,
    ) -> ImportedLines:
        """Store lines of an export under new ids, page by page; send again what is missing."""
        return await workspaces.load_lines(request.stream(), name)
