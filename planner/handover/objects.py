"""Objects that hold workers, by what tells each: `kind`, or the keys at the top of a file.

Fields of custom objects are those of their published types: LeaderWorkerSet v1, KServe
LLMInferenceService v1alpha2 and InferenceService v1beta1, llm-d-modelservice 0.4.12,
DynamoGraphDeployment v1beta1 and v1alpha1 (read 2026-12-01), what the llm-d chart adds to a command
from memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from planner.handover.arguments import Fault, Given
from planner.handover.documents import line_of
from planner.handover.pods import (
    Files,
    at,
    container_worker,
    count,
    environment,
    is_pinned,
    items,
    mapping,
    note_annotation,
    pod_worker,
    shared_bytes,
    words_of,
)
from planner.handover.shell import Word
from planner.handover.workers import Worker, worker_of

Object = Mapping[Any, Any]
SHARED_BY_DEFAULT = 64 * 2**20
"""What a container has of /dev/shm unless told otherwise [byte]."""


def workers_in(content: list[Any], files: Files) -> list[Worker]:
    """Return the workers that the objects of a text start."""
    objects = [one for document in content for one in _flat(document)]
    held = {**files, **_config_maps(objects)}
    workers: list[Worker] = []
    for one in objects:
        kind = _kind(one)
        if kind in READERS:
            for worker in READERS[kind](one, held):
                worker.kind = kind
                note_annotation(worker, at(one, "spec", "template"), one)
                workers.append(worker)
    return workers


def _flat(document: Any) -> Iterator[Object]:
    if isinstance(document, list):
        for one in document:
            if isinstance(one, Mapping):
                yield one
    elif isinstance(document, Mapping):
        if str(document.get("kind", "")).endswith("List") and isinstance(
            document.get("items"), list
        ):
            yield from (one for one in document["items"] if isinstance(one, Mapping))
        else:
            yield document


def _kind(one: Object) -> str:
    kind = one.get("kind")
    if isinstance(kind, str):
        return kind
    if "modelArtifacts" in one:
        return "llm-d-modelservice"
    return "docker-compose" if isinstance(one.get("services"), Mapping) else ""


def _config_maps(objects: list[Object]) -> Files:
    files = {}
    for one in objects:
        if one.get("kind") == "ConfigMap":
            data = mapping(one.get("data"))
            for name, text in data.items():
                if isinstance(text, str):
                    files[str(name)] = (text, line_of(data, name) + 1)
    return files


def _deployment(one: Object, files: Files) -> Iterator[Worker]:
    spec = mapping(one.get("spec"))
    worker = pod_worker(at(spec, "template", "spec"), files)
    if worker is not None:
        _replicated(worker, spec)
        yield worker


def _replicated(worker: Worker, spec: Object, key: str = "replicas") -> None:
    worker.replicas = max(1, count(spec.get(key)))
    worker.replicas_line = line_of(spec, key)


def _leader_worker_set(one: Object, files: Files) -> Iterator[Worker]:
    spec = mapping(one.get("spec"))
    group = mapping(spec.get("leaderWorkerTemplate"))
    for template in ("leaderTemplate", "workerTemplate"):
        worker = pod_worker(at(group, template, "spec"), files)
        if worker is not None:
            _replicated(worker, spec)
            worker.pods = max(1, count(group.get("size")))
            yield worker
            return


PARALLELISM = {
    "tensor": "tensor_parallel_size",
    "pipeline": "pipeline_parallel_size",
    "data": "data_parallel_size",
    "dataLocal": "data_parallel_size_local",
    "expert": "enable_expert_parallel",
}
"""Arguments of vLLM that `parallelism` stands for."""


def _parallelism(spec: Object) -> dict[str, Given]:
    stated = mapping(spec.get("parallelism"))
    given = {}
    for key, argument in PARALLELISM.items():
        value = stated.get(key)
        if (key == "expert" and value is True) or (
            isinstance(value, int) and not isinstance(value, bool) and value >= 1
        ):
            text = f"parallelism.{key}: {value}"
            given[argument] = Given(argument, value, line_of(stated, key), text)
    return given


def _llm_inference_service(one: Object, files: Files) -> Iterator[Worker]:
    spec = mapping(one.get("spec"))
    model = mapping(spec.get("model"))
    prefill = spec.get("prefill")
    parts = [(spec, "decode" if isinstance(prefill, Mapping) else "both")]
    if isinstance(prefill, Mapping):
        parts.append((prefill, "prefill"))
    for part, role in parts:
        pod = part.get("template")
        pod = pod if isinstance(pod, Mapping) else {"containers": [{"name": "main"}]}
        worker = pod_worker(pod, files, "vllm", "main")
        if worker is None:
            continue
        if worker.role == "both":
            worker.role = role
        _named(worker, model, "uri")
        stated = _parallelism(part)
        if isinstance(part.get("worker"), Mapping):
            worker.outside = stated
            values = {name: given.value for name, given in stated.items()}
            if "data_parallel_size" in values:
                local = values.get("data_parallel_size_local") or 1
                worker.pods = max(1, values["data_parallel_size"] // local)
            else:
                worker.pods = values.get("pipeline_parallel_size", 1)
        else:
            worker.dropped = {k: v for k, v in stated.items() if k not in worker.parsed.given}
        _replicated(worker, part)
        yield worker


def _named(worker: Worker, model: Object, key: str) -> None:
    """Name the model by the object's own field, which the controller downloads it from."""
    uri = model.get(key)
    if isinstance(uri, str):
        worker.model = Word(uri, line_of(model, key))


def _inference_service(one: Object, files: Files) -> Iterator[Worker]:
    predictor = mapping(at(one, "spec", "predictor"))
    model = predictor.get("model")
    workers = mapping(predictor.get("workerSpec"))
    if isinstance(model, Mapping):
        worker = container_worker(model, files, "vllm")
    else:
        worker = pod_worker(predictor, files)
    if worker is None:
        return
    if isinstance(model, Mapping):
        selector = pod_worker({**predictor, "containers": [model]}, files, "vllm")
        if selector is not None:
            worker.gpu, worker.gpu_line = selector.gpu, selector.gpu_line
            worker.shared_memory = selector.shared_memory
        if worker.model is None or worker.model.text.startswith("/mnt/models"):
            _named(worker, model, "storageUri")
    for key in ("tensorParallelSize", "pipelineParallelSize"):
        value = workers.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value > 1:
            name = PARALLELISM[key.removesuffix("ParallelSize")]
            worker.outside[name] = Given(name, value, line_of(workers, key), f"{key}: {value}")
    if workers:
        worker.pods = max(1, count(workers.get("pipelineParallelSize"), 2))
    _replicated(worker, predictor, "minReplicas")
    yield worker


def _model_service(one: Object, files: Files) -> Iterator[Worker]:
    artifacts = mapping(one.get("modelArtifacts"))
    prefill = mapping(one.get("prefill"))
    disaggregated = bool(prefill) and prefill.get("create", True) is not False
    for key, role in (("decode", "decode" if disaggregated else "both"), ("prefill", "prefill")):
        part = mapping(one.get(key))
        if not part or part.get("create", True) is False:
            continue
        worker = pod_worker(part, files, "vllm")
        if worker is None:
            continue
        container = mapping(items(part.get("containers"))[0])
        if container.get("modelCommand") == "vllmServe":
            worker.outside = _parallelism(part)
        else:
            worker.dropped = {
                k: v for k, v in _parallelism(part).items() if k not in worker.parsed.given
            }
        if worker.role == "both":
            worker.role = role
        _named(worker, artifacts, "uri")
        if worker.model is None or not worker.model.text.startswith("hf"):
            _named(worker, artifacts, "name")
        if one.get("multinode") is True:
            worker.pods = max(1, count(at(part, "parallelism", "workers")))
        _replicated(worker, part)
        yield worker


def _dynamo(one: Object, files: Files) -> Iterator[Worker]:
    spec = mapping(one.get("spec"))
    parts = [mapping(each) for each in items(spec.get("components"))]
    parts += [mapping(each) for each in mapping(spec.get("services")).values()]
    for part in parts:
        if "frontend" in (part.get("type"), part.get("componentType")):
            continue
        pod = at(part, "podTemplate", "spec")
        extra = at(part, "extraPodSpec", "mainContainer")
        if isinstance(extra, Mapping):
            worker = container_worker(extra, files)
            selector = pod_worker(
                {**mapping(part.get("extraPodSpec")), "containers": [extra]}, files
            )
            if worker is not None and selector is not None:
                worker.gpu, worker.gpu_line = selector.gpu, selector.gpu_line
        else:
            worker = pod_worker(pod, files, prefer="main")
        if worker is None:
            continue
        resources = mapping(at(part, "resources", "limits"))
        if worker.gpus is None and "gpu" in resources:
            worker.gpus, worker.gpus_line = count(resources["gpu"], 0), line_of(resources, "gpu")
        if part.get("type") == "prefill" or part.get("subComponentType") == "prefill":
            worker.role = "prefill"
        elif part.get("type") == "decode" or part.get("subComponentType") == "decode":
            worker.role = "decode"
        worker.pods = max(1, count(at(part, "multinode", "nodeCount")))
        worker.shared_memory = None
        _replicated(worker, part)
        yield worker


def _compose(one: Object, files: Files) -> Iterator[Worker]:
    for service in mapping(one.get("services")).values():
        service = mapping(service)
        worker = _composed(service, files)
        if worker is None:
            continue
        worker.replicas = max(
            1, count(at(service, "deploy", "replicas"), 0) or count(service.get("scale"))
        )
        worker.gpus, worker.gpus_line = _devices(service)
        worker.pinned = is_pinned(str(service.get("image", "")))
        size = shared_bytes(service.get("shm_size")) or 0
        worker.shared_memory = size > SHARED_BY_DEFAULT or service.get("ipc") == "host"
        labels = {"metadata": {"annotations": service.get("labels")}}
        note_annotation(worker, labels)
        yield worker


def _composed(service: Object, files: Files) -> Worker | None:
    """Return the worker of a service, whose `command` is what a container's `args` are."""
    known, strings = environment(service), list[Fault]()
    own = words_of(service, "entrypoint", known, strings)
    words = [*own, *words_of(service, "command", known, strings)]
    image = str(service.get("image", ""))
    return worker_of(words, image=image, env=known, files=files, only_arguments=not own)


def _devices(service: Object) -> tuple[int | None, int]:
    reservations = at(service, "deploy", "resources", "reservations", "devices")
    for device in items(reservations):
        if "gpu" not in items(at(device, "capabilities")):
            continue
        ids = items(at(device, "device_ids"))
        if ids:
            return len(ids), line_of(device, "device_ids")
        if isinstance(at(device, "count"), int):
            return count(at(device, "count"), 0), line_of(device, "count")
    return None, line_of(service, "deploy")


READERS: Mapping[str, Callable[[Object, Files], Iterator[Worker]]] = {
    "Deployment": _deployment,
    "StatefulSet": _deployment,
    "LeaderWorkerSet": _leader_worker_set,
    "LLMInferenceService": _llm_inference_service,
    "InferenceService": _inference_service,
    "llm-d-modelservice": _model_service,
    "DynamoGraphDeployment": _dynamo,
    "docker-compose": _compose,
}
