"""What an operator sees: metrics by lane, cache and kind of job, traces, the dashboard."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from api.lanes import Lane
from api.web.tracing import TRACING, Tracing
from tests.api.conftest import Client

ROOT = Path(__file__).parents[2]
METRIC = re.compile(r"\b(planner_[a-z_]+|process_[a-z_]+)\b")


def values(client: Client) -> dict[str, float]:
    lines = client.get("/metrics").text.splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in pairs}


def test_caches_and_lanes_are_counted(client: Client, question: dict[str, Any]) -> None:
    before = values(client)
    for _ in range(3):
        assert client.post("/v1/plans", json=question).status_code == 200
    after = values(client)

    def grown(name: str) -> float:
        return after[name] - before[name]

    assert grown('planner_cache_hits_total{cache="answers"}') == 2
    assert grown('planner_cache_misses_total{cache="answers"}') == 1
    assert after['planner_cache_entries{cache="answers"}'] == 1
    assert after['planner_cache_bytes{cache="answers"}'] > 1000
    assert grown('planner_lane_begun_total{lane="compute"}') == 1
    assert after["planner_processes"] == 0


def test_jobs_are_counted_by_kind(client: Client, question: dict[str, Any]) -> None:
    body = {"kind": "sweep", "question": {"scenario": question}}
    assert client.post("/v1/jobs", json=body).status_code == 202
    jobs = {name: n for name, n in values(client).items() if name.startswith("planner_jobs{")}
    assert sum(jobs.values()) == 1
    assert all('kind="sweep"' in name for name in jobs)


def test_a_lane_says_how_long_work_waited() -> None:
    lane = Lane("narrow", 1, 1)
    assert lane.submit(divmod, 7, 2).result(10) == (3, 1)
    assert (lane.begun, lane.refused) == (1, 0)
    assert lane.waited_s >= 0
    lane.shutdown()


class Span:
    """What a span of OpenTelemetry takes; remembers it."""

    def __init__(self, name: str, attributes: dict[str, Any]) -> None:
        self.name, self.attributes, self.ended = name, attributes, False

    def update_name(self, name: str) -> None:
        self.name = name

    def set_attribute(self, name: str, value: Any) -> None:
        self.attributes[name] = value

    def record_exception(self, error: Exception) -> None:
        self.attributes["error"] = type(error).__name__

    def end(self) -> None:
        self.ended = True


class Tracer:
    """What a tracer of OpenTelemetry does, without its SDK."""

    def __init__(self) -> None:
        self.spans: list[Span] = []

    def start_span(self, name: str, attributes: dict[str, Any]) -> Span:
        self.spans.append(Span(name, attributes))
        return self.spans[-1]

    @contextmanager
    def start_as_current_span(
        self, name: str, attributes: dict[str, Any] | None = None, **_: Any
    ) -> Iterator[Span]:
        span = self.start_span(name, {**(attributes or {})})
        yield span
        span.end()


def test_a_request_its_plan_and_its_statements_are_spans(
    client: Client, question: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("opentelemetry")
    tracer = Tracer()
    monkeypatch.setattr(TRACING, "tracer", tracer)
    made = client.post("/v1/scenarios", json={**question, "name": "a secret"})
    client.post("/v1/plans", json={**question, "batch": [7]})
    monkeypatch.undo()
    names = [span.name for span in tracer.spans]
    assert "POST /v1/scenarios" in names
    assert "POST /v1/plans" in names
    assert "plan" in names
    assert "store INSERT" in names
    assert all(span.ended for span in tracer.spans)
    request = next(span for span in tracer.spans if span.name == "POST /v1/scenarios")
    assert request.attributes["http.response.status_code"] == 201
    assert request.attributes["planner.request_id"] == made.headers["x-request-id"]
    assert "secret" not in str([span.attributes for span in tracer.spans])


def test_nothing_is_traced_without_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    tracing = Tracing()
    with tracing.span("plan", model="m") as span, tracing.request("GET", {}) as request:
        assert (span, request) == (None, None)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(ValueError, match="PLANNER_OTLP_ENDPOINT: needs the extra `otel`"):
        tracing.start("http://127.0.0.1:4318/v1/traces")


def test_the_dashboard_asks_for_metrics_that_there_are(client: Client) -> None:
    client.get("/v1/models")
    text = client.get("/metrics").text
    offered = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    series = {*offered, *(f"{name}_bucket" for name in offered)}
    dashboard = json.loads((ROOT / "docs" / "grafana.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked = {name for query in queries for name in METRIC.findall(query)}
    assert len(queries) >= 10
    assert asked <= series, asked - series
    assert {panel["title"] for panel in dashboard["panels"]} >= {"Requests", "Lanes", "Caches"}
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard["panels"]]
    assert len(set(places)) == len(places)
