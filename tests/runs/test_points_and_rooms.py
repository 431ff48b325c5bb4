"""Where published runs ran: batches, contexts, rooms and predictions of rows made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from planner.calibration import shipped
from planner.deployment import Deployment
from planner.runs.harness import AS_STATED, Harness, harness_of, mean_lengths
from planner.runs.points import SHORT_CONTEXT, decode_points
from planner.runs.predict import predict
from planner.runs.room import room_of_run
from planner.runs.rows import Row
from planner.runs.setup import setup
from planner.serving.steady import room_for
from tests.runs.by_hand import row


def decode(**inputs: str) -> Row:
    usual = {"batch": "8", "isl": "1000", "osl": "200", "metric": "tpot_ms"}
    return row("decode", usual | inputs, {"value": 1.0})


def serving(**inputs: str) -> Row:
    usual = {"isl": "1000", "osl": "200", "concurrency": "16"}
    return row("serving", usual | inputs, {"ttft_ms": 1.0, "tpot_ms": 1.0})


def deployment(row: Row) -> Deployment:
    return setup(row).deployment


def calibrated(row: Row) -> Deployment:
    """The deployment with the figures of what it was: an engine's static batch has its own."""
    one = deployment(row)
    return one.calibrated(shipped(), one.subject)


@pytest.mark.parametrize(
    ("inputs", "batch", "context", "repeats", "whole"),
    [
        # 1,000 tokens of prompt, and half of what it says on average.
        ({}, 8, 1100, 1, False),
        # What is printed counts, but for a whole request.
        ({"context": "4096"}, 8, 4096, 1, False),
        ({"context": "4096", "metric": "request_latency_s"}, 8, 1100, 1, True),
        ({"isl": "", "osl": ""}, 8, SHORT_CONTEXT, 1, False),
        ({"isl": "", "context": "0"}, 8, SHORT_CONTEXT, 1, False),
        ({"batch": ""}, 1, 1100, 1, False),
    ],
)
def test_where_a_row_ran(
    inputs: dict[str, str], batch: float, context: float, repeats: float, whole: bool
) -> None:
    row = decode(**inputs)
    points = decode_points(deployment(row), [row])
    assert points.batch.tolist() == [batch]
    assert points.context.tolist() == [context]
    assert points.repeats.tolist() == [repeats]
    assert points.whole.tolist() == [whole]


def test_a_static_batch_beyond_the_pool_runs_in_turns() -> None:
    """Twice what there is room for takes two batches; a measured step ran as it says."""
    one = deployment(decode())
    room = float(room_for(one, np.array([30_000.0]), np.array([200.0]))[0])
    batch = {"batch": str(int(2 * room)), "isl": "30000"}
    latency, step = (decode(**batch, metric=m) for m in ("request_latency_s", "tpot_ms"))
    points = decode_points(one, [latency, step])
    assert points.batch[0] == pytest.approx(room)
    assert points.repeats[0] == pytest.approx(int(2 * room) / room)
    assert (points.batch[1], points.repeats[1]) == (int(2 * room), 1.0)


@pytest.mark.parametrize(
    ("metric", "factor"), [("tpot_ms", 1e3), ("decode_tokens_per_s", None), ("other", 1e3)]
)
def test_decode_is_predicted_in_the_row_s_own_figure(metric: str, factor: float | None) -> None:
    """A rate is the batch over the step; its ends are those of the time, the other way round."""
    row = decode(metric=metric)
    (one,) = predict([row], shipped())
    own = calibrated(row)
    step_s = float(own.time_s(8.0, 1100.0))
    low, high = own.interval()
    if factor:
        assert one.values["value"] == pytest.approx(step_s * factor)
        ends = (step_s * low * factor, step_s * high * factor)
    else:
        assert one.values["value"] == pytest.approx(8 / step_s)
        ends = (8 / step_s / high, 8 / step_s / low)
    assert (one.values["value_p10"], one.values["value_p90"]) == pytest.approx(ends)


def test_a_whole_request_is_its_prompt_and_its_steps() -> None:
    row = decode(metric="request_latency_s")
    one = calibrated(row)
    prompt_s = float(one.prompt_time_s(np.array([1000.0]), np.array([8.0]))[0])
    step_s = float(one.time_s(8.0, 1100.0))
    (prediction,) = predict([row], shipped())
    assert prediction.values["value"] == pytest.approx(prompt_s + 199 * step_s, rel=1e-6)


def test_rows_are_answered_in_their_order_and_refused_one_by_one() -> None:
    rows = [decode(row="a"), decode(row="b", model="nobody/none"), decode(row="c", batch="16")]
    answers = predict(rows, shipped())
    assert [one.row for one in answers] == ["a", "b", "c"]
    assert answers[1].values == {}
    assert "model: unknown model 'nobody/none'" in answers[1].notes[0]
    assert answers[2].values["value"] > answers[0].values["value"]
    alone = predict([rows[2]], shipped())[0]
    assert alone.values == pytest.approx(answers[2].values, rel=1e-12)
    assert alone.nearness == answers[2].nearness


def test_a_run_that_drafts_is_predicted_with_drafts() -> None:
    """On a model that has layers for it: a step yields more than one token."""
    inputs = {"model": "deepseek-ai/DeepSeek-V3", "gpu": "h200-sxm", "tp": "8", "gpus": "8"}
    plain, drafting = (
        predict([serving(**inputs, weight_format="fp8", speculative=word)], shipped())[0]
        for word in ("", "mtp")
    )
    assert drafting.values["tpot_ms"] < plain.values["tpot_ms"]


def sized(monkeypatch: pytest.MonkeyPatch, *, whether: bool) -> None:
    monkeypatch.setattr("planner.runs.room.harness_of", lambda _: Harness(sized=whether))


def rooms(clients: float, **inputs: str) -> tuple[float, float]:
    """The default room of a run, and what it is taken to have held."""
    row = serving(**inputs)
    one = deployment(row)
    lengths = np.array([float(row.inputs["isl"])]), np.array([float(row.inputs["osl"])])
    plain = float(room_for(one, *lengths)[0])
    return plain, float(room_of_run(one, [row], np.array([clients]), *lengths)[0])


LONG = {"isl": "30000", "osl": "1000"}


def test_runs_of_one_s_own_are_taken_at_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, held = rooms(1e6, **LONG)
    assert harness_of(serving()) == AS_STATED
    assert held == plain
    sized(monkeypatch, whether=False)
    assert rooms(1e6, **LONG)[1] == plain


def test_published_runs_held_their_clients_where_settings_could(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A larger share of memory and an 8-bit cache hold about twice as many, and no more."""
    sized(monkeypatch, whether=True)
    plain, _ = rooms(1.0, **LONG)
    assert rooms(plain - 1, **LONG)[1] == plain
    assert rooms(1.8 * plain, **LONG)[1] == pytest.approx(1.8 * plain)
    assert rooms(4 * plain, **LONG)[1] == plain


def test_weights_that_should_not_fit_ran_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Something was assumed wrongly, and so no queue is."""
    sized(monkeypatch, whether=True)
    _, held = rooms(64.0, model="meta-llama/Llama-3.1-70B-Instruct")
    assert held == 64.0


@pytest.mark.parametrize(
    ("clients", "steps"), [(1, 1.0), (63, 1.0), (64, 4.0), (256, 8.0), (9999, 8.0)]
)
def test_steps_between_looks_for_requests(clients: float, steps: float) -> None:
    """The largest of those whose least clients are reached; none for another engine."""
    harness = Harness(polls={"trtllm": {"64": 4.0, "256": 8.0}})
    assert harness.poll("trtllm", clients) == steps
    assert harness.poll("vllm", clients) == 1.0


def test_lengths_of_a_row_that_states_none_are_one() -> None:
    isl, osl = mean_lengths([serving(), serving(isl="", osl="0.5")])
    assert (isl.tolist(), osl.tolist()) == ([1000, 1], [200, 1])


@pytest.mark.parametrize(
    ("inputs", "tag", "value"),
    [
        ({"metric": "request_latency_s"}, "mode", "static"),
        ({"metric": "decode_tokens_per_s"}, "mode", "bench"),
        ({"backend": "HIP 6.4"}, "backend", "rocm"),
        ({"date": "2025-07-01"}, "year", "2025"),
        ({"flash_attention": "1"}, "flash", "1"),
        ({}, "weights", "bf16"),
    ],
)
def test_tags_of_a_run(inputs: dict[str, str], tag: str, value: str) -> None:
    known: dict[str, Any] = dict(deployment(decode(**inputs)).subject.tags)
    assert known[tag] == value
