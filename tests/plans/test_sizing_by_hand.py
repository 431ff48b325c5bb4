"""From a replica's curve to replicas, by hand; probabilities of limits; kernels of typed sizes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.answer import Interval
from planner.handover.verdicts import probability_below, verdict_of, worst
from planner.plans.curves import Curve
from planner.plans.sizing import RequiredLoad, Sizing, Wanted, binding
from planner.plans.uncertainty import ENDS, Z90, Spread, factor, probability, z_of
from planner.step.typed import KERNELS, UnknownKernel, typed_kernel
from tests.step.machine import machine

CURVE = Curve(
    clients=np.array([1.0, 2.0, 4.0, 8.0, 16.0]),
    running=np.array([1.0, 2.0, 4.0, 8.0, 16.0]),
    ttft_s=np.array([0.1, 0.2, 0.4, 0.8, 1.6]),
    tpot_s=np.array([0.01, 0.01, 0.02, 0.02, 0.04]),
    requests_per_s=np.array([0.9, 1.6, 1.6, 2.8, 2.8]),
    prompt_share=np.array([0.1, 0.1, 0.2, 0.4, 0.8]),
    output_steps=100.0,
    room=16,
)
"""TTFT of 0.1 s a client; TPOT of 10, 20 and 40 ms; 100 steps after the first token."""
EXACT = Spread((1.0, 1.0), (1.0, 1.0))
WIDE = Spread((0.5, 2.0), (0.8, 1.25))


def sizing(
    spread: Spread = EXACT, demand: str | None = None, amount: float = 0.0, **limits_s: float
) -> Sizing:
    return Sizing(CURVE, spread, Wanted(limits_s, demand, amount, think_s=10.0))


@pytest.mark.parametrize(
    ("limits", "clients", "binds"),
    [
        # Without a limit all that there is room for.
        ({}, 16.0, "room"),
        ({"ttft": 10.0}, 16.0, "room"),
        ({"ttft": 0.4}, 4.0, "ttft"),
        ({"ttft": 0.1}, 1.0, "ttft"),
        ({"tpot": 0.02}, 8.0, "tpot"),
        ({"tpot": 0.025, "ttft": 0.4}, 4.0, "ttft"),
        # A whole request takes 1.1, 1.2, 2.4, 2.8 and 5.6 s.
        ({"e2e": 2.8}, 8.0, "e2e"),
        # One client alone is too slow.
        ({"ttft": 0.05}, 0.0, "ttft"),
        ({"tpot": 0.005}, 0.0, "tpot"),
    ],
)
def test_the_largest_load_within_the_limits(
    limits: dict[str, float], clients: float, binds: str
) -> None:
    load = sizing(**limits).most()
    assert load.clients == pytest.approx(clients)
    assert load.binds == binds


def test_between_two_loads() -> None:
    """TTFT passes 0.6 s between 4 and 8 clients: half way of the ratio, √32 in the logarithm."""
    assert sizing(ttft=0.6).most().clients == pytest.approx(math.sqrt(32))


@pytest.mark.parametrize(
    ("demand", "served"),
    [
        ("concurrency_in_all", 4.0),
        # 4 clients of 2.4 s a request.
        ("requests_per_s", 4 / 2.4),
        # And users who think 10 s between requests (Little 1961).
        ("users", 4 + 10 * 4 / 2.4),
    ],
)
def test_what_a_load_serves(demand: str, served: float) -> None:
    assert sizing(demand=demand).served(4.0) == pytest.approx(served)


@pytest.mark.parametrize(
    ("amount", "replicas"), [(1, 1), (4, 1), (4.1, 2), (8, 2), (40, 10), (41, 11), (1e9, None)]
)
def test_replicas_that_a_demand_needs(amount: float, replicas: int | None) -> None:
    """Each holds 4 requests in flight within a TTFT of 0.4 s."""
    assert sizing(demand="concurrency_in_all", amount=amount, ttft=0.4).replicas() == replicas


def test_no_number_of_replicas_helps_one_that_is_too_slow() -> None:
    slow = sizing(demand="concurrency_in_all", amount=1, ttft=0.05)
    assert slow.replicas() is None
    assert slow.holds(1000) == 0.0


def test_a_pessimistic_time_needs_more_replicas() -> None:
    """At p90 TTFT is twice as long: 2 clients within 0.4 s instead of 4; at p10 half: 8."""
    wide = sizing(WIDE, "concurrency_in_all", 40, ttft=0.4)
    assert [wide.replicas(z) for z in ENDS] == [5, 10, 20]
    assert wide.most(Z90).clients == pytest.approx(2.0)


def test_a_rate_follows_from_the_time_of_a_request() -> None:
    """4 clients of 2.4 s a request: at p90 0.8 + 2.5 s of its parts, or 1.1 times 2.4 s."""
    parts = sizing(WIDE, "requests_per_s", 10)
    assert parts.rate(4.0, Z90) == pytest.approx(4 / 3.3)
    whole = sizing(Spread((0.5, 2.0), (0.8, 1.25), (0.9, 1.1)), "requests_per_s", 10)
    assert whole.rate(4.0, Z90) == pytest.approx(4 / (1.1 * 2.4))
    assert whole.rate(4.0, -Z90) == pytest.approx(4 / (0.9 * 2.4))
    assert whole.rate(4.0) == pytest.approx(4 / 2.4)


def test_limits_are_on_the_parts_of_a_request() -> None:
    """Whatever its whole time, the first token is late at twice its time: 0.4 s of 2 clients."""
    whole = sizing(Spread((0.5, 2.0), (0.8, 1.25), (0.9, 1.1)), "requests_per_s", 10, ttft=0.4)
    assert whole.most(Z90).clients == pytest.approx(2.0)
    assert whole.times_s(Z90)["ttft"] == pytest.approx(2.0 * CURVE.ttft_s)


def test_the_probability_that_replicas_suffice() -> None:
    wide = sizing(WIDE, "concurrency_in_all", 40, ttft=0.4)
    held = [wide.holds(n) for n in (4, 5, 10, 20, 80)]
    assert held == sorted(held)
    assert held[1] == pytest.approx(0.1, abs=0.02)
    assert held[2] == pytest.approx(0.5, abs=0.02)
    assert held[3] == pytest.approx(0.9, abs=0.02)
    assert sizing(demand="concurrency_in_all", amount=40, ttft=0.4).holds(10) == 1.0
    assert sizing(demand="concurrency_in_all", amount=40, ttft=0.4).holds(9) == 0.0


@given(st.floats(0.05, 10.0), st.floats(1.0, 3.0), st.floats(1, 1000))
@settings(max_examples=50)
def test_a_looser_limit_never_needs_more(limit: float, factor_: float, amount: float) -> None:
    tight, loose = (
        sizing(demand="requests_per_s", amount=amount, e2e=x).replicas()
        for x in (limit, limit * factor_)
    )
    assert tight is None or (loose is not None and loose <= tight)


def test_limits_may_be_tightened() -> None:
    wanted = Wanted({"ttft": 1.0, "tpot": 0.02}, None, 0.0, 0.0)
    assert wanted.tightened({"ttft": 2.0}).limits_s == {"ttft": 0.5, "tpot": 0.02}


@pytest.mark.parametrize(
    ("load", "capped", "transfer", "name"),
    [
        (RequiredLoad(16, 16, "room"), False, 0.0, "memory"),
        (RequiredLoad(16, 16, "room"), True, 0.0, "engine_cap"),
        (RequiredLoad(4, 4, "ttft"), False, 0.0, "ttft"),
        (RequiredLoad(4, 4, "ttft"), False, 0.9, "link"),
        (RequiredLoad(4, 4, "tpot"), False, 0.9, "tpot"),
        # Prompts take most of the time beyond some ten clients.
        (RequiredLoad(16, 16, "tpot"), False, 0.0, "prompts"),
        (RequiredLoad(8, 8, "e2e"), True, 0.0, "e2e"),
    ],
)
def test_what_binds(load: RequiredLoad, capped: bool, transfer: float, name: str) -> None:
    assert binding(load, CURVE, capped, transfer) == name


def test_places_of_an_uncertainty() -> None:
    """z(90%) = 1.2816; p10 and p90 are as far off on either side."""
    assert pytest.approx(1.28155, abs=1e-4) == Z90
    assert ENDS == (-Z90, 0.0, Z90)
    assert [z_of(p) for p in (10, 50, 90)] == pytest.approx(ENDS)
    assert [probability(z) for z in ENDS] == pytest.approx([0.1, 0.5, 0.9])
    assert factor((0.5, 2.0), np.array(ENDS)).tolist() == pytest.approx([0.5, 1.0, 2.0])
    # Twice as far off is the square.
    assert float(factor((0.8, 3.0), 2 * Z90)) == pytest.approx(9.0)
    assert float(factor((0.8, 3.0), -2 * Z90)) == pytest.approx(0.64)


@pytest.mark.parametrize(
    ("limit", "share"),
    [
        (10.0, 0.5),
        (20.0, 0.9),
        (5.0, 0.1),
        # Twice as far in the logarithm: z of 2.563.
        (40.0, 0.99481),
        (2.5, 1 - 0.99481),
        (0.0, 0.0),
    ],
)
def test_probability_of_a_limit(limit: float, share: float) -> None:
    assert probability_below(Interval(p10=5, p50=10, p90=20), limit) == pytest.approx(
        share, abs=1e-4
    )


def test_a_certain_quantity_meets_a_limit_or_does_not() -> None:
    exact = Interval(p10=10, p50=10, p90=10)
    assert [probability_below(exact, x) for x in (9.9, 10.0, 10.1)] == [0.0, 1.0, 1.0]


@given(st.floats(0.1, 10), st.floats(1, 5), st.floats(1, 5), st.floats(0.01, 100), st.floats(1, 9))
def test_a_higher_limit_is_met_at_least_as_likely(
    p50: float, down: float, up: float, limit: float, more: float
) -> None:
    interval = Interval(p10=p50 / down, p50=p50, p90=p50 * up)
    assert probability_below(interval, limit) <= probability_below(interval, limit * more)


@pytest.mark.parametrize(
    ("probability_", "percentile", "verdict"),
    [
        (0.95, 50, "pass"),
        (0.9, 50, "pass"),
        (0.89, 50, "near"),
        (0.5, 50, "near"),
        (0.49, 50, "fail"),
        (0.89, 90, "fail"),
        (0.95, 99, "fail"),
        (0.09, 5, "fail"),
        (0.2, 5, "near"),
    ],
)
def test_verdicts(probability_: float, percentile: float, verdict: str) -> None:
    assert verdict_of(probability_, percentile) == verdict


def test_the_worst_verdict() -> None:
    assert worst(["pass", "near", "pass"]) == "near"
    assert worst(["pass", "fail", "near"]) == "fail"
    assert worst([]) == "pass"


@pytest.mark.parametrize(
    ("name", "sizes", "flops", "moved"),
    [
        # 2·64³ FLOPs; two operands and a result of 64² values of two bytes.
        ("gemm", [64, 64, 64], 524_288, 3 * 8192),
        ("gemv", [64, 32], 4_096, 4_096),
        # 4·N²·d FLOPs; Q, K, V and the output of N·d values.
        ("attention", [256, 64, 2], 33_554_432, 2 * 2 * 4 * 256 * 64),
        ("add", [1000], 1_000, 6_000),
        ("rmsnorm", [1000], 6_000, 4_000),
        ("softmax", [1000], 5_000, 4_000),
        ("swiglu", [1000], 5_000, 6_000),
        ("activation", [1000], 4_000, 4_000),
    ],
)
def test_kernels_of_typed_sizes(name: str, sizes: list[int], flops: int, moved: int) -> None:
    found = typed_kernel(name, sizes, machine())
    best = found.ways[-1]
    assert (found.flops, best.bytes) == (flops, moved)
    assert found.ridge_point == 100
    assert best.arithmetic_intensity == pytest.approx(flops / moved)
    assert best.time_s == pytest.approx(max(flops / 1e12, moved / 1e10))
    assert best.bound == ("compute" if flops / moved > 100 else "memory")
    assert [way.bytes for way in found.ways] == sorted((w.bytes for w in found.ways), reverse=True)


def test_traffic_of_a_naive_and_a_tiled_product() -> None:
    """512³ at two bytes: 2·(2·512³ + 512²) naive; a 128th of the operands in tiles of 128."""
    found = typed_kernel("gemm", [512, 512, 512], machine())
    naive, tiled, ideal = found.ways
    assert naive.bytes == 2 * (2 * 512**3 + 512**2)
    assert tiled.bytes == 2 * (2 * 512**3 / 128 + 512**2)
    assert ideal.bytes == 2 * 3 * 512**2
    assert tiled.way == "tiled 128×128"
    assert naive.arithmetic_intensity < 1 < tiled.arithmetic_intensity


@pytest.mark.parametrize(("fmt", "bytes_", "peak"), [("bf16", 2.0, 1e12), ("fp8", 1.0, 2e12)])
def test_a_format_counts_twice(fmt: str, bytes_: float, peak: float) -> None:
    found = typed_kernel("gemm", [64, 64, 64], machine(), fmt)
    assert found.ways[-1].bytes == bytes_ * 3 * 4096
    assert found.peak_flops_per_s == peak


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("none", [1]), "kernel: 'none' is unknown; accepted: gemm, gemv, attention"),
        (("gemm", [1, 2]), "gemm: 2 sizes given; accepted: M,N,K, each of 1 to"),
        (("gemm", [1, 2, 0]), "gemm: 3 sizes given"),
        (("add", [2**41]), "add: 1 sizes given"),
        (("gemm", [1, 1, 1], machine(), "bf16", 0), "tile: 0; accepted: 1 to"),
    ],
)
def test_kernels_that_are_none(arguments: tuple[Any, ...], message: str) -> None:
    name, sizes, *rest = arguments
    with pytest.raises(UnknownKernel, match=message):
        typed_kernel(name, sizes, *(rest or [machine()]))
    assert set(KERNELS) >= {"gemm", "gemv", "attention", "softmax"}
