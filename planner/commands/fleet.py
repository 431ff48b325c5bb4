"""`planner fleet`: a day of a fleet from a trace or a shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from planner.commands.loads import LoadType, pool
from planner.commands.options import json_option, model_argument, worker_options
from planner.commands.output import print_json, print_notes, print_table, print_verdict
from planner.commands.progress import busy
from planner.units import number, percent, usd

if TYPE_CHECKING:
    from planner.plans.fleet import Fleet, FleetLine
    from planner.plans.fleet_request import FleetRequest

POOL = LoadType("gpu[:tp=n:…]", pool)


EXAMPLES = """\b
Examples:
  planner fleet llama-3.1-70b-instruct --pool h100-sxm5:tp=4:engine=vllm \\
    --rates 2,1,1,4,9,12,10,6 --window-s 10800 --isl 1024 --osl 256 --tpot-ms 50
  planner plot fleet gpt-oss-120b --pool h100-sxm5:tp=2 --trace day.csv -o day.svg
"""
OPTIONS = (
    click.option(
        "--pool",
        "pools",
        type=POOL,
        multiple=True,
        required=True,
        help="Replicas of one kind, as h100-sxm5:tp=4:engine=vllm:isl_up_to=2000; repeatable.",
    ),
    click.option("--trace", metavar="FILE", help="Azure CSV, Mooncake or access-log JSON lines, …"),
    click.option("--rates", metavar="R[,R…]", help="A day's shape: requests/s in each window."),
    click.option("--isl", type=float, help="Input tokens of a request, with --rates."),
    click.option("--osl", type=float, help="Output tokens of a request, with --rates."),
    click.option("--scale", type=float, help="Times the trace's requests."),
    click.option("--window-s", type=float, help="Length of a window [s]; 60."),
    click.option("--start-delay-s", type=float, help="Until a new replica serves [s]; 300."),
    click.option("--hold-s", type=float, help="A replica is kept after it was wanted [s]; 900."),
    click.option("--headroom", type=float, help="Capacity beyond the last window's; 0.2."),
    click.option("--spare-replicas", type=int, help="Replicas beside, in each pool: 1 for N + 1."),
    click.option("--growth-per-month", type=float, help="0.1 for 10%."),
    click.option("--months", type=int, help="Months of growth to answer."),
    click.option("--ttft-ms", type=float, help="Limit on TTFT [ms]."),
    click.option("--tpot-ms", type=float, help="Limit on TPOT [ms]."),
    click.option("--e2e-ms", type=float, help="Limit on a whole request [ms]."),
    click.option("--percentile", type=float, help="Of the prediction's uncertainty."),
)


def fleet_options(function: Any) -> Any:
    """Add the options that say a day and the pools that serve it."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function


def request_of(
    model: str, pools: tuple[dict[str, Any], ...], rates: str | None, given: dict[str, Any]
) -> FleetRequest:
    """Return what the options ask."""
    from planner.plans.fleet_request import FleetRequest

    fields = {name: value for name, value in given.items() if value is not None}
    if rates is not None:
        fields["requests_per_s_by_window"] = rates.split(",")
    return FleetRequest(pools=[{"model": model, **row} for row in pools], **fields)


@click.command(epilog=EXAMPLES)
@model_argument
@fleet_options
@worker_options
@click.option("--plot", is_flag=True, help="Add a plot of GPUs over the day.")
@json_option
def command(
    model: str,
    as_json: bool,
    pools: tuple[dict[str, Any], ...],
    rates: str | None,
    plot: bool,
    workers: int,
    cluster: str | None,
    **given: Any,
) -> None:
    """Say how many GPUs a day of requests to MODEL takes, by three ways of scaling."""
    from planner.plans import executors
    from planner.plans.fleet import fleet

    request = request_of(model, pools, rates, given)
    with executors.chosen(workers, cluster) as (executor, _), busy("Reading the day"):
        result = fleet(request, executor)
    if as_json:
        print_json(result)
        return
    _print(result)
    if plot:
        from planner.pictures.terminal import fleet as plotted

        click.echo(plotted(result))


def _print(result: Fleet) -> None:
    auto = result.lines[1]
    print_verdict(
        f"{auto.gpus_mean:.1f} GPUs on average and {auto.gpus_peak:.0f} at the peak, for "
        f"{result.requests:,.0f} requests, {result.requests_per_s_mean:.3g} a second and "
        f"{result.requests_per_s_peak:.3g} at the peak."
    )
    print_table(
        ("scaling", "mean GPUs", "peak GPUs", "GPU-hours", "$/month", "within limits", "short"),
        [_row(line) for line in result.lines],
    )
    print_table(
        ("pool", "requests", "req/s a replica", "replicas", "peak", "binds"),
        [
            (
                day.name,
                f"{day.requests:,.0f}",
                number(day.requests_per_s_per_replica),
                f"{day.replicas_mean:.1f}",
                str(day.replicas_peak),
                day.binds,
            )
            for day in result.pools
        ],
    )
    if result.months:
        print_table(
            ("month", "peak req/s", "mean GPUs", "peak GPUs", "$/month"),
            [
                (
                    str(m.month),
                    number(m.requests_per_s_peak),
                    f"{m.gpus_mean:.1f}",
                    str(m.gpus_peak),
                    usd(m.usd_per_month),
                )
                for m in result.months
            ],
        )
    print_notes(result.notes)


def _row(line: FleetLine) -> tuple[str, ...]:
    return (
        line.name,
        f"{line.gpus_mean:.2f}",
        f"{line.gpus_peak:.1f}",
        f"{line.gpu_hours:,.1f}",
        usd(line.usd_per_month),
        percent(line.share_within_limits),
        f"{line.windows_short} windows",
    )
