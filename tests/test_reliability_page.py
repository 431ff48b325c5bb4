"""The page of reliability figures is made of what the suites record."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.api.record import record
from tests.scripts import ROOT, script

tool = script("reliability")


def test_figures_are_recorded_where_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "record"
    monkeypatch.delenv("PLANNER_TEST_RECORD", raising=False)
    record("kills", "sqlite:///x", lost=0)
    assert not target.exists()
    monkeypatch.setenv("PLANNER_TEST_RECORD", str(target))
    record("kills", "postgresql+psycopg://u:secret@h/d", kills=20, lost=0)
    assert "secret" not in target.read_text()
    assert json.loads(target.read_text()) == {
        "suite": "kills",
        "database": "postgresql",
        "figures": {"kills": 20, "lost": 0},
    }


def test_the_newest_figures_make_a_table_of_each_suite() -> None:
    lines = [
        json.dumps({"suite": suite, "database": database, "figures": figures})
        for suite, database, figures in (
            ("kills", "sqlite", {"kills": 2, "lost": 1}),
            ("kills", "sqlite", {"kills": 20, "lost": 0}),
            ("kills", "postgresql", {"kills": 20, "acknowledged_writes": 7, "lost": 0}),
            ("soak", "sqlite", {"memory_mb": "100 to 101"}),
        )
    ]
    text = tool.page(tool.rows_of(lines), "about\n")
    assert "| database | kills | lost | acknowledged writes |" in text
    assert "| SQLite | 20 | 0 |  |" in text
    assert "| Postgres | 20 | 0 | 7 |" in text
    assert text.index("## Kills") < text.index("## Soak")
    assert "SQLite | 2 |" not in text


def test_every_suite_is_explained() -> None:
    """What tests record has a meaning on the page, and the other way round."""
    sources = [path.read_text() for path in (ROOT / "tests" / "api").glob("test_*.py")]
    for suite in tool.MEANINGS:
        assert any(f'"{suite}"' in text for text in sources), suite
    recorded = {
        text.split('record(\n        "')[1].split('"')[0]
        for text in sources
        if 'record(\n        "' in text
    }
    assert recorded <= set(tool.MEANINGS)


def test_calls_one_after_the_other_fill_one_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Suites that take an hour run some at a time; the newest figures of each are on the page."""
    calls: list[str] = []

    def run(command: list[str], env: dict[str, str], **_: Any) -> Any:
        calls.append(command[-1])
        line = {"suite": command[-1], "database": "sqlite", "figures": {"lost": len(calls)}}
        with Path(env["PLANNER_TEST_RECORD"]).open("a") as out:
            out.write(json.dumps(line) + "\n")
        return SimpleNamespace(returncode=len(calls) - 1)

    monkeypatch.setattr(tool.subprocess, "run", run)
    monkeypatch.setattr(tool, "PAGE", tmp_path / "page.md")
    codes = []
    for suite in ("kills", "soak", "kills"):
        arguments = ["reliability.py", "-k", suite, "--into", str(tmp_path / "record")]
        monkeypatch.setattr("sys.argv", arguments)
        codes.append(tool.main())
    assert (calls, codes) == (["kills", "soak", "kills"], [0, 1, 2])
    text = (tmp_path / "page.md").read_text()
    assert "## Kills" in text
    assert "## Soak" in text
    assert "| SQLite | 3 |" in text
    assert "| SQLite | 2 |" in text
    assert "| SQLite | 1 |" not in text
