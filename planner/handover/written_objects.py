"""Objects that run a scenario's workers, least fields that start, by kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.handover.facts import started_engines
from planner.handover.launching import Launch
from planner.handover.refusal import Unwritable
from planner.handover.written_pods import gpus_of_a_pod, image, pod, resource

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class WorkerPart:
    """One kind of worker to write: how it is started, and how many replicas."""

    launch: Launch
    replicas: int
    name: str


@dataclass(frozen=True, slots=True)
class ObjectKind:
    """An object: what writes it, the engines it runs, and how it joins hosts."""

    write: Callable[[str, Sequence[WorkerPart]], list[Document]]
    engines: tuple[str, ...]
    handles_nodes: bool = False
    """Whether its controller joins the hosts of a replica."""
    one_node: bool = False
    one_role: bool = False
    """Whether prefill has no workers of its own in it."""
    own_image: bool = False
    """Whether its image has a version of its own, not the engine's."""


def _labels(name: str) -> dict[str, str]:
    return {"app.kubernetes.io/name": name}


def deployment(name: str, parts: Sequence[WorkerPart]) -> list[Document]:
    """Return a Deployment and a Service for each kind of worker."""
    del name
    documents = []
    for part in parts:
        labels = _labels(part.name)
        documents += [
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": part.name, "labels": labels},
                "spec": {
                    "replicas": part.replicas,
                    "selector": {"matchLabels": dict(labels)},
                    "template": {"metadata": {"labels": dict(labels)}, "spec": pod(part.launch)},
                },
            },
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": part.name, "labels": dict(labels)},
                "spec": {
                    "selector": dict(labels),
                    "ports": [{"name": "http", "port": 80, "targetPort": "http"}],
                },
            },
        ]
    return documents


def leader_worker_set(name: str, parts: Sequence[WorkerPart]) -> list[Document]:
    """Return a LeaderWorkerSet for each kind of worker, a group a replica, its size the hosts."""
    del name
    return [_group(part) for part in parts]


def _group(part: WorkerPart) -> Document:
    nodes = part.launch.scenario.nodes or 1
    ranks = part.launch.facts.multinode
    leader: dict[str, Any] = {}
    worker: dict[str, Any] = {}
    if nodes > 1:
        address = "$(LWS_LEADER_ADDRESS)" + ranks["address_suffix"]
        leader = {ranks["rank"]: 0, ranks["address"]: address}
        worker = {ranks["rank"]: "$(LWS_WORKER_INDEX)", ranks["address"]: address}
        if ranks["headless"]:
            worker[ranks["headless"]] = True
    follower = pod(part.launch, more=worker)
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        follower["containers"][0].pop(probe)  # it answers no requests
    labels = _labels(part.name)
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": part.name},
        "spec": {
            "replicas": part.replicas,
            "startupPolicy": "LeaderCreated",
            "leaderWorkerTemplate": {
                "size": nodes,
                "restartPolicy": "RecreateGroupOnPodRestart",
                "leaderTemplate": {
                    "metadata": {"labels": labels},
                    "spec": pod(part.launch, more=leader),
                },
                "workerTemplate": {"metadata": {"labels": dict(labels)}, "spec": follower},
            },
        },
    }


def llm_inference_service(name: str, parts: Sequence[WorkerPart]) -> list[Document]:
    """Return a KServe LLMInferenceService; on one host the split is in the arguments as well,
    where alone it counts (KServe 0.20)."""
    spec: Document = {}
    for part in parts:
        own: Document = {"replicas": part.replicas, "parallelism": _parallelism(part.launch)}
        own["template"] = pod(part.launch, name="main")
        if (part.launch.scenario.nodes or 1) > 1:
            own["worker"] = pod(part.launch, name="main")
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                own["worker"]["containers"][0].pop(probe)
        if part.launch.role == "prefill":
            spec["prefill"] = own
        else:
            spec = {"model": {"uri": f"hf://{part.launch.model}", "name": part.launch.model}} | own
    spec["router"] = {"route": {}, "gateway": {}, "scheduler": {}}
    return [
        {
            "apiVersion": "serving.kserve.io/v1alpha2",
            "kind": "LLMInferenceService",
            "metadata": {"name": name},
            "spec": spec,
        }
    ]


def _parallelism(launch: Launch) -> Document:
    scenario, nodes = launch.scenario, launch.scenario.nodes or 1
    stated: Document = {"tensor": scenario.tp}
    if scenario.pp > 1:
        stated["pipeline"] = scenario.pp
    if scenario.attention_dp > 1:
        stated |= {"data": scenario.attention_dp, "dataLocal": scenario.attention_dp // nodes}
    if scenario.ep > 1:
        stated["expert"] = True
    if nodes > 1:
        over = scenario.attention_dp if scenario.attention_dp > 1 else scenario.pp
        if over % nodes or (scenario.attention_dp == 1 and over != nodes):
            raise Unwritable(
                f"nodes: {nodes} as LLMInferenceService; accepted: what divides attention_dp, or pp"
            )
    return stated


def inference_service(name: str, parts: Sequence[WorkerPart]) -> list[Document]:
    """Return a KServe InferenceService with the server as a container of its own."""
    (part,) = parts
    if (part.launch.scenario.nodes or 1) > 1:
        raise Unwritable("nodes: as InferenceService; accepted: 1, or another object")
    predictor = {"minReplicas": part.replicas, "maxReplicas": part.replicas, **pod(part.launch)}
    predictor["containers"][0]["name"] = "kserve-container"
    return [
        {
            "apiVersion": "serving.kserve.io/v1beta1",
            "kind": "InferenceService",
            "metadata": {"name": name},
            "spec": {"predictor": predictor},
        }
    ]


def model_service(name: str, parts: Sequence[WorkerPart]) -> list[Document]:
    """Return values of the llm-d-modelservice chart (0.4.12); its router is installed apart."""
    del name
    values: Document = {}
    for part in parts:
        launch, spec = part.launch, pod(part.launch, name="server")
        nodes = launch.scenario.nodes or 1
        own = spec["containers"][0]
        own["modelCommand"] = "custom"
        stated: Document = {"tensor": launch.scenario.tp}
        if launch.scenario.attention_dp > 1:
            ranks = launch.scenario.attention_dp
            stated |= {"data": ranks, "dataLocal": max(1, ranks // nodes)}
        if nodes > 1:
            stated["workers"] = nodes
        key = "prefill" if launch.role == "prefill" else "decode"
        values[key] = {"create": True, "replicas": part.replicas, "parallelism": stated, **spec}
    first = parts[0].launch
    values.setdefault("prefill", {"create": False})
    vendor = resource(first).partition(".")[0]
    return [
        {
            "modelArtifacts": {"uri": f"hf://{first.model}", "name": first.model, "size": "1Ti"},
            "accelerator": {"type": vendor},
            "multinode": (first.scenario.nodes or 1) > 1,
            "routing": {"servicePort": first.facts.port, "proxy": {"enabled": len(parts) > 1}},
            **values,
        }
    ]


def dynamo(name: str, parts: Sequence[WorkerPart]) -> list[Document]:
    """Return a Dynamo graph: a frontend and one component for each kind of worker."""
    row = parts[0].launch.facts.dynamo
    frontend = {
        "name": "Frontend",
        "type": "frontend",
        "replicas": 1,
        "podTemplate": {"spec": {"containers": [{"name": "main", "image": row["image"]}]}},
    }
    components = [frontend]
    for part in parts:
        launch = part.launch
        options = {"name": "main", "program": ("python3", "-m", row["module"])}
        if flag := row.get("model_flag", "--model"):
            options["flag"] = flag
        spec = pod(launch, **options)
        spec["containers"][0]["image"] = row["image"]
        component: Document = {
            "name": {"prefill": "Prefill", "decode": "Decode"}.get(launch.role, "Worker"),
            "type": {"both": "worker"}.get(launch.role, launch.role),
            "replicas": part.replicas,
            "podTemplate": {"spec": spec},
        }
        if (launch.scenario.nodes or 1) > 1:
            component["multinode"] = {"nodeCount": launch.scenario.nodes}
        components.append(component)
    return [
        {
            "apiVersion": "nvidia.com/v1beta1",
            "kind": "DynamoGraphDeployment",
            "metadata": {"name": name},
            "spec": {"backendFramework": row["framework"], "components": components},
        }
    ]


def compose(name: str, parts: Sequence[WorkerPart]) -> list[Document]:
    """Return a compose file of one service for each kind of worker, on one host."""
    del name
    services = {}
    for part in parts:
        launch = part.launch
        if (launch.scenario.nodes or 1) > 1:
            raise Unwritable("nodes: as compose; accepted: 1, or another object")
        inner = pod(launch)["containers"][0]
        port = launch.facts.port
        services[part.name] = {
            "image": image(launch),
            "entrypoint": inner["command"],
            "command": [word.replace("$", "$$") for word in inner["args"]],
            "ports": [f"{port}:{port}" if part.replicas == 1 else str(port)],
            "shm_size": "16gb",
            "labels": {},
            "deploy": {
                "replicas": part.replicas,
                "resources": {
                    "reservations": {
                        "devices": [
                            {
                                "driver": "nvidia",
                                "count": gpus_of_a_pod(launch),
                                "capabilities": ["gpu"],
                            }
                        ]
                    }
                },
            },
        }
    return [{"services": services}]


ALL = started_engines()
KINDS: Mapping[str, ObjectKind] = {
    "deployment": ObjectKind(deployment, ALL, one_node=True),
    "leaderworkerset": ObjectKind(leader_worker_set, ALL),
    "llminferenceservice": ObjectKind(llm_inference_service, ("vllm",), handles_nodes=True),
    "inferenceservice": ObjectKind(inference_service, ALL, one_node=True, one_role=True),
    "llm-d": ObjectKind(model_service, ("vllm", "sglang"), handles_nodes=True),
    "dynamo": ObjectKind(dynamo, ("vllm", "sglang", "trtllm"), handles_nodes=True, own_image=True),
    "compose": ObjectKind(compose, ALL, one_node=True),
}
"""Objects that are written, by the name `planner manifest --as` takes."""
