"""Routes of models, accelerators and engines."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Controller, Response, delete, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody, QueryParameter
from pydantic import BaseModel

from api.catalog.own import ACCELERATOR, MODEL
from api.catalog.schemas import (
    AcceleratorFacts,
    AcceleratorList,
    EngineList,
    EngineProfile,
    ModelFacts,
    ModelList,
    OwnAccelerator,
    OwnModel,
)
from api.catalog.service import Catalog
from api.web.idempotency import Once
from api.web.parameters import IdempotencyKey, IfNoneMatch, Text
from api.web.tags import tagged_by_content

Service = NamedDependency[Catalog]
Raw = NamedDependency[bytes]
Filter = Annotated[str | None, QueryParameter(max_length=100)]


def _tagged(if_none_match: str | None, answer: BaseModel) -> Response[Any]:
    return tagged_by_content(if_none_match, answer.model_dump_json().encode())


class ModelController(Controller):
    """Models."""

    path = "/v1/models"
    tags = ["catalog"]  # noqa: RUF012 - the framework's own protocol

    @get(operation_id="listModels", sync_to_thread=True)
    def page(
        self,
        catalog: Service,
        family: Filter = None,
        kind: Filter = None,
        text: Text = None,
        if_none_match: IfNoneMatch = None,
    ) -> Response[ModelList]:
        """List models by model_type, kind, or words in the id; your own come first."""
        return _tagged(if_none_match, catalog.models(family, kind, text))

    @post(operation_id="createModel", sync_to_thread=True)
    def create(
        self,
        data: JSONBody[OwnModel],
        catalog: Service,
        raw: Raw,
        idempotency_key: IdempotencyKey = None,
    ) -> Response[ModelFacts]:
        """Store a model of your own from its config.json; it never changes."""
        once = Once.of(catalog.workspace, idempotency_key, self.path, raw)
        return catalog.add_model(data, once).response()

    @get("/{model_id:path}", operation_id="getModel", sync_to_thread=True)
    def read(
        self, model_id: FromPath[str], catalog: Service, if_none_match: IfNoneMatch = None
    ) -> Response[ModelFacts]:
        """Read a model's sizes, cache costs and source."""
        return _tagged(if_none_match, catalog.model(model_id.lstrip("/")))

    @delete("/{model_id:path}", operation_id="deleteModel", sync_to_thread=True)
    def remove(self, model_id: FromPath[str], catalog: Service) -> None:
        """Delete a model of your own that no scenario uses."""
        catalog.own.delete(catalog.workspace, MODEL, model_id.lstrip("/"))


class AcceleratorController(Controller):
    """Accelerators."""

    path = "/v1/accelerators"
    tags = ["catalog"]  # noqa: RUF012 - the framework's own protocol

    @get(operation_id="listAccelerators", sync_to_thread=True)
    def page(
        self,
        catalog: Service,
        vendor: Filter = None,
        kind: Filter = None,
        min_memory_bytes: Annotated[float, QueryParameter(ge=0, le=1e15)] = 0.0,
        format_: Annotated[str | None, QueryParameter(name="format", max_length=20)] = None,
        status: Filter = None,
        text: Text = None,
        if_none_match: IfNoneMatch = None,
    ) -> Response[AcceleratorList]:
        """List accelerators with the source of every figure; your own come first."""
        items = catalog.accelerators(vendor, kind, min_memory_bytes, format_, status, text)
        return _tagged(if_none_match, items)

    @post(operation_id="createAccelerator", sync_to_thread=True)
    def create(
        self,
        data: JSONBody[OwnAccelerator],
        catalog: Service,
        raw: Raw,
        idempotency_key: IdempotencyKey = None,
    ) -> Response[AcceleratorFacts]:
        """Store an accelerator of your own; it never changes."""
        once = Once.of(catalog.workspace, idempotency_key, self.path, raw)
        return catalog.add_accelerator(data, once).response()

    @get("/{accelerator_id:path}", operation_id="getAccelerator", sync_to_thread=True)
    def read(
        self, accelerator_id: FromPath[str], catalog: Service, if_none_match: IfNoneMatch = None
    ) -> Response[AcceleratorFacts]:
        """Read an accelerator's peaks, bandwidth, ridge points, price and sources."""
        return _tagged(if_none_match, catalog.accelerator(accelerator_id.lstrip("/")))

    @delete("/{accelerator_id:path}", operation_id="deleteAccelerator", sync_to_thread=True)
    def remove(self, accelerator_id: FromPath[str], catalog: Service) -> None:
        """Delete an accelerator of your own that no scenario uses."""
        catalog.own.delete(catalog.workspace, ACCELERATOR, accelerator_id.lstrip("/"))


class EngineController(Controller):
    """Serving engines."""

    path = "/v1/engines"
    tags = ["catalog"]  # noqa: RUF012 - the framework's own protocol

    @get(operation_id="listEngines", sync_to_thread=True)
    def page(self, catalog: Service, if_none_match: IfNoneMatch = None) -> Response[EngineList]:
        """List serving engines: versions, where they run, whether their speed was measured."""
        return _tagged(if_none_match, catalog.engines())

    @get("/{engine_id:str}", operation_id="getEngine", sync_to_thread=True, opt={"refuses": True})
    def read(
        self,
        engine_id: FromPath[str],
        catalog: Service,
        version: Annotated[
            str | None, QueryParameter(max_length=100, description="default: the newest known")
        ] = None,
        gpu: Annotated[
            str | None,
            QueryParameter(max_length=200, description="figures as they are on this accelerator"),
        ] = None,
        tp: Annotated[
            int, QueryParameter(ge=1, le=2**20, description="and over so many of them")
        ] = 1,
        if_none_match: IfNoneMatch = None,
    ) -> Response[EngineProfile]:
        """Read every figure of an engine's profile with its source."""
        return _tagged(if_none_match, catalog.engine(engine_id, version, gpu, tp))
