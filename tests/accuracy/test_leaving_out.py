"""What is left out when a row is predicted, on a fit that only records what it was asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import planner.accuracy.holdout as holding
from planner.accuracy.holdout import FOLDS, USER, Held, Holdout
from planner.fitting.drafting import fit_accepted
from planner.fitting.refit import Refit
from planner.runs.predict import Prediction
from planner.runs.rows import Row

ROWS = (
    ("m1", "h100-sxm5", "s1"),
    ("m1", "h200-sxm", "s2"),
    ("m2", "h100-sxm5", "s1"),
    ("m2", "mi300x", ""),
)
"""Serving rows: model, accelerator, source."""


def row(number: int, model: str, gpu: str, source: str) -> Row:
    inputs = {"row": str(number), "model": model, "gpu": gpu, "source": source, "tp": "1"}
    return Row("serving", inputs, {"ttft_ms": 100.0, "tpot_ms": 10.0}, {})


def tags(model: str, gpu: str, source: str) -> Mapping[str, str]:
    vendor, family = ("amd", "cdna3/hbm") if gpu == "mi300x" else ("nvidia", "hopper/hbm")
    known = {"model": model, "gpu": gpu, "source": source, "vendor": vendor, "family": family}
    return {**known, "engine": "vllm", "weights": "8bit", "backend": ""}


class FakeRefit:
    """Four serving rows, one decode row and samples of two accelerators."""

    def __init__(self) -> None:
        self.content = {"edition": "all"}
        rows = [row(n, *one) for n, one in enumerate(ROWS)]
        groups = [
            SimpleNamespace(
                rows=np.array([n]),
                deployment=SimpleNamespace(subject=SimpleNamespace(tags=tags(*one))),
            )
            for n, one in enumerate(ROWS)
        ]
        decode = SimpleNamespace(
            rows=np.array([0]),
            deployment=SimpleNamespace(subject=SimpleNamespace(tags=tags("m1", "l4", "s3"))),
        )
        self.serving = SimpleNamespace(
            rows=rows, groups=groups, states=lambda _: None, doubts=lambda _: [""] * 4
        )
        self.decode = SimpleNamespace(
            rows=[row(9, "m1", "l4", "s3")], groups=[decode], doubts=["slow"]
        )
        self.samples = [
            SimpleNamespace(gpu="h100-sxm5", seconds=np.ones(2)),
            SimpleNamespace(gpu="mi300x", seconds=np.ones(1)),
        ]
        self.calls: list[tuple[list[bool], list[bool], list[bool] | None]] = []

    def without(self, serving: Any, decode: Any, samples: Any) -> Any:
        known = None if samples is None else samples.tolist()
        self.calls.append((serving.tolist(), decode.tolist(), known))
        return {"edition": "less"}


@pytest.fixture
def refit(monkeypatch: pytest.MonkeyPatch) -> FakeRefit:
    def predicted(rows: Sequence[Row], figures: Any) -> list[Prediction]:
        del figures
        return [Prediction(one.inputs["row"]) for one in rows]

    monkeypatch.setattr(holding, "from_json", lambda content: content)
    monkeypatch.setattr(holding, "predict", predicted)
    return FakeRefit()


def held(refit: FakeRefit, by: str, **options: Any) -> list[Held]:
    return list(Holdout(cast("Refit", refit)).held(by, **options))


@pytest.mark.parametrize(
    ("by", "left_out"),
    [
        ("model", [[True, True, False, False, True], [False, False, True, True, False]]),
        (
            "gpu",
            [
                [True, False, True, False, False],
                [False, True, False, False, False],
                [False, False, False, False, True],
                [False, False, False, True, False],
            ],
        ),
    ],
)
def test_what_shares_a_key_is_left_out_together(
    by: str, left_out: list[list[bool]], refit: FakeRefit
) -> None:
    rows = held(refit, by)
    assert [serving + decode for serving, decode, _ in refit.calls] == left_out
    # Every row once, in a fold that leaves it out.
    assert sorted(one.row.inputs["row"] for one in rows) == ["0", "1", "2", "3", "9"]
    assert all(one.subject.tags[by] == one.fold for one in rows)
    assert all(one.prediction.row == one.row.inputs["row"] for one in rows)
    assert [one.doubt for one in rows if one.row.inputs["row"] == "9"] == ["slow"]


def test_serving_alone_leaves_out_nothing_for_decode(refit: FakeRefit) -> None:
    rows = held(refit, "gpu", serving_only=True)
    assert "l4" not in {one.fold for one in rows}
    assert len(refit.calls) == 3


@pytest.mark.parametrize(
    ("by", "fold", "samples"),
    [
        ("model", "m1", None),
        ("gpu", "h100-sxm5", [True, True, False]),
        ("gpu", "h200-sxm", [False, False, False]),
        ("family", "hopper/hbm", [True, True, False]),
    ],
)
def test_kernel_timings_go_with_their_accelerator(
    by: str, fold: str, samples: list[bool] | None, refit: FakeRefit
) -> None:
    folds = sorted({one.fold for one in held(refit, by)})
    assert refit.calls[folds.index(fold)][2] == samples


def test_rows_without_a_source_and_the_vendor_of_most_are_never_left_out(refit: FakeRefit) -> None:
    assert {one.fold for one in held(refit, "source")} == {"s1", "s2", "s3"}
    assert {one.fold for one in held(refit, "vendor")} == {"amd"}


def test_a_user_says_no_source(refit: FakeRefit, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows that are predicted are as a user would ask, the folds those of sources."""
    seen: list[str] = []

    def as_user(one: Row) -> Row:
        seen.append(one.inputs["source"])
        return one

    monkeypatch.setattr(holding, "as_a_user_asks", as_user)
    rows = held(refit, USER)
    assert sorted(seen) == ["s1", "s1", "s2", "s3"]
    assert {(one.by, one.fold) for one in rows} == {(USER, f"s{n}") for n in (1, 2, 3)}


def test_configurations_fall_into_five_parts(refit: FakeRefit) -> None:
    """Rows of one accelerator, model, engine, format and split are in one part."""
    rows = held(refit, "config")
    assert len(rows) == 5
    assert {int(one.fold) for one in rows} <= set(range(FOLDS))
    again = held(FakeRefit(), "config")
    assert [one.fold for one in again] == [one.fold for one in rows]


def test_within_the_fit_nothing_is_left_out(refit: FakeRefit) -> None:
    rows = list(Holdout(cast("Refit", refit)).fitted())
    assert refit.calls == []
    assert [(one.by, one.fold) for one in rows] == [("nothing", "")] * 5


def test_samples_are_predicted_without_their_accelerator() -> None:
    """Two sets of one accelerator and one of another, in turn; the roofline is the slower part."""
    seen: list[list[bool]] = []

    class Times:
        def predicted(self, use: Any) -> Any:
            seen.append(use.tolist())
            return np.arange(10.0)

    def features(_: Any) -> Any:
        return SimpleNamespace(compute_s=np.array([[1.0, 5.0]]), memory_s=np.array([[3.0, 2.0]]))

    kind = [SimpleNamespace(kind="gemm")]
    samples = [
        SimpleNamespace(gpu="h100-sxm5", seconds=np.ones(2), items=kind, features=features),
        SimpleNamespace(gpu="l4", seconds=np.ones(2), items=kind, features=features),
    ]
    one = Holdout.__new__(Holdout)
    one.refit = cast("Refit", SimpleNamespace(times=Times(), samples=samples))
    one.subjects = [cast("Any", SimpleNamespace(tags={"gpu": "l4"}))]
    one.sample_gpus = ["h100-sxm5", "h100-sxm5", "l4", "l4"]
    first, second = one.held_samples()
    # The first entry is the one row, which ran on an L4 and so goes with its samples.
    assert seen == [[True, False, False, True, True], [False, True, True, False, False]]
    assert (first.gpu, first.predicted.tolist()) == ("h100-sxm5", [1.0, 2.0])
    assert (second.gpu, second.predicted.tolist()) == ("l4", [3.0, 4.0])
    assert first.datasheet.tolist() == [3.0, 5.0]


def test_a_fold_is_fitted_once(refit: FakeRefit) -> None:
    """Rows and their fits are kept; a user's question is asked of the fits without sources."""
    one = Holdout(cast("Refit", refit))
    first, again = one.held("gpu"), one.held("gpu")
    assert [held.row for held in first] == [held.row for held in again]
    assert len(refit.calls) == 4
    assert {held.fold for held in one.held("gpu", serving_only=True)} < {h.fold for h in first}
    assert len(refit.calls) == 4
    one.held("source")
    one.held(USER)
    assert len(refit.calls) == 4 + 3


def test_keys_of_rows_and_samples(refit: FakeRefit) -> None:
    one = Holdout(cast("Refit", refit))
    keys, folds = one.keys("gpu")
    assert len(keys) == 5 + 3
    assert set(keys[5:]) == {"h100-sxm5", "mi300x"}
    assert "l4" not in folds
    assert len(one.keys("gpu", (True, False, False))[0]) == one.serving
    # An engine or model has no kernel timings of its own.
    assert set(one.keys("model")[0][5:]) == {""}


@pytest.mark.parametrize(
    ("lacks", "decode", "samples", "levels"),
    [
        ("kernel timings", True, 0, True),
        ("prompts that ride on steps", True, 2, True),
        ("how engines are set up", True, 2, True),
        ("all but one set of parameters", False, 2, False),
    ],
)
def test_an_ablation_lacks_one_thing_at_a_time(
    lacks: str, decode: bool, samples: int, levels: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    import planner.accuracy.ablation as module
    from tests.fitting.test_design import priors

    class Made:
        def __init__(self, _: Any, decode: Any, samples: Any, priors: Any, __: str) -> None:
            levels = any(one.levels for one in priors.parameters.values())
            self.parts = (bool(len(decode.rows)), len(samples), levels)

    given = priors(memory={"levels": [[["gpu"], 0.3], [["kind", "setup"], 0.2]]})
    rows = SimpleNamespace(rows=[1], groups=[])
    whole = SimpleNamespace(
        priors=given, serving=rows, decode=rows, samples=(1, 2), edition="made-up"
    )
    monkeypatch.setattr(module, "Refit", Made)
    (variant,) = [one for one in module.VARIANTS if one.lacks == lacks]
    made = cast("Any", module.varied(cast("Refit", whole), variant))
    assert made.parts == (decode, samples, levels)
    kept = [row[0] for row in variant.priors(given).parameters["memory"].levels]
    assert (("kind", "setup") in kept) == (lacks not in ("how engines are set up", NOTHING_LEFT))
    assert module.varied(cast("Refit", whole), module.VARIANTS[0]) is whole


NOTHING_LEFT = "all but one set of parameters"


def test_drafts_are_fitted_to_the_middle_of_the_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of 30 ms that yield a tokens: runs at 20, 25 and 15 ms have their middle at 1.5."""
    import planner.fitting.drafting as module

    def predict(rows: Sequence[Row], figures: Any) -> list[Prediction]:
        return [Prediction("", {"tpot_ms": 30.0 / figures["speculation"]["accepted"]})] * len(rows)

    monkeypatch.setattr(module, "from_json", lambda content: content)
    monkeypatch.setattr(module, "predict", predict)
    rows = [Row("serving", {}, {"tpot_ms": ms}, {}) for ms in (20.0, 25.0, 15.0)]
    given = {"speculation": {"drafts": 1, "accepted": 1.1}}
    assert fit_accepted(rows, given) == pytest.approx(1.5, abs=1e-3)
    # No more than the drafts and the token itself, no less than that one.
    fast = [Row("serving", {}, {"tpot_ms": 1.0}, {})]
    assert fit_accepted(fast, given) == pytest.approx(2.0, abs=1e-3)
    slow = [Row("serving", {}, {"tpot_ms": 99.0}, {})]
    assert fit_accepted(slow, given) == pytest.approx(1.0, abs=1e-3)
