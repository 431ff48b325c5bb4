"""`planner recommend`: the batch to run per accelerator, and what binds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from planner.commands.completion import accelerators
from planner.commands.options import (
    Whole,
    format_options,
    json_option,
    model_argument,
    setting_options,
)
from planner.commands.output import print_json, print_notes, print_table, print_verdict
from planner.units import number, percent, scaled, seconds

if TYPE_CHECKING:
    from planner.plans.recommend import Option


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
@click.option("--context", type=Whole(), default=8192, help="Tokens in each sequence's cache: 8k.")
@click.option("--tpot-ms", type=float, help="Limit on TPOT [ms]; without one the knee binds.")
@click.option(
    "--gpu",
    "gpus",
    multiple=True,
    metavar="GPU",
    shell_complete=accelerators,
    help="Accelerator; repeatable.",
)
@click.option("--all", "everything", is_flag=True, help="All accelerators of the catalogue.")
@click.option("--percentile", type=float, default=50, help="Percentile of the limit.")
@click.option("--tp", type=int, help="Tensor-parallel ranks; default the fewest that fit.")
@click.option("--best-tp", is_flag=True, help="Try every TP and keep the most tokens/s per GPU.")
@format_options
@setting_options
@json_option
def command(
    as_json: bool,
    model: str,
    context: int,
    tpot_ms: float | None,
    gpus: tuple[str, ...],
    everything: bool,
    tp: int | None,
    **choice: Any,
) -> None:
    """Say which batch of MODEL to run on each accelerator, best tokens/s per GPU first."""
    from planner.plans.recommend import RecommendationRequest, recommend

    if bool(gpus) == everything:
        raise click.UsageError("gpu: give --gpu once or more, or --all")
    result = recommend(
        RecommendationRequest(
            model=model,
            context=context,
            tpot_ms=tpot_ms,
            tp=tp,
            gpu=None if everything else list(gpus),
            **choice,
        )
    )
    if as_json:
        print_json(result)
        return
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
