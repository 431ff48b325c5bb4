"""A store of a million scenarios: pages, filters, disk, and an export and import by lines.

    PYTHONPATH=. python bench/store.py [--databases sqlite,postgres] [--scenarios N] [--moved N]

Filled by bulk SQL with one real plan. Times of pages are ratios within one run; memory is the peak
of the service's processes.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
from sqlalchemy import Engine, create_engine, text

from api.settings import Settings
from api.store import migrate
from api.store.database import make_engine
from bench.service import QUESTION
from planner import Scenario, plan
from tests.api.postgres import Cluster, cluster

PORT = int(os.environ.get("BENCH_PORT", "8499"))
BASE = f"http://127.0.0.1:{PORT}"
ROUNDS = 15
NUMBERS = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :size)",
    "postgresql": "WITH n(i) AS (SELECT generate_series(0, :size - 1))",
}
IDENT = {
    "sqlite": "'01a00000-0000-7000-8000-' || printf('%012x', i)",
    "postgresql": "'01a00000-0000-7000-8000-' || lpad(to_hex(i), 12, '0')",
}
NAME = """'run ' || i || CASE WHEN i % 100 = 0 THEN ' canary' ELSE '' END
    || CASE WHEN i % 10000 = 0 THEN ' quarterly' ELSE '' END"""
MODELS = (
    "meta-llama/Llama-3.1-8B-Instruct",
    "meta-llama/Llama-3.1-70B-Instruct",
    "meta-llama/Llama-3.3-70B-Instruct",
    "openai/gpt-oss-120b",
    "openai/gpt-oss-20b",
)
GPUS = ("h100-sxm5", "h200-sxm", "b200-sxm", "mi300x", "l40s")


def one_of(values: tuple[str, ...], every: int) -> str:
    """SQL of the values in turn, each for `every` scenarios."""
    cases = " ".join(f"WHEN {n} THEN '{value}'" for n, value in enumerate(values))
    return f"CASE (i / {every}) % {len(values)} {cases} END"


MODEL, GPU = one_of(MODELS, 1), one_of(GPUS, 7)
SCENARIOS = f"""INSERT INTO scenarios (id, workspace, revision, name, model, gpu, words, created_at,
    updated_at, deleted_at) {{numbers}} SELECT {{ident}}, 'default', 1, {NAME}, {MODEL}, {GPU},
    lower({NAME} || ' ' || {MODEL} || ' ' || {GPU}), :time, :time,
    CASE WHEN i % 20 = 19 THEN :time ELSE NULL END FROM n"""  # noqa: S608 - constants alone
REVISIONS = """INSERT INTO scenario_revisions (scenario_id, revision, action, question, plan,
    editions, own, created_at) SELECT id, 1, 'created', :question, :plan, :editions, '{}', :time
    FROM scenarios"""
TAGS = """INSERT INTO scenario_tags (scenario_id, tag) SELECT id, 'prod' FROM scenarios
    WHERE name LIKE '%canary%' OR gpu = 'l40s'"""
FILTERS = {
    "last page": {},
    "model": {"model": MODELS[3]},
    "gpu": {"gpu": GPUS[3]},
    "tag": {"tag": "prod"},
    "deleted": {"deleted": "true"},
    "text that most hold": {"text": "instruct"},
    "text that one in 100 holds": {"text": "canary"},
    "text that one in 270 holds": {"text": "777"},
    "text that one in 10,000 holds": {"text": "quarterly"},
    "text that one holds": {"text": "run 777777"},
    "text that none holds": {"text": "no such words"},
    "text and a model that never meet": {"text": "canary", "model": MODELS[3]},
    "text and accelerator": {"text": "canary", "gpu": GPUS[3]},
}


def fill(settings: Settings, size: int) -> None:
    """Scenarios with one revision each, of which some have tags and some are deleted."""
    migrate.upgrade(settings)
    engine = make_engine(settings, patient=True)
    dialect = engine.dialect.name
    answer = plan(Scenario(**QUESTION))
    time_ = "2026-12-01 00:00:00.000000" + ("+00" if dialect == "postgresql" else "")
    rows = SCENARIOS.format(numbers=NUMBERS[dialect], ident=IDENT[dialect])
    stored = {
        "question": Scenario(**QUESTION).model_dump_json(exclude_unset=True),
        "plan": answer.model_dump_json(),
        "editions": answer.editions.model_dump_json(),
    }
    revisions = REVISIONS
    if dialect == "postgresql":
        rows = rows.replace(":time", "CAST(:time AS timestamptz)")
        for name, kind in (("question", "json"), ("editions", "json"), ("time", "timestamptz")):
            revisions = revisions.replace(f":{name}", f"CAST(:{name} AS {kind})")
    with engine.begin() as connection:
        connection.execute(text(rows), {"size": size, "time": time_})
        connection.execute(text(revisions), {**stored, "time": time_})
        connection.execute(text(TAGS))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        if dialect == "postgresql":  # as its own housekeeping does
            connection.exec_driver_sql("VACUUM ANALYZE")
    engine.dispose()


def disk_bytes(settings: Settings) -> int:
    if settings.sqlite_file is not None:
        return settings.sqlite_file.stat().st_size
    engine = make_engine(settings)
    with engine.connect() as connection:
        size = connection.scalar(text("SELECT pg_database_size(current_database())"))
    engine.dispose()
    return int(size or 0)


@contextlib.contextmanager
def serving(url: str) -> Iterator[int]:
    """A service on a store; yields its process id."""
    environment = {**os.environ, "PLANNER_DATABASE_URL": url, "PLANNER_LOG_LEVEL": "warning"}
    environment |= {"PLANNER_AUTO_MIGRATE": "true", "PLANNER_PORT": str(PORT)}
    command = [sys.executable, "-c", "from planner.cli import main; main()", "serve"]
    server = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    try:
        for _ in range(600):
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{BASE}/health/ready", timeout=5).status_code == 200:
                    break
            time.sleep(0.1)
        yield server.pid
    finally:
        server.terminate()
        server.wait(30)


def pages(size: int) -> None:
    """The first page beside the last one and beside filtered ones, in turns."""
    with httpx.Client(base_url=BASE, timeout=120) as client:
        path, page = "/v1/scenarios", {"limit": 50}
        queries = {"first page": page, **{name: {**page, **q} for name, q in FILTERS.items()}}
        queries["last page"] = {**page, "cursor": last_cursor()}
        times: dict[str, list[float]] = {name: [] for name in queries}
        rows: dict[str, int] = {}
        for _ in range(ROUNDS):
            for name, query in queries.items():
                began = time.perf_counter()
                answer = client.get(path, params=query)
                times[name].append(time.perf_counter() - began)
                rows[name] = len(answer.raise_for_status().json()["items"])
    unfiltered = statistics.median(times["first page"])
    print(f"  pages of 50 of {size:,} scenarios over the first one:")
    for name, each in times.items():
        print(f"    {name} ({rows[name]} rows): {statistics.median(each) / unfiltered:.2f}")


def last_cursor() -> str:
    """A cursor close to the end: those of pages in between are made as the service makes them."""
    from api.scenarios.repository import Filters
    from api.web import cursor

    engine = create_engine(os.environ["BENCH_STORE"])
    with engine.connect() as connection:
        ident = connection.scalar(
            text(
                "SELECT min(id) FROM (SELECT id FROM scenarios WHERE deleted_at IS NULL "
                "ORDER BY id DESC LIMIT 51) AS last"
            )
        )
    engine.dispose()
    return cursor.encode(str(ident), f"default {Filters().fingerprint()}")


class Peak:
    """Watches the memory that a service's processes hold together [byte]."""

    def __init__(self, pid: int) -> None:
        self.pid, self.bytes, self.first = pid, 0, 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Peak:
        self.first = self._now()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._end.wait(0.1):
            self.bytes = max(self.bytes, self._now())

    def _now(self) -> int:
        """The largest process: they share what they were forked with."""
        return max((resident(pid) for pid in family(self.pid)), default=0)


def family(pid: int) -> Iterator[int]:
    yield pid
    with contextlib.suppress(OSError):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii")
        for child in children.split():
            yield from family(int(child))


def resident(pid: int) -> int:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * os.sysconf(
            "SC_PAGE_SIZE"
        )
    return 0


def export(pid: int, file: Path, scenarios: int) -> None:
    with (
        Peak(pid) as peak,
        file.open("wb") as out,
        httpx.stream(
            "GET", f"{BASE}/v1/workspace/lines", params={"limit": scenarios}, timeout=600
        ) as answer,
    ):
        began = time.perf_counter()
        for chunk in answer.raise_for_status().iter_bytes():
            out.write(chunk)
    said("export", scenarios, file, peak, began)


def load(pid: int, file: Path, scenarios: int) -> None:
    with Peak(pid) as peak, file.open("rb") as lines:
        began = time.perf_counter()
        kind = {"Content-Type": "application/x-ndjson"}
        chunks = iter(lambda: lines.read(1 << 16), b"")
        answer = httpx.post(
            f"{BASE}/v1/workspace/lines", content=chunks, headers=kind, timeout=3600
        )
        stored = answer.raise_for_status().json()["scenarios"]
    if stored != scenarios:
        raise SystemExit(f"{stored} scenarios stored, not {scenarios}")
    said("import", scenarios, file, peak, began)


def said(what: str, scenarios: int, file: Path, peak: Peak, began: float) -> None:
    seconds = time.perf_counter() - began
    print(
        f"  {what} of {scenarios:,} scenarios ({file.stat().st_size / 1e6:,.0f} MB): "
        f"{peak.bytes / 1e6:.0f} MB at most ({peak.first / 1e6:.0f} MB before), "
        f"{scenarios / seconds:,.0f} a second"
    )


@contextlib.contextmanager
def stores(kind: str, directory: Path) -> Iterator[tuple[str, str]]:
    """Addresses of two empty databases."""
    if kind == "sqlite":
        yield f"sqlite:///{directory / 'one.db'}", f"sqlite:///{directory / 'two.db'}"
        return
    with cluster() as servers:
        for name in ("one", "two"):
            with admin(servers).connect() as connection:
                connection.exec_driver_sql(f"DROP DATABASE IF EXISTS bench_{name}")
                connection.exec_driver_sql(f"CREATE DATABASE bench_{name}")
        yield servers.url("bench_one"), servers.url("bench_two")


def admin(servers: Cluster) -> Engine:
    return create_engine(servers.url("postgres"), isolation_level="AUTOCOMMIT")


def measure(kind: str, size: int, moved: int) -> None:
    print(kind, flush=True)
    with (
        tempfile.TemporaryDirectory() as directory,
        stores(kind, Path(directory)) as (first, second),
    ):
        settings = Settings(_env_file=None, database_url=first, auto_migrate=True)
        began = time.perf_counter()
        fill(settings, size)
        used = disk_bytes(settings)
        print(
            f"  filled in {time.perf_counter() - began:.0f} s; {used / size:,.0f} bytes of disk "
            f"for a scenario with a plan of 2 points",
            flush=True,
        )
        os.environ["BENCH_STORE"] = settings.url
        file = Path(directory) / "lines"
        with serving(first) as pid:
            pages(size)
            if moved:
                export(pid, file, moved)
        if moved:
            with serving(second) as pid:
                load(pid, file, moved)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--databases", default="sqlite,postgres")
    parser.add_argument("--scenarios", type=int, default=1_000_000)
    parser.add_argument("--moved", type=int, default=200_000)
    given = parser.parse_args()
    for kind in given.databases.split(","):
        measure(kind, given.scenarios, min(given.moved, given.scenarios))


if __name__ == "__main__":
    main()
