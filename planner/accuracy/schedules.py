"""The schedule's simulation and the closed form beside measured serving runs.

A run is simulated as its benchmark loaded it: clients in a closed loop who all start at once, ten
prompts each, lengths drawn evenly about the mean that its harness states. Nothing of the first
round is left out, as the benchmarks count it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.accuracy.holdout import Holdout
from planner.calibration.table import Calibration, from_json
from planner.deployment import Deployment
from planner.roofline import Array, Words
from planner.runs.groups import Group, grouped
from planner.runs.harness import habits, harness_of, mean_lengths
from planner.runs.predict import predict
from planner.runs.room import room_of_run
from planner.runs.rows import Row, numbers
from planner.runs.setup import setup
from planner.serving.simulation.policy import Policy
from planner.serving.simulation.run import Seen, Simulator
from planner.workload.arrivals import RequestList

ROUNDS = 10
"""Prompts of a client, as the benchmarks of the committed rows have them [-]."""
FEWEST = 100
"""Requests of a run at least, so that few clients have means, too [-]."""
EVEN = 0.02
"""Share of its length that a fixed length is drawn apart, so that clients do not march in step."""
SEED = 20261201
LOADS = ((8, "1 to 8 clients"), (64, "9 to 64"), (2**31, "more than 64"))
"""Most clients of a class of loads [-]."""
QUANTITIES = ("tpot_ms", "ttft_ms", "e2e_ms")


@dataclass(frozen=True, slots=True)
class Scheduled:
    """One measured run beside what the closed form and the simulation say of it [ms]."""

    row: Row
    measured: Mapping[str, float]
    closed_form: Mapping[str, float]
    simulated: Mapping[str, float]

    @property
    def load(self) -> str:
        """The class of its load."""
        clients = float(self.row.inputs["concurrency"])
        return next(name for most, name in LOADS if clients <= most)


def held_schedules(holdout: Holdout, tag: str = "model") -> Iterator[Scheduled]:
    """Yield every committed serving run that does not queue, by a fit without those of its tag."""
    values: Words = np.array([subject.tags[tag] for subject in holdout.subjects])
    first = holdout.serving
    for value in sorted(set(values[:first].tolist())):
        out = values == value
        rows = [holdout.rows[i] for i in np.flatnonzero(out[:first]).tolist()]
        figures = from_json(holdout.refit.without(out[:first], out[first:], None))
        yield from schedules([row for row in rows if row.remarks.get("queued") != "1"], figures)


def schedules(rows: Sequence[Row], figures: Calibration) -> Iterator[Scheduled]:
    """Yield serving runs beside both predictions under a calibration; refused ones are left out."""
    answered = [
        (row, one.values)
        for row, one in zip(rows, predict(rows, figures), strict=True)
        if {"ttft_ms", "tpot_ms"} <= one.values.keys() and "tpot_ms" in row.measured
    ]
    deployments = [setup(row).deployment for row, _ in answered]
    for group in grouped(deployments):
        members = [answered[i] for i in group.rows]
        one = group.deployment.calibrated(figures, group.deployment.subject)
        drafting = figures.speculation if one.subject.tags["drafting"] else None
        one = replace(one, speculation=drafting)
        times = simulated_ms(Group(one, group.rows), [row for row, _ in members])
        for (row, values), seen in zip(members, times, strict=True):
            yield Scheduled(row, whole(row, row.measured), whole(row, values), whole(row, seen))


def whole(row: Row, times_ms: Mapping[str, float]) -> dict[str, float]:
    """Return TTFT and TPOT with the time of a request of mean length [ms]."""
    _, osl = mean_lengths([row])
    steps = float(osl[0]) - 1.0
    ttft, tpot = times_ms["ttft_ms"], times_ms["tpot_ms"]
    return {"ttft_ms": ttft, "tpot_ms": tpot, "e2e_ms": ttft + steps * tpot}


def simulated_ms(group: Group, rows: Sequence[Row]) -> list[dict[str, float]]:
    """Return the mean TTFT and TPOT of each run of a deployment under its schedule [ms]."""
    one = group.deployment
    clients = numbers(rows, "concurrency", 1.0)
    isl, osl = mean_lengths(rows)
    rooms = room_of_run(one, rows, clients, isl, osl)
    holds = np.broadcast_to(habits(rows).rank_wait, clients.shape)
    times = []
    for at, row in enumerate(rows):
        requests = requests_of(row, float(isl[at]), float(osl[at]), int(clients[at]))
        policy = replace(_policy(one, requests, row, float(rooms[at])), hold_steps=int(holds[at]))
        longest = float(requests.isl.max() + requests.osl.max())
        outcome = Simulator.under(one, policy, longest).closed(requests, int(clients[at]))
        seen = Seen.of(outcome, warm=0.0)
        times.append(
            {"ttft_ms": seen.at("ttft", None) * 1e3, "tpot_ms": seen.at("tpot", None) * 1e3}
        )
    return times


def _policy(one: Deployment, requests: RequestList, row: Row, room: float) -> Policy:
    """Return the schedule of a deployment that holds `room` sequences at once, however long."""
    longest = float(requests.isl.max() + requests.osl.max())
    most = max(1, min(int(room), int(float(row.inputs["concurrency"]))))
    return replace(Policy.of(one, longest), most_sequences=most, cache_tokens=(most + 1) * longest)


def requests_of(row: Row, isl: float, osl: float, clients: int) -> RequestList:
    """Return the requests of a run, in the order in which clients take them up.

    Lengths are drawn evenly from as far below their mean as the nominal ones lie above it.
    """
    rng = np.random.default_rng(SEED)
    count = max(FEWEST, ROUNDS * clients)
    apart = max(1.0 / harness_of(row).mean_share - 1.0, EVEN)

    def lengths(mean: float) -> Array:
        return np.maximum(np.round(rng.uniform(mean * (1 - apart), mean * (1 + apart), count)), 1.0)

    return RequestList(np.zeros(count), lengths(isl), lengths(osl))


@dataclass(frozen=True, slots=True)
class ScheduleErrors:
    """Errors of both predictions in a class of runs, |predicted/measured − 1| [-]."""

    of: str
    runs: int
    quantity: str
    closed_form_median: float
    closed_form_mean: float
    simulated_median: float
    simulated_mean: float


def compared(runs: Sequence[Scheduled]) -> list[ScheduleErrors]:
    """Return the errors of all runs, by engine, and by engine and load."""
    classes: dict[str, list[Scheduled]] = defaultdict(list)
    for run in runs:
        engine = run.row.inputs["engine"]
        for name in ("all", engine, f"{engine}, {run.load}"):
            classes[name].append(run)
    return [
        _compared(name, classes[name], quantity)
        for name in sorted(classes, key=lambda name: (name != "all", name))
        for quantity in QUANTITIES
    ]


def _compared(name: str, runs: Sequence[Scheduled], quantity: str) -> ScheduleErrors:
    measured = np.array([run.measured[quantity] for run in runs])
    closed, simulated = (
        np.abs(np.array([times[quantity] for times in predicted]) / measured - 1)
        for predicted in ([r.closed_form for r in runs], [r.simulated for r in runs])
    )
    return ScheduleErrors(
        of=name,
        runs=len(runs),
        quantity=quantity.removesuffix("_ms"),
        closed_form_median=float(np.median(closed)),
        closed_form_mean=float(closed.mean()),
        simulated_median=float(np.median(simulated)),
        simulated_mean=float(simulated.mean()),
    )
