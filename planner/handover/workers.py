"""A worker: one command line that starts an engine, and what the object around it gives it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from planner.handover.arguments import Fault, Given, Parsed, parser_of
from planner.handover.documents import documents, line_of
from planner.handover.facts import EngineStart, engine_facts, image_of, read_facts, started_engines
from planner.handover.shell import Word, script

_LAUNCHERS = re.compile(r"python[\d.]*$")
_SHELLS = {"sh", "bash", "ash", "dash", "zsh"}
_SLURM = "srun"


@dataclass(frozen=True, slots=True)
class Probe:
    """How long a container may take before a probe has it killed."""

    kind: str
    line: int
    allowed_s: float
    """Time from the container's start to the kill, at its earliest [s]."""


@dataclass(slots=True)
class Worker:
    """One kind of worker of a deployment."""

    engine: str
    parsed: Parsed
    version: str | None = None
    model: Word | None = None
    role: str = "both"
    """`both`, `prefill` or `decode`."""
    replicas: int = 1
    """Groups of pods that the object runs."""
    pods: int = 1
    """Pods of one replica."""
    line: int = 1
    """Where its command line begins."""
    kind: str = "command"
    """The object it stands in."""
    gpus: int | None = None
    """GPUs that a pod requests; None where nothing says."""
    gpus_line: int = 1
    gpu: str | None = None
    """Accelerator as a label names it."""
    gpu_line: int = 1
    probes: list[Probe] = field(default_factory=list)
    shared_memory: bool | None = None
    """Whether /dev/shm is enlarged; None where the object has no such thing."""
    outside: dict[str, Given] = field(default_factory=dict)
    """Arguments that fields of the object stand for (`parallelism.tensor`)."""
    replicas_line: int = 1
    dropped: Mapping[str, Given] = field(default_factory=dict)
    """Arguments that the object states and its controller leaves out."""
    strings: list[Fault] = field(default_factory=list)
    """Words of it that are numbers, which Kubernetes refuses."""
    pinned: bool = False
    """Whether its image names a version, of the engine or its own."""
    words: Sequence[Word] = ()
    """Words after the command's name."""
    files: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    question: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the scenario that no argument says, as `planner manifest` notes them."""
    question_line: int = 1

    @property
    def facts(self) -> EngineStart:
        """How its engine is started."""
        return engine_facts(self.engine)

    @property
    def given(self) -> Mapping[str, Given]:
        """All arguments, those of the command line first."""
        return {**self.outside, **self.parsed.given}


def commands_in(
    words: Sequence[Word], known: Mapping[str, str] | None = None
) -> tuple[list[list[Word]], dict[str, tuple[str, int]]]:
    """Return the commands of a container's words; those of `sh -c` are read from its text."""
    texts = [word.text for word in words]
    head = texts[0].rpartition("/")[2] if texts else ""
    if head == _SLURM:
        at = next((i for i, text in enumerate(texts) if text.rpartition("/")[2] in _SHELLS), 0)
        return ([list(words)], {}) if at == 0 else commands_in(words[at:], known)
    if head in _SHELLS and len(words) >= 2:
        at = next((i for i, text in enumerate(texts) if re.match(r"-\w*c\w*$", text)), None)
        if at is not None and at + 1 < len(words):
            body = words[at + 1]
            inner = script(body.text, body.line, known)
            return inner.commands, inner.files
    return [list(words)], {}


def hosts_of(words: Sequence[Word]) -> int:
    """Return the hosts on which Slurm starts a command; 1 where it does not say.

    >>> hosts_of([Word(text, 1) for text in "srun -N 2 --ntasks 16 trtllm-serve m".split()])
    2
    """
    texts = [word.text for word in words]
    if not texts or texts[0].rpartition("/")[2] != _SLURM:
        return 1
    given = re.search(r"(?:^| )(?:-N ?|--nodes[= ])(\d{1,5})(?= |$)", " ".join(texts))
    return max(1, int(given[1])) if given else 1


def engine_started(words: Sequence[Word]) -> tuple[str, list[Word]] | None:
    """Return the engine that a command starts, and the words after the command's name."""
    texts = [_program(word.text) for word in words]
    best: tuple[int, int, str] | None = None
    for engine in started_engines():
        for start in engine_facts(engine).start:
            size = len(start)
            for at in range(len(texts) - size + 1):
                if tuple(texts[at : at + size]) == start and (best is None or size > best[1]):
                    best = (at, size, engine)
    if best is None:
        return None
    at, size, engine = best
    return engine, list(words[at + size :])


def _program(text: str) -> str:
    name = text.rpartition("/")[2] if "/" in text and not text.startswith("-") else text
    return "python" if _LAUNCHERS.match(name) else name


def worker_of(
    words: Sequence[Word],
    *,
    image: str | None = None,
    env: Mapping[str, str] | None = None,
    files: Mapping[str, tuple[str, int]] | None = None,
    only_arguments: bool = False,
) -> Worker | None:
    """Return the worker that a container's words start, or None where they start no engine.

    `only_arguments` says that the image's own entrypoint takes the words.
    """
    engine, version = image_of(image) if image else (None, None)
    commands, documents = commands_in(words, env)
    documents = {**(files or {}), **documents}
    for command in commands:
        if "docker" in {w.text.rpartition("/")[2] for w in command[:2]}:
            engine, version, command = _inside_docker(command)
            only_arguments = True
        started = engine_started(command)
        if started is None and engine and only_arguments and engine_facts(engine).entrypoint:
            started = engine, list(command)
        if started is not None:
            worker = _worker(started[0], version, started[1], documents, command)
            worker.pods = hosts_of(words)
            return worker
    return None


def _inside_docker(command: list[Word]) -> tuple[str | None, str | None, list[Word]]:
    """Return the engine and version of the image that `docker run` starts, and its arguments."""
    for at, word in enumerate(command):
        engine, version = image_of(word.text)
        if engine and not word.text.startswith("-") and (":" in word.text or "/" in word.text):
            return engine, version, command[at + 1 :]
    return None, None, command


def _worker(
    engine: str,
    version: str | None,
    words: list[Word],
    files: Mapping[str, tuple[str, int]],
    command: Sequence[Word],
) -> Worker:
    facts = engine_facts(engine)
    line = command[0].line if command else 1
    worker = Worker(engine, Parsed(), version, line=line, words=words, files=files)
    model = parse(worker, version)
    worker.model = model
    _role(worker, facts)
    return worker


def parse(worker: Worker, version: str | None) -> Word | None:
    """Read a worker's words as the engine's parser of a version does; return the model named."""
    facts, model = worker.facts, None
    worker.parsed = parsed = parser_of(worker.engine, version).parse(worker.words)
    for name in facts.model:
        if name in parsed.given:
            one = parsed.given.pop(name)
            model = Word(str(one.value), one.line)
            break
    if model is None and parsed.rest and not parsed.rest[0].open:
        model = parsed.rest.pop(0)
    for word in parsed.rest:
        parsed.faults.append(Fault(word.line, word.text, "stands alone"))
    if facts.config:
        _read_config(worker, facts, worker.files)
    return model


def _read_config(worker: Worker, facts: EngineStart, files: Mapping[str, tuple[str, int]]) -> None:
    """Add the keys of the engine's own YAML, where its text is at hand."""
    one = worker.parsed.given.pop(facts.config["argument"], None)
    if one is None:
        return
    name = str(one.value).rpartition("/")[2]
    content = next((files[path] for path in files if path.rpartition("/")[2] == name), None)
    if content is None:
        why = "the file it names is not at hand: give it as another FILE"
        worker.parsed.faults.append(Fault(one.line, one.text, why))
        return
    for document in documents(content[0], content[1]):
        if isinstance(document, Mapping):
            add_config(worker, facts, document)


def add_config(worker: Worker, facts: EngineStart, document: Mapping[str, Any]) -> None:
    """Add the keys of an engine's configuration to what its command line says.

    A flag wins over the file, but TensorRT-LLM's file over its flags where both say something.
    """
    for key, value in document.items():
        line = line_of(document, key)
        if key not in facts.config["known"]:
            worker.parsed.faults.append(
                Fault(line, str(key)[:80], "is no key of its configuration")
            )
        elif isinstance(value, Mapping):
            for part, content in value.items():
                name = f"{key}.{part}"
                text = f"{name}: {str(content)[:80]}"
                worker.parsed.given[name] = Given(name, content, line_of(value, part, line), text)
        else:
            worker.parsed.given[key] = Given(key, value, line, f"{key}: {str(value)[:80]}")


def _role(worker: Worker, facts: EngineStart) -> None:
    roles = facts.roles
    if not roles or (one := worker.parsed.given.get(roles["argument"])) is None:
        one = worker.parsed.given.get("disaggregation_mode")
        if one is not None and one.value in {"prefill", "decode"}:
            worker.role = str(one.value)
        if "is_prefill_worker" in worker.parsed.given:
            worker.role = "prefill"
        return
    value = one.value
    if roles["key"]:
        value = value.get(roles["key"]) if isinstance(value, Mapping) else None
    if isinstance(value, str):
        worker.role = {roles["prefill"].lower(): "prefill", roles["decode"].lower(): "decode"}.get(
            value.lower(), "both"
        )


def gpu_resources() -> Mapping[str, str]:
    """Return the names of GPU resources in Kubernetes, by vendor."""
    resources: Mapping[str, str] = read_facts("kubernetes.json")["resources"]
    return resources
