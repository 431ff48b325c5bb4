"""What an engine's settings change of a step's time, and what of that is assumed."""

from __future__ import annotations

from planner.engines.profiles import Engine
from planner.engines.settings import MemorySettings
from planner.models.spec import ModelSpec, Note
from planner.step.conditions import PLAIN, Conditions


def conditions_of(
    spec: ModelSpec, engine: Engine, settings: MemorySettings, host_bytes_per_s: float | None = None
) -> Conditions:
    """Return the conditions that settings put a step under.

    `host_bytes_per_s` is the bandwidth of host memory where it is known [byte/s].
    """
    lora, on_gpu = settings.lora, settings.layers_on_gpu
    if not engine.host_bytes_per_s:
        on_gpu = None
    given = (lora, settings.decode_cp, on_gpu, settings.graphs)
    if all(each is None for each in given):
        return PLAIN
    return Conditions(
        decode_cp=settings.decode_cp or 1,
        adapters=lora.adapters if lora else 0,
        rank=lora.rank if lora else 0,
        host_layers=0.0 if on_gpu is None else max(0.0, 1.0 - on_gpu / spec.layers),
        host_head=on_gpu is not None and on_gpu <= spec.layers,
        host_bytes_per_s=host_bytes_per_s or engine.host_bytes_per_s,
        host_flops_per_s=engine.host_flops_per_s,
        eager_layer_s=engine.eager_layer_s if settings.graphs == "off" else 0.0,
    )


def condition_notes(spec: ModelSpec, conditions: Conditions) -> tuple[Note, ...]:
    """Return what is assumed of these conditions, with its direction and size."""
    notes = (
        _host_layers(spec, conditions),
        _shared_tokens(conditions),
        _adapters(conditions),
        _graphs(spec, conditions),
    )
    return tuple(note for note in notes if note)


def _host_layers(spec: ModelSpec, conditions: Conditions) -> Note | None:
    if not (conditions.host_layers or conditions.host_head):
        return None
    layers = round(conditions.host_layers * spec.layers)
    return Note(
        "layers_on_host",
        f"layers_on_gpu: {layers} of {spec.layers} layers and the head run on the host, assumed to "
        f"read {conditions.host_bytes_per_s / 1e9:.0f} GB/s and to compute "
        f"{conditions.host_flops_per_s / 1e12:g} TFLOP/s; their time is in proportion: a server of "
        f"12 memory channels reads 5 times as much, a laptop half",
    )


def _shared_tokens(conditions: Conditions) -> Note | None:
    if conditions.decode_cp == 1:
        return None
    return Note(
        "decode_cp",
        f"decode_cp: each rank reads 1/{conditions.decode_cp} of a sequence's cache; queries and "
        f"outputs that ranks exchange are taken as wide as the hidden state, which is too little "
        f"where heads are wider together (4 times in DeepSeek-V3)",
    )


def _adapters(conditions: Conditions) -> Note | None:
    if not conditions.adapters:
        return None
    return Note(
        "adapters",
        "lora: every sequence is taken to run with an adapter, and all to be as likely; fewer in "
        "use take less time, none of the adapters' at least",
    )


def _graphs(spec: ModelSpec, conditions: Conditions) -> Note | None:
    if not conditions.eager_layer_s:
        return None
    layer_ms = conditions.eager_layer_s * 1e3
    return Note(
        "eager_launches",
        f"graphs: without them each layer is taken to last {layer_ms:.2g} ms longer, "
        f"{layer_ms * spec.layers:.3g} ms a step, as in one published run; less where a "
        f"faster host or long steps hide it",
    )
