"""Feed-forward parts: dense and mixture of experts."""

from __future__ import annotations

from dataclasses import dataclass

from planner.models.parts import Activation, Auxiliary, FeedForward, Linear, RoutedExperts


@dataclass(frozen=True, slots=True)
class Dense(FeedForward):
    """A feed-forward network of width `width`: gate, up and down, or up and down."""

    hidden: int
    width: int
    gated: bool = True
    bias: bool = False
    role: str = "mlp"
    other: int = 0

    def linears(self) -> tuple[Linear, ...]:
        """Up (with gate, one launch) and down."""
        up = Linear(f"{self.role}_up", self.hidden, self.width, self.role, self.bias)
        down = Linear(f"{self.role}_down", self.width, self.hidden, self.role, self.bias, sums=True)
        return (up, up, down) if self.gated else (up, down)

    def other_params(self) -> int:
        """Norms and activation parameters."""
        return self.other

    def routed(self) -> RoutedExperts | None:
        """None."""
        return None

    def activation(self) -> Activation | None:
        """One of the network's width."""
        return Activation(self.width, self.gated)


@dataclass(frozen=True, slots=True)
class Projection(Auxiliary):
    """One matrix on its own, not split by tensor parallelism."""

    kernel: str
    inputs: int
    outputs: int
    role: str = "other"

    def linears(self) -> tuple[Linear, ...]:
        """The matrix."""
        return (Linear(self.kernel, self.inputs, self.outputs, self.role, ways=1),)

    def other_params(self) -> int:
        """None."""
        return 0


@dataclass(frozen=True, slots=True)
class Experts(FeedForward):
    """A mixture of `experts` equal feed-forward networks of which each token visits `top_k`.

    A step reads the distinct experts its tokens hit; each token does `top_k` experts' FLOPs.
    Shared experts are a `Dense` of their own beside it.
    """

    hidden: int
    experts: int
    top_k: int
    width: int
    gated: bool = True
    bias: bool = False
    router_bias: bool = False
    router_experts: int | None = None
    """Outputs of the router where it also scores experts without weights [-]."""
    inner: int | None = None
    """Width experts work at where tokens are projected down to it first (latent MoE) [-]."""
    other: int = 0
    """Shared-expert gate, norm of the latent and the like [-]."""
    correction: int = 0
    """Values that correct the router's choice: a score per expert, a table of tokens [-]."""

    def linears(self) -> tuple[Linear, ...]:
        """The router, and the projections around experts that work in a narrower space."""
        outputs = self.experts if self.router_experts is None else self.router_experts
        router = Linear("router", self.hidden, outputs, "router", self.router_bias, 1)
        if self.inner is None:
            return (router,)
        return (
            router,
            Linear("latent_down", self.hidden, self.inner, "shared_experts", ways=1),
            Linear("latent_up", self.inner, self.hidden, "shared_experts", ways=1),
        )

    def other_params(self) -> int:
        """Gates and norms."""
        return self.other

    def buffers(self) -> int:
        """The router's corrections."""
        return self.correction

    def routed(self) -> RoutedExperts | None:
        """The experts, at ups·inputs·width + width·inputs parameters each, and their biases."""
        inputs = self.hidden if self.inner is None else self.inner
        ups = 2 if self.gated else 1
        params = (ups + 1) * inputs * self.width
        if self.bias:
            params += ups * self.width + inputs
        return RoutedExperts(self.experts, self.top_k, params, self.width, inputs, self.gated)

    def activation(self) -> Activation | None:
        """One of an expert's width in each expert a token visits."""
        return Activation(self.top_k * self.width, self.gated)
