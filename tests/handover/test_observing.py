"""A running engine beside its plan: the workload it says, and what drifted."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from planner.benchmarks.read import read_text
from planner.benchmarks.results import Context
from planner.cli import main
from planner.handover.accesslog import access_log
from planner.handover.facts import read_facts
from planner.handover.observed import Observed, observed
from planner.handover.observing import as_results, observation
from planner.handover.prometheus import metrics_of
from planner.handover.refusal import Unreadable
from planner.handover.scraping import scrape
from planner.plans.planning import plan
from planner.scenario import Scenario
from tests.handover.fake_engine import NAMES, Engine, running

SCENARIO = Scenario(
    model="Qwen/Qwen2.5-7B-Instruct",
    gpu="h100-sxm5",
    engine="vllm",
    concurrency=16,
    isl=1000,
    osl=200,
)
SEEN = Engine("vllm", requests=640, isl=1000, osl=200, ttft_s=0.1, tpot_s=0.01, running=16)


def seen(engine: Engine, seconds: float | None = None) -> Observed:
    return observed(metrics_of(engine.text(), "metrics"), seconds)


@pytest.mark.parametrize("engine", NAMES)
def test_an_engine_is_told_by_its_names(engine: str) -> None:
    workload = seen(replace(SEEN, engine=engine), 80)
    assert workload.engine == engine
    assert workload.running == 16
    assert workload.tpot_s is not None
    assert workload.tpot_s.mean == pytest.approx(0.01)
    if engine == "llama.cpp":  # it counts tokens and no requests
        assert (workload.isl, workload.ttft_s, workload.concurrency) == (None, None, 16)
        return
    assert (workload.isl, workload.osl) == (1000, 200)
    # Little: 640 requests in 80 s, each 0.1 s to the first token and 199 tokens of 10 ms more
    assert workload.concurrency == pytest.approx(8 * (0.1 + 199 * 0.01))


@pytest.mark.parametrize(
    ("engine", "tokens"),
    # vLLM: blocks of 16 tokens; SGLang: tokens; TensorRT-LLM: two gauges, blocks of 32 tokens
    [("vllm", 16_000), ("sglang", 1000), ("trtllm", 32_000), ("llama.cpp", None)],
)
def test_the_cache_is_the_one_the_engine_says(engine: str, tokens: int | None) -> None:
    assert seen(replace(SEEN, engine=engine, pool_blocks=1000)).kv_pool_tokens == tokens


def test_blocks_of_two_ranks_add_and_their_size_does_not() -> None:
    ranks = 'trtllm_num_requests_running{model_name="m",rank="0"} 1\n' + "".join(
        f'trtllm_kv_cache_max_blocks{{rank="{rank}"}} 100\n'
        f'trtllm_kv_cache_tokens_per_block{{rank="{rank}"}} 32\n'
        for rank in range(2)
    )
    assert observed(metrics_of(ranks, "m")).kv_pool_tokens == 2 * 100 * 32


@pytest.mark.parametrize("engine", NAMES)
def test_an_address_without_a_path_is_read_where_its_engine_exports(engine: str) -> None:
    exporting = replace(SEEN, engine=engine)
    with running(exporting) as url:
        assert scrape(url) == exporting.text()
        with pytest.raises(Unreadable, match="answers 404; accepted: 200"):
            scrape(f"{url}/elsewhere")


def test_each_engine_states_where_its_names_were_looked_up() -> None:
    rows = read_facts("metrics.json")["engines"]
    assert set(rows) == set(NAMES)
    assert all("wheel" in row["source"] or "repository" in row["source"] for row in rows.values())
    for engine, names in NAMES.items():
        listed = {n for value in rows[engine].values() if isinstance(value, list) for n in value}
        assert set(names.values()) <= listed


def test_a_quantile_is_that_of_prometheus() -> None:
    times = metrics_of(SEEN.text(), "m").histogram([NAMES["vllm"]["ttft_s"]])
    assert times is not None
    assert times.mean == pytest.approx(0.1)
    assert times.quantile(0.5) == pytest.approx(0.075)  # halfway from 0.05 to 0.1


def test_what_was_counted_between_two_looks_counts() -> None:
    before = metrics_of(SEEN.text(), "a")
    after = metrics_of(replace(SEEN, requests=1000, tpot_s=0.02).text(), "b")
    workload = observed(after.since(before), 10)
    assert workload.requests == 360
    # of 1000 requests at 20 ms, 640 at 10 ms were there before
    assert workload.tpot_s is not None
    assert workload.tpot_s.mean == pytest.approx((1000 * 0.02 - 640 * 0.01) / 360)
    restarted = metrics_of(replace(SEEN, requests=5).text(), "c").since(before)
    assert observed(restarted, 10).requests == 5


def as_planned() -> Engine:
    serving = plan(SCENARIO).serving
    tokens = plan(SCENARIO).memory.kv_pool_tokens
    assert serving is not None
    assert tokens is not None
    return replace(
        SEEN, ttft_s=serving.ttft_s.p50, tpot_s=serving.tpot_s.p50, pool_blocks=tokens // 16
    )


def seconds_of(engine: Engine, clients: float) -> float:
    """The time in which so many clients send the engine's requests (Little 1961)."""
    return engine.requests * (engine.ttft_s + (engine.osl - 1) * engine.tpot_s) / clients


@pytest.mark.parametrize(
    ("changes", "clients", "drifted"),
    [
        ({}, 16, []),
        ({"tpot_s": 0.5}, 16, ["prediction"]),
        ({"isl": 3000}, 16, ["workload"]),
        ({"hit": 0.5}, 16, ["workload"]),
        ({}, 32, ["workload"]),
        ({"pool_blocks": 1000}, 16, ["engine"]),
        ({"memory_fraction": 0.5}, 16, ["engine"]),
    ],
)
def test_what_drifted_is_named(changes: dict[str, float], clients: int, drifted: list[str]) -> None:
    engine = as_planned()
    now = plan(
        SCENARIO.model_copy(
            update={
                "concurrency": clients,
                "isl": changes.get("isl", 1000),
                "prefix_hit": changes.get("hit", 0.0),
            }
        )
    ).serving
    assert now is not None
    engine = replace(engine, ttft_s=now.ttft_s.p50, tpot_s=now.tpot_s.p50)
    engine = replace(engine, **changes)
    result = observation(SCENARIO, seen(engine, seconds_of(engine, clients)))
    assert result.drifted == drifted
    rows = {row.quantity: row for row in result.rows}
    assert rows["tpot_s"].predicted is not None
    assert rows["tpot_s"].predicted.p10 < rows["tpot_s"].predicted.p90


def test_results_to_calibrate_by_are_read_back() -> None:
    engine = as_planned()
    text = as_results(seen(engine, seconds_of(engine, 16)), SCENARIO)
    assert text is not None
    (row,) = read_text(text, Context(gpu="h100-sxm5")).rows
    assert row.inputs["engine"] == "vllm"
    assert row.inputs["concurrency"] == "16"
    assert row.measured["tpot_ms"] == pytest.approx(engine.tpot_s * 1e3)
    assert as_results(seen(replace(SEEN, engine="llama.cpp")), SCENARIO) is None


LINES = [
    '{"time": 100.0, "status": 200, "prompt_tokens": 500, "completion_tokens": 100}',
    '{"time": 104.0, "status": 200, "prompt_tokens": 1500, "completion_tokens": 100}',
    '{"time": 105.0, "status": 500, "prompt_tokens": 9000}',
    '{"time": 106.0, "path": "/metrics", "status": 200}',
    '10.0.0.1 - - [01/Dec/2026:10:00:00 +0000] "GET /health HTTP/1.1" 200 2',
    "not a request",
]


def test_an_access_log_says_rate_and_spread() -> None:
    log = access_log(LINES, "log")
    assert (log.requests, log.seconds) == (2, 4.0)
    assert log.mean("isl") == 1000
    assert log.spread("isl") == 0.5
    common = '10.0.0.1 - - [01/Dec/2026:10:00:0{} +0000] "POST /v1/completions HTTP/1.1" 200 9'
    log = access_log([common.format(n) for n in range(5)], "log")
    assert (log.requests, log.seconds) == (5, 4.0)
    workload = observed(metrics_of(SEEN.text(), "m"), None, access_log(LINES, "log"))
    assert workload.isl_cv == 0.5
    with pytest.raises(Unreadable, match="no request"):
        access_log(["nothing"], "log")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("vllm:x{a=", "line 1"),
        ("vllm:x one", "line 1"),
        ("up 1\n", "of no engine"),
        ("", "of no engine"),
    ],
)
def test_metrics_that_cannot_be_read_are_refused(text: str, message: str) -> None:
    with pytest.raises(Unreadable, match=message):
        observed(metrics_of(text, "m"))


@pytest.mark.parametrize(
    "url",
    ["https://127.0.0.1/", "http://8.8.8.8/", "http://169.254.169.254/", "http://", "ftp://x/"],
)
def test_only_a_local_address_is_looked_at(url: str) -> None:
    with pytest.raises(Unreadable):
        scrape(url)


def test_the_command_looks_at_a_running_engine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = as_planned()
    file, saved = tmp_path / "scenario.json", tmp_path / "observed.json"
    file.write_text(SCENARIO.model_dump_json())
    elapsed = str(seconds_of(engine, 16))
    with running(engine) as url:
        options = [url, "--scenario", str(file), "--seconds", elapsed, "--save", str(saved)]
        main(["observe", *options])
        out = capsys.readouterr().out
        assert out.startswith("As planned.")
        assert "planner calibrate --add" in out
        main(["observe", url, "--scenario", str(file), "--seconds", elapsed, "--json"])
        answer = json.loads(capsys.readouterr().out)
        assert answer["drifted"] == []
        assert math.isclose(answer["observed"]["concurrency"], 16)
        with pytest.raises(SystemExit) as ended:
            main(["observe", f"{url}/nothing", "--scenario", str(file)])
        assert ended.value.code == 2
    assert json.loads(saved.read_text())["max_concurrency"] == 16
