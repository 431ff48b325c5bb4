"""Distributions of lengths by their moments, and prefill apart from decode."""

from __future__ import annotations

import numpy as np
import pytest

from planner.disaggregation import disaggregate
from planner.hw import get_accelerator
from planner.lengths import InvalidLengths, Lengths
from planner.models import get_model
from planner.resolve import Deployment, deploy
from planner.serving import serve


def deployment(tp: int = 4) -> Deployment:
    return deploy(get_model("meta-llama/Llama-3.1-70B-Instruct"), get_accelerator("h200-sxm"),
                  (tp, 1, 1, 1), ("fp8", None, "vllm", None))  # fmt: skip


def test_moments() -> None:
    assert Lengths.fixed(100).of_a_step == 100
    assert Lengths.lognormal(100, 1).of_a_step == pytest.approx(200)
    assert Lengths.uniform(0, 120).of_a_step == pytest.approx(80)
    assert Lengths.histogram({100: 3, 200: 1}).mean == pytest.approx(125)
    trace = Lengths.trace([100, 100, 100, 200])
    assert trace == Lengths.histogram({100: 3, 200: 1})


def test_a_trace_agrees_with_the_distribution_it_was_drawn_from() -> None:
    drawn = np.random.default_rng(0).lognormal(6, 0.8, 200_000)
    found, wanted = (
        Lengths.trace(drawn),
        Lengths.lognormal(drawn.mean(), drawn.std() / drawn.mean()),
    )
    assert found.of_a_step == pytest.approx(wanted.of_a_step, rel=1e-6)


@pytest.mark.parametrize("bad", [lambda: Lengths.fixed(0), lambda: Lengths.trace([]),
                                 lambda: Lengths.histogram({}), lambda: Lengths.fixed(np.nan),
                                 lambda: Lengths.histogram({10: -1})])  # fmt: skip
def test_refuses_what_is_no_distribution(bad) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidLengths, match="lengths: "):
        bad()


def test_fixed_lengths_are_the_plain_question() -> None:
    plain = serve(deployment(), 32, 4096, 512)
    fixed = serve(deployment(), 32, Lengths.fixed(4096), Lengths.fixed(512))
    assert float(fixed.tpot_s) == pytest.approx(float(plain.tpot_s))
    assert float(fixed.ttft_s) == pytest.approx(float(plain.ttft_s))


def test_spread_costs() -> None:
    fixed = serve(deployment(), 32, 4096, 2048)
    spread = serve(deployment(), 32, Lengths.lognormal(4096, 1), Lengths.lognormal(2048, 1))
    assert spread.decode_s > fixed.decode_s
    assert spread.prompts.own_s > fixed.prompts.own_s


def test_disaggregation_balances_its_rates() -> None:
    one = deployment()
    found = disaggregate(one, one, 64, 8192, 1024, busy=0.5)
    assert found.tpot_s == pytest.approx(float(one.time_s(64.0, 8192 + 512)))
    assert found.requests_per_s == pytest.approx(64 / (1024 * found.tpot_s))
    together = serve(one, 64, 8192, 1024)
    assert found.tpot_s < together.tpot_s
    # Twice as busy a prefill replica serves twice the requests.
    busier = disaggregate(one, one, 64, 8192, 1024, busy=0.999999)
    assert found.prefill_per_decode == pytest.approx(2 * busier.prefill_per_decode, rel=1e-4)
    prompt_s = float(together.prompts.own_s)
    assert busier.prefill_per_decode == pytest.approx(found.requests_per_s * prompt_s, rel=1e-3)


def test_cache_transfer_by_hand() -> None:
    one = deployment()
    found = disaggregate(one, one, 8, 8192, 256, transfer_bytes_per_s=50e9)
    # 80 layers × 8 heads × 2 × 128 values of 16 bits a token (Llama-3.1-70B config.json).
    assert found.transfer_s == pytest.approx(8192 * 327_680 / 50e9)
    with pytest.raises(ValueError, match="busy"):
        disaggregate(one, one, 8, 8192, 256, busy=1.0)
