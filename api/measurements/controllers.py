"""Routes of a workspace's own measurements."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Controller, Request, Response, delete, get, post
from litestar.di import NamedDependency, Provide
from litestar.params import FromPath, QueryParameter

from api.measurements.schemas import AddedMeasurement, Measurement, MeasurementPage
from api.measurements.service import PATH, MeasuredRuns
from api.web.accept import CSV, JSON, JSON_LINES, body_kind
from api.web.idempotency import Once
from api.web.parameters import Cursor, IdempotencyKey, Limit
from planner.benchmarks import Context

Service = NamedDependency[MeasuredRuns]


def _text(description: str) -> Any:
    return QueryParameter(max_length=200, description=description)


def _count(description: str) -> Any:
    return QueryParameter(ge=1, le=2**20, description=description)


def results_context(
    model: Annotated[str | None, _text("what ran, if the results do not say")] = None,
    gpu: Annotated[str | None, _text("on which accelerator")] = None,
    engine: Annotated[str | None, _text("under which engine")] = None,
    engine_version: Annotated[str | None, _text("of which version")] = None,
    weights: Annotated[str | None, _text("in which weight format")] = None,
    kv: Annotated[str | None, _text("with which cache format")] = None,
    tp: Annotated[int | None, _count("over how many tensor-parallel ranks")] = None,
    pp: Annotated[int | None, _count("in how many pipeline stages")] = None,
    attention_dp: Annotated[int | None, _count("with how many attention-DP ranks")] = None,
    ep: Annotated[int | None, _count("with how many expert-parallel ranks")] = None,
) -> Context:
    """Return what the query says of the results; it wins over what they say themselves."""
    return Context(model, gpu, engine, engine_version, weights, kv, tp, pp, attention_dp, ep)


class MeasurementController(Controller):
    """Measurements of one's own."""

    path = PATH
    tags = ["measurements"]  # noqa: RUF012 - the framework's own protocol
    dependencies = {"context": Provide(results_context, sync_to_thread=False)}  # noqa: RUF012 - the same

    @post(
        operation_id="createMeasurement",
        sync_to_thread=True,
        opt={"consumes": (JSON, *JSON_LINES, CSV), "lane": "refit"},
    )
    def create(
        self,
        request: Request[Any, Any, Any],
        measured: Service,
        context: NamedDependency[Context],
        raw: NamedDependency[bytes],
        idempotency_key: IdempotencyKey = None,
    ) -> Response[AddedMeasurement]:
        """Add results of a benchmark, and refit this workspace's calibration with them."""
        once = Once.of(measured.workspace, idempotency_key, f"{PATH}?{context}", raw)
        read = measured.read(raw, body_kind(request), context)
        return measured.add(read, once).response()

    @get(operation_id="listMeasurements", sync_to_thread=True)
    def page(self, measured: Service, limit: Limit = 50, cursor: Cursor = None) -> MeasurementPage:
        """List measurements, oldest first, and the calibration they give together."""
        return measured.page(cursor, limit)

    @get("/{measurement_id:str}", operation_id="getMeasurement", sync_to_thread=True)
    def read(self, measurement_id: FromPath[str], measured: Service) -> Measurement:
        """Read a measurement with the runs that were read from it."""
        return measured.get(measurement_id)

    @delete(
        "/{measurement_id:str}",
        operation_id="deleteMeasurement",
        sync_to_thread=True,
        opt={"lane": "refit"},
    )
    def remove(self, measurement_id: FromPath[str], measured: Service) -> None:
        """Delete a measurement; the calibration is refitted without it."""
        measured.delete(measurement_id)
