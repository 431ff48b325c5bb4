"""Refitting: the committed rows in, a calibration file out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from planner.calibration.table import QUEUEING, SCALE, from_json
from planner.fitting.committed import committed_priors, committed_rows
from planner.fitting.decode_rows import DecodeRows
from planner.fitting.drafting import fit_accepted
from planner.fitting.fit import NAMES, Design, Effects, FitProblem, Prior, Priors, fit
from planner.fitting.kernel_rows import Samples, add_samples, read_samples
from planner.fitting.observations import add_decode, add_ridden
from planner.fitting.serving_rows import ServingRows, States
from planner.roofline import Array, Bools
from planner.serving.steady import ARRIVAL
from planner.step.timing import Features, Item

KERNEL_WEIGHT = 0.5
"""Weight of a set of kernel samples beside a serving row [-]."""

UNTUNED_WEIGHT = 0.2
"""Weight in the fit of TTFT of a run that was not set up for a benchmark: how its clients arrived
is not known [-]."""

DECODE_WEIGHT = 0.5
"""Weight of a decode row beside a serving row [-]."""


class Fitted:
    """A problem with the measurements and weights of its rows, and its solution for all of them."""

    def __init__(
        self, problem: FitProblem, measured: Array, weight: Array, before: Fitted | None = None
    ) -> None:
        """Solve for all rows, from the solution of a problem of the same effects if given."""
        self.problem, self.measured, self.weight = problem, measured, weight
        self.unknowns: Array = fit(problem, measured, weight, before.unknowns if before else None)

    def predicted(self, use: Bools) -> Array:
        """Return the times of all rows by a fit to those of which `use` is true [s]."""
        weight = np.where(use, self.weight, 0.0)
        return self.problem.predict(fit(self.problem, self.measured, weight, self.unknowns))

    def effects(self, use: Bools | None = None) -> Array:
        """Return the effects fitted to the rows of which `use` is true, all by default."""
        unknowns = self.unknowns
        if use is not None:
            unknowns = fit(self.problem, self.measured, np.where(use, self.weight, 0.0), unknowns)
        return np.asarray(self.problem.share @ unknowns)


def times_problem(
    serving: ServingRows,
    states: States,
    decode: DecodeRows,
    samples: Sequence[Samples],
    priors: Priors,
    before: Fitted | None = None,
) -> Fitted:
    """Return the problem of the times: serving rows at their running batch, and the others."""
    n = len(serving.rows)
    isl, osl = serving.lengths
    prompts, alone = serving.together(states.running)
    design = Design(priors)
    add_decode(design, serving.groups, states.running, isl + osl / 2, np.ones(n), 0)
    add_ridden(design, serving.loads, prompts, states.running, states.held / alone, 0)
    decode.add(design, n)
    times, weights = add_samples(design, samples, n + len(decode.rows))
    measured = [serving.measured("tpot_ms"), decode.seconds, times]
    weight = [serving.weight, decode.weight * DECODE_WEIGHT, weights * KERNEL_WEIGHT]
    total = n + len(decode.rows) + len(times)
    return Fitted(design.close(total), np.concatenate(measured), np.concatenate(weight), before)


NOTHING = Prior({}, 1.0, ())
"""The prior of a parameter that plays no part in a problem."""


def queueing_problem(serving: ServingRows, states: States, priors: Priors) -> Fitted:
    """Return the problem of TTFT, given the times of steps and prompts."""
    n = len(serving.rows)
    others = np.maximum(states.running - 1.0, 0.0)
    every = others * states.bunched_s
    items = (Item("prompt"), *(Item(name) for name in ARRIVAL))
    in_step, mixes = serving.in_step, serving.mixes
    visits = [
        np.zeros(n),
        np.ones(n),
        every,
        states.decode_s,
        every / (others + 1.0) * (in_step & mixes),
        every * (in_step & ~mixes),
    ]
    figures = {"visit_s": priors.parameters[QUEUEING]}
    design = Design(replace(priors, parameters=dict.fromkeys((*NAMES, SCALE), NOTHING) | figures))
    for group in serving.groups:
        at = group.rows
        none = np.zeros((len(items), len(at)))
        memory = none.copy()
        memory[0] = states.own_s[at] + states.queue_s[at]
        features = Features(none, memory, none, np.stack(visits)[:, at])
        design.add(items, group.deployment.subject, "", features, at, np.ones(len(at)), False)
    weight = serving.weight * ~serving.slow_start * np.where(serving.tuned, 1.0, UNTUNED_WEIGHT)
    return Fitted(design.close(n), serving.measured("ttft_ms"), weight)


Fits = Sequence[tuple[Effects, Array, Mapping[str, str]]]
"""Effects with their values, and the names that parameters of their problem have in the file."""


def content(priors: Priors, fits: Fits, edition: str) -> dict[str, Any]:
    """Return the calibration file of fitted effects, as plain values."""
    parameters: dict[str, Any] = {
        name: {
            "levels": [list(tags) for tags, _ in prior.levels],
            "values": dict(prior.values),
            "factors": [{} for _ in prior.levels],
        }
        for name, prior in priors.parameters.items()
    }
    for effects, theta, names in fits:
        for (fitted, level, key), position in effects.index.items():
            name = names.get(fitted, fitted)
            factor = float(np.exp(theta[position]))
            if level < 0:
                parameters[name]["values"][key] *= factor
            elif abs(factor - 1) >= SMALLEST_FACTOR:
                parameters[name]["factors"][level][key] = float(f"{factor:.4g}")
    for row in parameters.values():
        row["values"] = {key: float(f"{value:.4g}") for key, value in row["values"].items()}
    return {
        "edition": edition,
        "sharpness": dict(priors.sharpness),
        "routing_spread": priors.routing_spread,
        "parameters": parameters,
        "speculation": dict(priors.speculation),
        "intervals": {},
        "provenance": {},
    }


SMALLEST_FACTOR = 0.002
"""Factors nearer to one than this are left out of the file [-]."""

ROUNDS = 3
"""Iterations between the running batch and the times it depends on [-]."""


class Refit:
    """A fit to serving rows, decode rows and kernel samples, which can leave some rows out."""

    def __init__(
        self,
        serving: ServingRows,
        decode: DecodeRows,
        samples: Sequence[Samples],
        priors: Priors,
        edition: str,
    ) -> None:
        """Fit to all rows; the running batch and the times are iterated."""
        self.serving, self.decode, self.samples = serving, decode, samples
        self.priors, self.edition = priors, edition
        self.content = content(priors, (), edition)
        times = None
        for _ in range(ROUNDS):
            states = serving.states(from_json(self.content))
            times = times_problem(serving, states, decode, samples, priors, times)
            self.times, self.queueing = times, queueing_problem(serving, states, priors)
            self.content = self._content(None, None)

    def without(
        self,
        serving: Bools | None = None,
        decode: Bools | None = None,
        samples: Bools | None = None,
    ) -> dict[str, Any]:
        """Return the calibration fitted without some serving rows, decode rows and samples."""
        no_serving = np.zeros(len(self.serving.rows), bool) if serving is None else serving
        no_decode = np.zeros(len(self.decode.rows), bool) if decode is None else decode
        rest = len(self.times.measured) - len(no_serving) - len(no_decode)
        no_samples = np.zeros(rest, bool) if samples is None else samples
        times = np.concatenate([~no_serving, ~no_decode, ~no_samples])
        return self._content(times, ~no_serving)

    def _content(self, times: Bools | None, queueing: Bools | None) -> dict[str, Any]:
        fits = [
            (self.times.problem.effects, self.times.effects(times), {}),
            (self.queueing.problem.effects, self.queueing.effects(queueing), {"visit_s": QUEUEING}),
        ]
        return content(self.priors, fits, self.edition)


def refit_committed() -> Refit:
    """Return the fit to the rows and priors kept with the project."""
    given = committed_priors()
    rows = [row for row in committed_rows("serving") if not row.inputs["speculative"]]
    rows += committed_rows("serving-more")
    samples = read_samples()
    drafting = [row for row in committed_rows("serving") if row.inputs["speculative"]]
    decode = DecodeRows.of(committed_rows("decode"))
    refit_ = Refit(ServingRows.of(rows), decode, samples, Priors.of(given), given["edition"])
    refit_.content["speculation"]["accepted"] = fit_accepted(drafting, refit_.content)
    refit_.content["provenance"] = {
        "rows": {
            "serving": len(rows),
            "speculative": len(drafting),
            "decode": len(decode.rows),
            "kernels": sum(len(s.seconds) for s in samples),
        }
    }
    return refit_
