"""Spoiled results are answered or refused in one line, never with a traceback."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from planner.benchmarks import Context, read_text

SAMPLES = Path(__file__).with_name("samples")
ODD: tuple[Any, ...] = (
    None,
    "",
    "x",
    -1,
    0,
    1e308,
    float("nan"),
    [],
    [None],
    {},
    {"a": []},
    True,
    "9" * 400,
    10**400,
)
CONTEXT = Context(model="Qwen/Qwen3-8B", gpu="h100-sxm5", tp=1, engine="vllm")


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every path into nested objects and lists."""
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [path, *(place for key, child in inner for place in places(child, (*path, key)))]


def spoiled(value: Any, path: tuple[Any, ...], odd: Any) -> Any:
    if not path:
        return odd
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = spoiled(value[path[0]], path[1:], odd)
    return copy


def refused_in_one_line(text: str) -> None:
    said = ""
    try:
        read_text(text, CONTEXT)
    except ValueError as error:
        said = str(error)
    assert "\n" not in said
    assert len(said) < 1000


@pytest.mark.parametrize(
    "name", sorted(path.name for path in SAMPLES.iterdir() if path.suffix.startswith(".json"))
)
def test_every_value_spoiled(name: str) -> None:
    text = (SAMPLES / name).read_text(encoding="utf-8")
    document = json.loads(text if name.endswith("json") else text.splitlines()[0])
    for path in places(document):
        for odd in ODD:
            refused_in_one_line(json.dumps(spoiled(document, path, odd)))


@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.iterdir()))
def test_text_cut_and_garbled(name: str) -> None:
    text = (SAMPLES / name).read_text(encoding="utf-8")
    chance = random.Random(7)  # noqa: S311 - no secret
    for _ in range(60):
        cut = text[: chance.randrange(len(text))]
        refused_in_one_line(cut)
        at = chance.randrange(len(text))
        refused_in_one_line(text[:at] + chance.choice('{}[]",:\n0x') + text[at + 1 :])
