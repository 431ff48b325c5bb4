"""Lengths as a scenario asks for them: a number of tokens, or a distribution.

`moments` gives what a serving model needs of either. Inputs and outputs are taken as independent.
"""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Discriminator, Field, FiniteFloat, Tag, model_validator
from pydantic_core import PydanticCustomError

from planner.workload.lengths import Lengths

MOST_TOKENS = 2**30
MOST_BINS = 4096
"""Lengths of a histogram."""
MOST_REQUESTS = 100_000
"""Lengths of a trace."""

Tokens = Annotated[int, Field(ge=1, le=MOST_TOKENS)]
Mean = Annotated[FiniteFloat, Field(ge=1, le=MOST_TOKENS)]
Bin = Annotated[str, Field(pattern=r"^[1-9][0-9]{0,8}$")]
Often = Annotated[FiniteFloat, Field(ge=0, le=1e12)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class MeanAndSpread(_Part):
    """Figures of a log-normal distribution."""

    mean: Mean = Field(description="mean [token]")
    cv: Annotated[FiniteFloat, Field(ge=0, le=10)] = Field(
        description="coefficient of variation: standard deviation over mean"
    )


class Range(_Part):
    """Ends of a uniform distribution."""

    low: Mean = Field(description="shortest [token]")
    high: Mean = Field(description="longest [token]")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.high < self.low:
            raise PydanticCustomError("range", "high is below low")
        return self


class Lognormal(_Part):
    """Log-normal lengths, as those of people's requests nearly are."""

    lognormal: MeanAndSpread

    def moments(self) -> Lengths:
        """Return mean and mean square of the lengths."""
        return Lengths.lognormal(self.lognormal.mean, self.lognormal.cv)


class Uniform(_Part):
    """Lengths uniform between two."""

    uniform: Range

    def moments(self) -> Lengths:
        """Return mean and mean square of the lengths."""
        return Lengths.uniform(self.uniform.low, self.uniform.high)


class Histogram(_Part):
    """How often each length occurs; the counts need not sum to anything."""

    histogram: Annotated[
        dict[Bin, Often],
        Field(
            min_length=1, max_length=MOST_BINS, json_schema_extra={"additionalProperties": False}
        ),
    ] = Field(description="count by length [token]")

    @model_validator(mode="after")
    def _occurs(self) -> Self:
        if not any(self.histogram.values()):
            raise PydanticCustomError("histogram", "every count is zero")
        return self

    def moments(self) -> Lengths:
        """Return mean and mean square of the lengths."""
        return Lengths.histogram({int(length): n for length, n in self.histogram.items()})


class Trace(_Part):
    """Lengths as they were seen, one a request."""

    trace: Annotated[list[Tokens], Field(min_length=1, max_length=MOST_REQUESTS)] = Field(
        description="lengths [token]"
    )

    def moments(self) -> Lengths:
        """Return mean and mean square of the lengths."""
        return Lengths.trace(self.trace)


def _label(value: Any) -> str:
    """The member of `Length` a value claims to be, named as pydantic names such members."""
    if isinstance(value, int | float):
        return "constrained-tokens"
    if isinstance(value, dict) and len(value) == 1:
        return f"constrained-{next(iter(value))}"
    return f"constrained-{type(value).__name__.lower()}"


ACCEPTED = (
    'expected a number of tokens, {"lognormal": {"mean", "cv"}}, {"uniform": {"low", "high"}}, '
    '{"histogram": {length: count}} or {"trace": [lengths]}'
)

Length = Annotated[
    Annotated[Tokens, Tag("constrained-tokens")]
    | Annotated[Lognormal, Tag("constrained-lognormal")]
    | Annotated[Uniform, Tag("constrained-uniform")]
    | Annotated[Histogram, Tag("constrained-histogram")]
    | Annotated[Trace, Tag("constrained-trace")],
    Discriminator(_label, custom_error_type="length", custom_error_message=ACCEPTED),
]


def moments(length: Length) -> Lengths:
    """Return mean and mean square of a length."""
    return Lengths.fixed(length) if isinstance(length, int) else length.moments()


def mean_context(isl: Length, osl: Length) -> int:
    """Return the tokens in the cache of a sequence at a random step [token].

    Its input has the mean length, and half of its output is behind it; long outputs have more
    steps (see `Lengths.of_a_step`).
    """
    context = moments(isl).mean + moments(osl).of_a_step / 2
    return min(int(context), MOST_TOKENS)
