"""Values that carry where they come from."""

from __future__ import annotations

import math
from dataclasses import dataclass

WEAK = ("unsourced", "assumed")
"""Confidences of figures that an answer resting on them must say."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One published or measured number with its unit, source and confidence.

    `confidence` is `datasheet`, `derived`, `third_party`, `measured` or `user`; `unsourced` where
    nobody who can be named stands behind the value, `assumed` where it is the planner's own choice.

    Raises:
        ValueError: the value is not finite and positive, or unit, source or confidence is empty.
    """

    value: float
    unit: str
    source: str
    confidence: str

    def __post_init__(self) -> None:
        if not (math.isfinite(self.value) and self.value > 0):
            raise ValueError(f"figure: value must be finite and positive, got {self.value!r}")
        for field in ("unit", "source", "confidence"):
            if not getattr(self, field).strip():
                raise ValueError(f"figure: {field} must not be empty")


@dataclass(frozen=True, slots=True)
class Link:
    """The link that joins accelerators of one scale-up domain.

    `bytes_per_s` is per accelerator, one direction, all its links together; None when not known
    or when there is no link. `pair_bytes_per_s` is what two accelerators get between them where a
    full mesh splits the links over the peers; None means all of it.
    """

    name: str
    bytes_per_s: float | None
    pair_bytes_per_s: float | None = None

    def __post_init__(self) -> None:
        for field in ("bytes_per_s", "pair_bytes_per_s"):
            value = getattr(self, field)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise ValueError(f"link.{field} must be finite and positive, got {value!r}")


@dataclass(frozen=True, slots=True)
class Measured:
    """A measurement published for an accelerator.

    `metric` names quantity and unit (`stream_bytes_per_s`, `matmul_flops_per_s`, ...), `format` is
    the number format as its source prints it, `note` says with what it was measured.
    """

    metric: str
    format: str
    figure: Figure
    note: str = ""
