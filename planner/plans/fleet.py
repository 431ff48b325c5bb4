"""A day of a fleet: replicas of each pool over time, what they cost, and how many requests wait.

Each window's requests are served by the pool of their input length. A replica serves as many a
second as the steady state within the limits allows at that window's lengths. Three lines: perfect
scaling, which has exactly the replicas needed at any moment and is a lower bound; autoscaling, that
sees a window when it is over and has a replica after a delay; and the peak, kept all the time. What
waits at the end is served after it, and its GPU-hours count: no way of scaling takes fewer than the
bound, as every request takes the same wherever it is served.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from planner import answer
from planner.deployment import Deployment, deployment_of
from planner.errors import InvalidInput
from planner.hw import get_accelerator
from planner.plans.curves import Requests, shared_curve
from planner.plans.editions import current_editions
from planner.plans.executors import mapped
from planner.plans.fleet_request import FleetPool, FleetRequest
from planner.plans.money import HOURS_PER_MONTH, PriceBook
from planner.plans.sizing import Sizing, Wanted
from planner.plans.texts import note_answers
from planner.plans.uncertainty import Spread, z_of
from planner.roofline import Array
from planner.scenario import EngineSettings, MachineFields, Scenario
from planner.workload.lengths import Lengths
from planner.workload.traces import Event, read_trace
from planner.workload.windows import Windows, gather

if TYPE_CHECKING:
    from concurrent.futures import Executor

MACHINE = (*EngineSettings.model_fields, *MachineFields.model_fields)
"""Fields of a pool that say what a replica is."""
GRID = 1.15
"""Ratio between lengths at which capacities are evaluated [-]."""


class NoCapacity(InvalidInput):
    """A pool that serves no request within the limits; names it."""


class FleetLine(answer.Answer):
    """GPUs over time by one way of scaling."""

    name: str
    """perfect, autoscaled or static."""
    gpus_mean: float
    gpus_peak: float
    gpu_hours: float
    """Those for what waits at the end included."""
    usd_per_month: float | None
    """Of the time told, taken as a month long; null without a price."""
    share_within_limits: float
    """Of requests [-]."""
    windows_short: int
    """Windows in which more came than was served."""
    gpus: list[float]
    """By window."""


class PoolDay(answer.Answer):
    """One pool over the time told."""

    name: str
    gpus_per_replica: int
    requests: float
    requests_per_s_per_replica: float
    """At the lengths of the busiest window."""
    binds: str
    replicas_peak: int
    """Autoscaled."""
    replicas_mean: float
    lines: list[FleetLine]
    replicas: list[int]
    """By window, autoscaled."""


class Month(answer.Answer):
    """The fleet after so many months of growth."""

    month: int
    requests_per_s_peak: float
    gpus_mean: float
    gpus_peak: int
    usd_per_month: float | None


class Fleet(answer.Answer):
    """A fleet over the time of a trace or a shape."""

    request: FleetRequest
    windows: int
    requests: float
    requests_per_s_mean: float
    requests_per_s_peak: float
    requests_per_s: list[float]
    """By window."""
    lines: list[FleetLine]
    """Over all pools."""
    pools: list[PoolDay]
    months: list[Month]
    notes: list[answer.NoteAnswer]
    editions: answer.Editions


def fleet(request: FleetRequest, executor: Executor | None = None) -> Fleet:
    """Return a fleet's day; raises ValueError that names a field.

    `executor` works on its pools and months at once.
    """
    limits = [pool.isl_up_to for pool in request.pools if pool.isl_up_to is not None]
    windows = gather(_events(request), request.window_s, limits).times(request.scale)
    members = [PoolMember.of(pool, request, i) for i, pool in enumerate(request.pools)]
    days, *later = _days(request, windows, executor)
    rates = windows.requests_per_s.sum(axis=1)
    return Fleet(
        request=request,
        windows=len(rates),
        requests=float(windows.count.sum()),
        requests_per_s_mean=float(rates.mean()),
        requests_per_s_peak=float(rates.max()),
        requests_per_s=rates.tolist(),
        lines=_summed(days),
        pools=days,
        months=list(_months(request, windows, [days, *later])),
        notes=note_answers(n for m in members for n in m.deployment.notes),
        editions=current_editions(),
    )


def day_of(request: FleetRequest, index: int, windows: Windows) -> PoolDay:
    """Return one pool of a request over all windows."""
    return PoolMember.of(request.pools[index], request, index).day(windows)


def _days(
    request: FleetRequest, windows: Windows, executor: Executor | None
) -> list[list[PoolDay]]:
    """Return the pools' days now, and after each month of growth."""
    pools, months = range(len(request.pools)), range(request.months + 1)
    grown = [windows.times(_growth(request, month)) for month in months]
    jobs = [(request, index, windows) for windows in grown for index in pools]
    days = iter(mapped(executor, day_of, *zip(*jobs, strict=True)))
    return [[next(days) for _ in pools] for _ in months]


def _growth(request: FleetRequest, month: int) -> float:
    return float((1 + request.growth_per_month) ** month)


def _events(request: FleetRequest) -> Iterator[Event]:
    if request.trace is not None:
        yield from read_trace(request.trace)
        return
    width = request.window_s
    for i, rate in enumerate(request.requests_per_s_by_window or ()):
        yield Event(i * width, request.isl or 1.0, request.osl or 1.0, rate * width, width)


@dataclass(frozen=True, slots=True)
class PoolMember:
    """A pool, ready to be asked for its capacity at any lengths."""

    pool: FleetPool
    request: FleetRequest
    index: int
    deployment: Deployment

    @classmethod
    def of(cls, pool: FleetPool, request: FleetRequest, index: int) -> PoolMember:
        """Return a pool of a request; errors name the pool."""
        fields = {name: getattr(pool, name) for name in MACHINE if name != "replicas"}
        return cls(pool, request, index, deployment_of(Scenario(**fields)))

    @property
    def usd_per_hour(self) -> float | None:
        """Price of one replica [USD]."""
        book = PriceBook(
            own_usd_per_gpu_hour=self.pool.usd_per_gpu_hour, most_days=self.request.price_days
        )
        tariff = book.of(get_accelerator(self.pool.gpu))
        return None if tariff is None else tariff.usd_per_gpu_hour * self.deployment.sharding.gpus

    def needed(self, windows: Windows) -> tuple[Array, list[str]]:
        """Return replicas needed in each window, not rounded, and what binds each."""
        rates = windows.requests_per_s[:, self.index]
        replicas, binds = np.zeros(len(rates)), [""] * len(rates)
        for i in np.flatnonzero(rates):
            isl, osl = windows.lengths(int(i), self.index)
            most, bound = self.capacity(isl, osl)
            replicas[i] = rates[i] / most if most > 0 else math.inf
            binds[i] = bound
        return replicas, binds

    def capacity(self, isl: Lengths, osl: Lengths) -> tuple[float, str]:
        """Return the requests a replica serves a second within the limits, and what binds."""
        figures = (isl.mean, isl.of_a_step / isl.mean, osl.mean, osl.of_a_step / osl.mean)
        cells = tuple(round(math.log(x) / math.log(GRID)) for x in figures)
        at = [GRID**cell for cell in cells]
        most, binds = _capacity(self.deployment, self.request_limits, *at)
        # Between cells capacity falls as tokens grow: by inputs where prompts bind, else by both.
        taken = (isl.mean + osl.mean) / (at[0] + at[2])
        return most / taken, binds

    @property
    def request_limits(self) -> tuple[float, float, float, float]:
        """Limits on TTFT, TPOT and a whole request [s], infinite where none, and their place."""
        one = self.request
        limits_ms = (one.ttft_ms, one.slowest_tpot_ms, one.e2e_ms)
        ttft, tpot, e2e = (math.inf if ms is None else ms / 1e3 for ms in limits_ms)
        return ttft, tpot, e2e, z_of(one.percentile)

    def day(self, windows: Windows) -> PoolDay:
        """Return the pool over all windows."""
        rates = windows.requests_per_s[:, self.index]
        needed, binds = self.needed(windows)
        if math.isinf(float(needed.max(initial=0.0))):
            worst = int(needed.argmax())
            isl, osl = windows.lengths(worst, self.index)
            raise NoCapacity(
                f"pools[{self.index}]: one replica serves no request of {isl.mean:.0f} input and "
                f"{osl.mean:.0f} output tokens within the limits ({binds[worst]}); accepted: "
                f"looser limits, or another pool"
            )
        auto = self.autoscaled(needed)
        whole = np.maximum(np.ceil(needed - 1e-9), self.pool.replicas)
        static = np.full(len(auto), max(float(whole.max()), float(auto.max())))
        peak = int(needed.argmax())
        gpus = self.deployment.sharding.gpus
        lines = [
            self._line("perfect", needed, needed, rates, windows.seconds),
            self._line("autoscaled", auto, needed, rates, windows.seconds),
            self._line("static", static, needed, rates, windows.seconds),
        ]
        per_replica = float(rates[peak] / needed[peak]) if needed[peak] else 0.0
        return PoolDay(
            name=self.pool.name or f"{self.deployment.accelerator.id} × {gpus}",
            gpus_per_replica=gpus,
            requests=float(windows.count[:, self.index].sum()),
            requests_per_s_per_replica=per_replica,
            binds=binds[peak],
            replicas_peak=int(auto.max()),
            replicas_mean=float(auto.mean()),
            lines=lines,
            replicas=[int(n) for n in auto],
        )

    def autoscaled(self, needed: Array) -> Array:
        """Return the replicas there are in each window.

        After a window they are wanted for its requests and the headroom; they serve once the delay
        is over, and stay for `hold_s` after they were last wanted. The first window is planned for.
        """
        one, seconds = self.request, self.request.window_s
        wanted = np.ceil(needed * (1 + one.headroom) - 1e-9) + one.spare_replicas
        wanted = np.maximum(wanted, self.pool.replicas)
        if self.pool.most_replicas is not None:
            wanted = np.minimum(wanted, self.pool.most_replicas)
        delay = 1 + math.ceil(one.start_delay_s / seconds)  # a window is seen when it is over
        hold = max(math.ceil(one.hold_s / seconds), 0)
        seen = np.concatenate([np.full(delay + hold, wanted[0]), wanted])
        there = np.lib.stride_tricks.sliding_window_view(seen, hold + 1).max(axis=1)
        return np.asarray(there[: len(wanted)])

    def _line(
        self, name: str, replicas: Array, needed: Array, rates: Array, seconds: float
    ) -> FleetLine:
        each, day = self.deployment.sharding.gpus, served(replicas, needed, rates)
        gpus, worked = replicas * each, (float(replicas.sum()) + day.left) * each
        hours = worked * seconds / 3600.0
        usd = self.usd_per_hour
        months = len(replicas) * seconds / 3600.0 / HOURS_PER_MONTH
        per_gpu = None if usd is None else usd / self.deployment.sharding.gpus
        return FleetLine(
            name=name,
            gpus_mean=worked / len(replicas),
            gpus_peak=float(gpus.max()),
            gpu_hours=hours,
            usd_per_month=None if per_gpu is None else hours * per_gpu / months,
            share_within_limits=day.share_within_limits,
            windows_short=day.windows_short,
            gpus=gpus.tolist(),
        )


@dataclass(frozen=True, slots=True)
class ServedDay:
    """What becomes of the requests of all windows."""

    share_within_limits: float
    """Of requests [-]."""
    windows_short: int
    left: float
    """What still waits at the end, in replicas for one window [-]."""


def served(replicas: Array, needed: Array, rates: Array) -> ServedDay:
    """Return how many requests are within limits where there are so many replicas.

    Arrays of shape (window,). What is not served in a window waits for the next ones, and is late;
    so is all that comes while others wait, which is as long as free replicas take to serve them.
    """
    late, waiting, short = 0.0, 0.0, 0
    total = float(rates.sum())
    for have, want, rate in zip(replicas.tolist(), needed.tolist(), rates.tolist(), strict=True):
        free = have - want
        if waiting > 0:
            late += rate * (min(1.0, waiting / free) if free > 0 else 1.0)
            waiting = max(0.0, waiting - max(free, 0.0))
        if want > have * (1 + 1e-9):
            short += 1
            waiting -= free
            late -= rate * free / want
    return ServedDay(1.0 - min(late / total, 1.0) if total else 1.0, short, waiting)


@lru_cache(maxsize=65536)
def _capacity(
    deployment: Deployment,
    limits: tuple[float, float, float, float],
    isl: float,
    isl_spread: float,
    osl: float,
    osl_spread: float,
) -> tuple[float, str]:
    """Return the requests per second of a replica within limits at lengths, and what binds."""
    lengths = (Lengths(isl, isl * isl * isl_spread), Lengths(osl, osl * osl * osl_spread))
    curve = shared_curve(deployment, Requests(*lengths))
    if curve is None:
        return 0.0, "memory"
    names = dict(zip(("ttft", "tpot", "e2e"), limits[:3], strict=True))
    limits_s = {name: s for name, s in names.items() if math.isfinite(s)}
    wanted = Wanted(limits_s, "requests_per_s", 1.0, 0.0)
    load = Sizing(curve, Spread.of(deployment), wanted).most(limits[3])
    return load.served, "memory or engine cap" if load.binds == "room" else load.binds


def _summed(days: list[PoolDay]) -> list[FleetLine]:
    lines = []
    for rows in zip(*(day.lines for day in days), strict=True):
        requests = [day.requests for day in days]
        total = sum(requests) or 1.0
        prices = [row.usd_per_month for row in rows]
        known = [usd for usd in prices if usd is not None]
        lines.append(
            FleetLine(
                name=rows[0].name,
                gpus_mean=sum(row.gpus_mean for row in rows),
                gpus_peak=sum(row.gpus_peak for row in rows),
                gpu_hours=sum(row.gpu_hours for row in rows),
                usd_per_month=sum(known) if len(known) == len(prices) else None,
                share_within_limits=sum(
                    row.share_within_limits * n for row, n in zip(rows, requests, strict=True)
                )
                / total,
                windows_short=max(row.windows_short for row in rows),
                gpus=[
                    sum(of_window) for of_window in zip(*(row.gpus for row in rows), strict=True)
                ],
            )
        )
    return lines


def _months(request: FleetRequest, windows: Windows, days: list[list[PoolDay]]) -> Iterator[Month]:
    for month in range(request.months + 1 if request.months else 0):
        grown = windows.times(_growth(request, month))
        line = _summed(days[month])[1]
        yield Month(
            month=month,
            requests_per_s_peak=float(grown.requests_per_s.sum(axis=1).max()),
            gpus_mean=line.gpus_mean,
            gpus_peak=round(line.gpus_peak),
            usd_per_month=line.usd_per_month,
        )
