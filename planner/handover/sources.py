"""Files in, deployments out: a text is told by its content, never by its name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from planner.handover.documents import MOST_BYTES, documents
from planner.handover.facts import engine_facts, started_engines
from planner.handover.notes import noted_in_comment
from planner.handover.objects import workers_in
from planner.handover.reading import Deployed, deployed
from planner.handover.refusal import Unreadable
from planner.handover.shell import script
from planner.handover.workers import Worker, worker_of

ACCEPTED = (
    "a command line of vllm, sglang, trtllm-serve, llama-server or lmdeploy; Kubernetes Deployment "
    "or StatefulSet, LeaderWorkerSet, LLMInferenceService, InferenceService, values of "
    "llm-d-modelservice, DynamoGraphDeployment; docker-compose"
)
_YAML = re.compile(
    r"^(?:---|[ \t]*[\"']?[\w./-]+[\"']?[ \t]*:(?:[ \t]|$)|[ \t]*[{\[])", re.MULTILINE
)


def read_files(
    texts: Mapping[str, str], options: Mapping[str, Any] | None = None
) -> list[Deployed]:
    """Return the deployments of files by name; an engine's own YAML completes the others.

    `options` are fields of the scenario that win over what files say. Raises Unreadable, whose
    message begins with the name of the file.
    """
    parts = {name: _contents(name, text) for name, text in texts.items()}
    configs = {name: (texts[name], 1) for name, content in parts.items() if _is_config(content)}
    result = []
    for name, content in parts.items():
        if name in configs and len(parts) > 1:
            continue
        try:
            result += _deployments(name, texts[name], content, configs, options or {})
        except Unreadable as error:
            raise Unreadable(f"{name}: {error}") from None
    return result


def _contents(name: str, text: str) -> list[Any] | None:
    """Return the documents of a YAML or JSON text; None for a command line."""
    if "\0" in text:
        raise Unreadable(f"{name}: not text; accepted: {ACCEPTED}")
    if len(text) > MOST_BYTES:
        raise Unreadable(f"{name}: {len(text)} characters; accepted: {MOST_BYTES} at most")
    lines = [x for x in text.splitlines() if x.strip() and not x.lstrip().startswith("#")]
    if not lines:
        raise Unreadable(f"{name}: nothing in it; accepted: {ACCEPTED}")
    if not _YAML.match(lines[0]) or lines[0].startswith("#!"):
        return None
    try:
        return documents(text)
    except Unreadable as error:
        raise Unreadable(f"{name}: {error}") from None


def _is_config(content: Sequence[Any] | None) -> bool:
    """Return whether documents are an engine's own configuration."""
    if not content or not all(isinstance(one, Mapping) and one for one in content):
        return False
    known = {key for e in started_engines() for key in engine_facts(e).config.get("known", ())}
    return all(set(one) <= known for one in content)


def _deployments(
    name: str,
    text: str,
    content: list[Any] | None,
    configs: Mapping[str, tuple[str, int]],
    options: Mapping[str, Any],
) -> list[Deployed]:
    workers = _commands(text, configs) if content is None else workers_in(content, configs)
    if not workers:
        raise Unreadable(f"no engine is started in it; accepted: {ACCEPTED}")
    question, line = noted_in_comment(text)
    for worker in workers:
        if not worker.question:
            worker.question, worker.question_line = question, line
    single = [[worker] for worker in workers if worker.role == "both"]
    apart = [worker for worker in workers if worker.role != "both"]
    return [deployed(name, group, options) for group in ([apart] if apart else []) + single]


def _commands(text: str, configs: Mapping[str, tuple[str, int]]) -> list[Worker]:
    content = script(text)
    files = {**configs, **content.files}
    workers = [worker_of(words, files=files) for words in content.commands]
    return [worker for worker in workers if worker is not None]
