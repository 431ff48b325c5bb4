"""Autoscalers with bounds and targets from the plan: HPA and KEDA objects for a Deployment."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from planner.deployment import Deployment, deployment_of
from planner.handover.refusal import Unwritable
from planner.plans.serving import under_load
from planner.plans.targets import MOST_CLIENTS, largest, percentile_factor
from planner.roofline import Array
from planner.scenario import Scenario

METRICS: Mapping[str, tuple[str, str]] = {
    "vllm": ("vllm:num_requests_running", "vllm:num_requests_waiting"),
    "sglang": ("sglang:num_running_reqs", "sglang:num_queue_reqs"),
    "trtllm": ("trtllm_num_requests_running", "trtllm_num_requests_waiting"),
    "llama.cpp": ("llamacpp:requests_processing", "llamacpp:requests_deferred"),
    "lmdeploy": ("lmdeploy:num_requests_running", "lmdeploy:num_requests_waiting"),
}
"""Requests running and waiting, as each engine exports them."""


def clients_within(scenario: Scenario, deployment: Deployment) -> int:
    """Return the most clients of one replica within the scenario's limits at its percentile.

    Without limits, those that a replica runs without a queue. 0 where one client misses them.
    """
    step = percentile_factor(deployment, "tpot", scenario.percentile)
    start = percentile_factor(deployment, "ttft", scenario.percentile)
    bounded = scenario.tpot_ms is not None or scenario.ttft_ms is not None

    def meets(loads: Array) -> Any:
        load = under_load(scenario, deployment, loads)
        within = np.ones(np.shape(loads), bool)
        if scenario.tpot_ms is not None:
            within &= np.asarray(load.state.tpot_s) * step * 1e3 <= scenario.tpot_ms
        if scenario.ttft_ms is not None:
            within &= load.moved(start, step)[0] * 1e3 <= scenario.ttft_ms
        return within if bounded else within & (np.asarray(load.state.queued) < 1)

    return largest(meets, MOST_CLIENTS)


def autoscaler(
    scenario: Scenario, form: str, name: str, most_replicas: int | None = None
) -> tuple[dict[str, Any], str]:
    """Return an autoscaler of a Deployment called `name`, and a note on its figures.

    The target is the most clients of a replica within the limits, the least replicas are the
    scenario's, the most are twice as many unless given. Raises Unwritable naming the field.
    """
    if form not in FORMS:
        raise Unwritable(f"autoscale: {form[:40]!r} is not written; accepted: {', '.join(FORMS)}")
    if scenario.isl is None or scenario.engine not in METRICS:
        raise Unwritable("concurrency, isl, osl, engine: an autoscaler needs the load and engine")
    target = clients_within(scenario, deployment_of(scenario))
    if target < 1:
        raise Unwritable("tpot_ms, ttft_ms: one client of a replica misses the limits")
    most = most_replicas or 2 * scenario.replicas
    if most < scenario.replicas:
        raise Unwritable(f"max_replicas: {most} is below replicas = {scenario.replicas}")
    assumed = "" if most_replicas else "; twice the replicas at most is an assumption"
    note = f"a replica is within the limits up to {target} clients{assumed}"
    return FORMS[form](scenario, name, target, most), note


def _hpa(scenario: Scenario, name: str, target: int, most: int) -> dict[str, Any]:
    running = METRICS[scenario.engine or ""][0].replace(":", "_")
    metric = {
        "type": "Pods",
        "pods": {
            "metric": {"name": running},
            "target": {"type": "AverageValue", "averageValue": str(target)},
        },
    }
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "minReplicas": scenario.replicas,
            "maxReplicas": most,
            "metrics": [metric],
        },
    }


def _keda(scenario: Scenario, name: str, target: int, most: int) -> dict[str, Any]:
    running, waiting = METRICS[scenario.engine or ""]
    trigger = {
        "type": "prometheus",
        "metadata": {
            "serverAddress": "http://prometheus:9090",
            "query": f'sum({running}{{pod=~"{name}-.*"}}) + sum({waiting}{{pod=~"{name}-.*"}})',
            "threshold": str(math.floor(target)),
        },
    }
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": name},
        "spec": {
            "scaleTargetRef": {"name": name},
            "minReplicaCount": scenario.replicas,
            "maxReplicaCount": most,
            "triggers": [trigger],
        },
    }


FORMS: Mapping[str, Callable[[Scenario, str, int, int], dict[str, Any]]] = {
    "hpa": _hpa,
    "keda": _keda,
}
"""Autoscalers by the name that `planner manifest --autoscale` takes."""
