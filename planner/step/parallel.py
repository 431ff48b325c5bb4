"""How a replica is split over GPUs, and what the split costs in collectives.

A replica spans tp·attention_dp·pp GPUs. Attention and dense weights are split tp ways and held once
per attention-DP rank, which serves its own sequences; routed experts are spread over all
tp·attention_dp ranks, by expert (ep ways) and by width (the rest). A pipeline runs pp microbatches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.errors import InvalidInput
from planner.hw import Accelerator, MissingFigure
from planner.models.spec import ModelSpec
from planner.roofline import Numeric


class InvalidSharding(InvalidInput):
    """A split the model cannot take; the message names the field and what is accepted."""


@dataclass(frozen=True, slots=True)
class Sharding:
    """Ways a replica is split, each 1 or more [-]."""

    tp: int = 1
    pp: int = 1
    ep: int = 1
    attention_dp: int = 1

    @property
    def ranks(self) -> int:
        """GPUs of one pipeline stage: those experts spread over [-]."""
        return self.tp * self.attention_dp

    @property
    def gpus(self) -> int:
        """GPUs of one replica [-]."""
        return self.ranks * self.pp

    def share(self, ways: Numeric) -> Numeric:
        """Share of something splittable `ways` ways that one tensor-parallel rank holds [-]."""
        return 1.0 / np.minimum(self.tp, ways)

    def check(self, spec: ModelSpec) -> None:
        """Raise InvalidSharding where the model cannot be split so."""
        for group in spec.groups:
            for part in group.block.mixers:
                heads = part.sharded_heads
                if heads is not None and heads % self.tp:
                    accepted = [n for n in range(1, min(heads, 64) + 1) if heads % n == 0]
                    raise InvalidSharding(
                        f"tp: {self.tp} does not divide the {heads} attention heads of {spec.id}; "
                        f"accepted: {', '.join(map(str, accepted))}"
                    )
        if self.ranks % self.ep:
            accepted = [n for n in range(1, self.ranks + 1) if self.ranks % n == 0]
            raise InvalidSharding(
                f"ep: {self.ep} does not divide tp·attention_dp = {self.ranks}; "
                f"accepted: {', '.join(map(str, accepted))}"
            )
        if self.pp > spec.layers:
            raise InvalidSharding(f"pp: {self.pp} exceeds the model's {spec.layers} layers")


@dataclass(frozen=True, slots=True)
class Collective:
    """A collective of a step, `count` times over all layers."""

    op: str
    """all_reduce, all_gather, reduce_scatter, all_to_all or send; `network` for the part of one of
    them that passes between nodes."""
    count: int
    ranks: int
    bytes_per_token: float
    """Size of the message per token of the microbatch, before the algorithm's factor [byte]."""
    tokens_of: str = "rank"
    """Whose tokens the message holds: one attention-DP rank's or the whole stage's."""
    reduces: bool = False
    """Whether the part between nodes is of an all-reduce, which sends twice."""

    @property
    def wire_factor(self) -> float:
        """Bytes a GPU sends per byte of message in a bandwidth-optimal algorithm [-].

        2(n−1)/n for all-reduce, (n−1)/n for the others (Thakur, Rabenseifner, Gropp, 2005).
        """
        if self.op == "send":
            return 1.0
        factor = (self.ranks - 1) / self.ranks
        return 2 * factor if self.op == "all_reduce" or self.reduces else factor

    @property
    def one_shot_factor(self) -> float:
        """Bytes a GPU receives per byte of message where each rank sends all to every other [-].

        n − 1, in one exchange instead of two; infinite where an operation has no such form.
        """
        return self.ranks - 1.0 if self.op == "all_reduce" else np.inf

    @property
    def turn_bytes(self) -> float:
        """Bytes that a second exchange costs the time of [byte].

        As many as make both forms of an all-reduce equal at ONE_SHOT_BYTES.
        """
        one_shot = self.op == "all_reduce"
        return (self.one_shot_factor - self.wire_factor) * ONE_SHOT_BYTES if one_shot else 0.0

    def wire_bytes(self, tokens: Numeric) -> Numeric:
        """Return the bytes a GPU puts on its links for one message of `tokens` tokens [byte].

        An all-reduce takes the form that ends first.
        """
        message = np.multiply(self.bytes_per_token, tokens)
        two_shots = self.wire_factor * message + self.turn_bytes
        return np.minimum(self.one_shot_factor * message, two_shots)


ACTIVATION_BYTES = 2.0
"""Bytes of a value in flight between layers: engines keep them at 16 bits [byte]."""


ONE_SHOT_BYTES = 1e6
"""Message up to which engines all-reduce in one exchange. Kernels of vLLM and SGLang turn at 0.25
to 0.5 MB with 8 ranks (`custom_all_reduce`), those of TensorRT-LLM 1.3 at 1 MB, while TPOT of runs
of its versions 1.0 to 1.2 grows as one exchange does up to 2 MB (assumption: one size for all)
[byte]."""

NETWORK = "network"
"""The op of what passes between nodes."""

NETWORK_BYTES_PER_S = 50e9
"""One direction of a 400 Gb/s port for each accelerator (InfiniBand NDR), which what connects the
nodes of a replica is assumed to be [byte/s]."""


def hierarchical(sent: Collective, domain: int) -> tuple[Collective, ...]:
    """Return a collective as what its nodes do inside and between each other.

    Ranks fill one node after another, `domain` to a node. An all-reduce is a reduce-scatter inside,
    an all-reduce of 1/domain of the message between the nodes, and an all-gather inside; of the
    others each rank sends its part of the message (Thakur, Rabenseifner, Gropp 2005).
    """
    nodes = -(-sent.ranks // domain)
    if nodes == 1 or sent.op == "send":
        return (sent,)
    reduces = sent.op == "all_reduce"
    message = sent.bytes_per_token / (domain if reduces else 1)
    between = Collective(NETWORK, sent.count, nodes, message, sent.tokens_of, reduces)
    inside = replace(sent, ranks=domain)
    return (inside, between) if domain > 1 else (between,)


def collectives(
    spec: ModelSpec, sharding: Sharding, domain: int | None = None
) -> tuple[Collective, ...]:
    """Return the collectives of one decode step; links join `domain` ranks, or all without.

    Tensor parallelism all-reduces the hidden state after each mixer and each MLP. Under attention
    DP, experts gather the tokens of all ranks and scatter the results, or, expert-parallel,
    exchange each token with the ranks of its top-k experts.
    """
    sent: list[Collective] = []
    hidden = spec.hidden * ACTIVATION_BYTES
    tp, dp = sharding.tp, sharding.attention_dp
    mixers = sum(group.count * len(group.block.mixers) for group in spec.groups)
    routed = [
        (group.count, experts.top_k)
        for group in spec.groups
        for part in group.block.mlps
        if (experts := part.routed())
    ]
    expert_layers = sum(count for count, _ in routed)
    mlps = sum(group.count * bool(group.block.mlps) for group in spec.groups)
    if tp > 1:
        reduced = mixers + mlps - (expert_layers if dp > 1 else 0)
        sent.append(Collective("all_reduce", reduced, tp, hidden))
        sent.append(Collective("all_gather", 1, tp, spec.vocab * ACTIVATION_BYTES))
    if dp > 1 and expert_layers:
        n = sharding.ranks
        if sharding.ep > 1:
            top_k = sum(count * k for count, k in routed) / expert_layers
            message = min(top_k, n) * hidden
            sent.append(Collective("all_to_all", 2 * expert_layers, n, message))
        else:
            sent.append(Collective("all_gather", expert_layers, n, hidden, "stage"))
            sent.append(Collective("reduce_scatter", expert_layers, n, hidden, "stage"))
    if sharding.pp > 1:
        sent.append(Collective("send", sharding.pp - 1, 2, hidden))
    if domain is None:
        return tuple(sent)
    return tuple(part for each in sent for part in hierarchical(each, domain))


def link_domain(accelerator: Accelerator, gpus: int, nodes: int | None = None) -> int | None:
    """Return how many of `gpus` accelerators links join, or None where all are.

    `nodes` are the hosts they are said to span. Parts without a link of their own meet on the buses
    of their host.
    """
    if nodes and nodes > 1:
        return min(accelerator.domain_size or gpus, max(1, gpus // nodes))
    domain = accelerator.domain_size
    return domain if domain is not None and 1 < domain < gpus else None


def link_bandwidth(accelerator: Accelerator) -> float:
    """Return the bandwidth of an accelerator's links, one direction [byte/s].

    Raises MissingFigure where none is on record.
    """
    if accelerator.link.bytes_per_s is None:
        raise MissingFigure(
            f"gpu: {accelerator.id} has no link bandwidth on record; accepted: tp=1, pp=1, "
            f"attention_dp=1, or an accelerator of your own with a link"
        )
    return accelerator.link.bytes_per_s
