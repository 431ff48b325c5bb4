"""The jobs of docs/jobs, done as a new user would: every command prints what stands there."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.plans import money
from tests.scripts import script

JOBS = script("write_jobs")
PAGES = sorted(Path(__file__).parents[2].glob("docs/jobs/*.md"))
RUNS = [
    pytest.param(command, shown, id=f"{page.stem}-{i}")
    for page in PAGES
    for i, (command, shown) in enumerate(JOBS.commands(page.read_text("utf-8")))
]


@pytest.mark.parametrize(("command", "shown"), RUNS)
def test_the_output_is_that_of_the_command(
    command: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(money, "date", JOBS.Day)
    monkeypatch.chdir(PAGES[0].parents[2])
    assert JOBS.output(command) == shown


def test_there_are_four_jobs() -> None:
    assert len(PAGES) == 4
    assert len(RUNS) >= 4
