"""Faults of deployments by their thresholds: just below and just above, with the figures they name.

Codes and texts are those of docs/handover.md; what an engine does is its documentation's.
"""

from __future__ import annotations

from typing import Any

import pytest

from planner.deployment import deployment_of
from planner.errors import InvalidInput
from planner.handover.checking import CheckQuestion, check
from planner.handover.facts import read_facts, started_engines
from planner.handover.findings import CODES, Finding, finding
from planner.handover.lints_given import gpus_needed
from planner.handover.lints_planned import line_of_field, lint_refusal
from planner.handover.reading import Deployed
from planner.handover.sources import read_files
from planner.handover.split import Split
from planner.handover.startup import start_s
from planner.handover.workers import Worker
from planner.plans.planning import plan

QWEN, DEEPSEEK = "Qwen/Qwen2.5-7B-Instruct", "deepseek-ai/DeepSeek-V3"


def findings_of(text: str, **question: Any) -> dict[str, Finding]:
    (one,) = check({"f": text}, CheckQuestion(**{"gpu": "h100-sxm5", **question})).checks
    return {each.code: each for each in one.findings}


def deployed(text: str, **options: Any) -> Deployed:
    (one,) = read_files({"f": text}, {"gpu": "h100-sxm5", **options})
    return one


def pod(args: str, more: str = "", image: str = "vllm/vllm-openai:v0.33.0") -> str:
    return (
        "kind: Deployment\nspec:\n  template:\n    spec:\n      containers:\n"
        f"      - image: {image}\n        args: [{args}]\n{more}"
    )


@pytest.mark.parametrize(
    ("tp", "pp", "attention_dp", "replicas", "local", "pods", "gpus"),
    [
        (4, 1, 1, 1, None, 1, 4),
        (4, 2, 1, 1, None, 2, 4),
        (1, 1, 16, 1, None, 2, 8),
        (1, 1, 16, 1, 8, 2, 8),
        (2, 1, 16, 1, 4, 2, 8),  # as many as run here, whatever the pods
        (2, 1, 1, 3, None, 1, 6),
        (1, 1, 1, 1, None, 4, 1),
    ],
)
def test_gpus_that_a_pod_needs(
    tp: int, pp: int, attention_dp: int, replicas: int, local: int | None, pods: int, gpus: int
) -> None:
    """All ranks of a command's replicas over its pods, or those of the ranks that run here."""
    worker = Worker("vllm", deployed(f"vllm serve {QWEN}").workers[0].parsed, pods=pods)
    split = Split(tp=tp, pp=pp, attention_dp=attention_dp, replicas=replicas, local=local)
    assert gpus_needed(worker, split) == gpus


@pytest.mark.parametrize(
    ("requested", "code", "fix"),
    [
        (1, "gpus_missing", "request 2 GPUs"),
        (2, None, ""),
        (4, "gpus_idle", "request 2 GPUs, or split over 4"),
    ],
)
def test_gpus_requested_and_used(requested: int, code: str | None, fix: str) -> None:
    more = f"        resources: {{limits: {{nvidia.com/gpu: {requested}}}}}\n"
    findings = findings_of(pod(f"{QWEN}, -tp, '2'", more))
    both = {"gpus_missing", "gpus_idle"} & set(findings)
    assert both == ({code} if code else set())
    if code:
        assert findings[code].line == 8
        assert findings[code].fix == fix
        assert f"{requested} GPUs are requested, the split of the server takes 2 a pod" in (
            findings[code].message
        )


@pytest.mark.parametrize("engine", started_engines())
def test_conflicts_are_of_arguments_the_engine_has(engine: str) -> None:
    """A row of the table that names no argument would never be found."""
    from planner.handover.arguments import parser_of, parser_versions

    known = {
        name for version in parser_versions(engine) for name in parser_of(engine, version).arguments
    }
    table = read_facts("lints.json")
    for code, first, _, second, _, text, fix in table["conflicts"][engine]:
        assert {first, second} <= known
        assert code in CODES
        assert text
        assert fix
    for argument, *_ in table["deprecated"].get(engine, ()):
        assert argument in known
    for _, argument, _ in table["moved"].get(engine, ()):
        assert argument in known


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        (
            f"vllm serve {QWEN} --enforce-eager --max-cudagraph-capture-size 64",
            "flags_conflict",
            "--enforce-eager captures no graphs",
        ),
        (f"vllm serve {QWEN} --max-loras 4", "flags_conflict", "holds no adapters"),
        (f"vllm serve {QWEN} --max-loras 4 --enable-lora", None, ""),
        (
            f"sglang serve --model-path {QWEN} --disable-radix-cache --enable-hierarchical-cache",
            "flags_refused",
            "extends the radix cache",
        ),
        (f"sglang serve --model-path {QWEN} --hicache-size 8", "flags_conflict", "keeps nothing"),
        (
            f"llama-server -hf {QWEN}-GGUF:Q8_0 -ctk q8_0 -ctv q8_0 -fa off",
            "flags_conflict",
            "needs flash attention",
        ),
        (f"llama-server -hf {QWEN}-GGUF:Q8_0 -ctk f16 -ctv f16 -fa off", None, ""),
        (f"vllm serve {QWEN} -tp 2 -tp 4", "argument_repeated", "-tp 2 is replaced by -tp 4"),
        (f"vllm serve {QWEN} -tp 2 -tp 2", None, ""),
        (f"vllm serve {QWEN} -tp 2 --enable-expert-parallel", "experts_missing", "no experts"),
        (f"vllm serve {DEEPSEEK} -tp 16 --enable-expert-parallel", None, ""),
    ],
)
def test_arguments_that_fight(line: str, code: str | None, words: str) -> None:
    findings = findings_of(line, gpu="h200-sxm")
    fights = {"flags_conflict", "flags_refused", "argument_repeated", "experts_missing"}
    assert fights & set(findings) == ({code} if code else set())
    if code:
        assert words in findings[code].message


@pytest.mark.parametrize(
    ("version", "deprecated"), [("0.5.19", False), ("0.5.20", True), ("0.5.23", True)]
)
def test_arguments_are_deprecated_from_a_release_on(version: str, deprecated: bool) -> None:
    text = pod(
        f"--model-path, {DEEPSEEK}, --tp-size, '8', --dp-size, '8', --enable-dp-attention",
        "        command: [python3, -m, sglang.launch_server]\n",
        f"lmsysorg/sglang:v{version}",
    )
    assert ("flag_deprecated" in findings_of(text, gpu="h200-sxm")) is deprecated


@pytest.mark.parametrize(
    ("image", "codes"),
    [
        ("vllm/vllm-openai:v0.33.0", set()),
        ("vllm/vllm-openai:latest", {"image_unpinned", "default_moved"}),
        ("vllm/vllm-openai@sha256:00ff", {"default_moved"}),  # pinned, to which release is not said
    ],
)
def test_defaults_move_where_no_version_is_pinned(image: str, codes: set[str]) -> None:
    assert {"image_unpinned", "default_moved"} & set(findings_of(pod(QWEN, image=image))) == codes


def test_a_default_that_is_written_does_not_move() -> None:
    line = f"vllm serve {QWEN} --gpu-memory-utilization .9 --max-num-batched-tokens 8192"
    assert "default_moved" not in findings_of(line)
    assert "--gpu-memory-utilization is 0.9 to 0.19" in (
        findings_of(line.replace("--gpu-memory-utilization .9", ""))["default_moved"].message
    )


@pytest.mark.parametrize(
    ("volume", "tp", "small"), [("Memory", 2, False), ("''", 2, True), ("''", 1, False)]
)
def test_processes_of_a_replica_share_memory(volume: str, tp: int, small: bool) -> None:
    more = f"      volumes: [{{name: shm, emptyDir: {{medium: {volume}}}}}]\n"
    assert ("shared_memory_small" in findings_of(pod(f"{QWEN}, -tp, '{tp}'", more))) is small


def test_a_probe_that_ends_before_the_server_answers() -> None:
    """15.2 GB at 1 GB/s and two minutes are 135 s; a startup probe holds the other one back."""
    needed = start_s(deployment_of(deployed(f"vllm serve {QWEN}").reading.scenario))
    assert needed == pytest.approx(135, abs=1)
    probe = "        {kind}Probe: {{periodSeconds: 1, failureThreshold: {seconds}}}\n"
    short, long = (
        probe.format(kind="liveness", seconds=seconds)
        for seconds in (int(needed) - 1, int(needed) + 2)
    )
    assert "probe_kills_start" in findings_of(pod(QWEN, short))
    assert "probe_kills_start" not in findings_of(pod(QWEN, long))
    guard = probe.format(kind="startup", seconds=600)
    assert "probe_kills_start" not in findings_of(pod(QWEN, short + guard))
    late = findings_of(pod(QWEN, probe.format(kind="startup", seconds=60)))["probe_kills_start"]
    assert "the startup probe gives up after 60 s" in late.message
    assert late.fix == f"let a startupProbe wait {round(2 * needed)} s"


def test_more_sequences_are_allowed_than_the_cache_holds() -> None:
    """At the longest context, or at the load's where one is asked about."""
    line = f"vllm serve {QWEN} --max-num-seqs 256 --max-model-len 32768"
    scenario = deployed(line).reading.scenario
    most = deployment_of(scenario).memory.max_batch(32768)
    one = findings_of(line)["cache_holds_fewer"]
    assert f"256 sequences are allowed, the cache holds {most} of 32,768 tokens" in one.message
    assert one.fix == f"allow {most}"
    assert "cache_holds_fewer" not in findings_of(line.replace("256", str(most)))
    assert "cache_holds_fewer" not in findings_of(line, isl=500, osl=100, concurrency=8)


@pytest.mark.parametrize(("clients", "capped"), [(8, False), (9, True)])
def test_clients_beyond_the_engine_s_cap(clients: int, capped: bool) -> None:
    line = f"vllm serve {QWEN} \\\n --max-num-seqs 8"
    findings = findings_of(line, isl=500, osl=100, concurrency=clients)
    assert ("sequences_capped" in findings) is capped
    if capped:
        assert findings["sequences_capped"].line == 2
        assert "9 clients of a replica, the engine runs 8 at once" in (
            findings["sequences_capped"].message
        )


@pytest.mark.parametrize(
    ("hit", "switch", "missing"),
    [
        (0.5, "--no-enable-prefix-caching", True),
        (0.5, "--enable-prefix-caching", False),
        (0.5, "", False),  # vLLM keeps prefixes unless told otherwise
        (0.0, "--no-enable-prefix-caching", False),
    ],
)
def test_prefixes_that_are_not_kept(hit: float, switch: str, missing: bool) -> None:
    line = f"vllm serve {QWEN} {switch}"
    findings = findings_of(line, isl=500, osl=100, concurrency=8, prefix_hit=hit)
    assert ("prefix_caching_off" in findings) is missing
    if missing:
        assert "50% of the input is a prefix" in findings["prefix_caching_off"].message
    lmdeploy = f"lmdeploy serve api_server {QWEN}"
    assert "prefix_caching_off" in findings_of(
        lmdeploy, isl=500, osl=100, concurrency=8, prefix_hit=0.5
    )


def test_batches_beyond_the_captured_graphs() -> None:
    """32 clients of long outputs run almost all at once: beyond nine tenths of 32, below of 64."""
    load = {"isl": 100, "osl": 2000, "concurrency": 32}
    line = f"vllm serve {QWEN} --max-cudagraph-capture-size "
    scenario = deployed(f"{line}32", **load).reading.scenario
    serving = plan(scenario).serving
    assert serving is not None
    assert 0.9 * 32 <= serving.running_batch < 0.9 * 64
    assert "beyond_graphs" in findings_of(f"{line}32", **load)
    assert "beyond_graphs" not in findings_of(f"{line}64", **load)


@pytest.mark.parametrize(
    ("message", "code", "fix"),
    [
        ("tp: 3 does not divide 28 heads; accepted: 1, 2", "tp_does_not_divide", "accepted: 1, 2"),
        ("max_model_len: 9; accepted: 8", "length_beyond_model", "accepted: 8"),
        ("ep: 3; accepted: 1", "split_refused", "accepted: 1"),
        ("nodes: 3; accepted: 1", "split_refused", "accepted: 1"),
        ("engine: x; accepted: y", "device_refused", "accepted: y"),
        ("gpu: x", "device_refused", "change it"),
        ("kv: x; accepted: fp8", "setting_refused", "accepted: fp8"),
        ("disaggregated.tp: 3; accepted: 1", "tp_does_not_divide", "accepted: 1"),
        ("something went wrong", "setting_refused", "change it"),
    ],
)
def test_refusals_by_their_field(message: str, code: str, fix: str) -> None:
    one = deployed(f"vllm serve {QWEN} \\\n -tp 2 \\\n --kv-cache-dtype fp8")
    refusal = lint_refusal(one, InvalidInput(message))
    assert (refusal.code, refusal.fix) == (code, fix)
    assert refusal.severity == CODES[code].severity
    lines = {"tp": 2, "kv": 3}
    assert refusal.line == lines.get(message.partition(":")[0].removeprefix("disaggregated."), 1)


def test_the_line_of_the_first_field_that_has_one() -> None:
    one = deployed(f"vllm serve {QWEN} \\\n -tp 2 \\\n --kv-cache-dtype fp8")
    assert line_of_field(one, "pp", "kv", "tp") == 3
    assert line_of_field(one, "pp") == 1
    assert line_of_field(one, "gpu") == 1  # an option of the question has no line


def test_a_finding_is_short_and_on_a_line() -> None:
    one = finding("gpus_idle", 0, "a\n  b " + "x" * 900, "fix")
    assert (one.line, one.severity) == (1, "warning")
    assert one.message.startswith("a b x")
    assert len(one.message) == 400
    with pytest.raises(KeyError):
        finding("nothing", 1, "", "")
