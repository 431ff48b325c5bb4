"""The page in a real browser: Chromium on this machine, driven by Playwright.

Slow, so `make test-all` runs it; it needs `apt-get install chromium`, or another one named in
PLANNER_TEST_CHROMIUM.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.conftest import CONFIG
from tests.api.server import serving

sync_api = pytest.importorskip("playwright.sync_api", reason="an extra of development")

pytestmark = pytest.mark.slow
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
VIEWS = ("/", "/compare", "/recommend", "/kernels", "/accuracy")
WATCH = """
window.reports = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.reports.push(`${event.violatedDirective} ${event.blockedURI}`));
"""
READY = "() => document.querySelectorAll('.chart svg').length > 0"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("browser")
    with serving(f"sqlite:///{folder / 'planner.db'}", folder / "log") as server:
        yield server.base


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    path = os.environ.get("PLANNER_TEST_CHROMIUM") or shutil.which("chromium")
    assert path, "apt-get install chromium, or name one in PLANNER_TEST_CHROMIUM"
    with sync_api.sync_playwright() as driver:
        launched = driver.chromium.launch(executable_path=path, args=list(FLAGS))
        yield launched
        launched.close()


class Watched:
    """A tab that notes what a page must not do."""

    def __init__(self, browser: Any, address: str, width: int = 1280, theme: str = "light") -> None:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=theme, accept_downloads=True
        )
        self.address = address
        self.tab = context.new_page()
        self.tab.add_init_script(WATCH)
        self.faults: list[str] = []
        self.tab.on("request", self._request)
        self.tab.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.tab.on("console", self._console)

    def _request(self, request: Any) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.faults.append(f"request: {request.url}")

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"console: {message.text}")

    def open(self, path: str) -> None:
        self.tab.goto(f"{self.address}{path}")
        self.tab.wait_for_function(READY)
        self.tab.wait_for_load_state("networkidle")

    def check(self) -> None:
        self.faults += self.tab.evaluate("window.reports")
        assert self.faults == []


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(("width", "theme"), [(360, "dark"), (1280, "light"), (2560, "dark")])
def test_a_view_is_drawn_without_a_fault(
    browser: Any, address: str, view: str, width: int, theme: str
) -> None:
    seen = Watched(browser, address, width, theme)
    seen.open(view)
    beyond = seen.tab.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert beyond <= 0, f"{beyond} pixels wider than the window"
    seen.check()


def test_pick_slide_keep_compare_save_reload_and_download(
    browser: Any, address: str, tmp_path: Path
) -> None:
    seen = Watched(browser, address)
    tab = seen.tab
    seen.open("/")
    before = tab.evaluate("document.querySelector('[data-chart=roofline]').offsetTop")
    tab.fill("#f-gpu", "b200-sxm")
    tab.wait_for_function("() => document.querySelector('#answer').textContent.includes('B200')")
    assert tab.input_value("#f-model") == "meta-llama/Llama-3.1-70B-Instruct"  # the rest stays
    assert "gpu=b200-sxm" in tab.url
    after = tab.evaluate("document.querySelector('[data-chart=roofline]').offsetTop")
    assert abs(after - before) < 80
    tab.focus("#pick")
    for _ in range(8):
        tab.keyboard.press("ArrowRight")
    assert tab.text_content("[data-picked]").startswith("batch 10: TPOT ")
    tab.fill("#f-tp", "3")
    tab.wait_for_function("() => document.querySelector('#e-tp').textContent !== ''")
    assert "attention heads" in tab.text_content("#e-tp")
    tab.fill("#f-tp", "4")
    tab.wait_for_function("() => document.querySelector('#e-tp').textContent === ''")
    tab.click("[data-keep]")
    tab.fill("#f-weights", "fp8")
    tab.wait_for_function("() => document.querySelector('#answer').textContent.includes('fp8')")
    tab.click("[data-keep]")
    tab.click("[data-save]")
    tab.wait_for_function(
        "() => document.querySelector('[data-done]').textContent.startsWith('Saved as')"
    )
    tab.click("[data-keep]")
    tab.reload()
    tab.wait_for_function(READY)
    assert tab.input_value("#f-weights") == "fp8"
    with tab.expect_download() as download:
        tab.click("a[download='roofline.svg']")
    path = tmp_path / "roofline.svg"
    download.value.save_as(path)
    assert path.read_text("utf-8").startswith("<svg")
    kept = json.loads(tab.evaluate("sessionStorage.getItem('scenarios')"))
    assert len(kept) == 2
    seen.open("/compare?" + "&".join(f"s={text.replace('&', '%26')}" for text in kept))
    assert "weights" in tab.text_content("#answer")
    seen.check()


def test_a_dropped_config_becomes_a_model(browser: Any, address: str, tmp_path: Path) -> None:
    seen = Watched(browser, address)
    seen.open("/")
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG), "utf-8")
    seen.tab.set_input_files("#config", path)
    seen.tab.wait_for_function("() => document.querySelector('#f-model').value.startsWith('own/')")
    seen.tab.wait_for_function("() => location.search.includes('own%2F')")
    broken = tmp_path / "broken.json"
    broken.write_text("{", "utf-8")
    seen.tab.set_input_files("#config", broken)
    seen.tab.wait_for_function("() => document.querySelector('#e-config').textContent !== ''")
    assert "accepted: a model's config.json" in seen.tab.text_content("#e-config")
    seen.check()


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
    assert tab.locator("noscript img").count() == 0 or tab.locator("img").first.is_visible()
