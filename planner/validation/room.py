"""How many sequences a published run held at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.memory import plan_memory
from planner.precision import get_format
from planner.resolve import Deployment
from planner.roofline import Array
from planner.serving import room_for

TUNED_FRACTION = 0.95
"""Share of memory a benchmark plans with where the default does not do (assumption) [-]."""


def room_of_run(deployment: Deployment, clients: Array, isl: Array, osl: Array) -> Array:
    """Return the sequences a run held at once [-].

    Published runs are set up for the clients they are run with, and do not say how. Where the
    engine's defaults do not hold them but a larger share of memory and an 8-bit cache would, those
    are assumed; where even they would not, the defaults are. A run whose weights do not fit as
    assumed ran all the same, so that something else was assumed wrongly: no queue then.
    """
    room = room_for(deployment, isl, osl)
    if (clients <= room).all():
        return room
    formats = deployment.formats
    if formats.kv.bits > 8:
        formats = replace(formats, kv=get_format("fp8"))
    memory = plan_memory(deployment.spec, deployment.accelerator, deployment.sharding, formats,
                         deployment.engine, TUNED_FRACTION)  # fmt: skip
    tuned = room_for(deployment, isl, osl, memory)
    held = (clients <= tuned) | (memory.kv_pool_bytes_per_gpu <= 0)
    return np.where((clients > room) & held, clients, room)
