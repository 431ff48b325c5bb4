"""From the names in a request to what the planner takes: the one place where ids are resolved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from api.catalog.own import ACCELERATOR, MODEL, OWN, OwnObjects
from api.web.call import call_planner
from api.web.problem import Problem
from planner.answer import Plan
from planner.hw import get_accelerator
from planner.models import get_model
from planner.plans.planning import plan
from planner.scenario import Scenario

Name = str | dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Inlined:
    """A scenario whose own objects stand in it, with a digest of each."""

    scenario: Scenario
    digests: dict[str, str]


class Names:
    """Resolves ids for one workspace. A service never opens a file that a request names."""

    def __init__(self, own: OwnObjects, workspace: str) -> None:
        self.own = own
        self.workspace = workspace
        self.used: dict[str, dict[str, Any]] = {}

    def model(self, name: Name) -> Name:
        """Return a catalogue id or a config; raises a 422 problem for anything else."""
        return self._resolved(name, MODEL, lambda known: get_model(known, local=False))

    def accelerator(self, name: Name) -> Name:
        """Return a catalogue id or an accelerator object."""
        return self._resolved(
            name, ACCELERATOR, lambda known: get_accelerator(known, allow_files=False)
        )

    def inline(self, scenario: Scenario) -> Inlined:
        """Return the scenario as the planner takes it."""
        resolved = {"model": self.model(scenario.model), "gpu": self.accelerator(scenario.gpu)}
        digests = {
            field: self.own.digest(self.workspace, kind, name)
            for field, kind, name in (
                ("model", MODEL, scenario.model),
                ("gpu", ACCELERATOR, scenario.gpu),
            )
            if is_own(name)
        }
        changed = {k: v for k, v in resolved.items() if v is not getattr(scenario, k)}
        return Inlined(scenario.model_copy(update=changed) if changed else scenario, digests)

    def plan(self, scenario: Scenario, advice: bool = False) -> tuple[Plan, dict[str, str]]:
        """Return the plan of a scenario, in the scenario's own names, and the digests it rests on.

        With `advice` the plan has its levers.
        """
        inlined = self.inline(scenario)
        answer = call_planner(plan, inlined.scenario, advice=advice)
        if inlined.scenario is not scenario:
            names = {"model": scenario.model, "gpu": scenario.gpu}
            named = answer.scenario.model_copy(update=names)
            answer = answer.model_copy(update={"scenario": named})
        return answer, inlined.digests

    def _resolved(self, name: Name, kind: str, check: Callable[[Name], object]) -> Name:
        if is_own(name):
            return self._own(kind, str(name))
        if isinstance(name, str):
            call_planner(check, name)
        return name

    def _own(self, kind: str, name: str) -> dict[str, Any]:
        """Return an own object, and remember it for `with_ids`.

        One without a name of its own gets its id. A name is never replaced: the calibration knows
        parts and networks by it, and by id or inline the same object must answer the same.
        """
        document = self.own.document(self.workspace, kind, name)
        if "base" not in document:
            document = {ID_FIELDS[kind]: name, **document}
        self.used[name] = document
        return document

    def with_ids(self, document: Any) -> Any:
        """Return a document with the ids of own objects where they stand in it."""
        if isinstance(document, dict):
            for name, own in self.used.items():
                if document == own:
                    return name
            return {key: self.with_ids(value) for key, value in document.items()}
        return (
            [self.with_ids(item) for item in document] if isinstance(document, list) else document
        )


ID_FIELDS = {MODEL: "_name_or_path", ACCELERATOR: "id"}
"""Where the planner looks for the id of an inline object."""


def is_own(name: object) -> bool:
    """Return whether a name is the id of an object of the workspace."""
    return isinstance(name, str) and name.startswith(OWN)


def label(name: Name) -> str:
    """Return what an inline object is called in lists and filters."""
    if isinstance(name, str):
        return name
    for key in ("id", "name", "_name_or_path", "model_type", "base"):
        if isinstance(name.get(key), str) and name[key]:
            return str(name[key])[:200]
    return "inline"


def canonical_model(name: Name) -> str:
    """Return the id that lists and filters know a model by; one that is gone keeps its name."""
    return _canonical(name, lambda known: get_model(known, local=False).id)


def canonical_gpu(name: Name) -> str:
    """Return the id that lists and filters know an accelerator by."""
    return _canonical(name, lambda known: get_accelerator(known, allow_files=False).id)


def _canonical(name: Name, find: Callable[[str], str]) -> str:
    if isinstance(name, str) and not is_own(name):
        try:
            return call_planner(find, name)
        except Problem:
            return name
    return label(name)
