"""What one accelerator is: peaks, bandwidth, memory and links, each with its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from planner.errors import InvalidInput
from planner.hw.figure import WEAK, Figure, Link, Measured
from planner.hw.formats import CHAINS, FORMATS, MEASURED_FORMATS, UnsupportedFormat
from planner.units import scaled

BANDWIDTH_METRICS = (
    "stream_bytes_per_s",
    "weight_read_bytes_per_s",
    "device_copy_bytes_per_s",
    "memory_write_bytes_per_s",
)


class MissingFigure(InvalidInput):
    """A figure that an answer needs is not on record for an accelerator."""


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One accelerator variant, dense peak rates at the vendor's boost clock.

    `peaks_flops_per_s` is FLOP/s (OP/s for int8 and int4) by number format. `memory_bytes` is what
    the device holds before the driver's reserve (a card's nominal GB are GiB; published decimal
    figures are decimal); None for machines whose memory is not on record.
    `domain_size` counts the accelerators that one scale-up link domain joins; 1 means none beyond
    PCIe, None means not known. `figures` keeps each number with its source and confidence, under
    the field's name or `peaks_flops_per_s.<format>`; `also_published` holds values that other
    sources print for the same figure. `unread_formats` are formats the hardware probably has but
    for which no peak was found; `runs_in` redirects formats whose own rate is not worth using, or
    which the units of that width do not take.
    `part` is the catalogue id of the part it is: what was measured on that part, and its price,
    hold for it. One of the user's own has none, unless it takes its figures from a `base` without
    being given an `id` of its own: it then is that part with some figures changed.
    """

    id: str
    name: str
    vendor: str
    architecture: str
    kind: str
    year: int | None
    peaks_flops_per_s: Mapping[str, float]
    bandwidth_bytes_per_s: float
    memory_bytes: int | None
    l2_bytes: int | None
    sm_count: int | None
    tdp_w: float | None
    link: Link
    domain_size: int | None
    pcie: str | None
    form_factor: str | None
    status: str
    figures: Mapping[str, Figure]
    confidence: str
    cross_check: str | None = None
    memory_type: str | None = None
    measured: tuple[Measured, ...] = ()
    notes: tuple[str, ...] = ()
    also_published: Mapping[str, tuple[Figure, ...]] = field(default_factory=dict)
    unread_formats: tuple[str, ...] = ()
    runs_in: Mapping[str, str] = field(default_factory=dict)
    part: str | None = None

    def __hash__(self) -> int:
        return hash((self.id, self.bandwidth_bytes_per_s, self.memory_bytes))

    def peak(self, format: str) -> float:  # noqa: A002 - the field's own word
        """Dense peak of `format` [FLOP/s, OP/s for integers].

        Raises:
            UnsupportedFormat: no peak is on record for it.
        """
        try:
            return self.peaks_flops_per_s[format]
        except KeyError:
            raise UnsupportedFormat(
                f"gpu: {self.id} has no {format} peak on record; "
                f"accepted: {', '.join(self.peaks_flops_per_s) or 'none'}"
            ) from None

    def memory(self) -> int:
        """Memory of one accelerator [bytes].

        Raises:
            MissingFigure: it is not on record (system RAM, or not read).
        """
        if self.memory_bytes is None:
            raise MissingFigure(
                f"gpu: {self.id} has no memory size on record; accepted: a .json or .toml "
                f'file with base = "{self.id}", memory_bytes and source'
            )
        return self.memory_bytes

    def compute_format(self, requested: str) -> tuple[str, str | None]:
        """Format in which arithmetic `requested` in one format runs, and a remark if it differs.

        Raises:
            UnsupportedFormat: it is no known format, or nothing it falls back to is here.
        """
        if requested not in CHAINS:
            raise UnsupportedFormat(
                f"format: unknown number format {requested!r}; accepted: {', '.join(FORMATS)}"
            )
        if requested in self.runs_in:
            return self.runs_in[requested], self._remark(requested, self.runs_in[requested])
        chain = CHAINS[requested]
        for candidate in chain:
            if candidate in self.peaks_flops_per_s:
                actual = self.runs_in.get(candidate, candidate)
                return actual, None if actual == chain[0] else self._remark(requested, actual)
        raise UnsupportedFormat(
            f"gpu: {self.id} has no peak on record for {requested} or what it falls back to "
            f"({', '.join(chain[1:])}); give peaks_flops_per_s"
        )

    def _remark(self, requested: str, actual: str) -> str:
        chain = CHAINS[requested]
        passed_over = chain[: chain.index(actual)]
        if unread := [f for f in passed_over if f in self.unread_formats]:
            return (
                f"no {' or '.join(unread)} peak was found for {self.id}: "
                f"its {actual} peak may understate it"
            )
        if requested in self.peaks_flops_per_s:
            return f"{self.id} runs {requested} in {actual}: its own {requested} rate is lower"
        return f"{self.id} has no {requested} arithmetic: values are converted and run in {actual}"

    def ridge_point(self, format: str) -> float:  # noqa: A002 - the field's own word
        """Ridge point, peak over bandwidth [FLOP/byte].

        Raises:
            UnsupportedFormat: no peak is on record for `format`.
        """
        return self.peak(format) / self.bandwidth_bytes_per_s

    @property
    def ridge_points(self) -> dict[str, float]:
        """Ridge point of each format [FLOP/byte]."""
        return {f: self.ridge_point(f) for f in self.peaks_flops_per_s}

    @property
    def measured_bandwidth(self) -> Figure | None:
        """Bandwidth reached in practice [bytes/s]: a streaming kernel, else reading weights."""
        for metric in BANDWIDTH_METRICS:
            for row in self.measured:
                if row.metric == metric:
                    return row.figure
        return None

    @property
    def measured_peaks(self) -> dict[str, Figure]:
        """Matrix-product rate reached in practice, by format [FLOP/s]."""
        peaks: dict[str, Figure] = {}
        for row in self.measured:
            name = MEASURED_FORMATS.get(row.format, row.format)
            if row.metric == "matmul_flops_per_s" and name in FORMATS:
                peaks.setdefault(name, row.figure)
        return peaks

    @property
    def measured_ridge_points(self) -> dict[str, float]:
        """Measured rate over measured bandwidth, by format [FLOP/byte]; empty if either lacks.

        A ridge point that its source prints is taken as printed.
        """
        bandwidth = self.measured_bandwidth
        if bandwidth is None:
            return {}
        ridges = {f: peak.value / bandwidth.value for f, peak in self.measured_peaks.items()}
        printed = (row for row in self.measured if row.metric == "ridge_flop_per_byte")
        return ridges | {row.format: row.figure.value for row in printed}

    @property
    def weak_figures(self) -> Mapping[str, Figure]:
        """Figures that are unsourced or assumed, by name."""
        return {n: figure for n, figure in self.figures.items() if figure.confidence in WEAK}

    def caveat(self, name: str) -> str:
        """What an answer that rests on one of the weak figures must say of it."""
        figure = self.figures[name]
        values = [figure, *self.also_published.get(name, ())]
        shown = ", elsewhere ".join(scaled(f.value, f.unit.replace("bytes", "B")) for f in values)
        _, _, why = figure.source.partition(": ")
        return f"{name} of {self.id} ({shown}) is {figure.confidence}: {why or figure.source}"

    def published(self, figure: str) -> tuple[Figure, ...]:
        """Every value on record for a figure, the one in use first.

        Raises:
            MissingFigure: nothing is on record under that name.
        """
        taken = (self.figures[figure],) if figure in self.figures else ()
        values = taken + tuple(self.also_published.get(figure, ()))
        if not values:
            raise MissingFigure(
                f"figure: {self.id} has no {figure!r}; accepted: {', '.join(self.figures)}"
            )
        return values

    def alternative(self, figure: str, index: int = 0) -> Accelerator:
        """The same accelerator with another published value of one figure.

        Raises:
            MissingFigure: no such alternative is on record.
        """
        others = self.also_published.get(figure, ())
        if index >= len(others):
            raise MissingFigure(
                f"figure: {self.id} has no other published value for {figure!r}; "
                f"accepted: {', '.join(self.also_published) or 'none'}"
            )
        return self.replaced({figure: others[index]})

    def replaced(self, figures: Mapping[str, Figure]) -> Accelerator:
        """The same accelerator with some figures replaced, keyed as in `figures`."""
        peaks = dict(self.peaks_flops_per_s)
        notes = [
            f"{name} is {figure.value:g} {figure.unit} by {figure.source}"
            for name, figure in figures.items()
            if name in self.figures
        ]
        fields: dict[str, object] = {"notes": (*self.notes, *notes)}
        for name, figure in figures.items():
            group, _, key = name.partition(".")
            if group == "peaks_flops_per_s":
                peaks[key] = figure.value
            elif name == "link_bytes_per_s":
                fields["link"] = replace(self.link, bytes_per_s=figure.value)
            else:
                fields[name] = figure.value
        for name in ("memory_bytes", "l2_bytes", "sm_count", "domain_size"):
            if name in fields:
                fields[name] = round(figures[name].value)
        return replace(
            self,
            peaks_flops_per_s=peaks,
            figures={**self.figures, **figures},
            **fields,  # type: ignore[arg-type]
        )
