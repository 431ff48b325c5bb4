"""The kernels of a layer that work value by value: norm, activation, residual addition.

They move activations alone, so that a step has no compulsory bytes of them; placed on their own
they are the kernels that fusion removes.
"""

from __future__ import annotations

import math

from planner.kernels import Kernel, activation, residual_add, rmsnorm, swiglu
from planner.models.parts import LayerGroup
from planner.roofline import Work


def norm_kernel(hidden: int) -> Kernel:
    """Return one RMSNorm of the hidden state of `hidden` values."""
    return _kernel("norm", rmsnorm(hidden, value_bytes=1.0), whole=True)


def residual_kernel(hidden: int) -> Kernel:
    """Return one addition to the residual stream of `hidden` values."""
    return _kernel("residual_add", residual_add(hidden, value_bytes=1.0), whole=True)


def activation_kernel(group: LayerGroup) -> Kernel | None:
    """Return the activations of a layer's feed-forward networks as one; None without any."""
    functions = [part.activation() for part in group.block.mlps]
    works = [
        (swiglu if function.gated else activation)(function.width, value_bytes=1.0)
        for function in functions
        if function is not None
    ]
    return _kernel("activation", sum(works[1:], works[0])) if works else None


def _kernel(name: str, token: Work, whole: bool = False) -> Kernel:
    """The kernel whose work for a token is `token`, at one byte a value.

    `whole` says that every tensor-parallel rank does all of it.
    """
    return Kernel(
        name=name,
        kind="elementwise",
        compute="fp32",
        activation_values_per_token=float(token.bytes),
        whole_values_per_token=float(token.bytes) if whole else 0.0,
        flop_ways=1.0 if whole else math.inf,
        flops_per_token=float(token.flops),
    )
