"""Run the benchmarks, keep their figures as JSON, and draw how they went from run to run.

    python bench/history.py [SCRIPT…]         # all of them, or some: speed sweep
    python bench/history.py --draw            # draw what is kept

A benchmark prints a line for a thing measured: `what: FIGURE unit, and what else FIGURE unit`. A
figure is known by the words before it. They are kept in `bench/history.json`, a run of a script an
entry, with the day, the commit and the machine; `bench/history.svg` has a line for each. Figures of
two machines are not compared: a drawing is of the machine it is drawn on.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
HISTORY = FOLDER / "history.json"
DRAWING = FOLDER / "history.svg"
SCRIPTS = ("speed", "search", "fleet", "service", "store", "sweep", "refit")
"""What `make bench` runs, as far as it is there."""
FIGURE = re.compile(r"(?P<words>.*?)(?P<value>\d[\d.,]*(?:e[+-]?\d+)?)(?P<unit>[^(]*)")


def figures(lines: Iterable[str]) -> dict[str, tuple[float, str]]:
    """Return the figures of lines by what they are of: a value and its unit.

    A line that ends with a colon stands over the indented ones below it. Of two figures with the
    same words the second has its unit in its name.

    >>> figures(["plan, dense: 171 µs, at a new batch 262 µs"])
    {'plan, dense': (171.0, 'µs'), 'plan, dense, at a new batch': (262.0, 'µs')}
    """
    result: dict[str, tuple[float, str]] = {}
    heading = ""
    for line in lines:
        if not line.startswith(" "):
            heading = ""
        if line.rstrip().endswith(":"):
            heading = re.sub(r" \(.*\)", "", line.strip())
            continue
        what, colon, rest = line.strip().rpartition(": ")
        for part in re.split(r"[,;] ", rest) if colon else ():
            match = FIGURE.match(part)
            if match is None:
                continue
            words, unit = match["words"].strip(), match["unit"].strip()
            name = f"{heading} {what}".strip() + (f", {words}" if words else "")
            if name in result:
                name = f"{name} [{unit}]"
            result[name] = (float(match["value"].rstrip(".,").replace(",", "")), unit)
    return result


def machine() -> str:
    """Return what figures depend on: processor, cores and Python."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = re.findall(r"model name\s*: (.*)", info.read_text("utf-8"))
        model = names[0] if names else model
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"


def commit() -> str:
    run = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=FOLDER,
        check=False,
        capture_output=True,
        text=True,
    )
    return run.stdout.strip()


def entry(script: str, lines: Iterable[str]) -> dict[str, Any]:
    """Return a run of a script as it is kept."""
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": machine(),
        "load": round(os.getloadavg()[0], 2),
        "script": script,
        "figures": {name: list(value) for name, value in figures(lines).items()},
    }


def read(path: Path = HISTORY) -> list[dict[str, Any]]:
    """Return all runs that are kept, oldest first."""
    if not path.exists():
        return []
    runs: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))
    return runs


def keep(run: dict[str, Any], path: Path = HISTORY) -> None:
    """Add a run to those that are kept."""
    text = json.dumps([*read(path), run], indent=1, ensure_ascii=False)
    unfinished = path.with_suffix(".tmp")
    unfinished.write_text(f"{text}\n", "utf-8")
    unfinished.replace(path)


def run_script(script: str) -> None:
    """Run a benchmark, show what it prints, and keep its figures."""
    command = [sys.executable, str(FOLDER / f"{script}.py")]
    environment = {**os.environ, "PYTHONPATH": str(FOLDER.parent), "PYTHONUNBUFFERED": "1"}
    lines = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, encoding="utf-8", env=environment
    ) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            lines.append(line)
    if process.returncode:
        raise SystemExit(process.returncode)
    keep(entry(script, lines), HISTORY)


WIDTH, HEIGHT, ROW, PLOT = 900, 34, 26, 220
"""Of the drawing, of its head, of a row, and of the line in it [px]."""


def series(runs: Sequence[dict[str, Any]], of: str) -> dict[str, list[tuple[float, str]]]:
    """Return the figures of one machine by script and name, oldest first."""
    result: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for run in runs:
        if run["machine"] == of:
            for name, (value, unit) in run["figures"].items():
                result[f"{run['script']}: {name}"].append((value, unit))
    return dict(sorted(result.items()))


def drawn(runs: Sequence[dict[str, Any]], of: str) -> str:
    """Return a picture: a row for each figure, with its runs as a line and the last as a number."""
    rows = series(runs, of)
    height = HEIGHT + ROW * len(rows) + 10
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="sans-serif" font-size="11"><title>Benchmarks from run to run</title>'
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>'
        f'<text x="8" y="20" font-size="13">{escape(of)}</text>'
    )
    parts = [head]
    for i, (name, values) in enumerate(rows.items()):
        top = HEIGHT + ROW * i
        last, unit = values[-1]
        parts.append(f'<text x="8" y="{top + 17}">{escape(name[:88])}</text>')
        parts.append(_line([value for value, _ in values], WIDTH - PLOT - 110, top))
        parts.append(
            f'<text x="{WIDTH - 8}" y="{top + 17}" text-anchor="end">'
            f"{last:g} {escape(unit[:18])}</text>"
        )
    return "".join([*parts, "</svg>\n"])


def _line(values: Sequence[float], left: float, top: float) -> str:
    """A line from zero to the largest value, with a point at the last."""
    most = max(values) or 1.0
    step = (PLOT - 20) / max(1, len(values) - 1)
    points = [(left + i * step, top + ROW - 5 - (ROW - 9) * v / most) for i, v in enumerate(values)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    x, y = points[-1]
    return (
        f'<polyline points="{path}" fill="none" stroke="#1f77b4"/>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="#1f77b4"/>'
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scripts", nargs="*", help=f"of {', '.join(SCRIPTS)}; default all")
    parser.add_argument("--draw", action="store_true", help="draw what is kept, and run nothing")
    given = parser.parse_args()
    if not given.draw:
        there = [name for name in SCRIPTS if (FOLDER / f"{name}.py").exists()]
        for script in given.scripts or there:
            run_script(script)
    DRAWING.write_text(drawn(read(HISTORY), machine()), "utf-8")
    print(f"kept in {HISTORY.name}, drawn in {DRAWING.name}")


if __name__ == "__main__":
    main()
