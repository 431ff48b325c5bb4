"""Looking into the layers of a model: its parts, its kernels and what they sum to."""

from __future__ import annotations

from typing import Any

from planner.kernels import Kernel
from planner.models.huggingface import import_config
from planner.models.parts import Formats, LayerGroup, Part
from planner.models.spec import ModelSpec, group_kernels

BF16 = Formats.of("bf16")


def read(**config: Any) -> ModelSpec:
    """Return the model of a config in bfloat16."""
    return import_config({"torch_dtype": "bfloat16", **config})


def parts_of(spec: ModelSpec, kind: type[Part]) -> list[tuple[int, Any]]:
    """Return the parts of one kind, each with the layers that hold it."""
    return [
        (group.count, part)
        for group in spec.groups
        for part in group.block.parts
        if isinstance(part, kind)
    ]


def layer_kernels(group: LayerGroup, formats: Formats = BF16) -> dict[str, list[Kernel]]:
    """Return the kernels of one layer by name."""
    named: dict[str, list[Kernel]] = {}
    for kernel in group_kernels(group, formats):
        named.setdefault(kernel.name, []).append(kernel)
    return named


def token_flops(kernels: list[Kernel]) -> float:
    """Return the FLOPs a token costs whatever the context [FLOP]."""
    return sum(kernel.flops_per_token for kernel in kernels)


def weights(kernels: list[Kernel]) -> float:
    """Return the weights that kernels read [byte]."""
    return sum(kernel.weight_bytes for kernel in kernels)
