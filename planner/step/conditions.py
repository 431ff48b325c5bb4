"""How a step is run beside its split: adapters, shared caches, layers in host memory, no graphs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.kernels import Kernel
from planner.models.spec import ModelSpec
from planner.roofline import Array
from planner.step.evaluator import Step
from planner.step.parallel import ACTIVATION_BYTES, Collective, Sharding
from planner.step.timing import Efficiency, Item


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a command line says that changes the work or the time of a step."""

    decode_cp: int = 1
    """Ranks of tensor parallelism that share the tokens of a sequence in a decode step [-]."""
    adapters: int = 0
    """Low-rank adapters, one of which every sequence runs with [-]."""
    rank: int = 0
    """Their rank [-]."""
    host_layers: float = 0.0
    """Share of the layers that the host keeps and runs [-]."""
    host_head: bool = False
    """Whether it runs the LM head, too."""
    host_bytes_per_s: float = 0.0
    """Bandwidth of host memory [byte/s]."""
    host_flops_per_s: float = 0.0
    """What the host computes [FLOP/s]."""
    eager_layer_s: float = 0.0
    """Added to each layer where the host launches every kernel, no graph being captured [s]."""


PLAIN = Conditions()
"""A step as its split alone makes it."""


def shared_caches(kernels: Sequence[Kernel], ranks: int) -> tuple[Kernel, ...]:
    """Return kernels of which those that read growing caches find 1/`ranks` of the tokens on each.

    The heads of the ranks that share a sequence are all computed on each: FLOPs stay as they are.
    """
    return tuple(
        replace(kernel, cache_ways=kernel.cache_ways * ranks) if kernel.bytes_per_cached else kernel
        for kernel in kernels
    )


def sharing(spec: ModelSpec, sharding: Sharding, ranks: int) -> tuple[Collective, ...]:
    """Return what ranks that share tokens exchange: queries, then partial outputs, of each layer.

    Both are taken as wide as the hidden state, of the heads of `ranks` out of tp (assumption).
    """
    layers = sum(
        group.count for group in spec.groups for part in group.block.mixers if part.caches()
    )
    message = spec.hidden * ACTIVATION_BYTES * ranks / sharding.tp
    return (
        Collective("all_gather", layers, ranks, message),
        Collective("reduce_scatter", layers, ranks, message),
    )


def adapter_kernels(spec: ModelSpec, adapters: int, rank: int) -> Iterator[Kernel]:
    """Yield the products with adapters beside every linear, routed experts aside.

    Down to the rank and up again (Hu et al., "LoRA", 2021): 2·rank·(inputs + outputs) FLOPs a
    token. Of the adapters a step reads those that its tokens hit, taken as equally likely.
    """
    for group in spec.groups:
        linears = [each for part in group.block.parts for each in part.linears()]
        values = sum(each.inputs + each.outputs for each in linears)
        if values:
            yield Kernel(
                name="adapters",
                kind="gemm",
                compute="bf16",
                activation_values_per_token=values + 2 * rank * len(linears),
                launches=2 * len({each.kernel for each in linears}),
                flops_per_token=2.0 * rank * values,
                weight_bytes=adapters * rank * values * ACTIVATION_BYTES,
                experts=adapters,
                top_k=1,
            ).times(group.count)


def partly_on_host(step: Step, conditions: Conditions) -> Step:
    """Return a step of which the host runs some layers, one after the other with the GPU's.

    Its share of a kernel's bytes moves at the bandwidth of host memory, of its FLOPs at the host's
    rate; launches and what is reached of the peaks are those of the GPU (assumption).
    """
    share = conditions.host_layers
    alone, cached = step.batch_items, step.context_items
    memory_s = step.accelerator.bandwidth_bytes_per_s / conditions.host_bytes_per_s

    def slower(items: tuple[Item, ...], kernels: np.ndarray) -> tuple[Array, Array]:
        on_host = np.array([_on_host(item, conditions) for item in items])
        rates = np.ones(len(items))
        rates[: len(kernels)] = step.peaks_flops_per_s[kernels] / conditions.host_flops_per_s
        return 1 + on_host * (rates - 1), 1 + on_host * (memory_s - 1)

    compute, memory = slower(alone.items, alone.kernels)
    cached_compute, cached_memory = slower(cached.items, cached.kernels)
    routed = alone.experts
    return replace(
        step,
        batch_items=replace(
            alone,
            compute_per_token_s=alone.compute_per_token_s * compute,
            compute_per_stage_token_s=alone.compute_per_stage_token_s * compute,
            memory_s=alone.memory_s * memory,
            memory_per_token_s=alone.memory_per_token_s * memory,
            experts=replace(routed, weights_s=routed.weights_s * (1 + share * (memory_s - 1))),
        ),
        context_items=replace(
            cached,
            compute_per_token_s=cached.compute_per_token_s * cached_compute,
            compute_per_cached_s=cached.compute_per_cached_s * cached_compute,
            memory_s=cached.memory_s * cached_memory,
            memory_per_cached_s=cached.memory_per_cached_s * cached_memory,
        ),
    )


def _on_host(item: Item, conditions: Conditions) -> float:
    """Return the share of an item's work that the host does [-]."""
    if item.kind == "head":
        return float(conditions.host_head)
    return 0.0 if item.kind == "step" else conditions.host_layers


def without_graphs(efficiency: Efficiency, items: Sequence[Item], layer_s: float) -> Efficiency:
    """Return what items reach where each layer takes `layer_s` more for its launches [s].

    Taken as added: a step that binds elsewhere hides part of it.
    """
    more = np.array([layer_s if item.kind == "layer" else 0.0 for item in items])
    return replace(efficiency, launch_s=efficiency.launch_s + more)
