"""`planner plan`: the whole answer to one scenario."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from planner.commands.options import json_option, scenario_options
from planner.commands.output import (
    print_json,
    print_notes,
    print_resolved,
    print_table,
    print_verdict,
)
from planner.units import number, percent, scaled, seconds

if TYPE_CHECKING:
    from planner import answer
    from planner.deployment import Deployment

MOST_ROWS = 40
"""Points a table shows; --json gives all."""
EXAMPLES = """\b
Examples:
  planner plan llama-3.1-70b-instruct --gpu h100-sxm5 --tp 4 --context 8k
  planner plan deepseek-v3 --gpu h200-sxm --tp 8 --engine vllm --batch 1-64
  planner plan config.json --gpu mygpu.toml --concurrency 64 --isl 1k --osl 1k
"""


@click.command(epilog=EXAMPLES)
@scenario_options
@click.option("--plot", is_flag=True, help="Also plot tokens/s and TPOT over the batch.")
@json_option
def command(as_json: bool, plot: bool, **fields: Any) -> None:
    """Say what MODEL delivers on an accelerator, what binds it and what fits.

    MODEL is a catalogue id, a config.json, a directory that holds one, or a .gguf file.
    """
    from planner.deployment import deployment_of
    from planner.plans.planning import plan_deployment
    from planner.plans.resolved import resolved
    from planner.plans.verdict import verdict
    from planner.scenario import Scenario

    scenario = Scenario(**fields)
    deployment = deployment_of(scenario)
    result = plan_deployment(scenario, deployment, advice=not as_json)
    if as_json:
        print_json(result)
        return
    print_verdict(verdict(result))
    print_resolved(resolved(result, deployment))
    _print_limits(result)
    _print_points(result, deployment)
    if plot:
        _plot(scenario)
    if result.serving:
        _print_serving(result.serving)
    _print_kernels(result)
    _print_levers(result)
    _print_settings(result.memory)
    print_notes(result.notes)


def _plot(scenario: Any) -> None:
    from planner.pictures import look
    from planner.pictures.terminal import curves

    click.echo(curves(look(scenario)))


def _print_limits(result: answer.Plan) -> None:
    limits, memory = result.limits, result.memory
    crossover = "never" if limits.crossover_batch is None else f"{limits.crossover_batch:,}"
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
            ("largest batch", f"{memory.max_batch:,}", f"bound by {_named(memory.binds)}"),
            ("longest context", f"{memory.max_context:,}", "tokens"),
        ],
        legend="ridge: FLOP/byte at which arithmetic takes as long as memory; saturation: what "
        "the step's FLOP/byte approaches as the batch grows; crossover: batch that reaches the "
        "ridge; knee: past it a sequence adds less than half of what the first one added",
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


def _print_points(result: answer.Plan, deployment: Deployment) -> None:
    contexts = {point.context for point in result.points}
    one = len(contexts) == 1
    rows = []
    for p in result.points[:MOST_ROWS]:
        head = [
            f"{p.batch:,}",
            *([] if one else [f"{p.context:,}"]),
            number(p.arithmetic_intensity),
        ]
        if p.batch > deployment.memory.max_batch(p.context):
            rows.append((*head, "does not fit", *["–"] * 5, p.bound))
            continue
        rows.append(
            (
                *head,
                seconds(p.tpot_s.p50),
                _range(p.tpot_s),
                scaled(p.tokens_per_s, ""),
                scaled(p.tokens_per_s_per_gpu, ""),
                percent(p.mbu),
                percent(p.mfu),
                p.bound,
            )
        )
    columns = (
        "batch",
        *([] if one else ["context"]),
        "FLOP/B",
        "TPOT",
        "p10–p90",
        "tok/s",
        "per GPU",
        "MBU",
        "MFU",
        "bound",
    )
    title = f"at {contexts.pop():,} tokens of context" if one else ""
    print_table(
        columns,
        rows,
        title,
        legend="FLOP/B: FLOP per byte of the step; MBU, MFU: share of bandwidth and of peak "
        "FLOP/s used; bound: what takes most of the step",
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
    """An interval, with its unit where it is not that of the median."""
    low, middle, high = map(seconds, (interval.p10, interval.p50, interval.p90))
    if len({text.split()[-1] for text in (low, middle, high)}) == 1:
        low, high = low.split()[0], high.split()[0]
    return f"{low}–{high}"


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
        ("kernel", "launches", "FLOP", "bytes", "FLOP/B", "time", "share", "bound"),
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
