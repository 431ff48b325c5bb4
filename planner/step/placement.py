"""Every kernel of one transformer layer on a machine's roofline, each on its own."""

from __future__ import annotations

from typing import Literal

import numpy as np

from planner import answer
from planner.hw import Accelerator
from planner.kernels import Kernel
from planner.models.elementwise import activation_kernel, norm_kernel, residual_kernel
from planner.models.parts import Formats, LayerGroup
from planner.models.spec import ModelSpec, group_kernels
from planner.roofline import Roof, Work, bound
from planner.step.breakdown import kernel_work
from planner.step.coefficients import Layout
from planner.step.evaluator import make_step
from planner.step.figures import StepPoints
from planner.step.parallel import ACTIVATION_BYTES, Sharding
from planner.step.typed import advice_of

Phase = Literal["decode", "prefill"]


class PlacedKernel(answer.Answer):
    """One kernel with all its operands moved once, on the datasheet roofline of one accelerator."""

    layer: str
    layers: int
    name: str
    format: str
    flops: float
    bytes: float
    arithmetic_intensity: float
    ridge_point: float
    attainable_flops_per_s: float
    time_s: float
    bound: answer.Bound
    advice: str


class Roofline(answer.Answer):
    """The kernels of each kind of layer, and of the step's end."""

    model: str
    gpu: str
    phase: Phase
    batch: int
    context: int
    tp: int = 1
    """Tensor-parallel ranks; kernels are those of one of them [-]."""
    kernels: list[PlacedKernel]


def place(
    spec: ModelSpec,
    accelerator: Accelerator,
    formats: Formats,
    batch: int,
    context: int,
    phase: Phase = "decode",
    tp: int = 1,
) -> Roofline:
    """Place every kernel of every kind of layer, of one of `tp` ranks [-].

    In decode, `batch` sequences advance one token over `context` cached tokens; in prefill each
    puts `context` tokens through. Activations move too here, unlike in a step's compulsory bytes:
    what every rank moves whole, and its share of the rest. Raises InvalidSharding.
    """
    sharding = Sharding(tp)
    sharding.check(spec)
    placed = []
    for index, group in enumerate(spec.groups):
        kernels = layer_kernels(spec, group, formats, phase)
        for kernel, work in _launches(kernels, accelerator, batch, context, phase, sharding):
            placed.append(_placed(f"{index + 1}", group.count, kernel, work, accelerator))
    ((head, work),) = _launches(
        [spec.head_kernel(formats)], accelerator, batch, context, "decode", sharding
    )
    placed.append(_placed("end", 1, head, work, accelerator))
    return Roofline(
        model=spec.id,
        gpu=accelerator.id,
        phase=phase,
        batch=batch,
        context=context,
        tp=tp,
        kernels=placed,
    )


def layer_kernels(
    spec: ModelSpec, group: LayerGroup, formats: Formats, phase: Phase
) -> list[Kernel]:
    """Return the kernels of one layer: one norm, those of its parts, activation, one residual."""
    activation = activation_kernel(group)
    return [
        norm_kernel(spec.hidden),
        *group_kernels(group, formats, prompt=phase == "prefill"),
        *((activation,) if activation else ()),
        residual_kernel(spec.hidden),
    ]


def _launches(
    kernels: list[Kernel],
    accelerator: Accelerator,
    batch: int,
    context: int,
    phase: Phase,
    sharding: Sharding,
) -> list[tuple[Kernel, Work]]:
    """Return each kernel with its work, its activations read and written once.

    Laws of one launch (q against k and v) are one kernel.
    """
    step = make_step(kernels, (), sharding, accelerator, Layout())
    if phase == "decode":
        points = step.at(float(batch), float(context))
    else:
        points = StepPoints(step.of_batch(batch, context), step.of_prompt(context))
    flops, compulsory = kernel_work(step, points)
    tokens = batch * (1 if phase == "decode" else context)
    launches: list[tuple[Kernel, Work]] = []
    for kernel, operations, moved in zip(kernels, flops, compulsory, strict=True):
        whole = kernel.whole_values_per_token
        split = (kernel.activation_values_per_token - whole) * sharding.share(kernel.flop_ways)
        activations = float(tokens * (whole + split) * ACTIVATION_BYTES)
        work = Work(operations, moved + activations)
        same = [
            index
            for index, (other, _) in enumerate(launches)
            if (other.name, other.compute) == (kernel.name, kernel.compute)
        ]
        if kernel.launches or not same:
            launches.append((kernel, work))
        else:
            first, before = launches[same[-1]]
            launches[same[-1]] = (first, before + work)
    return launches


def _placed(
    layer: str, layers: int, kernel: Kernel, work: Work, accelerator: Accelerator
) -> PlacedKernel:
    actual, _ = accelerator.compute_format(kernel.compute)
    roof = Roof(accelerator.peak(actual), accelerator.bandwidth_bytes_per_s)
    intensity = float(work.intensity)
    compute, memory = float(roof.compute_time(work)), float(roof.memory_time(work))
    limit = str(bound(compute, memory))
    return PlacedKernel(
        layer=layer,
        layers=layers,
        name=kernel.name,
        format=actual,
        flops=float(np.asarray(work.flops)),
        bytes=float(np.asarray(work.bytes)),
        arithmetic_intensity=intensity,
        ridge_point=float(roof.ridge),
        attainable_flops_per_s=float(roof.attainable(intensity)),
        time_s=float(roof.time(work)),
        bound="compute" if limit == "compute" else "memory",
        advice=advice_of(limit, compute, memory),
    )
