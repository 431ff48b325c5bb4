"""`planner observe`: an engine beside its plan. Exit 0 as planned, 1 drifted, 2 unreadable."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from planner.commands.options import json_option
from planner.commands.output import print_json, print_table
from planner.units import number, seconds

if TYPE_CHECKING:
    from planner.answer import Interval
    from planner.handover.observing import Compared, Observation
    from planner.handover.prometheus import EngineMetrics
    from planner.scenario import Scenario


@click.command()
@click.argument("sources", nargs=-1, required=True, metavar="URL|FILE [FILE]")
@click.option(
    "--scenario",
    "plan_file",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What was planned: a manifest, a command line, or a scenario or plan in JSON.",
)
@click.option("--gpu", metavar="GPU", help="Accelerator, where the file names none.")
@click.option("--access-log", type=click.Path(path_type=Path), metavar="FILE", help="Access log.")
@click.option("--over", type=float, metavar="SECONDS", help="Look at a URL twice, so far apart.")
@click.option("--seconds", "elapsed", type=float, help="Time between two files, or of one.")
@click.option(
    "--save", type=click.Path(path_type=Path), metavar="FILE", help="Write results to calibrate by."
)
@json_option
def command(
    sources: tuple[str, ...],
    plan_file: Path,
    gpu: str | None,
    access_log: Path | None,
    over: float | None,
    elapsed: float | None,
    save: Path | None,
    as_json: bool,
) -> None:
    """Read an engine's metrics, derive its workload, and set it beside the plan.

    A URL is a loopback or private address. Of two FILES the second was taken later: what was
    counted between them counts.
    """
    from planner.handover.accesslog import access_log as read_log
    from planner.handover.observed import observed
    from planner.handover.observing import as_results, observation

    scenario = _scenario(plan_file, gpu)
    metrics, looked_s = _metrics(sources, over)
    log = None
    if access_log is not None:
        with access_log.open(encoding="utf-8", errors="replace") as file:
            log = read_log(file, str(access_log))
    result = observation(scenario, observed(metrics, elapsed or looked_s, log))
    content = as_results(result.observed, scenario)
    if save is not None:
        if content is None:
            raise click.UsageError("save: too little was seen; needed: lengths, TTFT, TPOT, rate")
        save.write_text(content + "\n", encoding="utf-8")
    if as_json:
        print_json(result)
    else:
        _print(result, save, content is not None)
    if result.drifted:
        sys.exit(1)


def _scenario(path: Path, gpu: str | None) -> Scenario:
    from planner.commands.files import read_texts
    from planner.handover.sources import read_files
    from planner.scenario import Scenario

    (text,) = read_texts([path]).values()
    try:
        content = json.loads(text)
    except ValueError:
        content = None
    if isinstance(content, dict) and "model" in content.get("scenario", content):
        return Scenario.model_validate(content.get("scenario", content))
    return read_files({str(path): text}, {"gpu": gpu})[0].reading.scenario


def _metrics(sources: tuple[str, ...], over: float | None) -> tuple[EngineMetrics, float | None]:
    """Return the metrics of a URL, looked at once or twice, or of one or two files."""
    from planner.commands.files import read_texts
    from planner.handover.prometheus import MOST_BYTES, metrics_of
    from planner.handover.scraping import is_address, scrape

    if len(sources) > 2 or (len(sources) == 2 and any(map(is_address, sources))):
        raise click.UsageError("sources: accepted: one URL, or one or two files")
    texts = []
    for source in sources:
        if is_address(source):
            texts.append(scrape(source))
        else:
            texts += read_texts([Path(source)], MOST_BYTES).values()
    first = metrics_of(texts[0], sources[0])
    if len(texts) == 2:
        return metrics_of(texts[1], sources[1]).since(first), None
    if over is not None and is_address(sources[0]):
        started = time.monotonic()
        time.sleep(min(max(over, 0.0), 3600.0))
        later = metrics_of(scrape(sources[0]), sources[0])
        return later.since(first), time.monotonic() - started
    return first, _uptime(first, sources[0])


def _uptime(metrics: EngineMetrics, source: str) -> float | None:
    """Return how long a process had run when its metrics were read, where they say so [s]."""
    from planner.handover.scraping import is_address

    started = metrics.total(["process_start_time_seconds"])
    if started is None:
        return None
    read = time.time() if is_address(source) else Path(source).stat().st_mtime
    return read - started if read > started else None


def _print(result: Observation, save: Path | None, complete: bool) -> None:
    drift = " and ".join(result.drifted)
    click.echo(f"Drifted: {drift}." if drift else "As planned.")
    rows = [
        (
            row.quantity,
            _shown(row, row.planned),
            _interval(row, row.predicted),
            _shown(row, row.observed),
            row.drift,
            row.text,
        )
        for row in result.rows
    ]
    print_table(("", "planned", "predicted for this load", "observed", "drift", ""), rows)
    for note in result.observed.notes:
        click.echo(f"note: {note}")
    if complete:
        scenario = result.scenario
        words: list[Any] = ["--engine", scenario.engine, "--tp", scenario.tp]
        gpu = scenario.gpu if isinstance(scenario.gpu, str) else "GPU"
        file = save or "observed.json"
        first = "" if save else f" (write it by --save {file})"
        text = " ".join(map(str, words))
        click.echo(f"to calibrate by it: planner calibrate --add {file} --gpu {gpu} {text}{first}")


def _shown(row: Compared, value: float | None) -> str:
    if value is None:
        return "–"
    return seconds(value) if row.quantity in {"tpot_s", "ttft_s"} else number(value)


def _interval(row: Compared, interval: Interval | None) -> str:
    if interval is None:
        return "–"
    low, middle, high = (_shown(row, v) for v in (interval.p10, interval.p50, interval.p90))
    return f"{middle} ({low} – {high})"
