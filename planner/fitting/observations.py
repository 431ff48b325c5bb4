"""From rows of measured runs to the design of a fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from planner.calibration.subject import DECODE, PROMPT
from planner.fitting.fit import Design
from planner.roofline import Array
from planner.runs.groups import Group
from planner.runs.rows import Row
from planner.serving.prompts import PromptLoad
from planner.step.model_steps import prompt_context


def add_decode(
    design: Design,
    groups: Iterable[Group],
    batch: Array,
    context: Array,
    coefficient: Array,
    offset: int,
) -> None:
    """Add the decode steps of rows: `coefficient` steps of `batch` sequences at `context`."""
    for group in groups:
        at, deployment = group.rows, group.deployment
        features = deployment.step.features(batch[at], context[at])
        items, subject = deployment.step.items, deployment.subject
        design.add(items, subject, DECODE, features, at + offset, coefficient[at])


def add_prompts(
    design: Design,
    groups: Iterable[Group],
    isl: Array,
    prompts: Array,
    coefficient: Array,
    offset: int,
) -> None:
    """Add prompts of rows: `coefficient` steps of `prompts` prompts of `isl` tokens each."""
    for group in groups:
        at, deployment = group.rows, group.deployment
        context, fresh = prompt_context(isl[at])
        features = deployment.prompt_step.features(prompts[at], context, fresh)
        items, subject = deployment.prompt_step.items, deployment.subject
        design.add(items, subject, PROMPT, features, at + offset, coefficient[at])


def add_ridden(
    design: Design,
    loads: Iterable[tuple[Group, PromptLoad]],
    prompts: Array,
    running: Array,
    coefficient: Array,
    offset: int,
) -> None:
    """Add what prompts add to the steps of rows: `coefficient` times that of `prompts`."""
    for group, load in loads:
        at, one = group.rows, group.deployment
        added = load.added(prompts[at], running[at])
        design.add(
            load.items,
            one.subject,
            PROMPT,
            added.features,
            at + offset,
            added.coefficient * coefficient[at],
        )


def set_weights(rows: Sequence[Row], columns: Sequence[str], most: int) -> Array:
    """Return the weight of each row: `most` rows' worth for all that agree in `columns` [-]."""
    names = ["|".join(row.inputs[c] for c in columns) for row in rows]
    _, at, sizes = np.unique(names, return_inverse=True, return_counts=True)
    return np.asarray(np.minimum(1.0, most / sizes)[at])
