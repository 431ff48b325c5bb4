"""Prefill and decode on replicas of their own: how many of each, and what a request sees."""

from __future__ import annotations

from dataclasses import dataclass

from planner.calibration import Speculation
from planner.lengths import Lengths
from planner.prefill import prompt_work
from planner.resolve import Deployment
from planner.serving import Queueing, step_s
from planner.timing import link_bandwidth

BUSY = 0.8
"""Share of the time a prefill replica works, at which it is sized by default [-]."""


@dataclass(frozen=True, slots=True)
class Disaggregated:
    """What one decode replica at a given batch does and needs."""

    tpot_s: float
    """A decode step: no prompt holds it up."""
    ttft_s: float
    """Waiting for and running the prompt, moving its cache, and the first step."""
    requests_per_s: float
    """Requests one decode replica completes [1/s]."""
    prefill_per_decode: float
    """Prefill replicas that feed one decode replica [-]."""
    transfer_s: float
    """Time the cache of a prompt takes between the two [s]."""
    output_tokens_per_s_per_gpu: float
    """Over the GPUs of both kinds [token/s]."""


def disaggregate(
    prefill: Deployment, decode: Deployment, batch: float, isl: float | Lengths,
    osl: float | Lengths, *, busy: float = BUSY, transfer_bytes_per_s: float | None = None,
    speculation: Speculation | None = None,
) -> Disaggregated:  # fmt: skip
    """Return what a decode replica at `batch` sequences does, and the prefill it needs.

    Decode completes batch/(OSL·TPOT) requests a second; a prefill replica that is `busy` a share of
    the time takes busy/t_prompt of them, and a prompt waits t·busy/(2·(1 − busy)) on average (an
    M/D/1 queue). The cache moves at `transfer_bytes_per_s` [byte/s], by default the decode
    machine's own link. Raises ValueError, MissingFigure (without a link on record).
    """
    if not 0 < busy < 1:
        raise ValueError(f"busy: {busy} is not accepted; expected a share between 0 and 1")
    inputs, outputs = (x if isinstance(x, Lengths) else Lengths.fixed(x) for x in (isl, osl))
    ranks = prefill.sharding.attention_dp
    work = prompt_work(prefill.prompt, inputs.mean, ranks, 0.0, inputs.of_a_step)
    prompt_s = float(prefill.prompt_machine.time(work).total_s)
    context = inputs.mean + outputs.of_a_step / 2
    tpot_s = float(step_s(decode, batch, context, speculation))
    requests = batch / (outputs.mean * tpot_s)
    ratio = requests * prompt_s / ranks / busy
    cache = decode.memory.kv_bytes_per_token * inputs.mean + decode.memory.state_bytes_per_sequence
    transfer_s = cache / (transfer_bytes_per_s or link_bandwidth(decode.accelerator))
    waiting_s = prompt_s * busy / (2 * (1 - busy))
    gpus = decode.sharding.gpus + ratio * prefill.sharding.gpus
    return Disaggregated(
        tpot_s=tpot_s,
        ttft_s=Queueing.of(decode.figures, decode.subject).first_s
        + waiting_s + prompt_s + transfer_s + tpot_s,
        requests_per_s=requests,
        prefill_per_decode=ratio,
        transfer_s=transfer_s,
        output_tokens_per_s_per_gpu=requests * outputs.mean / gpus,
    )  # fmt: skip
