"""From workers to a scenario: every field with where it comes from, and what was not understood."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import ValidationError

from planner.answer import Answer
from planner.deployment import deployment_of
from planner.errors import InvalidInput, named, one_line
from planner.handover.arguments import Fault
from planner.handover.fields import fields_given
from planner.handover.naming import gpu_named, model_named
from planner.handover.refusal import Unreadable
from planner.handover.split import Split, read_split
from planner.handover.workers import Worker, parse
from planner.hw import get_accelerator
from planner.models import get_model
from planner.models.spec import ModelSpec
from planner.scenario import Scenario

OriginKind = Literal["given", "noted", "option", "default", "assumed"]
PLACED = ("tp", "pp", "ep", "attention_dp")
"""Fields of a split that prefill workers may have otherwise."""


class Origin(Answer):
    """Where a field of the scenario comes from."""

    field: str
    value: Any
    source: OriginKind
    """`given` in the file, `noted` in it by `planner manifest`, an `option` of the question, the
    engine's `default` at its version, or `assumed`."""
    line: int | None = None
    text: str = ""


class NotUnderstood(Answer):
    """Something in a file that the scenario does without."""

    line: int
    text: str
    why: str


class Unused(Answer):
    """An argument that the engine takes and that no figure of the plan depends on."""

    line: int
    text: str


class Reading(Answer):
    """What a file says: a scenario, where each of its fields comes from, and the rest."""

    file: str
    line: int
    """Where the (decode) worker's command line begins."""
    kind: str
    """The object it was read from."""
    scenario: Scenario
    origins: list[Origin]
    not_understood: list[NotUnderstood]
    unused: list[Unused]


@dataclass(slots=True)
class Deployed:
    """The workers of one deployment, and the split of each as its command line says."""

    file: str
    workers: list[Worker]
    reading: Reading
    splits: list[Split]
    spec: ModelSpec
    main: int = 0
    """Index of the worker that decodes."""


@dataclass(slots=True)
class _Collected:
    """Fields of the scenario as they are collected; the first to say a field counts."""

    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, Origin] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    def put(self, name: str, value: Any, source: OriginKind, line: int | None, text: str) -> None:
        """Set a field unless it is set."""
        if name not in self.values:
            self.values[name] = value
            shown = value if not isinstance(value, Mapping) else dict(value)
            self.origins[name] = Origin(
                field=name, value=shown, source=source, line=line, text=text[:200]
            )


def deployed(file: str, workers: Sequence[Worker], options: Mapping[str, Any]) -> Deployed:
    """Return the scenario of the workers of one deployment.

    `options` are fields of the question that win over the file's. Raises Unreadable, or another
    InvalidInput that names the field, where there is no scenario.
    """
    main = next((i for i, w in enumerate(workers) if w.role == "decode"), 0)
    worker, fields = workers[main], _Collected()
    _parse_as(workers, options.get("engine_version") or worker.question.get("engine_version"))
    for name, value in options.items():
        if value is not None:
            fields.put(name, value, "option", None, "")
    spec = _model(worker, fields)
    fields.put("engine", worker.engine, "given", worker.line, worker.kind)
    if worker.version:
        fields.put("engine_version", worker.version, "given", worker.line, "image")
    moe = has_experts(spec)
    splits = [read_split(each.facts, each.given, moe, each.gpus or 0) for each in workers]
    _split_fields(fields, worker, splits[main])
    _arguments(fields, worker, spec, splits[main].gpus)
    _speculation(fields, worker)
    _lora(fields, worker)
    _prefill(fields, workers, splits, main)
    for name, value in worker.question.items():
        if name in Scenario.model_fields:
            fields.put(name, value, "noted", worker.question_line, "decode-planner")
    _gpu(fields, workers, file)
    scenario = _scenario(fields)
    for each, split in zip(workers, splits, strict=True):
        fields.faults += [*each.parsed.faults, *each.strings, *split.faults]
    faults = sorted(dict.fromkeys(fields.faults), key=lambda fault: fault.line)
    reading = Reading(
        file=file,
        line=worker.line,
        kind=worker.kind,
        scenario=scenario,
        origins=[*fields.origins.values(), *_defaults(scenario)],
        not_understood=[NotUnderstood(line=f.line, text=f.text[:200], why=f.why) for f in faults],
        unused=_unused(workers),
    )
    return Deployed(file, list(workers), reading, splits, spec, main)


def _parse_as(workers: Sequence[Worker], version: Any) -> None:
    """Read command lines whose image names no version as one that is named elsewhere."""
    for worker in workers:
        if worker.version is None and isinstance(version, str):
            parse(worker, version)


def has_experts(spec: ModelSpec) -> bool:
    """Return whether a model has routed experts."""
    return any(part.routed() for group in spec.groups for part in group.block.mlps)


def _model(worker: Worker, fields: _Collected) -> ModelSpec:
    if "model" in fields.values:
        return get_model(fields.values["model"])
    noted = worker.question.get("model")
    if noted is not None:
        fields.put("model", noted, "noted", worker.question_line, "decode-planner")
        return get_model(noted, local=False)
    if worker.model is None:
        raise Unreadable(f"line {worker.line}: no model is named; give --model")
    name, weights, exact = model_named(worker.model.text, worker.model.line)
    source: OriginKind = "given" if exact else "assumed"
    fields.put("model", name, source, worker.model.line, worker.model.text)
    if weights:
        fields.put("weights", weights, "given", worker.model.line, worker.model.text)
    return get_model(name, local=False)


def _arguments(fields: _Collected, worker: Worker, spec: ModelSpec, gpus: int) -> None:
    for item in fields_given(worker.facts, worker.given, spec, gpus):
        if isinstance(item, Fault):
            fields.faults.append(item)
        else:
            fields.put(item[0], item[1], "given", item[2].line, item[2].text)


def _split_fields(fields: _Collected, worker: Worker, split: Split) -> None:
    for name in PLACED:
        one = split.given.get(name)
        if one is not None or getattr(split, name) > 1:
            line, text = (one.line, one.text) if one else (worker.line, "GPUs of the container")
            fields.put(name, getattr(split, name), "given", line, text)
    replicas = worker.replicas * split.replicas
    if replicas > 1:
        one = split.given.get("replicas")
        line, text = (one.line, one.text) if one else (worker.replicas_line, "replicas")
        fields.put("replicas", replicas, "given", line, text)
    if worker.pods > 1:
        fields.put("nodes", worker.pods, "given", worker.line, f"{worker.pods} pods a replica")


def _speculation(fields: _Collected, worker: Worker) -> None:
    row = worker.facts.speculation
    if row.get("needs") and row["needs"] not in worker.given:
        return
    for argument, key, minus in row["drafts"]:
        one = worker.given.get(argument)
        if one is None:
            continue
        value = one.value
        if key is not None:
            value = value.get(key) if isinstance(value, Mapping) else None
        if isinstance(value, bool) or not isinstance(value, int) or value < minus:
            fields.faults.append(Fault(one.line, one.text, "says no number of drafts"))
            continue
        noted = worker.question.get("speculation")
        if isinstance(noted, Mapping) and noted.get("drafts") == value - minus:
            fields.put("speculation", dict(noted), "given", one.line, one.text)
        fields.put("speculation", {"drafts": value - minus}, "given", one.line, one.text)


def _lora(fields: _Collected, worker: Worker) -> None:
    row, given = worker.facts.lora, worker.given
    if not row:
        return
    named_ = [given[row[name]] for name in ("adapters", "rank") if row[name] in given]
    switch = given.get(row["switch"]) if row["switch"] else None
    if not (switch and switch.value is True) and (row["switch"] or not named_):
        return
    values = []
    for name, default in zip(("adapters", "rank"), row["default"], strict=True):
        one = given.get(row[name])
        values.append(one.value if one and isinstance(one.value, int) else default)
    one = switch or named_[0]
    fields.put("lora", {"adapters": values[0], "rank": values[1]}, "given", one.line, one.text)


def _prefill(
    fields: _Collected, workers: Sequence[Worker], splits: Sequence[Split], main: int
) -> None:
    at = next((i for i, each in enumerate(workers) if each.role == "prefill"), None)
    if at is None or at == main:
        return
    decode, prefill = splits[main], splits[at]
    differing = {
        name: getattr(prefill, name)
        for name in PLACED
        if getattr(prefill, name) != getattr(decode, name)
    }
    noted = workers[main].question.get("disaggregated")
    if isinstance(noted, Mapping):
        stated = {n: noted[n] for n in PLACED if noted.get(n) is not None}
        if {n: v for n, v in stated.items() if v != getattr(decode, n)} == differing:
            differing = dict(noted)
    line = workers[at].line
    fields.put("disaggregated", differing, "given", line, f"prefill workers, line {line}")


def _gpu(fields: _Collected, workers: Sequence[Worker], file: str) -> None:
    for worker in workers:
        if worker.gpu is not None and "gpu" not in fields.values:
            gpu = gpu_named(worker.gpu)
            if gpu is None:
                why = "names no accelerator of the catalogue"
                fields.faults.append(Fault(worker.gpu_line, worker.gpu, why))
            else:
                fields.put("gpu", gpu, "given", worker.gpu_line, worker.gpu)
    origin = fields.origins.get("gpu")
    if origin is not None and origin.source == "noted":
        get_accelerator(fields.values["gpu"], allow_files=False)  # a file opens no other file
    if "gpu" not in fields.values:
        raise Unreadable(f"gpu: {file} does not say which; give --gpu")


def _scenario(fields: _Collected) -> Scenario:
    """Return the scenario; a value that it refuses is refused with its line."""
    try:
        return Scenario.model_validate(fields.values)
    except ValidationError as error:
        message = one_line(error)
    except InvalidInput as error:
        message = str(error)
    origin = fields.origins.get(named(message).partition(".")[0])
    where = f"line {origin.line}: " if origin and origin.line else ""
    raise Unreadable(f"{where}{message}")


def _defaults(scenario: Scenario) -> list[Origin]:
    """Return what the engine takes at its version where nothing is said; none of what cannot be."""
    try:
        settings = deployment_of(scenario).memory.settings
    except InvalidInput:
        return []
    return [
        Origin(field=one.name, value=one.value, source="default", text=one.source)
        for one in settings
        if one.source != "given"
    ]


def _unused(workers: Sequence[Worker]) -> list[Unused]:
    rows: dict[tuple[int, str], None] = {}
    for worker in workers:
        used = worker.facts.used
        for one in worker.parsed.given.values():
            if one.argument not in used:
                rows[(one.line, one.text[:200])] = None
    return [Unused(line=line, text=text) for line, text in sorted(rows)]
