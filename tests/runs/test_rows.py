"""Rows of measured runs: recognised, kept apart from their results, every one answered."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from planner.accuracy.report import errors, report
from planner.fitting.committed import committed_rows
from planner.runs.predict import predict
from planner.runs.rows import INPUTS, MEASURED, BadCell, UnknownRows, read_rows, recognise, rows_of
from planner.runs.setup import backend, engine_name

KINDS = ("serving", "decode", "memory")


@pytest.mark.parametrize("kind", KINDS)
def test_recognises_its_own_columns(kind: str) -> None:
    assert recognise(INPUTS[kind] + MEASURED[kind]) == kind
    assert recognise(INPUTS[kind]) == kind


def test_refuses_other_columns(tmp_path: Path) -> None:
    with pytest.raises(UnknownRows, match="serving: concurrency"):
        recognise(["a", "b"])
    path = tmp_path / "empty.csv"
    path.write_text("", encoding="utf-8")
    with pytest.raises(UnknownRows):
        read_rows(path)


GOOD = {
    "row": "1",
    "model": "m",
    "gpu": "g",
    "engine": "vllm",
    "isl": "1024",
    "osl": "512",
    "concurrency": "16",
    "tp": "1",
    "ttft_ms": "100",
    "tpot_ms": "10",
}


@pytest.mark.parametrize("text", ["abc", "nan", "inf", "-inf", "-1", "1e300", "9" * 400])
@pytest.mark.parametrize("name", ["isl", "osl", "concurrency", "tp", "ttft_ms", "tpot_ms"])
def test_a_cell_that_is_no_such_number_is_named(name: str, text: str) -> None:
    lines = [",".join(GOOD), ",".join(GOOD.values()), ",".join({**GOOD, name: text}.values())]
    assert len(rows_of(lines[:2])) == 1
    with pytest.raises(BadCell, match=f"^{name}: '.*' in row 2 of this column; accepted: a number"):
        rows_of(lines)


@pytest.mark.parametrize(
    ("name", "refused"),
    [("isl", True), ("osl", True), ("concurrency", True), ("tp", False), ("ttft_ms", False)],
)
def test_a_zero_is_none_or_refused(name: str, refused: bool) -> None:
    lines = [",".join(GOOD), ",".join({**GOOD, name: "0"}.values())]
    if refused:
        with pytest.raises(BadCell, match=f"^{name}: '0' in row 1"):
            rows_of(lines)
    else:
        assert len(rows_of(lines)) == 1


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b"\xff\xfe\x00\x01"),
        ("a.csv.gz", b"no gzip"),
        ("b.csv.gz", b"\x1f\x8b\x08\x00"),
        ("c.csv.gz", gzip.compress(b"concurrency,isl,osl", mtime=0)[:-9]),
    ],
    ids=["no text", "no gzip", "header alone", "cut short"],
)
def test_a_file_that_is_no_text_is_refused_in_one_line(
    tmp_path: Path, name: str, content: bytes
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UnknownRows, match=f"^rows: {name} is not text of rows; accepted: a CSV"):
        read_rows(path)


def test_options_that_would_do_nothing_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from planner.cli import main

    rows = tmp_path / "rows.csv"
    rows.write_text(",".join(GOOD) + "\n", encoding="utf-8")
    for arguments, named in (
        ([str(rows), "--report", "x.md"], "report:"),
        (["--predictions", "x.csv"], "predictions:"),
    ):
        with pytest.raises(SystemExit, match="2"):
            main(["validate", *arguments])
        assert capsys.readouterr().err.startswith(f"planner: {named}")


def test_inputs_hold_no_result() -> None:
    for kind in KINDS:
        assert not set(INPUTS[kind]) & set(MEASURED[kind])
        # `source` is an input: it tells how a benchmark drew its lengths, not what came out.
        assert not set(INPUTS[kind]) & {"queued", "suspect", "note"}


@pytest.mark.parametrize("kind", KINDS)
def test_predictions_do_not_depend_on_results(kind: str) -> None:
    rows = committed_rows(kind)[::7]
    shuffled = [row.measured for row in rows]
    shuffled = shuffled[len(shuffled) // 3 :] + shuffled[: len(shuffled) // 3]
    spoiled = [
        replace(row, measured=measured, remarks={})
        for row, measured in zip(rows, shuffled, strict=True)
    ]
    blank = [replace(row, measured={}, remarks={}) for row in rows]
    wanted = [p.values for p in predict(rows)]
    assert [p.values for p in predict(spoiled)] == wanted
    assert [p.values for p in predict(blank)] == wanted


def test_every_serving_row_is_answered() -> None:
    found = predict(committed_rows("serving"))
    assert all(p.values["tpot_ms"] > 0 and p.values["ttft_ms"] > 0 for p in found)
    for p in found:
        assert p.values["tpot_p10_ms"] < p.values["tpot_ms"] < p.values["tpot_p90_ms"]


def test_a_row_that_cannot_be_set_up_says_why() -> None:
    row = committed_rows("serving")[0]
    unknown = replace(row, inputs={**row.inputs, "model": "nobody/nothing"})
    found = predict([row, unknown])
    assert found[0].values
    assert not found[1].values
    assert "unknown model" in found[1].notes[0]


def test_other_engines_accelerators_and_formats_are_answered() -> None:
    row = committed_rows("serving")[0]
    changes = (
        {"engine": "dynamo-sglang"},
        {"engine": "something new"},
        {"gpu": "mi355x"},
        {"gpu": "b300-sxm"},
        {"weight_format": "mxfp4"},
        {"weight_format": "odd"},
        {"engine_version": "99.0"},
        {"gpu": "a100-sxm4-80gb"},
        {"pp": "2", "gpus": "16"},
    )
    rows = [replace(row, inputs={**row.inputs, **change}) for change in changes]
    for found in predict(rows):
        assert np.isfinite(found.values["tpot_ms"])


def test_names_of_engines_and_backends() -> None:
    assert engine_name("TensorRT-LLM") == "trtllm"
    assert engine_name("dynamo-vllm") == "vllm"
    assert engine_name("gpt-fast") == "gpt-fast"
    assert backend("rocm 6.3.1") == backend("hip") == backend("rocwmma") == "rocm"
    assert backend("vulkan_radv") == backend("vulkan") == "vulkan"


def test_report_groups_and_counts() -> None:
    rows = committed_rows("decode")[:60]
    lines = report(rows, predict(rows))
    overall = next(line for line in lines if line.group == "all")
    assert overall.errors.rows <= 60
    by_gpu = [line for line in lines if line.by == "gpu"]
    assert sum(line.errors.rows for line in by_gpu) == overall.errors.rows


def test_errors_by_hand() -> None:
    found = errors([1.0, 2.0, 4.0], [1.0, 1.0, 5.0])
    assert found.median == pytest.approx(0.2)
    assert found.mean == pytest.approx(0.4)
    assert found.bias == pytest.approx(0.0)


def test_command_writes_predictions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from planner.cli import main

    rows = committed_rows("serving")[:5]
    source, target = tmp_path / "rows.csv", tmp_path / "out.csv"
    with source.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, INPUTS["serving"])
        writer.writeheader()
        writer.writerows(row.inputs for row in rows)
    main(["validate", str(source), "--predictions", str(target)])
    assert "5 serving rows, 5 answered" in capsys.readouterr().out
    with target.open(encoding="utf-8", newline="") as file:
        written = list(csv.DictReader(file))
    assert [line["row"] for line in written] == [row.inputs["row"] for row in rows]
    for line in written:
        assert float(line["tpot_p10_ms"]) < float(line["tpot_ms"]) < float(line["tpot_p90_ms"])


class FewHeldOut:
    """A fit of which a few rows are held out, so that no fit is made."""

    refit = SimpleNamespace(edition="a test")

    def __init__(self, _: object) -> None:
        self.rows = [*committed_rows("serving")[:3], *committed_rows("decode")[:4]]

    def held(self, by: str) -> Iterator[SimpleNamespace]:
        del by
        return self.fitted()

    def fitted(self) -> Iterator[SimpleNamespace]:
        for row in self.rows:
            yield SimpleNamespace(row=row, prediction=predict([row])[0])


def test_the_summary_of_left_out_rows_is_json_where_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from planner.cli import main

    monkeypatch.setattr("planner.accuracy.holdout.Holdout", FewHeldOut)
    monkeypatch.setattr("planner.fitting.refit.refit_committed", lambda: None)
    main(["validate", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert set(found["left_out"]) == {
        "nothing",
        "config",
        "model",
        "gpu",
        "engine",
        "family",
        "source",
    }
    serving, decode = found["left_out"]["model"]
    assert (serving["kind"], serving["rows"]) == ("serving", 3)
    assert (decode["kind"], decode["rows"]) == ("decode", 4)
    assert {line["quantity"] for line in serving["errors"]} == {"ttft_ms", "tpot_ms"}
