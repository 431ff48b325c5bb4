"""What a recommendation for a workload answers with: options, how many of each, and at what price.

A figure of one replica has `replica` in its name; the others are of all replicas together.
"""

from __future__ import annotations

from planner import answer
from planner.plans.sizing import Binding
from planner.scenario import Scenario


class GpuCount(answer.Answer):
    """The number of GPUs needed, with its 80% interval; null where no number meets the limits."""

    p10: int | None
    p50: int | None
    p90: int | None


class RequestTimes(answer.Answer):
    """A time over requests, as simulated [s]."""

    mean: float
    p50: float
    p90: float
    p99: float


class Simulated(answer.Answer):
    """One replica's requests through the engine's own schedule, step by step."""

    requests: int
    ttft_s: RequestTimes
    tpot_s: RequestTimes
    e2e_s: RequestTimes
    requests_per_s_per_replica: float
    share_within_limits: float
    """Of requests [-]."""


class Prefill(answer.Answer):
    """Workers for prompts, beside the replicas, which decode."""

    workers: int
    tp: int
    pp: int
    ep: int
    attention_dp: int
    gpus_per_worker: int
    busy: float
    """Share of the time they work [-]."""


class Money(answer.Answer):
    """What it costs, estimated from the price on record or the user's own."""

    usd_per_gpu_hour: float
    price_kind: str
    price_date: str | None
    usd_per_month: float
    usd_per_million_output_tokens: float
    """Output tokens pay for the time that decoding takes."""
    usd_per_million_input_tokens: float
    """Input tokens pay for the time that prompts take."""
    usd_per_million_tokens: float
    """Per million output tokens, input tokens paid with them."""
    break_even_output_tokens_per_s: float | None = None
    """Output from which on it costs less than the API whose price was given."""


class Energy(answer.Answer):
    """What it draws, estimated from TDP and utilisation."""

    watts_per_gpu: float
    joules_per_output_token: float
    kwh_per_month: float
    kg_co2_per_month: float | None
    """Null without a grid factor."""


class SizedOption(answer.Answer):
    """A way to serve the workload, and how much of it is needed."""

    summary: str
    """Spelled out: 40 GPUs = 5 replicas × TP 8, 13 requests in flight each."""
    gpu: str
    status: str
    engine: str | None
    weights: str
    kv: str
    tp: int
    pp: int
    ep: int
    attention_dp: int
    drafts: int
    """Tokens guessed a step [-]."""
    prefill: Prefill | None
    """Null where replicas run prompts themselves."""
    replicas: int
    gpus_per_replica: int
    gpus: int
    """Of all replicas, and of workers for prompts."""
    gpus_needed: GpuCount
    probability: float
    """That the limits hold with so many GPUs, by the prediction's uncertainty [-]."""
    binds: Binding
    concurrency_per_replica: float
    """Requests in flight."""
    most_concurrency_per_replica: int
    """Within the limits."""
    batch_per_gpu: float
    """Sequences that decode at once, over the GPUs of a replica [-]."""
    ttft_s: answer.Interval
    tpot_s: answer.Interval
    e2e_s: answer.Interval
    requests_per_s: float
    output_tokens_per_s: float
    output_tokens_per_s_per_gpu: float
    tokens_per_s_per_user: float
    money: Money | None
    """Null without a price."""
    energy: Energy | None
    """Null without a TDP on record."""
    simulated: Simulated | None = None
    scenario: Scenario
    """The question that `plan` answers with the same figures."""
    notes: list[answer.NoteAnswer]


class Relaxation(answer.Answer):
    """A limit that cannot be met, and what it would have to be."""

    field: str
    given: float
    needed: float


class Nearest(answer.Answer):
    """The option that comes nearest to limits that none meets."""

    text: str
    option: SizedOption
    relax: list[Relaxation]


class RefusedOptions(answer.Answer):
    """Options of one accelerator that cannot be used, how many, and why."""

    gpu: str
    count: int
    reason: str


class Sized(answer.Answer):
    """The answer to how much of what serves a workload."""

    evaluated: int
    """Options whose every load was evaluated [-]."""
    meeting: int
    """Replicas that meet the limits, those that only decode with the workers for prompts that feed
    them best [-]."""
    cheapest: int | None
    """Position in `options`; null where none has a price."""
    fastest: int | None
    smallest: int | None
    options: list[SizedOption]
    """The Pareto front of cost, GPUs and time of a request, cheapest first."""
    nearest: Nearest | None
    """Null where an option meets the limits."""
    staged: bool
    """Whether there were so many options that splits other than TP were tried on the accelerators
    that did best with TP alone."""
    refused: list[RefusedOptions]
