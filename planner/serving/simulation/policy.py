"""How an engine schedules: its profile and settings as figures of a schedule."""

from __future__ import annotations

from dataclasses import dataclass

from planner.deployment import Deployment
from planner.serving.steady import Queueing

HALF_A_STEP = 0.5
"""Steps that a request waits anyway for the one that runs when it comes, on average [-]."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What a schedule needs to know of an engine and its memory."""

    mixes: bool
    """Whether prompts ride on the steps of what decodes; else they stop it."""
    step_tokens: int
    """Tokens of a step on one attention-DP rank [token]."""
    ranks: int
    """Attention-DP ranks [-]."""
    stages: int
    """Pipeline stages [-]."""
    most_sequences: int
    """Sequences that run at once [-]."""
    cache_tokens: float
    """Tokens of all caches together [token]."""
    output_reserved: float
    """Share of an output that a request needs place for when it is let in [-]."""
    tokens_per_step: float
    """Tokens a sequence gets from a step [-]."""
    queries: float
    """Tokens a sequence puts through a step [-]."""
    first_s: float
    """Time of a request beside its prompt and waiting [s]."""
    ahead_steps: float
    """Steps that are scheduled before a request can join [-]."""
    scale: float
    """Factor on TTFT, of measurements of one's own [-]."""
    hold_steps: int = 0
    """Steps that prompts wait at most until every attention-DP rank has one: a prompt on one rank
    alone stops the others for as long as prompts on all do [-]."""
    prefix_hit: float = 0.0
    """Share of input found in the prefix cache [-]."""

    @classmethod
    def of(cls, deployment: Deployment, context: float, prefix_hit: float = 0.0) -> Policy:
        """Return the policy of a deployment whose sequences have `context` tokens on average."""
        memory, engine, split = deployment.memory, deployment.engine, deployment.sharding
        queueing = Queueing.of(deployment)
        held = float(memory.pool.sequences(context)) * split.attention_dp
        return cls(
            mixes=engine.mixes_prompts,
            step_tokens=engine.chunk_tokens,
            ranks=split.attention_dp,
            stages=split.pp,
            most_sequences=int(memory.max_sequences * split.attention_dp),
            cache_tokens=held * context,
            output_reserved=engine.output_reserved,
            tokens_per_step=deployment.tokens_per_step,
            queries=deployment.queries,
            first_s=queueing.first_s,
            ahead_steps=max(queueing.wait / deployment.tokens_per_step - HALF_A_STEP, 0.0),
            scale=float(queueing.scale),
            prefix_hit=prefix_hit,
        )
