"""Faults that only the plan shows: what does not fit, is emulated, capped or slow to start."""

from __future__ import annotations

from collections.abc import Iterator

from planner.answer import Plan
from planner.deployment import Deployment
from planner.errors import InvalidInput, named
from planner.handover.findings import Finding, finding
from planner.handover.reading import Deployed
from planner.handover.startup import start_s
from planner.scenario import Scenario
from planner.units import seconds

NEAR_GRAPHS = 0.9
"""Share of the largest captured batch from which a running batch is close to it [-]."""
REFUSALS = {"tp": "tp_does_not_divide", "max_model_len": "length_beyond_model"}
SPLITS = {"ep", "pp", "attention_dp", "decode_cp", "nodes"}


def line_of_field(deployed: Deployed, *fields: str) -> int:
    """Return the line that says one of these fields, else where the command line begins."""
    lines = {o.field: o.line for o in deployed.reading.origins if o.line}
    return next((lines[f] for f in fields if f in lines), deployed.reading.line)


def lint_refusal(deployed: Deployed, error: InvalidInput) -> Finding:
    """Return the finding of a deployment that cannot be: the engine would refuse it as well."""
    text = str(error)
    field = named(text.removeprefix("disaggregated."))
    code = REFUSALS.get(field) or ("split_refused" if field in SPLITS else "setting_refused")
    if field in {"engine", "gpu"}:
        code = "device_refused"
    message, _, accepted = text.partition("; accepted: ")
    line = line_of_field(deployed, field)
    return finding(code, line, message, f"accepted: {accepted}" if accepted else "change it")


def lint_planned(deployed: Deployed, deployment: Deployment, plan: Plan) -> Iterator[Finding]:
    """Yield the faults that the plan of a deployment shows."""
    scenario = deployed.reading.scenario
    yield from _noted(deployed, plan)
    yield from _cache(deployed, deployment, scenario, plan)
    yield from _prefixes(deployed, deployment, scenario)
    yield from _graphs(deployed, deployment, plan)
    yield from _probes(deployed, deployment)


NOTED = {
    "weights_do_not_fit": ("weights_do_not_fit", ("tp", "model"), "split over more GPUs"),
    "max_model_len_does_not_fit": (
        "length_does_not_fit",
        ("max_model_len", "memory_fraction"),
        "lower the longest context, or split over more GPUs",
    ),
    "emulated_format": ("format_emulated", ("weights", "kv", "model"), "choose another format"),
    "no_draft_layers": (
        "draft_layers_missing",
        ("speculation",),
        "name a draft model, or draft from the text (n-grams)",
    ),
}
"""Findings by the note of a plan that they repeat: code, fields whose line counts, fix."""


def _noted(deployed: Deployed, plan: Plan) -> Iterator[Finding]:
    for note in plan.notes:
        if note.code in NOTED:
            code, fields, fix = NOTED[note.code]
            yield finding(code, line_of_field(deployed, *fields), note.text, fix)


def _cache(
    deployed: Deployed, deployment: Deployment, scenario: Scenario, plan: Plan
) -> Iterator[Finding]:
    memory, allowed = deployment.memory, scenario.max_sequences
    whole_cache = deployed.workers[deployed.main].facts.length_of_all
    context = _longest(scenario, plan, whole_cache)
    fit = memory.max_batch(context) if context else 0
    whole = allowed * memory.attention_dp if allowed else 0
    if 0 < fit < whole:
        text = (
            f"{whole} sequences are allowed, the cache holds {fit} "
            f"of {context:,} tokens: the others wait or are put out again"
        )
        fix = f"allow {max(1, fit // memory.attention_dp)}"
        yield finding("cache_holds_fewer", line_of_field(deployed, "max_sequences"), text, fix)
    clients, most = scenario.concurrency, memory.max_sequences * memory.attention_dp
    if clients and clients > most:
        text = f"{clients} clients of a replica, the engine runs {most} at once: the others queue"
        line = line_of_field(deployed, "max_sequences")
        yield finding("sequences_capped", line, text, "allow more sequences, or add replicas")


def _longest(scenario: Scenario, plan: Plan, whole_cache: bool) -> int:
    """Return the context that sequences are to be held at: the load's, else the longest [token].

    0 where neither is said, as where the longest is that of the whole cache.
    """
    if scenario.isl is not None or scenario.context:
        return max(point.context for point in plan.points)
    return 0 if whole_cache else scenario.max_model_len or 0


def _prefixes(deployed: Deployed, deployment: Deployment, scenario: Scenario) -> Iterator[Finding]:
    default = deployed.workers[deployed.main].facts.caches_prefixes
    caching = default if scenario.prefix_caching is None else scenario.prefix_caching
    if not caching and scenario.prefix_hit > 0:
        text = (
            f"{scenario.prefix_hit:.0%} of the input is a prefix seen before, "
            f"and {deployment.engine.name} keeps none"
        )
        yield finding(
            "prefix_caching_off",
            line_of_field(deployed, "prefix_caching"),
            text,
            "turn prefix caching on",
        )


def _graphs(deployed: Deployed, deployment: Deployment, plan: Plan) -> Iterator[Finding]:
    cap = deployment.engine.graph_sequences
    if not cap or plan.serving is None:
        return
    running = plan.serving.running_batch / deployment.memory.attention_dp
    if cap > 1 and running >= NEAR_GRAPHS * cap:
        text = (
            f"{running:.0f} sequences run at once, graphs are captured up to {cap}: "
            "steps beyond pay every launch"
        )
        line = line_of_field(deployed, "graphs")
        yield finding("beyond_graphs", line, text, "capture larger batches, or add replicas")


def _probes(deployed: Deployed, deployment: Deployment) -> Iterator[Finding]:
    needed = start_s(deployment)
    for worker in deployed.workers:
        kinds = {probe.kind for probe in worker.probes}
        for probe in worker.probes:
            guarded = probe.kind == "liveness" and "startup" in kinds
            if not guarded and probe.allowed_s < needed:
                text = (
                    f"the {probe.kind} probe gives up after {seconds(probe.allowed_s)}, the server "
                    f"takes about {seconds(needed)} to start (1 GB/s of weights read, assumed)"
                )
                fix = f"let a startupProbe wait {round(2 * needed)} s"
                yield finding("probe_kills_start", probe.line, text, fix)
