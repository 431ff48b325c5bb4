"""The command line that starts a scenario's engine, from the same rows that read one."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from planner.handover.arguments import Argument, ArgumentParser, parser_of
from planner.handover.facts import EngineStart, engine_facts, started_engines
from planner.handover.fields import arguments_for, is_key
from planner.handover.reading import PLACED, has_experts
from planner.handover.refusal import Unwritable
from planner.handover.split import write_split
from planner.models import get_model
from planner.models.spec import ModelSpec
from planner.scenario import Scenario

CONFIG_PATH = "/tmp/engine.yaml"  # noqa: S108 - in the container, whose only user the server is


@dataclass(frozen=True, slots=True)
class Launch:
    """How one worker is started."""

    facts: EngineStart
    parser: ArgumentParser
    model: str
    role: str
    scenario: Scenario
    """With the split of this worker."""
    values: Mapping[str, Any]
    """Arguments of the command line; dotted names are keys of the engine's own YAML."""
    notes: tuple[str, ...] = field(default=())

    @property
    def gpus(self) -> int:
        """GPUs of one replica."""
        return self.scenario.tp * self.scenario.pp * self.scenario.attention_dp

    @property
    def config(self) -> dict[str, Any]:
        """Return the engine's own YAML, empty where flags say all."""
        content: dict[str, Any] = {}
        for name, value in self.values.items():
            if name in self.parser.arguments:
                continue
            key, dot, part = name.partition(".")
            if dot:
                inner = content.setdefault(key, {})
                if isinstance(inner, dict):
                    inner[part] = value
            else:
                content[key] = value
        return content

    def words(self, more: Mapping[str, Any] | None = None) -> list[str]:
        """Return the arguments as words, those of `more` last."""
        words: list[str] = []
        for name, value in {**self.values, **(more or {})}.items():
            if name in self.parser.arguments:
                words += _words(self.parser.arguments[name], value)
        if self.config:
            words += [self.parser.arguments[self.facts.config["argument"]].flag, CONFIG_PATH]
        return words

    def command(self, program: tuple[str, ...] | None = None, flag: str = "") -> list[str]:
        """Return the program and its model; `flag` names the model where the program wants it."""
        start = list(program or self.facts.write)
        if flag:
            return [*start, flag, self.model]
        if self.facts.model_place == "positional":
            return [*start, self.model]
        name = self.facts.model_argument or self.facts.model[0]
        return [*start, self.parser.arguments[name].flag, self.model]


def _words(argument: Argument, value: Any) -> list[str]:
    if argument.is_switch:
        if value is True:
            return [argument.flag]
        off = next((f for f in argument.flags if f.startswith("--no-")), "")
        return [off or argument.flag.replace("--", "--no-", 1)]
    if isinstance(value, Mapping):
        return [argument.flag, json.dumps(value, separators=(",", ":"))]
    return [argument.flag, str(value)]


def launch(scenario: Scenario, role: str = "both", *, handles_nodes: bool = False) -> Launch:
    """Return how a worker of a scenario is started.

    `handles_nodes` says that the object's controller joins the hosts of a replica. Raises
    Unwritable naming the field that the engine's command line cannot say.
    """
    if scenario.engine is None:
        accepted = ", ".join(started_engines())
        raise Unwritable(f"engine: none is named; accepted: {accepted}")
    if scenario.engine not in started_engines():
        raise Unwritable(
            f"engine: {scenario.engine} is not started here; accepted: "
            f"{', '.join(started_engines())}"
        )
    facts = engine_facts(scenario.engine)
    parser = parser_of(facts.id, scenario.engine_version)
    spec = get_model(scenario.model)
    placed = _placed(scenario, role)
    notes: list[str] = []
    fields = placed.model_dump(exclude_none=True)
    if handles_nodes or placed.nodes == 1:
        fields.pop("nodes", None)
    elif "nodes" in fields and not facts.multinode:
        raise Unwritable(f"nodes: {placed.nodes} with {facts.id}; accepted: 1")
    gpus = placed.tp * placed.pp * placed.attention_dp
    values = write_split(facts, parser, placed, has_experts(spec))
    values |= arguments_for(facts, parser, fields, gpus)
    if placed.lora:
        values |= _lora(facts, placed)
    if placed.speculation and placed.speculation.drafts and role != "prefill":
        values |= _speculation(facts, placed, spec, notes)
    if role != "both":
        values |= _role(facts, role)
    values |= {facts.host[0]: facts.host[1], facts.port_argument: facts.port}
    values = {k: v for k, v in values.items() if k in parser.arguments or is_key(facts, k)}
    return Launch(
        facts, parser, _model_name(scenario, spec, facts), role, placed, values, tuple(notes)
    )


def _placed(scenario: Scenario, role: str) -> Scenario:
    """Return the scenario with the split of a worker of this role."""
    if role != "prefill" or scenario.disaggregated is None:
        return scenario
    own = scenario.disaggregated
    changes = {n: getattr(own, n) for n in PLACED if getattr(own, n) is not None}
    return scenario.model_copy(update={**changes, "decode_cp": None, "nodes": None})


def _model_name(scenario: Scenario, spec: ModelSpec, facts: EngineStart) -> str:
    name = scenario.model if isinstance(scenario.model, str) else spec.id
    if "/" not in name:
        name = spec.id
    if facts.model_argument == "hf_repo":
        name = name if name.upper().endswith("GGUF") else f"{name}-GGUF"
        return f"{name}:{scenario.weights.upper()}" if scenario.weights else name
    return name


def _lora(facts: EngineStart, scenario: Scenario) -> dict[str, Any]:
    row, lora = facts.lora, scenario.lora
    if not row or lora is None:
        raise Unwritable(f"lora: not of {facts.id} here; accepted: null")
    values: dict[str, Any] = {row["adapters"]: lora.adapters, row["rank"]: lora.rank}
    return values | ({row["switch"]: True} if row["switch"] else {})


def _speculation(
    facts: EngineStart, scenario: Scenario, spec: ModelSpec, notes: list[str]
) -> dict[str, Any]:
    drafts = scenario.speculation.drafts if scenario.speculation else 0
    row = facts.speculation["mtp" if spec.mtp_params else "other"]
    if row is None:
        raise Unwritable(f"speculation: {facts.id} needs a draft model that no field names")
    if not spec.mtp_params:
        notes.append(
            f"{spec.id} has no layers that draft: drafts are looked up in the text (n-grams); "
            "name a draft model instead if there is one"
        )

    def filled(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: filled(inner) for key, inner in value.items()}
        return {"drafts": drafts, "drafts+1": drafts + 1}.get(value, value)

    return {name: filled(value) for name, value in row.items()}


def _role(facts: EngineStart, role: str) -> dict[str, Any]:
    roles = facts.roles
    if not roles:
        raise Unwritable(f"disaggregated: not of {facts.id}; accepted: null")

    def filled(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: filled(inner) for key, inner in value.items()}
        return roles[role] if value == "role" else value

    return {name: filled(value) for name, value in roles["write"].items()}


def joined(words: list[str]) -> str:
    """Return words as a shell takes them, one option a line."""
    lines: list[list[str]] = [[]]
    for word in words:
        if word.startswith("-") and not word.lstrip("-").replace(".", "").isdigit():
            lines.append([])
        lines[-1].append(word if word.startswith("$") else shlex.quote(word))
    return " \\\n  ".join(" ".join(line) for line in lines if line)
