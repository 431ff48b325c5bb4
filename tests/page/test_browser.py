"""Every view in Chromium, in light and dark and at several widths: faults, axe, the policy.

Slow, so `make test-all` runs it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vl_convert", reason="charts are an extra")

from axe_playwright_python.sync_playwright import Axe

from api.page.render import VIEWS
from tests.api.conftest import RAN, RESULTS
from tests.page.chromium import Watched

pytestmark = pytest.mark.slow
PATHS = [path for path, _ in VIEWS]
SERIOUS = ("serious", "critical")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser: Any, address: str, path: str, theme: str) -> None:
    """Rules of axe-core: roles, names, contrast, order; every finding is named with its element."""
    seen = Watched(browser, address, theme=theme)
    seen.open(path)
    found = Axe().run(seen.tab).response["violations"]
    faults = [
        f"{one['id']}: {node['html'][:160]}"
        for one in found
        if one["impact"] in SERIOUS
        for node in one["nodes"]
    ]
    assert faults == []
    seen.close()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("width", "theme"), [(360, "dark"), (1280, "light"), (2560, "dark")])
def test_a_view_is_drawn_without_a_fault(
    browser: Any, address: str, path: str, width: int, theme: str
) -> None:
    seen = Watched(browser, address, width, theme)
    seen.open(path)
    beyond = seen.tab.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert beyond <= 0, f"{beyond} pixels wider than the window"
    seen.close()


@pytest.mark.parametrize("path", PATHS)
def test_tab_visits_controls_in_the_order_they_are_read(
    browser: Any, address: str, path: str
) -> None:
    """From the skip link through the form to the answer; each shows where the focus is."""
    seen = Watched(browser, address)
    tab = seen.open(path)
    order = []
    for _ in range(400):
        tab.keyboard.press("Tab")
        place = tab.evaluate(
            """() => {
              const one = document.activeElement;
              if (!one || one === document.body) return null;
              const all = [...document.querySelectorAll('*')];
              const outline = getComputedStyle(one).outlineStyle;
              return [all.indexOf(one), outline !== 'none', one.className];
            }"""
        )
        if place is None:
            break
        order.append(place)
    indexes = [index for index, _, _ in order]
    assert order[0][2] == "skip"
    assert len(order) > 10
    assert indexes == sorted(indexes)
    assert all(outlined for _, outlined, _ in order)
    seen.close()


def test_evaluation_of_text_is_refused(browser: Any, address: str) -> None:
    """What the policy promises, seen to be enforced."""
    seen = Watched(browser, address)
    seen.open("/")
    refused = """() => new Promise((done) => setTimeout(() => {
        try { new Function("return 1")(); done("ran"); } catch (error) { done(error.name); } }))"""
    assert seen.tab.evaluate(refused) == "EvalError"


def test_without_scripts_there_is_an_answer_and_a_picture(browser: Any, address: str) -> None:
    tab = browser.new_context(java_script_enabled=False).new_page()
    tab.goto(f"{address}/?model=meta-llama/Llama-3.1-70B-Instruct&gpu=h100-sxm5&tp=4&context=8k")
    assert "Memory-bound at every batch" in tab.inner_text(".verdict")
    assert tab.locator(".picture img").count() == 5
    assert all(tab.evaluate("[...document.images].map((one) => one.complete)"))


def test_charts_hold_the_figures_of_the_api(browser: Any, address: str) -> None:
    """Rows as the drawn view holds them, after a change that replaced rows alone."""
    seen = Watched(browser, address)
    tab = seen.open("/")
    tab.fill("#f-context", "16k")
    seen.until("location.search.includes('16k')")
    seen.drawn()
    body = {
        "model": "meta-llama/Llama-3.1-70B-Instruct",
        "gpu": "h100-sxm5",
        "tp": 4,
        "context": 16384,
    }
    plan = json.loads(tab.request.post(f"{address}/v1/plans", data=body).body())
    labels = tab.locator("[data-chart=time] .mark-text text").all_text_contents()
    shares = {f"{kernel['share']:.0%}" for kernel in plan["kernels"]}
    assert shares <= set(labels)
    figures = tab.evaluate(
        """Object.fromEntries([...document.querySelectorAll('[data-figure]')].map(
             (cell) => [cell.dataset.figure, Number(cell.dataset.value)]))"""
    )
    assert figures["saturation_intensity"] == plan["limits"]["saturation_intensity"]
    assert figures["max_batch"] == plan["memory"]["max_batch"]
    seen.close()


def test_runs_of_ones_own_are_added_and_marked(browser: Any, address: str, tmp_path: Path) -> None:
    """Results of vllm bench serve become marked points; what is refused stands beside its field."""
    seen = Watched(browser, address)
    tab = seen.open("/accuracy")
    nothing = tmp_path / "nothing.json"
    nothing.write_text("[]", "utf-8")
    tab.set_input_files("#results", nothing)
    seen.until("document.querySelector('#e-results').textContent !== ''")
    path = tmp_path / "results.json"
    path.write_text(json.dumps(RESULTS), "utf-8")
    tab.fill("#own-gpu", RAN["gpu"])
    tab.fill("#own-tp", str(RAN["tp"]))
    tab.set_input_files("#results", path)
    tab.wait_for_function(
        "() => document.querySelector('.verdict').textContent.includes('of them your own')",
        timeout=240_000,
    )
    assert "Added " in str(tab.text_content("[data-done]"))
    seen.faults = [one for one in seen.faults if "422" not in one]  # the refusal that was meant
    seen.close()
