"""Prefill on workers of its own: rates that balance, what requests see, and the question for it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from planner import Scenario, plan
from planner.answer import DisaggregationAnswer, Serving
from planner.deployment import deployment_of
from planner.errors import one_line
from planner.plans.compare import ComparisonRequest, compare
from planner.serving.disaggregation import Workers
from planner.serving.steady import serve
from planner.workload.lengths import Lengths
from tests.test_cli import answered, refused

LLAMA = "meta-llama/Llama-3.1-70B-Instruct"
DEPLOYED: dict[str, Any] = {
    "model": LLAMA,
    "gpu": "h200-sxm",
    "tp": 4,
    "weights": "fp8",
    "engine": "vllm",
}
CARD = {
    "peaks_flops_per_s": {"bf16": 1e15, "fp8": 2e15},
    "bandwidth_bytes_per_s": 2e12,
    "memory_bytes": 2e11,
    "source": "made up",
}
LOAD = {**DEPLOYED, "isl": 8192, "osl": 1024}


def asked(**changes: Any) -> Scenario:
    return Scenario(**{**LOAD, "disaggregated": {}, **changes})


def workers(isl: float | Lengths = 8192, osl: float = 1024, **more: Any) -> Workers:
    one = deployment_of(Scenario(**DEPLOYED))
    inputs = isl if isinstance(isl, Lengths) else Lengths.fixed(isl)
    return Workers(one, one, inputs, Lengths.fixed(osl), **more)


def parts(scenario: Scenario) -> tuple[Serving, DisaggregationAnswer]:
    serving = plan(scenario).serving
    assert serving is not None
    assert serving.disaggregated is not None
    return serving, serving.disaggregated


def test_rates_balance() -> None:
    half = workers(busy=0.5)
    found, one = half.at(64), half.decode
    assert found.tpot_s == pytest.approx(float(one.time_s(64.0, 8192 + 512)))
    assert found.requests_per_s == pytest.approx(64 / (1024 * float(found.tpot_s)))
    together = serve(one, 64, 8192, 1024)
    assert found.tpot_s < together.tpot_s
    # What prefill workers put through, at half of their time, is what decode completes.
    prompt_s = float(one.prompt_time_s(8192))  # nothing decodes beside it
    through = float(found.prefill_per_decode) * 0.5 / prompt_s
    assert through == pytest.approx(float(found.requests_per_s))
    # Twice as busy a prefill worker serves twice the requests.
    busier = workers(busy=0.999999).at(64)
    ratio = float(found.prefill_per_decode / busier.prefill_per_decode)
    assert ratio == pytest.approx(2, rel=1e-4)


def test_cache_transfer_by_hand() -> None:
    found = workers(transfer_bytes_per_s=50e9)
    # 80 layers × 8 heads × 2 × 128 values of 16 bits a token (Llama-3.1-70B config.json).
    assert found.transfer_s == pytest.approx(8192 * 327_680 / 50e9)
    with pytest.raises(ValueError, match="busy"):
        workers(busy=1.0)


def test_a_prompt_waits_as_in_a_queue() -> None:
    # M/D/1 at 80%: t·0.8/(2·0.2) = 2t; a cv of 1 doubles it.
    alone = workers(busy=1e-9)
    assert workers(busy=0.8).before_s - alone.before_s == pytest.approx(2 * alone.prompt_s)
    spread = workers(Lengths.lognormal(8192, 1), busy=0.8)
    without = workers(Lengths.lognormal(8192, 1), busy=1e-9)
    assert spread.before_s - without.before_s == pytest.approx(4 * spread.prompt_s)


def test_clients_and_batch_are_the_same_state() -> None:
    one = workers()
    at = one.at(np.array([1.0, 20.0, 60.0]))
    under = one.under(at.clients, 100)
    assert under.running == pytest.approx(at.running, rel=1e-4)
    assert under.ttft_s == pytest.approx(at.ttft_s, rel=1e-4)
    # Little's law: clients are requests a second times the time of one.
    cycle = under.ttft_s + 1023 * under.tpot_s
    assert under.clients == pytest.approx(under.requests_per_s * cycle, rel=1e-4)


def test_beyond_the_pool_clients_queue() -> None:
    one = workers()
    full, crowded = one.under(200, 32), one.under(400, 32)
    assert full.running == crowded.running == 32
    assert full.tpot_s == crowded.tpot_s
    assert crowded.queued == pytest.approx(float(full.queued) + 200)
    cycle = crowded.ttft_s + 1023 * crowded.tpot_s
    assert float(crowded.requests_per_s * cycle) == pytest.approx(400)


def test_a_plan_answers_for_both_kinds() -> None:
    serving, apart = parts(asked(concurrency=64, disaggregated={"tp": 8, "busy": 0.5}, replicas=2))
    together = plan(asked(concurrency=64, disaggregated=None, replicas=2)).serving
    assert together is not None
    assert together.disaggregated is None
    assert serving.tpot_s.p50 < together.tpot_s.p50
    assert (apart.gpus_per_prefill, apart.gpus_per_decode) == (8, 4)
    assert apart.gpus == pytest.approx(2 * (4 + 8 * apart.prefill_per_decode))
    rate = serving.output_tokens_per_s / apart.gpus
    assert apart.output_tokens_per_s_per_gpu == pytest.approx(rate)
    # H200's NVLink, 450 GB/s in one direction (datasheet).
    assert apart.transfer_s == pytest.approx(8192 * 327_680 / 450e9)


def test_a_batch_stands_for_the_clients_that_keep_it() -> None:
    by_batch, _ = parts(asked(batch=[8, 32]))
    assert by_batch.running_batch == pytest.approx(32, rel=1e-4)
    by_clients, _ = parts(asked(concurrency=by_batch.concurrency))
    assert by_clients.running_batch == pytest.approx(32, rel=0.03)


def test_what_is_assumed_is_said() -> None:
    codes = {note.code for note in plan(asked(batch=8)).notes}
    assert "assumed_transfer" in codes
    assert "prefill_does_not_fit" not in codes
    given = asked(batch=8, disaggregated={"transfer_bytes_per_s": 5e10})
    assert "assumed_transfer" not in {note.code for note in plan(given).notes}
    tight = asked(batch=8, tp=8, weights="bf16", disaggregated={"tp": 1})
    assert "prefill_does_not_fit" in {note.code for note in plan(tight).notes}


def test_decode_speculates_and_prefill_does_not() -> None:
    drafting = {"drafts": 1, "accepted": 1.8}
    plain, fast = (parts(asked(batch=16, speculation=s))[0] for s in (None, drafting))
    assert fast.tpot_s.p50 < plain.tpot_s.p50
    spent = plain.ttft_s.p50 - plain.tpot_s.p50
    assert fast.ttft_s.p50 - fast.tpot_s.p50 == pytest.approx(spent)


def test_limits_and_comparisons_are_about_it() -> None:
    serving, apart = parts(asked(concurrency=64))
    tpot_ms = serving.tpot_s.p50 * 1.001e3
    within, missed = (
        plan(asked(concurrency=64, tpot_ms=tpot_ms, disaggregated=d)) for d in ({}, None)
    )
    assert "limit_missed" not in {note.code for note in within.notes}
    assert "limit_missed" in {note.code for note in missed.notes}
    by_batch = plan(asked(batch=64, ttft_ms=1.0)).notes
    assert any(note.text.startswith("TTFT at") for note in by_batch if note.code == "limit_missed")

    pair = [asked(concurrency=64, disaggregated=d) for d in (None, {})]
    found = compare(ComparisonRequest(scenarios=pair))
    (attribution,) = found.attributions
    assert [step.fields for step in attribution.steps] == [["disaggregated"]]
    figures = {row.figure: row.values[1] for row in found.figures}
    assert figures["tpot_s"] == pytest.approx(serving.tpot_s.p50)
    assert figures["gpus"] == pytest.approx(apart.gpus)
    assert figures["tokens_per_s_per_gpu"] == pytest.approx(apart.output_tokens_per_s_per_gpu)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"isl": None}, ["isl", "batch or concurrency"]),
        ({}, ["batch or concurrency", "needed"]),
        ({"batch": 8, "isl": None, "osl": None}, ["isl, osl", "needed"]),
        ({"batch": 8, "disaggregated": {"busy": 1}}, ["disaggregated.busy", "0.99"]),
        ({"batch": 8, "disaggregated": {"tp": 0}}, ["disaggregated.tp", "0"]),
        ({"batch": 8, "disaggregated": {"gpu": "b200-sxm"}}, ["disaggregated.gpu"]),
        ({"batch": 8, "disaggregated": True}, ["disaggregated", "True"]),
        ({"batch": 8, "disaggregated": {"tp": 3}}, ["disaggregated.tp", "3"]),
        ({"batch": 1, "gpu": CARD, "tp": 1}, ["disaggregated.transfer_bytes_per_s", "no link"]),
    ],
)
def test_impossible_questions_are_one_line(changes: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(ValueError, match=words[0]) as stop:
        plan(asked(**changes))
    line = one_line(stop.value)
    for word in words:
        assert word in line


def test_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    command = [
        "plan",
        LLAMA,
        "--gpu",
        "h200-sxm",
        "--tp",
        "4",
        "--isl",
        "2048",
        "--osl",
        "256",
        "--batch",
        "8",
        "--disaggregated",
    ]
    out = answered(capsys, *command, "same")
    assert "prefill workers" in out
    assert "of 4 GPUs, per decode worker of 4" in out
    given = json.loads(
        answered(capsys, *command, "tp=2:busy=0.7:transfer-bytes-per-s=5e10", "--json")
    )
    asked = given["scenario"]["disaggregated"]
    assert (asked["tp"], asked["busy"], asked["transfer_bytes_per_s"]) == (2, 0.7, 5e10)
    for text, word in (
        ("yes", "same"),
        ("tp=x", "tp=x"),
        ("gpu=b200-sxm", "busy"),
        ("", "same"),
        ("busy=nan", "busy=nan"),
        ("tp=3", "disaggregated.tp"),
        ("busy=2", "disaggregated.busy"),
    ):
        line = refused(capsys, *command, text)
        assert "disaggregated" in line
        assert word in line
