"""Published hourly prices of accelerators, each with its date."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from planner.hw._data import EDITION, load, source_texts


@dataclass(frozen=True, slots=True)
class PriceRow:
    """One published price of one accelerator for an hour [USD].

    `gpus` are the catalogue ids the printed name may stand for. `kind` is on_demand, community
    (hosts of private persons), marketplace, listing_average, spot, reserved, serverless, managed,
    assumption or estimate. `date` is the source's, None where it prints none.
    """

    gpus: tuple[str, ...]
    provider: str
    instance: str
    kind: str
    usd_per_gpu_hour: float
    date: str | None
    source: str


@dataclass(frozen=True, slots=True)
class Price:
    """What an hour of one accelerator costs on demand [USD].

    The median over providers, each counted once with its newest price; `date` is the newest and
    `oldest_date` the oldest date among them.
    """

    gpu: str
    usd_per_gpu_hour: float
    low: float
    high: float
    providers: int
    date: str | None
    oldest_date: str | None
    rows: tuple[PriceRow, ...]

    @property
    def source(self) -> str:
        """Where the prices were printed."""
        return " | ".join(dict.fromkeys(f"{r.provider}: {r.source}" for r in self.rows))


@cache
def load_prices(edition: str = EDITION) -> tuple[PriceRow, ...]:
    """Every price of one dated edition."""
    data = load("prices", edition)
    sources = source_texts(data)
    return tuple(
        PriceRow(**(row | {"gpus": tuple(row["gpus"]), "source": sources[row["source"]]}))
        for row in data["prices"]
    )


def list_prices(gpu_id: str | None = None, kind: str | None = None) -> tuple[PriceRow, ...]:
    """Prices that may be of one catalogue id, of one kind, or all."""
    return tuple(
        row
        for row in load_prices()
        if (gpu_id is None or gpu_id in row.gpus) and (kind is None or row.kind == kind)
    )


def price_per_hour(gpu_id: str | None) -> Price | None:
    """On-demand price of an accelerator, None if none is on record or it is no catalogue part.

    Rows whose printed name leaves the variant open, and undated ones, count only when there is
    nothing better. Spot, reserved, serverless, managed, community and marketplace prices, averages
    of listings, estimates and assumptions never count.
    """
    if gpu_id is None:
        return None
    rows = list_prices(gpu_id, "on_demand")
    for better in (
        [r for r in rows if r.date is not None and len(r.gpus) == 1],
        [r for r in rows if r.date is not None],
    ):
        if better:
            return _summary(gpu_id, better)
    return _summary(gpu_id, list(rows)) if rows else None


def _summary(gpu_id: str, rows: list[PriceRow]) -> Price:
    newest: dict[str, list[PriceRow]] = {}
    for row in rows:
        current = newest.setdefault(row.provider, [])
        if current and (row.date or "") > (current[0].date or ""):
            current.clear()
        if not current or row.date == current[0].date:
            current.append(row)
    used = [row for current in newest.values() for row in current]
    values = [_median([r.usd_per_gpu_hour for r in current]) for current in newest.values()]
    dates = sorted(r.date for r in used if r.date is not None)
    return Price(
        gpu=gpu_id,
        usd_per_gpu_hour=_median(values),
        low=min(values),
        high=max(values),
        providers=len(newest),
        date=dates[-1] if dates else None,
        oldest_date=dates[0] if dates else None,
        rows=tuple(used),
    )


def _median(values: list[float]) -> float:
    # The standard library's `statistics` costs 10 ms to import.
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return round((ordered[middle - 1] + ordered[middle]) / 2, 6)
