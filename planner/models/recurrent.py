"""Mixers with a fixed-size state: Mamba, gated delta rules, linear attention, convolution, RWKV.

All share one decode kernel, the scan: a step reads and writes each sequence's state once and does a
few FLOPs per state value, so it is memory-bound at any batch. The FLOPs a state value costs are
those of the published recurrence, counted operation by operation (an exponential counts one):

=============================== =========================================================== =====
mixer                           recurrence, per state value                                 FLOPs
=============================== =========================================================== =====
Mamba-1 [1]_                    exp(Δ·A) 2, ·h 1, + (Δx)·B 2, read-out C·h 2                7
Mamba-2 [2]_                    a·h 1, + (Δx)·B 2, read-out C·h 2                           5
gated delta rule [3]_, KDA [4]_ g·S 1, kᵀS 2, + k·δᵀ 2, read-out qᵀS 2                      7
lightning attention [5]_        λ·S 1, + k·vᵀ 2, read-out qᵀS 2                             5
RWKV-5 and 6 [6]_               k·vᵀ 1, u·kv + S 2, read-out 2, w·S + kv 2                  7
RWKV-7 [7]_                     w·S 1, S·a 2, + (S·a)·bᵀ 2, + v·kᵀ 2, read-out 2            9
=============================== =========================================================== =====

A causal convolution of k taps adds 2k FLOPs a channel.

.. [1] Gu, Dao, "Mamba: linear-time sequence modeling with selective state spaces", 2023, eq. 2.
.. [2] Dao, Gu, "Transformers are SSMs", ICML 2024, section 5 (scalar decay a head).
.. [3] Yang, Kautz, Hatamizadeh, "Gated Delta Networks", 2024, eq. 10.
.. [4] Kimi team, "Kimi Linear", 2025, eq. 1 (decay per key channel).
.. [5] Qin et al., "Lightning Attention-2", 2024, eq. 5; MiniMax-01 report, 2025, section 2.2.
.. [6] Peng et al., "Eagle and Finch: RWKV with matrix-valued states", 2024, eq. 11-12.
.. [7] Peng et al., "RWKV-7 Goose with expressive dynamic state evolution", 2025, eq. 17.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.kernels import Kernel
from planner.models.caches import State
from planner.models.parts import Formats, Linear, Mixer, Uncached


@dataclass(frozen=True, slots=True)
class Convolution:
    """A depthwise causal convolution and the window of inputs a sequence keeps for it."""

    channels: int
    taps: int
    bias: bool = False
    rows: int | None = None
    """Inputs kept a channel; None keeps `taps`, as the reference implementation does [-]."""

    @property
    def params(self) -> int:
        """Filter and bias [-]."""
        return self.channels * (self.taps + self.bias)

    @property
    def elements(self) -> int:
        """Values of state [value]."""
        return self.channels * (self.taps if self.rows is None else self.rows)

    @property
    def flops(self) -> float:
        """FLOPs of one token [FLOP]."""
        return 2.0 * self.channels * self.taps

    def window(self, ways: float = math.inf) -> State:
        """Return the inputs a sequence keeps, which tensor parallelism splits `ways` ways."""
        rows = self.taps - 1 if self.rows in (None, self.taps) else self.rows
        return State(self.elements, ways, self.channels * (rows or 0))


class RecurrentMixer(Mixer, Uncached):
    """A mixer that caches nothing per token: a recurrence knows the order of its tokens."""

    __slots__ = ()


def scan(
    formats: Formats, name: str, states: tuple[State, ...], flops: float, values: int
) -> Kernel:
    """Return the kernel of one recurrent step: every state read and written once.

    A token costs `flops` [FLOP] and moves `values`: what the projections before the scan make for
    it and what the one after it reads [value].
    """
    elements = sum(state.elements for state in states)
    ways = max((state.ways for state in states), default=math.inf)
    return Kernel(
        name=name,
        kind="scan",
        compute="fp32",
        activation_values_per_token=values,
        flops_per_token=flops,
        bytes_per_sequence=2 * elements * formats.state.bytes,
        flop_ways=ways,
        cache_ways=ways,
        weight_format=formats.state.id,
    )


@dataclass(frozen=True, slots=True)
class Mamba1(RecurrentMixer):
    """Selective state space with a state per channel: `inner` channels × `state` values."""

    hidden: int
    inner: int
    state: int
    rank: int
    """Rank of the time-step projection [-]."""
    convolution: Convolution
    bias: bool = False
    norm_params: int = 0

    def linears(self) -> tuple[Linear, ...]:
        """In (x and z), x to (Δ, B, C), Δ up, out."""
        return (
            Linear("mamba_in", self.hidden, 2 * self.inner, "mixer", self.bias),
            Linear("mamba_x", self.inner, self.rank + 2 * self.state, "mixer"),
            Linear("mamba_dt", self.rank, self.inner, "mixer", bias=True),
            Linear("mamba_out", self.inner, self.hidden, "mixer", self.bias, sums=True),
        )

    def other_params(self) -> int:
        """Convolution, A, D and norms."""
        return self.convolution.params + self.inner * (self.state + 1) + self.norm_params

    def states(self) -> tuple[State, ...]:
        """The state space and the convolution's window."""
        return (State(self.inner * self.state), self.convolution.window())

    @property
    def sharded_heads(self) -> int | None:
        """None: any channels can be split."""
        return None

    def core_kernels(self, formats: Formats) -> tuple[Kernel, ...]:
        """The selective scan."""
        flops = 7.0 * self.inner * self.state + self.convolution.flops
        values = 4 * self.inner + 2 * self.state  # x, z, Δ; B, C; the output
        return (scan(formats, "mamba_scan", self.states(), flops, values),)


@dataclass(frozen=True, slots=True)
class Mamba2(RecurrentMixer):
    """State space with a scalar decay a head: heads × head_dim × state values.

    One projection makes z, x, B, C (`groups` of them) and Δ; x, B and C pass the convolution.
    """

    hidden: int
    heads: int
    head_dim: int
    state: int
    groups: int
    taps: int
    conv_bias: bool = True
    bias: bool = False
    gated_norm: bool = True
    """Whether a norm of the inner width follows the scan."""

    @property
    def inner(self) -> int:
        """Width of the mixer [-]."""
        return self.heads * self.head_dim

    @property
    def convolution(self) -> Convolution:
        """The convolution over x, B and C."""
        return Convolution(self.inner + 2 * self.groups * self.state, self.taps, self.conv_bias)

    def linears(self) -> tuple[Linear, ...]:
        """In (z, x, B, C, Δ) and out."""
        width = self.inner + self.convolution.channels + self.heads
        return (
            Linear("mamba_in", self.hidden, width, "mixer", self.bias, self.heads),
            Linear("mamba_out", self.inner, self.hidden, "mixer", self.bias, self.heads, sums=True),
        )

    def other_params(self) -> int:
        """Convolution; A, D and the Δ bias of each head; the gated norm."""
        return self.convolution.params + 3 * self.heads + (self.inner if self.gated_norm else 0)

    def states(self) -> tuple[State, ...]:
        """The state space and the convolution's window."""
        return (
            State(self.heads * self.head_dim * self.state, self.heads),
            self.convolution.window(self.heads),
        )

    @property
    def sharded_heads(self) -> int | None:
        """Its heads."""
        return self.heads

    def core_kernels(self, formats: Formats) -> tuple[Kernel, ...]:
        """The state-space update."""
        flops = 5.0 * self.inner * self.state + self.convolution.flops
        # z; x, B and C; Δ; the output.
        values = self.inner + self.convolution.channels + self.heads + self.inner
        return (scan(formats, "mamba_scan", self.states(), flops, values),)


@dataclass(frozen=True, slots=True)
class LightningAttention(RecurrentMixer):
    """Linear attention with a fixed decay a head: heads × head_dim × head_dim values."""

    hidden: int
    heads: int
    head_dim: int

    def linears(self) -> tuple[Linear, ...]:
        """q, k, v; the output gate; out."""
        width = self.heads * self.head_dim
        return (
            Linear("qkv_proj", self.hidden, 3 * width, "mixer", ways=self.heads),
            Linear("gate_proj", self.hidden, width, "mixer", ways=self.heads),
            Linear("o_proj", width, self.hidden, "mixer", ways=self.heads, sums=True),
        )

    def other_params(self) -> int:
        """The norm of the output."""
        return self.heads * self.head_dim

    def states(self) -> tuple[State, ...]:
        """Σ k·vᵀ of each head."""
        return (State(self.heads * self.head_dim**2, self.heads),)

    @property
    def sharded_heads(self) -> int | None:
        """Its heads."""
        return self.heads

    def core_kernels(self, formats: Formats) -> tuple[Kernel, ...]:
        """The linear-attention update."""
        flops = 5.0 * self.heads * self.head_dim**2
        values = 5 * self.heads * self.head_dim  # q, k, v, gate, output
        return (scan(formats, "linear_scan", self.states(), flops, values),)


@dataclass(frozen=True, slots=True)
class ShortConvolution(RecurrentMixer):
    """A gated short convolution over the hidden width (LFM2)."""

    hidden: int
    taps: int
    bias: bool = False

    @property
    def convolution(self) -> Convolution:
        """The convolution."""
        return Convolution(self.hidden, self.taps, self.bias)

    def linears(self) -> tuple[Linear, ...]:
        """In (two gates and x) and out."""
        return (
            Linear("conv_in", self.hidden, 3 * self.hidden, "mixer", self.bias),
            Linear("conv_out", self.hidden, self.hidden, "mixer", self.bias, sums=True),
        )

    def other_params(self) -> int:
        """The filter."""
        return self.convolution.params

    def states(self) -> tuple[State, ...]:
        """The convolution's window."""
        return (self.convolution.window(),)

    @property
    def sharded_heads(self) -> int | None:
        """None: any channels can be split."""
        return None

    def core_kernels(self, formats: Formats) -> tuple[Kernel, ...]:
        """The convolution between its two gates (one product a channel each)."""
        flops = self.convolution.flops + 2.0 * self.hidden
        values = 4 * self.hidden  # two gates and x; the output
        return (scan(formats, "conv_scan", self.states(), flops, values),)
