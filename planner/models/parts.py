"""What a layer is made of: linear maps and experts, and the parts that hold them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.kernels import Kernel
from planner.models.caches import Cache, LatentCache, State
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
    index: Format | None = None
    """Format of an indexer's cached keys; None is the cache's."""

    def __hash__(self) -> int:
        return hash((*self.weights.items(), self.kv, self.state, self.checkpoint, self.index))

    @property
    def index_kv(self) -> Format:
        """Format of an indexer's cached keys."""
        return self.index or self.kv

    def of_cache(self, cache: Cache) -> Format:
        """Return the format of a cache."""
        return self.index_kv if cache.index else self.kv

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
    operand: str = ""
    """Name of the vector it reads, where linears of one kernel read different ones of one width."""
    input_values: int | None = None
    """Values of a token it reads where the matrix is the blocks of a block-diagonal one; None is
    `inputs` [value]."""
    absorbed_values: int | None = None
    """Values of a token it reads and writes in a decode step where its blocks are applied to other
    vectors than in a prompt; None is as in a prompt [value]."""
    sums: bool = False
    """Whether tensor parallelism splits what it reads, so that ranks sum what they write; it splits
    what is written otherwise (Shoeybi et al., "Megatron-LM", 2019)."""

    @property
    def params(self) -> int:
        """Parameters it holds, bias included [-]."""
        return self.inputs * self.outputs + (self.outputs if self.bias else 0)

    def activation_values(self, prompt: bool, shared: bool) -> float:
        """Values of a token it reads and writes [value].

        `shared` says that another linear of the same launch has read its operand already.
        """
        if self.absorbed_values is not None and not prompt:
            return self.absorbed_values
        read = self.inputs if self.input_values is None else self.input_values
        return self.outputs + (0 if shared else read)

    def whole_values(self, prompt: bool, shared: bool) -> float:
        """Values of a token, of the above, that every tensor-parallel rank moves whole [value].

        What is read by a matrix whose outputs are split, what is written by one that is summed;
        blocks of a block-diagonal matrix read vectors of their own.
        """
        if self.sums:
            return self.outputs
        own = self.input_values is not None or (self.absorbed_values is not None and not prompt)
        return 0.0 if shared or own else self.inputs


@dataclass(frozen=True, slots=True)
class RoutedExperts:
    """Equal feed-forward networks of which a token visits a few."""

    experts: int
    top_k: int
    """Experts a token visits [-]."""
    params: int
    """Parameters of one expert [-]."""
    width: int
    """Values between an expert's matrices [-]."""
    inputs: int
    """Values an expert reads and writes: the hidden size, or a narrower latent [-]."""
    gated: bool
    """Whether an expert has a gate beside its up-projection."""

    @property
    def ups(self) -> int:
        """Matrices from `inputs` to `width`: up, and gate where there is one [-]."""
        return 2 if self.gated else 1

    @property
    def activation_values(self) -> int:
        """Values a token reads and writes in the two grouped products over its experts [value].

        top_k·((inputs + ups·width) + (width + inputs)): up with gate, then down. DeepSeek-V3:
        8·((7168 + 2·2048) + (2048 + 7168)) = 163,840.
        """
        return self.top_k * (2 * self.inputs + (self.ups + 1) * self.width)

    def kernel(self, formats: Formats) -> Kernel:
        """Return the grouped products over experts: 2·top_k·params FLOPs a token, two launches."""
        weights = formats.weights["experts"]
        return Kernel(
            name="experts",
            kind="experts",
            compute=weights.compute,
            activation_values_per_token=self.activation_values,
            whole_values_per_token=2.0 * self.top_k * self.inputs,
            launches=2,
            flops_per_token=2.0 * self.top_k * self.params,
            weight_bytes=self.experts * self.params * weights.bytes,
            experts=self.experts,
            top_k=self.top_k,
            weight_format=weights.id,
        )


@dataclass(frozen=True, slots=True)
class Activation:
    """The function between the matrices of a feed-forward network."""

    width: int
    """Values it writes for a token, over all the experts the token visits [value]."""
    gated: bool
    """Whether it multiplies with a gate, which it reads as well."""


class Part(ABC):
    """A mixer, a feed-forward network, or what stands beside them in a layer.

    Sizes, kernels, loading, sharding, paging and placement ask every part for the members below,
    and none of those has a default here. A part derives from `Mixer`, `FeedForward` or `Auxiliary`,
    which answer what cannot differ within their kind; one that leaves out anything else cannot be
    instantiated. Parts are frozen dataclasses with slots.
    """

    __slots__ = ()

    @abstractmethod
    def linears(self) -> tuple[Linear, ...]:
        """Matrices every token goes through."""

    @abstractmethod
    def other_params(self) -> int:
        """Parameters outside the linears: norms, sinks, convolutions, decay rates [-]."""

    def buffers(self) -> int:
        """Stored values that no gradient trains: in checkpoints, not in active parameters [-]."""
        return 0

    @abstractmethod
    def routed(self) -> RoutedExperts | None:
        """Routed experts, or None."""

    @abstractmethod
    def activation(self) -> Activation | None:
        """The function between two matrices of the part, or None."""

    @abstractmethod
    def caches(self) -> tuple[Cache, ...]:
        """Per-token caches."""

    @abstractmethod
    def states(self) -> tuple[State, ...]:
        """Per-sequence states."""

    @property
    @abstractmethod
    def sharded_heads(self) -> int | None:
        """Heads that the ways of tensor parallelism must divide; None puts no condition [-]."""

    @property
    @abstractmethod
    def rotary_width(self) -> int | None:
        """Width of the table of rotary angles an engine holds for it; None without one [-]."""

    @property
    @abstractmethod
    def cached_head_width(self) -> int | None:
        """Width of a head in its cache, which may have a scale of its own; None without [-]."""

    @property
    @abstractmethod
    def latent_cache(self) -> LatentCache | None:
        """How the cache of multi-head latent attention may be kept; None of any other part."""

    @abstractmethod
    def core_kernels(self, formats: Formats) -> tuple[Kernel, ...]:
        """Kernels of a decode step other than the products with `linears`."""

    def prompt_kernels(self, formats: Formats) -> tuple[Kernel, ...]:
        """Kernels of a prompt beside those of `linears`; the decode ones unless overridden."""
        return self.core_kernels(formats)


class Mixer(Part):
    """What mixes the tokens of a sequence: attention, a recurrence, an indexer."""

    __slots__ = ()

    def routed(self) -> RoutedExperts | None:
        """None: experts are a feed-forward network's."""
        return None

    def activation(self) -> Activation | None:
        """None: gates of a mixer are part of its own kernel."""
        return None


class Uncached(Part):
    """A part that caches nothing per token, so that nothing of it is rotated or kept by head."""

    __slots__ = ()

    def caches(self) -> tuple[Cache, ...]:
        """None."""
        return ()

    @property
    def rotary_width(self) -> int | None:
        """None."""
        return None

    @property
    def cached_head_width(self) -> int | None:
        """None."""
        return None

    @property
    def latent_cache(self) -> LatentCache | None:
        """None."""
        return None


class TokenWise(Uncached):
    """A part that treats every token alone: it keeps nothing and has no heads."""

    __slots__ = ()

    def states(self) -> tuple[State, ...]:
        """None."""
        return ()

    @property
    def sharded_heads(self) -> int | None:
        """None."""
        return None


class FeedForward(TokenWise):
    """A feed-forward network, dense or a mixture of experts."""

    __slots__ = ()

    def core_kernels(self, formats: Formats) -> tuple[Kernel, ...]:
        """The grouped product over the routed experts a step hits, if there are any."""
        routed = self.routed()
        return () if routed is None else (routed.kernel(formats),)


class Auxiliary(TokenWise):
    """Matrices and vectors beside mixers and feed-forward networks."""

    __slots__ = ()

    def routed(self) -> RoutedExperts | None:
        """None."""
        return None

    def activation(self) -> Activation | None:
        """None."""
        return None

    def core_kernels(self, formats: Formats) -> tuple[Kernel, ...]:
        """None beside the products with its matrices."""
        del formats
        return ()


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
