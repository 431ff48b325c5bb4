"""Routes of stored scenarios."""

from __future__ import annotations

from typing import Annotated, Literal

from litestar import Controller, Response, delete, get, patch, post, put
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody, PathParameter, QueryParameter

from api.catalog.names import canonical_gpu, canonical_model
from api.scenarios import writing
from api.scenarios.listing import Filters, Sort
from api.scenarios.schemas import (
    RevisionList,
    ScenarioBatch,
    ScenarioList,
    ScenarioPage,
    StoredPlan,
    StoredScenario,
)
from api.scenarios.service import PATH, Scenarios
from api.web.accept import JSON, MERGE_PATCH
from api.web.body import json_of
from api.web.idempotency import Once
from api.web.parameters import (
    Cursor,
    IdempotencyKey,
    IfMatch,
    IfNoneMatch,
    Instant,
    Limit,
    OptionalIfMatch,
    Text,
)
from api.web.tags import etag, require_match, tagged, tagged_by_content
from planner.scenario import Scenario

Number = Annotated[int, QueryParameter(ge=0, le=2**31 - 1, description="0 is the newest")]
Stored = NamedDependency[Scenarios]
Include = Annotated[
    Literal["plan"] | None, QueryParameter(description="`plan`: the stored plan too")
]
Unique = Annotated[
    bool, QueryParameter(description="refuse a name that another scenario has (409)")
]
Stale = Annotated[
    bool | None,
    QueryParameter(description="those whose plan is of other editions than today's, or is not"),
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
        unique: Unique = False,
        idempotency_key: IdempotencyKey = None,
    ) -> Response[StoredScenario]:
        """Store a scenario with the plan it has today; 409 with unique=true if its name is taken"""
        path = f"{PATH}?unique" if unique else PATH
        once = Once.of(scenarios.workspace, idempotency_key, path, raw)
        return scenarios.create(data, once, unique=unique).response()

    @post("/batch", operation_id="createScenarios", sync_to_thread=True, opt={"several": True})
    def create_all(
        self,
        data: JSONBody[ScenarioBatch],
        scenarios: Stored,
        raw: NamedDependency[bytes],
        idempotency_key: IdempotencyKey = None,
    ) -> Response[ScenarioList]:
        """Store up to 100 scenarios with their plans, all of them or none."""
        once = Once.of(scenarios.workspace, idempotency_key, f"{PATH}/batch", raw)
        return writing.create_all(scenarios, data.scenarios, once).response()

    @put(
        "/by-name/{name:str}",
        operation_id="putScenario",
        sync_to_thread=True,
        opt={"may_make": True},
    )
    def put_named(
        self,
        name: Annotated[str, PathParameter(min_length=1, max_length=200)],
        data: JSONBody[Scenario],
        scenarios: Stored,
        if_match: OptionalIfMatch = None,
    ) -> Response[StoredScenario]:
        """Make the scenario of this name ask this question; one that is not there is made."""
        stored, new = writing.put_named(scenarios, name, data, if_match)
        headers = {"ETag": etag(stored.revision), "Location": f"{PATH}/{stored.id}"}
        return Response(stored, status_code=201 if new else 200, headers=headers)

    @get(operation_id="listScenarios", sync_to_thread=True)
    def page(
        self,
        scenarios: Stored,
        tag: Filter = None,
        model: Filter = None,
        gpu: Filter = None,
        text: Text = None,
        deleted: Annotated[bool, QueryParameter(description="those put away instead")] = False,
        name: Filter = None,
        engine: Filter = None,
        created_from: Instant = None,
        created_before: Instant = None,
        updated_from: Instant = None,
        stale: Stale = None,
        sort: Annotated[Sort, QueryParameter(description="`-` is descending")] = "created",
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> ScenarioPage:
        """List scenarios, oldest first unless sorted otherwise; filters are joined by and."""
        filters = Filters(
            tag,
            model and canonical_model(model),
            gpu and canonical_gpu(gpu),
            text,
            deleted,
            name,
            engine,
            created_from,
            created_before,
            updated_from,
            stale,
            sort,
        )
        return scenarios.page(filters, cursor, limit)

    @get("/{scenario_id:str}", operation_id="getScenario", opt={"as_is": True})
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

    @patch(
        "/{scenario_id:str}",
        operation_id="changeScenario",
        sync_to_thread=True,
        opt={
            "consumes": (MERGE_PATCH, JSON),
            "body": {"type": "object", "additionalProperties": True},
        },
    )
    def change(
        self,
        scenario_id: FromPath[str],
        raw: NamedDependency[bytes],
        scenarios: Stored,
        if_match: IfMatch = None,
    ) -> Response[StoredScenario]:
        """Change parts of the question by a JSON merge patch (RFC 7396): null takes a field away"""
        tag = require_match(if_match)
        return _response(writing.patch(scenarios, scenario_id, json_of(raw), tag))

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
        recompute: Annotated[bool, QueryParameter(description="today's answer too")] = False,
        if_none_match: IfNoneMatch = None,
    ) -> Response[StoredPlan]:
        """Read the stored plan, whether it is stale and why, and with recompute what changed."""
        return tagged_by_content(if_none_match, scenarios.plan(scenario_id, revision, recompute))
