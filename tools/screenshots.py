"""Take the pictures of every view that docs/page.md shows, at three widths, in light and dark.

`python tools/screenshots.py [VIEW…]` starts a service of its own; it takes some minutes.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.api.server import serving
from tests.page.chromium import HOW, Watched, chromium, launched

FOLDER = Path(__file__).parents[1] / "docs" / "screenshots"
LLAMA = "meta-llama/Llama-3.1-70B-Instruct"
PATHS = {
    "explore": "/",
    "compare": "/compare",
    "recommend": f"/recommend?model={LLAMA}&gpu=h100-sxm5,h200-sxm&engine=vllm&users=2000"
    "&think_time_s=60&isl=1024&osl=256&tpot_ms=50&ttft_ms=2000",
    "fleet": "/fleet",
    "check": "/check",
    "kernels": "/kernels",
    "accuracy": "/accuracy?model=llama&gpu=h100-sxm5",
}
SCALES = {390: 0.75, 1280: 0.6, 2560: 0.4}
"""Pixels of a file to one of the page, by width of the window [-]."""
TALLEST = 1900
"""Of what a file shows; a narrow window is shown to its end [pixel]."""
THEMES = ("light", "dark")
QUALITY = 40


def take(browser: Any, address: str, name: str, width: int, theme: str) -> None:
    """Write the picture of a view; what a page must not do ends the tool."""
    seen = Watched(browser, address, width, theme, device_scale_factor=SCALES[width])
    seen.tab.set_default_timeout(120_000)
    tab = seen.open(PATHS[name])
    whole = tab.evaluate("document.documentElement.scrollHeight")
    tab.screenshot(
        path=FOLDER / f"{name}-{width}-{theme}.jpg",
        type="jpeg",
        quality=QUALITY,
        full_page=True,
        scale="device",
        clip={
            "x": 0,
            "y": 0,
            "width": width,
            "height": whole if width == min(SCALES) else min(whole, TALLEST),
        },
    )
    seen.close()


def main() -> None:
    """Take them all, or those of the views named."""
    path = chromium()
    if path is None:
        raise SystemExit(HOW)
    FOLDER.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(f"sqlite:///{folder}/planner.db", Path(folder) / "log") as server,
        launched(path) as browser,
    ):
        for name in sys.argv[1:] or PATHS:
            for width in SCALES:
                for theme in THEMES:
                    take(browser, server.base, name, width, theme)


if __name__ == "__main__":
    main()
