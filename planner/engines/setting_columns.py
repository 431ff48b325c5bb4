"""MemorySettings of an engine's memory in the columns of measured rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from planner.engines.settings import InvalidSetting, Lora, MemorySettings

COLUMNS = {"gpu_memory_utilization": "memory_fraction"}
"""Names under which rows of runs give a setting."""


def settings_of(row: Mapping[str, str]) -> MemorySettings:
    """Return the settings that the columns of a row of runs give; blank cells are defaults.

    `lora` is adapters:rank; switches are on, off, 1 or 0. Raises InvalidSetting.
    """
    values: dict[str, Any] = {}
    for each in fields(MemorySettings):
        names = [each.name, *(column for column, name in COLUMNS.items() if name == each.name)]
        cell = next((row[name].strip() for name in names if (row.get(name) or "").strip()), "")
        if cell:
            try:
                values[each.name] = _CELLS.get(each.name, _whole)(cell)
            except ValueError:
                raise InvalidSetting(
                    f"{each.name}: {cell[:40]!r} is not such a setting; accepted: "
                    f"{_ACCEPTED.get(each.name, 'a whole number')}"
                ) from None
    return MemorySettings(**values)


def _whole(cell: str) -> int:
    number = float(cell)
    if number != int(number) or number < 0:
        raise ValueError(cell)
    return int(number)


def _share(cell: str) -> float:
    number = float(cell)
    if not 0 < number <= 1:
        raise ValueError(cell)
    return number


def _size(cell: str) -> float:
    number = float(cell)
    if not 0 <= number < float("inf"):
        raise ValueError(cell)
    return number


def _switch(cell: str) -> bool:
    try:
        return {"on": True, "1": True, "true": True, "off": False, "0": False, "false": False}[
            cell.lower()
        ]
    except KeyError:
        raise ValueError(cell) from None


def _graphs(cell: str) -> str | int:
    return cell.lower() if cell.lower() in ("on", "off") else _whole(cell)


def _lora(cell: str) -> Lora:
    adapters, _, rank = cell.partition(":")
    return Lora(_whole(adapters), _whole(rank))


_CELLS: Mapping[str, Any] = {
    "memory_fraction": _share,
    "kv_pool_bytes": _size,
    "kv_offload_bytes": _size,
    "prefix_caching": _switch,
    "chunked_prefill": _switch,
    "vision": _switch,
    "graphs": _graphs,
    "lora": _lora,
}
_ACCEPTED = {
    "memory_fraction": "a share above 0, 1 at most",
    "kv_pool_bytes": "bytes, 0 or more",
    "kv_offload_bytes": "bytes, 0 or more",
    "prefix_caching": "on or off",
    "chunked_prefill": "on or off",
    "vision": "on or off",
    "graphs": "on, off or a batch",
    "lora": "ADAPTERS:RANK",
}
