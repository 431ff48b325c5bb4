"""The products of a layer with its matrices, as kernels."""

from __future__ import annotations

from planner.kernels import Kernel
from planner.models.parts import Formats, Linear


def linear_kernels(
    linears: tuple[Linear, ...], formats: Formats, prompt: bool = False
) -> tuple[Kernel, ...]:
    """Return one GEMM a kernel name: 2·inputs·outputs FLOPs a token, weights read once a step.

    Where a kernel's matrices split differently (q against k and v), each split is a kernel law of
    its own with no launch after the first. Activations are those of the launch: linears that read
    the same operand read it once, and the law of the first counts it.
    """
    laws: dict[tuple[str, float, str], Kernel] = {}
    names: set[str] = set()
    operands: set[tuple[str, str, int]] = set()
    for linear in linears:
        weights = formats.weights[linear.role]
        key = (linear.kernel, linear.ways, weights.id)
        before = laws.get(key)
        stored = linear.inputs * linear.outputs * weights.bytes + (
            linear.outputs * 2 if linear.bias else 0
        )
        operand = (linear.kernel, linear.operand, linear.inputs)
        values = linear.activation_values(prompt, operand in operands)
        laws[key] = Kernel(
            name=linear.kernel,
            kind="gemm",
            compute=weights.compute,
            activation_values_per_token=values
            + (before.activation_values_per_token if before else 0.0),
            whole_values_per_token=linear.whole_values(prompt, operand in operands)
            + (before.whole_values_per_token if before else 0.0),
            launches=before.launches if before else float(linear.kernel not in names),
            flops_per_token=2.0 * linear.inputs * linear.outputs
            + (before.flops_per_token if before else 0),
            weight_bytes=stored + (before.weight_bytes if before else 0),
            weight_ways=linear.ways,
            flop_ways=linear.ways,
            weight_format=weights.id,
        )
        names.add(linear.kernel)
        operands.add(operand)
    return tuple(laws.values())
