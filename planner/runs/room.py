"""How many sequences a published run held at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from planner.deployment import Deployment
from planner.engines.memory import plan_memory
from planner.engines.settings import MemorySettings
from planner.precision import get_format
from planner.roofline import Array
from planner.runs.harness import harness_of
from planner.runs.rows import Row
from planner.serving.steady import room_for

TUNED_FRACTION = 0.95
"""Share of memory a benchmark plans with where the default does not do (assumption) [-]."""


def room_of_run(
    deployment: Deployment, rows: Sequence[Row], clients: Array, isl: Array, osl: Array
) -> Array:
    """Return the sequences each of some runs held at once [-].

    Published runs are set up for the clients they are run with, and do not say how. Where the
    engine's defaults do not hold them but a larger share of memory and an 8-bit cache would, those
    are assumed; where even they would not, the defaults are. A run whose weights do not fit as
    assumed ran all the same, so that something else was assumed wrongly: no queue then. Runs of
    one's own are taken at the defaults.
    """
    room = room_for(deployment, isl, osl)
    tight = (clients > room) & np.array([harness_of(row).sized for row in rows])
    if not tight.any():
        return room
    formats = deployment.formats
    if formats.kv.bits > 8:
        formats = replace(formats, kv=get_format("fp8"))
    memory = plan_memory(
        deployment.spec,
        deployment.accelerator,
        deployment.sharding,
        formats,
        deployment.engine,
        MemorySettings(memory_fraction=TUNED_FRACTION),
    )
    held = (clients <= room_for(deployment, isl, osl, memory)) | (memory.kv_pool_bytes_per_gpu <= 0)
    return np.where(tight & held, clients, room)
