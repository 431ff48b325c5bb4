"""Plan: the answer, as the library, the command line and REST all give it. SI units throughout."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from planner.scenario import Scenario

Bound = Literal["memory", "compute", "launch", "communication"]


class Answer(BaseModel):
    """Base of everything answered: closed and immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Interval(Answer):
    """A quantity with its 80% interval."""

    p10: float
    p50: float
    p90: float

    def times(self, factor: float) -> Interval:
        """Return the interval of so many times the quantity."""
        return Interval(p10=self.p10 * factor, p50=self.p50 * factor, p90=self.p90 * factor)


class Limits(Answer):
    """Limits of decode at the scenario's (largest) context."""

    ridge_point: float
    saturation_intensity: float | None
    crossover_batch: int | None
    crossover_reason: str
    weights_equal_kv_batch: int | None
    knee_batch: int


class Meets(Answer):
    """How one limit of the scenario is met: by its batch, or by its requests under load."""

    limit: Literal["tpot_ms", "ttft_ms"]
    """Field of the scenario that sets it."""
    limit_ms: float
    value_ms: float
    """Predicted time at the percentile."""
    percentile: float
    """Of the prediction's uncertainty, not of requests."""
    probability: float
    """Of the time being within the limit, given that uncertainty."""
    ok: bool
    """Whether `value_ms` is within the limit."""
    batch: int | None = None
    """Batch in question: the scenario's largest, or 1 where it names none; null under load."""
    max_batch: int | None = None
    """Largest batch that fits and is within the limit, 0 where none is; null under load."""
    concurrency: int | None = None
    """Clients in question; null for a batch."""
    max_concurrency: int | None = None
    """Most clients within the limit, 16,384 at most, 0 where none is; null for a batch."""


class Verdict(Answer):
    """The answer in short."""

    fits: bool
    """Whether memory holds the scenario's largest batch; without a batch, one sequence."""
    meets: list[Meets]
    """One for each limit on time; empty where the scenario has none."""


class SettingAnswer(Answer):
    """A setting of the engine's memory as it was used."""

    name: str
    value: bool | int | float | str | None
    source: str
    """`given`, or whose default it is."""


class MemoryAnswer(Answer):
    """What fits on the accelerators of the scenario."""

    fits: bool
    weights_bytes_per_gpu: float
    activation_bytes_per_gpu: float
    """The peak of a step as the engine profiles it."""
    buffer_bytes_per_gpu: float
    """Context, libraries and the buffers of collectives."""
    graph_bytes_per_gpu: float
    """CUDA graphs."""
    adapter_bytes_per_gpu: float
    kv_bytes_per_token: float
    """What a sequence grows by per token over all layers, windows full, before sharding."""
    kv_written_bytes_per_token: float
    """What a token takes of the caches of all layers, windows included, before sharding."""
    engine_kv_bytes_per_token: float | None
    """Pool over `kv_pool_tokens`, before sharding: the engine's own count; null where nothing
    grows."""
    window_bytes_per_sequence: float
    """What a sequence keeps in full windows whatever its length, before sharding."""
    state_bytes_per_sequence: float
    kv_pool_bytes_per_gpu: float
    kv_pool_tokens: int | None
    """As the engine prints them when it starts."""
    max_batch: int
    """Sequences of the largest context asked about, by the engine's page rule and its cap."""
    binds: Literal["memory", "engine_cap"]
    """What `max_batch` is bound by: memory, or the engine's max_sequences."""
    max_context: int
    crossover_fits: bool | None
    settings: list[SettingAnswer]
    """Settings of the engine's memory as used, and where each comes from."""


class Point(Answer):
    """One batch at one context: FLOPs and bytes of a step, times of a token.

    A step yields a token of every sequence, `scenario.speculation.accepted` where drafts are
    verified.
    """

    batch: int
    context: int
    flops: float
    bytes: float
    arithmetic_intensity: float
    bound: Bound
    roofline_tpot_s: float
    tpot_s: Interval
    tokens_per_s: float
    tokens_per_s_interval: Interval
    """Of tokens_per_s; the rates below vary in proportion."""
    tokens_per_s_per_gpu: float
    tokens_per_s_per_user: float
    mbu: float
    mfu: float


class DisaggregationAnswer(Answer):
    """Prefill workers, and what it takes to feed decode workers (replicas) from them."""

    prefill_per_decode: float
    gpus_per_prefill: int
    gpus_per_decode: int
    gpus: float
    """Over all workers of both kinds."""
    transfer_s: float
    """Time a prompt's cache takes from one to the other."""
    output_tokens_per_s_per_gpu: float
    """Over the GPUs of both kinds."""


class Serving(Answer):
    """The steady state of an engine under closed-loop load."""

    concurrency: int
    isl: int | float
    """Mean input length [token]."""
    osl: int | float
    """Mean output length [token]."""
    running_batch: float
    queued: float
    ttft_s: Interval
    tpot_s: Interval
    output_tokens_per_s: float
    output_tokens_per_s_interval: Interval
    requests_per_s: float
    requests_per_s_interval: Interval
    disaggregated: DisaggregationAnswer | None = None
    """What the figures above rest on where prefill has workers of its own."""


class KernelAnswer(Answer):
    """One kernel of the step at the last point, on the busiest rank."""

    name: str
    count: int
    flops: float
    bytes: float
    arithmetic_intensity: float | None
    time_s: float
    bound: Bound
    share: float


class Lever(Answer):
    """One change that was not made yet, and what it does at the last point."""

    code: str
    text: str
    gain: float
    """TPOT before/after [-]; above 1 is faster for each user."""
    gain_per_gpu: float | None = None
    """Tokens/s per GPU after/before [-]; null in answers stored before it was told."""
    quality_risk: str = ""
    """Whether answers may become worse."""
    cost: str = ""
    """What the change takes."""


class NoteAnswer(Answer):
    """Something the reader must know: an assumption, a fallback, an extrapolation."""

    code: str
    text: str


class Editions(Answer):
    """Which data the answer was computed with."""

    models: str
    hardware: str
    calibration: str
    engines: str = ""
    """Empty in answers that were stored before engine data had an edition."""


class Plan(Answer):
    """The answer to a scenario."""

    scenario: Scenario
    verdict: Verdict
    limits: Limits
    memory: MemoryAnswer
    points: list[Point]
    serving: Serving | None
    kernels: list[KernelAnswer]
    advice: list[Lever] | None = None
    """Levers that make the last point faster, best first; null unless the caller wants them."""
    notes: list[NoteAnswer]
    editions: Editions

    def plot(self, picture: str = "roofline", theme: str = "light") -> Any:
        """Return a picture that a notebook shows: roofline, intensity, throughput, time or memory.

        It has `save(path)` and `to_dict()`. Raises ValueError for another name or theme.
        """
        return _notebook().drawn(self, picture, theme)

    def _repr_html_(self) -> str:
        """A notebook's rendering: verdict, points and limits."""
        text: str = _notebook().as_html(self)
        return text


def _notebook() -> Any:
    """Return what presents answers, by name and when asked: answers know nothing of pictures."""
    return import_module("planner.pictures.notebook")
