"""The calibration file: small, complete, and what it says is physical."""

from __future__ import annotations

import json
import math
import time
from importlib.resources import files

import numpy as np
import pytest

from planner import Scenario, plan
from planner.calibration import Parameter, Subject, shipped
from planner.calibration.intervals import NEARNESS
from planner.calibration.subject import accelerator_tags, format_class, generation, memory_class
from planner.calibration.table import EDITION, from_json
from planner.deployment import Options, deploy
from planner.fitting.committed import committed_priors
from planner.hw import get_accelerator
from planner.models import get_model
from planner.step.parallel import Sharding

TEXT = files("planner.calibration").joinpath(f"data/calibration-{EDITION}.json").read_text("utf-8")


def test_the_file_is_small_and_loads_quickly() -> None:
    assert len(TEXT) < 300_000
    best = math.inf
    for _ in range(5):
        start = time.perf_counter()
        from_json(json.loads(TEXT))
        best = min(best, time.perf_counter() - start)
    assert best < 0.02


def test_every_kind_of_the_priors_has_a_value() -> None:
    found = json.loads(TEXT)["parameters"]
    for name, prior in committed_priors()["parameters"].items():
        assert set(found[name]["values"]) == set(prior["values"])
        assert [tuple(level) for level in found[name]["levels"]] == [
            tuple(level) for level, _ in prior["levels"]
        ]


def test_levels_multiply_and_unknown_tags_do_nothing() -> None:
    parameter = Parameter(
        levels=(("kind", "engine"), ("kind", "format")),
        values={"gemm": 0.8},
        factors=({"gemm|vllm": 1.1}, {"gemm|fp8": 0.9}),
    )
    assert parameter.of(Subject({"engine": "vllm"}), "gemm", "fp8") == pytest.approx(0.792)
    assert parameter.of(Subject({"engine": "new"}), "gemm", "bf16") == pytest.approx(0.8)
    assert parameter.of(Subject({}), "gemm") == pytest.approx(0.8)
    assert parameter.of(Subject({}), "unknown") is None


def test_names_for_calibration() -> None:
    assert generation("Blackwell Ultra") == "blackwell"
    assert memory_class("HBM3e") == "hbm"
    assert memory_class("LPDDR5X unified") == "lpddr"
    assert memory_class("DDR5-4800 x12") == memory_class(None) == "ddr"
    assert format_class("q4_k_m") == format_class("4.64bit") == "block5"
    assert format_class("fp16") == "bf16"
    assert format_class("") == ""


MODELS = (
    "meta-llama/Llama-3.1-8B-Instruct",
    "deepseek-ai/DeepSeek-R1",
    "openai/gpt-oss-120b",
    "Qwen/Qwen3.5-397B-A17B",
)
GPUS = ("h100-sxm5", "b200-sxm", "mi300x", "rtx-4090", "m3-max", "gaudi3")


@pytest.mark.parametrize(
    ("gpu", "engine"),
    [
        *((gpu, engine) for gpu in GPUS for engine in (None, "vllm")),
        ("b200-sxm", "trtllm"),
        ("m3-max", "llama.cpp"),
    ],
)
@pytest.mark.parametrize("model", MODELS)
def test_no_prediction_beats_the_roofline(gpu: str, model: str, engine: str | None) -> None:
    one = deploy(get_model(model), get_accelerator(gpu), Sharding(), Options(engine=engine))
    batch, context = np.array([1.0, 16, 256, 4096]), np.array([128.0, 8192, 1024, 512])
    points = one.step.at(batch, context)
    assert (points.total_s >= points.roofline_s).all()
    share = np.concatenate([one.step.efficiency.memory, one.step.efficiency.compute])
    assert ((share > 0) & (share <= 1)).all()


def test_every_case_has_an_interval_and_says_how_near_it_is() -> None:
    def asked(model: str, gpu: str) -> tuple[str, float]:
        found = plan(Scenario(model=model, gpu=gpu, tp=8, batch=32, context=2048, engine="vllm"))
        note = next(n.text for n in found.notes if n.code == "nearness")
        spread = found.points[0].tpot_s
        assert spread.p10 < spread.p50 < spread.p90
        near = note.rpartition(": ")[2].partition(",")[0]
        return near, spread.p90 / spread.p10

    measured = asked("meta-llama/Llama-3.1-70B-Instruct", "h200-sxm")
    gpu_only = asked("Qwen/Qwen3-235B-A22B", "h200-sxm")
    family = asked("meta-llama/Llama-3.1-70B-Instruct", "b300-sxm")
    datasheet = asked("meta-llama/Llama-3.1-70B-Instruct", "mi355x")
    assert [case[0] for case in (measured, gpu_only, family, datasheet)] == list(NEARNESS)
    # No set-up of a user's own is surer than a source left out.
    assert measured[1] <= gpu_only[1] * (1 + 1e-9)
    assert gpu_only[1] <= datasheet[1] * 1.05


OWN = {
    "id": "h100-sxm5",
    "bandwidth_bytes_per_s": 1e12,
    "memory_bytes": 96e9,
    "source": "a test",
    "peaks_flops_per_s": {"bf16": 1e14, "fp8": 2e14},
}


def test_an_own_accelerator_is_not_the_part_whose_id_it_takes() -> None:
    def tpot(**gpu: object) -> float:
        one = {"model": "meta-llama/Llama-3.1-8B-Instruct", "engine": "vllm"}
        return plan(Scenario(**one, gpu=gpu, batch=[1], context=[100])).points[0].tpot_s.p50

    assert tpot(**OWN) == tpot(**OWN | {"id": "mine"})
    of_hopper = OWN | {"architecture": "Hopper", "vendor": "NVIDIA", "memory_type": "HBM3"}
    assert tpot(**of_hopper) == tpot(**of_hopper | {"id": "mine"})


def test_a_variant_of_a_part_keeps_what_was_measured_on_it() -> None:
    changed = {"base": "h100-sxm5", "memory_bytes": 96e9, "source": "a test"}
    ours, other = get_accelerator(changed), get_accelerator({**changed, "id": "mine"})
    assert accelerator_tags(ours) == accelerator_tags(get_accelerator("h100-sxm5"))
    assert accelerator_tags(other) == {**accelerator_tags(ours), "gpu": ""}


def test_modes_of_engines() -> None:
    intervals = shipped().intervals
    assert intervals.mode(Subject({"engine": "llama.cpp"})) == "bench"
    assert intervals.mode(Subject({"engine": "vllm"})) == "serving"
    assert intervals.mode(Subject({"engine": ""})) == "serving"
