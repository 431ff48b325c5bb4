"""Prometheus metrics of one process."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from api.lanes import Lanes

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
MEDIA_TYPE = CONTENT_TYPE_LATEST


class Metrics:
    """Requests by route template and status; no label holds anything a user wrote."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.requests = Counter(
            "planner_requests",
            "Requests answered",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self.seconds = Histogram(
            "planner_request_seconds",
            "Time to answer [s]",
            ("method", "route"),
            registry=self.registry,
            buckets=BUCKETS,
        )

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        known = method if method in KNOWN_METHODS else "other"
        self.requests.labels(known, route, str(status)).inc()
        self.seconds.labels(known, route).observe(seconds)

    def watch(self, lanes: Lanes) -> None:
        """Report how full each lane is, and what it refused."""
        self.registry.register(LaneCollector(lanes))

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)


class LaneCollector(Collector):
    """Reads the lanes when metrics are asked for."""

    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes

    def collect(self) -> Iterator[Metric]:
        """Return the metrics of all lanes."""
        inside = GaugeMetricFamily(
            "planner_lane_requests", "Requests running and waiting", labels=["lane"]
        )
        places = GaugeMetricFamily("planner_lane_places", "Requests at once", labels=["lane"])
        refused = CounterMetricFamily("planner_lane_refused", "Requests refused", labels=["lane"])
        for name, lane in self.lanes.lanes.items():
            inside.add_metric([name], lane.inside)
            places.add_metric([name], lane.size)
            refused.add_metric([name], lane.refused)
        yield from (inside, places, refused)


KNOWN_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
