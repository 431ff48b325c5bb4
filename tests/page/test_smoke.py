"""One reader's way through the page in Chromium: `make test` runs it where there is one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vl_convert", reason="charts are an extra")

from axe_playwright_python.sync_playwright import Axe

from tests.api.conftest import CONFIG
from tests.page.chromium import Watched

SERIOUS = ("serious", "critical")
DROP = """(text) => {
  const files = new DataTransfer();
  files.items.add(new File([text], "config.json", {type: "application/json"}));
  return files;
}"""


@pytest.fixture(scope="module")
def seen(browser: Any, address: str) -> Watched:
    """The tab that all steps of the way share; it begins at the example."""
    tab = Watched(browser, address)
    tab.open("/")
    return tab


def chart_top(seen: Watched) -> float:
    script = "document.querySelector('[data-chart=roofline]').getBoundingClientRect().top"
    return float(seen.tab.evaluate(script)) + float(seen.tab.evaluate("scrollY"))


def test_a_reader_goes_through_the_page(seen: Watched, tmp_path: Path) -> None:
    """Pick, slide, refuse, keep, save, share, reload, download, compare, drop: not one fault."""
    accessible(seen)
    pick(seen)
    slide(seen)
    refuse(seen)
    keep_and_save(seen)
    share_and_reload(seen)
    download(seen, tmp_path)
    compare(seen)
    drop(seen)
    fleet(seen)
    check(seen)
    seen.close()


def accessible(seen: Watched) -> None:
    result = Axe().run(seen.tab).response
    assert len(result["passes"]) > 20  # rules that had something to look at
    assert [one["id"] for one in result["violations"] if one["impact"] in SERIOUS] == []


def pick(seen: Watched) -> None:
    before = chart_top(seen)
    seen.tab.fill("#f-gpu", "b200-sxm")
    seen.until("document.querySelector('#answer').textContent.includes('B200')")
    assert seen.tab.input_value("#f-model") == "meta-llama/Llama-3.1-70B-Instruct"  # the rest stays
    assert "gpu=b200-sxm" in seen.tab.url
    assert abs(chart_top(seen) - before) < 80  # no jump


def slide(seen: Watched) -> None:
    seen.tab.focus("#pick")
    for _ in range(8):
        seen.tab.keyboard.press("ArrowRight")
    assert str(seen.tab.text_content("[data-picked]")).startswith("batch 10: TPOT ")


def refuse(seen: Watched) -> None:
    seen.tab.fill("#f-tp", "3")
    seen.until("document.querySelector('#e-tp').textContent !== ''")
    assert "attention heads" in str(seen.tab.text_content("#e-tp"))
    assert seen.tab.get_attribute("#f-tp", "aria-invalid") == "true"
    seen.tab.fill("#f-tp", "4")
    seen.until("document.querySelector('#e-tp').textContent === ''")


def keep_and_save(seen: Watched) -> None:
    seen.tab.click("[data-keep]")
    seen.tab.fill("#f-weights", "fp8")
    seen.until("document.querySelector('#answer').textContent.includes('weights fp8')")
    seen.tab.click("[data-save]")
    seen.until("document.querySelector('[data-done]').textContent.startsWith('Saved as')")
    seen.tab.click("[data-keep]")


def share_and_reload(seen: Watched) -> None:
    verdict = seen.tab.text_content(".verdict")
    seen.tab.click("[data-share]")
    seen.until("document.querySelector('[data-done]').textContent === 'Link copied.'")
    link = seen.tab.evaluate("navigator.clipboard.readText()")
    assert link == seen.tab.url
    seen.tab.reload()
    seen.drawn()
    assert seen.tab.input_value("#f-weights") == "fp8"
    assert seen.tab.text_content(".verdict") == verdict


def download(seen: Watched, folder: Path) -> None:
    with seen.tab.expect_download() as begun:
        seen.tab.click("a[download='roofline.svg']")
    begun.value.save_as(folder / "roofline.svg")
    assert (folder / "roofline.svg").read_text("utf-8").startswith("<svg")


def compare(seen: Watched) -> None:
    scenarios = json.loads(seen.tab.evaluate("sessionStorage.getItem('scenarios')"))
    assert len(scenarios) == 2
    seen.open("/compare?" + "&".join(f"s={text.replace('&', '%26')}" for text in scenarios))
    assert "weights" in str(seen.tab.text_content("#answer"))
    assert seen.tab.locator("#l-saved option").count() == 1  # what was saved is offered


def drop(seen: Watched) -> None:
    seen.open("/")
    files = seen.tab.evaluate_handle(DROP, json.dumps(CONFIG))
    seen.tab.dispatch_event("#form", "drop", {"dataTransfer": files})
    seen.until("document.querySelector('#f-model').value.startsWith('own/llama-')")
    seen.until("location.search.includes('own%2F')")
    files = seen.tab.evaluate_handle(DROP, "{")
    seen.tab.dispatch_event("#form", "drop", {"dataTransfer": files})
    seen.until("document.querySelector('#e-config').textContent !== ''")
    assert "accepted: a model's config.json" in str(seen.tab.text_content("#e-config"))
    seen.drawn()


def fleet(seen: Watched) -> None:
    seen.open("/fleet")
    before = seen.tab.text_content(".verdict")
    seen.tab.fill("#f-requests_per_s_by_window", "4,8,16,8")
    seen.until("document.querySelector('.verdict').textContent.includes('16 at the peak')")
    assert seen.tab.text_content(".verdict") != before
    seen.drawn()
    seen.tab.click("text=See the busiest window as a scenario")
    seen.drawn()
    assert seen.tab.input_value("#f-requests_per_s") == "16"


def check(seen: Watched) -> None:
    seen.tab.goto(f"{seen.address}/check")
    text = "vllm serve meta-llama/Llama-3.1-70B-Instruct -tp 3"
    files = seen.tab.evaluate_handle(DROP, text)
    seen.tab.dispatch_event("#form", "drop", {"dataTransfer": files})
    seen.until("document.querySelector('.verdict').textContent === 'It fails.'")
    assert seen.tab.input_value("#f-file") == text
    assert "serve" not in seen.tab.url  # the text stays out of the address
    seen.drawn()
