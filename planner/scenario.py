"""Scenario: the question, flat and with every default stated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, FiniteFloat, model_validator
from pydantic_core import PydanticCustomError

from planner.workload.distributions import Tokens
from planner.workload.fields import LEAST, Count, Positive, Workload

__all__ = ["Count", "Positive"]

DEFAULT_CONTEXT = 8192
"""Tokens in a sequence's cache where a question names none [token]."""
MOST_POINTS = 100_000
"""Points (batches × contexts) of one scenario at most."""
MOST_DRAFTS = 64
"""Drafts a step."""
BUSY = 0.8
"""Share of the time a prefill worker works, at which it is sized by default [-]."""


def _as_list(value: Any) -> Any:
    return value if value is None or isinstance(value, list) else [value]


def grid_points(batches: Sequence[int], contexts: Sequence[int]) -> int:
    """Return the points of a grid, each batch at each context [-]."""
    return len(batches) * len(contexts)


Short = Annotated[str, Field(min_length=1, max_length=200)]
Batches = Annotated[
    list[Count],
    Field(min_length=1, max_length=4096),
    BeforeValidator(_as_list, json_schema_input_type=Count | list[Count]),
]
Contexts = Annotated[
    list[Tokens],
    Field(min_length=1, max_length=4096),
    BeforeValidator(_as_list, json_schema_input_type=Tokens | list[Tokens]),
]


class SpeculationOptions(BaseModel):
    """Drafts a step verifies, and the tokens it yields."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    drafts: Annotated[int, Field(ge=0, le=MOST_DRAFTS)] = Field(
        description="tokens guessed a step, one after another"
    )
    accepted: Annotated[FiniteFloat, Field(ge=1, le=1 + MOST_DRAFTS)] | None = Field(
        None,
        description="tokens a step yields on average, the model's own included: 1 to 1 + drafts; "
        "null is as measured",
    )

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.accepted is not None and self.accepted > 1 + self.drafts:
            raise PydanticCustomError("accepted", "more is accepted than 1 + drafts")
        return self


class DisaggregationOptions(BaseModel):
    """Prefill on workers of its own; where a field is null, they are split as decode is."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    tp: Count | None = Field(None, description="tensor-parallel ranks of a prefill worker")
    pp: Count | None = Field(None, description="pipeline stages of a prefill worker")
    ep: Count | None = Field(None, description="expert-parallel ranks of a prefill worker")
    attention_dp: Count | None = Field(
        None, description="attention data-parallel ranks of a prefill worker"
    )
    busy: Annotated[FiniteFloat, Field(ge=0.01, le=0.99)] = Field(
        BUSY, description="share of the time a prefill worker works, at which it is sized"
    )
    transfer_bytes_per_s: Annotated[FiniteFloat, Field(ge=1e6, le=1e15)] | None = Field(
        None, description="bandwidth of a cache's way to decode [byte/s]; null is the GPU's link"
    )


MOST_BYTES = 1e15
"""Bytes of a pool [byte]."""
ON = {"on": True, "off": False}


def _as_switch(value: object) -> object:
    return ON.get(value, value) if isinstance(value, str) else value


Amount = Annotated[int, Field(ge=1, le=2**30)]
Switch = Annotated[
    bool, BeforeValidator(_as_switch, json_schema_input_type=bool | Literal["on", "off"])
]
Size = Annotated[FiniteFloat, Field(ge=0, le=MOST_BYTES)]


class LoraOptions(BaseModel):
    """Adapters held beside the weights."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    adapters: Annotated[int, Field(ge=1, le=4096)] = Field(description="adapters held at once")
    rank: Annotated[int, Field(ge=1, le=4096)] = Field(description="largest rank of an adapter")


class EngineSettings(BaseModel):
    """What a command line says of an engine's memory; null is the engine's default."""

    memory_fraction: Annotated[FiniteFloat, Field(ge=LEAST, le=1)] | None = Field(
        None,
        description="share of memory the engine plans with: gpu_memory_utilization, "
        "mem_fraction_static, kv_cache_free_gpu_memory_fraction",
    )
    kv_pool_bytes: Size | None = Field(
        None, description="cache pool of one GPU [byte], whatever memory_fraction says"
    )
    max_sequences: Amount | None = Field(
        None, description="sequences that may run at once on one attention-DP rank"
    )
    max_batched_tokens: Amount | None = Field(None, description="tokens of a step")
    max_model_len: Amount | None = Field(
        None,
        description="longest context of a sequence; of llama.cpp the cache of all sequences "
        "(ctx-size) [token]",
    )
    block_size: Annotated[int, Field(ge=1, le=4096)] | None = Field(
        None, description="tokens of a cache block"
    )
    prefix_caching: Switch | None = Field(None, description="whether prefixes are cached")
    chunked_prefill: Switch | None = Field(
        None, description="whether prompts run in chunks; without, a step holds max_model_len"
    )
    graphs: Literal["on", "off"] | Amount | None = Field(
        None, description="CUDA graphs: on, off, or the largest batch captured"
    )
    kv_offload_bytes: Size | None = Field(
        None, description="host memory for caches over all GPUs of a replica [byte]"
    )
    decode_cp: Amount | None = Field(
        None, description="tensor-parallel ranks that share the tokens of a sequence's cache"
    )
    nodes: Amount | None = Field(None, description="hosts one replica spans")
    lora: LoraOptions | None = Field(None, description="adapters held beside the weights")
    layers_on_gpu: Annotated[int, Field(ge=0, le=100_000)] | None = Field(
        None, description="llama.cpp: layers on the GPU, the head counting one"
    )
    vision: Switch | None = Field(
        None, description="whether encoders of images and sound are loaded"
    )


class MachineFields(BaseModel):
    """A model on an accelerator, split and run so."""

    model: Short | dict[str, Any] = Field(description="catalogue id, or a config.json object")
    gpu: Short | dict[str, Any] = Field(description="catalogue id, or an accelerator object")
    tp: Count = Field(1, description="tensor-parallel ranks")
    pp: Count = Field(1, description="pipeline stages")
    ep: Count = Field(1, description="expert-parallel ranks, out of tp·attention_dp")
    attention_dp: Count = Field(1, description="attention data-parallel ranks")
    replicas: Count = Field(
        1,
        description="equal replicas; `batch` and `concurrency` are of one, `users`, "
        "`concurrency_in_all` and `requests_per_s` are shared out among them",
    )
    weights: Short | None = Field(None, description="weight format; null is the checkpoint's own")
    kv: Short | None = Field(None, description="KV cache format; null is the engine's default")
    engine: Short | None = Field(None, description="engine; null is engine-neutral physics")
    engine_version: Short | None = None


class Scenario(EngineSettings, Workload, MachineFields):
    """A question: a model on an accelerator, deployed so, under this load.

    `model` and `gpu` are catalogue ids or inline objects (a config.json, an accelerator). The
    decode question is `batch` and `context`, the serving question `isl`, `osl` and the load:
    `concurrency` of one replica, or `users`, `concurrency_in_all` or `requests_per_s` of all
    together. A scenario holds either or both. With `disaggregated`, `batch` (its last) may stand
    for `concurrency`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    batch: Batches | None = Field(None, description="sequences decoding at once in one replica")
    context: Contexts | None = Field(None, description="tokens in each sequence's cache")
    concurrency: Count | None = Field(None, description="closed-loop clients of one replica")
    speculation: SpeculationOptions | None = Field(
        None, description="speculative decoding: drafts a step, and tokens it yields"
    )
    disaggregated: DisaggregationOptions | None = Field(
        None, description="prefill on workers of its own; null shares the GPUs with decode"
    )
    name: Short | None = None
    tags: list[Short] = Field(default_factory=list, max_length=64)
    notes: Annotated[str, Field(max_length=10_000)] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        clients = self.concurrency or (self.demand and getattr(self, self.demand))
        if self.concurrency and self.demand:
            raise ValueError(
                f"concurrency: given with {self.demand}; accepted: the load of one replica, or of "
                f"all together"
            )
        given: dict[str, Any] = {"concurrency": clients, "isl": self.isl, "osl": self.osl}
        if self.disaggregated:
            given["batch or concurrency"] = given.pop("concurrency") or self.batch
        missing = [name for name, value in given.items() if value is None]
        if missing and (self.disaggregated or len(missing) < len(given)):
            raise ValueError(f"{', '.join(missing)}: needed for the serving question")
        points = grid_points(self.batch or [1], self.context or [1])
        if points > MOST_POINTS:
            raise ValueError(f"batch: {points} points; accepted: {MOST_POINTS} at most")
        return self
