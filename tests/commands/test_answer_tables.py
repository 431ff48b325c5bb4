"""Plans, recommendations, fleets and validations as printed, on a small model and typed rows."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from planner.cli import main
from planner.runs.rows import INPUTS
from planner.units import number, percent, scaled, seconds
from tests.compare.test_figures import CONFIG, gpu


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that holds every column, so that no cell is folded."""
    monkeypatch.setattr("planner.commands.output.WIDTH", 600)


@pytest.fixture
def model(tmp_path: Path) -> str:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(CONFIG))
    return str(file)


@pytest.fixture
def card(tmp_path: Path) -> str:
    file = tmp_path / "one.json"
    file.write_text(json.dumps(gpu()))
    return str(file)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    def printed(*words: str) -> str:
        main([*words])
        return capsys.readouterr().out

    return printed


def rows(text: str, first: str) -> list[list[str]]:
    """The table whose head begins with a word, the head first."""
    cells = [[c.strip() for c in line.split("  ") if c.strip()] for line in text.splitlines()]
    at = next(i for i, line in enumerate(cells) if line and line[0] == first)
    table = []
    for line in cells[at:]:
        if len(line) < 2:
            break
        table.append(line)
    return table


def test_points_of_a_plan(run: Any, model: str, card: str) -> None:
    words = ["plan", model, "--gpu", card, "--batch", "1,8", "--context", "1000"]
    points = json.loads(run(*words, "--json"))["points"]
    text = run(*words)
    assert "at 1,000 tokens of context" in text
    head, *lines = rows(text, "batch")
    for point, line in zip(points, lines, strict=False):
        cells = dict(zip(head, line, strict=True))
        assert cells["batch"] == str(point["batch"])
        assert cells["FLOP/B"] == number(point["arithmetic_intensity"])
        assert cells["TPOT"] == seconds(point["tpot_s"]["p50"])
        assert cells["tok/s"] == scaled(point["tokens_per_s"], "")
        assert cells["MBU"] == percent(point["mbu"])
        assert cells["bound"] == point["bound"]


def test_contexts_of_a_plan_have_a_column(run: Any, model: str, card: str) -> None:
    text = run("plan", model, "--gpu", card, "--batch", "1", "--context", "1k,2k")
    head, *lines = rows(text, "batch")
    assert head[1] == "context"
    assert [line[1] for line in lines[:2]] == ["1,024", "2,048"]


def test_a_batch_beyond_memory_has_no_rate(run: Any, model: str, card: str) -> None:
    text = run("plan", model, "--gpu", card, "--batch", "1,100k", "--context", "8000")
    assert text.startswith("This load") or "does not fit" in text
    (line,) = [line for line in text.splitlines() if line.startswith("102,400")]
    assert "does not fit" in line
    assert "–" in line


def test_serving_of_a_plan(run: Any, model: str, card: str) -> None:
    words = ["plan", model, "--gpu", card, "--concurrency", "8", "--isl", "1000", "--osl", "200"]
    serving = json.loads(run(*words, "--json"))["serving"]
    lines = {line[0]: line for line in rows(run(*words), "serving")}
    assert lines["clients"][1:] == ["8", "1000 in, 200 out"]
    assert lines["TTFT"][1] == seconds(serving["ttft_s"]["p50"])
    assert lines["output"][1] == scaled(serving["output_tokens_per_s"], "tok/s")
    ends = serving["requests_per_s_interval"]
    assert lines["requests"][1:] == [
        number(ends["p50"]),
        f"{number(ends['p10'])} – {number(ends['p90'])} per second",
    ]


def test_many_points_are_cut_with_a_word(run: Any, model: str, card: str) -> None:
    batches = ",".join(str(n) for n in range(1, 51))
    text = run("plan", model, "--gpu", card, "--batch", batches, "--context", "1000")
    assert "… and 10 more points (--json gives all)" in text


def test_batches_to_run(run: Any, model: str, card: str) -> None:
    words = ["recommend", model, "--gpu", card, "--context", "1000", "--tp", "1"]
    (choice,) = json.loads(run(*words, "--json"))["choices"]
    text = run(*words)
    assert text.startswith(f"Best per GPU: batch {choice['batch']} on 1× one, bound by ")
    head, line, *_ = rows(text, "gpu")
    cells = dict(zip(head, line, strict=True))
    assert cells["batch"] == f"{choice['batch']:,}"
    assert cells["free"] == percent(choice["headroom"])
    assert cells["stops"] == choice["binds"]
    assert cells["$/Mtok"] == "–"  # no price of a machine of one's own


def test_what_cannot_run_is_told_with_its_reason(run: Any, model: str, tmp_path: Path) -> None:
    names = []
    for name in ("a", "b"):
        file = tmp_path / f"{name}.json"
        small = {**gpu(name=name), "memory_bytes": 1e8, "link": None}
        file.write_text(json.dumps(small))
        names += ["--gpu", str(file)]
    text = run("recommend", model, *names, "--context", "1000")
    assert text.startswith("None of these accelerators can run this.")
    assert [line[0] for line in rows(text, "cannot")[1:3]] == ["a", "b"]


def test_a_workload_that_is_sized(run: Any, model: str, card: str) -> None:
    words = ["recommend", model, "--gpu", card, "--isl", "1000", "--osl", "200", "--users", "50"]
    words += ["--tp", "1", "--pp", "1", "--kv", "bf16", "--engine", "vllm", "--no-confirm"]
    words += ["--disaggregated", "off", "--usd-per-gpu-hour", "2"]
    sized = json.loads(run(*words, "--json"))["sized"]
    (option,) = sized["options"]
    assert option["money"]["usd_per_month"] == pytest.approx(2 * 730 * option["gpus"])
    text = run(*words)
    assert text.startswith(f"{option['summary']} on one under vllm; ")
    head, line = rows(text, "gpu")[:2]
    assert (
        dict(zip(head, line, strict=True))["$/month"] == f"{option['money']['usd_per_month']:,.0f}"
    )


def test_a_day_of_a_fleet(run: Any, model: str, card: str) -> None:
    words = ["fleet", model, "--pool", f"{card}:usd-per-gpu-hour=2:name=small", "--rates", "1,40,2"]
    words += ["--isl", "1000", "--osl", "200", "--growth-per-month", "0.5", "--months", "1"]
    answer = json.loads(run(*words, "--json"))
    text = run(*words)
    auto = answer["lines"][1]
    assert text.startswith(
        f"{auto['gpus_mean']:.1f} GPUs on average and {auto['gpus_peak']:.0f} at the peak, for "
        f"{answer['requests']:,.0f} requests"
    )
    lines = {line[0]: line for line in rows(text, "scaling")[1:]}
    for one in answer["lines"]:
        assert lines[one["name"]][1] == f"{one['gpus_mean']:.2f}"
        assert lines[one["name"]][4] == f"{one['usd_per_month']:,.0f}"
        assert lines[one["name"]][6] == f"{one['windows_short']} windows"
    (pool,) = [line for line in rows(text, "pool")[1:] if line[0] == "small"]
    assert pool[1] == f"{answer['pools'][0]['requests']:,.0f}"
    months = rows(text, "month")[1:3]
    peaks = [one["requests_per_s_peak"] for one in answer["months"]]
    assert [line[1] for line in months] == [number(peak) for peak in peaks]
    assert peaks[1] == pytest.approx(1.5 * peaks[0])


def decode_rows(tmp_path: Path) -> Path:
    """Two runs at half and twice the time that is predicted, and one of no known model."""
    known = {"gpu": "h100-sxm5", "engine": "vllm", "tp": "1", "n_gpus": "1", "batch": "8"}
    known |= {"weight_format": "bf16", "isl": "1000", "osl": "200", "metric": "tpot_ms"}
    names = [*INPUTS["decode"], "value"]
    file = tmp_path / "rows.csv"
    with file.open("w", newline="") as text:
        writer = csv.DictWriter(text, names, restval="")
        writer.writeheader()
        for number_, (one, value) in enumerate(
            (("Qwen/Qwen2.5-7B-Instruct", 5.0), ("Qwen/Qwen2.5-7B-Instruct", 20.0), ("none/x", 1.0))
        ):
            writer.writerow({**known, "row": str(number_), "model": one, "value": value})
    return file


def test_rows_are_validated_and_the_refused_named(run: Any, tmp_path: Path) -> None:
    file, out = decode_rows(tmp_path), tmp_path / "out.csv"
    text = run("validate", str(file), "--predictions", str(out))
    assert text.startswith("3 decode rows, 2 answered\nrefused 2: model: unknown model 'none/x'")
    written = list(csv.DictReader(io.StringIO(out.read_text())))
    assert [row["row"] for row in written] == ["0", "1", "2"]
    first = float(written[0]["value"])
    assert written[1]["value"] == written[0]["value"]
    assert written[2]["value"] == ""
    assert "unknown model" in written[2]["note"]
    head, *lines = rows(text, "rows")
    everything = dict(zip(head, lines[0], strict=False))
    errors = sorted(abs(first / value - 1) for value in (5.0, 20.0))
    assert everything["n"] == "2"
    assert everything["mean"] == f"{sum(errors) / 2:.1%}"
    answer = json.loads(run("validate", str(file), "--json"))
    assert (answer["rows"], answer["answered"]) == (3, 2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--predictions", "x.csv"], "predictions: of no rows; accepted: --predictions with"),
        (["ROWS", "--report", "x.md"], "report: not of ROWS_CSV; accepted: --report without"),
    ],
)
def test_options_of_a_validation_that_would_do_nothing(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(decode_rows(tmp_path))
    with pytest.raises(SystemExit) as ended:
        main(["validate", *(file if word == "ROWS" else word for word in words)])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
