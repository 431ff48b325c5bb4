"""How engines are started, as data: programs, images, and the scenario field each argument is."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

_DATA = Path(__file__).with_name("data")
_TAG = re.compile(r"(?:v|b|server-cuda-b)?(\d+(?:\.\d+)+[\w.]*|\d{4,5})(?:$|[-_])")


@dataclass(frozen=True, slots=True, eq=False)
class EngineStart:
    """One engine's row of `data/engines.json`."""

    id: str
    start: tuple[tuple[str, ...], ...]
    """Words a command line begins with."""
    images: tuple[str, ...]
    image: str
    write: tuple[str, ...]
    model: tuple[str, ...]
    """Arguments that name the model."""
    port: int
    health: str
    host: tuple[str, str]
    port_argument: str
    split: Mapping[str, str]
    fields: tuple[Mapping[str, Any], ...]
    speculation: Mapping[str, Any]
    bench: str
    entrypoint: bool = False
    """Whether its image starts the server, so that a container's arguments are the server's."""
    dashes: bool = False
    """Whether underscores and hyphens are the same in its flags."""
    abbreviations: bool = False
    """Whether a flag may be shortened as long as it is unique, as argparse has it."""
    underscores: bool = False
    """Whether its flags are spelled with underscores."""
    caches_prefixes: bool = True
    """Whether it caches prefixes unless told otherwise."""
    length_of_all: bool = False
    """Whether its longest context is that of all sequences together."""
    model_place: str = "option"
    model_argument: str = ""
    image_unversioned: str = ""
    more_arguments: tuple[Sequence[str], ...] = ()
    """Name, type and flag of arguments that its package defines elsewhere (from memory)."""
    config: Mapping[str, Any] = field(default_factory=dict)
    lora: Mapping[str, Any] = field(default_factory=dict)
    roles: Mapping[str, Any] = field(default_factory=dict)
    multinode: Mapping[str, Any] = field(default_factory=dict)
    dynamo: Mapping[str, str] = field(default_factory=dict)

    @property
    def used(self) -> frozenset[str]:
        """Arguments that a scenario's fields depend on."""
        used = {a for row in self.fields for a in row["arguments"]}
        used |= {row[key] for row in self.fields for key in ("with", "twin") if key in row}
        used |= set(self.split.values()) | {row[0] for row in self.speculation["drafts"]}
        used |= {self.speculation.get("needs"), self.roles.get("argument")} - {None}
        return frozenset(used | {v for v in self.lora.values() if isinstance(v, str)})


@cache
def read_facts(name: str) -> dict[str, Any]:
    """Return a parsed file of the data folder."""
    content: dict[str, Any] = json.loads((_DATA / name).read_text("utf-8"))
    return content


@cache
def engine_facts(engine: str) -> EngineStart:
    """Return how an engine is started. Raises KeyError for one without a row."""
    row = read_facts("engines.json")["engines"][engine]
    lists = ("start", "images", "write", "model", "fields", "more_arguments", "host")
    values = {key: tuple(row[key]) for key in lists if key in row}
    values["start"] = tuple(tuple(words) for words in row["start"])
    return EngineStart(id=engine, **{**row, **values})


@cache
def started_engines() -> tuple[str, ...]:
    """Return the engines that have a row."""
    return tuple(read_facts("engines.json")["engines"])


def image_of(text: str) -> tuple[str | None, str | None]:
    """Return the engine and the version that a container image names; None where it does not.

    >>> image_of("docker.io/vllm/vllm-openai:v0.33.0")
    ('vllm', '0.33.0')
    """
    name, _, tag = text.partition("@")[0].rpartition(":")
    if not name or "/" in tag:
        name, tag = text.partition("@")[0], ""
    path = name.lower()
    matches = [
        (len(known), engine)
        for engine in started_engines()
        for known in engine_facts(engine).images
        if path == known or path.endswith(f"/{known}") or path.rpartition("/")[2] == known
    ]
    if not matches:
        return None, None
    version = _TAG.search(tag)
    own = path.rpartition("/")[2] in read_facts("engines.json")["own_versions"]
    return max(matches)[1], version[1] if version and not own else None


def image_for(engine: str, version: str | None, newest: str) -> str:
    """Return the image to start, of a version or of the newest that was read."""
    facts = engine_facts(engine)
    if version is None and facts.image_unversioned:
        return facts.image_unversioned
    return facts.image.format(version=(version or newest).lstrip("vb"))
