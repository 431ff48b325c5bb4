"""The page in Chromium: first paint of each view, and the time from a change to what it changes.

Starts a service of its own; times are of this machine and of what else runs on it. `answered` is
from the change of a field (its pause for typing left out) until the texts and every chart in view
are up to date, by the page's own marks; `server` is the part that the request took. The processor
time of the browser's main thread says what a machine without other work would take; it holds the
charts below the window, too.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Any

from api.page.render import VIEWS
from tests.api.server import serving
from tests.page.chromium import HOW, Watched, chromium, launched

CHANGES = (
    ("context", "16k"),
    ("tp", "8"),
    ("batch", "1,8,32"),
    ("gpu", "b200-sxm"),
    ("weights", "fp8"),
    ("model", "meta-llama/Llama-3.1-8B-Instruct"),
    ("tp", "1"),
    ("engine", "vllm"),
    ("tpot_ms", "40"),
    ("concurrency", "16"),
    ("model", "deepseek-ai/DeepSeek-V3"),
    ("tp", "8"),
)
"""Fields of Explore and their new texts, one after another."""
START = (
    "/?model=meta-llama/Llama-3.1-70B-Instruct&gpu=h100-sxm5&tp=4&isl=1024&osl=256&concurrency=8"
)
WIDTHS = (390, 1280, 2560)
CHANGE = """([field, text]) => {
  const input = document.querySelector(`#f-${field}`);
  performance.clearMeasures();
  performance.clearResourceTimings();
  input.value = text;
  input.dispatchEvent(new Event("change", {bubbles: true}));
}"""
TIMES = """() => {
  const request = performance.getEntriesByType("resource").findLast(
    (entry) => entry.name.includes("/page/"));
  return [performance.getEntriesByName("answered").at(-1).duration,
          request.responseEnd - request.requestStart];
}"""
PAINT = """() => performance.getEntriesByName("first-contentful-paint")[0].startTime"""
ANSWERED = "() => performance.getEntriesByName('answered').length > 0"


def paints(browser: Any, address: str) -> None:
    """First paint of every view, the first time and the second."""
    for path, name in VIEWS:
        times = []
        for _ in range(2):
            seen = Watched(browser, address)
            seen.tab.set_default_timeout(60_000)
            times.append(seen.open(path).evaluate(PAINT))
            seen.close()
        print(f"{name}: first paint {times[0]:.0f} ms, again {times[1]:.0f} ms")


def thread_s(session: Any) -> float:
    """Processor time that the main thread of the tab has taken [s]."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(float(one["value"]) for one in metrics if one["name"] == "ThreadTime")


def updates(browser: Any, address: str, width: int) -> None:
    """The time of each change of Explore, all of its charts drawn already."""
    seen = Watched(browser, address, width)
    tab = seen.open(START)
    session = tab.context.new_cdp_session(tab)
    session.send("Performance.setTimeDomain", {"timeDomain": "threadTicks"})
    session.send("Performance.enable")
    answered, server, worked = [], [], []
    for field, text in CHANGES:
        before = thread_s(session)
        tab.evaluate(CHANGE, [field, text])
        tab.wait_for_function(ANSWERED)
        whole, of_server = tab.evaluate(TIMES)
        wrong = tab.evaluate("document.querySelectorAll('[aria-invalid]').length")
        if wrong:
            raise SystemExit(f"{field} {text} was refused")
        answered.append(whole)
        server.append(of_server)
        tab.wait_for_timeout(400)
        worked.append(1e3 * (thread_s(session) - before))
    print(
        f"{width} pixels, {len(answered)} changes: answered in "
        f"{statistics.median(answered):.0f} ms (median), {max(answered):.0f} ms (most); "
        f"of that the server {statistics.median(server):.0f} and {max(server):.0f} ms"
        f"; processor time of the tab {statistics.median(worked):.0f} and {max(worked):.0f} ms"
    )
    seen.close()


def main() -> None:
    path = chromium()
    if path is None:
        raise SystemExit(HOW)
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(f"sqlite:///{folder}/planner.db", Path(folder) / "log") as server,
        launched(path) as browser,
    ):
        paints(browser, server.base)
        for width in WIDTHS:
            updates(browser, server.base, width)


if __name__ == "__main__":
    main()
