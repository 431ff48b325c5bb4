"""A kernel whose sizes are typed, on any machine: where each way to run it sits on the roofline.

The teaching page of the roofline texts: the same arithmetic with naive, tiled and ideal traffic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from planner import answer, kernels
from planner.errors import InvalidInput
from planner.hw import Accelerator
from planner.precision import get_format
from planner.roofline import Roof, Work, bound

TILE = 128
"""Rows and columns of a tile kept on chip, where none is given [-]."""
LARGEST = 2**40
"""Of a size [-]."""

Sizes = Sequence[int]
Ways = Callable[[Sizes, float, int], dict[str, Work]]
"""From sizes, bytes of a value and tile to the work of each way, the least traffic last."""


class UnknownKernel(InvalidInput):
    """No kernel has that name, or its sizes are not what it takes."""


@dataclass(frozen=True, slots=True)
class KernelKind:
    """A kernel by its sizes."""

    title: str
    sizes: tuple[str, ...]
    ways: Ways
    example: str


class KernelWay(answer.Answer):
    """One way to run a kernel, on the datasheet roofline."""

    way: str
    bytes: float
    arithmetic_intensity: float
    compute_s: float
    memory_s: float
    time_s: float
    attainable_flops_per_s: float
    bound: answer.Bound
    advice: str


class TypedKernel(answer.Answer):
    """A kernel of typed sizes on one accelerator."""

    kernel: str
    sizes: dict[str, int]
    gpu: str
    format: str
    compute_format: str
    flops: float
    peak_flops_per_s: float
    bandwidth_bytes_per_s: float
    ridge_point: float
    measured_ridge_point: float | None
    tile: int
    ways: list[KernelWay]
    notes: list[answer.NoteAnswer]


def _gemm(sizes: Sizes, value_bytes: float, tile: int) -> dict[str, Work]:
    m, n, k = sizes
    work = kernels.gemm(m, n, k, value_bytes)
    naive = kernels.gemm_traffic(m, n, k, value_bytes)
    tiled = kernels.gemm_traffic(m, n, k, value_bytes, tile, tile)
    return {
        "naive": Work(work.flops, naive),
        f"tiled {tile}×{tile}": Work(work.flops, tiled),
        "ideal": work,
    }


def _attention(sizes: Sizes, value_bytes: float, tile: int) -> dict[str, Work]:
    tokens, head_dim, heads = sizes
    naive = kernels.attention(tokens, head_dim, heads, False, value_bytes)
    fused = kernels.attention(tokens, head_dim, heads, True, value_bytes)
    tiled = kernels.attention_traffic(tokens, head_dim, heads, value_bytes, tile)
    return {"naive": naive, f"tiled {tile}": Work(naive.flops, tiled), "fused": fused}


def _each(work: Callable[[float, float], Work]) -> Ways:
    return lambda sizes, value_bytes, _tile: {"ideal": work(sizes[0], value_bytes)}


def _gemv(sizes: Sizes, value_bytes: float, _tile: int) -> dict[str, Work]:
    return {"ideal": kernels.gemv(sizes[0], sizes[1], value_bytes)}


KERNELS: dict[str, KernelKind] = {
    "gemm": KernelKind("GEMM (M×K)·(K×N)", ("m", "n", "k"), _gemm, "4096,4096,4096"),
    "gemv": KernelKind("GEMV, A alone moves", ("rows", "columns"), _gemv, "4096,4096"),
    "attention": KernelKind(
        "self-attention, unmasked", ("tokens", "head_dim", "heads"), _attention, "8192,128,64"
    ),
    "add": KernelKind("residual add", ("count",), _each(kernels.residual_add), "67108864"),
    "rmsnorm": KernelKind("RMSNorm", ("count",), _each(kernels.rmsnorm), "67108864"),
    "softmax": KernelKind("softmax", ("count",), _each(kernels.softmax), "67108864"),
    "swiglu": KernelKind("SwiGLU", ("count",), _each(kernels.swiglu), "67108864"),
    "activation": KernelKind("SiLU", ("count",), _each(kernels.activation), "67108864"),
}
"""The kernels that may be typed, by name."""


def typed_kernel(
    name: str, sizes: Sizes, accelerator: Accelerator, number_format: str = "bf16", tile: int = TILE
) -> TypedKernel:
    """Return each way to run a kernel of these sizes [-] on a machine, the least traffic last.

    Values are stored in `number_format` and multiplied in its arithmetic. Raises UnknownKernel,
    UnknownFormat, UnsupportedFormat.
    """
    kind = KERNELS.get(name)
    if kind is None:
        raise UnknownKernel(f"kernel: {name!r} is unknown; accepted: {', '.join(KERNELS)}")
    if len(sizes) != len(kind.sizes) or not all(1 <= size <= LARGEST for size in sizes):
        raise UnknownKernel(
            f"{name}: {len(sizes)} sizes given; accepted: {','.join(kind.sizes).upper()}, each of "
            f"1 to {LARGEST}, as in {kind.example}"
        )
    if not 1 <= tile <= LARGEST:
        raise UnknownKernel(f"tile: {tile}; accepted: 1 to {LARGEST}")
    stored = get_format(number_format)
    compute, remark = accelerator.compute_format(stored.compute)
    roof = Roof(accelerator.peak(compute), accelerator.bandwidth_bytes_per_s)
    works = kind.ways(sizes, stored.bytes, tile)
    ways = [_way(way, work, roof) for way, work in works.items()]
    return TypedKernel(
        kernel=name,
        sizes=dict(zip(kind.sizes, sizes, strict=True)),
        gpu=accelerator.id,
        format=stored.id,
        compute_format=compute,
        flops=float(next(iter(works.values())).flops),
        peak_flops_per_s=float(roof.peak_flops_per_s),
        bandwidth_bytes_per_s=float(roof.bandwidth_bytes_per_s),
        ridge_point=float(roof.ridge),
        measured_ridge_point=accelerator.measured_ridge_points.get(compute),
        tile=tile,
        ways=ways,
        notes=_notes(accelerator, compute, remark),
    )


def _way(name: str, work: Work, roof: Roof) -> KernelWay:
    compute, memory = float(roof.compute_time(work)), float(roof.memory_time(work))
    intensity = float(work.intensity)
    limit = str(bound(compute, memory))
    return KernelWay(
        way=name,
        bytes=float(work.bytes),
        arithmetic_intensity=intensity,
        compute_s=compute,
        memory_s=memory,
        time_s=float(roof.time(work)),
        attainable_flops_per_s=float(roof.attainable(intensity)),
        bound="compute" if limit == "compute" else "memory",
        advice=advice_of(limit, compute, memory),
    )


def advice_of(limit: str, compute: float, memory: float) -> str:
    """Return the lever that helps a kernel and the most it can gain, at equal everything else."""
    if limit == "compute":
        gain = compute / max(memory, compute / 2)
        return f"a format of half the width: up to {gain:.2f}× (tiling, tensor cores)"
    gain = memory / max(compute, memory / 2)
    return f"half the bytes: up to {gain:.2f}× (fusion, quantised bytes, layout)"


def _notes(accelerator: Accelerator, compute: str, remark: str | None) -> list[answer.NoteAnswer]:
    notes = [answer.NoteAnswer(code="emulated_format", text=remark)] if remark else []
    figure = accelerator.figures.get(f"peaks_flops_per_s.{compute}")
    if figure is not None and figure.confidence != "datasheet":
        text = f"peak of {accelerator.id} in {compute} is {figure.confidence}: {figure.source}"
        notes.append(answer.NoteAnswer(code="peak_source", text=text))
    return notes
