"""From a scenario to what it is about: a model on a machine, ready to answer any load."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from planner.calibration import Calibration, Speculation, Subject, current, subject_of
from planner.calibration.speculation import speculate
from planner.engines.cache_formats import cache_format
from planner.engines.conditions import condition_notes, conditions_of
from planner.engines.memory import Memory, plan_memory
from planner.engines.notes import memory_notes
from planner.engines.profiles import Engine, get_engine
from planner.engines.settings import DEFAULTS, MemorySettings
from planner.engines.support import check_device, check_version, support_notes
from planner.hw import Accelerator, get_accelerator
from planner.models import get_model
from planner.models.parts import Formats
from planner.models.spec import ModelSpec, Note
from planner.precision import get_format
from planner.roofline import Array, Numeric
from planner.scenario import Scenario, SpeculationOptions
from planner.step.buffers import Into, fresh, prefixed
from planner.step.conditions import PLAIN, Conditions, without_graphs
from planner.step.evaluator import Step
from planner.step.figures import StepPoints
from planner.step.limits import DecodeLimits, limits
from planner.step.model_steps import model_step, prompt_points
from planner.step.parallel import NETWORK, NETWORK_BYTES_PER_S, Sharding, link_domain


@dataclass(frozen=True, slots=True)
class Options:
    """How a model is run; None is the checkpoint's own format, the engine's default, no engine."""

    weights: str | None = None
    kv: str | None = None
    engine: str | None = None
    engine_version: str | None = None
    settings: MemorySettings = DEFAULTS
    """Of the engine's memory."""
    latent: str = "latent"
    """How a latent cache is kept (`engines.pages.kinds`)."""
    drafts: int = 0
    """Tokens drafted a step; layers that the model has for it are loaded then [-]."""
    host_bytes_per_s: float | None = None
    """Bandwidth of host memory; None is what the engine's data assumes [byte/s]."""


@dataclass(frozen=True, slots=True, eq=False)
class ModelPass:
    """One pass of a step through the model, or through a share of it."""

    share: float
    """Share of the model's step it takes [-]."""
    points: StepPoints
    """Its figures, whole."""


@dataclass(frozen=True, eq=False)
class Deployment:
    """A model on a machine, ready to answer any batch and context."""

    spec: ModelSpec
    accelerator: Accelerator
    sharding: Sharding
    formats: Formats
    engine: Engine
    step: Step
    """A decode step, calibrated."""
    subject: Subject
    calibration: Calibration
    memory: Memory
    weights: str
    """Weight format as stated in the answer: the one of the options, or the checkpoint's."""
    notes: tuple[Note, ...]
    conditions: Conditions = PLAIN
    """What the engine's settings change of a step."""
    speculation: Speculation | None = None
    """Tokens drafted and accepted a step; None where every step yields one token."""
    nodes: int | None = None
    """Hosts the replica is said to span."""

    @cached_property
    def prompt_step(self) -> Step:
        """The step that runs prompts, calibrated; the decode question does without."""
        step = model_step(
            self.spec,
            self.accelerator,
            self.sharding,
            self.formats,
            self.calibration.routing_spread,
            prompt=True,
            conditions=self.conditions,
            nodes=self.nodes,
        )
        return step.reaching(self.calibration.efficiency(step.items, self.subject, "prompt"))

    @property
    def queries(self) -> float:
        """Tokens a sequence puts through a step: one, and the drafts to verify [-]."""
        return 1.0 + self.speculation.drafts if self.speculation else 1.0

    @property
    def tokens_per_step(self) -> float:
        """Tokens a sequence gets from a step, on average [-]."""
        return self.speculation.accepted if self.speculation else 1.0

    def passes(self, batch: Numeric, context: Numeric, into: Into = fresh) -> tuple[ModelPass, ...]:
        """Return what a step runs at every batch and context, which broadcast.

        A pass through the model over all its tokens; then the drafts, each a layer's share of a
        pass over one token. Figures of points are written `into` arrays of their shape.
        """
        return self._passes(
            lambda queries: self.step.at(batch, context, queries, prefixed(into, f"{queries:g} "))
        )

    def passes_on_grid(
        self, batches: tuple[float, ...], contexts: tuple[float, ...]
    ) -> tuple[ModelPass, ...]:
        """Return what a step runs where each batch meets each context, see `Step.on_grid`."""
        return self._passes(lambda queries: self.step.on_grid(batches, contexts, queries))

    def _passes(self, evaluate: Callable[[float], StepPoints]) -> tuple[ModelPass, ...]:
        whole = ModelPass(1.0, evaluate(self.queries))
        if not (self.speculation and self.speculation.drafts):
            return (whole,)
        return whole, ModelPass(self.speculation.drafts / self.spec.layers, evaluate(1.0))

    def time_s(self, batch: Numeric, context: Numeric) -> Array:
        """Return the calibrated TPOT at every batch and context, which broadcast [s]."""
        return self.per_token_s(self.passes(batch, context))

    def per_token_s(self, passes: tuple[ModelPass, ...]) -> Array:
        """Return the calibrated TPOT of a step that runs `passes` [s]."""
        step_s = sum(each.share * each.points.total_s for each in passes)
        return np.asarray(step_s / self.tokens_per_step)

    def prompt_time_s(
        self,
        isl: Numeric,
        prompts: Numeric = 1.0,
        prefix_hit: Numeric = 0.0,
        isl_of_a_token: Numeric | None = None,
    ) -> Array:
        """Return the calibrated time of a pass over `prompts` prompts of `isl` tokens [s].

        A share `prefix_hit` of each is cached already; see `prompt_context`. Arrays broadcast.
        """
        return prompt_points(self.prompt_step, isl, prompts, prefix_hit, isl_of_a_token).total_s

    def limits(self, context: float) -> DecodeLimits:
        """Return the limits of decode at `context` cached tokens."""
        return limits(self.step, context, self.queries)

    def calibrated(self, calibration: Calibration, subject: Subject) -> Deployment:
        """Return the same deployment reaching what a calibration says of a subject."""
        efficiency = calibration.efficiency(self.step.items, subject, "decode")
        if self.conditions.eager_layer_s:
            eager = self.conditions.eager_layer_s
            efficiency = without_graphs(efficiency, self.step.items, eager)
        step = self.step.reaching(efficiency)
        return replace(self, subject=subject, calibration=calibration, step=step)

    @cached_property
    def tpot_interval(self) -> tuple[float, float]:
        """The factors from p50 to p10 and p90 of a TPOT, which every point has [-]."""
        return self.interval("tpot")

    @cached_property
    def nearness(self) -> str:
        """How near the subject is to what was measured, in words."""
        return self.calibration.intervals.described(self.subject)

    def interval(self, quantity: str = "tpot") -> tuple[float, float]:
        """Return the factors from p50 to p10 and p90 of a time: tpot or ttft [-]."""
        between = any(sent.op == NETWORK for sent in self.step.collectives)
        return self.calibration.interval(quantity, self.subject, between)


def deployment_of(scenario: Scenario) -> Deployment:
    """Return the deployment a scenario is about.

    Raises ValueError (a subclass that names the field) for anything unknown or impossible.
    """
    check_version(scenario.engine, scenario.engine_version)
    deployment = deploy(
        get_model(scenario.model),
        get_accelerator(scenario.gpu),
        Sharding(scenario.tp, scenario.pp, scenario.ep, scenario.attention_dp),
        options_of(scenario),
    )
    if scenario.speculation is None:
        return deployment
    return drafted(deployment, scenario.speculation)


def options_of(scenario: Scenario) -> Options:
    """Return the options a scenario states."""
    return Options(
        scenario.weights,
        scenario.kv,
        scenario.engine,
        scenario.engine_version,
        MemorySettings.of(scenario),
        drafts=scenario.speculation.drafts if scenario.speculation else 0,
    )


def drafted(deployment: Deployment, given: SpeculationOptions) -> Deployment:
    """Return a deployment whose memory holds drafts' layers, with what a step drafts and yields."""
    speculation, notes = speculate(given, deployment.calibration, deployment.spec)
    return replace(deployment, speculation=speculation, notes=(*deployment.notes, *notes))


def prompt_options(scenario: Scenario) -> Options:
    """Return the options of prefill workers: how decode spans ranks and hosts is not theirs."""
    options = options_of(scenario)
    settings = replace(options.settings, decode_cp=None, nodes=None)
    return replace(options, settings=settings, drafts=0)


def deploy(
    spec: ModelSpec, accelerator: Accelerator, sharding: Sharding, options: Options = Options()
) -> Deployment:
    """Return the deployment of a model on a machine; equal arguments give the same one as long as
    the same calibration is in use.

    Raises ValueError like `deployment_of`.
    """
    return _deployed(spec, accelerator, sharding, options, current())


@lru_cache(maxsize=1024)
def _deployed(
    spec: ModelSpec,
    accelerator: Accelerator,
    sharding: Sharding,
    options: Options,
    calibration: Calibration,
) -> Deployment:
    engine = get_engine(options.engine, options.engine_version).on(accelerator, sharding.ranks)
    check_device(engine, accelerator)
    sharding.check(spec)
    weights = spec.weights_name(options.weights)
    formats = _formats(spec, weights, engine, options)
    conditions = conditions_of(spec, engine, options.settings, options.host_bytes_per_s)
    nodes = options.settings.nodes
    step = model_step(
        spec,
        accelerator,
        sharding,
        formats,
        calibration.routing_spread,
        conditions=conditions,
        nodes=nodes,
    )
    loaded = spec.drafting() if options.drafts else spec
    memory = plan_memory(
        loaded,
        accelerator,
        sharding,
        formats,
        engine,
        options.settings,
        options.latent,
        options.drafts,
    )
    subject = subject_of(spec, accelerator, formats, options.engine, options.engine_version)
    deployment = Deployment(
        spec=spec,
        accelerator=accelerator,
        sharding=sharding,
        formats=formats,
        engine=memory.engine,
        step=step,
        subject=subject,
        calibration=calibration,
        memory=memory,
        weights=weights,
        conditions=conditions,
        notes=(
            *spec.notes,
            *step.notes,
            *_domain_note(accelerator, sharding, nodes),
            *memory_notes(spec, sharding, formats, memory, options.settings, options.kv),
            *condition_notes(spec, conditions),
            *_figure_notes(accelerator, step, sharding),
            *support_notes(engine, options.engine_version, accelerator),
        ),
        nodes=nodes,
    )
    return deployment.calibrated(calibration, subject)


def _formats(spec: ModelSpec, weights: str, engine: Engine, options: Options) -> Formats:
    """Formats to run with: a cache's is the one wanted, the engine's for these weights, or the
    model's."""
    names = _stored_formats(spec) if weights == spec.stored_as else [weights]
    wanted = options.kv and cache_format(spec, options.kv)
    formats = spec.formats(options.weights, engine.kv_format(names, spec.model_type, wanted))
    index = engine.index_by_type.get(spec.model_type)
    return replace(formats, index=get_format(index)) if index else formats


def _stored_formats(spec: ModelSpec) -> list[str]:
    return [f if isinstance(f, str) else f.id for f in spec.quantization.formats.values()]


def _figure_notes(accelerator: Accelerator, step: Step, sharding: Sharding) -> tuple[Note, ...]:
    """A note for each figure the answer rests on that is unsourced or assumed."""
    used = {"bandwidth_bytes_per_s", "memory_bytes"}
    used |= {f"peaks_flops_per_s.{name}" for name in step.formats}
    if sharding.gpus > 1:
        used.add("link_bytes_per_s")
    weak = [name for name in accelerator.weak_figures if name in used]
    return tuple(Note("weak_figure", accelerator.caveat(name)) for name in weak)


def _domain_note(
    accelerator: Accelerator, sharding: Sharding, nodes: int | None
) -> tuple[Note, ...]:
    domain = link_domain(accelerator, sharding.gpus, nodes)
    if domain is None:
        return ()
    where = f"the {accelerator.id} link domain of {domain}"
    if nodes and nodes > 1:
        where = f"the {domain} of one of {nodes} nodes"
    return (
        Note(
            "beyond_link_domain",
            f"{sharding.gpus} GPUs exceed {where}: between nodes collectives are computed over a "
            f"network of {NETWORK_BYTES_PER_S / 1e9:.0f} GB/s for each (assumed), at floors that "
            "were never fitted, so that the interval is widened",
        ),
    )
