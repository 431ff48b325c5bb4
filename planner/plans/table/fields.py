"""The columns of a table: names, types, and what stands where a figure is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from planner.plans.columns import FIGURES
from planner.step.timing import BOUNDS

Kind = Literal["text", "degree", "count", "figure", "flag", "bound"]

DTYPES: dict[Kind, str] = {
    "text": "int32",  # positions in a dictionary
    "degree": "int32",
    "count": "int64",
    "figure": "float32",
    "flag": "int8",
    "bound": "int8",
}
"""How values are held until they are Arrow's. Figures have 24 bits, which is a rounding of 6e-8:
three orders below the closest interval."""
MISSING = -1
"""What stands for a missing value, but among figures, where NaN does."""


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a table."""

    name: str
    kind: Kind


def _fields(kind: Kind, *names: str) -> tuple[Field, ...]:
    return tuple(Field(name, kind) for name in names)


MEMBER = (
    *_fields("text", "model", "gpu"),
    *_fields("degree", "tp", "pp", "ep", "attention_dp"),
    *_fields("text", "weights", "kv", "engine"),
    *_fields("degree", "drafts"),
)
CONSTANT = _fields("figure", "weights_bytes_per_gpu", "kv_pool_bytes_per_gpu", "usd_per_gpu_hour")
COST = _fields("figure", "usd_per_million_output_tokens")
LIMITS = (
    *_fields("figure", "saturation_intensity"),
    *_fields("count", "crossover_batch", "weights_equal_kv_batch", "knee_batch"),
)
ERROR = _fields("text", "error")
DECODE = (
    *MEMBER,
    *_fields("count", "batch", "context"),
    *(Field(name, "bound" if name == "bound" else "figure") for name in FIGURES),
    *_fields("flag", "fits"),
    *_fields("count", "max_batch"),
    *CONSTANT,
    *COST,
)
SERVING = (
    *MEMBER,
    *_fields("count", "concurrency", "isl", "osl"),
    *_fields(
        "figure",
        "running_batch",
        "queued",
        "ttft_p10_s",
        "ttft_p50_s",
        "ttft_p90_s",
        "tpot_p10_s",
        "tpot_p50_s",
        "tpot_p90_s",
        "requests_per_s",
        "requests_per_s_p10",
        "requests_per_s_p90",
        "output_tokens_per_s",
        "output_tokens_per_s_per_gpu",
    ),
    *_fields("flag", "fits"),
    *CONSTANT,
    *COST,
)
BOUND_NAMES = list(BOUNDS)


def fields_of(serving: bool, limits: bool) -> tuple[Field, ...]:
    """Return the columns of a table in their order."""
    if serving:
        return (*SERVING, *ERROR)
    return (*DECODE, *(LIMITS if limits else ()), *ERROR)
