"""Prometheus metrics of one process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from api.services import Services
from api.system.keys import Keys

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
MEDIA_TYPE = CONTENT_TYPE_LATEST
JobCounts = Mapping[tuple[str, str], int]
"""Jobs by kind and state."""


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
        self.jobs: JobCounts = {}
        """Jobs of all workspaces as the store last said."""

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        known = method if method in KNOWN_METHODS else "other"
        self.requests.labels(known, route, str(status)).inc()
        self.seconds.labels(known, route).observe(seconds)

    def watch(self, services: Services, keys: Keys) -> None:
        """Report how full each lane and cache is, what they did, and the jobs by kind."""
        self.registry.register(LaneCollector(services))
        self.registry.register(CacheCollector(services, keys))
        self.registry.register(JobCollector(self))

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)


class LaneCollector(Collector):
    """Reads the lanes when metrics are asked for."""

    def __init__(self, services: Services) -> None:
        self.lanes = services.lanes
        self.processes = services.processes

    def collect(self) -> Iterator[Metric]:
        """Return the metrics of all lanes, and of the worker processes."""
        inside = GaugeMetricFamily(
            "planner_lane_requests", "Requests running and waiting", labels=["lane"]
        )
        places = GaugeMetricFamily("planner_lane_places", "Requests at once", labels=["lane"])
        refused = CounterMetricFamily("planner_lane_refused", "Requests refused", labels=["lane"])
        waited = CounterMetricFamily(
            "planner_lane_wait_seconds", "Time requests waited for a place [s]", labels=["lane"]
        )
        begun = CounterMetricFamily("planner_lane_begun", "Requests begun", labels=["lane"])
        for name, lane in self.lanes.lanes.items():
            inside.add_metric([name], lane.inside)
            places.add_metric([name], lane.size)
            refused.add_metric([name], lane.refused)
            waited.add_metric([name], lane.waited_s)
            begun.add_metric([name], lane.begun)
        running = GaugeMetricFamily("planner_processes", "Worker processes running")
        running.add_metric([], len(self.processes.running))
        yield from (inside, places, refused, waited, begun, running)


class CacheCollector(Collector):
    """Reads the caches when metrics are asked for."""

    def __init__(self, services: Services, keys: Keys) -> None:
        self.answers = services.answers
        self.keys = keys

    def collect(self) -> Iterator[Metric]:
        """Return the metrics of all caches."""
        hits = CounterMetricFamily("planner_cache_hits", "Answered from memory", labels=["cache"])
        misses = CounterMetricFamily("planner_cache_misses", "Not in memory", labels=["cache"])
        entries = GaugeMetricFamily("planner_cache_entries", "Entries held", labels=["cache"])
        size = GaugeMetricFamily("planner_cache_bytes", "Size [byte]", labels=["cache"])
        for name, cache in (("answers", self.answers), ("keys", self.keys)):
            hits.add_metric([name], cache.hits)
            misses.add_metric([name], cache.misses)
            entries.add_metric([name], len(cache))
        size.add_metric(["answers"], self.answers.bytes)
        yield from (hits, misses, entries, size)


class JobCollector(Collector):
    """Tells the jobs that were counted last."""

    def __init__(self, metrics: Metrics) -> None:
        self.metrics = metrics

    def collect(self) -> Iterator[Metric]:
        """Return jobs by kind and state."""
        jobs = GaugeMetricFamily("planner_jobs", "Jobs kept", labels=["kind", "state"])
        for (kind, state), count in self.metrics.jobs.items():
            jobs.add_metric([kind, state], count)
        yield jobs


KNOWN_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
