"""Every migration up, down and up again with rows in place, on both databases."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect, select, text

from api.settings import Settings
from api.store import migrate
from api.store.backup import BadBackup, backup, restore
from api.store.database import make_engine
from api.store.tables import Base
from tests.api.conftest import another_database, make_everything, make_settings, started

REVISIONS = ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008")
KEPT = {
    "0001": ("scenarios", "scenario_revisions", "scenario_tags", "api_keys", "idempotency_keys"),
    "0002": ("own_objects", "comparisons"),
    "0003": ("measurements", "calibrations"),
    "0004": (),
    "0005": (),
    "0006": (),
    "0007": ("changes",),
    "0008": (),
}
"""Tables that came with a revision, those left out whose rows expire by themselves."""
LATER = ("own", "engine", "computed_with")
"""Columns that came after their table."""


def digest(settings: Settings, table: str, leave_out: tuple[str, ...] = ()) -> str:
    """A digest of all rows of a table."""
    engine = make_engine(settings)
    with engine.connect() as connection:
        rows = connection.execute(text(f"SELECT * FROM {table}")).mappings().all()  # noqa: S608
    engine.dispose()
    content = sorted(
        json.dumps({k: str(v) for k, v in row.items() if k not in leave_out}, sort_keys=True)
        for row in rows
    )
    assert content, f"{table} is empty"
    return hashlib.sha256("\n".join(content).encode()).hexdigest()


@pytest.fixture
def filled(settings: Settings, question: dict[str, Any]) -> Settings:
    """A store with rows in every table."""
    from api.system.keys import Keys

    with started(settings) as client:
        make_everything(client)
        client.post("/v1/scenarios", json=question, headers={"Idempotency-Key": "k"})
        Keys(client.app.state.services.database).create("w", "n", "read")
    return settings


def test_the_tables_are_as_the_models_say(settings: Settings) -> None:
    migrate.upgrade(settings)
    assert migrate.current(settings) == migrate.head() == REVISIONS[-1]
    assert migrate.differences(settings) == []


def test_empty_up_down_up(settings: Settings) -> None:
    migrate.upgrade(settings)
    migrate.downgrade(settings, "base")
    engine = make_engine(settings)
    assert inspect(engine).get_table_names() == ["alembic_version"]
    engine.dispose()
    for revision in REVISIONS:
        migrate.upgrade(settings, revision)
        assert migrate.current(settings) == revision
    assert migrate.differences(settings) == []


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_step_down_and_up_keeps_older_rows(filled: Settings, revision: str) -> None:
    older = [table for name in REVISIONS if name < revision for table in KEPT[name]]
    before = {table: digest(filled, table, LATER) for table in older}
    below = ("base", *REVISIONS)[REVISIONS.index(revision)]
    migrate.downgrade(filled, below)
    assert {table: digest(filled, table, LATER) for table in older} == before
    migrate.upgrade(filled)
    assert {table: digest(filled, table, LATER) for table in older} == before
    assert migrate.differences(filled) == []
    with started(filled) as client:
        items = client.get("/v1/scenarios").json()["items"]
        assert bool(items) is bool(older)
        for item in items:
            assert client.get(f"/v1/scenarios/{item['id']}/plan").status_code == 200


def test_what_lists_filter_by_is_filled_in(filled: Settings) -> None:
    """Stepping back drops the columns; stepping forward computes them from the revisions."""
    query = text("SELECT id, engine, computed_with FROM scenarios ORDER BY id")

    def rows() -> list[Any]:
        engine = make_engine(filled)
        with engine.connect() as connection:
            result = [tuple(row) for row in connection.execute(query)]
        engine.dispose()
        return result

    with started(filled) as client:
        engines = {"engine": "vllm", "tp": 1, "model": "meta-llama/Llama-3.1-8B-Instruct"}
        body = {"gpu": "h100-sxm5", "batch": [1], **engines}
        assert client.post("/v1/scenarios", json=body).status_code == 201
    before = rows()
    assert {row[1] for row in before} == {None, "vllm"}
    assert all(row[2].count(" ") == 3 for row in before)
    migrate.downgrade(filled, "0006")
    migrate.upgrade(filled)
    assert rows() == before


def test_a_store_of_another_revision_is_refused(settings: Settings) -> None:
    migrate.upgrade(settings, "0001")
    with pytest.raises(migrate.WrongRevision, match="planner db upgrade"):
        migrate.require(settings)


def test_processes_that_start_together_migrate_once(database_url: str) -> None:
    code = (
        "from api.store import migrate; from api.settings import Settings; "
        "migrate.upgrade(Settings(_env_file=None)); print(migrate.current(Settings()))"
    )
    env = {**os.environ, "PLANNER_DATABASE_URL": database_url}
    running = [
        subprocess.Popen([sys.executable, "-c", code], env=env, stdout=-1, stderr=-1, text=True)
        for _ in range(3)
    ]
    for process in running:
        out, errors = process.communicate(timeout=60)
        assert (process.returncode, out.strip(), errors) == (0, REVISIONS[-1], "")


def test_a_kill_while_migrating_leaves_one_revision_or_the_other(tmp_path: Path) -> None:
    code = (
        "import sys; from api.store import migrate; from api.settings import Settings; "
        "print('go', flush=True); migrate.upgrade(Settings(_env_file=None))"
    )
    for round_ in range(4):
        url = f"sqlite:///{tmp_path / f'{round_}.db'}"
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            env={**os.environ, "PLANNER_DATABASE_URL": url},
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.01 + 0.02 * round_)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        settings = make_settings(url)
        assert migrate.current(settings) in {"base", REVISIONS[-1]}
        migrate.upgrade(settings)
        assert migrate.differences(settings) == []


@pytest.mark.parametrize("into", ["sqlite", "postgres"])
def test_a_backup_restores_into_either_database(
    filled: Settings, into: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    tables = [table for names in KEPT.values() for table in names]
    file = tmp_path / "store.backup"
    counts = backup(filled, file)
    assert set(counts) == set(tables)
    (tmp_path / "other").mkdir()
    with another_database(into, request, tmp_path / "other") as url:
        restored = make_settings(url)
        assert restore(restored, file) == counts
        for table in tables:
            assert rows_of(restored, table) == rows_of(filled, table)
        with started(restored) as client, started(filled) as original:
            for path in ("/v1/scenarios", "/v1/comparisons", "/v1/measurements", "/v1/about"):
                assert client.get(path).json() == original.get(path).json()
        with pytest.raises(BadBackup, match="not empty"):
            restore(restored, file)


def rows_of(settings: Settings, name: str) -> list[tuple[Any, ...]]:
    table = Base.metadata.tables[name]
    engine = make_engine(settings)
    with engine.connect() as connection:
        rows = connection.execute(select(table).order_by(*table.primary_key.columns)).all()
    engine.dispose()
    return [tuple(row) for row in rows]


@pytest.mark.parametrize("share", [0.2, 0.9])
def test_a_backup_that_is_not_whole_restores_nothing(
    filled: Settings, tmp_path: Path, share: float
) -> None:
    file = tmp_path / "store.backup"
    backup(filled, file)
    whole = file.read_bytes()
    file.write_bytes(whole[: int(len(whole) * share)])
    empty = make_settings(f"sqlite:///{tmp_path / 'empty.db'}")
    with pytest.raises(BadBackup, match="not a whole backup"):
        restore(empty, file)
    file.write_bytes(gzip.compress(gzip.decompress(whole).splitlines(keepends=True)[0]))
    with pytest.raises(BadBackup, match="not whole"):
        restore(empty, file)
    with started(empty) as client:
        assert client.get("/v1/scenarios").json()["items"] == []


def test_a_store_of_a_newer_release_is_said_in_one_line(filled: Settings) -> None:
    move(filled, "9999")
    for attempt in (migrate.upgrade, migrate.require, migrate.differences):
        with pytest.raises(migrate.WrongRevision, match=r"9999, of a newer release.*install the"):
            attempt(filled)
    with pytest.raises(migrate.WrongRevision, match="newer release"):
        migrate.downgrade(filled, "base")


def move(settings: Settings, revision: str) -> None:
    engine = make_engine(settings)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :to"), {"to": revision})
    engine.dispose()


def test_a_service_whose_schema_moved_is_not_ready(filled: Settings) -> None:
    with started(filled) as client:
        assert client.get("/health/ready").status_code == 200
        move(filled, "9999")
        answer = client.get("/health/ready")
        assert answer.status_code == 503
        assert "revision 9999" in answer.json()["detail"]
        assert client.get("/health/live").status_code == 200


def test_what_migrating_back_drops_is_known_before(filled: Settings) -> None:
    gone = migrate.lost(filled, "0001")
    assert gone.pop("changes") >= 6
    assert gone == {"own_objects": 2, "comparisons": 1, "measurements": 1, "calibrations": 1}
    assert migrate.current(filled) == REVISIONS[-1]
    assert migrate.lost(filled, REVISIONS[-1]) == {}
