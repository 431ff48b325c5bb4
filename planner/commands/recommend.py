"""`planner recommend`: what to run for a workload, or the batch per accelerator at a context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from planner.commands.completion import accelerators
from planner.commands.options import (
    DRAFTS,
    SWITCH,
    Whole,
    json_option,
    model_argument,
    setting_options,
    version_option,
    worker_options,
    workload_options,
)
from planner.commands.output import print_json, print_notes, print_table, print_verdict
from planner.commands.progress import busy
from planner.commands.sized import print_sized
from planner.units import number, percent, scaled, seconds

if TYPE_CHECKING:
    from planner.plans.batches import Option
    from planner.plans.recommend import Recommendation


def _names(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    """Return one name, or a list where several are separated by commas."""
    del ctx, param
    if value is None or "," not in value:
        return value
    return [part.strip() for part in value.split(",")]


EXAMPLES = """\b
Examples:
  planner recommend llama-3.1-70b-instruct --context 8k --tpot-ms 50 --all
  planner recommend deepseek-v3 --gpu h200-sxm --gpu b200-sxm --best-tp
"""
LEGEND = (
    "batch: sequences to run at once; free: cache left at that batch; stops: what stops a larger "
    "one (memory, the limit on TPOT, the knee, past which a sequence adds less than half of what "
    "the first one added, or the crossover); step: what takes most of it"
)


@click.command(epilog=EXAMPLES)
@model_argument
@click.option("--concurrency", type=int, help="Requests in flight, in all.")
@workload_options
@click.option("--context", type=Whole(), default=8192, help="Tokens in a cache, without --isl: 8k.")
@click.option(
    "--gpu",
    "gpu_ids",
    multiple=True,
    metavar="GPU",
    shell_complete=accelerators,
    help="Accelerator; repeatable.",
)
@click.option("--all", "everything", is_flag=True, help="All accelerators of the catalogue.")
@click.option("--announced", is_flag=True, help="Announced accelerators, too.")
@click.option("--gpus", type=int, help="GPUs that there are at most, in all.")
@click.option("--usd-per-month", type=float, help="Budget [USD].")
@click.option("--tp", type=int, help="Tensor-parallel ranks; default the best.")
@click.option("--pp", type=int, help="Pipeline stages.")
@click.option("--ep", type=int, help="Expert-parallel ranks.")
@click.option("--attention-dp", type=int, help="Attention data-parallel ranks.")
@click.option("--best-tp", is_flag=True, help="Without --isl: try every TP.")
@click.option("--weights", callback=_names, metavar="FORMAT[,…]", help="Default the checkpoint's.")
@click.option("--kv", callback=_names, metavar="FORMAT[,…]", help="Default the engine's, and fp8.")
@click.option("--engine", callback=_names, metavar="ENGINE[,…]", help="Default all measured.")
@version_option
@click.option("--speculation", type=DRAFTS, help="Drafts a step, and tokens it yields.")
@click.option("--disaggregated", type=SWITCH, help="Prompts on workers of their own: both tried.")
@click.option("--confirm/--no-confirm", default=True, help="Simulate what is recommended.")
@click.option("--usd-per-gpu-hour", type=float, help="Price of your own [USD].")
@click.option("--price-kind", type=click.Choice(["on_demand", "reserved", "spot"]))
@click.option("--provider", help="Whose prices; default the median of all.")
@click.option("--price-days", type=int, help="Age past which a price is not used [day].")
@click.option("--duty-cycle", type=float, help="Share of the month that is paid for.")
@click.option("--api-usd-per-million-output", type=float, help="API price to break even with.")
@click.option("--api-usd-per-million-input", type=float, help="Of its input tokens.")
@click.option("--grid-kg-co2-per-kwh", type=float, help="CO₂ of the grid [kg/kWh].")
@setting_options
@worker_options
@json_option
def command(
    as_json: bool,
    model: str,
    gpu_ids: tuple[str, ...],
    everything: bool,
    disaggregated: str | None,
    concurrency: int | None,
    workers: int,
    cluster: str | None,
    **given: Any,
) -> None:
    """Say what to run MODEL on: which accelerator, how many, which split, at what price.

    With --isl, --osl and a load (--users, --concurrency, --requests-per-s), or with what there is
    (--gpus, --usd-per-month), every option is searched. Without lengths, the batch to run on each
    accelerator at a context is the answer; prompts do not count there.
    """
    from planner.plans import executors
    from planner.plans.recommend import RecommendationRequest, recommend

    fields = {name: value for name, value in given.items() if value is not None}
    if gpu_ids and everything:
        raise click.UsageError("gpu: give --gpu once or more, or --all")
    if "isl" not in fields and not (gpu_ids or everything):
        raise click.UsageError("gpu: give --gpu once or more, or --all")
    if concurrency is not None:
        fields.setdefault("concurrency_in_all", concurrency)
    if disaggregated is not None:
        fields["disaggregated"] = disaggregated == "on"
    request = RecommendationRequest(model=model, gpu=list(gpu_ids) or None, **fields)
    with executors.chosen(workers, cluster) as (executor, _), busy("Searching options"):
        result = recommend(request, executor)
    if as_json:
        print_json(result)
    elif result.sized is not None:
        print_sized(result)
    else:
        _print_batches(result)


def _print_batches(result: Recommendation) -> None:
    if not result.choices:
        print_verdict("None of these accelerators can run this.")
    else:
        best = result.choices[0]
        print_verdict(
            f"Best per GPU: batch {best.batch} on {best.tp}× {_named(best)}, "
            f"bound by {best.binds}: {scaled(best.tokens_per_s_per_gpu, 'tok/s')} per GPU "
            f"at {seconds(best.tpot_s.p50)}."
        )
    print_table(
        ("gpu", "tp", "batch", "per GPU", "tok/s", "TPOT", "free", "$/Mtok", "stops", "step"),
        [
            (
                _named(c),
                str(c.tp),
                f"{c.batch:,}",
                scaled(c.tokens_per_s_per_gpu, ""),
                scaled(c.tokens_per_s, ""),
                seconds(c.tpot_s.p50),
                percent(c.headroom),
                number(c.usd_per_million_tokens),
                c.binds,
                c.bound,
            )
            for c in result.choices
        ],
        legend=LEGEND if result.choices else "",
    )
    if result.refused:
        print_table(("cannot", "why"), [(r.gpu, r.reason) for r in result.refused])
    print_notes(result.notes)


def _named(choice: Option) -> str:
    return choice.gpu + (" (announced)" if choice.status == "announced" else "")
