"""What a layer is made of: linear maps, caches and states, and the parts that hold them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.kernels import Kernel
from planner.precision import Format, get_format

ROLES = (
    "attention",
    "mlp",
    "experts",
    "shared_experts",
    "router",
    "indexer",
    "mixer",
    "head",
    "embedding",
    "other",
)
"""What a weight is for; a checkpoint's quantisation gives each role its format."""


@dataclass(frozen=True, slots=True)
class Formats:
    """Formats of weights by role, of the KV cache and of recurrent state."""

    weights: Mapping[str, Format]
    kv: Format
    state: Format
    checkpoint: bool = True
    """Whether these are the checkpoint's own, so that its per-layer exceptions apply."""

    @classmethod
    def of(
        cls,
        default: str | Format,
        by_role: Mapping[str, str | Format] | None = None,
        kv: str = "bf16",
        state: str = "bf16",
    ) -> Formats:
        """Return formats with `default` for every role but those in `by_role`."""
        chosen = dict.fromkeys(ROLES, default) | dict(by_role or {})
        return cls(
            {role: get_format(f) if isinstance(f, str) else f for role, f in chosen.items()},
            get_format(kv, "kv"),
            get_format(state, "state"),
        )


@dataclass(frozen=True, slots=True)
class Linear:
    """A matrix (with an optional bias) that every token is multiplied with."""

    kernel: str
    """Kernel that runs it; linears of one kernel and part are one launch (q, k and v, say)."""
    inputs: int
    outputs: int
    role: str
    bias: bool = False
    ways: float = math.inf
    """Most ways tensor parallelism splits it: KV heads for k and v, 1 where it is replicated."""
    stored: bool = True
    """False where the weights are another layer's, used here again."""

    @property
    def params(self) -> int:
        """Parameters it holds, bias included [-]."""
        return self.inputs * self.outputs + (self.outputs if self.bias else 0)


@dataclass(frozen=True, slots=True)
class Cache:
    """What a part keeps per token of a sequence."""

    elements_per_token: float
    """Values kept per token; a compressed cache keeps a fraction of an entry [value/token]."""
    ways: int
    """Ways tensor parallelism splits it: the KV heads; 1 for a latent [-]."""
    window: float = math.inf
    """Tokens kept at most; infinity grows with the sequence [token]."""


@dataclass(frozen=True, slots=True)
class State:
    """What a part keeps per sequence, whatever its length."""

    elements: int
    ways: float = math.inf


class Part:
    """A mixer or an MLP of a layer; subclasses are frozen dataclasses overriding what applies."""

    __slots__ = ()

    def linears(self) -> tuple[Linear, ...]:
        """Matrices every token goes through."""
        return ()

    def other_params(self) -> int:
        """Parameters outside the linears: norms, sinks, convolutions, decay rates [-]."""
        return 0

    def buffers(self) -> int:
        """Stored values that no gradient trains: in checkpoints, not in active parameters [-]."""
        return 0

    def routed(self) -> tuple[int, int, int]:
        """Routed experts: (experts, experts per token, parameters of one expert)."""
        return (0, 0, 0)

    def caches(self) -> tuple[Cache, ...]:
        """Per-token caches."""
        return ()

    def states(self) -> tuple[State, ...]:
        """Per-sequence states."""
        return ()

    def core_kernels(self, formats: Formats) -> tuple[Kernel, ...]:
        """Kernels of a decode step other than the products with `linears`."""
        del formats
        return ()

    def prompt_kernels(self, formats: Formats) -> tuple[Kernel, ...]:
        """Kernels of a prompt beside those of `linears`; the decode ones unless overridden."""
        return self.core_kernels(formats)


@dataclass(frozen=True, slots=True)
class Block:
    """One layer: its mixers, its MLPs (run one after the other), and its norms."""

    mixers: tuple[Part, ...] = ()
    mlps: tuple[Part, ...] = ()
    other_params: int = 0
    """Parameters of the layer outside its parts, its norms above all [-]."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """Mixers and MLPs."""
        return self.mixers + self.mlps


@dataclass(frozen=True, slots=True)
class LayerGroup:
    """`count` equal layers."""

    count: int
    block: Block
    stored: int | None = None
    """Copies of the weights where layers share them; None means one each [-]."""
    formats: Mapping[str, str] = field(default_factory=dict)
    """Roles whose format in these layers differs from the checkpoint's."""

    @property
    def copies(self) -> int:
        """Copies of the weights that exist [-]."""
        return self.count if self.stored is None else self.stored


def linear_kernels(linears: tuple[Linear, ...], formats: Formats) -> tuple[Kernel, ...]:
    """Return one GEMM a kernel name: 2·inputs·outputs FLOPs a token, weights read once a step.

    Where a kernel's matrices split differently (q against k and v), each split is a kernel law of
    its own with no launch after the first.
    """
    merged: dict[tuple[str, float, str], Kernel] = {}
    names: set[str] = set()
    for linear in linears:
        weights = formats.weights[linear.role]
        key = (linear.kernel, linear.ways, weights.id)
        before = merged.get(key)
        stored = linear.inputs * linear.outputs * weights.bytes + (
            linear.outputs * 2 if linear.bias else 0
        )
        merged[key] = Kernel(
            name=linear.kernel,
            kind="gemm",
            compute=weights.compute,
            launches=before.launches if before else float(linear.kernel not in names),
            flops_per_token=2.0 * linear.inputs * linear.outputs
            + (before.flops_per_token if before else 0),
            weight_bytes=stored + (before.weight_bytes if before else 0),
            weight_ways=linear.ways,
            flop_ways=linear.ways,
            weight_format=weights.id,
        )
        names.add(linear.kernel)
    return tuple(merged.values())
