"""What a recommendation is asked: a model, a workload or a context, and what is open or fixed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, FiniteFloat, model_validator

from planner.plans.money import MOST_DAYS
from planner.scenario import (
    DEFAULT_CONTEXT,
    Count,
    EngineSettings,
    Positive,
    Short,
    SpeculationOptions,
)
from planner.workload.distributions import Tokens
from planner.workload.fields import LEAST, Workload

Several = Short | Annotated[list[Short], Field(min_length=1, max_length=20)]


class MoneyFields(Workload):
    """Prices, and what they are compared with."""

    usd_per_gpu_hour: Positive | None = Field(
        None, description="price of one's own of an hour of one accelerator [USD]"
    )
    price_kind: Literal["on_demand", "reserved", "spot"] = "on_demand"
    provider: Short | None = Field(None, description="whose prices; null is the median of all")
    price_days: Annotated[int, Field(ge=1, le=10_000)] = Field(
        MOST_DAYS, description="age past which a price on record is not used [day]"
    )
    duty_cycle: Annotated[FiniteFloat, Field(ge=LEAST, le=1)] = Field(
        1.0, description="share of the month that accelerators are paid for"
    )
    api_usd_per_million_output: Positive | None = Field(
        None, description="price of a million output tokens of an API, to break even with [USD]"
    )
    api_usd_per_million_input: Annotated[FiniteFloat, Field(ge=0, le=1e9)] = Field(
        0.0, description="price of a million input tokens of that API [USD]"
    )
    grid_kg_co2_per_kwh: Annotated[FiniteFloat, Field(ge=0, le=10)] | None = Field(
        None, description="CO₂ of a kilowatt-hour of the grid [kg/kWh]"
    )


class RecommendationFields(MoneyFields):
    """A model, what is wanted of it, and the options, of which those that are null are open."""

    model: Short | dict[str, Any]
    context: Tokens = Field(
        DEFAULT_CONTEXT, description="tokens in a sequence's cache where no isl and osl are given"
    )
    gpu: Annotated[list[Short | dict[str, Any]], Field(max_length=500)] | None = Field(
        None, description="accelerators to try; null is all of the catalogue"
    )
    announced: bool = Field(
        False, description="whether accelerators that are announced only are tried, too"
    )
    gpus: Count | None = Field(None, description="GPUs that there are at most, in all")
    usd_per_month: Positive | None = Field(None, description="budget [USD]")
    tp: Count | None = Field(None, description="tensor-parallel ranks")
    pp: Count | None = Field(None, description="pipeline stages")
    ep: Count | None = Field(None, description="expert-parallel ranks")
    attention_dp: Count | None = Field(None, description="attention data-parallel ranks")
    best_tp: bool = Field(
        False,
        description="without isl and osl: try every degree that holds the model and keep the one "
        "with most tokens/s per GPU, rather than the smallest",
    )
    weights: Several | None = Field(
        None, description="weight formats to try; null is the checkpoint's own"
    )
    kv: Several | None = Field(
        None, description="cache formats to try; null is the engine's default, and fp8"
    )
    engine: Several | None = Field(
        None, description="engines to try; null is all that were measured serving and run there"
    )
    engine_version: Short | None = None
    speculation: SpeculationOptions | None = Field(
        None, description="null tries one draft a step where the model has layers for it, and none"
    )
    disaggregated: bool | None = Field(
        None, description="whether prompts have workers of their own; null tries both"
    )
    confirm: bool = Field(
        True,
        description="simulate the schedule of what is recommended, and take more replicas where "
        "it misses the limits; done anyway where a limit is at a percentile of requests",
    )


class RecommendationRequest(EngineSettings, RecommendationFields):
    """What is wanted of which model, and the settings of the engine's memory."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @property
    def of_workload(self) -> bool:
        """Whether lengths are given, so that prompts count."""
        return self.isl is not None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.isl is None) != (self.osl is None):
            missing = "isl" if self.isl is None else "osl"
            raise ValueError(f"{missing}: needed with the other length")
        if self.isl is None:
            names = [name for name in (*_WORKLOAD_ONLY, self.demand) if name]
            given = [name for name in names if getattr(self, name) is not None]
            if given:
                raise ValueError(
                    f"{', '.join(given)}: given without lengths; accepted: with isl and osl"
                )
            lists = [n for n in ("weights", "kv", "engine") if isinstance(getattr(self, n), list)]
            if lists:
                raise ValueError(
                    f"{', '.join(lists)}: several are given without lengths; accepted: one, or "
                    f"isl and osl"
                )
        if self.of_percentiles and self.disaggregated:
            raise ValueError(
                "disaggregated: workers for prompts have no percentiles of requests; accepted: "
                "false, or limits on means"
            )
        if self.gpus is not None and self.usd_per_month is not None:
            raise ValueError("gpus, usd_per_month: given together; accepted: one of them")
        return self


_WORKLOAD_ONLY = (
    "ttft_ms",
    "e2e_ms",
    "gpus",
    "usd_per_month",
    "pp",
    "ep",
    "attention_dp",
    "speculation",
    "disaggregated",
)


def several(value: str | list[str] | None) -> tuple[str, ...] | None:
    """Return the values of a field that takes one or several; None where it is open."""
    if value is None:
        return None
    return (value,) if isinstance(value, str) else tuple(dict.fromkeys(_stripped(value)))


def _stripped(values: Iterable[str]) -> Iterable[str]:
    return (value.strip() for value in values)
