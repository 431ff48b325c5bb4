"""Texts of forms: read as people write them, written back as they are read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.page.form import read
from api.page.reading import MOST_CHARACTERS, names, rates, texts_of_scenario, tokens, values_of
from api.page.render import VIEWS
from planner.errors import InvalidInput
from planner.plans.fleet_request import FleetRequest
from planner.scenario import Scenario
from tests.scripts import ROOT

BASE = {"model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "h100-sxm5"}
COUNTS = st.integers(1, 512)
FIELDS = {
    "tp": COUNTS,
    "replicas": COUNTS,
    "batch": st.lists(COUNTS, min_size=1, max_size=4, unique=True).map(sorted),
    "context": st.lists(st.integers(1, 10**6), min_size=1, max_size=3, unique=True).map(sorted),
    "weights": st.sampled_from(["bf16", "fp8"]),
    "engine": st.sampled_from(["vllm", "sglang"]),
    "tpot_ms": st.floats(1, 1e4),
    "memory_fraction": st.floats(0.1, 0.99),
    "prefix_caching": st.booleans(),
    "speculation": st.sampled_from([{"drafts": 1}, {"drafts": 3, "accepted": 2.25}]),
}
LOADS = [
    {"concurrency": 8, "isl": 1024, "osl": 256},
    {"users": 100, "think_time_s": 5.0, "isl": {"lognormal": {"mean": 900.0, "cv": 0.6}}, "osl": 9},
    {"requests_per_s": 2.5, "isl": {"uniform": {"low": 10.0, "high": 90.0}}, "osl": 100},
    {"concurrency": 4, "isl": 64, "osl": 64, "disaggregated": {"tp": 4, "busy": 0.7}},
]


@given(st.fixed_dictionaries({}, optional=FIELDS))
def test_a_scenario_fills_the_form_that_makes_it(fields: dict[str, Any]) -> None:
    scenario = Scenario(**BASE, **fields)
    filled = read(texts_of_scenario(scenario).items())
    assert filled.errors == {}
    assert filled.scenario == scenario


@pytest.mark.parametrize("load", LOADS)
def test_so_do_its_requests(load: dict[str, Any]) -> None:
    scenario = Scenario(**BASE, **load)
    filled = read(texts_of_scenario(scenario).items())
    assert filled.errors == {}
    assert filled.scenario == scenario


def test_texts_by_hand() -> None:
    scenario = Scenario(
        **BASE, batch=[1, 8], isl={"uniform": {"low": 1, "high": 9}}, osl=4, users=2
    )
    texts = texts_of_scenario(scenario)
    assert texts["batch"] == "1,8"
    assert texts["isl"].startswith("uniform:1")
    assert (texts["osl"], texts["users"]) == ("4", "2")
    assert "tp" not in texts  # what was not asked stays open


@pytest.mark.parametrize(
    ("text", "value"), [("vllm", "vllm"), ("vllm, sglang", ["vllm", "sglang"]), ("fp8,", "fp8,")]
)
def test_names(text: str, value: Any) -> None:
    assert names(text) == value


def test_rates_may_stand_in_lines() -> None:
    assert rates("1, 2\n3,\n4") == ["1", "2", "3", "4"]


@pytest.mark.parametrize("text", ["@/etc/passwd", "@", "@lengths.txt"])
def test_no_file_of_the_service_is_read(text: str) -> None:
    with pytest.raises(InvalidInput, match="files are not read here"):
        tokens(text)


def test_what_is_wrong_is_told_by_field() -> None:
    long = "1," * MOST_CHARACTERS
    texts = {"isl": "@x", "speed": "1", "requests_per_s_by_window": long}
    values, errors = values_of(texts, FleetRequest.model_fields, {"isl": tokens})
    assert values == {}
    assert errors["isl"].startswith("isl: files are not read here")
    assert errors[""].startswith("speed: unknown field; accepted: ")
    assert errors["requests_per_s_by_window"].endswith(f"accepted: {MOST_CHARACTERS} characters")


def test_every_view_has_its_screenshots() -> None:
    """At three widths in light and dark, at a size a repository can hold."""
    folder = ROOT / "docs/screenshots"
    names = {path.stem for path in folder.iterdir()}
    views = [name.lower() for _, name in VIEWS]
    wanted = {f"{v}-{w}-{t}" for v in views for w in (390, 1280, 2560) for t in ("light", "dark")}
    assert names == wanted
    assert sum(path.stat().st_size for path in folder.iterdir()) < 3_000_000
