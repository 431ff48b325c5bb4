"""Every figure a view shows is the API's: tables as a reader reads them, charts by their rows."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.api.conftest import RAN, RESULTS, Client
from tests.page.tables import Tables, figure, figures_in

LLAMA = "meta-llama/Llama-3.1-70B-Instruct"
SHOWN = 6e-3
"""Three digits are shown: half a unit of the third is 5 parts in 1,000 at most."""
QUERY = {"model": LLAMA, "gpu": "h100-sxm5", "tp": "4", "context": "8k", "batch": "1,8,32"}
BODY: dict[str, Any] = {
    "model": LLAMA,
    "gpu": "h100-sxm5",
    "tp": 4,
    "context": 8192,
    "batch": [1, 8, 32],
}
LOAD = {"concurrency": "16", "isl": "1024", "osl": "256", "engine": "vllm"}
DAY = {
    "model": LLAMA,
    "gpu": "h100-sxm5",
    "tp": "4",
    "engine": "vllm",
    "requests_per_s_by_window": "2,8,20,9",
    "window_s": "21600",
    "isl": "1k",
    "osl": "256",
    "tpot_ms": "50",
    "months": "2",
    "growth_per_month": "0.1",
}
POOL = {"model": LLAMA, "gpu": "h100-sxm5", "tp": 4, "engine": "vllm"}
DAY_BODY = {
    "pools": [POOL],
    "requests_per_s_by_window": [2, 8, 20, 9],
    "window_s": 21600,
    "isl": 1024,
    "osl": 256,
    "tpot_ms": 50,
    "months": 2,
    "growth_per_month": 0.1,
}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("20.9 ms", [0.0209]),
        ("13.6 ms – 34.5 ms", [0.0136, 0.0345]),
        ("65%", [0.65]),
        ("35.3 GB", [35.3e9]),
        ("3.36 G", [3.36e9]),
        ("202 µs", [202e-6]),
        ("1,048,576", [1048576.0]),
        ("memory", []),
    ],
)
def test_figures_are_read_back(text: str, values: list[float]) -> None:
    assert figures_in(text) == pytest.approx(values)


def close(text: str, value: float) -> None:
    assert figure(text) == pytest.approx(value, rel=SHOWN), text


def page(client: Client, path: str, query: dict[str, str]) -> Tables:
    response = client.get(path, params=query)
    assert response.status_code == 200, response.text[:300]
    return Tables(response.text)


def charts(client: Client, view: str, query: dict[str, str]) -> dict[str, Any]:
    result = client.get(f"/page/{view}", params=query).json()
    assert result.get("errors", {}) == {}
    return {name: spec["datasets"] for name, spec in result["charts"].items()}


def test_points_and_kernels_of_a_scenario(client: Client) -> None:
    plan = client.post("/v1/plans", json=BODY).json()
    tables = page(client, "/", QUERY)
    rows = tables.rows("Points")
    for row, point in zip(rows, plan["points"], strict=True):
        assert figure(row["batch"]) == point["batch"]
        close(row["TPOT"], point["tpot_s"]["p50"])
        low, high = figures_in(row["p10 – p90"])
        assert low == pytest.approx(point["tpot_s"]["p10"], rel=SHOWN)
        assert high == pytest.approx(point["tpot_s"]["p90"], rel=SHOWN)
        close(row["tokens/s"], point["tokens_per_s"])
        close(row["per GPU"], point["tokens_per_s_per_gpu"])
        assert row["bound"] == point["bound"]
    kernels = tables.rows("Kernels of the last point")
    for row, kernel in zip(kernels, plan["kernels"], strict=True):
        assert row["kernel"] == kernel["name"]
        close(row["time"], kernel["time_s"])
        if kernel["flops"]:
            close(row["FLOP"], kernel["flops"])
            close(row["bytes"], kernel["bytes"])


def test_figures_that_must_agree_do(client: Client) -> None:
    """The verdict, tables and charts of one answer: rates are batch over time, shares are one."""
    data = charts(client, "explore", QUERY)
    gpus = 4
    for row in data["throughput"]["curve"]:
        if row["fits"] == "yes":
            rate = row["batch"] / row["tpot_ms"] * 1e3 / gpus
            assert row["tokens_per_s_per_gpu"] == pytest.approx(rate)
    assert sum(row["share"] for row in data["time"]["kernels"]) == pytest.approx(1.0)
    assert sum(row["share"] for row in data["memory"]["memory"]) == pytest.approx(1.0)
    text = client.get("/", params=QUERY).text
    (ridge,) = data["intensity"]["ridge"]
    assert f"the ridge is {ridge['intensity']:.0f}" in text
    limits = {row["context"]: row["intensity"] for row in data["intensity"]["marks"]}
    assert f"saturates at {limits[8192]:.3g} FLOP/byte" in text


def test_the_roofline_has_the_decode_path_left_of_the_ridge(client: Client) -> None:
    """Facts 2 and 17: about 60 FLOP/byte at 8k, 11 at 128k, the ridge of BF16 at 295."""
    for context, limit in (("8k", 59.8), ("128k", 11.2)):
        data = charts(client, "explore", {**QUERY, "context": context, "batch": "1"})
        path = [row["intensity"] for row in data["roofline"]["path"]]
        assert path == sorted(path)
        assert 0.85 * limit < path[-1] < limit
        (roof,) = {row["ridge"] for row in data["roofline"]["roofs"] if row["kind"] == "specified"}
        assert roof == pytest.approx(295, abs=0.5)
        assert path[-1] < roof


def test_serving_state(client: Client) -> None:
    body = {**BODY, "concurrency": 16, "isl": 1024, "osl": 256, "engine": "vllm"}
    serving = client.post("/v1/plans", json=body).json()["serving"]
    rows = {
        row["figure"]: row
        for row in page(client, "/", {**QUERY, **LOAD}).rows("Limits, memory and load")
    }
    close(rows["TTFT"]["value"], serving["ttft_s"]["p50"])
    close(rows["TPOT under load"]["value"], serving["tpot_s"]["p50"])
    close(rows["Output"]["value"], serving["output_tokens_per_s"])
    low, high = figures_in(rows["TTFT"]["interval or unit"])
    assert (low, high) == pytest.approx(
        (serving["ttft_s"]["p10"], serving["ttft_s"]["p90"]), rel=SHOWN
    )


def test_a_fleets_day(client: Client) -> None:
    fleet = client.post("/v1/fleets", json=DAY_BODY).json()
    tables = page(client, "/fleet", DAY)
    drawn = charts(client, "fleet", DAY)["fleet"]
    for row, line in zip(tables.rows("GPUs by way of scaling"), fleet["lines"], strict=True):
        assert row["scaling"] == line["name"]
        close(row["mean GPUs"], line["gpus_mean"])
        close(row["GPU-hours"], line["gpu_hours"])
        assert figure(row["windows short"]) == line["windows_short"]
        steps = [one["gpus"] for one in drawn["lines"] if one["scaling"] == line["name"]]
        assert steps[:-1] == line["gpus"]
    assert [row["requests_per_s"] for row in drawn["load"]][:-1] == fleet["requests_per_s"]
    months = tables.rows("Months of growth")
    assert [figure(row["peak GPUs"]) for row in months] == [m["gpus_peak"] for m in fleet["months"]]


def test_the_busiest_window_is_a_click_away(client: Client) -> None:
    text = client.get("/fleet", params=DAY).text
    link = text.partition('<a href="/?')[2].partition('"')[0].replace("&amp;", "&")
    fields = dict(parse_qsl(urlsplit(f"/?{link}").query))
    fleet = client.post("/v1/fleets", json=DAY_BODY).json()
    assert float(fields["requests_per_s"]) == max(DAY_BODY["requests_per_s_by_window"])
    assert int(fields["replicas"]) == fleet["pools"][0]["replicas_peak"]
    assert client.get("/", params=fields).status_code == 200


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"requests_per_s_by_window": "1,x"}, "requests_per_s_by_window", "valid number"),
        ({"tp": "3"}, "tp", "attention heads"),
        ({"gpu": "h1000"}, "gpu", "h100"),
        ({"isl": ""}, "isl", "needed"),
        ({"tpot_ms": "0.001"}, "", "serves no request"),
        ({"trace": "/etc/passwd"}, "", "trace: unknown field"),
        ({"window_s": "0"}, "window_s", "greater than or equal to 1"),
    ],
)
def test_errors_of_a_fleet(client: Client, change: dict[str, str], field: str, words: str) -> None:
    response = client.get("/page/fleet", params={**DAY, **change}).json()
    assert words in response["errors"][field]
    assert response["charts"] == {}


def test_a_recommendation_at_a_context(client: Client) -> None:
    query = {"model": LLAMA, "context": "8k", "gpu": "h100-sxm5, b200-sxm, l4"}
    body = {"model": LLAMA, "context": 8192, "gpu": ["h100-sxm5", "b200-sxm", "l4"]}
    result = client.post("/v1/recommendations", json=body).json()
    rows = page(client, "/recommend", query).rows("Ranked by tokens/s per GPU")
    drawn = charts(client, "recommend", query)["choices"]["choices"]
    for row, point, choice in zip(rows, drawn, result["choices"], strict=True):
        assert row["accelerator"].startswith(choice["gpu"])
        assert figure(row["batch"]) == choice["batch"] == point["batch"]
        close(row["tokens/s per GPU"], choice["tokens_per_s_per_gpu"])
        close(row["TPOT"], choice["tpot_s"]["p50"])
        assert point["tpot_ms"] == choice["tpot_s"]["p50"] * 1e3


USERS = {
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "gpu": "h100-sxm5",
    "engine": "vllm",
    "tp": "1",
    "weights": "bf16",
    "kv": "bf16",
    "users": "300",
    "think_time_s": "10",
    "isl": "1024",
    "osl": "256",
    "tpot_ms": "30",
}


@pytest.mark.slow
def test_a_workload_is_sized_as_the_api_does(client: Client) -> None:
    """How many GPUs, their band, the price, and the picture of the band."""
    body = {
        **USERS,
        "gpu": ["h100-sxm5"],
        **{name: int(USERS[name]) for name in ("tp", "users", "isl", "osl")},
        "think_time_s": 10,
        "tpot_ms": 30,
    }
    response = client.post("/v1/recommendations", json=body)
    assert response.status_code == 200, response.text
    options = response.json()["sized"]["options"]
    text = client.get("/recommend", params=USERS).text
    rows = Tables(text).rows("Options that none beats")
    drawn = charts(client, "recommend", USERS)["band"]
    assert len(options) >= 1
    for row, point, option in zip(rows, drawn["options"], options, strict=True):
        assert option["summary"] in row["option"]
        assert figure(row["GPUs"]) == option["gpus"] == point["gpus"]
        needed = option["gpus_needed"]
        assert {figures_in(row["needed, 80%"])[0], figures_in(row["needed, 80%"])[-1]} == {
            needed["p10"],
            needed["p90"],
        }
        assert [point["least"], point["most"]] == [needed["p10"], needed["p90"]]
        close(row["TTFT"], option["ttft_s"]["p50"])
        close(row["$/month"], option["money"]["usd_per_month"])
    handover = text[text.index("Commands and manifests") :]
    assert "planner plan meta-llama/Llama-3.1-8B-Instruct" in handover
    assert "vllm serve meta-llama/Llama-3.1-8B-Instruct" in handover
    assert "kind: Deployment" in handover
    link = text.partition('<th scope="row"><a href="/?')[2].partition('"')[0]
    fields = dict(parse_qsl(link.replace("&amp;", "&")))
    assert int(fields.get("replicas", 1)) == options[0]["replicas"]
    assert client.get("/", params=fields).status_code == 200


def test_a_check_is_the_apis(client: Client) -> None:
    command = f"vllm serve {LLAMA} -tp 4 --max-model-len 32768"
    asked = {"gpu": "h100-sxm5", "concurrency": 32, "isl": 1024, "osl": 256, "tpot_ms": 40}
    report = client.post("/v1/checks", json={"files": {"file": command}, "question": asked}).json()
    sent = {"file": command, **{name: str(value) for name, value in asked.items()}}
    response = client.post("/check", data=sent)
    assert response.status_code == 200
    tables = Tables(response.text)
    (check,) = report["checks"]
    for row, limit in zip(tables.rows("Limits"), check["limits"], strict=True):
        close(row["at most"], limit["limit"])
        close(row["predicted"], limit["predicted"]["p50"])
        assert row["verdict"] == limit["verdict"]
        assert figure(row["probability"]) == pytest.approx(limit["probability"], abs=6e-3)
    messages = [row["what is wrong"] for row in tables.rows("What is wrong")]
    assert messages == [one["message"] for one in check["findings"]]
    under = {row["figure"]: row["value"] for row in tables.rows("Under this load")}
    assert figure(under["largest batch"]) == check["figures"]["max_batch"]
    fields = {row["field"]: row for row in tables.rows("Fields")}
    assert fields["tp"]["value"] == "4"
    answered = client.post("/page/check", data=sent).json()
    assert answered["html"]["answer"] in response.text


@pytest.mark.parametrize(
    ("sent", "field", "words"),
    [
        ({"file": "ls -l"}, "file", "file"),
        ({"file": "vllm serve x/unknown", "gpu": "h100-sxm5"}, "file", "unknown"),
        ({"file": f"vllm serve {LLAMA}", "isl": "@/etc/passwd"}, "isl", "files are not read"),
        ({"file": f"vllm serve {LLAMA}", "colour": "1"}, "", "colour: unknown field"),
    ],
)
def test_errors_of_a_check(client: Client, sent: dict[str, str], field: str, words: str) -> None:
    errors = client.post("/page/check", data=sent).json()["errors"]
    assert words in errors[field]
    assert client.post("/check", data=sent).status_code == 422


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("compare/waterfall.svg", "image/svg+xml"),
        ("recommend/choices.svg", "image/svg+xml"),
        ("fleet/fleet.png", "image/png"),
        ("kernels/kernels.svg", "image/svg+xml"),
        ("compare/comparison.csv", "text/csv"),
    ],
)
def test_pictures_of_views_are_files(client: Client, name: str, kind: str) -> None:
    pytest.importorskip("vl_convert")
    response = client.get(f"/files/{name}")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith(kind)


@pytest.mark.parametrize(
    ("name", "status", "words"),
    [
        ("fleet/pie.svg", 422, "accepted: fleet.svg"),
        ("compare/pie.svg", 422, "accepted: comparison.md"),
        ("pie/pie.svg", 404, ""),
        ("fleet/fleet.svg?tp=3", 422, ""),
    ],
)
def test_other_files_are_refused(client: Client, name: str, status: int, words: str) -> None:
    response = client.get(f"/files/{name}")
    assert response.status_code == status
    assert words in response.text


@pytest.mark.slow
def test_own_runs_are_marked_and_counted(client: Client) -> None:
    """What vllm bench serve wrote of one run: 11.86 ms measured, drawn with its prediction."""
    added = client.post("/v1/measurements", json=RESULTS, params=RAN)
    assert added.status_code == 201
    shown = client.get("/page/accuracy", params={"engine": "vllm"}).json()
    assert "1 of them your own" in shown["html"]["answer"]
    rows = [row for row in shown["charts"]["accuracy"]["datasets"]["runs"] if row["own"]]
    assert [row["measured"] for row in rows] == [RESULTS["mean_tpot_ms"]]
    assert rows[0]["mine"]
    assert rows[0]["predicted"] == pytest.approx(11.86, rel=0.5)
    client.delete(f"/v1/measurements/{added.json()['measurement']['id']}")
    assert "of them your own" not in client.get("/page/accuracy", params={"engine": "vllm"}).text
