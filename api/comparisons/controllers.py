"""Routes of comparisons."""

from __future__ import annotations

from typing import Any

from litestar import Controller, Request, Response, delete, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody

from api.comparisons.schemas import ComparisonPage, ComparisonQuery, StoredComparison
from api.comparisons.service import PATH, Comparisons
from api.web.accept import CSV, JSON, MARKDOWN, choose
from api.web.idempotency import Once
from api.web.parameters import Cursor, IdempotencyKey, Limit
from planner.plans.compare import to_csv, to_markdown

OFFERED = (JSON, MARKDOWN, CSV)
Service = NamedDependency[Comparisons]


def _rendered(
    request: Request[Any, Any, Any], body: bytes, status: int, headers: dict[str, str]
) -> Response[Any]:
    """Return a comparison in the form the client asked for."""
    kind = choose(request.headers.get("accept"), OFFERED)
    headers = {**headers, "Vary": "Accept"}
    if kind != JSON:
        comparison = StoredComparison.model_validate_json(body).comparison
        render = to_markdown if kind == MARKDOWN else to_csv
        body = render(comparison).encode()
        return Response(
            body, status_code=status, headers={**headers, "content-type": f"{kind}; charset=utf-8"}
        )
    return Response(body, status_code=status, headers=headers, media_type=JSON)


class ComparisonController(Controller):
    """Comparisons."""

    path = PATH
    tags = ["comparisons"]  # noqa: RUF012 - the framework's own protocol

    @post(
        operation_id="createComparison",
        sync_to_thread=True,
        opt={"scope": "read", "produces": OFFERED},
    )
    def create(
        self,
        request: Request[Any, Any, Any],
        data: JSONBody[ComparisonQuery],
        comparisons: Service,
        raw: NamedDependency[bytes],
        idempotency_key: IdempotencyKey = None,
    ) -> Response[StoredComparison]:
        """Compare scenarios; Accept chooses JSON, Markdown or CSV."""
        once = Once.of(comparisons.caller.workspace, idempotency_key, PATH, raw)
        stored = comparisons.create(data, once)
        return _rendered(request, stored.body, stored.status, stored.headers)

    @get(operation_id="listComparisons", sync_to_thread=True)
    def page(
        self, comparisons: Service, limit: Limit = 50, cursor: Cursor = None
    ) -> ComparisonPage:
        """List saved comparisons, oldest first."""
        return comparisons.page(cursor, limit)

    @get(
        "/{comparison_id:str}",
        operation_id="getComparison",
        sync_to_thread=True,
        opt={"produces": OFFERED},
    )
    def read(
        self, request: Request[Any, Any, Any], comparison_id: FromPath[str], comparisons: Service
    ) -> Response[StoredComparison]:
        """Read a saved comparison; Accept chooses JSON, Markdown or CSV."""
        return _rendered(request, comparisons.get(comparison_id), 200, {})

    @delete("/{comparison_id:str}", operation_id="deleteComparison", sync_to_thread=True)
    def remove(self, comparison_id: FromPath[str], comparisons: Service) -> None:
        """Delete a saved comparison."""
        comparisons.delete(comparison_id)
