"""The golden path: a manifest that fails, the one that replaces it, and the engine it starts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from planner.cli import main
from planner.handover.checking import CheckQuestion, check
from planner.handover.writing import write
from planner.plans.planning import plan
from planner.plans.recommend import RecommendationRequest, recommend
from tests.handover.fake_engine import Engine, running

MODEL = "meta-llama/Llama-3.1-70B-Instruct"
MANIFEST = f"""\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: llama}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: llama}}}}
  template:
    metadata: {{labels: {{app: llama}}}}
    spec:
      nodeSelector: {{nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}}
      containers:
        - name: server
          image: vllm/vllm-openai:v0.33.0
          args: [--model, {MODEL}, --tensor-parallel-size, "1"]
          resources: {{limits: {{nvidia.com/gpu: "1"}}}}
"""
LIMITS = CheckQuestion(concurrency=16, isl=2000, osl=300, tpot_ms=40, percentile=90)


def test_from_a_manifest_that_fails_to_an_engine_as_planned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The gate refuses it, and names the line.
    failed = check({"llama.yaml": MANIFEST}, LIMITS)
    (one,) = failed.checks
    assert (failed.exit_code, one.binds) == (1, "weights_do_not_fit")
    line = one.findings[0].line
    assert "--tensor-parallel-size" in MANIFEST.splitlines()[line - 1]

    # What to run instead, written as the same object, passes.
    scenario = one.reading.scenario
    request = RecommendationRequest(
        model=scenario.model,
        gpu=[str(scenario.gpu)],
        engine="vllm",
        context=2300,
        tpot_ms=40,
        percentile=90,
        best_tp=True,
    )
    choice = recommend(request).choices[0]
    assert choice.tp > 2  # where the longest context does not fit
    written = write(scenario.model_copy(update={"tp": choice.tp}), "deployment")
    passed = check({"llama.yaml": written.text}, CheckQuestion())
    assert passed.verdict == "pass", passed.checks[0].findings
    assert passed.checks[0].findings == []
    assert passed.checks[0].probability is not None

    # An engine that does what the plan says is as planned; one that is slower is not.
    file = tmp_path / "llama.yaml"
    file.write_text(written.text)
    planned = plan(written.scenario)
    serving, cache = planned.serving, planned.memory.kv_pool_tokens
    assert serving is not None
    assert cache is not None
    engine = Engine(
        "vllm",
        requests=480,
        isl=2000,
        osl=300,
        ttft_s=serving.ttft_s.p50,
        tpot_s=serving.tpot_s.p50,
        running=round(serving.running_batch),
        pool_blocks=cache // 16,
    )
    seconds = str(480 * (engine.ttft_s + 299 * engine.tpot_s) / 16)
    observe = ["--scenario", str(file), "--seconds", seconds]
    with running(engine) as url:
        main(["observe", url, *observe])
    table = capsys.readouterr().out
    assert table.startswith("As planned.")
    with running(engine) as url:
        main(["observe", url, *observe, "--json"])
    rows = {row["quantity"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert all(name in table for name in rows)
    # reality beside the plan: the load asked about, the cache, and the times of that load
    seen = {"isl": 2000, "osl": 300, "concurrency": 16, "prefix_hit": 0}
    assert {name: rows[name]["observed"] for name in seen} == pytest.approx(seen, abs=1e-6)
    assert {name: rows[name]["planned"] for name in seen} == pytest.approx(seen)
    assert rows["kv_pool_tokens"]["observed"] == pytest.approx(cache, abs=16)
    assert rows["memory_fraction"]["observed"] == rows["memory_fraction"]["planned"] == 0.92
    for name, interval in (("tpot_s", serving.tpot_s), ("ttft_s", serving.ttft_s)):
        assert rows[name]["planned"] == interval.p50
        assert rows[name]["observed"] == pytest.approx(interval.p50)
        assert rows[name]["predicted"]["p10"] < interval.p50 < rows[name]["predicted"]["p90"]
    # Little: 16 clients, each in the engine for one TTFT and 299 TPOT
    rate = 16 / (serving.ttft_s.p50 + 299 * serving.tpot_s.p50)
    assert rows["requests_per_s"]["observed"] == pytest.approx(rate)
    assert {row["drift"] for row in rows.values()} == {"none"}
    with running(replace(engine, tpot_s=3 * engine.tpot_s)) as url:
        with pytest.raises(SystemExit) as ended:
            main(["observe", url, *observe])
        assert ended.value.code == 1
    assert "prediction" in capsys.readouterr().out
