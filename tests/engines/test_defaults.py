"""The committed defaults of releases: complete, in order, and what a plan takes them for."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest

from planner.engines.defaults import read_range, release_of
from planner.engines.names import FOLDER, engine_data, engine_names
from planner.engines.versions import numbers, version_of
from planner.fitting.committed import committed_rows
from planner.runs.startups import StartUp, predict_start

FACTS = sorted((FOLDER / "defaults").glob("*-*.json"))
PARSERS = sorted((FOLDER / "parsers").glob("*.json"))


def content(path: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return read


@pytest.mark.parametrize("path", FACTS, ids=lambda path: path.stem)
def test_a_file_of_facts_is_complete(path: Path) -> None:
    facts = content(path)
    assert path.stem == f"{facts['engine']}-{facts['version']}"
    assert facts["engine"] in engine_names()
    assert re.fullmatch(r"20\d\d-\d\d", facts["released"])
    for argument in facts["arguments"].values():
        assert {"type", "default", "file"} <= argument.keys()
    for rule in facts["rules"].values():
        assert rule["rows"]
        assert all("value" in row for row in rule["rows"])
    later = [numbers(version) for version in (facts["version"], *facts["same_in"])]
    assert later == sorted(later)


@pytest.mark.parametrize("path", PARSERS, ids=lambda path: path.stem)
def test_a_parser_has_a_type_and_a_default_for_every_argument(path: Path) -> None:
    parser = content(path)
    assert len(parser["arguments"]) >= 32  # as trtllm-serve 1.2.0 has
    for row in parser["arguments"].values():
        assert isinstance(row[0], str)
        assert len(row) in (2, 3)


@pytest.mark.parametrize(
    ("path", "arguments"),
    # counted in the packages: fields of EngineArgs, AsyncEngineArgs and the front end; ServerArgs
    [
        ("vllm-0.33.0", 319),
        ("sglang-0.5.23", 543),
        ("lmdeploy-0.18.0", 77),
        ("trtllm-1.4.0", 50),
        ("trtllm-1.3.0", 47),
        ("trtllm-1.2.0", 32),
    ],
)
def test_whole_parsers_are_whole(path: str, arguments: int) -> None:
    assert len(content(FOLDER / "parsers" / f"{path}.json")["arguments"]) == arguments


def test_released_in_the_order_of_versions() -> None:
    for engine in engine_names():
        files = [content(path) for path in FACTS if content(path)["engine"] == engine]
        files.sort(key=lambda facts: numbers(facts["version"]))
        months = [facts["released"] for facts in files]
        assert months == sorted(months), engine


def test_no_two_neighbours_say_the_same() -> None:
    for engine in engine_names():
        files = [content(path) for path in FACTS if content(path)["engine"] == engine]
        files.sort(key=lambda facts: numbers(facts["version"]))
        for before, after in itertools.pairwise(files):
            old, new = (
                {
                    **{name: (a["type"], a["default"]) for name, a in facts["arguments"].items()},
                    **{name: rule["rows"] for name, rule in facts["rules"].items()},
                }
                for facts in (before, after)
            )
            assert old != new, (before["version"], after["version"])


def test_every_argument_of_the_data_is_read_of_some_release() -> None:
    for name, entry in engine_data()["engines"].items():
        wanted = {f["argument"] for f in entry["figures"].values() if "argument" in f}
        known = {a for p in FACTS for a in content(p)["arguments"] if p.stem.startswith(f"{name}-")}
        rules = {a for p in FACTS for a in content(p)["rules"] if p.stem.startswith(f"{name}-")}
        assert wanted <= known | rules, name


@pytest.mark.parametrize(
    ("engine", "version", "release"),
    [
        ("vllm", None, "0.33.0"),
        ("vllm", "0.33", "0.33.0"),
        ("vllm", "1.0", "0.33.0"),
        ("vllm", "0.22.0", "0.22.0"),
        ("vllm", "0.22.1", "0.22.0"),
        ("vllm", "0.9.1", "0.11.0"),
        ("vllm", "2026-04", "0.20.0"),
        ("vllm", "2026-05", "0.20.0"),
        ("vllm", "2024-01", "0.11.0"),
        ("sglang", "0.5.8.post1", "0.5.8"),
        ("sglang", "nightly-dev-20260402-d7256eb6", "0.5.7"),
        ("trtllm", "1.0.0rc3", "1.0.0"),
        ("trtllm", "1.2.0rc6.post2", "1.2.0"),
        ("llama.cpp", "b6118", "9445"),
        ("llama.cpp", None, "11312"),
    ],
)
def test_which_release_holds_at_a_version(engine: str, version: str | None, release: str) -> None:
    held = release_of(engine, version_of(version))
    assert held is not None
    assert held.version == release


def test_an_engine_whose_packages_were_not_read_has_none() -> None:
    assert release_of("neutral", None) is None
    assert read_range("neutral") is None
    assert read_range("vllm") == ("0.11.0", "0.33.0")


@pytest.mark.parametrize(
    ("row", "tokens"),
    # 0.22.0 and a build of 2026-06, both without a utilisation of their own (club-3090)
    [("M0177", 447_199), ("M0179", 426_382)],
)
def test_start_ups_with_the_default_fraction_since_0_20(row: str, tokens: int) -> None:
    inputs = next(r.inputs for r in committed_rows("memory") if r.inputs["row"] == row)
    predicted = predict_start(StartUp.of(inputs)).kv_tokens
    assert predicted == pytest.approx(tokens, rel=0.03)
