"""RWKV: time mixing with matrix-valued states, and channel mixing.

FLOPs of the recurrence and their sources stand with the other ones in `planner.models.recurrent`.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.kernels import Kernel
from planner.models.caches import State
from planner.models.parts import Activation, FeedForward, Formats, Linear, RoutedExperts
from planner.models.recurrent import RecurrentMixer, scan


@dataclass(frozen=True, slots=True)
class Rwkv(RecurrentMixer):
    """RWKV time mixing with matrix-valued states: heads × head_dim × head_dim values.

    `square` counts the full projections of it (r, k, v, g, output), `low_rank` the ranks of its
    low-rank ones. The two token shifts, of time and channel mixing, are state too.
    """

    hidden: int
    width: int
    head_dim: int
    square: int = 5
    low_rank: tuple[int, ...] = ()
    vectors: int = 0
    """Parameters of interpolation, decay, bonus and norms [-]."""
    flops_per_value: float = 7.0
    """FLOPs a state value costs a token [FLOP]."""
    vectors_read: int = 4
    """Vectors of `width` values the scan reads for a token: r, k, v and the gate, and those of its
    decay and rates that follow the token [-]."""

    def linears(self) -> tuple[Linear, ...]:
        """Full projections, then pairs of low-rank ones."""
        heads = self.width // self.head_dim
        ins = tuple(
            # Each reads its own mix of this token's hidden state and the last one's.
            Linear("rwkv_in", self.hidden, self.width, "mixer", ways=heads, operand=f"mix {index}")
            for index in range(self.square - 1)
        )
        ranks = tuple(
            linear
            for index, rank in enumerate(self.low_rank)
            for linear in _low_rank_pair(self.hidden, rank, self.width, heads, f"mix {index}")
        )
        return (
            *ins,
            *ranks,
            Linear("rwkv_out", self.width, self.hidden, "mixer", ways=heads, sums=True),
        )

    def other_params(self) -> int:
        """Vectors."""
        return self.vectors

    def states(self) -> tuple[State, ...]:
        """The matrix of each head and two token shifts."""
        heads = self.width // self.head_dim
        return (State(self.width * self.head_dim, heads), State(2 * self.hidden, heads))

    @property
    def sharded_heads(self) -> int | None:
        """None: heads beyond their number replicate."""
        return None

    def core_kernels(self, formats: Formats) -> tuple[Kernel, ...]:
        """The time-mixing update."""
        flops = self.flops_per_value * self.width * self.head_dim
        values = (self.vectors_read + 1) * self.width  # and the output
        return (scan(formats, "rwkv_scan", self.states(), flops, values),)


def _low_rank_pair(
    hidden: int, rank: int, width: int, heads: int, operand: str
) -> tuple[Linear, Linear]:
    return (
        Linear("rwkv_low_rank", hidden, rank, "other", ways=1, operand=operand),
        Linear("rwkv_low_rank", rank, width, "other", ways=heads, operand=operand),
    )


@dataclass(frozen=True, slots=True)
class RwkvChannelMix(FeedForward):
    """RWKV channel mixing: key up, squared ReLU, value down, and a receptance gate.

    Without `receptance` it is RWKV-7's, which has no gate.
    """

    hidden: int
    width: int
    receptance: bool = True
    vectors: int = 0

    def linears(self) -> tuple[Linear, ...]:
        """Key and receptance, value."""
        receptance = Linear("mlp_up", self.hidden, self.hidden, "mlp", operand="receptance")
        gate = (receptance,) if self.receptance else ()
        return (
            Linear("mlp_up", self.hidden, self.width, "mlp"),
            *gate,
            Linear("mlp_down", self.width, self.hidden, "mlp", sums=True),
        )

    def other_params(self) -> int:
        """Interpolation vectors."""
        return self.vectors

    def routed(self) -> RoutedExperts | None:
        """None."""
        return None

    def activation(self) -> Activation | None:
        """The squared ReLU of the keys; the receptance gates the output, not the keys."""
        return Activation(self.width, gated=False)
