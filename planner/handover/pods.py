"""Containers and pods: the worker they start, the GPUs they request, their probes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from planner.handover.arguments import Fault
from planner.handover.documents import line_of
from planner.handover.facts import engine_facts, image_of, read_facts
from planner.handover.notes import ANNOTATION, noted
from planner.handover.shell import Word, script, substituted
from planner.handover.workers import Probe, Worker, worker_of

Files = Mapping[str, tuple[str, int]]
MOST_REPLICAS = 2**20


def mapping(value: Any) -> Mapping[Any, Any]:
    """Return a value that should be an object; an empty one where it is not."""
    return value if isinstance(value, Mapping) else {}


def items(value: Any) -> list[Any]:
    """Return a value that should be a list; an empty one where it is not."""
    return value if isinstance(value, list) else []


def at(document: Any, *path: str) -> Any:
    """Return what stands at a path of keys, None where nothing does."""
    for key in path:
        document = mapping(document).get(key)
    return document


def count(value: Any, default: int = 1) -> int:
    """Return a count of an object, the default where it is none."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 20:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_REPLICAS:
        return default
    return value


def environment(container: Mapping[Any, Any]) -> dict[str, str]:
    """Return the variables whose values the container states, in their Kubernetes form or a map."""
    env = container.get("env") or container.get("environment") or []
    pairs: list[tuple[Any, Any]] = []
    if isinstance(env, Mapping):
        pairs = list(env.items())
    for one in items(env):
        if isinstance(one, str):
            name, sign, value = one.partition("=")
            pairs.append((name, value if sign else None))  # a name alone: the host's own value
        elif "value" in mapping(one):
            pairs.append((one.get("name"), one["value"]))
    return {str(name): _text(value) for name, value in pairs if value is not None}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def words_of(
    parent: Mapping[Any, Any], key: str, known: Mapping[str, str], faults: list[Fault]
) -> list[Word]:
    """Return the words of `command` or `args`: a list of texts, or one text as a shell has it."""
    value = parent.get(key)
    line = line_of(parent, key)
    if isinstance(value, str):
        commands = script(value, line, known).commands
        return [word for command in commands for word in command]
    words = []
    for index, item in enumerate(items(value)):
        at_line = line_of(value, index, line)
        if not isinstance(item, str):
            if isinstance(item, (Mapping, list)) or item is None:
                faults.append(Fault(at_line, str(item)[:80], "is no text"))
                continue
            faults.append(Fault(at_line, _text(item), "is no text; put it in quotes"))
        text, unknown = (
            substituted(_text(item), known) if "\n" not in _text(item) else (_text(item), False)
        )
        words.append(Word(text, at_line, unknown))
    return words


def container_worker(
    container: Mapping[Any, Any], files: Files, default_engine: str | None = None
) -> Worker | None:
    """Return the worker that a container starts, or None where it starts no engine."""
    image = container.get("image")
    image = image if isinstance(image, str) else None
    if isinstance(container.get("image"), Mapping):
        image = ":".join(str(container["image"].get(k, "")) for k in ("repository", "tag"))
    known, strings = environment(container), list[Fault]()
    own = words_of(container, "command", known, strings) or words_of(
        container, "entrypoint", known, strings
    )
    words = [*own, *words_of(container, "args", known, strings)]
    for name in ("VLLM_ADDITIONAL_ARGS", "VLLM_ARGS"):
        if name in known:
            line = line_of(container, "env")
            words += [w for c in script(known[name], line, known).commands for w in c]
    worker = worker_of(words, image=image, env=known, files=files, only_arguments=not own)
    if worker is None and default_engine and not own:
        starts = [
            Word(text, line_of(container, "args")) for text in engine_facts(default_engine).write
        ]
        engine, version = image_of(image) if image else (None, None)
        worker = worker_of([*starts, *words], image=image, env=known, files=files)
        if worker is not None and engine == default_engine:
            worker.version = version
    if worker is None:
        return None
    worker.strings, worker.pinned = strings, is_pinned(image)
    if not words:
        worker.line = line_of(container, "image")
    worker.gpus, worker.gpus_line = requested(container)
    worker.probes = list(_probes(container))
    return worker


def is_pinned(image: str | None) -> bool:
    """Return whether an image names a tag or a digest that does not move by its name.

    >>> is_pinned("vllm/vllm-openai:latest")
    False
    """
    name = (image or "").rpartition("/")[2]
    tag = name.partition("@")[0].partition(":")[2]
    return "@" in name or (bool(tag) and tag not in {"latest", "nightly", "main"})


def requested(container: Mapping[Any, Any]) -> tuple[int | None, int]:
    """Return the GPUs a container requests, and the line; None where it says nothing of any."""
    facts = read_facts("kubernetes.json")
    names = {*facts["resources"].values(), *facts["also"]}
    for part in ("limits", "requests"):
        resources = mapping(at(container, "resources", part))
        for name in resources:
            if name in names or name == "gpu":
                return count(resources[name], 0), line_of(resources, name)
    return None, line_of(container, "resources")


def _probes(container: Mapping[Any, Any]) -> Iterator[Probe]:
    """Yield the probes that have a container killed: defaults are Kubernetes' own."""
    for name, kind in (("startupProbe", "startup"), ("livenessProbe", "liveness")):
        probe = container.get(name)
        if not isinstance(probe, Mapping):
            continue
        delay, period, failures = (
            count(probe.get(key), default)
            for key, default in (
                ("initialDelaySeconds", 0),
                ("periodSeconds", 10),
                ("failureThreshold", 3),
            )
        )
        yield Probe(kind, line_of(container, name), float(delay + period * failures))


def pod_worker(
    pod: Any, files: Files, default_engine: str | None = None, prefer: str | None = None
) -> Worker | None:
    """Return the worker of the first container of a pod that starts an engine."""
    pod = mapping(pod)
    containers = [mapping(one) for one in items(pod.get("containers"))]
    if prefer:
        containers.sort(key=lambda one: one.get("name") != prefer)
    for container in containers:
        worker = container_worker(container, files, default_engine)
        if worker is None:
            continue
        worker.gpu, worker.gpu_line = _label(pod)
        worker.shared_memory = _shared_memory(pod)
        return worker
    return None


def _label(pod: Mapping[Any, Any]) -> tuple[str | None, int]:
    """Return the accelerator that a pod's node selector or affinity names."""
    labels = read_facts("kubernetes.json")["labels"]
    selector = mapping(pod.get("nodeSelector"))
    for name in labels:
        if isinstance(selector.get(name), str):
            return selector[name], line_of(selector, name)
    required = at(pod, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    for term in items(at(required, "nodeSelectorTerms")):
        for rule in items(at(term, "matchExpressions")):
            values = items(at(rule, "values"))
            if at(rule, "key") in labels and len(values) == 1 and isinstance(values[0], str):
                return values[0], line_of(rule, "values")
    return None, 1


def _shared_memory(pod: Mapping[Any, Any]) -> bool:
    volumes = [mapping(v) for v in items(pod.get("volumes"))]
    return any(at(v, "emptyDir", "medium") == "Memory" for v in volumes)


def note_annotation(worker: Worker, *objects: Any) -> None:
    """Take up what `planner manifest` noted as an annotation of an object."""
    for one in objects:
        annotations = mapping(at(one, "metadata", "annotations"))
        text = annotations.get(ANNOTATION)
        if isinstance(text, str):
            worker.question_line = line_of(annotations, ANNOTATION)
            worker.question = noted(text, worker.question_line)


def shared_bytes(text: Any) -> float | None:
    """Return a size as compose and Kubernetes write it [byte], None where it is none.

    >>> shared_bytes("16Gi")
    17179869184.0
    """
    match = re.match(r"(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?$", str(text).strip(), re.IGNORECASE)
    if match is None:
        return None
    return (
        float(match[1]) * 1024 ** "kmgt".index(match[2].lower()) * 1024
        if match[2]
        else float(match[1])
    )
