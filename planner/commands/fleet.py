"""`planner fleet`: a day of a fleet from a trace or a shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from planner.commands.loads import LoadType, pool
from planner.commands.options import json_option, model_argument
from planner.commands.output import print_json, print_notes, print_table, print_verdict
from planner.commands.progress import progress_bar
from planner.units import number, percent

if TYPE_CHECKING:
    from planner.plans.fleet import Fleet, FleetLine

POOL = LoadType("gpu[:tp=n:…]", pool)


@click.command()
@model_argument
@click.option(
    "--pool",
    "pools",
    type=POOL,
    multiple=True,
    required=True,
    help="Replicas of one kind, as h100-sxm5:tp=4:engine=vllm:isl_up_to=2000; repeatable.",
)
@click.option("--trace", metavar="FILE", help="Azure CSV, Mooncake or access-log JSON lines, …")
@click.option("--rates", metavar="R[,R…]", help="A day's shape: requests/s in each window.")
@click.option("--isl", type=float, help="Input tokens of a request, with --rates.")
@click.option("--osl", type=float, help="Output tokens of a request, with --rates.")
@click.option("--scale", type=float, help="Times the trace's requests.")
@click.option("--window-s", type=float, help="Length of a window [s]; 60.")
@click.option("--start-delay-s", type=float, help="Until a new replica serves [s]; 300.")
@click.option("--hold-s", type=float, help="A replica is kept after it was wanted [s]; 900.")
@click.option("--headroom", type=float, help="Capacity beyond the last window's; 0.2.")
@click.option("--spare-replicas", type=int, help="Replicas beside, in each pool: 1 for N + 1.")
@click.option("--growth-per-month", type=float, help="0.1 for 10%.")
@click.option("--months", type=int, help="Months of growth told.")
@click.option("--ttft-ms", type=float, help="Limit on TTFT [ms].")
@click.option("--tpot-ms", type=float, help="Limit on TPOT [ms].")
@click.option("--e2e-ms", type=float, help="Limit on a whole request [ms].")
@click.option("--percentile", type=float, help="Of the prediction's uncertainty.")
@json_option
def command(
    model: str, as_json: bool, pools: tuple[dict[str, Any], ...], rates: str | None, **given: Any
) -> None:
    """Say how many GPUs a day of requests to MODEL takes, by three ways of scaling."""
    from planner.plans.fleet import fleet
    from planner.plans.fleet_request import FleetRequest

    fields = {name: value for name, value in given.items() if value is not None}
    if rates is not None:
        fields["requests_per_s_by_window"] = rates.split(",")
    rows = [{"model": model, **row} for row in pools]
    request = FleetRequest(pools=rows, **fields)
    with progress_bar("pools"):
        result = fleet(request)
    if as_json:
        print_json(result)
        return
    _print(result)


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
                    _usd(m.usd_per_month),
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
        _usd(line.usd_per_month),
        percent(line.share_within_limits),
        f"{line.windows_short} windows",
    )


def _usd(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"
