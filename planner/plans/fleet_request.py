"""What a fleet is asked: requests over a day, pools that serve them, and how they scale."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field, FiniteFloat, model_validator

from planner.plans.money import MOST_DAYS
from planner.scenario import Count, EngineSettings, MachineFields, Positive, Short
from planner.workload.fields import LEAST, RequestLimits

Share = Annotated[FiniteFloat, Field(ge=LEAST, le=1)]


class FleetPool(EngineSettings, MachineFields):
    """Replicas of one kind, and which requests they serve; `replicas` is the fewest kept."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Short | None = None
    isl_up_to: Positive | None = Field(
        None, description="longest input it serves [token]; the last pool has no such limit"
    )
    most_replicas: Count | None = Field(None, description="replicas there are at most")
    usd_per_gpu_hour: Positive | None = Field(None, description="price of one's own [USD]")


class FleetRequest(RequestLimits):
    """A trace or a day's shape, pools, and rules of scaling."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    pools: Annotated[list[FleetPool], Field(min_length=1, max_length=20)]
    trace: Short | None = Field(None, description="path of a trace")
    requests_per_s_by_window: (
        Annotated[
            list[Annotated[FiniteFloat, Field(ge=0, le=1e9)]],
            Field(min_length=1, max_length=100_000),
        ]
        | None
    ) = Field(None, description="a day's shape: requests per second in each window")
    isl: Positive | None = Field(None, description="input tokens of a request, with a shape")
    osl: Positive | None = Field(None, description="output tokens of a request, with a shape")
    scale: Positive = Field(1.0, description="times the trace's requests")
    window_s: Annotated[FiniteFloat, Field(ge=1, le=86_400)] = Field(
        60.0, description="length of a window [s]"
    )
    start_delay_s: Annotated[FiniteFloat, Field(ge=0, le=86_400)] = Field(
        300.0, description="time from wanting a replica to its first request [s]"
    )
    hold_s: Annotated[FiniteFloat, Field(ge=0, le=86_400)] = Field(
        900.0, description="time a replica is kept after it was last wanted [s]"
    )
    headroom: Annotated[FiniteFloat, Field(ge=0, le=10)] = Field(
        0.2, description="capacity wanted beyond the last window's requests, as a share of them"
    )
    spare_replicas: Annotated[int, Field(ge=0, le=1000)] = Field(
        0, description="replicas kept in each pool beside, 1 for N + 1"
    )
    growth_per_month: Annotated[FiniteFloat, Field(ge=-0.9, le=10)] = Field(
        0.0, description="growth of requests a month, 0.1 for 10%"
    )
    months: Annotated[int, Field(ge=0, le=120)] = Field(0, description="months of growth told")
    price_days: Annotated[int, Field(ge=1, le=10_000)] = MOST_DAYS

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.trace is None) == (self.requests_per_s_by_window is None):
            raise ValueError("trace or requests_per_s_by_window: needed, one of them")
        if self.requests_per_s_by_window is not None and not (self.isl and self.osl):
            raise ValueError("isl, osl: needed with requests_per_s_by_window")
        if self.of_percentiles:
            raise ValueError(
                "ttft_requests_percentile, tpot_requests_percentile, e2e_requests_percentile: a "
                "fleet is sized on means; accepted: null"
            )
        ends = [pool.isl_up_to for pool in self.pools]
        if ends[-1] is not None or None in ends[:-1] or ends[:-1] != sorted(ends[:-1], key=_number):
            raise ValueError(
                "pools: isl_up_to must rise from pool to pool; accepted: one on all but the last"
            )
        if len({str(pool.model) for pool in self.pools}) > 1:
            raise ValueError("pools: they run different models; accepted: one model")
        return self


def _number(value: Any) -> float:
    return float(value or 0.0)
