"""The work of every kernel, each described once as FLOPs and bytes.

The free functions are the textbook formulas: the `Work` of one kernel on its own, all operands
moved once. A `Kernel` is the work of one of a model's kernels as a law in the number of tokens,
sequences and cached tokens. In a step, activations stay in the last-level cache and only weights,
KV cache and state are compulsory memory traffic; ``planner kernels`` adds the activations.
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
    """Return the work of an (m×k)·(k×n) product whose operands and result move once.

    FLOPs = 2·m·n·k; bytes = value_bytes·(m·k + m·n) + weight_value_bytes·n·k
    by definition, a multiply-add counting two.

    Args:
        m: Rows of the activations, the tokens of a step [-].
        n: Columns of the weights, the outputs [-].
        k: Inner size, the inputs [-].
        value_bytes: Size of an activation [byte].
        weight_value_bytes: Size of a weight; None is that of an activation [byte].

    Example:
        DeepSeek-V3's q_b_proj over 8192 tokens, weights of one byte: 8192·2·(1536 + 24576) +
        1536·24576 = 4.656e8 byte.

        >>> work = gemm(8192, 24576, 1536, weight_value_bytes=1.0)
        >>> f"{work.flops:.3e} FLOP, {work.bytes:.3e} byte"
        '6.185e+11 FLOP, 4.656e+08 byte'
    """
    weight = value_bytes if weight_value_bytes is None else weight_value_bytes
    return Work(2.0 * m * n * k, value_bytes * (m * k + m * n) + weight * n * k)


def gemv(rows: Numeric, columns: Numeric, value_bytes: float = 2.0) -> Work:
    """Return the work of y = A·x as the roofline texts count it: A alone moves.

    FLOPs = 2·rows·columns; bytes = value_bytes·rows·columns, so that I = 2/value_bytes
    (Williams, Waterman, Patterson, 2009).

    Args:
        rows: Rows of A [-].
        columns: Columns of A [-].
        value_bytes: Size of a value of A [byte].

    Example:
        >>> float(gemv(4096, 4096).intensity)
        1.0
    """
    return Work(2.0 * rows * columns, value_bytes * rows * columns)


def gemm_traffic(
    m: Numeric,
    n: Numeric,
    k: Numeric,
    value_bytes: float = 2.0,
    tile_m: Numeric = 1,
    tile_n: Numeric = 1,
) -> Numeric:
    """Return the bytes a tiled (m×k)·(k×n) product moves [byte].

    bytes = value_bytes·(m·k·n/tile_n + k·n·m/tile_m + m·n): each A value is read n/tile_n times,
    each B value m/tile_m times. Tiles of one are the naive triple loop, tiles of (m, n) the ideal
    (Lam, Rothberg, Wolf, 1991).

    Args:
        m: Rows of A [-].
        n: Columns of B [-].
        k: Inner size [-].
        value_bytes: Size of a value [byte].
        tile_m: Rows of the result tile kept on chip [-].
        tile_n: Columns of the result tile kept on chip [-].

    Example:
        A product of 1024×1024 matrices in tiles of 128: 2·(2·1024³/128 + 1024²).

        >>> float(gemm_traffic(1024, 1024, 1024, tile_m=128, tile_n=128))
        35651584.0
    """
    return value_bytes * (
        m * k * n / np.minimum(tile_n, n) + k * n * m / np.minimum(tile_m, m) + m * n
    )


def elementwise(
    count: Numeric, reads: float, writes: float = 1.0, flops: float = 1.0, value_bytes: float = 2.0
) -> Work:
    """Return the work of a function of each of `count` elements.

    FLOPs = flops·count; bytes = value_bytes·(reads + writes)·count, by definition.

    Args:
        count: Elements [-].
        reads: Values read for each [-].
        writes: Values written for each [-].
        flops: Operations for each [FLOP].
        value_bytes: Size of a value [byte].

    Example:
        >>> elementwise(1000.0, reads=3)
        Work(flops=1000.0, bytes=8000.0)
    """
    return Work(flops * count, value_bytes * (reads + writes) * count)


def residual_add(count: Numeric, value_bytes: float = 2.0) -> Work:
    """Return the work of x + y: two values read, one written, one FLOP an element.

    Args:
        count: Elements [-].
        value_bytes: Size of a value [byte].

    Example:
        >>> residual_add(8192.0)
        Work(flops=8192.0, bytes=49152.0)
    """
    return elementwise(count, reads=2, value_bytes=value_bytes)


def rmsnorm(count: Numeric, value_bytes: float = 2.0) -> Work:
    """Return the work of RMSNorm, x/√(mean x² + ε)·g, at 6 FLOPs an element.

    One value read and one written; the gain vector stays in cache (Zhang, Sennrich, 2019;
    the count of 6 is this project's).

    Args:
        count: Elements [-].
        value_bytes: Size of a value [byte].

    Example:
        >>> rmsnorm(8192.0)
        Work(flops=49152.0, bytes=32768.0)
    """
    return elementwise(count, reads=1, flops=6, value_bytes=value_bytes)


def softmax(count: Numeric, value_bytes: float = 2.0) -> Work:
    """Return the work of a row softmax at 5 FLOPs an element.

    Maximum, difference, exponential, sum and quotient; one value read and one written.

    Args:
        count: Elements [-].
        value_bytes: Size of a value [byte].

    Example:
        >>> softmax(1000.0)
        Work(flops=5000.0, bytes=4000.0)
    """
    return elementwise(count, reads=1, flops=5, value_bytes=value_bytes)


def swiglu(count: Numeric, value_bytes: float = 2.0) -> Work:
    """Return the work of silu(gate)·up at 5 FLOPs an element: two values read, one written.

    Negation, exponential, sum, quotient and product (Shazeer, "GLU variants improve Transformer",
    2020).

    Args:
        count: Values written [-].
        value_bytes: Size of a value [byte].

    Example:
        >>> swiglu(1000.0)
        Work(flops=5000.0, bytes=6000.0)
    """
    return elementwise(count, reads=2, flops=5, value_bytes=value_bytes)


def activation(count: Numeric, value_bytes: float = 2.0) -> Work:
    """Return the work of an activation without a gate, silu(x), at 4 FLOPs an element.

    `swiglu` without its product: one value read, one written.

    Args:
        count: Values written [-].
        value_bytes: Size of a value [byte].

    Example:
        >>> activation(1000.0)
        Work(flops=4000.0, bytes=4000.0)
    """
    return elementwise(count, reads=1, flops=4, value_bytes=value_bytes)


def attention(
    tokens: Numeric,
    head_dim: Numeric,
    heads: Numeric = 1,
    fused: bool = True,
    value_bytes: float = 2.0,
) -> Work:
    """Return the work of unmasked self-attention: FLOPs = 4·heads·tokens²·head_dim.

    Fused, Q, K, V and the output move once: bytes = value_bytes·heads·4·tokens·head_dim, I = N/2 at
    16 bits (Dao et al., "FlashAttention", 2022). Unfused, the N×N scores and probabilities are
    written and read too: bytes = value_bytes·heads·4·tokens², I = d/2, in which N·d is neglected as
    in the texts.

    Args:
        tokens: Length of the sequence, N [token].
        head_dim: Width of a head, d [-].
        heads: Heads [-].
        fused: Whether scores stay on chip.
        value_bytes: Size of a value [byte].

    Example:
        >>> float(attention(4096, 128).intensity)
        2048.0
        >>> float(attention(4096, 128, fused=False).intensity)
        64.0
    """
    traffic = 4 * tokens * head_dim if fused else 4 * tokens * tokens
    return Work(4.0 * heads * tokens * tokens * head_dim, value_bytes * heads * traffic)


def attention_traffic(
    tokens: Numeric,
    head_dim: Numeric,
    heads: Numeric = 1,
    value_bytes: float = 2.0,
    tile: Numeric = 1,
) -> Numeric:
    """Return the bytes attention moves where each tile of queries reads all keys and values [byte].

    bytes = value_bytes·heads·(2·tokens·head_dim + 2·tokens²·head_dim/tile): scores stay on chip, Q
    and the output move once, K and V once a tile (Dao et al., "FlashAttention", 2022, without a
    cache that holds K and V). A tile of all tokens is the fused kernel.

    Args:
        tokens: Length of the sequence, N [token].
        head_dim: Width of a head, d [-].
        heads: Heads [-].
        value_bytes: Size of a value [byte].
        tile: Queries of a tile [token].

    Example:
        A head of 128 over 4096 tokens in tiles of 128: 2·(2·4096·128 + 2·4096²·128/128).

        >>> float(attention_traffic(4096, 128, tile=128))
        69206016.0
    """
    once = 2 * tokens * head_dim
    return value_bytes * heads * (once + once * tokens / np.minimum(tile, tokens))


def expected_distinct_experts(experts: Numeric, top_k: Numeric, tokens: Numeric) -> Numeric:
    """Return the experts hit at least once by tokens routed uniformly [-].

    E·(1 − (1 − k/E)^T), the expectation of the occupancy problem with k distinct draws a token
    (linearity of expectation over experts); exactly k at one token.

    Args:
        experts: Experts of a layer, E [-].
        top_k: Experts a token visits, k [-].
        tokens: Tokens of a step, T [token].

    Example:
        64 tokens of DeepSeek-V3 hit 222 of 256 experts: 256·(1 − (31/32)^64).

        >>> round(float(expected_distinct_experts(256, 8, 64)), 2)
        222.44
    """
    return experts * -np.expm1(tokens * np.log1p(-np.minimum(top_k / experts, 1 - 1e-12)))


def skewed_distinct_experts(
    experts: Numeric, top_k: Numeric, tokens: Numeric, spread: float
) -> Numeric:
    """Return the experts hit at least once where some are more popular than others [-].

    Popularity is gamma-distributed over experts with squared coefficient of variation s, so that
    one is missed by t more tokens with probability (1 + s·λ·t)^(−1/s), λ = −ln(1 − k/E) (the
    Laplace transform of the gamma distribution); uniform routing in the limit of s = 0, exact at
    one token. The model is this project's.

    Args:
        experts: Experts of a layer, E [-].
        top_k: Experts a token visits, k [-].
        tokens: Tokens of a step, t + 1 [token].
        spread: Squared coefficient of variation of the popularity, s [-].

    Example:
        256·(1 − 31/32·(1 + 0.5·0.03175·63)^−2):

        >>> round(float(skewed_distinct_experts(256, 8, 64, 0.5)), 2)
        194.01
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

    On its own it also moves T·activation_values_per_token values.
    """

    name: str
    kind: str
    """Class it is calibrated as: gemm, experts, attention, latent, indexer or scan. Kernels of the
    kind elementwise have no compulsory bytes and are in no step."""
    compute: str
    """Arithmetic format its FLOPs ask for."""
    activation_values_per_token: float
    """Values a token reads and writes beside weights, cache and state, unsharded [value/token].

    Not part of a step's compulsory bytes, in which they stay in the last-level cache; a kernel
    placed on its own moves them, at two bytes a value in 16 bits."""
    whole_values_per_token: float = 0.0
    """Of these, values that every tensor-parallel rank moves whole [value/token]."""
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
            activation_values_per_token=self.activation_values_per_token * layers,
            whole_values_per_token=self.whole_values_per_token * layers,
            launches=self.launches * layers,
            flops_per_token=self.flops_per_token * layers,
            flops_per_cached=self.flops_per_cached * layers,
            weight_bytes=self.weight_bytes * layers,
            bytes_per_sequence=self.bytes_per_sequence * layers,
            bytes_per_cached=self.bytes_per_cached * layers,
        )
