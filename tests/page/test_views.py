"""The page over HTTP: it answers without scripts, keeps to its host, shows the API's figures."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from api.page.render import FOLDER, POLICY, VIEWS
from planner.pictures import CHARTS
from planner.scenario import Scenario
from tests.api.conftest import CONFIG, Client

LLAMA = "meta-llama/Llama-3.1-70B-Instruct"
QUERY = {"model": LLAMA, "gpu": "h100-sxm5", "tp": "4", "context": "8k", "batch": "1-64"}
BODY = {
    "model": LLAMA,
    "gpu": "h100-sxm5",
    "tp": 4,
    "context": 8192,
    "batch": [1, 2, 4, 8, 16, 32, 64],
}
MOST_BYTES = 1_500_000
"""Of everything a view loads, as the issue that asked for the page has it."""
FORM_TAGS = {"input", "select", "textarea"}


class Outline(HTMLParser):
    """What a document is made of: elements, ids, labels, figures."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.figures: dict[str, str] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        self.elements.append((tag, named))
        if "data-figure" in named:
            self.figures[named["data-figure"]] = named["data-value"]

    def every(self, *tags: str) -> list[dict[str, str]]:
        return [attributes for tag, attributes in self.elements if tag in tags]


def outline(client: Client, path: str, **query: str) -> Outline:
    response = client.get(path, params=query)
    assert response.status_code == 200, response.text[:500]
    return Outline(response.text)


@pytest.mark.parametrize("path", [path for path, _ in VIEWS])
def test_every_view_answers_without_a_script(client: Client, path: str) -> None:
    response = client.get(path)
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert 'class="verdict' in response.text or "Side by side" in response.text


@pytest.mark.parametrize("path", [path for path, _ in VIEWS])
def test_nothing_inline_and_nothing_from_elsewhere(client: Client, path: str) -> None:
    response = client.get(path)
    assert response.headers["content-security-policy"] == POLICY
    assert "unsafe" not in POLICY
    seen = Outline(response.text)
    for tag, attributes in seen.elements:
        assert tag != "style"
        assert not [name for name in attributes if name == "style" or name.startswith("on")]
        for name in ("src", "href", "action"):
            link = attributes.get(name, "/")
            assert link.startswith(("/", "#", "data:,")), link
    assert all("src" in attributes for attributes in seen.every("script"))


@pytest.mark.parametrize("path", [path for path, _ in VIEWS])
def test_every_field_has_a_label_and_every_id_is_one(client: Client, path: str) -> None:
    seen = outline(client, path)
    labelled = {attributes.get("for") for attributes in seen.every("label")}
    ids = [attributes["id"] for _, attributes in seen.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for attributes in seen.every(*FORM_TAGS):
        assert attributes["id"] in labelled
    for _, attributes in seen.elements:
        assert attributes.get("aria-describedby", ids[0]) in ids
        assert attributes.get("list", ids[0]) in ids
    assert len(seen.every("h1")) == 1
    assert seen.every("html")[0]["lang"] == "en"
    assert all("aria-label" in attributes for attributes in seen.every("nav", "form"))


def test_the_form_has_every_field_of_a_scenario(client: Client) -> None:
    names = {attributes.get("name") for attributes in outline(client, "/").every("input")}
    assert {*Scenario.model_fields} - {"name", "tags", "notes"} <= names


def test_figures_are_those_of_the_api(client: Client) -> None:
    plan = client.post("/v1/plans", json=BODY).json()
    shown = outline(client, "/", **QUERY).figures
    for part, names in (
        ("limits", ("ridge_point", "saturation_intensity", "knee_batch", "weights_equal_kv_batch")),
        ("memory", ("weights_bytes_per_gpu", "kv_pool_bytes_per_gpu", "max_batch", "max_context")),
    ):
        for name in names:
            assert float(shown[name]) == plan[part][name], name


def test_charts_are_of_the_api_figures(client: Client) -> None:
    plan = client.post("/v1/plans", json=BODY).json()
    charts = client.get("/page/explore", params=QUERY).json()["charts"]
    assert set(charts) == set(CHARTS)
    rows = {row["batch"]: row for row in charts["throughput"]["datasets"]["curve"]}
    for point in plan["points"]:
        assert rows[point["batch"]]["tpot_ms"] == point["tpot_s"]["p50"] * 1e3
        assert rows[point["batch"]]["tokens_per_s_per_gpu"] == point["tokens_per_s_per_gpu"]
    kernels = {row["kernel"]: row for row in charts["time"]["datasets"]["kernels"]}
    assert {row["name"] for row in plan["kernels"]} == set(kernels)
    assert all(kernels[row["name"]]["time_ms"] == row["time_s"] * 1e3 for row in plan["kernels"])
    text = json.dumps(charts)
    assert "http" not in re.sub(r'"\$schema": "[^"]+"', "", text)


def test_a_batch_that_does_not_fit_has_no_rate(client: Client) -> None:
    text = client.get("/", params={**QUERY, "batch": "64"}).text
    assert "This load does not fit." in text
    row = text[text.index("<caption>Points") :].split("<tr>")[2]
    assert "does not fit" in row
    assert " ms" not in row


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"tp": "x"}, "tp", "valid integer"),
        ({"batch": "many"}, "batch", "8192 or 8k"),
        ({"model": "lama"}, "model", "unknown model"),
        ({"gpu": "h1000"}, "gpu", "h100"),
        ({"weights": "fp5"}, "weights", "fp8"),
        ({"isl": "@/etc/passwd"}, "isl", "files are not read"),
        ({"concurrency": "8"}, "isl", "needed for the serving question"),
        ({"tp": "3"}, "tp", "attention heads"),
        ({"speed": "1"}, "", "speed: unknown field; accepted: model"),
    ],
)
def test_errors_stand_beside_their_field(
    client: Client, change: dict[str, str], field: str, words: str
) -> None:
    query = {**QUERY, **change}
    errors = client.get("/page/explore", params=query).json()["errors"]
    assert words in errors[field]
    response = client.get("/", params=query)
    assert response.status_code == 422
    place = rf'data-error="{field}"[^>]*>([^<]*)<'
    assert any(words in found for found in re.findall(place, response.text))
    for name, text in query.items():
        if name in Scenario.model_fields:
            assert f'value="{text}"' in response.text  # what was typed stays


def test_texts_are_escaped(client: Client) -> None:
    text = client.get("/", params={**QUERY, "model": '"><script>alert(1)</script>'}).text
    assert "<script>alert" not in text


def test_a_view_is_under_one_and_a_half_megabytes(client: Client) -> None:
    """The page, its scripts and styles, the module that draws, and the first answer."""
    pytest.importorskip("vl_convert")
    paths = ["/", "/page/explore", "/page/charts.js", "/page/themes.json"]
    paths += [f"/page/files/{path.name}" for path in (FOLDER / "static").iterdir()]
    assert sum(len(client.get(path).content) for path in paths) < MOST_BYTES


def test_the_module_that_draws_can_interpret_expressions(client: Client) -> None:
    """Without it a policy that allows no evaluation would stop every chart."""
    pytest.importorskip("vl_convert")
    code = client.get("/page/charts.js").text
    assert "vegaEmbed" in code
    assert "ast: true" in (FOLDER / "static" / "charts.js").read_text("utf-8")


@pytest.mark.parametrize(("kind", "start"), [("svg", b"<svg"), ("png", b"\x89PNG")])
def test_a_picture_of_a_scenario(client: Client, kind: str, start: bytes) -> None:
    pytest.importorskip("vl_convert")
    response = client.get(f"/v1/charts/roofline.{kind}", params={**QUERY, "theme": "dark"})
    assert response.status_code == 200
    assert response.content.startswith(start)


def test_unknown_pictures_are_problems(client: Client) -> None:
    for name, words in (("pie.svg", "chart: 'pie'"), ("roofline.gif", "accepted: svg, png")):
        response = client.get(f"/v1/charts/{name}", params=QUERY)
        assert response.status_code == 422
        assert words in response.json()["detail"]


def test_an_own_model_is_shown_under_its_id(client: Client) -> None:
    made = client.post("/v1/models", json={"id": "dropped", "config": CONFIG})
    assert made.status_code == 201
    text = client.get("/", params={"model": "own/dropped", "gpu": "h100-sxm5"}).text
    assert 'value="own/dropped"' in text
    assert 'class="verdict' in text


def test_comparisons_are_those_of_the_api(client: Client) -> None:
    other = {**BODY, "weights": "fp8"}
    asked = {"scenarios": [BODY, other], "save": False}
    figures = client.post("/v1/comparisons", json=asked).json()["comparison"]["figures"]
    texts = [
        "&".join(f"{k}={v}" for k, v in q.items()) for q in (QUERY, {**QUERY, "weights": "fp8"})
    ]
    text = client.get("/compare", params={"s": texts}).text
    values = [float(value) for value in re.findall(r'data-value="([^"]+)"', text)]
    expected: list[Any] = [v for row in figures for v in row["values"] if v is not None]
    assert values == expected
    markdown = client.get("/files/compare/comparison.md", params={"s": texts})
    assert markdown.text.startswith("# Comparison against")
    assert client.get("/files/compare/comparison.csv", params={"s": texts}).text.startswith(
        "section,"
    )


def test_saved_scenarios_are_offered_for_comparison(client: Client) -> None:
    stored = client.post("/v1/scenarios", json={**BODY, "name": "kept"}).json()
    assert f'<option value="{stored["id"]}">kept</option>' in client.get("/compare").text
    both = {"s": [stored["id"], "&".join(f"{k}={v}" for k, v in QUERY.items())]}
    assert "Side by side" in client.get("/compare", params=both).text


def test_a_recommendation_leads_to_its_scenario(client: Client) -> None:
    query = {"model": LLAMA, "context": "8k", "gpu": "h100-sxm5, b200-sxm"}
    text = client.get("/recommend", params=query).text
    body = {"model": LLAMA, "context": 8192, "gpu": ["h100-sxm5", "b200-sxm"]}
    best = client.post("/v1/recommendations", json=body).json()["choices"][0]
    assert f"batch {best['batch']} on {best['tp']}× {best['gpu']}" in text
    (link, *_) = re.findall(r'<th scope="row"><a href="([^"]+)"', text)
    followed = client.get(link.replace("&amp;", "&"))
    assert followed.status_code == 200
    assert f'value="{best["batch"]}"' in followed.text


def test_kernels_of_a_model_are_those_of_the_api(client: Client) -> None:
    """Fused causal attention of a prompt of 8k, Q and O counted: 3,641 FLOP/byte."""
    body = {"model": LLAMA, "gpu": "h100-sxm5", "context": 8192, "phase": "prefill"}
    placed = client.post("/v1/roofline", json=body).json()["kernels"]
    query = {"kernel": "model", "model": LLAMA, "gpu": "h100-sxm5", "phase": "prefill"}
    chart = client.get("/page/kernels", params=query).json()["charts"]["kernels"]
    rows = {row["name"]: row for row in chart["datasets"]["kernels"]}
    assert rows["1 attention"]["intensity"] == pytest.approx(3641, abs=0.5)
    for kernel in placed:
        row = rows[f"{kernel['layer']} {kernel['name']}"]
        assert row["intensity"] == kernel["arithmetic_intensity"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"kernel": "gemm", "sizes": "1,2"}, "sizes"),
        ({"kernel": "gemm", "sizes": "a,b,c"}, "sizes"),
        ({"kernel": "gemm", "sizes": "1,2,3", "gpu": "h1000"}, "gpu"),
        ({"kernel": "gemm", "sizes": "1,2,3", "format": "fp5"}, "format"),
        ({"kernel": "model", "model": "lama"}, "model"),
        ({"colour": "red"}, ""),
    ],
)
def test_errors_of_kernels(client: Client, query: dict[str, str], field: str) -> None:
    assert field in client.get("/page/kernels", params=query).json()["errors"]


def test_accuracy_marks_the_readers_case(client: Client) -> None:
    result = client.get("/page/accuracy", params={"engine": "vllm", "gpu": "h100"}).json()
    rows = result["charts"]["accuracy"]["datasets"]["runs"]
    assert {row["engine"] for row in rows} == {"vllm"}
    assert all(row["mine"] == row["gpu"].startswith("h100") for row in rows)
    assert any(row["mine"] for row in rows)
    assert "runs like yours" in result["html"]["answer"]
