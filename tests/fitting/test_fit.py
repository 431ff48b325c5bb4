"""The fit: it finds what made synthetic data, shrinks where there is little, and repeats."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.accuracy.report import errors
from planner.calibration.subject import Subject
from planner.calibration.table import from_json
from planner.fitting.committed import committed_priors, committed_rows
from planner.fitting.decode_rows import DecodeRows
from planner.fitting.fit import Design, Prior, Priors, fit
from planner.fitting.kernel_rows import read_samples
from planner.fitting.refit import Refit
from planner.fitting.serving_rows import ServingRows
from planner.runs.predict import predict
from planner.step.timing import Features, Item

PRIORS = Priors.of(
    {
        "parameters": {
            "memory": {"values": {"gemm": 0.8}, "sd": 0.3, "levels": [[["kind", "gpu"], 0.3]]},
            "compute": {"values": {"gemm": 0.6}, "sd": 0.3, "levels": []},
            "launch_s": {"values": {"gemm": 4e-6}, "sd": 0.5, "levels": []},
            "visit_s": {"values": {}, "sd": 1.0, "levels": []},
            "scale": {"values": {}, "sd": 1.0, "levels": []},
        },
        "sharpness": {"gemm": 2.0},
        "routing_spread": 1.0,
        "speculation": {"drafts": 1, "accepted": 1.8},
    }
)


def problem(rows: int, seed: int = 0):
    """Kernels of two accelerators, timed with efficiencies 0.6 and 0.5 and a floor of 6 µs."""
    random = np.random.default_rng(seed)
    design, times = Design(PRIORS), []
    for start, gpu, share in ((0, "one", 0.6), (rows, "two", 0.5)):
        memory, compute = random.uniform(1e-6, 1e-3, (2, rows))
        design.add(
            (Item("gemm"),),
            Subject({"gpu": gpu}),
            "decode",
            Features(compute[None], memory[None], np.ones((1, rows)), np.zeros((1, rows))),
            np.arange(start, start + rows),
            np.ones(rows),
        )
        times.append(6e-6 + np.hypot(memory / share, compute / 0.7))
    return design.close(2 * rows), np.concatenate(times)


def test_a_level_may_hold_for_some_kinds_alone() -> None:
    prior = Prior({"gemm": 0.8, "head": 0.8}, {"gemm": 0.3}, ((("kind", "gpu"), {"head": 0.2}),))
    design = Design(replace(PRIORS, parameters={**PRIORS.parameters, "memory": prior}))
    for kind in ("gemm", "head"):
        design.slot("memory", Subject({"gpu": "one"}), kind)
    assert design.effects.index == {("memory", -1, "gemm"): 0, ("memory", 0, "head|one"): 1}
    assert design.effects.sd == [0.3, 0.2]


def test_recovers_what_made_the_data() -> None:
    found, times = problem(400)
    theta = fit(found, times, np.ones(800))
    off = np.abs(found.predict(theta) / times - 1)
    assert np.median(off) < 0.005
    assert off.max() < 0.05


def test_outliers_pull_little() -> None:
    found, times = problem(400)
    spoiled = times.copy()
    spoiled[::20] *= 5
    theta = fit(found, spoiled, np.ones(800))
    assert np.median(np.abs(found.predict(theta) / times - 1)) < 0.03


def test_without_rows_the_priors_stand() -> None:
    found, times = problem(10)
    theta = fit(found, times, np.zeros(20))
    assert theta == pytest.approx(0, abs=1e-9)


def test_rows_of_weight_zero_do_not_matter() -> None:
    found, times = problem(50)
    weight = np.concatenate([np.ones(50), np.zeros(50)])
    spoiled = np.concatenate([times[:50], times[50:] * 100])
    assert fit(found, times, weight) == pytest.approx(fit(found, spoiled, weight))


def test_the_jacobian_is_the_derivative() -> None:
    found, _ = problem(30)
    theta = np.random.default_rng(1).normal(0, 0.05, len(found.sd))
    times, slopes = found.jacobian(theta)
    for i in range(len(theta)):
        moved = theta.copy()
        moved[i] += 1e-6
        wanted = (found.predict(moved) - times) / 1e-6
        slope = np.asarray(slopes[:, [i]].todense()).ravel()
        assert slope == pytest.approx(wanted, rel=1e-3, abs=1e-12)


@pytest.fixture(scope="module")
def small() -> Refit:
    rows = [r for r in committed_rows("serving") if not r.inputs["speculative"]][::16]
    priors = committed_priors()
    return Refit(
        ServingRows.of(rows),
        DecodeRows.of(committed_rows("decode")[:40]),
        read_samples()[::60],
        Priors.of(priors),
        priors["edition"],
    )


def test_refits_are_equal(small: Refit) -> None:
    again = Refit(small.serving, small.decode, small.samples, small.priors, small.edition)
    assert again.content == small.content


def test_rows_left_out_are_not_seen(small: Refit) -> None:
    out = np.array([r.inputs["gpu"] == "b200-sxm" for r in small.serving.rows])
    before = small.without(out)
    small.times.measured[: len(out)][out] *= 3
    try:
        assert small.without(out) == before
    finally:
        small.times.measured[: len(out)][out] /= 3


def test_a_small_fit_already_predicts(small: Refit) -> None:
    rows = [r for r in small.serving.rows if r.remarks["queued"] == "0"]
    found = predict(rows, from_json(small.content))
    shares = errors([p.values["tpot_ms"] for p in found], [r.measured["tpot_ms"] for r in rows])
    assert shares.median < 0.1
    assert shares.mean < 0.15
