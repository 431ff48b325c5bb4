"""Blocks as Arrow record batches, many blocks in one (needs the extra `tables`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.errors import InvalidInput
from planner.plans.table.blocks import TableBlock, blocks
from planner.plans.table.fields import BOUND_NAMES, DTYPES, MISSING, Field, fields_of
from planner.plans.table.request import TableRequest
from planner.step.buffers import Buffers

if TYPE_CHECKING:
    import pyarrow

BATCH_ROWS = 131_072
"""Rows of a record batch at most [-]."""


class NoArrow(InvalidInput):
    """Arrow is not installed."""


def arrow() -> Any:
    """Return the module pyarrow; raises NoArrow where it is not installed."""
    try:
        import pyarrow
    except ImportError as error:
        raise NoArrow("table: pyarrow is not installed; accepted: the extra `tables`") from error
    return pyarrow


def record_batches(
    request: TableRequest, rows: int = BATCH_ROWS, reuse: bool = False
) -> Iterator[pyarrow.RecordBatch]:
    """Yield a table as record batches of `rows` rows at most, in memory that does not grow.

    Figures are 32-bit floats, null where there is none; names are dictionaries. With `reuse` the
    arrays of a batch hold until the next one: for a consumer that is done with it by then. Raises
    NoArrow without the extra `tables`.
    """
    pa = arrow()
    gathered = _Gathered(fields_of(request.serving, request.limits), rows)
    for block in blocks(request, Buffers()):
        done = 0
        while done < block.rows:
            done += gathered.add(block, done)
            if gathered.full:
                yield gathered.batch(pa)
                gathered = gathered.emptied(reuse)
    if gathered.size:
        yield gathered.batch(pa)


def schema_of(request: TableRequest) -> pyarrow.Schema:
    """Return the schema of a table, without metadata."""
    pa = arrow()
    return _Gathered(fields_of(request.serving, request.limits), 0).batch(pa).schema


class _Gathered:
    """Rows on their way into a record batch, column by column."""

    def __init__(self, fields: tuple[Field, ...], rows: int) -> None:
        self._fields = fields
        self._rows = rows
        self._arrays = {field.name: np.empty(rows, DTYPES[field.kind]) for field in fields}
        self._clear()

    def _clear(self) -> None:
        self.size = 0
        self._gaps: set[str] = set()
        self._words: dict[str, dict[str, int]] = {f.name: {} for f in self._fields}

    @property
    def full(self) -> bool:
        return self.size == self._rows

    def emptied(self, reuse: bool) -> _Gathered:
        """Return one without rows: the same where its arrays may be overwritten."""
        if not reuse:
            return _Gathered(self._fields, self._rows)
        self._clear()
        return self

    def add(self, block: TableBlock, start: int) -> int:
        """Take the rows of a block from `start` on, as many as there is room for; return them."""
        taken = min(block.rows - start, self._rows - self.size)
        into = slice(self.size, self.size + taken)
        whole = start == 0 and taken == block.rows
        for field in self._fields:
            values = self._values(field, block)
            target = self._arrays[field.name][into]
            if np.ndim(values) == 0:
                target.fill(values)
            elif whole:
                np.copyto(target.reshape(block.shape), values, casting="unsafe")
            else:
                flat = np.broadcast_to(values, block.shape).ravel()
                np.copyto(target, flat[start : start + taken], casting="unsafe")
        self.size += taken
        return taken

    def _values(self, field: Field, block: TableBlock) -> Any:
        """Return what a block has of a field: a value for all rows, or an array."""
        name = field.name
        column = block.columns.get(name)
        if column is not None:
            if field.kind == "count" and np.isnan(column).any():
                self._gaps.add(name)
                return np.where(np.isnan(column), MISSING, column)
            if field.kind == "figure" and column.size <= block.shape[-1]:
                self._gaps |= {name} if np.isnan(column).any() else set()
            return column
        value = block.error if name == "error" else block.keys.get(name, block.constants.get(name))
        if value is None:
            self._gaps.add(name)
            return np.nan if field.kind == "figure" else MISSING
        if isinstance(value, str):
            words = self._words[name]
            return words.setdefault(value, len(words))
        return value

    def batch(self, pa: Any) -> pyarrow.RecordBatch:
        """Return the rows as a record batch of the same memory."""
        columns = {field.name: self._column(field, pa) for field in self._fields}
        return pa.record_batch(columns)

    def _column(self, field: Field, pa: Any) -> pyarrow.Array:
        values = self._arrays[field.name][: self.size]
        missing = None
        if field.name in self._gaps:
            missing = np.isnan(values) if field.kind == "figure" else values == MISSING
        match field.kind:
            case "text":
                words = pa.array(list(self._words[field.name]), pa.string())
                return pa.DictionaryArray.from_arrays(pa.array(values, mask=missing), words)
            case "bound":
                return pa.DictionaryArray.from_arrays(pa.array(values, mask=missing), BOUND_NAMES)
            case "flag":
                return pa.array(values == 1, mask=missing)
            case _:
                return pa.array(values, mask=missing)
