"""Routes that answer without storing."""

from __future__ import annotations

from litestar import Controller, Response, post
from litestar.di import NamedDependency
from litestar.params import FromQuery, JSONBody

from api.plans.repeated import AnyRequest, answer_at_once, remember
from api.plans.schemas import RooflineQuery
from api.plans.service import Plans
from api.plans.tables import OFFERED
from api.web.accept import JSON, choose
from api.web.answer import as_json
from planner.answer import Plan
from planner.plans.fleet import Fleet
from planner.plans.fleet_request import FleetRequest
from planner.plans.recommend import Recommendation, RecommendationRequest
from planner.plans.sweep import SweepRequest, SweepResult
from planner.scenario import Scenario
from planner.step.placement import Roofline

READ = {"scope": "read", "lane": "compute"}
Service = NamedDependency[Plans]


class PlanController(Controller):
    """Plans, sweeps, recommendations, fleets, rooflines."""

    path = "/v1"
    tags = ["plans"]  # noqa: RUF012 - the framework's own protocol

    @post(
        "/plans",
        operation_id="createPlan",
        status_code=200,
        opt=READ,
        before_request=answer_at_once,
    )
    async def plan(
        self,
        request: AnyRequest,
        data: JSONBody[Scenario],
        plans: Service,
        advice: FromQuery[bool] = False,
    ) -> Response[Plan]:
        """Answer one scenario without storing it; with `advice=true` its levers too."""
        answer = await plans.plan_bytes(data, advice)
        if not plans.names.used:
            await remember(request, answer)
        return as_json(answer)

    @post(
        "/sweeps",
        operation_id="createSweep",
        sync_to_thread=True,
        status_code=200,
        opt={**READ, "produces": OFFERED, "lane": "long"},
    )
    def sweep(
        self, request: AnyRequest, data: JSONBody[SweepRequest], plans: Service
    ) -> Response[SweepResult]:
        """Answer every combination of the axes as columns; Accept chooses JSON, CSV or Parquet."""
        kind = choose(request.headers.get("accept"), OFFERED)
        body = plans.sweep(data, kind)
        if kind == JSON:
            return as_json(body)
        return Response(body, headers={"content-type": kind, "Vary": "Accept"})  # type: ignore[arg-type]

    @post(
        "/recommendations",
        operation_id="createRecommendation",
        sync_to_thread=True,
        status_code=200,
        opt=READ,
    )
    def recommend(
        self, data: JSONBody[RecommendationRequest], plans: Service
    ) -> Response[Recommendation]:
        """Say which batch to run on each accelerator, and what binds it."""
        return as_json(plans.recommend(data))

    @post(
        "/fleets",
        operation_id="createFleet",
        sync_to_thread=True,
        status_code=200,
        opt={**READ, "lane": "long"},
    )
    def fleet(self, data: JSONBody[FleetRequest], plans: Service) -> Response[Fleet]:
        """Say how many GPUs a day's shape of requests takes, by three ways of scaling."""
        return as_json(plans.fleet(data))

    @post(
        "/roofline", operation_id="createRoofline", sync_to_thread=True, status_code=200, opt=READ
    )
    def roofline(self, data: JSONBody[RooflineQuery], plans: Service) -> Response[Roofline]:
        """Place every kernel of every kind of layer on the accelerator's roofline."""
        return as_json(plans.roofline(data))
