"""Documents about models and accelerators."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

OwnId = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9][a-z0-9._-]{0,99}$",
        description="what to call it; requests then name it own/…",
        examples=["my-finetune"],
    ),
]
Document = Annotated[dict[str, Any], Field(min_length=1, max_length=2000)]


class OwnModel(BaseModel):
    """A model of your own."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: OwnId
    config: Document = Field(description="a Hugging Face config.json")


class OwnAccelerator(BaseModel):
    """An accelerator of your own; `base` in its spec may name one of the catalogue to change."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: OwnId
    spec: Document = Field(description="peaks, bandwidth, memory and their source, in SI units")


class ModelNote(BaseModel):
    """Something to know about a model."""

    code: str
    text: str


class ModelFacts(BaseModel):
    """What is known about a model; bytes per token are at 16 bits."""

    model_config = ConfigDict(extra="allow")

    id: str
    origin: Literal["catalogue", "own"]
    model_type: str
    kind: str
    total_params: int | float
    active_params: int | float
    embedding_params: int | float
    mtp_params: int | float
    kv_bytes_per_token: int | float
    state_bytes_per_sequence: int | float
    weights_bytes: int | float
    layers: int
    quantization: str
    max_context: int | None
    source: str
    notes: list[ModelNote]


class AcceleratorFacts(BaseModel):
    """What is known about an accelerator, with the source of every figure."""

    model_config = ConfigDict(extra="allow")

    id: str
    origin: Literal["catalogue", "own"]
    name: str
    vendor: str
    peaks_flops_per_s: dict[str, float]
    bandwidth_bytes_per_s: float
    memory_bytes: float | None
    ridge_point: dict[str, float]
    link: dict[str, Any]
    domain_size: int | None
    tdp_w: float | None
    sources: dict[str, str]
    notes: list[str]


class ModelList(BaseModel):
    """Models: your own, then the catalogue's."""

    items: list[ModelFacts]
    edition: str


class AcceleratorList(BaseModel):
    """Accelerators: your own, then the catalogue's."""

    items: list[AcceleratorFacts]
    edition: str


class EngineFacts(BaseModel):
    """What a serving engine is, and where it runs."""

    id: str = Field(examples=["vllm"])
    name: str
    release: str = Field(description="whose defaults the figures are; empty: no package was read")
    versions: dict[str, list[str]] = Field(
        description="first and last version its figures are known at, by release, date or build"
    )
    backends: dict[str, str] = Field(description="what it runs with, by vendor and kind of device")
    not_on: list[str] = Field(description="architectures of such devices that no build takes")
    measured: list[str] = Field(
        description="how runs of it on record were measured; empty: its speed never was"
    )


class EngineFigure(BaseModel):
    """One figure of an engine's profile, with where it comes from."""

    name: str = Field(examples=["memory_fraction"])
    value: Any
    unit: str = Field(description="empty where it has none")
    source: str
    confidence: str = Field(examples=["documented"])
    default_of: str = Field(
        description="release it is a default of, and for which devices; empty where it is none"
    )
    argument: str = Field(description="the engine's own name for it, empty where it has none")


class EngineProfile(EngineFacts):
    """An engine with all figures of its profile."""

    figures: list[EngineFigure]


class EngineList(BaseModel):
    """The engines a scenario may name."""

    items: list[EngineFacts]
    edition: str
