"""Every kernel of one transformer layer on a machine's roofline, each on its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from planner import answer, kernels
from planner.hw import Accelerator
from planner.kernels import Kernel
from planner.models.parts import Formats, LayerGroup
from planner.models.spec import ModelSpec, group_kernels
from planner.precision import get_format
from planner.roofline import Roof, Work, bound

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
    kernels: list[PlacedKernel]


def place(
    spec: ModelSpec,
    accelerator: Accelerator,
    formats: Formats,
    batch: int,
    context: int,
    phase: Phase = "decode",
) -> Roofline:
    """Place every kernel of every kind of layer, unsharded.

    In decode, `batch` sequences advance one token over `context` cached tokens; in prefill each
    puts `context` tokens through. Activations move too here, unlike in a step's compulsory bytes.
    """
    queries = 1 if phase == "decode" else context
    found = []
    for index, group in enumerate(spec.groups):
        label = f"{index + 1}"
        for name, wanted, work in _layer(spec, group, formats, batch, context, phase):
            found.append(_placed(label, group.count, name, wanted, work, accelerator))
    head = kernels.gemm(batch, spec.vocab, spec.hidden)
    found.append(_placed("end", 1, "lm_head", spec.dtype, head, accelerator))
    del queries
    return Roofline(
        model=spec.id, gpu=accelerator.id, phase=phase, batch=batch, context=context, kernels=found
    )


def _layer(
    spec: ModelSpec, group: LayerGroup, formats: Formats, batch: int, context: int, phase: Phase
) -> Iterator[tuple[str, str, Work]]:
    """Yield (name, arithmetic format, work) of the kernels of one layer."""
    queries = 1 if phase == "decode" else context
    tokens = batch * queries
    elements = tokens * spec.hidden
    yield "norm", "fp32", kernels.rmsnorm(elements)
    for kernel in group_kernels(group, formats, prompt=phase == "prefill"):
        yield kernel.name, kernel.compute, _work(kernel, batch, queries, context, spec.hidden)
    if any(part.linears() for part in group.block.mlps):
        yield "activation", "fp32", kernels.swiglu(tokens * _mlp_width(group))
    yield "residual_add", "fp32", kernels.residual_add(elements)


def _mlp_width(group: LayerGroup) -> int:
    widths = (getattr(p, "width", 0) * max(1, p.routed()[1]) for p in group.block.mlps)
    return sum(widths)


def _work(kernel: Kernel, batch: int, queries: int, context: int, hidden: int) -> Work:
    """The kernel's law at one point, plus its activations read and written once."""
    tokens = batch * queries
    attended = min(context if queries == 1 else (context + 1) / 2, kernel.window)
    hit = 1.0
    if kernel.experts:
        hit = float(kernels.expected_distinct_experts(kernel.experts, kernel.top_k, tokens))
        hit /= kernel.experts
    cached = min(context, kernel.window) if queries == 1 else context
    compulsory = kernel.weight_bytes * hit + batch * (
        kernel.bytes_per_sequence + kernel.bytes_per_cached * cached
    )
    flops = tokens * (kernel.flops_per_token + kernel.flops_per_cached * attended)
    return Work(flops, compulsory + tokens * _activation_bytes(kernel, hidden))


def _activation_bytes(kernel: Kernel, hidden: int) -> float:
    """Bytes of a token's operands beside weights and cache: k inputs and n outputs of a GEMM."""
    if kernel.kind != "gemm" or not kernel.flops_per_token:
        return 0.0
    outputs = kernel.flops_per_token / 2 / hidden
    return get_format("bf16").bytes * (hidden + outputs)


def _placed(
    layer: str, layers: int, name: str, wanted: str, work: Work, accelerator: Accelerator
) -> PlacedKernel:
    actual, _ = accelerator.compute_format(wanted)
    roof = Roof(accelerator.peak(actual), accelerator.bandwidth_bytes_per_s)
    intensity = float(work.intensity)
    compute, memory = float(roof.compute_time(work)), float(roof.memory_time(work))
    limit = str(bound(compute, memory))
    return PlacedKernel(
        layer=layer,
        layers=layers,
        name=name,
        format=actual,
        flops=float(np.asarray(work.flops)),
        bytes=float(np.asarray(work.bytes)),
        arithmetic_intensity=intensity,
        ridge_point=float(roof.ridge),
        attainable_flops_per_s=float(roof.attainable(intensity)),
        time_s=float(roof.time(work)),
        bound="compute" if limit == "compute" else "memory",
        advice=_advice(limit, compute, memory),
    )


def _advice(limit: str, compute: float, memory: float) -> str:
    """Return the lever that helps a kernel and the most it can gain, at equal everything else."""
    if limit == "compute":
        gain = compute / max(memory, compute / 2)
        return f"a format of half the width: up to {gain:.2f}× (tiling, tensor cores)"
    gain = memory / max(compute, memory / 2)
    return f"half the bytes: up to {gain:.2f}× (fusion, quantised bytes, layout)"
