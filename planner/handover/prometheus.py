"""Prometheus text: samples by name, histograms as means and quantiles, and differences in time."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from planner.handover.refusal import Unreadable

MOST_BYTES = 8 * 1024 * 1024
MOST_SAMPLES = 100_000
_SAMPLE = re.compile(r"([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?\s*$")
_LABEL = re.compile(r'([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class Sample:
    """One line: labels and a value."""

    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class MetricHistogram:
    """Observations in buckets."""

    count: float
    total: float
    bounds: tuple[tuple[float, float], ...]
    """Upper end of each bucket, and how many observations are up to it."""

    @property
    def mean(self) -> float | None:
        """Mean of the observations."""
        return self.total / self.count if self.count > 0 else None

    def quantile(self, share: float) -> float | None:
        """Return the value below which a share of the observations lies, as histogram_quantile.

        Observations are taken as even within a bucket; None where they are beyond all bounds.
        """
        wanted, low, below = share * self.count, 0.0, 0.0
        for high, upto in self.bounds:
            if upto >= wanted and upto > below:
                if math.isinf(high):
                    return None
                return low + (high - low) * (wanted - below) / (upto - below)
            low, below = high, upto
        return None


@dataclass(slots=True)
class EngineMetrics:
    """The samples of one scrape."""

    samples: dict[str, list[Sample]] = field(default_factory=dict)

    def total(self, names: Sequence[str]) -> float | None:
        """Return the sum over all labels of the first name that is there."""
        name = next((name for name in names if name in self.samples), None)
        return None if name is None else sum(one.value for one in self.samples[name])

    def mean(self, names: Sequence[str]) -> float | None:
        """Return the mean over all labels of the first name that is there."""
        name = next((name for name in names if self.samples.get(name)), None)
        total = None if name is None else self.total([name])
        return None if name is None or total is None else total / len(self.samples[name])

    def labels(self, names: Sequence[str]) -> Mapping[str, str]:
        """Return the labels of the first sample of the first name that is there."""
        name = next((name for name in names if self.samples.get(name)), None)
        return {} if name is None else self.samples[name][0].labels

    def histogram(self, names: Sequence[str]) -> MetricHistogram | None:
        """Return the histogram of the first name that is there, over all labels."""
        for name in names:
            count, total = self.total([f"{name}_count"]), self.total([f"{name}_sum"])
            if count is None or total is None:
                continue
            bounds: dict[float, float] = {}
            for one in self.samples.get(f"{name}_bucket", ()):
                high = _number(one.labels.get("le", ""))
                if high is not None:
                    bounds[high] = bounds.get(high, 0.0) + one.value
            return MetricHistogram(count, total, tuple(sorted(bounds.items())))
        return None

    def since(self, before: EngineMetrics) -> EngineMetrics:
        """Return what was counted after an earlier scrape; gauges are those of the later one.

        A counter that went down started again: then all of it counts.
        """
        result = EngineMetrics()
        for name, samples in self.samples.items():
            if not name.endswith(("_total", "_count", "_sum", "_bucket")):
                result.samples[name] = samples
                continue
            old = {tuple(sorted(s.labels.items())): s.value for s in before.samples.get(name, ())}
            changed = []
            for one in samples:
                earlier = old.get(tuple(sorted(one.labels.items())), 0.0)
                value = one.value - earlier if one.value >= earlier else one.value
                changed.append(Sample(one.labels, value))
            result.samples[name] = changed
        return result


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def metrics_of(text: str, origin: str) -> EngineMetrics:
    """Return the samples of a text. Raises Unreadable naming the line."""
    if len(text) > MOST_BYTES:
        raise Unreadable(f"{origin}: more than {MOST_BYTES} characters")
    result, count = EngineMetrics(), 0
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _SAMPLE.match(line)
        value = _number(match[3]) if match else None
        if match is None or value is None:
            raise Unreadable(f"{origin}: line {number} is no Prometheus sample")
        count += 1
        if count > MOST_SAMPLES:
            raise Unreadable(f"{origin}: more than {MOST_SAMPLES} samples")
        if math.isnan(value):
            continue
        labels = dict(_LABEL.findall(match[2] or ""))
        result.samples.setdefault(match[1], []).append(Sample(labels, value))
    return result
