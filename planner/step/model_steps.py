"""The steps of a model: the kernels of its layers, and of a prompt, over a whole replica."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from planner.hw import Accelerator
from planner.kernels import Kernel
from planner.models.parts import Formats
from planner.models.spec import ModelSpec, group_kernels
from planner.roofline import Array, Numeric
from planner.step.coefficients import Layout
from planner.step.conditions import (
    PLAIN,
    Conditions,
    adapter_kernels,
    partly_on_host,
    shared_caches,
    sharing,
)
from planner.step.evaluator import Step, make_step
from planner.step.figures import StepPoints
from planner.step.parallel import Sharding, collectives, link_domain


@lru_cache(maxsize=256)
def decode_kernels(spec: ModelSpec, formats: Formats) -> tuple[Kernel, ...]:
    """Return the kernels of a decode step over all layers, the LM head last; kept."""
    return (*_layers(spec, formats, prompt=False), spec.head_kernel(formats))


@lru_cache(maxsize=256)
def prompt_kernels(spec: ModelSpec, formats: Formats) -> tuple[Kernel, ...]:
    """Return the kernels of a prompt over all layers, kept; the head sees its last token only."""
    head = replace(spec.head_kernel(formats), flops_per_token=0.0)
    return (*_layers(spec, formats, prompt=True), head)


def _layers(spec: ModelSpec, formats: Formats, prompt: bool) -> tuple[Kernel, ...]:
    return tuple(
        kernel.times(group.count)
        for group in spec.groups
        for kernel in group_kernels(group, formats, prompt)
    )


def model_step(
    spec: ModelSpec,
    accelerator: Accelerator,
    sharding: Sharding,
    formats: Formats,
    routing_spread: float = 0.0,
    prompt: bool = False,
    conditions: Conditions = PLAIN,
    nodes: int | None = None,
) -> Step:
    """Return a decode step of a model, or its prompt step, at datasheet rates.

    `nodes` are the hosts a replica is said to span; what its link domain does not join spans more.
    Raises ValueError like `make_step`.
    """
    kernels = prompt_kernels(spec, formats) if prompt else decode_kernels(spec, formats)
    domain = link_domain(accelerator, sharding.gpus, nodes)
    sent, layout = collectives(spec, sharding, domain), Layout(spec.layers, spec.hidden)
    if conditions.decode_cp > 1 and not prompt:
        kernels = shared_caches(kernels, conditions.decode_cp)
        sent = (*sent, *sharing(spec, sharding, conditions.decode_cp))
    if conditions.adapters:
        kernels = (*kernels, *adapter_kernels(spec, conditions.adapters, conditions.rank))
    step = make_step(kernels, sent, sharding, accelerator, layout, routing_spread)
    on_host = conditions.host_layers or conditions.host_head
    return partly_on_host(step, conditions) if on_host else step


def prompt_context(
    isl: Numeric, prefix_hit: Numeric = 0.0, isl_of_a_token: Numeric | None = None
) -> tuple[Array, Array]:
    """Return the mean tokens a prompt token attends to, and the fresh tokens of a prompt [token].

    A token attends to those before it, on average prefix + (isl − prefix)/2. `isl_of_a_token` is
    the length of the prompt a random token belongs to where prompts differ, E[isl²]/E[isl].
    """
    isl, prefix_hit = np.asarray(isl, float), np.asarray(prefix_hit, float)
    whole = isl if isl_of_a_token is None else np.asarray(isl_of_a_token, float)
    fresh = np.maximum(isl * (1.0 - prefix_hit), 1.0)
    return np.asarray(whole * (1.0 - fresh / isl / 2)), np.asarray(fresh)


def prompt_points(
    step: Step,
    isl: Numeric,
    prompts: Numeric = 1.0,
    prefix_hit: Numeric = 0.0,
    isl_of_a_token: Numeric | None = None,
) -> StepPoints:
    """Return the figures of a prompt step over `prompts` prompts of `isl` tokens; arrays broadcast.

    A share `prefix_hit` of each is cached already; each sequence's cache moves once.
    """
    context, fresh = prompt_context(isl, prefix_hit, isl_of_a_token)
    return step.at(prompts, context, fresh)
