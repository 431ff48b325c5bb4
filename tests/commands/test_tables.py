"""What commands print is what they answer in JSON: each cell worked from the figure beside it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from planner.cli import main
from planner.units import count, number, scaled, seconds
from tests.compare.test_figures import CONFIG, gpu

MODEL = "meta-llama/Llama-3.1-8B-Instruct"


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that holds every column, so that no cell is folded."""
    monkeypatch.setattr("planner.commands.output.WIDTH", 600)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    def printed(*words: str) -> str:
        main([*words])
        return capsys.readouterr().out

    return printed


def refused(*words: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*words])
    assert ended.value.code == 2


def cells(text: str) -> list[list[str]]:
    return [[c.strip() for c in line.split("  ") if c.strip()] for line in text.splitlines()]


def test_engines_are_listed_with_what_was_measured(run: Any) -> None:
    facts = {one["id"]: one for one in json.loads(run("engines", "list", "--json"))}
    rows = {row[0]: row for row in cells(run("engines", "list"))[1:]}
    assert set(rows) == set(facts)
    for name, one in facts.items():
        assert rows[name][1] == one["name"]
        assert rows[name][2] == (", ".join(one["measured"]) or "never")
        assert rows[name][-1] == ", ".join(one["backends"])


def test_an_engine_is_shown_with_the_source_of_each_figure(run: Any) -> None:
    facts = json.loads(run("engines", "show", "vllm", "--gpu", "h100-sxm5", "--json"))
    text = run("engines", "show", "vllm", "--gpu", "h100-sxm5")
    assert text.splitlines()[0] == f"{facts['name']} {facts['release']}"
    rows = {row[0]: row for row in cells(text)[2:]}
    for figure in facts["figures"]:
        assert figure["source"]
        assert rows[figure["name"]][-1] == " ".join(figure["source"].split())
    shown = {f["name"]: rows[f["name"]][1] for f in facts["figures"]}
    by_value = {f["name"]: f["value"] for f in facts["figures"]}
    for name, value in by_value.items():
        if isinstance(value, bool):
            assert shown[name] == ("yes" if value else "no")


def test_kernels_of_a_model_sum_over_its_layers(run: Any) -> None:
    words = ["kernels", MODEL, "--gpu", "h100-sxm5", "--batch", "16", "--context", "4k"]
    answer = json.loads(run(*words, "--json"))
    assert (answer["batch"], answer["context"]) == (16, 4096)
    rows = cells(run(*words))
    (total,) = [row for row in rows if row and row[0] == "sum"]
    flops, moved, time_s = (
        sum(k[name] * k["layers"] for k in answer["kernels"])
        for name in ("flops", "bytes", "time_s")
    )
    figures = [scaled(flops, ""), scaled(moved, "B"), number(flops / moved), seconds(time_s)]
    assert total[1:] == figures
    for kernel in answer["kernels"]:
        name, flops = f"{kernel['layers']}× {kernel['name']}", scaled(kernel["flops"], "")
        (row,) = [r for r in rows if r and r[0] == name and r[2] == flops][:1]
        assert row[4] == number(kernel["arithmetic_intensity"])
        assert row[6] == kernel["bound"]


@pytest.mark.parametrize(
    ("words", "verdict"),
    [
        # 2·4096³ FLOPs over 3·2·4096² bytes are 1365 a byte, beyond the ridge of 295.
        (["--gemm", "4096,4096,4096"], "gemm, ideal: 1365 FLOP/byte, the ridge is 295"),
        (["--gemm", "4k,4k,4k"], "gemm, ideal: 1365 FLOP/byte, the ridge is 295"),
        # One FLOP for six bytes, however the count is written.
        (["--add", "1M"], "add, ideal: 0.1667 FLOP/byte"),
        (["--add", "1024x1024"], "add, ideal: 0.1667 FLOP/byte"),
    ],
)
def test_kernels_of_typed_sizes(words: list[str], verdict: str, run: Any) -> None:
    first = run("kernels", "--gpu", "h100-sxm5", *words).splitlines()[0]
    assert first.replace("fused", "ideal").startswith(verdict.partition(",")[0])
    assert verdict.partition(": ")[2] in first


def test_the_way_of_attention_that_is_asked_for_is_told(run: Any) -> None:
    """Keeping all scores moves more, so that its intensity is least."""
    intensities = []
    for way in ("naive", "tiled", "fused"):
        first = run("kernels", "--gpu", "h100-sxm5", "--attention", way, "--context", "8k")
        assert first.startswith(f"attention, {way}")
        intensities.append(float(first.partition(": ")[2].split()[0]))
    assert intensities == sorted(intensities)
    assert intensities[0] < intensities[2]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--gpu", "l4"], "model: give MODEL, or one of --gemm"),
        ([MODEL, "--gpu", "l4", "--gemm", "1,2,3"], "model: give MODEL, or one of --gemm"),
        (["--gpu", "l4", "--gemm", "1,2,3", "--add", "5"], "model: give MODEL, or one of"),
        (["--gpu", "l4", "--gemm", "1,b,3"], "gemm: 'b' is not a number; accepted: a whole"),
        (["--gpu", "l4", "--gemm", "1,2"], "gemm: 2 sizes given; accepted: M,N,K"),
    ],
)
def test_kernels_that_are_none(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    refused("kernels", *words)
    assert message in capsys.readouterr().err


def test_ridges_measured_beside_specified(run: Any) -> None:
    rows = json.loads(run("roofline", "--gpu", "h100-sxm5", "--json"))
    lines = cells(run("roofline", "--gpu", "h100-sxm5"))
    for row in rows:
        (line,) = [x for x in lines if x[:2] == [row["gpu"], row["format"]]][:1]
        assert line[4] == number(row["ridge_point"], 4)
        peak, bandwidth = row["peak_flops_per_s"], row["bandwidth_bytes_per_s"]
        assert row["ridge_point"] == pytest.approx(peak / bandwidth)
        if row["measured_flops_per_s"]:
            share = row["measured_flops_per_s"] / peak
            assert line[5] == f"{scaled(row['measured_flops_per_s'], '')} ({share:.0%})"
        else:
            assert line[5] == "–"


def test_the_largest_models_of_a_card(run: Any) -> None:
    words = ["largest", "--gpu", "rtx-4090", "--tokens-per-s", "60", "--format", "q4_k_m"]
    answer = json.loads(run(*words, "--json"))
    text = run(*words)
    best = answer["models"][0]
    assert text.startswith(f"The largest is {best['model']} in q4_k_m: ")
    rows = {row[0]: row for row in cells(text)}
    for one in answer["models"]:
        row = rows[one["model"]]
        assert row[1] == count(one["total_params"])
        assert row[4] == f"{one['layers_on_gpu']} of {one['layers']}"
        assert one["tokens_per_s"]["p50"] >= 60


def test_a_card_that_runs_none_fast_enough(run: Any) -> None:
    text = run("largest", "--gpu", "t4", "--tokens-per-s", "100000", "--format", "q4_k_m")
    assert text.splitlines()[0] == "No model of the catalogue runs at 100000 tokens/s on t4."


@pytest.mark.parametrize("option", ["--host-memory-gb", "--host-gb-per-s"])
def test_host_memory_needs_its_bandwidth(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    refused("largest", "--gpu", "l4", option, "64")
    assert "host-memory-gb, host-gb-per-s: give both, or none" in capsys.readouterr().err


def test_a_sweep_is_csv_of_its_columns(run: Any, tmp_path: Path) -> None:
    model, card = tmp_path / "config.json", tmp_path / "one.json"
    model.write_text(json.dumps(CONFIG))
    card.write_text(json.dumps(gpu()))
    words = ["sweep", str(model), "--gpu", str(card), "--batch", "1-4", "--context", "100,200"]
    columns = json.loads(run(*words, "--json"))["columns"]
    rows = list(csv.DictReader(io.StringIO(run(*words))))
    assert [(row["batch"], row["context"]) for row in rows] == [
        (str(b), str(c)) for b, c in zip(columns["batch"], columns["context"], strict=True)
    ]
    assert len(rows) == 3 * 2
    assert [float(row["tpot_p50_s"]) for row in rows] == columns["tpot_p50_s"]


def test_a_model_is_shown_as_described(run: Any) -> None:
    facts = json.loads(run("models", "show", MODEL, "--json"))
    rows = dict(row[:2] for row in cells(run("models", "show", MODEL)) if len(row) > 1)
    assert rows["total_params"] == "8,030,261,248"
    assert facts["total_params"] == 8_030_261_248
    assert ["kv_bytes_per_token", "131,072"] in [*map(list, rows.items())]  # 2·32·8·128 · 2
    assert "notes" not in rows


def test_the_figures_of_a_card_with_their_confidence(run: Any) -> None:
    facts = json.loads(run("gpus", "show", "l4", "--json"))
    text = run("gpus", "show", "l4")
    rows = {row[0]: row for row in cells(text) if row}
    assert rows["bandwidth_bytes_per_s"][1] == scaled(facts["bandwidth_bytes_per_s"], "B/s")
    for source in facts["sources"]:
        assert source.split()[0] in text
    listed = {row[0]: row for row in cells(run("gpus", "list", "--text", "l4"))}
    assert listed["l4"][1] == scaled(facts["memory_bytes"], "B")


@pytest.mark.parametrize("words", [["plot", "memory", MODEL, "--gpu", "l4"]])
def test_a_picture_without_characters_needs_a_file(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    refused(*words)
    assert "output: memory has no plot of characters; accepted: -o FILE" in capsys.readouterr().err


def test_an_output_that_cannot_be_made_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.write_text("in the way")
    with pytest.raises(SystemExit) as ended:
        main(["sweep", "qwen3-8b", "--gpu", "h100-sxm5", "--output", str(file / "table")])
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("planner: output: ")
    assert "Not a directory" in line
