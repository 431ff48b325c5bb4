"""Documents about checks."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from planner.handover.checking import CheckQuestion
from planner.handover.documents import MOST_BYTES
from planner.scenario import Short
from planner.workload.fields import LEAST

MOST_FILES = 20
Text = Annotated[str, Field(min_length=1, max_length=MOST_BYTES)]
Files = Annotated[dict[Short, Text], Field(min_length=1, max_length=MOST_FILES)]


class CheckQuery(BaseModel):
    """Files to check by name, what is asked of them, and a deployment to compare with."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    files: Files = Field(description="texts of command lines and manifests by name")
    question: CheckQuestion = Field(
        default_factory=CheckQuestion, description="load and limits, and what files do not say"
    )
    baseline: Text | None = Field(None, description="text of the deployment that is replaced")
    regression: Annotated[FiniteFloat, Field(ge=LEAST, le=100)] = Field(
        0.05, description="share by which a figure may be worse than the baseline's"
    )
