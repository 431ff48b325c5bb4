"""A machine and a model of round numbers, for steps that are worked by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.hw import Accelerator
from planner.hw.inline import accelerator_from
from planner.models.attention import Attention
from planner.models.mlp import Dense, Experts
from planner.models.parts import Block, LayerGroup
from planner.models.spec import ModelSpec


def machine(**changes: Any) -> Accelerator:
    """Return 1e12 FLOP/s in bf16, 2e12 in fp8, 1e10 B/s of memory, 1e9 B/s of link."""
    return accelerator_from(
        {
            "peaks_flops_per_s": {"bf16": 1e12, "fp8": 2e12},
            "bandwidth_bytes_per_s": 1e10,
            "memory_bytes": 1e9,
            "link": {"name": "wire", "bytes_per_s": 1e9},
            "source": "round numbers",
            **changes,
        }
    )


DENSE = ModelSpec(
    id="small",
    model_type="small",
    hidden=64,
    vocab=1000,
    groups=(
        LayerGroup(4, Block((Attention(64, heads=8, kv_heads=2, head_dim=8),), (Dense(64, 256),))),
    ),
    tied_embeddings=False,
)
"""4 layers: attention of 10,240 weights, an MLP of 49,152; 32 values of cache a token; a head of
64,000 weights."""

MIXTURE = replace(
    DENSE,
    groups=(
        LayerGroup(
            4,
            Block(
                (Attention(64, heads=8, kv_heads=2, head_dim=8),),
                (Experts(64, experts=8, top_k=2, width=32),),
            ),
        ),
    ),
)
"""The same with 8 experts of 6,144 weights, 2 a token, and a router of 512."""
