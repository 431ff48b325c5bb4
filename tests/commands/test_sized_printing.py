"""How the answer to a workload is printed: verdict, band, front, nearest, refusals.

Figures are typed in, so that each printed text can be worked out beside it.
"""

from __future__ import annotations

from typing import Any

import pytest

from planner.answer import Editions, Interval, NoteAnswer
from planner.commands.sized import HEADINGS, MOST_REFUSED, print_sized
from planner.plans.recommend import Recommendation
from planner.plans.request import RecommendationRequest
from planner.plans.sized import (
    Energy,
    GpuCount,
    Money,
    Nearest,
    Prefill,
    RefusedOptions,
    RequestTimes,
    Simulated,
    Sized,
    SizedOption,
)
from planner.scenario import Scenario

QUESTION: dict[str, Any] = {"model": "Qwen/Qwen2.5-7B-Instruct", "isl": 1000, "osl": 200}


def interval(value: float) -> Interval:
    return Interval(p10=value / 2, p50=value, p90=value * 2)


def option(**changes: Any) -> SizedOption:
    fields: dict[str, Any] = {
        "summary": "8 GPUs = 4 replicas × TP 2, 13 requests in flight each",
        "gpu": "h100-sxm5",
        "status": "available",
        "engine": "vllm",
        "weights": "bf16",
        "kv": "fp8",
        "tp": 2,
        "pp": 1,
        "ep": 1,
        "attention_dp": 1,
        "drafts": 0,
        "prefill": None,
        "replicas": 4,
        "gpus_per_replica": 2,
        "gpus": 8,
        "gpus_needed": GpuCount(p10=6, p50=8, p90=12),
        "probability": 0.625,
        "binds": "tpot",
        "concurrency_per_replica": 13.0,
        "most_concurrency_per_replica": 13,
        "batch_per_gpu": 6.25,
        "ttft_s": interval(0.25),
        "tpot_s": interval(0.0125),
        "e2e_s": interval(2.75),
        "requests_per_s": 18.5,
        "output_tokens_per_s": 3700.0,
        "output_tokens_per_s_per_gpu": 462.5,
        "tokens_per_s_per_user": 80.0,
        "money": Money(
            usd_per_gpu_hour=2.5,
            price_kind="on_demand",
            price_date="2026-11",
            usd_per_month=14_600.0,  # 2.5 · 8 · 730
            usd_per_million_output_tokens=1.25,
            usd_per_million_input_tokens=0.0625,
            usd_per_million_tokens=1.5,
        ),
        "energy": Energy(
            watts_per_gpu=500,
            joules_per_output_token=1.08,
            kwh_per_month=2920,
            kg_co2_per_month=None,
        ),
        "scenario": Scenario(**QUESTION, gpu="h100-sxm5", users=50),
        "notes": [NoteAnswer(code="old_price", text="the price is old")],
    }
    return SizedOption.model_validate(fields | changes)


def recommendation(**changes: Any) -> Recommendation:
    fields: dict[str, Any] = {
        "evaluated": 321,
        "meeting": 1,
        "cheapest": 0,
        "fastest": 0,
        "smallest": 0,
        "options": [option()],
        "nearest": None,
        "staged": False,
        "refused": [],
    }
    return Recommendation(
        request=RecommendationRequest(**QUESTION, users=50),
        choices=[],
        refused=[],
        sized=Sized.model_validate(fields | changes),
        notes=[NoteAnswer(code="assumed_width", text="a width is assumed")],
        editions=Editions(models="m", hardware="h", calibration="c", engines="e"),
    )


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that holds every column, so that no cell is folded."""
    monkeypatch.setattr("planner.commands.output.WIDTH", 400)


def printed(capsys: pytest.CaptureFixture[str], **changes: Any) -> str:
    print_sized(recommendation(**changes))
    return capsys.readouterr().out


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def table(text: str, title: str) -> list[list[str]]:
    """The rows of a table, its head among them."""
    lines = text.splitlines()
    at = lines.index(title)
    rows = []
    for line in lines[at + 1 :]:
        if len(cells(line)) < 3:
            break
        rows.append(cells(line))
    return rows


def test_a_verdict_in_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys).splitlines()[0] == (
        "8 GPUs = 4 replicas × TP 2, 13 requests in flight each on h100-sxm5 under vllm; 6–12 GPUs "
        "with 80%. The limits hold with a probability of 62%, bound by tpot: 18.5 requests/s, "
        "3.7 ktok/s. 321 options were evaluated."
    )


@pytest.mark.parametrize(
    ("ends", "text"),
    [((8, 8), "8 GPUs"), ((6, 12), "6–12 GPUs"), ((6, None), "6–∞ GPUs"), ((None, None), "∞ GPUs")],
)
def test_the_band_of_gpus(
    ends: tuple[int | None, int | None], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A place of the uncertainty at which no number of GPUs helps needs infinitely many."""
    count = GpuCount(p10=ends[0], p50=8, p90=ends[1])
    assert f"; {text} with 80%." in printed(capsys, options=[option(gpus_needed=count)])


def test_without_a_demand_no_number_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    scenario = Scenario(**QUESTION, gpu="h100-sxm5", concurrency=13)
    verdict = printed(capsys, options=[option(scenario=scenario, engine=None)]).splitlines()[0]
    assert "with 80%" not in verdict
    assert "on h100-sxm5, bound by tpot" in verdict


def test_the_first_is_the_cheapest_or_without_prices_the_smallest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = [option(), option(summary="2 GPUs = 1 replica × TP 2, 1 request in flight each")]
    assert printed(capsys, options=options, smallest=1).startswith("8 GPUs")
    assert printed(capsys, options=options, cheapest=None, smallest=1).startswith("2 GPUs")


@pytest.mark.usefixtures("wide")
def test_a_row_of_the_front(capsys: pytest.CaptureFixture[str]) -> None:
    head, row = table(printed(capsys), "front")
    assert tuple(head) == HEADINGS
    assert dict(zip(head, row, strict=True)) == {
        "gpu": "h100-sxm5",
        "engine": "vllm",
        "formats": "bf16/fp8",
        "replicas": "4×TP2",
        "GPUs": "8",
        "80%": "6–12",
        "holds": "62%",
        "TTFT": "250 ms",
        "TPOT": "12.5 ms",
        "per GPU": "462",
        "$/month": "14,600",
        "$/M out": "1.25",
        "J/tok": "1.08",
        "binds": "tpot",
    }


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize(
    ("changes", "heading", "text"),
    [
        ({"tp": 1}, "replicas", "4×TP1"),
        ({"kv": "bf16"}, "formats", "bf16"),
        ({"tp": 1, "attention_dp": 8, "ep": 8}, "replicas", "4×TP1·DP8·EP8"),
        ({"tp": 2, "pp": 2, "drafts": 1}, "replicas", "4×TP2·PP2 +1 draft"),
        ({"engine": None}, "engine", "–"),
        ({"status": "announced"}, "gpu", "h100-sxm5 (announced)"),
        ({"money": None}, "$/month", "–"),
        ({"money": None}, "$/M out", "–"),
        ({"energy": None}, "J/tok", "–"),
        ({"probability": 0.045}, "holds", "4.5%"),
        (
            {
                "prefill": Prefill(
                    workers=3, tp=1, pp=1, ep=1, attention_dp=1, gpus_per_worker=1, busy=0.8
                )
            },
            "replicas",
            "4+3×TP2",
        ),
    ],
)
def test_cells(
    changes: dict[str, Any], heading: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    head, row = table(printed(capsys, options=[option(**changes)]), "front")
    assert dict(zip(head, row, strict=True))[heading] == text


@pytest.mark.usefixtures("wide")
def test_the_best_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    options = [option(), option(gpu="l4", summary="9 GPUs = 9 replicas × TP 1")]
    text = printed(capsys, options=options, cheapest=None, fastest=1)
    lines = [cells(line) for line in text.splitlines()]
    assert ["fastest", "l4", "vllm", "9 GPUs = 9 replicas × TP 1"] in lines
    assert "cheapest" not in {line[0] for line in lines if line}


@pytest.mark.usefixtures("wide")
def test_what_was_simulated(capsys: pytest.CaptureFixture[str]) -> None:
    times = RequestTimes(mean=0.5, p50=0.4, p90=0.8, p99=1.6)
    simulated = Simulated(
        requests=4000,
        ttft_s=times,
        tpot_s=RequestTimes(mean=0.02, p50=0.0204, p90=0.03, p99=0.0412),
        e2e_s=times,
        requests_per_s_per_replica=4.6,
        share_within_limits=0.987,
    )
    text = printed(capsys, options=[option(simulated=simulated), option()])
    head, row = table(text, "simulated request by request: P50 / P99 over requests")
    assert head == ["option", "TTFT", "TPOT", "end to end", "within limits"]
    assert row[1:] == ["0.4 / 1.6 s", "20.4 / 41.2 ms", "0.4 / 1.6 s", "99%"]
    assert "simulated" not in printed(capsys)


def test_where_none_meets_the_limits(capsys: pytest.CaptureFixture[str]) -> None:
    nearest = Nearest(text="the limits need 9 GPUs, 8 are there", option=option(), relax=[])
    text = printed(capsys, options=[], cheapest=None, fastest=None, smallest=None, nearest=nearest)
    lines = text.splitlines()
    assert lines[0] == "The limits need 9 GPUs, 8 are there."
    assert "nearest" in lines
    assert "front" not in lines


def test_where_none_can_be_run(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, options=[], cheapest=None, fastest=None, smallest=None)
    assert text.splitlines()[0] == "None of these accelerators can run this."


@pytest.mark.usefixtures("wide")
def test_refusals_are_counted_and_bounded(capsys: pytest.CaptureFixture[str]) -> None:
    refused = [
        RefusedOptions(gpu=f"gpu-{n}", count=10 + n, reason=f"reason {n}")
        for n in range(MOST_REFUSED + 5)
    ]
    lines = [cells(line) for line in printed(capsys, refused=refused).splitlines()]
    shown = [line for line in lines if line and line[0].startswith("gpu-")]
    assert len(shown) == MOST_REFUSED
    assert shown[3] == ["gpu-3", "13", "reason 3"]


def test_notes_of_the_model_and_of_the_best_are_told_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = NoteAnswer(code="emulated_format", text="a format is emulated")
    text = printed(capsys, options=[option(), option(notes=[*option().notes, other])], fastest=1)
    assert [line for line in text.splitlines() if line.startswith("note:")] == [
        "note: a width is assumed [assumed_width]",
        "note: the price is old [old_price]",
        "note: a format is emulated [emulated_format]",
    ]


def test_without_a_workload_nothing_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    print_sized(recommendation().model_copy(update={"sized": None}))
    assert capsys.readouterr().out == ""
