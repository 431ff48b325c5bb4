"""Objects that are written are valid: Kubernetes' own by its schema, others by facts on record."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner.handover.facts import started_engines
from planner.handover.refusal import Unwritable
from planner.handover.writing import WRITTEN, with_autoscaler, write
from planner.scenario import Scenario
from tests.handover.test_writing import SCENARIOS, scenario

FACTS = json.loads((Path(__file__).parent / "custom_fields.json").read_text("utf-8"))["kinds"]
KUBERNETES = "1.34"
TYPES = {"int": int, "str": str, "bool": bool}
OBJECTS = [kind for kind in WRITTEN if kind not in {"command", "compose"}]
LOAD = {"concurrency": 8, "isl": 512, "osl": 128, "tpot_ms": 90}


def written() -> Iterator[dict[str, Any]]:
    for name in SCENARIOS:
        # the other engines' objects differ in their arguments alone
        for engine in started_engines() if name == "dense" else ("vllm", "sglang"):
            for kind in OBJECTS:
                try:
                    text = write(scenario(name, engine), kind).text
                except Unwritable:
                    continue
                yield from yaml.safe_load_all(text)
    plain = Scenario(model="Qwen/Qwen2.5-7B-Instruct", gpu="l4", engine="vllm", **LOAD)
    for form in ("hpa", "keda"):
        yield list(yaml.safe_load_all(with_autoscaler(write(plain, "deployment"), form).text))[-1]


@pytest.fixture(scope="module")
def documents() -> list[dict[str, Any]]:
    """Every object of every engine and scenario that one can be written of."""
    return list(written())


def pods(value: Any) -> Iterator[dict[str, Any]]:
    """All pod specs of a document: objects with a list of containers."""
    if isinstance(value, dict):
        if isinstance(value.get("containers"), list):
            yield value
        for inner in value.values():
            yield from pods(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from pods(inner)


def test_kubernetes_own_kinds_and_all_pods_are_valid(documents: list[dict[str, Any]]) -> None:
    validate = pytest.importorskip("kubernetes_validate")
    kinds = set()
    for one in copy.deepcopy(documents):
        if one.get("kind") in {"Deployment", "Service", "HorizontalPodAutoscaler"}:
            validate.validate(one, KUBERNETES, strict=True)
            kinds.add(one["kind"])
            continue
        for spec in pods(one):
            known = ("containers", "volumes", "nodeSelector")
            pod = {key: spec[key] for key in known if key in spec}
            for container in pod["containers"]:
                container.pop("modelCommand", None)  # the chart's own
            template = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": pod}
            validate.validate(template, KUBERNETES, strict=True)
            kinds.add("Pod")
    assert kinds == {"Deployment", "Service", "HorizontalPodAutoscaler", "Pod"}


def conforms(value: Any, fact: Any, where: str) -> None:
    """Compare a value with what is on record of its field."""
    if fact in ("pod", "template", "any"):
        return
    if isinstance(fact, str):
        assert type(value) is TYPES[fact], where
    elif isinstance(fact, dict):
        assert set(value) <= set(fact), where
        for key, inner in value.items():
            conforms(inner, fact[key], f"{where}.{key}")
    elif isinstance(fact[0], dict):
        for index, inner in enumerate(value):
            conforms(inner, fact[0], f"{where}[{index}]")
    else:
        assert value in fact, where


def test_custom_objects_have_the_fields_on_record(documents: list[dict[str, Any]]) -> None:
    kinds = set()
    for one in documents:
        kind = one.get("kind") or "llm-d-modelservice"
        if kind not in FACTS:
            continue
        kinds.add(kind)
        fact = FACTS[kind]
        if "kind" in one:
            assert one["apiVersion"] == fact["apiVersion"]
        spec = one.get("spec", one)
        assert set(fact["needed"]) <= set(spec)
        conforms(spec, fact["spec"], kind)
    assert kinds == set(FACTS)
