"""Faults that a file shows by itself: arguments, flags that fight, requests, probes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from planner.engines.versions import numbers, version_of
from planner.handover.arguments import Fault, parser_of
from planner.handover.facts import read_facts
from planner.handover.findings import Finding, finding
from planner.handover.reading import Deployed, has_experts
from planner.handover.split import Split
from planner.handover.workers import Worker

OPEN = "from a variable"


def lint_given(deployed: Deployed) -> Iterator[Finding]:
    """Yield the faults of a deployment's files, whatever it is asked to carry."""
    stated = deployed.reading.scenario.engine_version
    for worker, split in zip(deployed.workers, deployed.splits, strict=True):
        yield from _arguments(worker, split, stated)
        yield from _requested(worker, split)
        yield from _conflicts(worker)
        yield from _deprecated(worker)
        yield from _experts(worker, deployed)
        yield from _shared_memory(worker, split)
        yield from _version(worker, stated)
    yield from _rest(deployed)


def _arguments(worker: Worker, split: Split, stated: str | None) -> Iterator[Finding]:
    version = parser_of(worker.engine, stated).version
    for fault in worker.parsed.faults:
        yield _fault(fault, f"accepted: the arguments of {worker.engine} {version}")
    for fault in split.faults:
        yield finding(
            "argument_value", fault.line, f"{fault.text}: {fault.why}", "change the value"
        )
    for fault in worker.strings:
        yield finding("not_text", fault.line, f"{fault.text}: {fault.why}", f"write '{fault.text}'")
    for one in worker.parsed.repeated:
        last = worker.parsed.given.get(one.argument)
        if last is not None and last.value != one.value:
            text = f"{one.text} is replaced by {last.text} on line {last.line}"
            yield finding("argument_repeated", one.line, text, "leave one of them out")


def _fault(fault: Fault, accepted: str) -> Finding:
    text = f"{fault.text}: {fault.why}"
    if fault.why.startswith("not an argument"):
        return finding("argument_unknown", fault.line, text, accepted)
    if OPEN in fault.why:
        return finding("argument_open", fault.line, text, "give the variable's value in the file")
    if "file" in fault.why or "stands alone" in fault.why or "no key" in fault.why:
        return finding("not_understood", fault.line, text, "give what is missing")
    return finding("argument_value", fault.line, text, "change the value")


def _above_one(value: Any) -> bool:
    return isinstance(value, int) and value > 1


def gpus_needed(worker: Worker, split: Split) -> int:
    """Return the GPUs that one pod of a worker needs."""
    if split.local:
        return split.tp * split.pp * split.local
    return max(1, split.gpus_started // worker.pods)


def _requested(worker: Worker, split: Split) -> Iterator[Finding]:
    """Compare what is requested with what is used, and say which split the controller drops."""
    dropped = {k: v for k, v in worker.dropped.items() if v.value is True or _above_one(v.value)}
    for one in dropped.values():
        flag = parser_of(worker.engine, worker.version).arguments[one.argument].flag
        value = "" if one.value is True else f" {one.value}"
        text = f"{one.text} counts only across hosts: on one the server starts without it"
        yield finding("parallelism_dropped", one.line, text, f"add {flag}{value} to the arguments")
    if worker.gpus is None or worker.facts.split["rule"] == "layers":
        return
    needed = gpus_needed(worker, split)
    text = f"{worker.gpus} GPUs are requested, the split of the server takes {needed} a pod"
    if worker.gpus < needed:
        yield finding("gpus_missing", worker.gpus_line, text, f"request {needed} GPUs")
    elif worker.gpus > needed and not dropped:
        fix = f"request {needed} GPUs, or split over {worker.gpus}"
        yield finding("gpus_idle", worker.gpus_line, text, fix)


def _matches(worker: Worker, argument: str, wanted: Any) -> bool:
    one = worker.given.get(argument)
    if wanted == "absent":
        return one is None
    if one is None:
        return False
    if wanted == "quantized":
        return str(one.value).startswith(("q", "iq"))
    return wanted is None or one.value == wanted


def _conflicts(worker: Worker) -> Iterator[Finding]:
    rows = read_facts("lints.json")["conflicts"][worker.engine]
    for code, first, value, second, other, text, fix in rows:
        if _matches(worker, first, value) and _matches(worker, second, other):
            yield finding(code, worker.given[first].line, text, fix)


def _deprecated(worker: Worker) -> Iterator[Finding]:
    stated = version_of(worker.version)
    for argument, rule, since, text, fix in read_facts("lints.json")["deprecated"].get(
        worker.engine, ()
    ):
        one = worker.given.get(argument)
        if one is None or (stated and stated[0] == "release" and stated[1] < numbers(since)):
            continue
        kind, _, word = (rule or "").partition(":")
        if kind == "with" and word not in worker.given:
            continue
        if kind == "method":
            method = one.value.get("method") if isinstance(one.value, Mapping) else None
            if not (isinstance(method, str) and method.endswith(word)):
                continue
        yield finding("flag_deprecated", one.line, text, fix)


def _experts(worker: Worker, deployed: Deployed) -> Iterator[Finding]:
    if has_experts(deployed.spec):
        return
    names = {worker.facts.split.get(key) for key in ("ep", "ep_switch")}
    for name in names:
        one = worker.given.get(name or "")
        if one is not None and (one.value is True or _above_one(one.value)):
            text = f"{one.text}: {deployed.spec.id} has no experts to spread"
            yield finding("experts_missing", one.line, text, "leave it out")


def _shared_memory(worker: Worker, split: Split) -> Iterator[Finding]:
    if worker.shared_memory is False and gpus_needed(worker, split) > 1:
        text = "the processes of a replica exchange tensors through /dev/shm, which has 64 MiB"
        fix = "mount an emptyDir of medium Memory at /dev/shm, or set shm_size"
        yield finding("shared_memory_small", worker.line, text, fix)


def _version(worker: Worker, version: str | None) -> Iterator[Finding]:
    if worker.kind != "command" and not worker.pinned:
        text = "the image names no version: what starts may change from one day to the next"
        yield finding("image_unpinned", worker.line, text, "pin the image's tag")
    if version is not None:
        return
    for _, argument, text in read_facts("lints.json")["moved"].get(worker.engine, ()):
        if argument not in worker.given:
            flag = parser_of(worker.engine).arguments[argument].flag
            message = f"{flag} is {text}, and no version is pinned"
            yield finding("default_moved", worker.line, message, f"write {flag}")


def _rest(deployed: Deployed) -> Iterator[Finding]:
    for origin in deployed.reading.origins:
        if origin.field == "model" and origin.source == "assumed":
            text = f"{origin.text} is taken for {origin.value}"
            yield finding("model_assumed", origin.line or 1, text, "give --model")
    known = {f for w in deployed.workers for f in (*w.parsed.faults, *w.strings)}
    known |= {f for s in deployed.splits for f in s.faults}
    seen = {(f.line, f.text[:200]) for f in known}
    for one in deployed.reading.not_understood:
        if (one.line, one.text) not in seen:
            yield finding("argument_value", one.line, f"{one.text}: {one.why}", "change the value")
