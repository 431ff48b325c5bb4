"""The figures that are compared, read off a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from planner import answer
from planner.hw import get_accelerator, price_per_hour
from planner.plans.compare.answers import Better
from planner.plans.planning import plan
from planner.scenario import Scenario
from planner.step.parallel import Sharding
from planner.workload.distributions import mean_context


@dataclass(frozen=True)
class Answered:
    """A scenario with its plan and what it costs."""

    scenario: Scenario
    plan: answer.Plan
    step: answer.Plan
    """The plan whose last point and kernels are compared: of the batch the engine runs, in a
    serving state; otherwise the same."""
    serving: answer.Serving | None
    """None where the comparison is about decode points."""
    gpus: int | float
    usd_per_gpu_hour: float | None
    price_source: str

    @property
    def point(self) -> answer.Point:
        """The decode point compared."""
        return self.step.points[-1]

    @property
    def tokens_per_step(self) -> float:
        """Tokens a sequence gets from a step of the kernels compared [-]."""
        drafting = self.step.scenario.speculation
        return (drafting.accepted or 1.0) if drafting else 1.0

    @property
    def tokens_per_s(self) -> float:
        """Output over all replicas [token/s]."""
        if self.serving is None:
            return self.point.tokens_per_s
        return self.serving.output_tokens_per_s

    @property
    def usd_per_hour(self) -> float | None:
        """Price of all accelerators [USD/h]."""
        return None if self.usd_per_gpu_hour is None else self.usd_per_gpu_hour * self.gpus


def answered(scenario: Scenario, prices: Mapping[str, float], serving: bool) -> Answered:
    """Answer a scenario; raises ValueError as `plan` does."""
    whole = plan(scenario)
    accelerator = get_accelerator(scenario.gpu)
    split = Sharding(scenario.tp, scenario.pp, scenario.ep, scenario.attention_dp)
    known = None if accelerator.id in prices else price_per_hour(accelerator.part)
    price = known.usd_per_gpu_hour if known else prices.get(accelerator.id)
    source = "given with the request" if accelerator.id in prices else ""
    if known:
        source = f"median of {known.providers} on-demand prices, {known.oldest_date}…{known.date}"
    apart = whole.serving.disaggregated if serving and whole.serving else None
    return Answered(
        scenario=scenario,
        plan=whole,
        step=_running(scenario, whole) if serving else whole,
        serving=whole.serving if serving else None,
        gpus=apart.gpus if apart else split.gpus * scenario.replicas,
        usd_per_gpu_hour=price,
        price_source=source,
    )


def _running(scenario: Scenario, whole: answer.Plan) -> answer.Plan:
    """Return the plan of the step an engine runs in its steady state."""
    served = whole.serving
    if served is None or scenario.isl is None or scenario.osl is None:
        return whole
    state = {
        "batch": [max(1, round(served.running_batch))],
        "context": [mean_context(scenario.isl, scenario.osl)],
        "concurrency": None,
        "isl": None,
        "osl": None,
        "disaggregated": None,
    }
    return plan(scenario.model_copy(update=state))


@dataclass(frozen=True)
class ComparedFigure:
    """One figure: how it is read, and which direction is better."""

    name: str
    meaning: str
    unit: str
    better: Better | None
    read: Callable[[Answered], float | None]
    attributed: bool = False


def _tpot(of: Answered) -> float:
    return of.serving.tpot_s.p50 if of.serving else of.point.tpot_s.p50


def _cost(of: Answered) -> float | None:
    hourly = of.usd_per_hour
    return None if hourly is None else hourly / (of.tokens_per_s * 3600) * 1e6


FIGURES = (
    ComparedFigure("tpot_s", "time per output token", "s", "lower", _tpot, attributed=True),
    ComparedFigure(
        "ttft_s",
        "time to first token",
        "s",
        "lower",
        lambda of: of.serving.ttft_s.p50 if of.serving else None,
        attributed=True,
    ),
    ComparedFigure(
        "tokens_per_s",
        "output of all replicas",
        "token/s",
        "higher",
        lambda of: of.tokens_per_s,
        attributed=True,
    ),
    ComparedFigure(
        "tokens_per_s_per_gpu",
        "output of one GPU",
        "token/s",
        "higher",
        lambda of: of.tokens_per_s / of.gpus,
        attributed=True,
    ),
    ComparedFigure(
        "tokens_per_s_per_user",
        "what one user sees",
        "token/s",
        "higher",
        lambda of: 1.0 / _tpot(of),
        attributed=True,
    ),
    ComparedFigure(
        "usd_per_million_tokens",
        "cost of a million output tokens",
        "USD",
        "lower",
        _cost,
        attributed=True,
    ),
    ComparedFigure(
        "usd_per_hour",
        "cost of all GPUs",
        "USD/h",
        "lower",
        lambda of: of.usd_per_hour,
        attributed=True,
    ),
    ComparedFigure(
        "gpus", "GPUs over all replicas and prefill workers", "", "lower", lambda of: float(of.gpus)
    ),
    ComparedFigure(
        "roofline_tpot_s",
        "time per output token on the datasheet roofline",
        "s",
        "lower",
        lambda of: of.point.roofline_tpot_s,
        attributed=True,
    ),
    ComparedFigure(
        "arithmetic_intensity",
        "of the decode step",
        "FLOP/byte",
        None,
        lambda of: of.point.arithmetic_intensity,
        attributed=True,
    ),
    ComparedFigure(
        "ridge_point",
        "of the format most FLOPs run in",
        "FLOP/byte",
        None,
        lambda of: of.plan.limits.ridge_point,
    ),
    ComparedFigure(
        "saturation_intensity",
        "intensity as the batch grows",
        "FLOP/byte",
        None,
        lambda of: of.plan.limits.saturation_intensity,
    ),
    ComparedFigure(
        "crossover_batch",
        "batch where decode turns compute-bound",
        "",
        None,
        lambda of: _whole(of.plan.limits.crossover_batch),
    ),
    ComparedFigure(
        "knee_batch",
        "batch where throughput bends",
        "",
        None,
        lambda of: _whole(of.plan.limits.knee_batch),
    ),
    ComparedFigure("mbu", "share of peak bandwidth", "", None, lambda of: of.point.mbu),
    ComparedFigure("mfu", "share of peak arithmetic", "", None, lambda of: of.point.mfu),
    ComparedFigure(
        "flops",
        "of one step, over all GPUs of a replica",
        "FLOP",
        None,
        lambda of: of.point.flops,
        attributed=True,
    ),
    ComparedFigure(
        "bytes",
        "moved in one step, over all GPUs of a replica",
        "byte",
        None,
        lambda of: of.point.bytes,
        attributed=True,
    ),
    ComparedFigure(
        "weights_bytes_per_gpu",
        "weights in each GPU's memory",
        "byte",
        "lower",
        lambda of: of.plan.memory.weights_bytes_per_gpu,
    ),
    ComparedFigure(
        "kv_bytes_per_token",
        "cache of one token of a sequence",
        "byte",
        "lower",
        lambda of: of.plan.memory.kv_bytes_per_token,
    ),
    ComparedFigure(
        "kv_pool_tokens",
        "tokens the caches of a replica hold",
        "token",
        "higher",
        lambda of: _whole(of.plan.memory.kv_pool_tokens),
    ),
    ComparedFigure(
        "max_batch",
        "largest batch that fits",
        "",
        "higher",
        lambda of: _whole(of.plan.memory.max_batch),
    ),
    ComparedFigure(
        "max_context",
        "longest context that fits",
        "token",
        "higher",
        lambda of: _whole(of.plan.memory.max_context),
    ),
)
"""All figures, in the order they are shown."""


def _whole(value: int | None) -> float | None:
    return None if value is None else float(value)
