"""Reading results of benchmark tools: the format is told by content, never by name."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.benchmarks.llama_tools import batched_bench, llama_bench
from planner.benchmarks.pasted import pasted
from planner.benchmarks.results import (
    Context,
    Measurements,
    Run,
    UnknownResults,
    check_weights,
    complete,
)
from planner.benchmarks.serving_tools import aiperf, bench_serve, guidellm
from planner.precision import UnknownFormat
from planner.runs.rows import Row, UnknownRows, rows_of

Entry = Mapping[str, Any]


NOTHING_SAID = Context()


@dataclass(frozen=True, slots=True)
class Reader:
    """A format: its name, the keys that tell it, and what reads one object of it."""

    name: str
    keys: frozenset[str]
    read: Callable[[Entry], Iterator[Run | str]]


READERS = (
    Reader("vLLM bench serve", frozenset({"model_id", "mean_tpot_ms", "completed"}), bench_serve),
    Reader(
        "SGLang bench_serving",
        frozenset({"mean_e2e_latency_ms", "mean_tpot_ms", "completed"}),
        bench_serve,
    ),
    Reader(
        "SGLang bench_serving of 2025",
        frozenset({"mean_e2e_latency_ms", "median_ttft_ms", "completed"}),
        bench_serve,
    ),
    Reader("GuideLLM", frozenset({"benchmarks"}), guidellm),
    Reader("AIPerf", frozenset({"time_to_first_token", "inter_token_latency"}), aiperf),
    Reader("llama-bench", frozenset({"n_prompt", "n_gen", "avg_ts"}), llama_bench),
    Reader("llama-batched-bench", frozenset({"pp", "tg", "pl", "speed_tg"}), batched_bench),
)

ACCEPTED = (
    "vLLM bench serve JSON; SGLang bench_serving JSONL; GuideLLM JSON; AIPerf or GenAI-Perf JSON; "
    "llama-bench JSON, JSONL, CSV or Markdown; llama-batched-bench JSONL; the text that vLLM bench "
    "serve or SGLang bench_serving print; CSV rows as `planner validate` takes them"
)


def read_measurements(path: Path, context: Context = NOTHING_SAID) -> Measurements:
    """Return the rows of a file of results, completed by what the user says of it.

    Raises UnknownResults, MissingContext, UnknownFormat or BadCell, each one line, or OSError.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise UnknownResults(f"results: {path.name} is not text; accepted: {ACCEPTED}") from None
    return read_text(text, context, path.name)


def read_text(
    text: str, context: Context = NOTHING_SAID, origin: str = "results", *, local: bool = True
) -> Measurements:
    """Return the rows of the text of results; `origin` names it in messages.

    `local=False` opens no file that results name. A run in a weight format that is not known is
    left out with a note.
    """
    if context.weights:
        check_weights(context.weights, "weights")
    entries = _objects(text) or pasted(text)
    if entries is None:
        return _table(text, context, origin, local)
    reader = _reader(entries, origin)
    return _complete(reader, entries, context, origin, local)


def _objects(text: str) -> list[Entry] | None:
    """Return the objects of JSON, an array of them, or lines of them; None where it is neither."""
    try:
        whole = json.loads(text)
    except ValueError:
        whole = _lines(text)
    entries = whole if isinstance(whole, list) else [whole]
    if not entries or not all(isinstance(entry, Mapping) for entry in entries):
        return None
    return entries


def _lines(text: str) -> list[Any]:
    try:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except ValueError:
        return []


def _reader(entries: list[Entry], origin: str) -> Reader:
    for reader in READERS:
        if all(reader.keys <= entry.keys() for entry in entries):
            return reader
    raise UnknownResults(f"results: {origin} is in no format known here; accepted: {ACCEPTED}")


def _complete(
    reader: Reader, entries: Sequence[Entry], context: Context, origin: str, local: bool
) -> Measurements:
    rows: list[Row] = []
    notes: dict[str, None] = {}
    for entry in entries:
        for result in reader.read(entry):
            if isinstance(result, str):
                notes[result] = None
                continue
            try:
                rows.append(complete(result, context, len(rows) + 1, origin, local=local))
            except UnknownFormat as error:
                notes[f"a run is left out: {_brief(error)}"] = None
    if not rows:
        why = "; ".join(notes) or "it holds no runs"
        raise UnknownResults(f"results: {origin} gives nothing to fit: {why}")
    return Measurements(reader.name, tuple(rows), tuple(notes))


def _table(text: str, context: Context, origin: str, local: bool) -> Measurements:
    """Read a CSV: of llama-bench, or of rows in the project's own columns."""
    bench = next(reader for reader in READERS if reader.read is llama_bench)
    rows: list[Row] = []
    try:
        lines = csv.DictReader(io.StringIO(text))
        entries = list(lines) if bench.keys <= set(lines.fieldnames or ()) else None
        if entries is None:
            rows = rows_of(io.StringIO(text))
    except (UnknownRows, csv.Error):
        raise UnknownResults(
            f"results: {origin} is in no format known here; accepted: {ACCEPTED}"
        ) from None
    if entries is not None:
        return _complete(bench, entries, context, origin, local)
    runs = [Run(row.kind, {k: v for k, v in row.inputs.items() if v}, row.measured) for row in rows]
    readable: list[Row] = []
    notes, left = [], 0
    for n, run in enumerate(runs, 1):
        if not run.measured or run.kind == "memory":
            left += 1
            continue
        try:
            readable.append(complete(run, context, n, origin, local=local))
        except UnknownFormat as error:
            notes.append(f"row {n} is left out: {_brief(error)}")
    if left:
        notes.append(f"{left} rows without serving or decode figures are left out")
    if not readable:
        why = "; ".join(notes[:3]) or "no serving or decode rows"
        raise UnknownResults(f"results: {origin} gives nothing to fit: {why}")
    return Measurements("rows", tuple(readable), tuple(notes))


def _brief(error: UnknownFormat) -> str:
    """Return what is not known, without the list of what is."""
    return str(error).partition(";")[0]
