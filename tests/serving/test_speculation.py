"""Speculative decoding in a plan: what a step costs and yields, and what is assumed."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from planner import Scenario, plan
from planner.answer import Plan
from planner.calibration import current
from planner.deployment import deployment_of
from planner.errors import one_line
from planner.plans.advice import advise
from planner.plans.compare import ComparisonRequest, compare
from planner.plans.sweep import SweepRequest, sweep
from tests.test_cli import answered, refused

V3 = {
    "model": "deepseek-ai/DeepSeek-V3",
    "gpu": "h200-sxm",
    "tp": 8,
    "engine": "sglang",
    "batch": [1, 32],
    "context": [4096],
}
ONE = {"drafts": 1, "accepted": 1.8}


def asked(**changes: Any) -> Scenario:
    return Scenario(**{**V3, **changes})


def codes(answer: Plan) -> set[str]:
    return {note.code for note in answer.notes}


def test_a_step_verifies_and_drafts_and_yields() -> None:
    deployment = deployment_of(asked())
    layers = deployment.spec.layers
    answer = plan(asked(speculation={"drafts": 2, "accepted": 2.5}))
    for point in answer.points:
        plain = deployment.step.at(point.batch, point.context)
        verify = deployment.step.at(point.batch, point.context, 3.0)
        seconds = [float(points.total_s) for points in (verify, plain)]
        step_s = seconds[0] + 2 * seconds[1] / layers
        assert point.tpot_s.p50 == pytest.approx(step_s / 2.5)
        assert point.tokens_per_s == pytest.approx(point.batch * 2.5 / step_s)
        # Both rates of one step: FLOPs of three tokens, and a layer's share of one for each draft.
        assert point.flops == pytest.approx((3 + 2 / layers) * plain.flops)
        pure = [float(points.roofline_s) for points in (verify, plain)]
        assert point.roofline_tpot_s == pytest.approx((pure[0] + 2 * pure[1] / layers) / 2.5)
    assert sum(kernel.share for kernel in answer.kernels) == pytest.approx(1)
    assert sum(k.time_s for k in answer.kernels) == pytest.approx(
        2.5 * answer.points[-1].tpot_s.p50
    )
    (drafts,) = [kernel for kernel in answer.kernels if kernel.name == "drafts"]
    assert drafts.count == 2


def test_nothing_drafted_is_nothing_changed() -> None:
    load = {"concurrency": 16, "isl": 1024, "osl": 256}
    plain, none = (
        plan(asked(**load, speculation=s)) for s in (None, {"drafts": 0, "accepted": 1.0})
    )
    for part in ("limits", "memory", "points", "serving", "kernels"):
        assert getattr(none, part) == getattr(plain, part), part


def test_it_pays_while_memory_binds() -> None:
    plain, fast = plan(asked()), plan(asked(speculation=ONE))
    for before, after in zip(plain.points, fast.points, strict=True):
        assert 1 < before.tpot_s.p50 / after.tpot_s.p50 <= 1.8
    assert fast.limits.saturation_intensity == pytest.approx(2 * plain.limits.saturation_intensity)
    assert fast.memory.weights_bytes_per_gpu > plain.memory.weights_bytes_per_gpu
    assert fast.memory.max_batch < plain.memory.max_batch


def test_serving_and_limits_use_the_same_step() -> None:
    load = {"batch": None, "context": None, "concurrency": 16, "isl": 1024, "osl": 256}
    plain, fast = plan(asked(**load)).serving, plan(asked(**load, speculation=ONE)).serving
    assert plain is not None
    assert fast is not None
    assert fast.tpot_s.p50 < plain.tpot_s.p50
    tpot_ms = plan(asked(speculation=ONE)).points[-1].tpot_s.p50 * 1e3
    within, missed = (plan(asked(speculation=s, tpot_ms=tpot_ms * 1.001)) for s in (ONE, None))
    assert "limit_missed" not in codes(within)
    assert "limit_missed" in codes(missed)


def test_acceptance_is_as_measured_where_none_is_given() -> None:
    right = current().speculation.accepted - 1  # the calibration's rows draft one token a step
    answer = plan(asked(speculation={"drafts": 3}))
    filled = answer.scenario.speculation
    assert filled is not None
    assert filled.accepted == pytest.approx(1 + right + right**2 + right**3)
    assert {"speculation", "assumed_acceptance"} <= codes(answer)
    again = plan(answer.scenario)
    assert again.points == answer.points
    assert "assumed_acceptance" not in codes(again)


def test_a_model_without_draft_layers_is_answered_with_a_note() -> None:
    llama = {"model": "meta-llama/Llama-3.1-70B-Instruct", "tp": 4}
    assert "no_draft_layers" in codes(plan(asked(**llama, speculation=ONE)))
    assert "no_draft_layers" not in codes(plan(asked(speculation=ONE)))


def test_sweeps_levers_and_comparisons_agree() -> None:
    scenario = asked(speculation=ONE)
    point = plan(scenario).points[-1]
    table = sweep(SweepRequest(scenario=scenario)).columns
    assert table["tpot_p50_s"][-1] == pytest.approx(point.tpot_s.p50)
    graphs = [lever for lever in advise(scenario) if lever.code == "graphs"]
    launches = [lever for lever in advise(asked()) if lever.code == "graphs"]
    assert graphs[0].gain == pytest.approx(launches[0].gain, rel=0.2)
    found = compare(ComparisonRequest(scenarios=[asked(), scenario]))
    (attribution,) = found.attributions
    assert [step.fields for step in attribution.steps] == [["speculation"]]
    tpot = next(c for c in attribution.contributions if c.figure == "tpot_s")
    assert sum(kernel.difference_s for kernel in attribution.kernels) == tpot.difference
    assert {kernel.kernel for kernel in attribution.kernels} >= {"drafts", "experts"}
    assert "rest of the step" not in {kernel.kernel for kernel in attribution.kernels}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"drafts": 1, "accepted": 2.5}, ["speculation", "1 + drafts"]),
        ({"drafts": 1, "accepted": 0.5}, ["speculation.accepted", "0.5"]),
        ({"drafts": -1}, ["speculation.drafts", "-1"]),
        ({"accepted": 1.5}, ["speculation.drafts", "required"]),
        ({"drafts": 65}, ["speculation.drafts", "64"]),
        (1, ["speculation", "1"]),
    ],
)
def test_impossible_speculation_is_one_line(given: Any, words: list[str]) -> None:
    with pytest.raises(ValidationError) as stop:
        asked(speculation=given)
    for word in words:
        assert word in one_line(stop.value)


def test_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["plan", "deepseek-ai/DeepSeek-V3", "--gpu", "h200-sxm", "--tp", "8", "--batch", "8"]
    out = " ".join(answered(capsys, *command, "--speculation", "1:1.8").split())
    assert "which yields 1.8 tokens" in out
    assert "[assumed_acceptance]" in answered(capsys, *command, "--speculation", "2")
    for text, word in (
        ("x", "DRAFTS:ACCEPTED"),
        ("1:", "DRAFTS:ACCEPTED"),
        ("1:3", "1 + drafts"),
        ("1:nan", "DRAFTS:ACCEPTED"),
        ("-1", "speculation.drafts"),
    ):
        line = refused(capsys, *command, "--speculation", text)
        assert "speculation" in line
        assert word in line
