"""The accelerators that the planner knows, looked up by id, alias, object or file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from os import PathLike, fspath
from typing import Any

from planner.errors import InvalidInput
from planner.hw._data import EDITION, load, source_texts
from planner.hw.accelerator import Accelerator
from planner.hw.figure import WEAK, Figure, Link, Measured

VENDOR_WORDS = (
    "nvidia",
    "amd",
    "intel",
    "google",
    "aws",
    "apple",
    "huawei",
    "geforce",
    "tesla",
    "instinct",
    "radeon",
)
UNITS = {
    "memory_bytes": "bytes",
    "bandwidth_bytes_per_s": "bytes/s",
    "l2_bytes": "bytes",
    "sm_count": "count",
    "tdp_w": "W",
    "domain_size": "accelerators",
}

MEASURED_UNITS = {"flops_per_s": "FLOP/s", "bytes_per_s": "bytes/s", "per_byte": "FLOP/byte"}


class UnknownAccelerator(InvalidInput):
    """No accelerator has that name."""


class Catalogue(Mapping[str, Accelerator]):
    """Accelerators by id; each is built when it is first looked up."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.edition: str = data["edition"]
        self.aliases: Mapping[str, str] = data["aliases"]
        self._sources = source_texts(data)
        self._rows: dict[str, dict[str, Any]] = {row["id"]: row for row in data["accelerators"]}
        self._built: dict[str, Accelerator] = {}
        self._names: dict[str, str] = {}
        for ident, row in self._rows.items():
            self._names.setdefault(_squeeze(row["name"]), ident)
        for alias, ident in self.aliases.items():
            self._names[_squeeze(alias)] = ident
        for ident in self._rows:
            self._names[_squeeze(ident)] = ident

    def __getitem__(self, ident: str) -> Accelerator:
        if ident not in self._built:
            self._built[ident] = _build(self._rows[ident], self._sources)
        return self._built[ident]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def resolve(self, name: str) -> str:
        """Id of an accelerator from its id, alias or name, in any case and spacing.

        Raises:
            UnknownAccelerator: nothing has that name; the message lists the nearest.
        """
        key = _squeeze(name)
        for candidate in (key, *_without_vendor(key)):
            if candidate in self._names:
                return self._names[candidate]
        nearest = ", ".join(self._nearest(key))
        raise UnknownAccelerator(f"gpu: unknown accelerator {name[:60]!r}; nearest: {nearest}")

    def _nearest(self, key: str) -> list[str]:
        from difflib import get_close_matches

        close = get_close_matches(key[:60], self._names, n=8, cutoff=0.3)
        starts = [n for n in self._names if key and n.startswith(key)]
        ids = dict.fromkeys(self._names[n] for n in (*starts, *close))
        return list(ids)[:5] or ["h100-sxm5", "h200-sxm", "b200-sxm", "mi300x"]


@cache
def load_catalogue(edition: str = EDITION) -> Catalogue:
    """Catalogue of one dated edition, read once.

    Raises:
        ValueError: there is no such edition.
    """
    return Catalogue(load("accelerators", edition))


def edition() -> str:
    """Date of the hardware data in use."""
    return EDITION


def get_accelerator(
    gpu: str | PathLike[str] | Mapping[str, object] | Accelerator, *, allow_files: bool = True
) -> Accelerator:
    """Accelerator from a catalogue name, a user's object, or a `.json` or `.toml` file.

    An object may name a catalogue entry as `base` and then only needs the fields it changes and
    their `source`; without an `id` of its own it stays that part to calibration and prices. A
    service that answers strangers passes `allow_files=False`.

    Raises:
        UnknownAccelerator: no accelerator has that name.
        InvalidAccelerator: a user's accelerator is not acceptable.
    """
    if isinstance(gpu, Accelerator):
        return gpu
    if isinstance(gpu, Mapping):
        return _from_fields(gpu)
    name = fspath(gpu)
    if allow_files and name.lower().endswith((".json", ".toml")):
        from planner.hw.inline import read_fields

        return _from_fields(read_fields(name))
    catalogue = load_catalogue()
    return catalogue[catalogue.resolve(name)]


def _from_fields(given: Mapping[str, object]) -> Accelerator:
    from planner.hw import inline  # only a user's own accelerator needs it

    fields = dict(given)
    base = fields.pop("base", None)
    if base is None:
        return inline.accelerator_from(fields)
    return inline.override(get_accelerator(str(base), allow_files=False), fields)


def list_accelerators(
    vendor: str | None = None,
    kind: str | None = None,
    min_memory_bytes: float | None = None,
    format: str | None = None,  # noqa: A002 - the field's own word
    status: str | None = None,
    text: str | None = None,
) -> list[Accelerator]:
    """Accelerators that satisfy every given condition, in catalogue order.

    `format` keeps those with a peak on record for it; `text` is looked for in id, name, vendor and
    architecture. Accelerators without a memory size fail `min_memory_bytes`.
    """
    matching = []
    for acc in load_catalogue().values():
        words = f"{acc.id} {acc.name} {acc.vendor} {acc.architecture}".lower()
        matches = (
            (vendor is None or acc.vendor.lower() == vendor.lower())
            and (kind is None or acc.kind == kind.lower())
            and (min_memory_bytes is None or (acc.memory_bytes or 0) >= min_memory_bytes)
            and (format is None or format.lower() in acc.peaks_flops_per_s)
            and (status is None or acc.status == status.lower())
            and (text is None or text.lower() in words)
        )
        if matches:
            matching.append(acc)
    return matching


def _squeeze(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _without_vendor(key: str) -> Iterator[str]:
    """Yield the name with leading vendor and brand words taken off, one at a time."""
    stripped = True
    while stripped:
        stripped = False
        for word in VENDOR_WORDS:
            if key.startswith(word) and key != word:
                key = key[len(word) :]
                stripped = True
                yield key


Sources = Mapping[str | int, str]


def _build(row: Mapping[str, Any], sources: Sources) -> Accelerator:
    name, speed = row["link"]
    link = Link(name, speed, row.get("pair_bytes_per_s"))
    numbers = {key: (row[key], unit) for key, unit in UNITS.items() if key in row}
    if link.bytes_per_s is not None:
        numbers["link_bytes_per_s"] = (link.bytes_per_s, "bytes/s")
    for fmt, value in row["peaks"].items():
        unit = "OP/s" if fmt.startswith("int") else "FLOP/s"
        numbers[f"peaks_flops_per_s.{fmt}"] = (value, unit)
    figures = {k: _figure(k, v, unit, row, sources) for k, (v, unit) in numbers.items()}
    also: dict[str, tuple[Figure, ...]] = {}
    for key, value, where in row.get("also_published", ()):
        figure = Figure(value, figures[key].unit, sources[where], "third_party")
        also[key] = (*also.get(key, ()), figure)
    return Accelerator(
        id=row["id"],
        name=row["name"],
        vendor=row["vendor"],
        architecture=row["architecture"],
        kind=row["kind"],
        year=row.get("year"),
        peaks_flops_per_s=row["peaks"],
        bandwidth_bytes_per_s=row["bandwidth_bytes_per_s"],
        memory_bytes=row.get("memory_bytes"),
        l2_bytes=row.get("l2_bytes"),
        sm_count=row.get("sm_count"),
        tdp_w=row.get("tdp_w"),
        link=link,
        domain_size=row.get("domain_size"),
        pcie=row.get("pcie"),
        form_factor=row.get("form_factor"),
        status=row["status"],
        figures=figures,
        confidence=row["confidence"],
        cross_check=row.get("cross_check"),
        memory_type=row.get("memory_type"),
        measured=tuple(_measured(item, sources) for item in row.get("measured", ())),
        notes=tuple(row.get("notes", ())),
        also_published=also,
        unread_formats=tuple(row.get("unread", ())),
        runs_in=row.get("runs_in", {}),
        part=row["id"],
    )


def _figure(name: str, value: float, unit: str, row: Mapping[str, Any], sources: Sources) -> Figure:
    """One figure of a row, under its own sources where the row states some for it or its group."""
    stated = row.get("figures", {})
    own = stated.get(name) or stated.get(name.partition(".")[0]) or {}
    keys = own.get("sources", row["sources"])
    text = " | ".join(sources[key] for key in keys)
    return Figure(value, unit, text, _confidence(keys, own.get("confidence", row["confidence"])))


def _confidence(keys: Iterable[str | int], stated: str) -> str:
    """Confidence of a figure: that of its sources where their keys say that they are weak."""
    kinds = {str(key).partition("-")[0] for key in keys}
    return next((weak for weak in WEAK if kinds == {weak}), stated)


def _measured(item: list[Any], sources: Sources) -> Measured:
    metric, fmt, value, where, note = item
    unit = next(u for end, u in MEASURED_UNITS.items() if metric.endswith(end))
    figure = Figure(value, unit, sources[where], _confidence([where], "measured"))
    return Measured(metric, fmt, figure, note)
