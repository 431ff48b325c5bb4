"""What a plan says of memory: its figures, and the notes where a load does not fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.deployment import Deployment
from planner.models.spec import Note
from planner.step.limits import DecodeLimits

WITHOUT_LIMIT = 2**24
"""Longest context of a model that states none [token]."""


def memory_fields(
    deployment: Deployment, limits: DecodeLimits, context: int, fit: int, least: int
) -> dict[str, Any]:
    """Return the fields of the memory answer, each of the type that the answer has.

    `fit` sequences of the largest `context` fit; `least` is the smallest batch of the question.
    """
    memory = deployment.memory
    crossover, printed = limits.crossover_batch, memory.printed_bytes_per_token
    most = deployment.spec.max_context or WITHOUT_LIMIT
    return {
        "fits": fit >= least,
        "weights_bytes_per_gpu": float(memory.weights_bytes_per_gpu),
        "activation_bytes_per_gpu": float(memory.activation_bytes_per_gpu),
        "buffer_bytes_per_gpu": float(memory.buffer_bytes_per_gpu),
        "graph_bytes_per_gpu": float(memory.graph_bytes_per_gpu),
        "adapter_bytes_per_gpu": float(memory.adapter_bytes_per_gpu),
        "kv_bytes_per_token": float(memory.kv_bytes_per_token),
        "kv_written_bytes_per_token": float(memory.written_bytes_per_token),
        "engine_kv_bytes_per_token": None if printed is None else float(printed),
        "window_bytes_per_sequence": float(memory.window_bytes_per_sequence),
        "state_bytes_per_sequence": float(memory.state_bytes_per_sequence),
        "kv_pool_bytes_per_gpu": max(0.0, float(memory.kv_pool_bytes_per_gpu)),
        "kv_pool_tokens": memory.kv_pool_tokens,
        "max_batch": fit,
        "binds": "engine_cap" if fit and memory.capped(context) else "memory",
        "max_context": memory.max_context(least, most),
        "crossover_fits": None if crossover is None else crossover <= fit,
        "settings": [
            {"name": each.name, "value": each.value, "source": each.source}
            for each in memory.settings
        ],
    }


def fit_notes(
    deployment: Deployment, batches: Sequence[int] | None, context: int, fit: int
) -> list[Note]:
    """Return why what was asked does not fit, `fit` sequences of `context` tokens being held."""
    memory = deployment.memory
    if memory.kv_pool_bytes_per_gpu < 0:
        need = memory.weights_bytes_per_gpu / 1e9
        usable = memory.kv_pool_bytes_per_gpu / 1e9 + need
        text = f"weights take {need:.1f} GB per GPU of {usable:.1f} GB usable"
        return [Note("weights_do_not_fit", text)]
    if context > memory.most_tokens:
        text = f"context {context} exceeds max_model_len: {memory.longest}"
        return [Note("context_beyond_max_model_len", text)]
    if batches and max(batches) > fit:
        held = f"memory holds {fit} sequences of {context} tokens"
        if memory.capped(context):
            held = f"the engine runs {fit} sequences at most (max_sequences)"
        return [Note("infeasible_batch", f"batch {max(batches)} does not fit: {held}")]
    if not batches and fit < 1:
        return [Note("infeasible_batch", f"not one sequence of {context} tokens fits")]
    return []
