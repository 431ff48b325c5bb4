"""A workload derived from an engine's metrics and access logs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.answer import Answer
from planner.handover.accesslog import AccessLog
from planner.handover.facts import read_facts
from planner.handover.prometheus import EngineMetrics
from planner.handover.refusal import Unreadable


class ObservedTime(Answer):
    """A time as requests saw it [s]."""

    mean: float
    p50: float | None = None
    p90: float | None = None


class Observed(Answer):
    """What an engine was seen doing; null is what it does not say."""

    engine: str
    model: str | None = None
    seconds: float | None = None
    """Over which it was seen."""
    requests: float | None = None
    requests_per_s: float | None = None
    isl: float | None = None
    osl: float | None = None
    isl_cv: float | None = None
    osl_cv: float | None = None
    prefix_hit: float | None = None
    running: float | None = None
    """Requests running at the last look."""
    waiting: float | None = None
    concurrency: float | None = None
    """Requests in the engine on average, by Little's law; those at the last look without times."""
    ttft_s: ObservedTime | None = None
    tpot_s: ObservedTime | None = None
    kv_pool_tokens: float | None = None
    memory_fraction: float | None = None
    notes: tuple[str, ...] = ()


def engine_of(metrics: EngineMetrics) -> str:
    """Return the engine whose names the metrics have. Raises Unreadable where none has."""
    rows = read_facts("metrics.json")["engines"]
    counts = {
        engine: sum(name.startswith(row["prefix"]) for name in metrics.samples)
        for engine, row in rows.items()
    }
    best: str = max(counts, key=lambda engine: counts[engine])
    if not counts[best]:
        raise Unreadable(f"metrics: of no engine known here; accepted: {', '.join(rows)}")
    return best


def observed(
    metrics: EngineMetrics, seconds: float | None = None, log: AccessLog | None = None
) -> Observed:
    """Return the workload and times that metrics say, over `seconds` where those are known.

    An access log completes what they do not say. Raises Unreadable for metrics of no engine.
    """
    engine = engine_of(metrics)
    row = read_facts("metrics.json")["engines"][engine]
    fields = _lengths(metrics, row)
    fields |= {
        "running": metrics.total(row.get("running", ())),
        "waiting": metrics.total(row.get("waiting", ())),
        "ttft_s": _time(metrics, row, "ttft_s"),
        "tpot_s": _time(metrics, row, "tpot_s") or _tpot(metrics, row),
        "prefix_hit": _hit(metrics, row),
        "model": metrics.labels(row.get("running", ())).get(row.get("model_label", "")),
        **_config(metrics, row),
    }
    notes = []
    if log is not None:
        notes = _complete(fields, log)
        seconds = seconds or log.seconds
    requests = fields.get("requests")
    if seconds and requests:
        fields["requests_per_s"] = requests / seconds
    fields["concurrency"] = _concurrency(fields)
    return Observed(engine=engine, seconds=seconds, notes=tuple(notes), **fields)


def _lengths(metrics: EngineMetrics, row: Mapping[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {"requests": metrics.total(row.get("requests", ()))}
    ttft = metrics.histogram(row.get("ttft_s", ()))
    if fields["requests"] is None and ttft is not None:
        fields["requests"] = ttft.count
    for name, tokens in (("isl", "prompt_tokens"), ("osl", "output_tokens")):
        lengths = metrics.histogram(row.get(name, ()))
        total = metrics.total(row.get(tokens, ()))
        if lengths is not None and lengths.mean:
            fields[name] = lengths.mean
        elif total and fields["requests"]:
            fields[name] = total / fields["requests"]
    return fields


def _time(metrics: EngineMetrics, row: Mapping[str, Any], name: str) -> ObservedTime | None:
    times = metrics.histogram(row.get(name, ()))
    if times is None or times.mean is None:
        return None
    return ObservedTime(mean=times.mean, p50=times.quantile(0.5), p90=times.quantile(0.9))


def _tpot(metrics: EngineMetrics, row: Mapping[str, Any]) -> ObservedTime | None:
    """Return the mean time of a token from the seconds spent on tokens (llama.cpp)."""
    seconds = metrics.total(row.get("output_seconds", ()))
    tokens = metrics.total(row.get("output_tokens", ()))
    return ObservedTime(mean=seconds / tokens) if seconds and tokens else None


def _hit(metrics: EngineMetrics, row: Mapping[str, Any]) -> float | None:
    hits, queries = (metrics.total(row.get(name, ())) for name in ("hits", "queries"))
    if hits is not None and queries:
        return min(1.0, hits / queries)
    rate = metrics.total(row.get("hit_rate", ()))
    return None if rate is None else min(1.0, max(0.0, rate))


def _config(metrics: EngineMetrics, row: Mapping[str, Any]) -> dict[str, Any]:
    labels = metrics.labels(row.get("config", ()))

    def figure(name: str) -> float | None:
        try:
            return float(labels[name])
        except (KeyError, ValueError):
            return None

    blocks = figure(row.get("blocks", "")) or metrics.total(row.get("pool_blocks", ()))
    size = figure(row.get("block_size", "")) or metrics.mean(row.get("pool_block_tokens", ()))
    pool = blocks * size if blocks and size else metrics.total(row.get("pool_tokens", ()))
    return {"kv_pool_tokens": pool, "memory_fraction": figure("gpu_memory_utilization")}


def _complete(fields: dict[str, Any], log: AccessLog) -> list[str]:
    """Put in what only the log says; return what it was used for."""
    notes = []
    for name in ("isl", "osl"):
        mean, spread = log.mean(name), log.spread(name)
        if mean is not None and fields.get(name) is None:
            fields[name] = mean
            notes.append(f"{name} is the access log's")
        if spread is not None:
            fields[f"{name}_cv"] = spread
    if fields.get("requests") is None:
        fields["requests"] = float(log.requests)
        notes.append("requests are those of the access log")
    for name in ("ttft", "tpot"):
        mean = log.mean(f"{name}_ms")
        if mean is not None and fields.get(f"{name}_s") is None:
            fields[f"{name}_s"] = ObservedTime(mean=mean / 1e3)
            notes.append(f"{name.upper()} is the access log's")
    return notes


def _concurrency(fields: Mapping[str, Any]) -> float | None:
    """Return the requests in the engine: rate × time of a request (Little 1961)."""
    ttft, tpot = fields.get("ttft_s"), fields.get("tpot_s")
    rate, outputs = fields.get("requests_per_s"), fields.get("osl")
    if rate and outputs and ttft and tpot:
        return float(rate * (ttft.mean + max(outputs - 1, 0) * tpot.mean))
    running = fields.get("running")
    return None if running is None else float(running + (fields.get("waiting") or 0.0))
