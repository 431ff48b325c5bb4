"""The figures a page shows of a plan, each with unit, interval, formula and source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from planner.answer import Interval, Plan, Point
from planner.engines.memory import Memory
from planner.units import number, percent, scaled, seconds

PHYSICS = "docs/physics.md"


@dataclass(frozen=True, slots=True)
class Explained:
    """A figure in words: what it is and how it is computed."""

    formula: str
    source: str


@dataclass(frozen=True, slots=True)
class ShownFigure:
    """One figure as shown, and what it was computed to."""

    name: str
    label: str
    value: float | int | None
    text: str
    interval: str
    explained: Explained


TPOT = Explained(
    "Σ over kernels of launch + ((FLOPs/(peak·e_c))^p + (bytes/(bandwidth·e_m))^p)^(1/p), plus "
    "collectives and the engine's own time, over the tokens a step yields",
    f"roofline of Williams, Waterman, Patterson (2009), efficiencies fitted; {PHYSICS}",
)
RATE = Explained("batch / TPOT, over all replicas; per GPU divided by the GPUs", PHYSICS)
EXPLAINED: dict[str, Explained] = {
    "tpot": TPOT,
    "rate": RATE,
    "ridge": Explained("peak FLOP/s ÷ bandwidth", "Williams, Waterman, Patterson (2009)"),
    "saturation": Explained("ΣFLOPs ÷ Σbytes of a step as the batch grows without bound", PHYSICS),
    "crossover": Explained("smallest batch whose arithmetic takes as long as its traffic", PHYSICS),
    "knee": Explained(
        "last batch at which one more sequence adds half of what the first added", PHYSICS
    ),
    "equal": Explained("smallest batch whose cache traffic equals that of the weights", PHYSICS),
    "weights": Explained("bytes of the weights as stored, as this split loads them", PHYSICS),
    "kv": Explained("values cached per token and layer × bytes of the cache format", PHYSICS),
    "state": Explained("recurrent state of one sequence × bytes of its format", PHYSICS),
    "pool": Explained(
        "the engine's share of memory, less weights, activations, graphs, buffers", PHYSICS
    ),
    "batch": Explained(
        "sequences of this context the pool holds, the engine's cap at most", PHYSICS
    ),
    "context": Explained("longest context at which the smallest batch fits", PHYSICS),
    "serving": Explained(
        "steady state of a closed loop: decode steps and the prompts of others", PHYSICS
    ),
}


BINDS = {"memory": "memory", "engine_cap": "the engine's max_sequences"}


def point_rows(plan: Plan, memory: Memory) -> list[tuple[str, ...]]:
    """Return the points of a plan as cells; rates of points that do not fit are left out."""
    return [_point(one, one.batch <= memory.max_batch(one.context)) for one in plan.points]


POINT_HEAD = (
    "batch",
    "context",
    "FLOP/byte",
    "TPOT",
    "p10 – p90",
    "tokens/s",
    "per GPU",
    "MBU",
    "MFU",
    "bound",
)


def _point(point: Point, fits: bool) -> tuple[str, ...]:
    head = (f"{point.batch:,}", f"{point.context:,}", number(point.arithmetic_intensity))
    if not fits:
        return (*head, "does not fit", *["–"] * 5, point.bound)
    return (
        *head,
        seconds(point.tpot_s.p50),
        _range(point.tpot_s, seconds),
        number(point.tokens_per_s),
        number(point.tokens_per_s_per_gpu),
        percent(point.mbu),
        percent(point.mfu),
        point.bound,
    )


def _range(interval: Interval, shown: Callable[[float], str]) -> str:
    return f"{shown(interval.p10)} – {shown(interval.p90)}"


def figures(plan: Plan) -> list[ShownFigure]:
    """Return the limits, the memory and, where it was asked for, the serving state of a plan."""
    limits, memory = plan.limits, plan.memory
    pool = "" if memory.kv_pool_tokens is None else f"{memory.kv_pool_tokens:,} tokens in all"
    crossover = "never" if limits.crossover_batch is None else f"{limits.crossover_batch:,}"
    rows: list[tuple[str, str, str, Any, str, str]] = [
        (
            "ridge",
            "ridge_point",
            "Ridge point",
            limits.ridge_point,
            f"{number(limits.ridge_point)} FLOP/byte",
            "",
        ),
        (
            "saturation",
            "saturation_intensity",
            "Saturation intensity",
            limits.saturation_intensity,
            f"{number(limits.saturation_intensity)} FLOP/byte",
            "as the batch grows",
        ),
        ("crossover", "crossover_batch", "Crossover batch", limits.crossover_batch, crossover, ""),
        (
            "equal",
            "weights_equal_kv_batch",
            "Weights equal cache at batch",
            limits.weights_equal_kv_batch,
            number(limits.weights_equal_kv_batch, 6),
            "",
        ),
        ("knee", "knee_batch", "Knee batch", limits.knee_batch, f"{limits.knee_batch:,}", ""),
        (
            "weights",
            "weights_bytes_per_gpu",
            "Weights",
            memory.weights_bytes_per_gpu,
            scaled(memory.weights_bytes_per_gpu, "B"),
            "per GPU",
        ),
        (
            "kv",
            "kv_bytes_per_token",
            "KV cache",
            memory.kv_bytes_per_token,
            scaled(memory.kv_bytes_per_token, "B"),
            "growth per token of a sequence",
        ),
        (
            "state",
            "state_bytes_per_sequence",
            "State",
            memory.state_bytes_per_sequence,
            scaled(memory.state_bytes_per_sequence, "B"),
            "per sequence",
        ),
        (
            "pool",
            "kv_pool_bytes_per_gpu",
            "KV pool",
            memory.kv_pool_bytes_per_gpu,
            scaled(memory.kv_pool_bytes_per_gpu, "B"),
            f"per GPU; {pool}".rstrip("; "),
        ),
        (
            "batch",
            "max_batch",
            "Largest batch",
            memory.max_batch,
            f"{memory.max_batch:,}",
            f"bound by {BINDS[memory.binds]}",
        ),
        (
            "context",
            "max_context",
            "Longest context",
            memory.max_context,
            f"{memory.max_context:,} tokens",
            "",
        ),
    ]
    shown = [
        ShownFigure(name, label, value, text, extra, EXPLAINED[key])
        for key, name, label, value, text, extra in rows
    ]
    return shown + _serving(plan)


def _serving(plan: Plan) -> list[ShownFigure]:
    state = plan.serving
    if state is None:
        return []
    how = EXPLAINED["serving"]
    out, done = state.output_tokens_per_s_interval, state.requests_per_s_interval
    return [
        ShownFigure(
            "running_batch",
            "Running",
            state.running_batch,
            number(state.running_batch),
            f"{number(state.queued)} queued",
            how,
        ),
        ShownFigure(
            "ttft_s",
            "TTFT",
            state.ttft_s.p50,
            seconds(state.ttft_s.p50),
            _range(state.ttft_s, seconds),
            how,
        ),
        ShownFigure(
            "serving_tpot_s",
            "TPOT under load",
            state.tpot_s.p50,
            seconds(state.tpot_s.p50),
            _range(state.tpot_s, seconds),
            how,
        ),
        ShownFigure(
            "output_tokens_per_s",
            "Output",
            state.output_tokens_per_s,
            f"{number(state.output_tokens_per_s)} tokens/s",
            _range(out, number),
            how,
        ),
        ShownFigure(
            "requests_per_s",
            "Requests",
            state.requests_per_s,
            f"{number(state.requests_per_s)} per second",
            _range(done, number),
            how,
        ),
    ]
