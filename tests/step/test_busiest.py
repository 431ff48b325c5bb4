"""The busiest rank of expert parallelism: chance by hand, bounds, and what a step makes of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.step.busiest import experts_on_busiest, largest_of, tokens_on_busiest
from planner.step.model_steps import model_step
from planner.step.parallel import Sharding
from tests.step.machine import MIXTURE, machine


@pytest.mark.parametrize(
    ("ranks", "exact"),
    # Expected largest of n standard normals (Harter 1961), 0.564 being 1/√π.
    [(1, 0.0), (2, 1 / math.sqrt(math.pi)), (4, 1.029), (8, 1.424), (16, 1.766), (64, 2.344)],
)
def test_the_largest_of_several(ranks: int, exact: float) -> None:
    assert largest_of(ranks) == pytest.approx(exact, abs=0.03)


def test_experts_by_hand() -> None:
    # 32 a rank, hit with ¼: 8 ± √6 = 2.449; the largest of eight is 1.434 of these above.
    assert float(experts_on_busiest(256, 64, 8)) == pytest.approx(8 * (8 + 1.434 * 2.449), rel=1e-3)
    # All hit, or none: every rank is the same; no rank reads more than it holds.
    assert float(experts_on_busiest(256, 256, 8)) == 256
    assert float(experts_on_busiest(256, 0, 8)) == 0
    assert float(experts_on_busiest(8, 7.5, 8)) == 8
    # One rank holds all.
    assert float(experts_on_busiest(256, 64, 1)) == 64


def test_tokens_by_hand() -> None:
    chance = 1 + largest_of(8) * math.sqrt(7 / (8 * 1024))
    assert float(tokens_on_busiest(256, 8, 1024, 8, 0.0)) == pytest.approx(chance)
    popular = 1 + largest_of(8) * math.sqrt(8 / 256 + 7 / (8 * 1024))
    assert float(tokens_on_busiest(256, 8, 1024, 8, 1.0)) == pytest.approx(popular)
    # A single token's choices may all fall on one of four ranks: four times the mean, not more.
    assert float(tokens_on_busiest(256, 1, 1, 4, 9.0)) <= 4


def test_counts_of_a_simulation_agree() -> None:
    """Tokens choose 8 of 128 experts at random; 16 ranks of 8; the mean of the busiest counts."""
    random = np.random.default_rng(3)
    most = []
    for _ in range(300):
        chosen = np.argsort(random.random((20, 128)), axis=1)[:, :8]
        hit = np.zeros(128, bool)
        hit[chosen.ravel()] = True
        most.append(hit.reshape(16, 8).sum(axis=1).max())
    share = 1 - (1 - 8 / 128) ** 20
    assert float(experts_on_busiest(128, 128 * share, 16)) / 16 == pytest.approx(
        np.mean(most), rel=0.06
    )


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 5), st.integers(0, 3), st.floats(0, 1))
def test_between_the_mean_and_all(log_ranks: int, more: int, share: float) -> None:
    ranks = 2**log_ranks
    experts = ranks * 2**more
    found = float(experts_on_busiest(experts, share * experts, ranks))
    assert share * experts * (1 - 1e-9) <= found <= experts * (1 + 1e-9)


def test_a_step_waits_for_the_busiest_rank() -> None:
    """Expert parallelism is never faster than cutting every expert; the bound is the same."""
    batch = np.array([1.0, 2.0, 4.0, 64.0])
    whole, cut = (
        model_step(
            MIXTURE, machine(), Sharding(tp=4, ep=ep), MIXTURE.formats(), routing_spread=1.0
        ).at(batch, 100.0)
        for ep in (4, 1)
    )
    assert (whole.total_s >= cut.total_s * (1 - 1e-12)).all()
    assert whole.total_s[1] > cut.total_s[1]
    assert whole.roofline_s == pytest.approx(cut.roofline_s)
    assert whole.bytes == pytest.approx(cut.bytes)


def test_even_routing_has_no_busiest_rank() -> None:
    """Without an uneven choice of experts nothing is said of ranks either."""
    points = [
        model_step(MIXTURE, machine(), Sharding(tp=4, ep=ep), MIXTURE.formats()).at(8.0, 100.0)
        for ep in (4, 1)
    ]
    assert points[0].total_s == pytest.approx(points[1].total_s)
