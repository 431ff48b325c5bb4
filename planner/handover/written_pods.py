"""The pod that runs a worker: container, GPUs, probes, shared memory, node selector."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import yaml

from planner.deployment import deployment_of
from planner.handover.arguments import parser_versions
from planner.handover.facts import image_for, read_facts
from planner.handover.launching import CONFIG_PATH, Launch, joined
from planner.handover.startup import start_s
from planner.hw import get_accelerator

SHARED = "16Gi"
"""Of /dev/shm, through which the processes of a replica exchange tensors."""


def gpus_of_a_pod(launch: Launch) -> int:
    """Return the GPUs that one pod of a replica has."""
    return launch.gpus // (launch.scenario.nodes or 1)


def image(launch: Launch) -> str:
    """Return the engine's image at the scenario's version, or the newest that was read."""
    facts = launch.facts
    return image_for(facts.id, launch.scenario.engine_version, parser_versions(facts.id)[-1])


def resource(launch: Launch) -> str:
    """Return the name of the accelerator's resource in Kubernetes."""
    resources: Mapping[str, str] = read_facts("kubernetes.json")["resources"]
    vendor = get_accelerator(launch.scenario.gpu).vendor
    return resources.get(vendor, resources["NVIDIA"])


def container(
    launch: Launch,
    *,
    name: str = "server",
    more: Mapping[str, Any] | None = None,
    program: tuple[str, ...] | None = None,
    flag: str = "",
) -> dict[str, Any]:
    """Return the container of a worker; `more` are arguments beside the scenario's."""
    command, words = launch.command(program, flag), launch.words(more)
    result: dict[str, Any] = {"name": name, "image": image(launch)}
    if launch.config:
        content = yaml.safe_dump(launch.config, sort_keys=False)
        shell = f"cat > {CONFIG_PATH} <<'EOF'\n{content}EOF\nexec {joined([*command, *words])}\n"
        result |= {"command": ["sh", "-c"], "args": [shell]}
    else:
        result |= {"command": command, "args": words}
    gpus = str(gpus_of_a_pod(launch))
    result["ports"] = [{"name": "http", "containerPort": launch.facts.port}]
    result["resources"] = {"limits": {resource(launch): gpus}, "requests": {resource(launch): gpus}}
    get = {"path": launch.facts.health, "port": "http"}
    result |= {
        "startupProbe": {
            "httpGet": get,
            "periodSeconds": 10,
            "failureThreshold": math.ceil(2 * start_s(deployment_of(launch.scenario)) / 10),
        },
        "readinessProbe": {"httpGet": dict(get), "periodSeconds": 10, "failureThreshold": 3},
        "livenessProbe": {"httpGet": dict(get), "periodSeconds": 30, "failureThreshold": 3},
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],  # noqa: S108 - in the container
    }
    return result


def pod(launch: Launch, **of_container: Any) -> dict[str, Any]:
    """Return the pod spec of a worker."""
    spec: dict[str, Any] = {
        "containers": [container(launch, **of_container)],
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": SHARED}}],
    }
    label = read_facts("kubernetes.json")["labels_written"].get(
        get_accelerator(launch.scenario.gpu).id
    )
    if label:
        spec["nodeSelector"] = {"nvidia.com/gpu.product": label}
    return spec
