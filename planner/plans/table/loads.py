"""The steady state of one deployment under many loads at once, as columns."""

from __future__ import annotations

import numpy as np

from planner.deployment import Deployment
from planner.plans.columns import Column
from planner.plans.serving import moved
from planner.roofline import Array
from planner.serving.steady import room_for, serve


def serving_columns(
    deployment: Deployment, replicas: int, concurrency: Array, isl: Array, osl: Array
) -> dict[str, Column]:
    """Return the figures of requests by name, of the shape in which the axes meet.

    `concurrency` is the clients of one replica [-], `isl` and `osl` lengths [token]; rates are of
    all replicas. Percentiles are as in `plan`: times of the slow end, rates of the other. `fits`
    says whether memory holds a request at all; those that find no room wait.
    """
    state = serve(deployment, concurrency, isl, osl)
    (start_low, start_high), (step_low, step_high) = (
        deployment.interval(quantity) for quantity in ("ttft", "tpot")
    )
    fast = moved(state, concurrency, osl, start_low, step_low)
    slow = moved(state, concurrency, osl, start_high, step_high)
    rate = state.requests_per_s * replicas
    outputs = rate * osl
    return {
        "running_batch": state.running,
        "queued": state.queued,
        "ttft_p10_s": fast[0],
        "ttft_p50_s": state.ttft_s,
        "ttft_p90_s": slow[0],
        "tpot_p10_s": state.tpot_s * step_low,
        "tpot_p50_s": state.tpot_s,
        "tpot_p90_s": state.tpot_s * step_high,
        "requests_per_s": rate,
        "requests_per_s_p10": slow[1] * replicas,
        "requests_per_s_p90": fast[1] * replicas,
        "output_tokens_per_s": outputs,
        "output_tokens_per_s_per_gpu": outputs / (deployment.sharding.gpus * replicas),
        "fits": np.broadcast_to(room_for(deployment, isl, osl) >= 1, outputs.shape),
    }
