"""Tables as directories of Parquet: atomic files, a manifest to go on from, any executor.

A directory holds `_manifest.jsonl` and one file for every part, `model=ID/KEY.parquet`. A file is
there whole or not at all, and the manifest names it after that: a run that was cut off goes on with
the parts that are missing. Parts are made by workers that hold nothing. Workers that share the disk
write what they made; for others the process that asks does, and they need no directory in common.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path

from planner.answer import Editions
from planner.errors import InvalidInput
from planner.plans.editions import current_editions
from planner.plans.table.arrow import arrow, record_batches, schema_of
from planner.plans.table.fields import CONSTANT, fields_of
from planner.plans.table.parts import FORMAT, PART_ROWS, TablePart, parts_of, table_key
from planner.plans.table.request import TableRequest

MANIFEST = "_manifest.jsonl"
"""Readers of directories pass over names that begin so."""
IN_FLIGHT = 8
"""Parts handed to an executor at once by default [-]."""


class OtherTable(InvalidInput):
    """A directory that holds something else; names the field."""


class OtherEditions(InvalidInput):
    """A worker whose data are not those of the process that asks."""


@dataclass(frozen=True, slots=True)
class PartRecord:
    """What the manifest says of a part that is finished."""

    key: str
    path: str
    rows: int
    errors: int
    """Members that are impossible [-]."""
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class TableSummary:
    """A table, as far as it is finished."""

    parts: int
    """Parts in all [-]."""
    finished: int = 0
    """Of them in the directory [-]."""
    made: int = 0
    """Of them made by this run [-]."""
    rows: int = 0
    errors: int = 0
    bytes: int = 0
    seconds: float = 0.0
    """Of this run [s]."""

    def with_part(self, record: PartRecord, made: int = 0) -> TableSummary:
        """Return the summary with one more finished part."""
        return replace(
            self,
            finished=self.finished + 1,
            made=self.made + made,
            rows=self.rows + record.rows,
            errors=self.errors + record.errors,
            bytes=self.bytes + record.bytes,
        )


Progress = Callable[[TableSummary], None]


def write_table(
    request: TableRequest,
    directory: Path,
    executor: Executor | None = None,
    progress: Progress | None = None,
    in_flight: int = IN_FLIGHT,
    part_rows: int = PART_ROWS,
    shares_disk: bool = False,
) -> TableSummary:
    """Write what is missing of a table into a directory, and return what is there.

    `executor` makes parts elsewhere, `in_flight` at a time, and writes them too where it
    `shares_disk` with this process; `progress` is called after each. The files are the same bit for
    bit whoever makes them. Raises OtherTable where the directory holds another table, NoArrow
    without the extra `tables`, and what an executor raises that lost its workers: what is finished
    then stays finished.
    """
    arrow()
    start, editions = time.perf_counter(), current_editions()
    parts = {part.key: part for part in parts_of(request, editions, part_rows)}
    manifest = _Manifest.opened(directory, request, editions)
    summary = TableSummary(parts=len(parts))
    for key, record in manifest.finished().items():
        if key in parts:
            del parts[key]
            summary = summary.with_part(record)
    if progress:
        progress(summary)
    make = partial(store_part, directory) if executor is None or shares_disk else make_part
    for part, made in _made(make, list(parts.values()), editions, executor, in_flight):
        record = made if isinstance(made, PartRecord) else _stored(directory, part, made)
        manifest.add(record)
        elapsed = time.perf_counter() - start
        summary = replace(summary.with_part(record, made=1), seconds=elapsed)
        if progress:
            progress(summary)
    return replace(summary, seconds=time.perf_counter() - start)


@dataclass(frozen=True, slots=True)
class MadePart:
    """The file of a part, not yet written."""

    data: bytes
    rows: int
    errors: int


Make = Callable[[TablePart, Editions], MadePart | PartRecord]


def make_part(part: TablePart, editions: Editions) -> MadePart:
    """Return the file of a part; raises OtherEditions where this process has other data."""
    here = current_editions()
    if here != editions:
        raise OtherEditions(f"editions: a worker has {here}; accepted: {editions}")
    import pyarrow.parquet as parquet

    request = part.request
    schema = schema_of(request).with_metadata(_metadata(part, editions))
    schema = schema.remove(schema.get_field_index("model"))  # the directory's name says it
    data, rows, errors = io.BytesIO(), 0, 0
    columns = fields_of(request.serving, request.limits)
    spread = [f.name for f in columns if f.kind == "figure" and f not in CONSTANT]
    repeated = [f.name for f in columns[1:] if f.name not in spread and f.kind != "flag"]
    ordered = ["gpu", "fits", *(f.name for f in columns if f.kind in {"degree", "count"})]
    with parquet.ParquetWriter(
        data,
        schema,
        compression="lz4",
        use_dictionary=repeated,
        column_encoding=dict.fromkeys(spread, "BYTE_STREAM_SPLIT"),
        write_statistics=ordered,
    ) as writer:
        for batch in record_batches(request, reuse=True):
            rows += batch.num_rows
            errors += batch.num_rows - batch.column("error").null_count
            writer.write_batch(batch.drop_columns(["model"]))
    return MadePart(data.getvalue(), rows, errors)


def store_part(directory: Path, part: TablePart, editions: Editions) -> PartRecord:
    """Make a part and write its file; raises OtherEditions."""
    return _stored(directory, part, make_part(part, editions))


def _metadata(part: TablePart, editions: Editions) -> dict[str, str]:
    return {
        "planner.format": str(FORMAT),
        "planner.version": version("decode-planner"),
        "planner.editions": editions.model_dump_json(),
        "planner.part": part.key,
        "planner.request": part.request.model_dump_json(exclude_defaults=True),
    }


def _made(
    make: Make, parts: list[TablePart], editions: Editions, executor: Executor | None, most: int
) -> Iterator[tuple[TablePart, MadePart | PartRecord]]:
    """Yield parts as they are made, those that are done first first."""
    if executor is None:
        for part in parts:
            yield part, make(part, editions)
        return
    waiting = iter(parts)
    running: dict[Future[MadePart | PartRecord], TablePart] = {}
    try:
        while True:
            for part in waiting:
                running[executor.submit(make, part, editions)] = part
                if len(running) >= most:
                    break
            if not running:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                part = running.pop(future)
                yield part, future.result()
    finally:
        for future in running:
            future.cancel()


def _stored(directory: Path, part: TablePart, made: MadePart) -> PartRecord:
    path = directory / part.path
    path.parent.mkdir(parents=True, exist_ok=True)
    _write(path, made.data)
    digest = hashlib.sha256(made.data).hexdigest()
    return PartRecord(part.key, part.path, made.rows, made.errors, len(made.data), digest)


def _write(path: Path, data: bytes) -> None:
    """Write a file that is there whole or not at all."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    with unfinished.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)


@dataclass(frozen=True, slots=True)
class _Manifest:
    """The finished parts of a table, one a line after a line on the table itself."""

    path: Path

    @classmethod
    def opened(cls, directory: Path, request: TableRequest, editions: Editions) -> _Manifest:
        """Return the manifest of a directory, begun where there is none."""
        path, key = directory / MANIFEST, table_key(request, editions)
        if not path.exists():
            if directory.exists() and any(directory.iterdir()):
                raise OtherTable(
                    f"output: {directory} is not empty and no table; accepted: a new directory"
                )
            directory.mkdir(parents=True, exist_ok=True)
            head = {
                "table": key,
                "format": FORMAT,
                "version": version("decode-planner"),
                "editions": editions.model_dump(),
                "request": request.model_dump(mode="json", exclude_defaults=True),
            }
            _write(path, f"{json.dumps(head)}\n".encode())
        lines = path.read_text("utf-8").splitlines(keepends=True)
        if json.loads(lines[0]).get("table") != key:
            raise OtherTable(
                f"output: {directory} holds a table of other axes or editions; accepted: a new "
                f"directory, or the axes in {path.name}"
            )
        if not lines[-1].endswith("\n"):  # cut off while it was written
            _write(path, "".join(lines[:-1]).encode())
        return cls(path)

    def finished(self) -> dict[str, PartRecord]:
        """Return the parts whose files are there, by key."""
        lines = self.path.read_text("utf-8").splitlines()[1:]
        records = (PartRecord(**json.loads(line)) for line in lines)
        return {r.key: r for r in records if _size(self.path.parent / r.path) == r.bytes}

    def add(self, record: PartRecord) -> None:
        """Append a finished part, on the disk when this returns."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(asdict(record))}\n")
            file.flush()
            os.fsync(file.fileno())


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.exists() else None
