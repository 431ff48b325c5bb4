"""The prediction that docs/physics.md works by hand is the one that `plan` makes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from planner import Scenario, plan
from planner.deployment import deployment_of
from planner.serving.prompts import PromptLoad
from planner.serving.steady import Queueing, serve

DOCUMENT = Path(__file__).parents[2].joinpath("docs/physics.md").read_text("utf-8")
TEXT = " ".join(DOCUMENT.partition("## One prediction by hand")[2].partition("\n## ")[0].split())
ASKED = Scenario(
    model="meta-llama/Llama-3.1-8B-Instruct",
    gpu="h100-sxm5",
    engine="vllm",
    concurrency=16,
    isl=1024,
    osl=256,
)


def stated(pattern: str) -> list[float]:
    """Numbers of the document where a pattern matches."""
    match = re.search(pattern, TEXT)
    assert match, pattern
    return [float(number.replace(",", "")) for number in match.groups()]


def test_the_answer() -> None:
    served = plan(ASKED).serving
    assert served is not None
    tpot, ttft = stated(r"answers ([\d.]+) ms and ([\d.]+) ms")
    assert served.tpot_s.p50 * 1e3 == pytest.approx(tpot, abs=0.05)
    assert served.ttft_s.p50 * 1e3 == pytest.approx(ttft, abs=0.5)
    low, high = stated(r"so that TPOT is ([\d.]+) to ([\d.]+) ms")
    assert served.tpot_s.p10 * 1e3 == pytest.approx(low, abs=0.06)
    assert served.tpot_s.p90 * 1e3 == pytest.approx(high, abs=0.06)


def test_the_step_and_each_of_its_lines() -> None:
    one = deployment_of(ASKED)
    (batch,) = stated(r"B is ([\d.]+) in the end")
    points = one.step.at(batch, 1024.0 + 128.0)
    total, scale, decode = stated(
        r"The sum, ([\d.]+) µs, times the scale of decode ([\d.]+) is "
        r"t_decode = ([\d.]+) ms"
    )
    assert float(points.total_s) * 1e3 == pytest.approx(decode, abs=1e-3)
    assert one.step.efficiency.scale == pytest.approx(scale, abs=1e-4)
    assert total * scale / 1e3 == pytest.approx(decode, abs=1e-3)
    lines = re.findall(r"\| ([\d.]+) \|(?= \||$| The sum)", TEXT)
    assert sum(map(float, lines)) == pytest.approx(total, abs=0.5)


def test_the_ride_and_the_loop() -> None:
    one = deployment_of(ASKED)
    state = serve(one, 16, 1024, 256)
    load = PromptLoad(one, np.array(1024.0), 0.0, np.array(1024.0))
    prompts = load.at(np.asarray(state.running), np.array(256.0))
    (ride,) = stated(r"= ([\d.]+) ms, t_prompt")
    (each,) = stated(r"([\d.]+) ms each")
    assert float(prompts.held_s) * 1e3 == pytest.approx(ride, abs=2e-3)
    assert float(prompts.bunched_s) * 1e3 == pytest.approx(each, abs=2e-3)
    (tpot,) = stated(r"\* TPOT = [^=]* = ([\d.]+) ms")
    assert float(state.tpot_s) * 1e3 == pytest.approx(tpot, abs=2e-3)
    parts = stated(
        r"TTFT = ([\d.]+) \(first.* \+ ([\d.]+) \(itself\) .* = ([\d.]+) \(prompts that stand .* = "
        r"([\d.]+) \(steps it waits .* = ([\d.]+) \(the rest of a prompt\)"
    )
    (ttft,) = stated(r"\(the rest of a prompt\) = ([\d.]+) ms")
    assert sum(parts) == pytest.approx(ttft, abs=0.1)
    assert float(state.ttft_s) * 1e3 == pytest.approx(ttft, abs=0.1)
    queueing = Queueing.of(one)
    assert queueing.first_s * 1e3 == pytest.approx(parts[0], abs=0.01)
    assert stated(r"burst = ([\d.]+)\.") == pytest.approx([queueing.burst], abs=1e-5)
