"""Questions that only the service asks."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from planner.scenario import Count, Short
from planner.workload.distributions import Tokens


class RooflineQuery(BaseModel):
    """A model on an accelerator, at one batch and context."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: Short | dict[str, Any] = Field(description="catalogue id, own id, or a config.json")
    gpu: Short | dict[str, Any] = Field(description="catalogue id, own id, or an accelerator")
    batch: Count = Field(1, description="sequences")
    context: Tokens = Field(8192, description="tokens in each sequence's cache, or of its prompt")
    phase: Literal["decode", "prefill"] = "decode"
    tp: Count = Field(1, description="tensor-parallel ranks; kernels are those of one of them")
    weights: Short | None = Field(None, description="weight format; null is the checkpoint's own")
    kv: Short | None = Field(None, description="KV cache format; null is the model's own type")
