"""Run the suites of faults, fuzz and load, and write docs/RELIABILITY.md with the figures of it.

    python tools/reliability.py [--soak-minutes 10] [-k EXPRESSION] [--into RECORD] [--from RECORD]

With `-k` some of them; `--into` adds to a record that earlier calls began, of which the page has
the newest figures of each suite; `--from` only writes the page of one. The suites are tests marked
`reliability`; what they count, they add to the file that PLANNER_TEST_RECORD names.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "RELIABILITY.md"
NAMES = {"sqlite": "SQLite", "postgresql": "Postgres"}
MEANINGS = {
    "kills": "four writers, SIGKILL at a random moment, then every acknowledged write is looked up",
    "starvation": "plans beside writes and lists on a locked store, refits and sweeps, four times "
    "as many clients as the lanes have places; each plan is another question",
    "live beside sweeps": "`/health/live` beside two clients that sweep 100,000 rows without end",
    "disk full": "no file of the service may grow; plans go on, and writes when there is room",
    "Postgres stopped and started": "until `ready` says so, and until it is well again",
    "Postgres frozen": "SIGSTOP for all its processes, with 24 readers waiting; plans go on",
    "storm of 120 clients": "answers by status in ten seconds",
    "mutated bodies": "answers by status; none of 500 and beyond",
    "soak": "sixteen clients that plan, sweep, store, change, read, list, compare and are refused",
    "40 slow and half-closed clients": "and two good ones beside them",
    "migrations killed": "each leaves the revision before or the newest",
    "rolling restart of two services behind nginx": "each taken out of the proxy, stopped, started",
}
HEAD = """\
# Reliability, as measured

Written by `python tools/reliability.py`, which runs the tests marked `reliability`; a change that
breaks one of them fails `make test-all`. Figures are of the newest run of each suite on one machine
and say what was seen, not what is promised; see
[operating.md](operating.md#limits-of-what-is-promised) for that.

"""


def rows_of(lines: Iterable[str]) -> list[dict[str, Any]]:
    """Return the newest figures of every suite on every database, in the order they came."""
    newest: dict[tuple[str, str], dict[str, Any]] = {}
    for line in lines:
        row = json.loads(line)
        newest[row["suite"], row["database"]] = row
    return list(newest.values())


def page(rows: list[dict[str, Any]], about: str) -> str:
    """Return the page: a table of every suite's figures."""
    parts = [HEAD + about]
    for suite in dict.fromkeys(row["suite"] for row in rows):
        mine = [row for row in rows if row["suite"] == suite]
        columns = list(dict.fromkeys(name for row in mine for name in row["figures"]))
        heading = suite[0].upper() + suite[1:]
        shown = [name.replace("_", " ") for name in columns]
        parts += [f"\n## {heading}\n\n{_sentence(MEANINGS[suite])}\n"]
        parts += [f"| database | {' | '.join(shown)} |", f"|---|{'---|' * len(columns)}"]
        for row in mine:
            cells = [str(row["figures"].get(name, "")) for name in columns]
            parts.append(f"| {NAMES.get(row['database'], row['database'])} | {' | '.join(cells)} |")
    return "\n".join(parts) + "\n"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def machine() -> str:
    """Return what the figures were measured on."""
    today = datetime.now(UTC).date().isoformat()
    return (
        f"{today}, CPython {platform.python_version()}, {platform.system()} on "
        f"{os.cpu_count()} processors, client and service on the same ones; "
        f"load average {os.getloadavg()[2]:.0f}, which other work on the machine is in: times are "
        f"of a machine so busy, and only ratios within a row say much.\n"
    )


def main() -> int:
    """Run the suites and write the page; return the exit code of the tests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--soak-minutes", type=float, default=10)
    parser.add_argument("-k", dest="some", default="")
    parser.add_argument("--into", type=Path)
    parser.add_argument("--from", dest="record", type=Path)
    options = parser.parse_args()
    code = 0
    with tempfile.TemporaryDirectory() as directory:
        record = (options.record or options.into or Path(directory) / "record").absolute()
        if options.record is None:
            environment = {
                **os.environ,
                "PLANNER_TEST_RECORD": str(record),
                "PLANNER_TEST_SOAK_S": str(60 * options.soak_minutes),
                "PLANNER_TEST_EXAMPLES": "1000",
            }
            command = [sys.executable, "-m", "pytest", "-m", "reliability", "-k", options.some]
            code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode  # noqa: S603 - pytest, with fixed arguments
        PAGE.write_text(page(rows_of(record.read_text().splitlines()), machine()))
    return code


if __name__ == "__main__":
    sys.exit(main())
