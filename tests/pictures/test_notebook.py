"""Plans in a notebook: the figures of the answer as HTML, its pictures in what a notebook takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planner import Scenario, plan
from planner.answer import Plan
from planner.pictures import CHARTS, chart, look
from planner.pictures.charts import UnknownChart
from planner.pictures.notebook import MEDIA_TYPE, Picture, as_html
from tests.page.tables import Tables, figure

LLAMA = "meta-llama/Llama-3.1-70B-Instruct"


@pytest.fixture(scope="module")
def answer() -> Plan:
    return plan(Scenario(model=LLAMA, gpu="h100-sxm5", tp=4, context=[8192], batch=[1, 32, 512]))


def rows(html: str) -> list[dict[str, str]]:
    """The rows of both tables, without captions."""
    return [
        row
        for part in html.split("<table>")[1:]
        for row in Tables(f"<table><caption>x</caption>{part}").rows("x")
    ]


def test_html_has_the_figures_of_the_plan(answer: Plan) -> None:
    html = answer._repr_html_()
    assert html == as_html(answer)
    assert "Memory-bound at every batch: intensity saturates at 59.8 FLOP/byte" in html
    points, limits = rows(html)[:3], {row["limit"]: row["value"] for row in rows(html)[3:]}
    for row, point in zip(points[:2], answer.points, strict=False):
        assert figure(row["TPOT"]) == pytest.approx(point.tpot_s.p50, rel=6e-3)
        assert figure(row["tokens/s"]) == pytest.approx(point.tokens_per_s, rel=6e-3)
    assert figure(limits["ridge point"]) == 295
    assert figure(limits["weights"]) == pytest.approx(35.3e9)
    assert limits["crossover batch"] == "never"


def test_a_point_that_does_not_fit_has_no_rate(answer: Plan) -> None:
    """62 sequences of 8k fit, 512 do not."""
    row = rows(answer._repr_html_())[2]
    assert row["TPOT"] == "does not fit"
    assert {row["tokens/s"], row["per GPU"], row["MBU"], row["MFU"]} == {"–"}


def test_texts_of_a_reader_are_escaped(answer: Plan) -> None:
    note = answer.notes[0].model_copy(update={"text": "<script>alert(1)</script>"})
    html = as_html(answer.model_copy(update={"notes": [note]}))
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


@pytest.mark.parametrize("name", CHARTS)
def test_pictures_are_those_of_the_scenario(answer: Plan, name: str) -> None:
    picture = answer.plot(name)
    assert isinstance(picture, Picture)
    assert picture.spec == chart(name, look(answer.scenario, answer))
    assert picture.to_dict()["config"]["background"] == "#ffffff"
    assert repr(picture).startswith(f"Picture({name}: ")


def test_a_notebook_gets_what_it_takes(answer: Plan) -> None:
    pytest.importorskip("vl_convert")
    bundle: dict[str, Any] = answer.plot("memory", theme="dark")._repr_mimebundle_()
    assert set(bundle) == {MEDIA_TYPE, "text/plain", "image/svg+xml"}
    assert bundle["image/svg+xml"].startswith("<svg")
    assert bundle[MEDIA_TYPE]["config"]["background"] == "#14181e"


def test_without_the_extra_there_is_the_specification(
    answer: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("planner.pictures.notebook.find_spec", lambda _: None)
    assert set(answer.plot()._repr_mimebundle_()) == {MEDIA_TYPE, "text/plain"}


def test_a_picture_is_saved(answer: Plan, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    answer.plot("time").save(tmp_path / "time.svg")
    assert (tmp_path / "time.svg").read_text("utf-8").startswith("<svg")


def test_other_names_are_refused(answer: Plan) -> None:
    with pytest.raises(UnknownChart, match="'pie' is not a picture; accepted: roofline"):
        answer.plot("pie")
    with pytest.raises(ValueError, match="theme: 'red'; accepted: light, dark"):
        answer.plot(theme="red")
