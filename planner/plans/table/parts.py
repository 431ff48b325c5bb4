"""Parts: what of a table is made at once, named by its content, so that nothing is made twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from planner.answer import Editions
from planner.hw import get_accelerator
from planner.models import get_model
from planner.plans.table.request import TableRequest

PART_ROWS = 2_000_000
"""Rows of a part at most, so that one fits in the memory of a worker and in a message [-]."""
FORMAT = 1
"""Of the files: grows with any change of columns or of what they hold."""


@dataclass(frozen=True, slots=True)
class TablePart:
    """A share of a table: one model on some accelerators, at some loads."""

    request: TableRequest
    key: str
    """Of the content: what is asked, and of which editions of the data."""

    @property
    def path(self) -> str:
        """Where its file is in the directory of the table, partitioned by model."""
        model = self.request.model[0]
        name = model if isinstance(model, str) else _id_of(model)
        return f"model={quote(name, safe='')}/{self.key}.parquet"

    @property
    def rows(self) -> int:
        """Rows if every member is possible [-]."""
        return self.request.members * self.request.points


def _id_of(model: dict[str, Any]) -> str:
    return str(model.get("id") or f"inline {content_key(model)[:8]}")


def content_key(content: object) -> str:
    """Return the digest of anything that JSON can say."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def table_key(request: TableRequest, editions: Editions) -> str:
    """Return what names a table: its axes, and the editions of the data."""
    return content_key([FORMAT, request.model_dump(mode="json"), editions.model_dump()])


def parts_of(request: TableRequest, editions: Editions, rows: int = PART_ROWS) -> list[TablePart]:
    """Return the parts of a table of about `rows` rows at most, each once.

    A model or an accelerator that is named twice, or by two of its names, is made once.
    """
    parts: dict[str, TablePart] = {}
    models = _unique([_model_name(model) for model in request.model])
    gpus = _unique([_gpu_name(gpu) for gpu in request.gpu])
    for model in models:
        for share in _shares(request.model_copy(update={"model": [model], "gpu": gpus}), rows):
            key = table_key(share, editions)
            parts.setdefault(key, TablePart(share, key))
    return list(parts.values())


def _shares(request: TableRequest, rows: int) -> Iterator[TableRequest]:
    """Yield shares of the accelerators; where one is too many rows, of the first axis of loads."""
    each = request.members * request.points // len(request.gpu)
    for gpus in _groups(request.gpu, max(1, rows // each)):
        share = request.model_copy(update={"gpu": gpus})
        axis = request.load_axes[0]
        values = getattr(request, axis)
        for some in _groups(values, max(1, rows // max(1, len(gpus) * each // len(values)))):
            yield share.model_copy(update={axis: some})


def _groups(values: list[Any], most: int) -> Iterator[list[Any]]:
    for start in range(0, len(values), most):
        yield values[start : start + most]


def _unique(values: list[Any]) -> list[Any]:
    return list({json.dumps(value, sort_keys=True): value for value in values}.values())


def _model_name(model: str | dict[str, Any]) -> str | dict[str, Any]:
    """Return a model's own id, or what its config.json says, which other machines cannot read.

    What is unknown stays as it is, and is refused in its row.
    """
    if isinstance(model, dict):
        return model
    path = Path(model)
    if path.is_dir():
        path /= "config.json"
    if path.suffix == ".json" and path.is_file():
        config: dict[str, Any] = json.loads(path.read_text("utf-8"))
        return config
    try:
        return get_model(model, local=False).id
    except ValueError:
        return model


def _gpu_name(gpu: str | dict[str, Any]) -> str | dict[str, Any]:
    if isinstance(gpu, dict):
        return gpu
    try:
        return get_accelerator(gpu).id
    except ValueError:
        return gpu
