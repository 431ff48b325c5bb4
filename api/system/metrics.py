"""Prometheus metrics of one process."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

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

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)


KNOWN_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
