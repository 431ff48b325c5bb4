"""`planner calibrate`: fit the calibration, or refit it locally with measurements of one's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from planner.commands.options import json_option
from planner.commands.progress import busy

if TYPE_CHECKING:
    from planner.benchmarks import Measurements
    from planner.fitting.own import Fit

CONTEXT = (
    click.option("--model", metavar="MODEL", help="What the results ran, if they do not say."),
    click.option("--gpu", metavar="GPU", help="On which accelerator."),
    click.option("--engine", metavar="ENGINE", help="Under which engine."),
    click.option("--engine-version", metavar="VERSION", help="Of which version."),
    click.option("--tp", type=click.IntRange(min=1), help="Over how many tensor-parallel ranks."),
    click.option("--pp", type=click.IntRange(min=1), help="In how many pipeline stages."),
    click.option("--attention-dp", type=click.IntRange(min=1), help="With attention-DP ranks."),
    click.option("--ep", type=click.IntRange(min=1), help="With expert-parallel ranks."),
    click.option("--weights", metavar="FORMAT", help="In which weight format."),
    click.option("--kv", metavar="FORMAT", help="With which cache format."),
)
"""What results may not say about themselves; the names of `Context`."""


def context_options(function: Any) -> Any:
    """Add the options of `CONTEXT`."""
    for option in reversed(CONTEXT):
        function = option(function)
    return function


@click.command()
@click.option(
    "--add",
    "results",
    multiple=True,
    metavar="RESULTS",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Results of a benchmark to refit with; may be given several times.",
)
@context_options
@click.option("--forget", is_flag=True, help="Remove the measurements added and their refit.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write a full fit; here, by its edition, if not given.",
)
@json_option
def command(
    results: tuple[Path, ...], forget: bool, output: Path | None, as_json: bool, **context: Any
) -> None:
    """Fit the calibration to the project's measured rows, or refit it with your own.

    With --add, the results of vLLM bench serve, SGLang bench_serving, GuideLLM, AIPerf, llama-bench
    or llama-batched-bench, or CSV rows, adjust the shipped calibration on this machine alone: few
    measurements move it a little, many as far as they agree. They are stored in your data
    directory, add up, and are used by every later command.
    """
    given = [name for name, value in context.items() if value is not None]
    if given and not results:
        raise click.UsageError(
            f"{given[0]}: says what results ran, and there are none; accepted: with --add RESULTS"
        )
    if forget:
        _forget()
    elif results:
        _add(results, context, as_json)
    else:
        _fit(output)


def _fit(output: Path | None) -> None:
    from planner.accuracy.holdout import NEAR, USER, Holdout
    from planner.accuracy.intervals import intervals
    from planner.calibration.table import EDITION
    from planner.fitting.refit import refit_committed

    with busy("Fitting"):
        refit = refit_committed()
    with busy("Predicting rows left out"):
        holdout = Holdout(refit)
        left_out = [one for by in (*NEAR, USER, "engine", "vendor") for one in holdout.held(by)]
        content = refit.content | {"intervals": intervals(left_out)}
    path = output or Path(f"calibration-{EDITION}.json")
    path.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    size = path.stat().st_size / 1e3
    rows = ", ".join(f"{n} {kind}" for kind, n in content["provenance"]["rows"].items())
    click.echo(f"{path.name}: {size:.0f} kB, fitted to {rows} rows")


def _forget() -> None:
    from planner.fitting.kept import forget

    click.echo("local calibration removed" if forget() else "there is no local calibration")


def _add(results: tuple[Path, ...], context: dict[str, Any], as_json: bool) -> None:
    from planner.benchmarks import Context, read_measurements
    from planner.calibration import shipped
    from planner.fitting.kept import add

    read = [read_measurements(path, Context(**context)) for path in results]
    rows = [row for one in read for row in one.rows]
    with busy("Fitting"):
        fit = add(rows, shipped())
    if as_json:
        click.echo(json.dumps(_content(results, read, fit), indent=2))
        return
    _print(results, read, fit)


def _content(results: tuple[Path, ...], read: list[Measurements], fit: Fit) -> dict[str, Any]:
    return {
        "read": [
            {"file": path.name, "format": one.format, "rows": len(one.rows), "notes": one.notes}
            for path, one in zip(results, read, strict=True)
        ],
        "rows": fit.rows,
        "before": fit.before,
        "after": fit.after,
        "left_out": fit.left_out,
        "factors": {key: value for level in fit.factors for key, value in level.items()},
        "notes": fit.notes,
    }


def _print(results: tuple[Path, ...], read: list[Measurements], fit: Fit) -> None:
    from planner.commands.output import print_table

    for path, one in zip(results, read, strict=True):
        click.echo(f"{path.name}: {len(one.rows)} runs of {one.format}")
        for note in one.notes:
            click.echo(f"  {note}")
    for note in fit.notes:
        click.echo(f"left out: {note}")
    rows = [
        (
            name,
            f"{fit.before[name]:.1%}",
            f"{fit.after[name]:.1%}",
            f"{fit.left_out[name]:.1%}" if name in fit.left_out else "–",
        )
        for name in fit.before
    ]
    title = f"median error over {fit.rows} runs stored"
    print_table(("quantity", "shipped", "refitted", "left out"), rows, title)
    factors = [(key, f"{value:.3f}") for level in fit.factors for key, value in level.items()]
    print_table(("of", "time ×"), factors, "factors on the shipped times")
