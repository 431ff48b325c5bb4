"""The gate: probabilities, verdicts, rates, a baseline, and the forms of a report."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest

from planner.answer import Interval
from planner.cli import main
from planner.deployment import deployment_of
from planner.errors import InvalidInput
from planner.handover.checking import CheckQuestion, check
from planner.handover.outputs import FORMATS
from planner.handover.verdicts import clients_at_rate, probability_below, verdict_of
from planner.plans.planning import plan
from planner.scenario import Scenario

QWEN = "Qwen/Qwen2.5-7B-Instruct"
SERVE = f"vllm serve {QWEN}\n"
LOAD = {"gpu": "h100-sxm5", "concurrency": 16, "isl": 1000, "osl": 200}


def ask(**fields: object) -> CheckQuestion:
    return CheckQuestion(**{**LOAD, **fields})


@pytest.mark.parametrize(
    ("limit", "probability"), [(8.0, 0.1), (10.0, 0.5), (12.0, 0.9), (1e-9, 0.0), (1e9, 1.0)]
)
def test_a_probability_goes_through_the_ends_of_the_interval(
    limit: float, probability: float
) -> None:
    interval = Interval(p10=8.0, p50=10.0, p90=12.0)
    assert probability_below(interval, limit) == pytest.approx(probability, abs=1e-6)


@pytest.mark.parametrize(
    ("probability", "percentile", "verdict"),
    [
        (0.95, 50, "pass"),
        (0.7, 50, "near"),
        (0.4, 50, "fail"),
        (0.7, 90, "fail"),
        (0.4, 25, "near"),
        (0.05, 1, "fail"),
    ],
)
def test_a_verdict_is_by_percentile_and_band(
    probability: float, percentile: float, verdict: str
) -> None:
    assert verdict_of(probability, percentile) == verdict


def test_limits_are_those_of_the_plan() -> None:
    scenario = Scenario(model=QWEN, engine="vllm", **LOAD)
    serving = plan(scenario).serving
    assert serving is not None
    middle = serving.tpot_s.p50 * 1e3
    for factor, verdict in ((3.0, "pass"), (1.01, "near"), (0.5, "fail")):
        (one,) = check({"a": SERVE}, ask(tpot_ms=middle * factor)).checks
        assert one.verdict == verdict
        assert one.limits[0].predicted == serving.tpot_s
    (percentile,) = check({"a": SERVE}, ask(tpot_ms=middle * 1.01, percentile=90)).checks
    assert percentile.verdict == "fail"


def test_a_rate_becomes_clients_by_littles_law() -> None:
    scenario = Scenario(model=QWEN, engine="vllm", replicas=2, **LOAD)
    state = plan(scenario).serving
    assert state is not None
    clients, limit = clients_at_rate(scenario, deployment_of(scenario), state.requests_per_s)
    assert clients in (16, 17)
    assert limit.verdict == "pass"
    (one,) = check({"a": SERVE}, ask(concurrency=None, requests_per_s=10_000)).checks
    assert (one.verdict, one.limits[0].quantity) == ("fail", "requests_per_s")
    assert one.binds in {"cache", "engine_cap"}
    with pytest.raises(InvalidInput, match="isl, osl"):
        check({"a": SERVE}, CheckQuestion(gpu="h100-sxm5", requests_per_s=1))


def test_a_baseline_fails_what_is_worse() -> None:
    worse = SERVE.replace("\n", " --kv-cache-dtype bfloat16 --tensor-parallel-size 2\n")
    (same,) = check({"a": SERVE}, ask(), baseline={"b": SERVE}).checks
    assert (same.verdict, same.regressions) == ("pass", [])
    (one,) = check({"a": worse}, ask(), baseline={"b": SERVE}).checks
    figures = {each.figure: each for each in one.regressions}
    assert one.verdict == "fail"
    assert figures["tokens_per_s_per_gpu"].worse > 0.05
    assert "tp" in figures["tokens_per_s_per_gpu"].because
    (lenient,) = check({"a": worse}, ask(), baseline={"b": SERVE}, regression=10).checks
    assert lenient.verdict == "pass"


MIXED = {"good.sh": SERVE, "bad.sh": "vllm serve " + QWEN + " --nonsense <&>\n"}


@pytest.mark.parametrize("form", FORMATS)
def test_a_report_in_every_form_names_file_line_and_code(form: str) -> None:
    report = check(MIXED, ask(tpot_ms=0.1))
    text = FORMATS[form](report)
    assert "bad.sh" in text
    assert "argument_unknown" in text
    if form == "json":
        assert json.loads(text)["contract"] == 1
    if form == "sarif":
        (run,) = json.loads(text)["runs"]
        rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
        assert {one["ruleId"] for one in run["results"]} <= rules
        assert json.loads(text)["version"] == "2.1.0"
    if form == "junit":
        suite = fromstring(text)  # noqa: S314 - our own text
        assert (suite.get("tests"), suite.get("failures")) == ("2", "2")
    if form == "github":
        assert "::error file=bad.sh,line=1,title=argument_unknown::" in text


@pytest.mark.parametrize(
    ("text", "options", "code"),
    [
        (SERVE, [], 0),
        (SERVE, ["--tpot-ms", "0.1"], 1),
        ("kind: {{ .Values.kind }}\n", [], 2),
        (None, [], 2),
    ],
)
def test_exit_codes(
    text: str | None,
    options: list[str],
    code: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "start.sh"
    if text is not None:
        file.write_text(text)
    load = ["--gpu", "h100-sxm5", "--isl", "1000", "--osl", "200", "--concurrency", "16"]
    ended = 0
    try:
        main(["check", str(file), *load, *options])
    except SystemExit as error:
        ended = int(str(error.code))
    assert ended == code
    out = capsys.readouterr()
    assert out.err.count("\n") == (1 if code == 2 else 0)
    assert str(file) in out.out + out.err
