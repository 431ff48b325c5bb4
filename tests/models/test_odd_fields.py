"""Whatever a field holds, an importer answers or refuses with a ConfigError."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from planner import models
from planner.models import ConfigError, describe
from planner.models.huggingface import import_config

ODD = (None, -1, 0, float("nan"), "x", [], {}, 1e30, 7.5, [None], [{}])
DATA = Path(models.__file__).parent / "data"


def one_config_a_family() -> dict[str, dict[str, Any]]:
    configs: dict[str, dict[str, Any]] = {}
    for file in sorted(DATA.glob("*.json")):
        if file.name == "index.json":
            continue
        for entry in json.loads(file.read_text(encoding="utf-8"))["models"]:
            configs.setdefault(f"{entry['family']}-{file.stem}", entry["config"])
    return configs


def spoiled(config: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for key, value in config.items():
        yield {name: value for name, value in config.items() if name != key}
        yield from ({**config, key: odd} for odd in ODD)
        if isinstance(value, dict):
            yield from ({**config, key: inner} for inner in spoiled(value))


@pytest.mark.parametrize("config", one_config_a_family().values(), ids=one_config_a_family())
def test_answers_or_refuses(config: dict[str, Any]) -> None:
    refusals = []
    for odd in spoiled(config):
        try:
            describe(import_config(odd))
        except ConfigError as error:
            refusals.append(str(error))
    assert refusals
    assert not [text for text in refusals if "\n" in text]
