"""What a table is of: models × accelerators × splits × formats × engines × loads."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from planner.scenario import DEFAULT_CONTEXT, Count, Scenario, Short, SpeculationOptions
from planner.workload.distributions import Tokens

DEFAULT_BATCHES = [1, 2, 4, 8, 16, 32, 64, 128, 256]
MOST_VALUES = 1_000_000
"""Values of an axis of loads at most; rows have no limit [-]."""

Members = Annotated[list[Short | dict[str, Any]], Field(min_length=1, max_length=100_000)]
Degrees = Annotated[list[Count], Field(min_length=1, max_length=256)]
Names = Annotated[list[Short | None], Field(min_length=1, max_length=256)]
Counts = Annotated[list[Count], Field(min_length=1, max_length=MOST_VALUES)]
Lengths = Annotated[list[Tokens], Field(min_length=1, max_length=MOST_VALUES)]


class TableRequest(BaseModel):
    """The axes of a table; every combination of them is answered.

    With `concurrency`, `isl` and `osl` the rows are of the steady state under load; without, of
    decode steps at every batch and context. `limits` adds those of decode at every context.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: Members
    gpu: Members
    tp: Degrees = [1]
    pp: Degrees = [1]
    ep: Degrees = [1]
    attention_dp: Degrees = [1]
    weights: Names = [None]
    kv: Names = [None]
    engine: Names = [None]
    speculation: Annotated[list[SpeculationOptions | None], Field(min_length=1)] = [None]
    replicas: Count = 1
    batch: Counts = DEFAULT_BATCHES
    context: Lengths = [DEFAULT_CONTEXT]
    concurrency: Counts | None = None
    isl: Counts | None = None
    osl: Counts | None = None
    limits: bool = False

    @model_validator(mode="after")
    def _whole_load(self) -> Self:
        given = [name for name in LOAD if getattr(self, name) is not None]
        if given and len(given) < len(LOAD):
            missing = ", ".join(name for name in LOAD if name not in given)
            raise ValueError(f"{missing}: missing; accepted: concurrency, isl and osl together")
        if given and self.limits:
            raise ValueError("limits: are of decode; accepted: with batch and context alone")
        return self

    @property
    def serving(self) -> bool:
        """Whether the rows are of requests under load."""
        return self.concurrency is not None

    @property
    def members(self) -> int:
        """Combinations of all axes but those of loads [-]."""
        return math.prod(len(getattr(self, axis)) for axis in MEMBER_AXES)

    @property
    def points(self) -> int:
        """Rows of a member that is possible; one that is not has one row [-]."""
        return math.prod(len(getattr(self, axis) or ()) for axis in self.load_axes)

    @property
    def load_axes(self) -> tuple[str, ...]:
        """The axes of loads, the slowest first."""
        return LOAD if self.serving else STEP

    def scenarios(self) -> Iterator[Scenario]:
        """Yield a scenario for every member, without its load."""
        base = Scenario(model="-", gpu="-", replicas=self.replicas)
        for values in product(*(getattr(self, axis) for axis in MEMBER_AXES)):
            yield base.model_copy(update=dict(zip(MEMBER_AXES, values, strict=True)))


MEMBER_AXES = (
    "model",
    "gpu",
    "tp",
    "pp",
    "ep",
    "attention_dp",
    "weights",
    "kv",
    "engine",
    "speculation",
)
STEP = ("batch", "context")
LOAD = ("concurrency", "isl", "osl")
