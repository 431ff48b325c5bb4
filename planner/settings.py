"""The settings of an engine's memory as a question states them: flat, each null by default."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, FiniteFloat

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


class LoraAsked(BaseModel):
    """Adapters held beside the weights."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    adapters: Annotated[int, Field(ge=1, le=4096)] = Field(description="adapters held at once")
    rank: Annotated[int, Field(ge=1, le=4096)] = Field(description="largest rank of an adapter")


class EngineSettings(BaseModel):
    """What a command line says of an engine's memory; null is the engine's default."""

    memory_fraction: Annotated[FiniteFloat, Field(gt=0, le=1)] | None = Field(
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
    lora: LoraAsked | None = Field(None, description="adapters held beside the weights")
    layers_on_gpu: Annotated[int, Field(ge=0, le=100_000)] | None = Field(
        None, description="llama.cpp: layers on the GPU, the head counting one"
    )
    vision: Switch | None = Field(
        None, description="whether encoders of images and sound are loaded"
    )
