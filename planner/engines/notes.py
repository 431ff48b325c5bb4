"""What a reader must know of the memory of a deployment."""

from __future__ import annotations

from planner.engines.memory import Memory
from planner.engines.profiles import engines
from planner.engines.settings import MemorySettings
from planner.models.parts import Formats
from planner.models.spec import ModelSpec, Note
from planner.precision import get_format
from planner.step.parallel import Sharding


def memory_notes(
    spec: ModelSpec,
    sharding: Sharding,
    formats: Formats,
    memory: Memory,
    settings: MemorySettings,
    kv: str | None,
) -> tuple[Note, ...]:
    """Return the notes on settings, and on what was assumed of the memory."""
    notes = (
        _encoder(spec, sharding, memory),
        _layout(spec, memory, kv),
        _cache_format(spec, formats, memory, kv),
        _length(memory),
        _pool(memory, settings),
        _offload(settings),
        _adapters(memory, settings),
    )
    return tuple(note for note in notes if note)


def _encoder(spec: ModelSpec, sharding: Sharding, memory: Memory) -> Note | None:
    loading = memory.engine.loading
    if not spec.encoder_params or not loading.encoder:
        return None
    ways = 1 if spec.model_type in loading.replicated_encoders else sharding.tp
    size = spec.encoder_params * get_format(spec.quantization.vectors or spec.dtype).bytes
    return Note(
        "encoder_loaded",
        f"weights hold the image or sound encoder, {size / ways / sharding.pp / 1e9:.2f} GB per "
        f"GPU; vision=off leaves it out",
    )


def _layout(spec: ModelSpec, memory: Memory, kv: str | None) -> Note | None:
    own = memory.engine.kv_by_type.get(spec.model_type)
    if own is None or kv is not None:
        return None
    return Note(
        "cache_layout",
        f"kv: {memory.engine.name} keeps the cache of {spec.model_type} as {own} by default; some "
        f"versions and devices take 16 bits, which kv=bf16 says",
    )


def _cache_format(spec: ModelSpec, formats: Formats, memory: Memory, kv: str | None) -> Note | None:
    """Narrow weights beside which one engine keeps a narrow cache, and another does not."""
    engine, brings_scales = memory.engine, spec.quantization.kv is not None
    if kv is not None or engine.id == "neutral" or brings_scales:
        return None
    if spec.model_type in engine.kv_by_type:
        return None
    somewhere = {name for one in engines().values() for name in one.kv_by_weights}
    narrow = sorted({one.id for one in formats.weights.values()} & somewhere)
    if not narrow:
        return None
    other = "bf16" if narrow[0] in engine.kv_by_weights else "fp8"
    return Note(
        "assumed_cache_format",
        f"kv: {engine.name} keeps the cache as {formats.kv.id} beside {' and '.join(narrow)} "
        "weights, as the checkpoint brings no scales of a cache (assumed); "
        f"kv={other} says otherwise",
    )


def _length(memory: Memory) -> Note | None:
    """Where no sequence of the longest context fits, an engine refuses to start or caps them."""
    if memory.engine.id == "neutral" or memory.engine.whole_model:
        return None
    if memory.kv_pool_bytes_per_gpu <= 0 or memory.pool.sequences(memory.longest) >= 1:
        return None
    longest = memory.pool.longest(1, memory.longest)
    if not memory.engine.checks_longest:
        return Note(
            "max_model_len_capped",
            f"max_model_len: the cache holds no sequence of {memory.longest} tokens; "
            f"{memory.engine.name} starts, and serves sequences of {longest} at most",
        )
    return Note(
        "max_model_len_does_not_fit",
        f"max_model_len: the cache holds no sequence of {memory.longest} tokens, with which "
        f"{memory.engine.name} would not start; accepted: {longest} or less",
    )


def _pool(memory: Memory, settings: MemorySettings) -> Note | None:
    if settings.kv_pool_bytes is None:
        return None
    room = memory.requested_bytes_per_gpu - memory.weights_bytes_per_gpu
    if settings.kv_pool_bytes <= room:
        return None
    return Note(
        "kv_pool_beyond_memory",
        f"kv_pool_bytes: {settings.kv_pool_bytes / 1e9:.1f} GB beside the weights exceed the "
        f"memory planned with; {max(room, 0.0) / 1e9:.1f} GB are left",
    )


def _offload(settings: MemorySettings) -> Note | None:
    if not settings.kv_offload_bytes:
        return None
    return Note(
        "kv_offload_prefixes",
        "kv_offload_bytes: host memory keeps prefixes for requests to come, and holds no sequence "
        "that runs; say with prefix_hit what it finds",
    )


def _adapters(memory: Memory, settings: MemorySettings) -> Note | None:
    if settings.lora is None:
        return None
    return Note(
        "adapters_held",
        f"lora: adapters take {memory.adapter_bytes_per_gpu / 1e9:.2f} GB per GPU, routed experts "
        f"without",
    )
