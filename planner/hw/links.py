"""Links between accelerators: published speeds, measured copies and measured collectives."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from planner.hw._data import EDITION, load, source_texts


@dataclass(frozen=True, slots=True)
class LinkSpec:
    """Published speed of a link, one direction [bytes/s].

    `per` says of what: accelerator (all its links together), link, port or host; `role` is
    scale_up, scale_out or host; `domain` is how many accelerators it joins, as printed.
    """

    name: str
    vendor: str
    parts: str
    bytes_per_s: float
    per: str
    role: str
    domain: str
    latency_s: float | None
    source: str


@dataclass(frozen=True, slots=True)
class Transfer:
    """Measured copy over one link, one direction [bytes/s]."""

    link: str
    system: str
    bytes_per_s: float
    source: str


@dataclass(frozen=True, slots=True)
class AllReduce:
    """Measured all-reduce of one library on `gpus` accelerators of one node.

    `latency_s` is the median over messages up to 8 KiB; the bus bandwidth is the best over message
    sizes, bytes / time x 2(n-1)/n. `launch` is `cuda_graph` (what a decode step sees), `eager`
    (includes the host's launches) or None where the source does not say.
    """

    gpu: str
    gpus: int
    library: str
    version: str
    launch: str | None
    busbw_bytes_per_s: float
    latency_s: float | None
    latency_64kib_s: float | None
    latency_1mib_s: float | None
    source: str


@dataclass(frozen=True, slots=True)
class BusBandwidth:
    """Measured all-reduce bus bandwidth at one message size (None: large) [bytes/s]."""

    gpu: str
    gpus: int
    nodes: int
    message_bytes: int | None
    busbw_bytes_per_s: float
    source: str


@dataclass(frozen=True, slots=True)
class ExpertExchange:
    """Measured all-to-all of expert parallelism over `gpus` accelerators.

    `mode` is low_latency (decode) or normal (prefill), `phase` dispatch or combine.
    """

    gpu: str
    gpus: int
    mode: str
    phase: str
    format: str
    link: str
    bytes_per_s: float
    time_s: float | None
    source: str


@dataclass(frozen=True, slots=True)
class Assumption:
    """Constant that another planner uses, not a measurement."""

    name: str
    parts: str
    bytes_per_s: float | None
    latency_s: float | None
    per: str
    source: str


Row = TypeVar("Row", LinkSpec, Transfer, AllReduce, BusBandwidth, ExpertExchange, Assumption)


def _rows(table: str, kind: type[Row], edition: str) -> tuple[Row, ...]:
    data = load("links", edition)
    sources = source_texts(data)
    rows: list[dict[str, Any]] = data[table]
    return tuple(kind(**(row | {"source": sources[row["source"]]})) for row in rows)


@cache
def link_specs(edition: str = EDITION) -> tuple[LinkSpec, ...]:
    """Every published link speed."""
    return _rows("specs", LinkSpec, edition)


@cache
def transfers(edition: str = EDITION) -> tuple[Transfer, ...]:
    """Every measured copy."""
    return _rows("transfers", Transfer, edition)


@cache
def bus_bandwidths(edition: str = EDITION) -> tuple[BusBandwidth, ...]:
    """Every all-reduce bus bandwidth published at one message size."""
    return _rows("bus_bandwidths", BusBandwidth, edition)


@cache
def expert_exchanges(edition: str = EDITION) -> tuple[ExpertExchange, ...]:
    """Every measured all-to-all of expert parallelism."""
    return _rows("expert_exchanges", ExpertExchange, edition)


@cache
def assumptions(edition: str = EDITION) -> tuple[Assumption, ...]:
    """Every constant that other planners use."""
    return _rows("assumptions", Assumption, edition)


@cache
def _all_reduces(edition: str) -> tuple[AllReduce, ...]:
    return _rows("all_reduces", AllReduce, edition)


def all_reduces(
    gpu: str | None = None,
    gpus: int | None = None,
    library: str | None = None,
    launch: str | None = None,
    edition: str = EDITION,
) -> tuple[AllReduce, ...]:
    """Measured all-reduces that satisfy every given condition; `gpu` is a catalogue id."""
    return tuple(
        row
        for row in _all_reduces(edition)
        if (gpu is None or row.gpu == gpu)
        and (gpus is None or row.gpus == gpus)
        and (library is None or row.library.lower() == library.lower())
        and (launch is None or row.launch == launch)
    )
