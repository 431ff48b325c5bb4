"""A scenario as a form and as the query of an address: its fields, their labels, their texts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pydantic import ValidationError

from api.page.reading import values_of
from planner.errors import faults
from planner.scenario import EngineSettings, Scenario

EXAMPLE = {
    "model": "meta-llama/Llama-3.1-70B-Instruct",
    "gpu": "h100-sxm5",
    "tp": "4",
    "context": "8k",
}
"""What the page shows before anything is chosen."""


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
            Input("users", "Users", "of all replicas", numeric=True),
            Input("think_time_s", "Think time", "s"),
            Input("requests_per_s", "Requests", "per second"),
            Input("arrival_cv", "Arrival spread", "cv"),
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
            Input("e2e_ms", "Whole request at most", "ms"),
            Input("tokens_per_s_per_user", "Tokens/s per user at least"),
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
    known = [each for each in Scenario.model_fields if each not in HIDDEN[3:]]
    values, filled.errors = values_of(filled.texts, Scenario.model_fields, known=known)
    if filled.errors:
        return filled
    try:
        filled.scenario = Scenario(**values)
    except ValidationError as error:
        filled.errors = {name.partition(".")[0]: text for name, text in faults(error)}
    return filled
