"""The local refit: it follows measurements as far as there are any, and touches nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from planner.benchmarks import Context, read_measurements
from planner.calibration import shipped
from planner.calibration.own import FILE, LEVELS, BrokenLocal, applied, load_own, with_own
from planner.fitting import kept
from planner.fitting.own import errors, refit
from planner.fitting.own_rows import OwnRows
from planner.runs.predict import predict
from planner.runs.rows import INPUTS, Row
from planner.runs.setup import setup

SAMPLES = Path(__file__).with_name("samples")


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PLANNER_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


def question(
    number: int, model: str = "Qwen/Qwen3-8B", gpu: str = "h100-sxm5", **inputs: str
) -> Row:
    """A serving run that has not been measured."""
    asked = {
        "row": str(number),
        "model": model,
        "gpu": gpu,
        "engine": "vllm",
        "tp": "1",
        "engine_version": "0.19.0",
        "weight_format": "bf16",
        "isl": "1024",
        "osl": "512",
        "concurrency": str(2**number),
        "gpus": "1",
        "pp": "1",
        "attention_dp": "1",
    }
    return Row("serving", dict.fromkeys(INPUTS["serving"], "") | asked | inputs, {}, {})


def measured(rows: list[Row], decode: float, prompt: float, start: float = 1.0) -> list[Row]:
    """Runs of which steps, prompts and starts take so many times as long as is shipped."""
    kinds = {"decode": decode, "prompt": prompt, "start": start}
    factors = ({f"{kind}|h100-sxm5|vllm": value for kind, value in kinds.items()}, {}, {}, {})
    return [
        replace(row, measured={name: prediction.values[name] for name in ("ttft_ms", "tpot_ms")})
        for row, prediction in zip(rows, predict(rows, applied(shipped(), factors)), strict=True)
    ]


def product(factors: tuple[dict[str, float], ...], phase: str) -> float:
    """All levels' factor of Qwen3-8B in bf16 on an H100 under vLLM."""
    own = ("", "|medium", "|bf16", "|qwen3 8.2B")
    keys = [f"h100-sxm5|vllm{end}" for end in own]
    return float(np.prod([f.get(f"{phase}|{k}", 1.0) for f, k in zip(factors, keys, strict=True)]))


def test_rows_that_agree_with_the_shipped_calibration_change_nothing() -> None:
    found = refit(measured([question(n) for n in range(6)], 1.0, 1.0), shipped())
    assert found.before["tpot_ms"] < 1e-6
    for level in found.factors:
        assert all(value == pytest.approx(1, abs=1e-3) for value in level.values())


def test_many_rows_are_followed() -> None:
    rows = measured([question(n, osl=o) for n in range(7) for o in ("256", "512")], 1.3, 1.5)
    found = refit(rows, shipped())
    assert product(found.factors, "decode") == pytest.approx(1.3, rel=0.02)
    assert found.before["tpot_ms"] == pytest.approx(0.25, abs=0.05)
    assert found.after["tpot_ms"] < 0.02
    assert found.left_out["tpot_ms"] < 0.03


def test_first_tokens_have_a_factor_of_their_own() -> None:
    rows = measured([question(n, osl=o) for n in range(7) for o in ("256", "512")], 1.0, 1.0, 2.0)
    found = refit(rows, shipped())
    assert found.before["ttft_ms"] == pytest.approx(0.5, abs=0.02)
    assert found.after["ttft_ms"] < 0.15
    assert found.after["tpot_ms"] < 0.02
    assert 1.5 < product(found.factors, "start") < 2.05


def test_one_row_moves_a_part_of_the_way() -> None:
    found = refit(measured([question(3)], 1.5, 1.0), shipped())
    assert 1.2 < product(found.factors, "decode") < 1.48
    assert found.after["tpot_ms"] < found.before["tpot_ms"]
    assert found.left_out == {}


def test_a_lone_outlier_does_not_take_the_rest_along() -> None:
    rows = measured([question(n) for n in range(8)], 1.0, 1.0)
    rows[2] = replace(rows[2], measured={k: 3 * v for k, v in rows[2].measured.items()})
    assert product(refit(rows, shipped()).factors, "decode") < 1.1


def test_other_machines_and_engines_are_left_alone() -> None:
    found = refit(measured([question(n) for n in range(6)], 1.4, 1.4), shipped())
    elsewhere = [
        question(3, gpu="h200-sxm"),
        question(3, engine="sglang"),
        question(3, engine="trtllm"),
    ]
    before = predict(elsewhere, shipped())
    refitted = predict(elsewhere, applied(shipped(), found.factors))
    assert [one.values for one in refitted] == [one.values for one in before]
    here = [question(3, model="meta-llama/Llama-3.1-8B-Instruct")]
    ratio = (
        predict(here, applied(shipped(), found.factors))[0].values["tpot_ms"]
        / predict(here, shipped())[0].values["tpot_ms"]
    )
    assert 1.1 < ratio < 1.4  # another model on the measured machine: most of the way


def test_decode_rows_move_no_prompt() -> None:
    context = Context(model="meta-llama/Llama-3.1-8B-Instruct", gpu="rtx-4090", weights="q4_k_m")
    rows = read_measurements(SAMPLES / "llama_batched_bench.jsonl", context).rows
    found = refit(rows, shipped())
    assert not [key for level in found.factors for key in level if key.startswith("prompt")]
    assert [key for level in found.factors for key in level if key.startswith("decode|rtx-4090")]


def test_rows_that_cannot_be_predicted_are_noted_and_nothing_else_refused() -> None:
    rows = measured([question(n) for n in range(3)], 1.2, 1.0)
    strange = replace(
        question(9), inputs={**question(9).inputs, "model": "no/such"}, measured={"tpot_ms": 1.0}
    )
    found = refit([*rows, strange], shipped())
    assert found.rows == 3
    assert "no/such" in found.notes[0]
    with pytest.raises(ValueError, match="no row can be predicted"):
        refit([strange], shipped())


def test_the_shipped_calibration_is_not_changed() -> None:
    before = shipped()
    levels = before.parameters["scale"].levels
    refit(measured([question(n) for n in range(3)], 1.2, 1.0), before)
    assert before.parameters["scale"].levels == levels
    assert len(applied(before, ({}, {}, {}, {})).parameters["scale"].levels) == len(levels) + len(
        LEVELS
    )


def test_kept_rows_add_up_and_count_once(directory: Path) -> None:
    rows = measured([question(n) for n in range(5)], 1.25, 1.0)
    assert load_own() is None
    kept.add(rows[:2], shipped())
    found = kept.add(rows, shipped())
    assert found.rows == 5
    own = load_own()
    assert own is not None
    assert own.factors == found.factors
    assert [row.inputs for row in kept.kept_rows()] == [row.inputs for row in rows]
    assert [path.name for path in directory.iterdir()] == [FILE]
    assert with_own(shipped()).edition == f"{shipped().edition}+local"
    refitted = errors(rows, with_own(shipped()))
    assert refitted == pytest.approx(found.after)
    assert kept.forget()
    assert not kept.forget()
    assert with_own(shipped()) is shipped()


def test_factors_of_another_edition_are_not_applied(directory: Path) -> None:
    kept.add(measured([question(2)], 1.5, 1.0), shipped())
    path = directory / FILE
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {"edition": "2025-01-01"}))
    assert with_own(shipped()) is shipped()


@pytest.mark.parametrize("text", ["", "[]", '{"edition": "x"}', '{"factors": 1', "null"])
def test_a_broken_file_says_what_to_do(directory: Path, text: str) -> None:
    directory.mkdir(parents=True)
    (directory / FILE).write_text(text)
    with pytest.raises(BrokenLocal, match="--forget"):
        load_own()


MODELS = ("Qwen/Qwen3-8B", "Qwen/Qwen3-14B", "Qwen/Qwen3-32B", "meta-llama/Llama-3.1-8B-Instruct")


def test_scaled_rows_are_predicted_as_by_the_calibration_with_the_same_factors() -> None:
    rows = measured([question(n, model) for n in range(5) for model in MODELS], 1.0, 1.0)
    deployments = [setup(row).deployment for row in rows]
    own = OwnRows(rows, deployments, shipped())
    theta = 0.1 * np.sin(np.arange(len(own.unknowns)))
    factors: tuple[dict[str, float], ...] = tuple({} for _ in LEVELS)
    for (level, key), value in zip(own.unknowns, theta, strict=True):
        factors[level][key] = float(np.exp(value))
    by_calibration = [
        prediction.values[name]
        for row, prediction in zip(rows, predict(rows, applied(shipped(), factors)), strict=True)
        for name in row.measured
    ]
    assert own.predict(theta[None])[0] == pytest.approx(by_calibration, rel=1e-6)
    logs, slopes = own.slopes(theta[None])
    moved = own.predict(theta + 0.02 * np.eye(len(theta)))
    assert (np.log(moved) - logs) / 0.02 == pytest.approx(slopes[0].T, abs=0.02)


def test_five_hundred_rows_are_followed() -> None:
    rows = [
        question(4, model, isl=str(isl), osl=str(osl), concurrency=str(clients))
        for model in MODELS
        for isl in (256, 1024, 2048, 4096, 8192)
        for osl in (64, 128, 256, 512, 1024)
        for clients in (1, 4, 16, 64, 256)
    ]
    fit = refit(measured(rows, 1.2, 1.1), shipped())
    assert fit.rows == 500
    assert fit.after["tpot_ms"] < 0.01
    assert fit.left_out["tpot_ms"] < 0.01
    assert {(one.gpu, one.engine) for one in fit.groups} == {("h100-sxm5", "vllm")}
