"""Ids that only the asker knows: a service has its workspace's own objects resolved by them.

The tools of an agent answer catalogue ids and objects. Where a service mounts them, it says for the
time of a request how the ids of its workspace are resolved, and nothing else changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from planner.scenario import Scenario

Name = str | dict[str, Any]


class OwnNames(Protocol):
    """How ids of own objects are resolved."""

    def model(self, name: Name) -> Name:
        """Return a catalogue id or a config. Raises InvalidInput for an id that is neither."""

    def accelerator(self, name: Name) -> Name:
        """Return a catalogue id or an accelerator object. Raises InvalidInput likewise."""

    def own_models(self) -> list[str]:
        """Return the ids of own models."""

    def own_accelerators(self) -> list[str]:
        """Return the ids of own accelerators."""

    def with_ids(self, document: Any) -> Any:
        """Return an answer with the ids of own objects where the objects stand in it."""


class CatalogueOnly:
    """Names as they are: those of the catalogues."""

    def model(self, name: Name) -> Name:
        """Return the name."""
        return name

    def accelerator(self, name: Name) -> Name:
        """Return the name."""
        return name

    def own_models(self) -> list[str]:
        """Return none."""
        return []

    def own_accelerators(self) -> list[str]:
        """Return none."""
        return []

    def with_ids(self, document: Any) -> Any:
        """Return the answer."""
        return document


_NAMES: ContextVar[OwnNames] = ContextVar("own_names", default=CatalogueOnly())  # noqa: B039 - it has no state


def own_names() -> OwnNames:
    """Return how names are resolved for the one who asks."""
    return _NAMES.get()


@contextmanager
def resolved_by(names: OwnNames) -> Iterator[None]:
    """Resolve names so in the block, and in tasks and threads that it starts."""
    token = _NAMES.set(names)
    try:
        yield
    finally:
        _NAMES.reset(token)


def resolved(scenario: Scenario) -> Scenario:
    """Return a scenario whose own objects stand in it in place of their ids."""
    names = own_names()
    changes = {"model": names.model(scenario.model), "gpu": names.accelerator(scenario.gpu)}
    changed = {name: new for name, new in changes.items() if new is not getattr(scenario, name)}
    return scenario.model_copy(update=changed) if changed else scenario
