"""The work of every kernel, each described once as FLOPs and bytes.

Two views share the formulas. The free functions give the `Work` of one kernel on its own, with all
its operands moved once (``planner kernels``). A `Kernel` is the same work as a law in the number of
tokens, sequences and cached tokens of a decode step, in which activations stay in the last-level
cache and only weights, KV cache and state are compulsory memory traffic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from planner.roofline import Numeric, Work


def gemm(
    m: Numeric,
    n: Numeric,
    k: Numeric,
    value_bytes: float = 2.0,
    weight_value_bytes: float | None = None,
) -> Work:
    """Work of an (m×k)·(k×n) product: 2mnk FLOPs; both operands read and the result written once.

    `value_bytes` is the size of an activation and, unless `weight_value_bytes` is given, of a
    weight (the k×n operand) [byte].
    """
    weight = value_bytes if weight_value_bytes is None else weight_value_bytes
    return Work(2.0 * m * n * k, value_bytes * (m * k + m * n) + weight * n * k)


def gemv(rows: Numeric, columns: Numeric, value_bytes: float = 2.0) -> Work:
    """Work of y = A·x as the roofline texts count it: A alone moves, I = 2/value_bytes."""
    return Work(2.0 * rows * columns, value_bytes * rows * columns)


def gemm_traffic(
    m: Numeric,
    n: Numeric,
    k: Numeric,
    value_bytes: float = 2.0,
    tile_m: Numeric = 1,
    tile_n: Numeric = 1,
) -> Numeric:
    """Bytes an (m×k)·(k×n) product moves when only a tile_m×tile_n result tile is kept on chip.

    Each A value is read n/tile_n times, each B value m/tile_m times; tiles of one are the naive
    triple loop, tiles of (m, n) the ideal [byte].
    """
    return value_bytes * (
        m * k * n / np.minimum(tile_n, n) + k * n * m / np.minimum(tile_m, m) + m * n
    )


def elementwise(
    count: Numeric, reads: float, writes: float = 1.0, flops: float = 1.0, value_bytes: float = 2.0
) -> Work:
    """Work of `count` elements, each reading, writing and computing the given amounts."""
    return Work(flops * count, value_bytes * (reads + writes) * count)


def residual_add(count: Numeric, value_bytes: float = 2.0) -> Work:
    """Work of x + y: two values read, one written, one FLOP."""
    return elementwise(count, reads=2, value_bytes=value_bytes)


def rmsnorm(count: Numeric, value_bytes: float = 2.0) -> Work:
    """Work of RMSNorm at 6 FLOPs an element; the gain vector stays in cache."""
    return elementwise(count, reads=1, flops=6, value_bytes=value_bytes)


def softmax(count: Numeric, value_bytes: float = 2.0) -> Work:
    """Work of a row softmax at 5 FLOPs an element (max, subtract, exponential, sum, divide)."""
    return elementwise(count, reads=1, flops=5, value_bytes=value_bytes)


def swiglu(count: Numeric, value_bytes: float = 2.0) -> Work:
    """Work of silu(gate)·up at 5 FLOPs an element."""
    return elementwise(count, reads=2, flops=5, value_bytes=value_bytes)


def attention(
    tokens: Numeric,
    head_dim: Numeric,
    heads: Numeric = 1,
    fused: bool = True,
    value_bytes: float = 2.0,
) -> Work:
    """Work of unmasked self-attention over `tokens`: 4N²d FLOPs a head.

    Fused, Q, K, V and the output move once (8Nd bytes at 16 bits, I = N/2). Unfused, the N×N scores
    and probabilities are written and read too (8N² bytes at 16 bits, in which Nd is neglected as in
    the texts, I = d/2).
    """
    traffic = 4 * tokens * head_dim if fused else 4 * tokens * tokens
    return Work(4.0 * heads * tokens * tokens * head_dim, value_bytes * heads * traffic)


def expected_distinct_experts(experts: Numeric, top_k: Numeric, tokens: Numeric) -> Numeric:
    """Experts hit at least once by `tokens` tokens routed uniformly: E·(1 − (1 − k/E)^tokens) [-].

    The expectation of the occupancy problem with k distinct draws a token; exact at one token (k).
    """
    return experts * -np.expm1(tokens * np.log1p(-np.minimum(top_k / experts, 1 - 1e-12)))


def skewed_distinct_experts(
    experts: Numeric, top_k: Numeric, tokens: Numeric, spread: float
) -> Numeric:
    """Experts hit at least once where some are more popular than others [-].

    Popularity is gamma-distributed over experts with squared coefficient of variation `spread`,
    so that one is missed by t more tokens with probability (1 + spread·λ·t)^(−1/spread),
    λ = −ln(1 − k/E); uniform routing in the limit of spread = 0, exact at one token.
    """
    if spread == 0:
        return expected_distinct_experts(experts, top_k, tokens)
    share = np.minimum(np.divide(top_k, experts), 1 - 1e-12)
    later = np.maximum(np.subtract(tokens, 1.0), 0.0)
    missed = (1 - share) * (1 - spread * np.log1p(-share) * later) ** (-1 / spread)
    return experts * np.where(np.less(tokens, 1.0), share * tokens, 1 - missed)


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel of a step, over the whole model replica, as a law in tokens and context.

    For T tokens (one a sequence, more when drafts are verified) of S sequences with `a` attended
    tokens each, a = min(context, window):

    * FLOPs = T·(flops_per_token + flops_per_cached·a)
    * bytes = weight_bytes·(distinct experts/experts) + S·(bytes_per_sequence + bytes_per_cached·a)
    """

    name: str
    kind: str
    """Class it is calibrated as: gemm, experts, attention, latent, indexer, scan."""
    compute: str
    """Arithmetic format its FLOPs ask for."""
    launches: float = 1.0
    flops_per_token: float = 0.0
    flops_per_cached: float = 0.0
    weight_bytes: float = 0.0
    bytes_per_sequence: float = 0.0
    bytes_per_cached: float = 0.0
    window: float = math.inf
    """Most cached tokens a query attends to [token]."""
    experts: int = 0
    top_k: int = 0
    weight_ways: float = math.inf
    """Most ways tensor parallelism can split the weights; beyond that they replicate [-]."""
    flop_ways: float = math.inf
    cache_ways: float = math.inf
    weight_format: str = "bf16"
    """Format of the weights, or of the cache for a kernel that reads one."""

    def times(self, layers: int) -> Kernel:
        """Return the kernel run in so many layers [-]."""
        return replace(
            self,
            launches=self.launches * layers,
            flops_per_token=self.flops_per_token * layers,
            flops_per_cached=self.flops_per_cached * layers,
            weight_bytes=self.weight_bytes * layers,
            bytes_per_sequence=self.bytes_per_sequence * layers,
            bytes_per_cached=self.bytes_per_cached * layers,
        )
