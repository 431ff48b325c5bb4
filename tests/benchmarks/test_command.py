"""`planner calibrate --add`: what it reads, keeps, prints and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from planner.benchmarks import MissingContext
from planner.calibration.own import FILE
from planner.commands.calibrate import command
from planner.precision import UnknownFormat

SAMPLES = Path(__file__).with_name("samples")


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PLANNER_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


def add(*arguments: str) -> str:
    return CliRunner().invoke(command, arguments, catch_exceptions=False).output


def test_two_files_are_one_refit(directory: Path) -> None:
    files = [str(SAMPLES / name) for name in ("vllm_append.jsonl", "sglang_bench_serving.jsonl")]
    said = json.loads(
        add("--add", files[0], "--add", files[1], "--gpu", "h100-sxm5", "--tp", "1", "--json")
    )
    assert [one["format"] for one in said["read"]] == ["vLLM bench serve", "SGLang bench_serving"]
    assert [one["rows"] for one in said["read"]] == [3, 3]
    assert said["rows"] == 6
    assert set(said["before"]) == set(said["after"]) == {"tpot_ms", "ttft_ms"}
    assert {key.split("|")[2] for key in said["factors"]} == {"vllm", "sglang"}
    assert [path.name for path in directory.iterdir()] == [FILE]


def test_printed_before_and_after() -> None:
    out = add("--add", str(SAMPLES / "llama_bench.json"), "--model", "Llama-3.1-8B-Instruct")
    assert "llama_bench.json: 2 runs of llama-bench" in out
    assert "tests of prompts, alone or with generation, are left out" in out
    assert "shipped" in out
    assert "refitted" in out


def test_forget(directory: Path) -> None:
    add("--add", str(SAMPLES / "llama_bench.json"), "--model", "Llama-3.1-8B-Instruct")
    assert "removed" in add("--forget")
    assert "no local calibration" in add("--forget")
    assert not list(directory.iterdir())


def test_what_is_missing_is_asked_for(directory: Path) -> None:
    with pytest.raises(MissingContext, match="give --gpu"):
        add("--add", str(SAMPLES / "vllm_bench_serve.json"))
    assert not directory.exists()


@pytest.mark.parametrize(
    ("option", "value"), [("model", "x"), ("weights", "fp8"), ("tp", "2"), ("engine-version", "1")]
)
@pytest.mark.parametrize("more", [(), ("--forget",)])
def test_a_context_without_results_is_refused(
    option: str, value: str, more: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("planner.commands.calibrate._fit", lambda _: pytest.fail("a full fit"))
    found = CliRunner().invoke(command, (f"--{option}", value, *more))
    assert found.exit_code == 2
    assert f"{option.replace('-', '_')}: says what results ran" in found.output


def test_an_unknown_weight_format_is_refused(directory: Path) -> None:
    arguments = ("--add", str(SAMPLES / "vllm_bench_serve.json"), "--gpu", "h100-sxm5", "--tp", "1")
    with pytest.raises(UnknownFormat, match=r"^weights: unknown format 'foo'; accepted: .*fp8"):
        add(*arguments, "--weights", "foo")
    assert not directory.exists()
    assert "before" in add(*arguments, "--weights", "fp8", "--json")
