"""What an engine prints when it starts, in its own units."""

from __future__ import annotations

from dataclasses import dataclass

from planner.engines.memory import Memory
from planner.engines.profiles import GIB, Engine


@dataclass(frozen=True, slots=True, eq=False)
class EngineMemory:
    """What an engine prints when it starts [GiB], on one GPU unless it reports the whole model."""

    weights_gib: float
    kv_gib: float
    kv_tokens: int | None
    """Tokens of the cache of one replica; None where nothing grows [token]."""
    activation_gib: float
    non_torch_gib: float
    graph_gib: float
    requested_gib: float
    """The share of memory planned with."""
    note: str = ""


def engine_report(memory: Memory, engine: Engine, gpus: int = 1) -> EngineMemory:
    """Return what an engine prints of a replica's memory.

    One of `whole_model` reports the file's bytes over all devices and the host, and the cache that
    is allocated for its longest context, all on no GPU in particular; `gpus` are those of the
    replica.
    """
    kv = memory.kv_pool_bytes_per_gpu
    tokens, note = memory.kv_pool_tokens, ""
    if engine.whole_model:
        kv, tokens = memory.pool.stores[0].needed(1, memory.longest) * gpus, memory.longest
    elif kv <= 0:
        note = (
            f"nothing is left for the cache: {-kv / GIB:.2f} GiB short; an engine that started all "
            f"the same was given more memory, or fewer sequences or tokens a step"
        )
    return EngineMemory(
        weights_gib=memory.weights_bytes_per_gpu * (gpus if engine.whole_model else 1) / GIB,
        kv_gib=kv / GIB,
        kv_tokens=tokens,
        activation_gib=memory.activation_bytes_per_gpu / GIB,
        non_torch_gib=memory.buffer_bytes_per_gpu / GIB,
        graph_gib=0.0 if engine.whole_model else memory.graph_bytes_per_gpu / GIB,
        requested_gib=0.0 if engine.whole_model else memory.requested_bytes_per_gpu / GIB,
        note=note,
    )
