"""Ids of a workspace's own objects for the agent's tools, as REST resolves them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from api.catalog.names import Name, Names
from api.catalog.own import ACCELERATOR, MODEL, OWN, OwnObjects
from api.web.problem import Problem
from planner.errors import InvalidInput


class WorkspaceNames:
    """Resolves names for one request; a problem of REST is the refusal of a tool."""

    def __init__(self, own: OwnObjects, workspace: str) -> None:
        self._own = own
        self._workspace = workspace
        self._names = Names(own, workspace)

    def model(self, name: Name) -> Name:
        """Return a catalogue id or a config. Raises InvalidInput."""
        return _refusing(self._names.model, name)

    def accelerator(self, name: Name) -> Name:
        """Return a catalogue id or an accelerator object. Raises InvalidInput."""
        return _refusing(self._names.accelerator, name)

    def own_models(self) -> list[str]:
        """Return the ids of the workspace's models."""
        return [OWN + ident for ident in self._own.ids(self._workspace, MODEL)]

    def own_accelerators(self) -> list[str]:
        """Return the ids of the workspace's accelerators."""
        return [OWN + ident for ident in self._own.ids(self._workspace, ACCELERATOR)]

    def with_ids(self, document: Any) -> Any:
        """Return an answer with the ids of own objects where the objects stand in it."""
        return self._names.with_ids(document)


def _refusing(resolve: Callable[[Name], Name], name: Name) -> Name:
    try:
        return resolve(name)
    except Problem as problem:
        raise InvalidInput(problem.detail) from None
