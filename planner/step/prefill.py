"""The kernels of a prompt: the same laws as a decode step, with many tokens a sequence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.kernels import Kernel
from planner.models.parts import Formats
from planner.models.spec import ModelSpec
from planner.roofline import Numeric
from planner.step.decode import Step, StepWork, step_kernels
from planner.step.parallel import Sharding


def prompt_kernels(spec: ModelSpec, formats: Formats) -> tuple[Kernel, ...]:
    """Return the kernels of a prompt over all layers; the head sees its last token only."""
    *body, head = step_kernels(spec, formats, prompt=True)
    return (*body, replace(head, flops_per_token=0.0))


def prompt_step(spec: ModelSpec, formats: Formats, sharding: Sharding) -> Step:
    """Return the step that runs prompts of a model under a sharding."""
    return Step(prompt_kernels(spec, formats), sharding)


def prompt_work(
    step: Step,
    isl: Numeric,
    prompts: Numeric = 1.0,
    prefix_hit: Numeric = 0.0,
    of_a_token: Numeric | None = None,
) -> StepWork:
    """Return the work of `prompts` prompts of `isl` tokens of which a share is cached already.

    A token attends to those before it, on average prefix + (isl − prefix)/2; each sequence's cache
    moves once. `of_a_token` is the length of the prompt a random token belongs to where prompts
    differ, E[isl²]/E[isl] [token]. Arrays broadcast.
    """
    isl, prompts, prefix_hit, whole = np.broadcast_arrays(
        np.asarray(isl, float),
        np.asarray(prompts, float),
        np.asarray(prefix_hit, float),
        np.asarray(isl if of_a_token is None else of_a_token, float),
    )
    fresh = np.maximum(isl * (1.0 - prefix_hit), 1.0)
    return step.work(prompts, whole * (1.0 - fresh / isl / 2), fresh)
