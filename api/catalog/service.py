"""Listing and describing models and accelerators; storing own ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from sqlalchemy.orm import Session

from api.catalog import own
from api.catalog.names import Names, is_own
from api.catalog.own import ACCELERATOR, MODEL, OWN, OwnObjects
from api.catalog.schemas import (
    AcceleratorFacts,
    AcceleratorList,
    EngineFacts,
    EngineList,
    EngineProfile,
    ModelFacts,
    ModelList,
    OwnAccelerator,
    OwnModel,
)
from api.store import Database
from api.store.tables import OwnRow
from api.web.call import call_planner
from api.web.idempotency import Once, StoredResponse, write_once
from api.web.problem import Problem
from planner import hw, models
from planner.engines import describe as engines
from planner.engines.names import edition as engine_edition
from planner.engines.profiles import get_engine
from planner.models.listing import all_facts, list_facts

Facts = ModelFacts | AcceleratorFacts


class Catalog:
    """The catalogues as one workspace sees them."""

    def __init__(self, database: Database, workspace: str) -> None:
        self.database = database
        self.workspace = workspace
        self.own = OwnObjects(database)

    def models(self, family: str | None, kind: str | None, text: str | None) -> ModelList:
        """Return the models that match all filters."""
        items = [
            facts
            for row in self.own.list(self.workspace, MODEL)
            if (facts := own_model(row)) and _matches(facts, family, kind, text)
        ]
        listed = list_facts(family, kind, text)
        items += [_catalogue_models()[facts["id"]] for facts in listed]
        return ModelList(items=items, edition=models.edition())

    def accelerators(
        self,
        vendor: str | None,
        kind: str | None,
        min_memory_bytes: float,
        fmt: str | None,
        status: str | None,
        text: str | None,
    ) -> AcceleratorList:
        """Return the accelerators that match all filters."""
        own_ones = [own_accelerator(row) for row in self.own.list(self.workspace, ACCELERATOR)]
        items = [
            facts
            for facts in own_ones
            if (vendor is None or facts.vendor.lower() == vendor.lower())
            and (kind is None or getattr(facts, "kind", None) == kind.lower())
            and (facts.memory_bytes or 0) >= min_memory_bytes
            and (fmt is None or fmt.lower() in facts.peaks_flops_per_s)
            and (status is None or getattr(facts, "status", None) == status.lower())
            and (text is None or text.lower() in f"{facts.id} {facts.name}".lower())
        ]
        least = min_memory_bytes or None
        listed = hw.list_accelerators(
            vendor=vendor, kind=kind, min_memory_bytes=least, format=fmt, status=status, text=text
        )
        return AcceleratorList(items=[*items, *map(_accelerator, listed)], edition=hw.edition())

    def model(self, name: str) -> ModelFacts:
        """Return one model; raises 404."""
        if is_own(name):
            return own_model(self.own.get(self.workspace, MODEL, name))
        spec = _known(lambda: models.get_model(name, local=False), "model")
        return _of_catalogue(models.describe(spec))

    def accelerator(self, name: str) -> AcceleratorFacts:
        """Return one accelerator; raises 404."""
        if is_own(name):
            return own_accelerator(self.own.get(self.workspace, ACCELERATOR, name))
        return _accelerator(
            _known(lambda: hw.get_accelerator(name, allow_files=False), "accelerator")
        )

    def engines(self) -> EngineList:
        """Return the engines that have a profile."""
        items = [EngineFacts.model_validate(facts) for facts in engines.list_engines()]
        return EngineList(items=items, edition=engine_edition())

    def engine(self, name: str, version: str | None, gpu: str | None, tp: int) -> EngineProfile:
        """Return one engine with its figures; raises 404, and 422 for a version or accelerator."""
        _known(lambda: get_engine(name), "engine")
        accelerator = None
        if gpu is not None:
            resolved = Names(self.own, self.workspace).accelerator(gpu)
            accelerator = call_planner(hw.get_accelerator, resolved, allow_files=False)
        facts = call_planner(engines.engine_facts, name, version, accelerator, tp)
        return EngineProfile.model_validate(facts)

    def add_model(self, model: OwnModel, once: Once) -> StoredResponse:
        """Store a model that the planner can read."""
        return self._add(MODEL, model.id, model.config, once, own_model)

    def add_accelerator(self, accelerator: OwnAccelerator, once: Once) -> StoredResponse:
        """Store an accelerator that the planner can use."""
        return self._add(ACCELERATOR, accelerator.id, accelerator.spec, once, own_accelerator)

    def _add(
        self,
        kind: str,
        ident: str,
        document: dict[str, Any],
        once: Once,
        describe: Callable[[OwnRow], Facts],
    ) -> StoredResponse:
        own.check(kind, document)

        def make(session: Session) -> StoredResponse:
            row = own.store(session, self.workspace, kind, ident, document)
            headers = {"Location": f"/v1/{kind}s/{OWN}{ident}"}
            return StoredResponse(describe(row).model_dump_json().encode(), headers=headers)

        return write_once(self.database, once, make)


def own_model(row: OwnRow) -> ModelFacts:
    """Return the facts of an own model."""
    spec = call_planner(models.get_model, row.document)
    facts = {**models.describe(spec), "id": OWN + row.id}
    return ModelFacts.model_validate({**facts, "origin": "own"})


def own_accelerator(row: OwnRow) -> AcceleratorFacts:
    """Return the facts of an own accelerator."""
    facts = hw.describe(call_planner(hw.get_accelerator, row.document, allow_files=False))
    return AcceleratorFacts.model_validate({**facts, "id": OWN + row.id, "origin": "own"})


@cache
def _catalogue_models() -> dict[str, ModelFacts]:
    """Return the facts of catalogue models by id: they never change while the service runs."""
    return {facts["id"]: _of_catalogue(facts) for facts in all_facts()}


def _of_catalogue(facts: dict[str, Any]) -> ModelFacts:
    return ModelFacts.model_validate({**facts, "origin": "catalogue"})


def _accelerator(accelerator: hw.Accelerator) -> AcceleratorFacts:
    return AcceleratorFacts.model_validate({**hw.describe(accelerator), "origin": "catalogue"})


def _known(find: Callable[[], Any], what: str) -> Any:
    try:
        return call_planner(find)
    except Problem as problem:
        raise Problem(404, problem.detail or f"no such {what}") from None


def _matches(facts: ModelFacts, family: str | None, kind: str | None, text: str | None) -> bool:
    words = (text or "").lower().split()
    return (
        family in (None, facts.model_type)
        and kind in (None, facts.kind)
        and all(word in facts.id.lower() for word in words)
    )
