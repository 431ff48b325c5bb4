"""Readers of load generators: vLLM, SGLang, GuideLLM, AIPerf and GenAI-Perf.

Each takes one object of the tool's JSON and yields runs, or notes on runs that cannot be used. A
row's TPOT is the mean over requests of (latency − TTFT)/(tokens − 1), which GuideLLM and AIPerf
call inter-token latency.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from planner.benchmarks.results import Run, UnknownResults, positive, whole
from planner.engines.names import spellings

Entry = Mapping[str, Any]


def serving_run(
    isl: float, osl: float, concurrency: float, ttft_ms: float, tpot_ms: float, **known: str
) -> Run:
    """Return the run of these figures and of columns already known."""
    inputs = {"isl": whole(isl), "osl": whole(osl), "concurrency": whole(concurrency)} | known
    return Run("serving", inputs, {"ttft_ms": ttft_ms, "tpot_ms": tpot_ms})


def bench_serve(entry: Entry) -> Iterator[Run | str]:
    """Read an object of vLLM `bench serve` (`benchmark_serving`) or SGLang `bench_serving`."""
    done = positive(entry.get("completed"), "completed")
    isl = positive(entry.get("total_input_tokens"), "total_input_tokens") / done
    osl = positive(entry.get("total_output_tokens"), "total_output_tokens") / done
    drafts = entry.get("spec_decode_acceptance_length")
    clients = entry.get("max_concurrency") or entry.get("multi_turn_concurrency")
    if drafts:
        yield (
            f"a run of {clients or 'some'} at once yielded {positive(drafts, 'length'):.3g} tokens "
            "a step by drafts: only plain decoding is fitted, and it is left out"
        )
        return
    if entry.get("mean_ttft_ms") is None and entry.get("median_ttft_ms") is not None:
        yield "means of TTFT are missing: medians stand for them"
    ttft = positive(entry.get("mean_ttft_ms", entry.get("median_ttft_ms")), "mean_ttft_ms")
    tpot = _tpot(entry, ttft, osl)
    if clients is None:
        if str(entry.get("request_rate", "inf")) in {"inf", "Infinity"}:
            yield "a run sent all requests at once: it has no steady state and is left out"
            return
        each_s = (ttft + tpot * max(osl - 1.0, 1.0)) / 1e3
        rate = entry.get("request_throughput") or done / positive(entry["duration"], "duration")
        clients = positive(rate, "request_throughput") * each_s
        yield "a run at a request rate counts as one at its mean concurrency"
    yield serving_run(
        isl,
        osl,
        positive(clients, "max_concurrency"),
        ttft,
        tpot,
        requests=whole(done),
        **_served(entry),
    )


def _tpot(entry: Entry, ttft_ms: float, osl: float) -> float:
    """Mean time per output token; what the mean latency leaves for it where none is given [ms]."""
    latency_ms = entry.get("mean_e2e_latency_ms")
    if entry.get("mean_tpot_ms") is not None or latency_ms is None:
        return positive(entry.get("mean_tpot_ms"), "mean_tpot_ms")
    latency = positive(latency_ms, "mean_e2e_latency_ms")
    return positive((latency - ttft_ms) / max(osl - 1.0, 1.0), "mean_tpot_ms")


def _served(entry: Entry) -> dict[str, str]:
    """Columns that bench_serve's objects tell: model, engine, split, date.

    The engine is that with whose name the backend's begins; others ("openai") say nothing.
    """
    backend = str(entry.get("backend") or entry.get("endpoint_type") or "").lower()
    server = entry.get("server_info")
    server = server if isinstance(server, Mapping) else {}
    known = {
        "model": entry.get("model_id") or server.get("model_path"),
        "engine": next((e for word, e in spellings().items() if backend.startswith(word)), None),
        "engine_version": entry.get("version") or server.get("version"),
        "tp": entry.get("tensor_parallel_size") or entry.get("tp") or server.get("tp_size"),
        "measured_on": entry.get("date"),
    }
    return {name: str(value) for name, value in known.items() if value}


def guidellm(document: Entry) -> Iterator[Run | str]:
    """Read a GuideLLM report: every benchmark that ran a fixed number of streams."""
    benchmarks = document["benchmarks"]
    if not isinstance(benchmarks, list):
        raise UnknownResults("results: benchmarks is no list")
    for number, benchmark in enumerate(benchmarks, 1):
        if not isinstance(benchmark, Mapping) or not isinstance(benchmark.get("metrics"), Mapping):
            raise UnknownResults(f"results: benchmark {number} has no metrics")
        strategy = _strategy(benchmark)
        kind = str(strategy.get("type_") or strategy.get("type") or "")
        metrics = benchmark["metrics"]
        if kind == "throughput":
            yield f"benchmark {number} sent all requests at once: it is left out"
            continue
        streams = strategy.get("streams") or (1 if kind == "synchronous" else None)
        if streams is None:
            streams = _mean(metrics, "request_concurrency")
            yield f"benchmark {number} ran at a request rate: taken at its mean concurrency"
        model = _first(document, "model") or _first(benchmark, "backend_model", "model")
        yield serving_run(
            _mean(metrics, "prompt_token_count"),
            _mean(metrics, "output_token_count"),
            positive(streams, "streams"),
            _mean(metrics, "time_to_first_token_ms"),
            _mean(metrics, "inter_token_latency_ms"),
            **({"model": model} if model else {}),
        )


def _strategy(benchmark: Entry) -> Entry:
    for owner in ("config", "args"):
        nested = benchmark.get(owner)
        if isinstance(nested, Mapping) and isinstance(nested.get("strategy"), Mapping):
            return dict(nested["strategy"])
    return {}


def _mean(metrics: Entry, name: str) -> float:
    of = metrics.get(name)
    done = of.get("successful") if isinstance(of, Mapping) else None
    return positive(done.get("mean") if isinstance(done, Mapping) else None, f"{name}.mean")


_MILLISECONDS = {"ms": 1.0, "s": 1e3, "sec": 1e3, "us": 1e-3, "ns": 1e-6}


def aiperf(document: Entry) -> Iterator[Run | str]:
    """Read the summary of AIPerf or GenAI-Perf (`profile_export_aiperf.json` and its like)."""
    config = document.get("input_config") or document.get("inputs") or {}
    clients = _first(config, "concurrency")
    if clients is None:
        yield "a run at a request rate says no concurrency: it is left out"
        return
    model = _first(config, "model_names", "model", "models")
    turns = "multi_turn" in (_first(config.get("datasets"), "format") or "")
    if turns:
        yield MULTI_TURN
    run = serving_run(
        _average(document, "input_sequence_length"),
        _average(document, "output_sequence_length"),
        positive(clients, "concurrency"),
        _average(document, "time_to_first_token", _MILLISECONDS),
        _average(document, "inter_token_latency", _MILLISECONDS),
        **({"model": model} if model else {}),
    )
    yield replace(run, measured={"tpot_ms": run.measured["tpot_ms"]}) if turns else run


MULTI_TURN = (
    "a run of several turns finds part of its inputs in the prefix cache and does not say how "
    "much: its TTFT does not count"
)


def _average(document: Entry, name: str, units: Mapping[str, float] | None = None) -> float:
    entry = document.get(name)
    if not isinstance(entry, Mapping):
        raise UnknownResults(f"results: {name} is missing")
    unit = str(entry.get("unit", "ms")).lower()
    if units and unit not in units:
        raise UnknownResults(f"results: {name} is in {unit!r}; accepted: {', '.join(units)}")
    return positive(entry.get("avg"), f"{name}.avg") * (units or {}).get(unit, 1.0)


def _first(config: object, *names: str) -> str | None:
    """Return the first value under one of `names` anywhere in a configuration, as text."""
    if isinstance(config, Mapping):
        for name in names:
            value = config.get(name)
            if isinstance(value, list) and value:
                value = value[0]
            if isinstance(value, (str, int, float)) and not isinstance(value, bool) and value:
                return str(value)
        inner: list[object] = [v for k, v in config.items() if k not in {"requests", "metrics"}]
    elif isinstance(config, list):
        inner = config[:4]
    else:
        return None
    return next((text for text in (_first(value, *names) for value in inner) if text), None)
