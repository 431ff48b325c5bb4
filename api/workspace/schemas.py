"""The document a workspace is exported as."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from api.catalog.schemas import Document, OwnAccelerator, OwnModel
from api.comparisons.schemas import ComparisonQuery, StoredComparison
from api.measurements.transfer import ExportedMeasurement
from api.scenarios.schemas import Action
from api.web.parameters import Time
from planner.answer import Editions
from planner.scenario import Scenario

FORMAT: Literal["decode-planner-workspace/1"] = "decode-planner-workspace/1"


class Exported(BaseModel):
    """Base of what stands in an export."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ExportedRevision(Exported):
    """One revision of a scenario."""

    revision: int = Field(ge=1, le=2**31 - 1)
    action: Action
    question: Scenario
    plan: Document = Field(description="the plan as it was stored")
    editions: Editions
    own: dict[str, str] = Field(default_factory=dict, max_length=2)
    created_at: Time


class ExportedScenario(Exported):
    """A scenario with all its revisions, oldest first."""

    id: str = Field(max_length=64)
    revisions: list[ExportedRevision] = Field(min_length=1)
    deleted_at: Time | None

    @model_validator(mode="after")
    def _numbered(self) -> Self:
        numbers = [item.revision for item in self.revisions]
        if numbers != sorted(set(numbers)):
            raise ValueError("revisions: their numbers do not rise")
        return self


class ExportedComparison(Exported):
    """A saved comparison."""

    asked: ComparisonQuery
    answer: StoredComparison


class Workspace(Exported):
    """Everything in a workspace except its API keys."""

    format: Literal["decode-planner-workspace/1"]
    workspace: str = Field(max_length=64)
    exported_at: Time
    models: list[OwnModel]
    accelerators: list[OwnAccelerator]
    scenarios: list[ExportedScenario]
    comparisons: list[ExportedComparison]
    measurements: list[ExportedMeasurement] = Field(default_factory=list)


class Imported(Exported):
    """What an import stored; ids are new, so that nothing that was there is touched."""

    models: int
    accelerators: int
    measurements: int
    scenarios: dict[str, str] = Field(description="new id by exported id")
    comparisons: dict[str, str] = Field(description="new id by exported id")


class ImportedLines(Exported):
    """What lines that were sent have come to."""

    name: str = Field(description="of the import: more of it is sent under this name")
    models: int
    accelerators: int
    measurements: int
    scenarios: int
    comparisons: int
    skipped: int = Field(description="lines that were stored before, under the same name")
    complete: bool = Field(description="whether the last line of an export was among them")
