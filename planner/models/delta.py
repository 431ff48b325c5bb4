"""Mixers of the gated delta rule; `planner.models.recurrent` has the FLOPs of the recurrence."""

from __future__ import annotations

from dataclasses import dataclass, replace

from planner.kernels import Kernel
from planner.models.caches import State
from planner.models.parts import Formats, Linear
from planner.models.recurrent import Convolution, RecurrentMixer, scan


@dataclass(frozen=True, slots=True)
class GatedDeltaNet(RecurrentMixer):
    """Gated delta rule: value_heads × key_dim × value_dim values (Qwen3-Next, Qwen3.5).

    Each of the key heads serves value_heads/key_heads value heads.
    """

    hidden: int
    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    taps: int

    @property
    def keys(self) -> int:
        """Width of all keys [-]."""
        return self.key_heads * self.key_dim

    @property
    def values(self) -> int:
        """Width of all values [-]."""
        return self.value_heads * self.value_dim

    @property
    def convolution(self) -> Convolution:
        """The convolution over q, k and v."""
        return Convolution(2 * self.keys + self.values, self.taps)

    def linears(self) -> tuple[Linear, ...]:
        """q, k, v and the gate z (one launch), decay and β (kept in 16 bits), out."""
        heads = self.value_heads
        return (
            Linear("delta_in", self.hidden, 2 * self.keys, "mixer", ways=self.key_heads),
            Linear("delta_in", self.hidden, 2 * self.values, "mixer", ways=heads),
            Linear("delta_gates", self.hidden, 2 * heads, "other", ways=heads),
            Linear("delta_out", self.values, self.hidden, "mixer", ways=heads, sums=True),
        )

    def other_params(self) -> int:
        """Convolution, A and Δ bias of each head, the norm of a value head."""
        return self.convolution.params + 2 * self.value_heads + self.value_dim

    def states(self) -> tuple[State, ...]:
        """The matrix of each value head and the convolution's window."""
        return (
            State(self.value_heads * self.key_dim * self.value_dim, self.value_heads),
            self.convolution.window(self.value_heads),
        )

    @property
    def sharded_heads(self) -> int | None:
        """None: key heads beyond their number replicate, as KV heads do."""
        return None

    def core_kernels(self, formats: Formats) -> tuple[Kernel, ...]:
        """The delta-rule update."""
        flops = 7.0 * self.value_heads * self.key_dim * self.value_dim + self.convolution.flops
        # q and k; v, z and the output; decay and β.
        values = 2 * self.keys + 3 * self.values + 2 * self.value_heads
        return (scan(formats, "delta_scan", self.states(), flops, values),)


@dataclass(frozen=True, slots=True)
class KimiDelta(RecurrentMixer):
    """Kimi delta attention: the gated delta rule with a decay per key channel.

    Decay and output gate come from projections of rank head_dim, or full ones (Kimi-K3).
    """

    hidden: int
    heads: int
    head_dim: int
    taps: int
    full_rank_gate: bool = False
    """Whether the output gate is one full projection."""
    conv_rows: int | None = None

    @property
    def width(self) -> int:
        """Width of q, of k and of v [-]."""
        return self.heads * self.head_dim

    @property
    def convolution(self) -> Convolution:
        """The convolutions over q, k and v."""
        return Convolution(3 * self.width, self.taps, rows=self.conv_rows)

    def linears(self) -> tuple[Linear, ...]:
        """q, k, v; decay, β and output gate; out."""
        heads = self.heads
        low_rank = (
            Linear("kda_gates", self.hidden, self.head_dim, "mixer", ways=1),
            Linear("kda_gates_up", self.head_dim, self.width, "mixer", ways=heads),
        )
        gate = (
            (Linear("kda_gates", self.hidden, self.width, "mixer", ways=heads),)
            if self.full_rank_gate
            else (low_rank[0], replace(low_rank[1], operand="output gate"))
        )
        return (
            Linear("qkv_proj", self.hidden, 3 * self.width, "mixer", ways=heads),
            *low_rank,
            *gate,
            Linear("kda_gates", self.hidden, heads, "mixer", ways=heads),
            Linear("o_proj", self.width, self.hidden, "mixer", ways=heads, sums=True),
        )

    def other_params(self) -> int:
        """Convolutions, A of each head, Δ bias of each channel, the norm of a head."""
        return self.convolution.params + self.heads + self.width + self.head_dim

    def states(self) -> tuple[State, ...]:
        """The matrix of each head and the convolutions' windows."""
        return (State(self.width * self.head_dim, self.heads), self.convolution.window(self.heads))

    @property
    def sharded_heads(self) -> int | None:
        """Its heads."""
        return self.heads

    def core_kernels(self, formats: Formats) -> tuple[Kernel, ...]:
        """The delta-rule update."""
        flops = 7.0 * self.width * self.head_dim + self.convolution.flops
        values = 6 * self.width + self.heads  # q, k, v, decay, gate, output; β
        return (scan(formats, "delta_scan", self.states(), flops, values),)
