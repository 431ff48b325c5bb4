"""Parts of a plan on a small model: loads that are solved for, limits, memory's notes, sentences.

The machine does 1e14 FLOP/s and reads 1e12 byte/s; what holds of any load is Little's law (1961).
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.answer import Interval, Plan
from planner.deployment import Deployment, deployment_of
from planner.errors import InvalidInput
from planner.models.spec import Note
from planner.plans.kernels import kernel_rows
from planner.plans.meets import meets_of, missed_notes
from planner.plans.memory import fit_notes
from planner.plans.planning import plan
from planner.plans.resolved import resolved
from planner.plans.serving import clients_of, hit_of, moved, room_of, serving_notes, under_load
from planner.plans.texts import note_answers
from planner.plans.verdict import sequences, verdict
from planner.scenario import Scenario
from planner.serving.steady import Steady
from tests.compare.test_figures import CONFIG, gpu

LOAD: dict[str, Any] = {"isl": 1000, "osl": 200}


def of(**fields: Any) -> Scenario:
    return Scenario(**{"model": CONFIG, "gpu": gpu(), **fields})


@cache
def small() -> Deployment:
    return deployment_of(of())


@pytest.mark.parametrize(
    ("fields", "clients"),
    [
        ({"concurrency": 7}, 7.0),
        ({"concurrency_in_all": 30, "replicas": 4}, 7.5),
        ({"users": 12, "replicas": 3}, 4.0),  # who think no time are all in flight
        ({"batch": 8}, 1.0),
        ({}, 1.0),
    ],
)
def test_clients_that_are_counted(fields: dict[str, Any], clients: float) -> None:
    lengths = LOAD if set(fields) - {"batch"} else {}
    assert clients_of(of(**lengths, **fields), small()) == clients


@settings(max_examples=8, deadline=None)
@given(st.integers(2, 3000), st.floats(0.5, 60.0), st.integers(1, 4))
def test_users_are_in_flight_or_thinking(users: int, think_s: float, replicas: int) -> None:
    """c + X·Z = U of each replica."""
    scenario = of(**LOAD, users=users, think_time_s=think_s, replicas=replicas)
    clients = clients_of(scenario, small())
    rate = float(under_load(scenario, small(), clients).rate)
    assert clients + rate * think_s == pytest.approx(users / replicas, rel=1e-6)


@pytest.mark.parametrize("share", [0.01, 0.3, 0.9])
def test_a_rate_that_is_served_is_the_rate_that_comes(share: float) -> None:
    one = of(**LOAD, concurrency=1)
    most = float(under_load(one, small(), room_of(one, small())).rate)
    scenario = of(**LOAD, requests_per_s=2 * share * most, replicas=2)
    clients = clients_of(scenario, small())
    assert float(under_load(scenario, small(), clients).rate) == pytest.approx(share * most)
    assert [note.code for note in serving_notes(scenario, small())] == []
    serving = plan(scenario).serving
    assert serving is not None
    assert serving.requests_per_s == pytest.approx(2 * share * most)


def test_a_rate_beyond_what_can_be_served_is_said() -> None:
    one = of(**LOAD, concurrency=1)
    room = room_of(one, small())
    most = float(under_load(one, small(), room).rate)
    scenario = of(**LOAD, requests_per_s=3 * most)
    assert clients_of(scenario, small()) == room
    (note,) = serving_notes(scenario, small())
    assert note.code == "overload"
    assert note.text.startswith(f"{3 * most:g} requests/s arrive, {most:.3g} can be served")


def state(ttft_s: float, tpot_s: float, queued: float, requests_per_s: float) -> Steady:
    known = {"ttft_s": ttft_s, "tpot_s": tpot_s, "queued": queued}
    return cast("Steady", SimpleNamespace(**known, requests_per_s=requests_per_s))


@pytest.mark.parametrize(
    ("queued", "start", "step", "ttft_s", "rate"),
    [
        # 10 clients of 0.5 s and 100 steps of 15 ms: five a second.
        (0.0, 1.0, 1.0, 0.5, 5.0),
        # Starts twice as long: 1 s + 1.5 s. Steps twice as long: 0.5 s + 3 s.
        (0.0, 2.0, 1.0, 1.0, 4.0),
        (0.0, 1.0, 2.0, 0.5, 10 / 3.5),
        # Four of ten wait: TTFT of 0.5 s has 4/3 s of waiting in it at 3 requests a second.
        (4.0, 1.0, 1.0, 0.5 + 4 / 3, 3.0),
        # Twice as long in both is half the rate and twice the wait.
        (4.0, 2.0, 2.0, 1.0 + 8 / 3, 1.5),
    ],
)
def test_times_that_are_off_move_the_rate(
    queued: float, start: float, step: float, ttft_s: float, rate: float
) -> None:
    at_p50 = (10 - queued) / 2.0
    one = state(0.5 + queued / at_p50, 0.015, queued, at_p50)
    first, requests = moved(one, np.asarray(10.0), 101.0, start, step)
    assert float(requests) == pytest.approx(rate)
    assert float(first) == pytest.approx(ttft_s)


def test_what_sessions_find_where_users_think() -> None:
    """Of three turns 550 of 1,000 tokens are known where the cache holds every user's session."""
    turns = {"turns": 3, "isl": 1000, "osl": 100}
    few = of(**turns, users=10, think_time_s=5.0)
    assert float(hit_of(few, small(), 2.0)) == pytest.approx(0.55)
    pool = small().memory.pool.sequences(1100.0)
    many = of(**turns, users=int(10 * pool), think_time_s=500.0)
    shares = hit_of(many, small(), np.array([1.0, pool / 2, pool]))
    assert shares[0] == pytest.approx(0.55 * (pool - 1) / (int(10 * pool) - 1), rel=1e-3)
    assert shares[2] == 0.0
    assert hit_of(of(**LOAD, prefix_hit=0.3, users=1), small(), np.ones(2)).tolist() == [0.3, 0.3]
    codes = [note.code for note in serving_notes(many, small())]
    assert codes == ["prefix_hit"]


def test_a_session_without_users_is_taken_to_be_held() -> None:
    (note,) = serving_notes(of(turns=3, isl=1000, osl=100, concurrency=4), small())
    assert note.text.startswith("sessions of 3 turns: 55% of input is found in the prefix cache")
    assert "if it holds all of them" in note.text


def test_spread_lengths_are_told_by_their_moments() -> None:
    """Uniform from 500 to 1,500: E[X²]/E[X] = 1,083,333/1,000."""
    scenario = of(isl={"uniform": {"low": 500, "high": 1500}}, osl=100, concurrency=4)
    (note,) = serving_notes(scenario, small())
    assert note.text == (
        "isl: 1000 tokens on average; a random token of an input belongs to one of 1083.33"
    )


def test_prompts_apart_name_the_field_that_is_wrong() -> None:
    scenario = of(**LOAD, concurrency=4, disaggregated={"tp": 3})
    with pytest.raises(InvalidInput, match=r"^disaggregated\.tp: 3 does not divide the 16"):
        under_load(scenario, small(), 4.0)
    codes = {n.code for n in serving_notes(of(**LOAD, concurrency=4, disaggregated={}), small())}
    assert "assumed_transfer" in codes


@pytest.mark.parametrize("percentile", [50, 90])
def test_a_limit_is_met_with_the_probability_of_its_time(percentile: float) -> None:
    """At the time's own percentile a limit is met with just that probability.

    Sums over one batch and over many may differ in their last digit, so that the limit is a part in
    10¹² above the time.
    """
    scenario = of(batch=16, context=1000, percentile=percentile, tpot_ms=5.0)
    (first,) = meets_of(scenario, small(), [16], 1000, 100)
    exact = scenario.model_copy(update={"tpot_ms": first.value_ms * (1 + 1e-12)})
    (one,) = meets_of(exact, small(), [16], 1000, 100)
    assert one.probability == pytest.approx(percentile / 100, abs=1e-3)
    assert (one.batch, one.limit, one.ok) == (16, "tpot_ms", True)
    assert one.max_batch == 16
    below = exact.model_copy(update={"tpot_ms": first.value_ms * 0.999})
    (missed,) = meets_of(below, small(), [16], 1000, 100)
    assert (missed.ok, missed.max_batch) == (False, 15)


def test_limits_under_load_are_of_clients() -> None:
    scenario = of(**LOAD, concurrency=8, tpot_ms=1.2, ttft_ms=50.0)
    by_limit = {one.limit: one for one in meets_of(scenario, small(), [1], 1000, 100)}
    assert set(by_limit) == {"tpot_ms", "ttft_ms"}
    for name, one in by_limit.items():
        assert one.concurrency == 8
        most = one.max_concurrency or 0
        at, beyond = (under_load(scenario, small(), float(n)).state for n in (most, most + 1))
        quantity = f"{name[:4]}_s"
        assert float(getattr(at, quantity)) * 1e3 <= one.limit_ms
        assert float(getattr(beyond, quantity)) * 1e3 > one.limit_ms


@pytest.mark.parametrize("limit_ms", [0.5, 1.6])
def test_missed_limits_name_the_largest_load_within(limit_ms: float) -> None:
    """Weights alone take more than 0.5 ms, so that no batch is within it."""
    scenario = of(batch=64, context=1000, tpot_ms=limit_ms)
    (one,) = meets_of(scenario, small(), [64], 1000, 100)
    (note,) = missed_notes([one], scenario)
    most = f"the largest batch within it is {one.max_batch}"
    assert bool(one.max_batch) is (limit_ms > 1)
    assert note.text == (
        f"TPOT at batch 64 is {one.value_ms:.3g} ms at p50, over the limit of {limit_ms:g} ms; "
        + (most if one.max_batch else "no batch is within it")
    )
    # A batch that nobody named is not missed.
    assert missed_notes([one], scenario.model_copy(update={"batch": None})) == []


def memory(**fields: Any) -> Deployment:
    known = {
        "kv_pool_bytes_per_gpu": 5e9,
        "weights_bytes_per_gpu": 20e9,
        "most_tokens": 1e9,
        "longest": 4096,
        "capped": lambda _: False,
    }
    return cast("Deployment", SimpleNamespace(memory=SimpleNamespace(**{**known, **fields})))


@pytest.mark.parametrize(
    ("fields", "batches", "fit", "note"),
    [
        ({}, [4], 4, None),
        ({}, None, 1, None),
        (
            {"kv_pool_bytes_per_gpu": -3e9},
            [1],
            0,
            Note("weights_do_not_fit", "weights take 20.0 GB per GPU of 17.0 GB usable"),
        ),
        (
            {"most_tokens": 100},
            [1],
            0,
            Note("context_beyond_max_model_len", "context 8000 exceeds max_model_len: 4096"),
        ),
        (
            {},
            [2, 8],
            5,
            Note(
                "infeasible_batch", "batch 8 does not fit: memory holds 5 sequences of 8000 tokens"
            ),
        ),
        (
            {"capped": lambda _: True},
            [8],
            5,
            Note(
                "infeasible_batch",
                "batch 8 does not fit: the engine runs 5 sequences at most (max_sequences)",
            ),
        ),
        ({}, None, 0, Note("infeasible_batch", "not one sequence of 8000 tokens fits")),
    ],
)
def test_why_a_load_does_not_fit(
    fields: dict[str, Any], batches: list[int] | None, fit: int, note: Note | None
) -> None:
    assert fit_notes(memory(**fields), batches, 8000, fit) == ([note] if note else [])


def judged(
    reason: str, crossover: int | None, reached: bool, fits: bool, bounds: list[tuple[int, str]]
) -> str:
    limits = SimpleNamespace(crossover_reason=reason, crossover_batch=crossover)
    held = SimpleNamespace(crossover_fits=reached, fits=fits, max_batch=62)
    points = [SimpleNamespace(batch=batch, bound=bound) for batch, bound in bounds]
    return verdict(cast("Plan", SimpleNamespace(limits=limits, memory=held, points=points)))


@pytest.mark.parametrize(
    ("crossover", "reached", "fits", "bounds", "text"),
    [
        (None, False, True, [(1, "memory")], "Memory-bound."),
        (200, True, True, [(1, "launch")], "Memory-bound."),
        (200, False, True, [], "Memory-bound, which memory does not hold (62 sequences fit)."),
        (None, False, False, [], "This load does not fit. Memory-bound."),
        (
            None,
            False,
            True,
            [(1, "launch"), (2, "memory"), (4, "launch")],
            "Memory-bound. As calibrated, launch-bound at batch 1–4.",
        ),
        (
            None,
            False,
            True,
            [(1, "launch"), (64, "compute")],
            "Memory-bound. As calibrated, launch-bound at batch 1 and compute-bound at batch 64.",
        ),
    ],
)
def test_the_answer_in_a_sentence(
    crossover: int | None, reached: bool, fits: bool, bounds: list[tuple[int, str]], text: str
) -> None:
    assert judged("memory-bound", crossover, reached, fits, bounds) == text


def test_numbers_of_sequences() -> None:
    assert [sequences(n) for n in (1, 2, 12345)] == [
        "1 sequence",
        "2 sequences",
        "12,345 sequences",
    ]


@pytest.mark.parametrize(
    ("fields", "label", "text", "assumed"),
    [
        ({}, "split", "tp 1: 1 GPU", False),
        ({"tp": 2, "pp": 2, "replicas": 3}, "split", "tp 2, pp 2, replicas 3: 12 GPUs", False),
        ({}, "engine", "none, physics alone; ", True),
        ({"engine": "vllm"}, "engine", "vLLM ", True),
        (
            {"engine": "vllm", "engine_version": "0.33.0"},
            "engine",
            "vLLM 0.33.0; defaults: ",
            False,
        ),
        ({"kv": "fp8"}, "formats", "weights bf16, KV cache fp8, arithmetic bf16", False),
        ({}, "accelerator", "one: one, 80 GB, 1 TB/s", False),
    ],
)
def test_what_a_scenario_was_taken_to_be(
    fields: dict[str, Any], label: str, text: str, assumed: bool
) -> None:
    scenario = of(batch=1, **fields)
    rows = {row.label: row for row in resolved(plan(scenario), deployment_of(scenario))}
    assert rows[label].text.startswith(text)
    assert rows[label].assumed is assumed


@pytest.mark.parametrize("fields", [{}, {"tp": 2}, {"engine": "vllm"}, {"pp": 2, "batch": 64}])
def test_kernels_of_a_step_share_all_of_it(fields: dict[str, Any]) -> None:
    scenario = of(**{"batch": 8, "context": 1000, **fields})
    one = deployment_of(scenario)
    batch = (scenario.batch or [1])[-1]
    passes = one.passes_on_grid((float(batch),), (1000.0,))
    rows = kernel_rows(one, passes)
    assert sum(row["share"] for row in rows) == pytest.approx(1.0)
    total = float(one.time_s(float(batch), 1000.0)) * one.tokens_per_step
    assert sum(row["time_s"] for row in rows) == pytest.approx(total)
    for row in rows:
        moved_ = row["bytes"]
        assert row["arithmetic_intensity"] == (row["flops"] / moved_ if moved_ else None)
    assert ("collectives" in {row["name"] for row in rows}) is ("tp" in fields or "pp" in fields)


def test_notes_are_given_once() -> None:
    notes = note_answers([Note("a", "x"), Note("b", "y"), Note("a", "x")])
    assert [(one.code, one.text) for one in notes] == [("a", "x"), ("b", "y")]
    assert Interval(p10=1, p50=2, p90=3).times(2) == Interval(p10=2, p50=4, p90=6)
