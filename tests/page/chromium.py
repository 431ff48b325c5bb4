"""Chromium on this machine, driven by Playwright, and a tab that notes what a page must not do."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
HOW = "no Chromium; `make browser` or `apt-get install chromium`, or PLANNER_TEST_CHROMIUM=PATH"
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WATCH = """
window.reports = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.reports.push(`${event.violatedDirective} ${event.blockedURI}`));
"""
DRAWN = """() => [...document.querySelectorAll('.chart')].every(
  (chart) => chart.querySelector('svg') || chart.closest('[hidden]'))"""


def chromium() -> str | None:
    """Return the path of a Chromium, null where there is none."""
    named = os.environ.get("PLANNER_TEST_CHROMIUM")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def launched(path: str) -> Iterator[Browser]:
    """A browser without a window."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


class Watched:
    """A tab that notes requests to other hosts, errors of the console, reports of the policy."""

    def __init__(
        self, browser: Browser, address: str, width: int = 1280, theme: Any = "light", **more: Any
    ) -> None:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=theme, **more
        )
        context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address)
        self.address = address
        self.tab: Page = context.new_page()
        self.tab.set_default_timeout(20_000)
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

    def open(self, path: str) -> Page:
        """Return the tab with a view in which every chart is drawn."""
        self.tab.goto(f"{self.address}{path}")
        self.drawn()
        return self.tab

    def drawn(self) -> None:
        """Wait until every chart is drawn and nothing is being asked."""
        self.tab.wait_for_function(DRAWN)
        self.tab.wait_for_function("() => !document.querySelector('[aria-busy=true]')")

    def until(self, condition: str) -> None:
        """Wait for an expression of the page."""
        self.tab.wait_for_function(f"() => {condition}")

    def close(self) -> None:
        """End, and fail on anything a page must not do."""
        self.faults += self.tab.evaluate("window.reports")
        self.tab.context.close()
        assert self.faults == []
