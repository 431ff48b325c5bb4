"""A scenario as a form and as the query of an address: its fields, their labels, their texts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from pydantic import ValidationError

from planner.commands.loads import disaggregated, graphs, lengths, lora, speculation
from planner.commands.numbers import whole, wholes
from planner.errors import InvalidInput, faults, one_line
from planner.scenario import EngineSettings, Scenario

EXAMPLE = {
    "model": "meta-llama/Llama-3.1-70B-Instruct",
    "gpu": "h100-sxm5",
    "tp": "4",
    "context": "8k",
}
"""What the page shows before anything is chosen."""
MOST_CHARACTERS = 2_000
"""Of a field's text."""


@dataclass(frozen=True, slots=True)
class Input:
    """How one field of a scenario is shown."""

    name: str
    label: str
    unit: str = ""
    hint: str = ""
    title: str = ""
    """What it means, in full."""
    numeric: bool = False
    """Whether a reader may step it with the arrow keys."""


GROUPS: tuple[tuple[str, tuple[Input, ...]], ...] = (
    (
        "Split",
        (
            Input("tp", "Tensor parallel", "GPUs", numeric=True),
            Input("pp", "Pipeline stages", "GPUs", numeric=True),
            Input("ep", "Expert parallel", "ranks", numeric=True),
            Input("attention_dp", "Attention data parallel", "ranks", numeric=True),
            Input("replicas", "Replicas", "", numeric=True),
        ),
    ),
    (
        "Formats and engine",
        (
            Input("weights", "Weights", "", "the checkpoint's own"),
            Input("kv", "KV cache", "", "the engine's default"),
            Input("engine", "Engine", "", "none: physics alone"),
            Input("engine_version", "Engine version", "", "the newest known"),
        ),
    ),
    (
        "Decode",
        (
            Input("batch", "Batch", "sequences", "1,8,64 or 1-64"),
            Input("context", "Context", "tokens", "8k or 1k,8k,32k"),
        ),
    ),
    (
        "Requests",
        (
            Input("concurrency", "Concurrency", "clients", numeric=True),
            Input("isl", "Input length", "tokens", "1k, lognormal:1024:0.6, uniform:100:2000"),
            Input("osl", "Output length", "tokens", "likewise"),
            Input("prefix_hit", "Prefix found in cache", "share 0 to 1"),
            Input("speculation", "Speculation", "drafts[:accepted]", "1 or 1:1.8"),
            Input("disaggregated", "Prefill apart", "", "same, or tp=4:busy=0.7"),
        ),
    ),
    (
        "Limits",
        (
            Input("tpot_ms", "TPOT at most", "ms"),
            Input("ttft_ms", "TTFT at most", "ms"),
            Input("percentile", "At percentile", "of the uncertainty"),
        ),
    ),
)
HIDDEN = ("model", "gpu", "name", "tags", "notes")
"""Fields that a view shows in its own way, or not at all."""


def groups() -> list[tuple[str, tuple[Input, ...]]]:
    """Return the fields to show by group; those without a place of their own come last."""
    placed = {each.name for _, inputs in GROUPS for each in inputs} | {*HIDDEN}
    settings = tuple(_plain(name) for name in EngineSettings.model_fields)
    rest = tuple(
        _plain(name)
        for name in Scenario.model_fields
        if name not in placed and name not in EngineSettings.model_fields
    )
    known = [
        (title, tuple(each for each in inputs if each.name in Scenario.model_fields))
        for title, inputs in GROUPS
    ]
    return [*known, ("Engine limits", settings), *([("More", rest)] if rest else [])]


def _plain(name: str) -> Input:
    """An input that says of itself what the scenario says of the field."""
    description = Scenario.model_fields[name].description or ""
    return Input(name, name.replace("_", " ").capitalize(), title=description)


def tokens(text: str) -> Any:
    """Return a length or how it is spread; files are not opened. Raises InvalidInput."""
    if text.startswith("@"):
        raise InvalidInput(
            "files are not read here; accepted: TOKENS, lognormal:MEAN:CV, uniform:LOW:HIGH"
        )
    return lengths(text)


READERS: Mapping[str, Callable[[str], Any]] = {
    "batch": wholes,
    "context": wholes,
    "isl": tokens,
    "osl": tokens,
    "speculation": speculation,
    "disaggregated": disaggregated,
    "lora": lora,
    "graphs": graphs,
}
"""Fields whose text is not a word or a number."""


@dataclass(slots=True)
class Filled:
    """A form as it was sent: texts by field, the scenario they make, and what is wrong."""

    texts: dict[str, str]
    scenario: Scenario | None = None
    errors: dict[str, str] = field(default_factory=dict)
    """By field; the empty name is the form as a whole."""


def read(query: Iterable[tuple[str, str]]) -> Filled:
    """Return what a query says of a scenario; texts that are empty count as left out."""
    filled = Filled({name: text.strip() for name, text in query if text.strip()})
    values: dict[str, Any] = {}
    for name, text in filled.texts.items():
        if name not in Scenario.model_fields:
            known = ", ".join(each for each in Scenario.model_fields if each not in HIDDEN[3:])
            filled.errors[""] = f"{name[:40]}: unknown field; accepted: {known}"
        elif len(text) > MOST_CHARACTERS:
            filled.errors[name] = f"{name}: too long; accepted: {MOST_CHARACTERS} characters"
        else:
            try:
                values[name] = _value(name, text)
            except InvalidInput as error:
                filled.errors[name] = f"{name}: {one_line(error)}"
    if filled.errors:
        return filled
    try:
        filled.scenario = Scenario(**values)
    except ValidationError as error:
        filled.errors = {name.partition(".")[0]: text for name, text in faults(error)}
    return filled


def _value(name: str, text: str) -> Any:
    if name in READERS:
        return READERS[name](text)
    if _takes_text(Scenario.model_fields[name].annotation):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return _whole_or_text(text)


def _whole_or_text(text: str) -> Any:
    """A number as people write it; anything else the scenario refuses in its own words."""
    try:
        return whole(text)
    except InvalidInput:
        return text


def _takes_text(annotation: Any) -> bool:
    return annotation is str or any(map(_takes_text, get_args(annotation)))
