"""The few options that are recommended, evaluated as `plan` does, and spelled out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from planner import answer
from planner.deployment import Deployment
from planner.hw import get_accelerator
from planner.models.spec import Note
from planner.plans.candidate import Candidate, feeding_workers, sized
from planner.plans.columns import columns
from planner.plans.curves import Curve, whole_loads
from planner.plans.money import (
    IDLE_SHARE,
    MEMORY_BOUND_SHARE,
    break_even_output_tokens_per_s,
    power_w,
    token_prices,
)
from planner.plans.question import Question
from planner.plans.serving import answer_serving, clients_of, room_of, serving_notes, under_load
from planner.plans.sized import Energy, GpuCount, Money, Prefill, SizedOption
from planner.plans.sizing import MOST_REPLICAS, Sizing, binding
from planner.plans.texts import note_answers
from planner.plans.uncertainty import ENDS
from planner.roofline import Array
from planner.scenario import EngineSettings, Scenario
from planner.serving.steady import Steady
from planner.workload.fields import Workload

ABOUT = 4
"""Whole loads on either side of the largest that are evaluated exactly [-]."""
TRIES = 12
"""Replicas added at most where the exact figures miss a limit that the search met [-]."""


def exact(question: Question, candidate: Candidate) -> Candidate:
    """Return a candidate sized on exact figures of every load."""
    scenario = scenario_of(question, candidate, 1)
    return sized(
        question,
        candidate.deployment,
        candidate.engine,
        candidate.feeding,
        _with_whole_loads(
            question, candidate, scenario, exact_curve(scenario, candidate.deployment)
        ),
        candidate.tariff,
        candidate.transfer,
    )


def _with_whole_loads(
    question: Question, candidate: Candidate, scenario: Scenario, curve: Curve
) -> Curve:
    """Return a curve with the whole loads about its largest within the limits among its own, so
    that this one is exact."""
    sizing = Sizing(curve, candidate.sizing.spread, candidate.sizing.wanted)
    clients = sizing.most(question.z).clients
    about = np.arange(max(1.0, np.floor(clients) - ABOUT), np.floor(clients) + ABOUT + 1)
    loads = np.union1d(curve.clients, about[about <= curve.clients[-1]])
    return exact_curve(scenario, candidate.deployment, loads)


def exact_curve(scenario: Scenario, deployment: Deployment, loads: Array | None = None) -> Curve:
    """Return what one replica of a scenario does at every load, as `plan` has it."""
    room = room_of(scenario, deployment)
    loads = whole_loads(int(room)) if loads is None else loads
    load = under_load(scenario, deployment, loads)
    state = load.state
    share = state.prompt_share if isinstance(state, Steady) else np.zeros_like(loads)
    return Curve(
        clients=loads,
        running=state.running,
        ttft_s=state.ttft_s,
        tpot_s=state.tpot_s,
        requests_per_s=state.requests_per_s,
        prompt_share=share,
        output_steps=max(load.outputs - 1.0, 0.0),
        room=int(room),
    )


def scenario_of(question: Question, candidate: Candidate, replicas: int) -> Scenario:
    """Return the scenario of so many replicas under the whole demand, or at their largest load."""
    request, deployment = question.request, candidate.deployment
    split, drafts = deployment.sharding, deployment.speculation
    load = {name: getattr(request, name) for name in Workload.model_fields}
    if question.wanted.demand is None:
        load["concurrency"] = max(1, math.floor(candidate.load.clients))
    fields: dict[str, Any] = {
        **{name: getattr(request, name) for name in EngineSettings.model_fields},
        **load,
        "model": request.model,
        "gpu": _named(question, deployment),
        "tp": split.tp,
        "pp": split.pp,
        "ep": split.ep,
        "attention_dp": split.attention_dp,
        "replicas": max(replicas, 1),
        "weights": deployment.weights,
        "kv": deployment.formats.kv.id,
        "engine": candidate.engine,
        "engine_version": request.engine_version,
    }
    if drafts:
        fields["speculation"] = {"drafts": drafts.drafts, "accepted": drafts.accepted}
    if candidate.feeding:
        apart = candidate.feeding.deployment.sharding
        fields["disaggregated"] = {
            "tp": apart.tp,
            "pp": apart.pp,
            "ep": apart.ep,
            "attention_dp": apart.attention_dp,
        }
    return Scenario.model_validate(fields)


def _named(question: Question, deployment: Deployment) -> Any:
    """Return the accelerator as the request names it."""
    accelerator = deployment.accelerator
    for given in question.request.gpu or ():
        if get_accelerator(given).id == accelerator.id:
            return given
    return accelerator.id


def spelled_out(question: Question, candidate: Candidate) -> SizedOption:
    """Return the answer of an exact candidate; at one replica where none meets the limits."""
    deployment, replicas = candidate.deployment, max(candidate.replicas, 1)
    scenario = scenario_of(question, candidate, replicas)
    serving = _served(scenario, deployment)
    if candidate.replicas and question.wanted.demand:
        for _ in range(TRIES):
            if not _missed(question, candidate.sizing, serving) or replicas >= MOST_REPLICAS:
                break
            replicas += 1
            scenario = scenario_of(question, candidate, replicas)
            serving = _served(scenario, deployment)
    candidate = replace(candidate, replicas=replicas)
    rate = serving.requests_per_s
    workers = feeding_workers(candidate.feeding, rate)
    gpus = replicas * deployment.sharding.gpus + workers * _worker_gpus(candidate)
    steps = max(float(serving.osl) - 1.0, 0.0)
    ends = zip(_ends(serving.ttft_s), _ends(serving.tpot_s), strict=True)
    e2e = answer.Interval(**{p: t + steps * o for p, (t, o) in zip(PS, ends, strict=True)})
    figures = _figures(deployment, scenario, serving)
    split = deployment.sharding
    return SizedOption(
        summary=summary(candidate, gpus, workers, serving),
        gpu=deployment.accelerator.id,
        status=deployment.accelerator.status,
        engine=candidate.engine,
        weights=deployment.weights,
        kv=deployment.formats.kv.id,
        tp=split.tp,
        pp=split.pp,
        ep=split.ep,
        attention_dp=split.attention_dp,
        drafts=deployment.speculation.drafts if deployment.speculation else 0,
        prefill=_prefill(candidate, workers),
        replicas=replicas,
        gpus_per_replica=split.gpus,
        gpus=gpus,
        gpus_needed=_needed(candidate, gpus, question),
        probability=candidate.sizing.holds(replicas),
        binds=_binds(candidate, deployment, scenario),
        concurrency_per_replica=figures["clients"],
        most_concurrency_per_replica=math.floor(candidate.load.clients + 1e-9),
        batch_per_gpu=serving.running_batch / split.gpus,
        ttft_s=serving.ttft_s,
        tpot_s=serving.tpot_s,
        e2e_s=e2e,
        requests_per_s=rate,
        output_tokens_per_s=serving.output_tokens_per_s,
        output_tokens_per_s_per_gpu=serving.output_tokens_per_s / gpus,
        tokens_per_s_per_user=1.0 / serving.tpot_s.p50,
        money=_money(question, candidate, gpus, serving, figures),
        energy=_energy(question, candidate, gpus, serving, figures),
        scenario=scenario,
        notes=note_answers(_notes(question, candidate, scenario)),
    )


PS = ("p10", "p50", "p90")


def _ends(interval: answer.Interval) -> tuple[float, float, float]:
    return interval.p10, interval.p50, interval.p90


def _served(scenario: Scenario, deployment: Deployment) -> answer.Serving:
    serving = answer_serving(scenario, deployment)
    if serving is None:
        raise AssertionError("a workload has lengths")
    return serving


def _missed(question: Question, sizing: Sizing, serving: answer.Serving) -> bool:
    """Return whether a limit is missed at the actual load, at the place numbers are taken at."""
    start, step = (float(f) for f in sizing.spread.at(question.z))
    steps = max(float(serving.osl) - 1.0, 0.0)
    ttft, tpot = serving.ttft_s.p50 * start, serving.tpot_s.p50 * step
    times = {"ttft": ttft, "tpot": tpot, "e2e": ttft + steps * tpot}
    return any(times[n] > s * (1 + 1e-9) for n, s in sizing.wanted.limits_s.items())


def _worker_gpus(candidate: Candidate) -> int:
    return candidate.feeding.deployment.sharding.gpus if candidate.feeding else 0


def _prefill(candidate: Candidate, workers: int) -> Prefill | None:
    if candidate.feeding is None:
        return None
    split = candidate.feeding.deployment.sharding
    return Prefill(
        workers=workers,
        tp=split.tp,
        pp=split.pp,
        ep=split.ep,
        attention_dp=split.attention_dp,
        gpus_per_worker=split.gpus,
        busy=candidate.feeding.busy,
    )


def _needed(candidate: Candidate, gpus: int, question: Question) -> GpuCount:
    """Return the GPUs needed at p10, p50 and p90 of the uncertainty."""
    if question.wanted.demand is None:
        return GpuCount(p10=gpus, p50=gpus, p90=gpus)
    counts: dict[str, int | None] = {}
    for name, z in zip(PS, ENDS, strict=True):
        replicas = candidate.sizing.replicas(z)
        if replicas is None:
            counts[name] = None
            continue
        rate = candidate.rate * candidate.replicas
        workers = feeding_workers(candidate.feeding, rate) * _worker_gpus(candidate)
        counts[name] = replicas * candidate.deployment.sharding.gpus + workers
    if question.z == 0 and counts["p50"] is not None:
        counts["p50"] = gpus
        counts["p10"] = min(counts["p10"] or gpus, gpus)
        counts["p90"] = counts["p90"] and max(counts["p90"], gpus)
    return GpuCount(**counts)


def _binds(candidate: Candidate, deployment: Deployment, scenario: Scenario) -> Any:
    context = float(scenario.isl if isinstance(scenario.isl, int) else 0)
    capped = deployment.memory.capped(context) if context else False
    room = candidate.sizing.curve.room
    capped = capped or room == deployment.memory.max_sequences * deployment.memory.attention_dp
    return binding(candidate.load, candidate.sizing.curve, capped, candidate.transfer)


def _figures(
    deployment: Deployment, scenario: Scenario, serving: answer.Serving
) -> Mapping[str, float]:
    clients = clients_of(scenario, deployment)
    load = under_load(scenario, deployment, clients)
    running = np.array([max(serving.running_batch, 1.0)])
    context = np.array([float(serving.isl) + float(serving.osl) / 2])
    row = columns(deployment, 1, deployment.passes(running, context), running)
    share = float(load.state.prompt_share) if isinstance(load.state, Steady) else 0.0
    return {"clients": clients, "prompt_share": share, "mfu": float(row["mfu"][0])}


def _shares(candidate: Candidate, gpus: int, share: float) -> float:
    """Return the share of GPU time that prompts take [-]."""
    if candidate.feeding is None:
        return min(share, 0.999)
    return 1.0 - candidate.replicas * candidate.deployment.sharding.gpus / gpus


def _money(
    question: Question,
    candidate: Candidate,
    gpus: int,
    serving: answer.Serving,
    figures: Mapping[str, float],
) -> Money | None:
    tariff, request = candidate.tariff, question.request
    if tariff is None:
        return None
    hourly = tariff.usd_per_gpu_hour * gpus
    inputs = serving.requests_per_s * float(serving.isl)
    share = _shares(candidate, gpus, figures["prompt_share"])
    prices = token_prices(hourly, share, inputs, serving.output_tokens_per_s)
    even = None
    if request.api_usd_per_million_output is not None:
        even = break_even_output_tokens_per_s(
            hourly * request.duty_cycle,
            request.api_usd_per_million_output,
            request.api_usd_per_million_input,
            inputs / serving.output_tokens_per_s,
        )
    return Money(
        usd_per_gpu_hour=tariff.usd_per_gpu_hour,
        price_kind=tariff.kind,
        price_date=tariff.date,
        usd_per_month=question.prices.usd_per_month(hourly),
        usd_per_million_output_tokens=prices.output,
        usd_per_million_input_tokens=prices.input,
        usd_per_million_tokens=hourly / 3600.0 / serving.output_tokens_per_s * 1e6,
        break_even_output_tokens_per_s=even,
    )


def _energy(
    question: Question,
    candidate: Candidate,
    gpus: int,
    serving: answer.Serving,
    figures: Mapping[str, float],
) -> Energy | None:
    accelerator, request = candidate.deployment.accelerator, question.request
    share = _shares(candidate, gpus, figures["prompt_share"])
    watts = power_w(accelerator, share, figures["mfu"], min(figures["clients"], 1.0))
    if watts is None:
        return None
    kwh = watts * gpus * question.prices.usd_per_month(1.0) / 1e3
    grid = request.grid_kg_co2_per_kwh
    return Energy(
        watts_per_gpu=watts,
        joules_per_output_token=watts * gpus / serving.output_tokens_per_s,
        kwh_per_month=kwh,
        kg_co2_per_month=None if grid is None else kwh * grid,
    )


def _notes(question: Question, candidate: Candidate, scenario: Scenario) -> list[Note]:
    deployment, tariff = candidate.deployment, candidate.tariff
    notes = [n for n in deployment.notes if n not in deployment.spec.notes]
    notes += serving_notes(scenario, deployment)
    if tariff is None:
        notes.append(Note("no_price", question.prices.missing(deployment.accelerator)))
    elif tariff.warning:
        notes.append(Note("old_price", tariff.warning))
    if deployment.accelerator.tdp_w is not None:
        notes.append(POWER)
    return notes


POWER = Note(
    "power_estimated",
    f"power is estimated from TDP and utilisation, between {IDLE_SHARE:.0%} idle and "
    f"{MEMORY_BOUND_SHARE:.0%} to 100% at work (assumed): no measured power is on record",
)


def summary(candidate: Candidate, gpus: int, workers: int, serving: answer.Serving) -> str:
    """Return an option in words: 40 GPUs = 5 replicas × TP 8, 13 requests in flight each."""
    split = candidate.deployment.sharding
    text = f"{_many(gpus, 'GPU')} = {_many(candidate.replicas, 'replica')} × {_split_text(split)}"
    if candidate.feeding:
        apart = _split_text(candidate.feeding.deployment.sharding)
        text += f" + {_many(workers, 'prefill worker')} × {apart}"
    return f"{text}, {_many(serving.concurrency, 'request')} in flight each"


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _split_text(split: Any) -> str:
    degrees = (("PP", split.pp), ("attention DP", split.attention_dp), ("EP", split.ep))
    return " × ".join([f"TP {split.tp}", *(f"{name} {n}" for name, n in degrees if n > 1)])
