"""The serving part of a plan: a scenario's load in, the steady state with intervals out."""

from __future__ import annotations

from planner import answer
from planner.resolve import Deployment
from planner.roofline import Array
from planner.scenario import Scenario
from planner.serving import serve


def answer_serving(scenario: Scenario, deployment: Deployment) -> answer.Serving | None:
    """Return the serving part of a plan, or None where the question was not asked."""
    clients, isl, osl = scenario.concurrency, scenario.isl, scenario.osl
    if clients is None or isl is None or osl is None:
        return None
    state = serve(deployment, clients, isl, osl, scenario.prefix_hit)
    requests = float(state.requests_per_s(clients, osl)) * scenario.replicas

    def interval(quantity: str, seconds: Array) -> answer.Interval:
        middle = float(seconds)
        low, high = deployment.interval(quantity)
        return answer.Interval(p10=middle * low, p50=middle, p90=middle * high)

    return answer.Serving(
        concurrency=clients,
        isl=isl,
        osl=osl,
        running_batch=float(state.running),
        queued=float(state.queued),
        ttft_s=interval("ttft", state.ttft_s),
        tpot_s=interval("tpot", state.tpot_s),
        output_tokens_per_s=requests * osl,
        requests_per_s=requests,
    )
