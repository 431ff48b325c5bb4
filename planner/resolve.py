"""From a scenario to what it is about: model, machine, sharding, formats, engine, step."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from planner.decode import Step, step_kernels
from planner.engines import Engine, get_engine
from planner.hw import Accelerator, get_accelerator
from planner.memory import Memory, plan_memory
from planner.models import get_model
from planner.models.parts import Formats
from planner.models.spec import ModelSpec, Note
from planner.parallel import Sharding, collectives
from planner.precision import get_format
from planner.scenario import Scenario
from planner.timing import Machine


@dataclass(frozen=True)
class Deployment:
    """A model on a machine, ready to be asked about any batch and context."""

    spec: ModelSpec
    accelerator: Accelerator
    sharding: Sharding
    formats: Formats
    engine: Engine
    step: Step
    machine: Machine
    memory: Memory
    weights: str
    """Weight format as stated in the answer: the one asked for, or the checkpoint's."""
    notes: tuple[Note, ...]


def resolve(scenario: Scenario) -> Deployment:
    """Return the deployment a scenario is about.

    Raises ValueError (a subclass that names the field) for anything unknown or impossible.
    """
    split = (scenario.tp, scenario.pp, scenario.ep, scenario.attention_dp)
    choice = (scenario.weights, scenario.kv, scenario.engine, scenario.engine_version)
    if isinstance(scenario.model, str) and isinstance(scenario.gpu, str):
        return _catalogue_deployment(scenario.model, scenario.gpu, split, choice)
    return _deployment(get_model(scenario.model), get_accelerator(scenario.gpu), split, choice)


Split = tuple[int, int, int, int]
Choice = tuple[str | None, str | None, str | None, str | None]


@lru_cache(maxsize=512)
def _catalogue_deployment(model: str, gpu: str, split: Split, choice: Choice) -> Deployment:
    return _deployment(get_model(model), get_accelerator(gpu), split, choice)


def _deployment(
    spec: ModelSpec, accelerator: Accelerator, split: Split, choice: Choice
) -> Deployment:
    weights, kv, engine_name, _version = choice
    engine = get_engine(engine_name)
    sharding = Sharding(*split)
    sharding.check(spec)
    formats = spec.formats(weights, kv or _default_kv(spec, weights, engine))
    step = Step(step_kernels(spec, formats), sharding)
    machine = Machine(accelerator, step.kernels, collectives(spec, sharding))
    return Deployment(
        spec=spec,
        accelerator=accelerator,
        sharding=sharding,
        formats=formats,
        engine=engine,
        step=step,
        machine=machine,
        memory=plan_memory(spec, accelerator, sharding, formats, engine),
        weights=get_format(weights).id if weights else spec.quantization.id,
        notes=(*spec.notes, *machine.notes, *_domain_note(accelerator, sharding)),
    )


def _default_kv(spec: ModelSpec, weights: str | None, engine: Engine) -> str | None:
    """The engine's cache format for these weights; None leaves it to the model."""
    names = [get_format(weights).id] if weights else _stored_formats(spec)
    return next((engine.kv_by_weights[n] for n in names if n in engine.kv_by_weights), None)


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
