"""`planner manifest`: the command or object that starts a scenario, and what one says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from planner.commands.options import json_option, scenario_options
from planner.commands.output import print_json, print_table

if TYPE_CHECKING:
    from planner.handover.reading import Reading


@click.group()
def command() -> None:
    """Write what starts a scenario, or read what starts one."""


@command.command()
@scenario_options
@click.option(
    "--as",
    "kind",
    default="command",
    metavar="KIND",
    help="command, deployment, leaderworkerset, llminferenceservice, inferenceservice, llm-d, "
    "dynamo or compose.",
)
@click.option("--bench", is_flag=True, help="The benchmark that checks the prediction instead.")
@click.option("--bench-tool", metavar="TOOL", help="vllm, sglang, guidellm, aiperf or llama.cpp.")
@click.option("--autoscale", metavar="FORM", help="Add an autoscaler: hpa or keda.")
@click.option("--max-replicas", type=int, help="Most replicas of it; default twice --replicas.")
def write(
    kind: str,
    bench: bool,
    bench_tool: str | None,
    autoscale: str | None,
    max_replicas: int | None,
    **fields: Any,
) -> None:
    """Print the command line or objects that start MODEL so; notes go to stderr."""
    from planner.handover.loadtest import benchmark
    from planner.handover.writing import with_autoscaler
    from planner.handover.writing import write as written
    from planner.scenario import Scenario

    scenario = Scenario(**fields)
    if bench or bench_tool:
        click.echo(benchmark(scenario, bench_tool), nl=False)
        return
    result = written(scenario, kind)
    if autoscale:
        result = with_autoscaler(result, autoscale, max_replicas)
    click.echo(result.text, nl=False)
    for note in result.notes:
        click.echo(f"note: {note}", err=True)


@command.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE…")
@click.option("--model", help="Model, where the catalogue does not have the file's.")
@click.option("--gpu", metavar="GPU", help="Accelerator, where the file names none.")
@json_option
def read(files: tuple[Path, ...], model: str | None, gpu: str | None, as_json: bool) -> None:
    """Say which scenario each FILE starts, where every field comes from, and what it leaves out."""
    from planner.commands.files import read_texts
    from planner.handover.sources import read_files

    for one in read_files(read_texts(files), {"model": model, "gpu": gpu}):
        if as_json:
            print_json(one.reading)
        else:
            _print(one.reading)


def _print(reading: Reading) -> None:
    rows = [
        (o.field, _shown(o.value), o.source, str(o.line or "–"), o.text) for o in reading.origins
    ]
    print_table(("field", "value", "from", "line", ""), rows, f"{reading.file}: {reading.kind}")
    for fault in reading.not_understood:
        click.echo(f"not understood: line {fault.line}: {fault.text}: {fault.why}")
    for one in reading.unused:
        click.echo(f"not used: line {one.line}: {one.text}")


def _shown(value: Any) -> str:
    text = "on" if value is True else "off" if value is False else str(value)
    return text if len(text) <= 40 else text[:39] + "…"
