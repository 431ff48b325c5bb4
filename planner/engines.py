"""Serving engines as data: what each reserves, defaults to and allows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

EDITION = "2026-11-29"


class UnknownEngine(ValueError):
    """An engine that has no profile."""


@dataclass(frozen=True, slots=True)
class Engine:
    """The profile of an engine."""

    id: str
    name: str
    memory_fraction: float
    """Share of a GPU's memory the engine plans with [-]."""
    reserve_bytes: float
    """Memory kept for activations, graphs and communication buffers [byte]."""
    kv_block_tokens: int
    """Tokens of a cache block [token]."""
    chunk_tokens: int
    """Tokens a step may hold: the chunked-prefill budget [token]."""
    max_sequences: int
    """Sequences that may run at once on one rank [-]."""
    kv_by_weights: Mapping[str, str]
    """Cache format by weight format, where it is not the model's own type."""
    source: str


@cache
def engines() -> Mapping[str, Engine]:
    """Return all profiles by id."""
    text = files("planner").joinpath(f"data/engines-{EDITION}.json").read_text("utf-8")
    return {key: Engine(id=key, **fields) for key, fields in json.loads(text)["engines"].items()}


def get_engine(name: str | None) -> Engine:
    """Return the profile of an engine; None is the engine-neutral one.

    Raises UnknownEngine naming what is accepted.
    """
    found = engines().get("neutral" if name is None else name.strip().lower())
    if found is None:
        accepted = ", ".join(key for key in engines() if key != "neutral")
        raise UnknownEngine(f"engine: unknown engine {name!r}; accepted: {accepted}")
    return found
