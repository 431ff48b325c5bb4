"""Routes that answer without storing."""

from __future__ import annotations

from typing import Any

from litestar import Controller, Response, post
from litestar.di import NamedDependency
from litestar.params import JSONBody
from pydantic import BaseModel

from api.plans.service import Plans
from planner.answer import Plan
from planner.scenario import Scenario

READ = {"scope": "read"}


def as_bytes(found: BaseModel) -> Response[Any]:
    """Return a response from pydantic's own serialiser: large answers are twice as fast so."""
    return Response(found.model_dump_json().encode(), media_type="application/json")


class PlanController(Controller):
    """Plans."""

    path = "/v1"
    tags = ["plans"]  # noqa: RUF012 - the framework's own protocol

    @post("/plans", operation_id="createPlan", sync_to_thread=True, status_code=200, opt=READ)
    def plan(self, data: JSONBody[Scenario], plans: NamedDependency[Plans]) -> Response[Plan]:
        """Answer one scenario without storing it."""
        return as_bytes(plans.plan(data))
