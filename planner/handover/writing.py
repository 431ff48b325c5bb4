"""From a scenario to the command or the objects that start it, checked by reading them back."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from planner.engines.versions import version_of
from planner.errors import InvalidInput
from planner.handover.arguments import parser_versions
from planner.handover.autoscaling import autoscaler
from planner.handover.facts import engine_facts, started_engines
from planner.handover.launching import CONFIG_PATH, Launch, joined, launch
from planner.handover.naming import model_named
from planner.handover.notes import ANNOTATION
from planner.handover.refusal import Unreadable, Unwritable
from planner.handover.sources import read_files
from planner.handover.written_objects import KINDS, WorkerPart
from planner.plans.planning import plan
from planner.scenario import Scenario
from planner.workload.fields import Workload

WRITTEN = ("command", *KINDS)
"""What a scenario is written as."""
LOAD = (
    *("gpu", "batch", "context", "concurrency", "name", "tags", "notes"),
    *Workload.model_fields,
)
"""Fields that no argument says: they are noted beside it, and read back from there."""
NOTED = (
    *LOAD,
    *("model", "engine_version", "weights", "kv", "graphs", "vision", "lora", "layers_on_gpu"),
    *("prefix_caching", "chunked_prefill", "kv_offload_bytes", "speculation", "disaggregated"),
)
"""The same, and those that an engine's arguments cannot always say."""


@dataclass(frozen=True, slots=True)
class Written:
    """A text that starts a scenario, and what its reader must know."""

    text: str
    scenario: Scenario
    """As it is read back: with the version of the image where one is pinned."""
    notes: tuple[str, ...]


def write(scenario: Scenario, kind: str = "command", name: str | None = None) -> Written:
    """Return what starts a scenario, as a command line or as one of the objects.

    What is written is read back: it is the same scenario, or the field that it cannot hold is
    refused. Raises Unwritable, or another InvalidInput that names the field.
    """
    if kind not in WRITTEN:
        raise Unwritable(f"as: {kind[:40]!r} is not written; accepted: {', '.join(WRITTEN)}")
    scenario = _pinned(scenario, kind)
    stated = scenario.model_dump(mode="json")
    load = {name: stated[name] for name in LOAD if stated[name] != _default(name)}
    text, notes = _text(scenario, kind, name, {})
    question = load | _unsaid(scenario, text, kind, {**load, "model": scenario.model})
    text, _ = _text(scenario, kind, name, question)
    for field in _unsaid(scenario, text, kind, {}):
        raise Unwritable(f"{field}: cannot be said as {kind} of {scenario.engine}")
    if "weights" in question:
        notes = (*notes, f"a checkpoint in {scenario.weights} is needed where one is not named")
    return Written(text, scenario, notes)


def with_autoscaler(written: Written, form: str, most_replicas: int | None = None) -> Written:
    """Return a written Deployment with an autoscaler beside it. Raises Unwritable for others."""
    documents = list(yaml.safe_load_all(written.text))
    first = documents[0] if isinstance(documents[0], dict) else {}
    if first.get("kind") != "Deployment" or written.scenario.disaggregated:
        raise Unwritable("autoscale: accepted: as deployment, without disaggregated")
    name = first["metadata"]["name"]
    content, note = autoscaler(written.scenario, form, name, most_replicas)
    text = f"{written.text}---\n{_dump(content)}"
    return Written(text, written.scenario, (*written.notes, note))


def _default(name: str) -> Any:
    return Scenario.model_fields[name].get_default(call_default_factory=True)


def _pinned(scenario: Scenario, kind: str) -> Scenario:
    """Return a scenario with the version that the object's image pins.

    Raises Unwritable where the object does not hold the scenario.
    """
    if kind == "command" or scenario.engine not in started_engines():
        return scenario
    row, facts = KINDS[kind], engine_facts(scenario.engine)
    if facts.id not in row.engines:
        raise Unwritable(f"engine: {facts.id} as {kind}; accepted: {', '.join(row.engines)}")
    if row.one_node and (scenario.nodes or 1) > 1:
        several = ", ".join(n for n, k in KINDS.items() if not k.one_node)
        raise Unwritable(f"nodes: {scenario.nodes} as {kind}; accepted: 1, or as {several}")
    if (scenario.nodes or 1) > 1 and "launcher" in facts.multinode and not row.handles_nodes:
        joining = [n for n, k in KINDS.items() if k.handles_nodes and facts.id in k.engines]
        accepted = ", ".join(["command", *joining])
        raise Unwritable(
            f"nodes: {scenario.nodes} of {facts.id} as {kind}; accepted: 1, or as {accepted}"
        )
    if scenario.disaggregated and row.one_role:
        several = ", ".join(n for n, k in KINDS.items() if not k.one_role)
        raise Unwritable(f"disaggregated: as {kind}; accepted: null, or as {several}")
    if row.own_image or (scenario.engine_version is None and facts.image_unversioned):
        return scenario
    version = scenario.engine_version or parser_versions(facts.id)[-1]
    read = version_of(version)
    if read is None or read[0] == "date":
        raise Unwritable(f"engine_version: {version} names no image; accepted: a release")
    return scenario.model_copy(update={"engine_version": version.lstrip("vb")})


def _text(
    scenario: Scenario, kind: str, name: str | None, question: Mapping[str, Any]
) -> tuple[str, tuple[str, ...]]:
    handles = kind != "command" and KINDS[kind].handles_nodes
    roles = ("decode", "prefill") if scenario.disaggregated else ("both",)
    launches = [launch(scenario, role, handles_nodes=handles) for role in roles]
    notes = list(dict.fromkeys(note for one in launches for note in one.notes))
    if scenario.disaggregated and kind in {"command", "deployment", "leaderworkerset", "compose"}:
        notes.append("a router that sends prompts to the prefill workers is needed beside these")
    if kind == "command":
        return _command(scenario, launches, question), tuple(notes)
    base = label(name or scenario.name or launches[0].model)
    parts = [
        WorkerPart(
            one,
            _prefill_replicas(scenario) if one.role == "prefill" else scenario.replicas,
            base if one.role == "both" else f"{base[:54]}-{one.role}",
        )
        for one in launches
    ]
    documents = KINDS[kind].write(base, parts)
    if question:
        _note(documents, question)
    head = _comment(question) if question and "kind" not in documents[0] else ""
    return head + "---\n".join(_dump(one) for one in documents), tuple(notes)


def label(text: str) -> str:
    """Return a name as Kubernetes takes it: lower-case letters, digits and hyphens, at most 63.

    >>> label("meta-llama/Llama-3.1-8B")
    'llama-3-1-8b'
    """
    short = re.sub(r"[^a-z0-9]+", "-", text.rpartition("/")[2].lower()).strip("-")
    return (short if short[:1].isalpha() else f"m-{short}")[:63].rstrip("-")


def _prefill_replicas(scenario: Scenario) -> int:
    """Return the prefill workers that feed the decode workers, by the plan."""
    serving = plan(scenario).serving
    state = serving.disaggregated if serving else None
    return max(1, math.ceil(state.prefill_per_decode * scenario.replicas)) if state else 1


def _comment(question: Mapping[str, Any]) -> str:
    return f"# decode-planner: {json.dumps(question, separators=(',', ':'))}\n"


def _note(documents: Sequence[dict[str, Any]], question: Mapping[str, Any]) -> None:
    text = json.dumps(question, separators=(",", ":"))
    for one in documents:
        if one.get("kind") not in {None, "Service"}:
            one["metadata"].setdefault("annotations", {})[ANNOTATION] = text


def _command(scenario: Scenario, launches: Sequence[Launch], question: Mapping[str, Any]) -> str:
    lines = _comment(question) if question else ""
    for one in launches:
        more: dict[str, Any] = {}
        if (scenario.nodes or 1) > 1 and "nnodes" in one.values:
            ranks = one.facts.multinode
            address = "$LEADER_ADDRESS" + ranks["address_suffix"]
            more = {ranks["rank"]: "$NODE_RANK", ranks["address"]: address}
        if scenario.replicas > 1:
            more |= _copies(scenario, one)
        if one.role != "both":
            lines += f"# {one.role}\n"
        if one.config:
            content = yaml.safe_dump(one.config, sort_keys=False)
            lines += f"cat > {CONFIG_PATH} <<'EOF'\n{content}EOF\n"
        lines += joined([*_launcher(one), *one.command(), *one.words(more)]) + "\n"
    return lines


def _launcher(one: Launch) -> list[str]:
    """Return the words that start one task for each GPU of several hosts, if an engine needs it."""
    launcher, nodes = one.facts.multinode.get("launcher"), one.scenario.nodes or 1
    if launcher is None or nodes == 1:
        return []
    text: str = launcher.format(nodes=nodes, gpus=one.gpus, gpus_of_a_node=one.gpus // nodes)
    return text.split()


def _copies(scenario: Scenario, one: Launch) -> dict[str, Any]:
    """Return the argument by which one command starts all replicas, where there is one."""
    split = one.facts.split
    name = split.get("dp")
    if name is None or name in one.values or (split["rule"] == "ranks" and scenario.ep > 1):
        raise Unwritable(
            f"replicas: {scenario.replicas} by one command of {one.facts.id}; accepted: 1"
        )
    return {name: scenario.replicas}


def _unsaid(scenario: Scenario, text: str, kind: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that reading a text does not give, as they are noted beside it.

    `options` are taken as known. Raises Unwritable for a field that must be in the arguments.
    """
    try:
        (one,) = read_files({kind: text}, options)
    except InvalidInput as error:
        raise Unwritable(f"as: {kind} cannot hold this scenario: {error}") from error
    read = one.reading.scenario.model_dump(mode="json")
    stated = scenario.model_dump(mode="json")
    unsaid = {name: value for name, value in stated.items() if value != read[name]}
    for name, value in unsaid.items():
        if name not in NOTED:
            raise Unwritable(f"{name}: {value} cannot be said as {kind} of {scenario.engine}")
    main = one.workers[one.main].model
    if options and not (main is not None and _names(main.text, scenario.model)):
        unsaid["model"] = stated["model"]
    return unsaid


def _names(text: str, model: str | dict[str, Any]) -> bool:
    """Return whether the model of a command line is read as the scenario's."""
    try:
        return model_named(text, 1)[0] == model
    except Unreadable:
        return False


def _represent_text(dumper: Any, text: str) -> Any:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_DUMPER: Any = type("Dumper", (yaml.SafeDumper,), {"ignore_aliases": lambda self, data: True})  # noqa: ARG005 - PyYAML's own signature
_DUMPER.add_representer(str, _represent_text)


def _dump(document: Mapping[str, Any]) -> str:
    text: str = yaml.dump(dict(document), Dumper=_DUMPER, sort_keys=False, width=100)
    return text
