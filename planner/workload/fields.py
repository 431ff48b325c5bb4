"""The workload as every question states it, flat: who asks how often, for what, within what limits.

Two kinds of percentile are kept apart by name. A `…_requests_percentile` is over requests: that
share of them is within the limit. `percentile` is of the prediction's own uncertainty.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BaseModel, Field, FiniteFloat, model_validator

from planner.workload.distributions import Length

Count = Annotated[int, Field(ge=1, le=2**20)]
LEAST = 1e-9
"""Least of a quantity that is above zero: what divides by it stays finite."""
Positive = Annotated[FiniteFloat, Field(ge=LEAST, le=1e9)]
Percentile = Annotated[FiniteFloat, Field(ge=1, le=99.99)]

DEMANDS = ("users", "concurrency_in_all", "requests_per_s")
"""Fields that say how much is asked of all replicas together, of which one is given."""


class RequestLimits(BaseModel):
    """Limits on what a client sees, each on the mean or at a percentile of requests."""

    tpot_ms: Positive | None = Field(None, description="limit on TPOT [ms]")
    ttft_ms: Positive | None = Field(None, description="limit on TTFT [ms]")
    e2e_ms: Positive | None = Field(
        None, description="limit on the time from a request to its last token [ms]"
    )
    tokens_per_s_per_user: Positive | None = Field(
        None, description="least tokens per second of a stream, 1/TPOT"
    )
    tpot_requests_percentile: Percentile | None = Field(
        None, description="share of requests within the limit on TPOT [%]; null is their mean"
    )
    ttft_requests_percentile: Percentile | None = Field(
        None, description="share of requests within the limit on TTFT [%]; null is their mean"
    )
    e2e_requests_percentile: Percentile | None = Field(
        None, description="share of requests within the limit on e2e_ms [%]; null is their mean"
    )
    percentile: Annotated[FiniteFloat, Field(ge=1, le=99)] = Field(
        50, description="percentile of the prediction's uncertainty (not of requests) of the limits"
    )

    @property
    def slowest_tpot_ms(self) -> float | None:
        """The stricter of the limits on TPOT and on a stream's tokens/s [ms]."""
        given = [self.tpot_ms, self.tokens_per_s_per_user and 1e3 / self.tokens_per_s_per_user]
        return min((each for each in given if each), default=None)

    @property
    def of_percentiles(self) -> bool:
        """Whether a limit is at a percentile of requests."""
        return bool(
            self.tpot_requests_percentile
            or self.ttft_requests_percentile
            or self.e2e_requests_percentile
        )


class Workload(RequestLimits):
    """Requests: their lengths, and how many come from whom."""

    users: Count | None = Field(
        None, description="people of all replicas together, each with one request at a time"
    )
    think_time_s: Annotated[FiniteFloat, Field(ge=0, le=1e6)] = Field(
        0.0, description="time a user takes from an answer to the next request, on average [s]"
    )
    concurrency_in_all: Count | None = Field(
        None, description="requests in flight in all replicas together"
    )
    requests_per_s: Positive | None = Field(
        None, description="requests that arrive at all replicas together, whether served or not"
    )
    arrival_cv: Annotated[FiniteFloat, Field(ge=0, le=20)] = Field(
        1.0, description="coefficient of variation of the time between arrivals; Poisson is 1"
    )
    isl: Length | None = Field(None, description="input tokens of a request, or how they spread")
    osl: Length | None = Field(None, description="output tokens of a request, or how they spread")
    prefix_hit: Annotated[FiniteFloat, Field(ge=0, le=1)] = Field(
        0.0, description="share of input tokens found in the prefix cache"
    )
    turns: Annotated[int, Field(ge=1, le=10_000)] = Field(
        1, description="requests of a session, each beginning with the prompts and answers before"
    )
    prefix_tokens: Annotated[int, Field(ge=0, le=2**30)] = Field(
        0, description="tokens that every request begins with, such as a system prompt"
    )

    @property
    def demand(self) -> str | None:
        """The field that says how much is asked; None where none does."""
        return next((name for name in DEMANDS if getattr(self, name) is not None), None)

    @model_validator(mode="after")
    def _one_demand(self) -> Self:
        given = [name for name in DEMANDS if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"{', '.join(given)}: given together; accepted: one of them")
        if self.think_time_s and self.users is None:
            raise ValueError("think_time_s: given without users; accepted: with users")
        if self.prefix_hit and (self.turns > 1 or self.prefix_tokens):
            raise ValueError(
                "prefix_hit: given with turns or prefix_tokens, from which it is computed; "
                "accepted: either"
            )
        return self
