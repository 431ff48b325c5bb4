"""An engine's profile as plain values: where it runs, and each figure with where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from planner.engines.names import engine_names
from planner.engines.profiles import Engine, get_engine
from planner.engines.support import check_device, check_version
from planner.hw import Accelerator

UNITS = {"bytes": "byte", "tokens": "token", "sequences": "sequence"}
"""Unit by the last word of a figure's name."""


def list_engines() -> list[dict[str, Any]]:
    """Return the engines that a scenario may name, each as `summary` has it."""
    return [summary(get_engine(name)) for name in engine_names()]


def engine_facts(
    name: str, version: str | None = None, accelerator: Accelerator | None = None, tp: int = 1
) -> dict[str, Any]:
    """Return an engine with all figures of its profile at a version, on `tp` accelerators [-].

    Without a version it is the newest one known, without an accelerator figures are those that
    hold on any. Raises UnknownEngine, UnknownVersion and, where the engine is not known to run on
    the accelerator, UnsupportedDevice.
    """
    check_version(name, version)
    engine = get_engine(name, version)
    if accelerator is not None:
        check_device(engine, accelerator)
        engine = engine.on(accelerator, tp)
    return summary(engine) | {"figures": figures(engine)}


def summary(engine: Engine) -> dict[str, Any]:
    """Return what an engine is, the versions its figures are known at, and where it runs.

    `release` is the one whose defaults the figures are, empty where no package was read; `measured`
    how runs of it on record were measured, empty where its speed was not.
    """
    return {
        "id": engine.id,
        "name": engine.name,
        "release": engine.release,
        "versions": {form: list(ends) for form, ends in engine.versions.items()},
        "backends": dict(engine.backends),
        "not_on": list(engine.not_on),
        "measured": list(engine.measured),
    }


def figures(engine: Engine) -> list[dict[str, Any]]:
    """Return name, value, unit, source and confidence of every figure of a profile.

    Where a figure is a default of the engine's own, also of which release and argument.
    """
    return [
        {"name": name, "value": _plain(engine.value(name)), "unit": unit(name), **asdict(sourced)}
        for name, sourced in engine.figures.items()
    ]


def unit(name: str) -> str:
    """Return the unit that a figure's name ends in, empty where it has none.

    >>> unit("reserve.bytes_per_chunk_token")
    'byte/chunk token'
    """
    quantity, _, per = name.rpartition(".")[2].partition("_per_")
    base = UNITS.get(quantity.rpartition("_")[2], "")
    return f"{base}/{per.replace('_', ' ')}" if base and per else base


def _plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (tuple, list)) else value
