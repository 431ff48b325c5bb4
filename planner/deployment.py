"""From a scenario to what it is about: model, machine, sharding, formats, engine, step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from planner.calibration import Calibration, Speculation, Subject, current, subject_of
from planner.engines.memory import Memory, plan_memory
from planner.engines.profiles import Engine, get_engine
from planner.engines.support import check_device, check_version, support_notes
from planner.hw import Accelerator, get_accelerator
from planner.models import get_model
from planner.models.parts import Formats
from planner.models.spec import ModelSpec, Note
from planner.roofline import Array, Numeric
from planner.scenario import Scenario
from planner.speculation import speculate
from planner.step.decode import Step, StepWork, step_kernels
from planner.step.parallel import Sharding, collectives
from planner.step.timing import Layout, Machine, StepTime


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """What a step runs: a share of a step of the model."""

    share: float
    """[-]."""
    work: StepWork
    time: StepTime
    """Calibrated."""


@dataclass(frozen=True, eq=False)
class Deployment:
    """A model on a machine, ready to be asked about any batch and context."""

    spec: ModelSpec
    accelerator: Accelerator
    sharding: Sharding
    formats: Formats
    engine: Engine
    step: Step
    machine: Machine
    subject: Subject
    figures: Calibration
    """What the machines were calibrated with."""
    memory: Memory
    weights: str
    """Weight format as stated in the answer: the one asked for, or the checkpoint's."""
    notes: tuple[Note, ...]
    speculation: Speculation | None = None
    """Tokens drafted and accepted a step; None where every step yields one token."""

    @cached_property
    def prompt(self) -> Step:
        """The step that runs prompts; the decode question does without."""
        from planner.step.prefill import prompt_step

        return prompt_step(self.spec, self.formats, self.sharding)

    @cached_property
    def prompt_machine(self) -> Machine:
        """The machine seen by a prompt's kernels."""
        machine = machine_for(self.prompt, self.spec, self.accelerator, self.figures)
        efficiency = self.figures.efficiency(machine.items, self.subject, "prompt")
        return machine.with_efficiency(efficiency)

    @property
    def queries(self) -> float:
        """Tokens a sequence puts through a step: one, and the drafts to verify [-]."""
        return 1.0 + self.speculation.drafts if self.speculation else 1.0

    @property
    def tokens_per_step(self) -> float:
        """Tokens a sequence gets from a step, on average [-]."""
        return self.speculation.accepted if self.speculation else 1.0

    def parts(self, batch: Numeric, context: Numeric) -> tuple[Part, ...]:
        """Return what a step runs at every batch and context, which broadcast.

        A step of the model over all its tokens; then the drafts, each a layer's share of a step
        over one token.
        """
        shares = [(1.0, self.queries)]
        if self.speculation and self.speculation.drafts:
            shares.append((self.speculation.drafts / self.spec.layers, 1.0))
        works = [(share, self.step.work(batch, context, tokens)) for share, tokens in shares]
        return tuple(Part(share, work, self.machine.time(work)) for share, work in works)

    def time_s(self, batch: Numeric, context: Numeric) -> Array:
        """Return the (calibrated) TPOT at every batch and context, which broadcast [s]."""
        return self.per_token_s(self.parts(batch, context))

    def per_token_s(self, parts: tuple[Part, ...]) -> Array:
        """Return the (calibrated) TPOT of a step that runs `parts` [s]."""
        step_s = sum(part.share * part.time.total_s for part in parts)
        return np.asarray(step_s / self.tokens_per_step)

    def calibrated(self, calibration: Calibration, subject: Subject) -> Deployment:
        """Return the same deployment reaching what a calibration says of a subject."""
        decode = calibration.efficiency(self.machine.items, subject, "decode")
        machine = self.machine.with_efficiency(decode)
        return replace(self, subject=subject, figures=calibration, machine=machine)

    def interval(self, quantity: str = "tpot") -> tuple[float, float]:
        """Return the factors from p50 to p10 and p90 of a time: tpot or ttft [-]."""
        return self.figures.intervals.of_case(quantity, self.subject)


def resolve(scenario: Scenario) -> Deployment:
    """Return the deployment a scenario is about.

    Raises ValueError (a subclass that names the field) for anything unknown or impossible.
    """
    split = (scenario.tp, scenario.pp, scenario.ep, scenario.attention_dp)
    choice = (scenario.weights, scenario.kv, scenario.engine, scenario.engine_version)
    check_version(scenario.engine, scenario.engine_version)
    found = deploy(get_model(scenario.model), get_accelerator(scenario.gpu), split, choice)
    if scenario.speculation is None:
        return found
    speculation, notes = speculate(scenario.speculation, found.figures, found.spec)
    return replace(found, speculation=speculation, notes=(*found.notes, *notes))


Split = tuple[int, int, int, int]
Choice = tuple[str | None, str | None, str | None, str | None]


def deploy(spec: ModelSpec, accelerator: Accelerator, split: Split, choice: Choice) -> Deployment:
    """Return the deployment of a model on a machine; equal arguments give the same one as long as
    the same calibration is in use.

    `split` is (tp, pp, ep, attention_dp), `choice` (weights, kv, engine, engine version).
    Raises ValueError like `resolve`.
    """
    return _deployed(spec, accelerator, split, choice, current())


@lru_cache(maxsize=256)
def _deployed(
    spec: ModelSpec, accelerator: Accelerator, split: Split, choice: Choice, figures: Calibration
) -> Deployment:
    weights, kv, engine_name, version = choice
    engine = get_engine(engine_name, version).on(accelerator)
    check_device(engine, accelerator)
    sharding = Sharding(*split)
    sharding.check(spec)
    stated = spec.weights_name(weights)
    formats = spec.formats(weights, kv or _default_kv(spec, stated, engine))
    step = Step(step_kernels(spec, formats), sharding)
    machine = machine_for(step, spec, accelerator, figures)
    subject = subject_of(spec, accelerator, formats, engine_name, version)
    found = Deployment(
        spec=spec,
        accelerator=accelerator,
        sharding=sharding,
        formats=formats,
        engine=engine,
        step=step,
        machine=machine,
        subject=subject,
        figures=figures,
        memory=plan_memory(spec, accelerator, sharding, formats, engine),
        weights=stated,
        notes=(
            *spec.notes,
            *machine.notes,
            *_domain_note(accelerator, sharding),
            *support_notes(engine, version, accelerator),
        ),
    )
    return found.calibrated(figures, subject)


def machine_for(
    step: Step, spec: ModelSpec, accelerator: Accelerator, figures: Calibration
) -> Machine:
    """Return an accelerator as a step of a model sees it, before calibration."""
    sent, layout = collectives(spec, step.sharding), Layout(spec.layers, spec.hidden)
    return Machine(accelerator, step.kernels, sent, layout, figures.routing_spread)


def _default_kv(spec: ModelSpec, weights: str, engine: Engine) -> str | None:
    """The engine's cache format for these weights; None leaves it to the model."""
    names = _stored_formats(spec) if weights == spec.stored_as else [weights]
    return engine.kv_format(names)


def _stored_formats(spec: ModelSpec) -> list[str]:
    return [f if isinstance(f, str) else f.id for f in spec.quantization.formats.values()]


def _domain_note(accelerator: Accelerator, sharding: Sharding) -> tuple[Note, ...]:
    domain = accelerator.domain_size
    if domain is None or sharding.gpus == 1 or sharding.gpus <= domain:
        return ()
    return (
        Note(
            "beyond_link_domain",
            f"{sharding.gpus} GPUs exceed the {accelerator.id} link domain of {domain}: "
            f"collectives are computed at {accelerator.link.name} speed all the same",
        ),
    )
