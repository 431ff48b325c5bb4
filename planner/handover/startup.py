"""How long a server takes until it answers: an estimate, for probes."""

from __future__ import annotations

from planner.deployment import Deployment

READ_BYTES_PER_S = 1e9
"""At which a host reads weights from its disk or network (assumption) [byte/s]."""
BEYOND_READING_S = 120.0
"""For imports, compilation and graph capture (assumption) [s]."""


def start_s(deployment: Deployment) -> float:
    """Return the time from a container's start to its first answer [s].

    All weights of a replica are read by one host, at an assumed speed.
    """
    weights = deployment.memory.weights_bytes_per_gpu * deployment.sharding.gpus
    return weights / READ_BYTES_PER_S + BEYOND_READING_S
