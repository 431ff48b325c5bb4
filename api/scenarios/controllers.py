"""Routes of stored scenarios."""

from __future__ import annotations

from typing import Annotated, Literal

from litestar import Controller, Response, delete, get, post, put
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody, QueryParameter

from api.catalog.names import canonical_gpu, canonical_model
from api.scenarios.repository import Filters
from api.scenarios.schemas import RevisionList, ScenarioPage, StoredPlan, StoredScenario
from api.scenarios.service import PATH, Scenarios
from api.web.answer import as_json
from api.web.idempotency import Once
from api.web.parameters import Cursor, IdempotencyKey, IfMatch, IfNoneMatch, Limit, Text
from api.web.tags import etag, require_match, tagged
from planner.scenario import Scenario

Number = Annotated[int, QueryParameter(ge=0, le=2**31 - 1, description="0 is the newest")]
Stored = NamedDependency[Scenarios]
Include = Annotated[
    Literal["plan"] | None, QueryParameter(description="`plan`: the stored plan too")
]
Filter = Annotated[str | None, QueryParameter(max_length=200)]


def _response(scenario: StoredScenario) -> Response[StoredScenario]:
    return Response(scenario, headers={"ETag": etag(scenario.revision)})


class ScenarioController(Controller):
    """Scenarios."""

    path = PATH
    tags = ["scenarios"]  # noqa: RUF012 - the framework's own protocol

    @post(operation_id="createScenario", sync_to_thread=True, opt={"made": True})
    def create(
        self,
        data: JSONBody[Scenario],
        scenarios: Stored,
        raw: NamedDependency[bytes],
        idempotency_key: IdempotencyKey = None,
    ) -> Response[StoredScenario]:
        """Store a scenario with the plan it has today."""
        once = Once.of(scenarios.workspace, idempotency_key, PATH, raw)
        return scenarios.create(data, once).response()

    @get(operation_id="listScenarios", sync_to_thread=True)
    def page(
        self,
        scenarios: Stored,
        tag: Filter = None,
        model: Filter = None,
        gpu: Filter = None,
        text: Text = None,
        deleted: Annotated[bool, QueryParameter()] = False,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> ScenarioPage:
        """List scenarios, oldest first; filters are joined by and."""
        known = (model and canonical_model(model), gpu and canonical_gpu(gpu))
        return scenarios.page(Filters(tag, *known, text, deleted), cursor, limit)

    @get("/{scenario_id:str}", operation_id="getScenario")
    async def read(
        self,
        scenario_id: FromPath[str],
        scenarios: Stored,
        include: Include = None,
        if_none_match: IfNoneMatch = None,
    ) -> Response[StoredScenario]:
        """Read a scenario, with its stored plan if asked; its ETag is the revision."""
        body, revision = await scenarios.read(scenario_id, plan=include == "plan")
        return tagged(if_none_match, body, etag(revision))

    @put("/{scenario_id:str}", operation_id="replaceScenario", sync_to_thread=True)
    def replace(
        self,
        scenario_id: FromPath[str],
        data: JSONBody[Scenario],
        scenarios: Stored,
        if_match: IfMatch = None,
    ) -> Response[StoredScenario]:
        """Ask the question anew; the earlier revision is kept."""
        return _response(scenarios.replace(scenario_id, data, require_match(if_match)))

    @delete("/{scenario_id:str}", operation_id="deleteScenario", sync_to_thread=True)
    def remove(
        self, scenario_id: FromPath[str], scenarios: Stored, if_match: IfMatch = None
    ) -> None:
        """Put a scenario away; it can be restored."""
        scenarios.delete(scenario_id, require_match(if_match))

    @post(
        "/{scenario_id:str}/restore",
        operation_id="restoreScenario",
        sync_to_thread=True,
        status_code=200,
        opt={"bodiless": True},
    )
    def restore(
        self, scenario_id: FromPath[str], scenarios: Stored, if_match: IfMatch = None
    ) -> Response[StoredScenario]:
        """Bring a deleted scenario back."""
        return _response(scenarios.restore(scenario_id, require_match(if_match)))

    @post(
        "/{scenario_id:str}/recompute",
        operation_id="recomputeScenario",
        sync_to_thread=True,
        status_code=200,
        opt={"bodiless": True, "refuses": True},
    )
    def recompute(
        self, scenario_id: FromPath[str], scenarios: Stored, if_match: IfMatch = None
    ) -> Response[StoredScenario]:
        """Store the answer of today as a new revision."""
        return _response(scenarios.recompute(scenario_id, require_match(if_match)))

    @get("/{scenario_id:str}/revisions", operation_id="listRevisions", sync_to_thread=True)
    def revisions(self, scenario_id: FromPath[str], scenarios: Stored) -> RevisionList:
        """List what the scenario was, revision by revision."""
        return scenarios.revisions(scenario_id)

    @get(
        "/{scenario_id:str}/plan",
        operation_id="getScenarioPlan",
        sync_to_thread=True,
        opt={"refuses": True},
    )
    def plan(
        self,
        scenario_id: FromPath[str],
        scenarios: Stored,
        revision: Number = 0,
        recompute: Annotated[bool, QueryParameter()] = False,
    ) -> Response[StoredPlan]:
        """Read the stored plan, whether it is stale and why, and with recompute what changed."""
        return as_json(scenarios.plan(scenario_id, revision, recompute))
