"""`planner plan`: the whole answer to one scenario."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from planner.commands.options import json_option, scenario_options
from planner.commands.output import print_json, print_notes, print_table, print_verdict
from planner.units import number, percent, scaled, seconds

if TYPE_CHECKING:
    from planner import answer

MOST_ROWS = 40
"""Points a table shows; --json gives all."""


@click.command()
@scenario_options
@json_option
def command(as_json: bool, **fields: Any) -> None:
    """Say what MODEL delivers on an accelerator, what binds it and what fits.

    MODEL is a catalogue id, a config.json, a directory that holds one, or a .gguf file.
    """
    from planner.plans.planning import plan
    from planner.scenario import Scenario

    result = plan(Scenario(**fields), advice=not as_json)
    if as_json:
        print_json(result)
        return
    print_verdict(verdict(result))
    _print_limits(result)
    _print_points(result)
    if result.serving:
        _print_serving(result.serving)
    _print_kernels(result)
    _print_levers(result)
    _print_settings(result.memory)
    print_notes(result.notes)


def verdict(result: answer.Plan) -> str:
    """Return the answer in one sentence."""
    text = result.limits.crossover_reason
    if result.limits.crossover_batch is not None and not result.memory.crossover_fits:
        text += f", which memory does not hold ({result.memory.max_batch} sequences fit)"
    if not result.memory.fits:
        text += "; this load does not fit"
    return text[0].upper() + text[1:] + "." + _in_practice(result)


def _in_practice(result: answer.Plan) -> str:
    """Where calibrated times are bound by something other than the roofline's memory."""
    batches_by_bound: dict[str, list[int]] = {}
    for point in result.points:
        if point.bound != "memory":
            batches_by_bound.setdefault(point.bound, []).append(point.batch)
    if not batches_by_bound or result.limits.crossover_batch is not None:
        return ""
    places = (
        f"{bound}-bound at batch {_span(batches)}" for bound, batches in batches_by_bound.items()
    )
    return f" As calibrated, {' and '.join(places)}."


def _span(batches: list[int]) -> str:
    low, high = min(batches), max(batches)
    return str(low) if low == high else f"{low}–{high}"


def _print_limits(result: answer.Plan) -> None:
    limits, memory = result.limits, result.memory
    crossover = "never" if limits.crossover_batch is None else str(limits.crossover_batch)
    pool = "–" if memory.kv_pool_tokens is None else f"{memory.kv_pool_tokens:,} tokens"
    print_table(
        ("limit", "value", ""),
        [
            ("ridge point", number(limits.ridge_point), "FLOP/byte"),
            ("saturation intensity", number(limits.saturation_intensity), "FLOP/byte"),
            ("crossover batch", crossover, ""),
            ("weights = KV batch", number(limits.weights_equal_kv_batch, 6), ""),
            ("knee batch", str(limits.knee_batch), ""),
            ("weights", scaled(memory.weights_bytes_per_gpu, "B"), "per GPU"),
            ("KV cache", scaled(memory.kv_bytes_per_token, "B"), "growth per token of a sequence"),
            ("windows, state", scaled(_constant(memory), "B"), "constant per sequence"),
            ("KV pool", scaled(memory.kv_pool_bytes_per_gpu, "B"), f"per GPU, {pool} in all"),
            ("largest batch", str(memory.max_batch), f"sequences, bound by {_named(memory.binds)}"),
            ("longest context", f"{memory.max_context:,}", "tokens"),
        ],
    )


def _constant(memory: answer.MemoryAnswer) -> float:
    return memory.window_bytes_per_sequence + memory.state_bytes_per_sequence


def _named(binds: str) -> str:
    return {"engine_cap": "the engine's max_sequences"}.get(binds, binds)


def _print_settings(memory: answer.MemoryAnswer) -> None:
    rows = [(each.name, _shown(each.value), each.source) for each in memory.settings]
    print_table(("setting", "value", "from"), rows)


def _shown(value: float | str | None) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _print_points(result: answer.Plan) -> None:
    rows = [
        (
            str(p.batch),
            f"{p.context:,}",
            number(p.arithmetic_intensity),
            seconds(p.tpot_s.p50),
            _range(p.tpot_s),
            _tokens(p.tokens_per_s),
            _tokens(p.tokens_per_s_per_gpu),
            percent(p.mbu),
            percent(p.mfu),
            p.bound,
        )
        for p in result.points[:MOST_ROWS]
    ]
    print_table(
        (
            "batch",
            "context",
            "FLOP/byte",
            "TPOT",
            "p10 – p90",
            "in all",
            "per GPU",
            "MBU",
            "MFU",
            "bound",
        ),
        rows,
    )
    if len(result.points) > MOST_ROWS:
        click.echo(f"… and {len(result.points) - MOST_ROWS} more points (--json gives all)")


def _print_serving(serving: answer.Serving) -> None:
    lengths = f"{number(serving.isl, 6)} in, {number(serving.osl, 6)} out"
    out, done = serving.output_tokens_per_s_interval, serving.requests_per_s_interval
    print_table(
        ("serving", "value", ""),
        [
            ("clients", str(serving.concurrency), lengths),
            ("running", number(serving.running_batch), f"{number(serving.queued)} queued"),
            ("TTFT", seconds(serving.ttft_s.p50), _range(serving.ttft_s)),
            ("TPOT", seconds(serving.tpot_s.p50), _range(serving.tpot_s)),
            (
                "output",
                _tokens(serving.output_tokens_per_s),
                f"{_tokens(out.p10)} – {_tokens(out.p90)}",
            ),
            ("requests", number(done.p50), f"{number(done.p10)} – {number(done.p90)} per second"),
            *_workers(serving.disaggregated),
        ],
    )


def _workers(state: answer.DisaggregationAnswer | None) -> list[tuple[str, str, str]]:
    if state is None:
        return []
    split = f"of {state.gpus_per_prefill} GPUs, per decode worker of {state.gpus_per_decode}"
    return [
        ("prefill workers", number(state.prefill_per_decode), split),
        ("cache transfer", seconds(state.transfer_s), "per prompt"),
        ("per GPU", _tokens(state.output_tokens_per_s_per_gpu), "over both kinds"),
    ]


def _tokens(rate: float) -> str:
    return scaled(rate, "tok/s")


def _range(interval: answer.Interval) -> str:
    return f"{seconds(interval.p10)} – {seconds(interval.p90)}"


def _print_levers(result: answer.Plan) -> None:
    last = result.points[-1]
    if result.advice:
        print_table(
            ("what helps", "per user", "per GPU", "quality risk", "cost"),
            [
                (
                    lever.text,
                    f"{lever.gain:.2f}×",
                    "–" if lever.gain_per_gpu is None else f"{lever.gain_per_gpu:.2f}×",
                    lever.quality_risk,
                    lever.cost,
                )
                for lever in result.advice
            ],
            title=f"levers at batch {last.batch}, context {last.context:,}",
        )


def _print_kernels(result: answer.Plan) -> None:
    point, drafting = result.points[-1], result.scenario.speculation
    yields = f", which yields {number(drafting.accepted)} tokens a sequence" if drafting else ""
    print_table(
        ("kernel", "launches", "FLOP", "bytes", "FLOP/byte", "time", "share", "bound"),
        [
            (
                k.name,
                str(k.count),
                scaled(k.flops, ""),
                scaled(k.bytes, "B"),
                number(k.arithmetic_intensity),
                seconds(k.time_s),
                percent(k.share),
                k.bound,
            )
            for k in result.kernels
        ],
        title=f"kernels of one step at batch {point.batch}, context {point.context:,}, "
        f"on a rank{yields}",
    )
