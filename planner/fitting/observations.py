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
from planner.step.decode import StepWork
from planner.step.prefill import prompt_work


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
        at = group.rows
        _add(
            design,
            group,
            DECODE,
            group.deployment.step.work(batch[at], context[at]),
            coefficient,
            offset,
        )


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
        at = group.rows
        _add(
            design,
            group,
            PROMPT,
            prompt_work(group.deployment.prompt, isl[at], prompts[at]),
            coefficient,
            offset,
        )


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


def _add(
    design: Design, group: Group, phase: str, work: StepWork, coefficient: Array, offset: int
) -> None:
    one = group.deployment
    machine = one.machine if phase == DECODE else one.prompt_machine
    design.add(
        machine.items,
        one.subject,
        phase,
        machine.features(work),
        group.rows + offset,
        coefficient[group.rows],
    )


def set_weights(rows: Sequence[Row], columns: Sequence[str], most: int) -> Array:
    """Return the weight of each row: `most` rows' worth for all that agree in `columns` [-]."""
    names = ["|".join(row.inputs[c] for c in columns) for row in rows]
    _, at, sizes = np.unique(names, return_inverse=True, return_counts=True)
    return np.asarray(np.minimum(1.0, most / sizes)[at])
