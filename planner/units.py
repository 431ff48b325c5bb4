"""SI prefixes and the printing of quantities; everything inside the library is in base units."""

from __future__ import annotations

_UP = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_DOWN = ((1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))
GIB = 2**30
"""Bytes of a GiB; the unit engines print memory in [byte]."""


def scaled(value: float, unit: str, digits: int = 3) -> str:
    """Return `value` with an SI prefix, to `digits` significant digits: 3.35e12, "B/s" → 3.35 TB/s.

    >>> scaled(3.35e12, "B/s")
    '3.35 TB/s'
    """
    for factor, prefix in _UP:
        if abs(value) >= factor:
            return f"{_significant(value / factor, digits)} {prefix}{unit}"
    return f"{_significant(value, digits)} {unit}".rstrip()


def seconds(value: float, digits: int = 3) -> str:
    """Return a duration in s, ms, µs or ns.

    >>> seconds(0.0106)
    '10.6 ms'
    """
    for factor, prefix in _DOWN:
        if abs(value) >= factor:
            return f"{_significant(value / factor, digits)} {prefix}s"
    return f"{value:g} s"


def count(value: float, digits: int = 3) -> str:
    """Return a count with a short suffix: 70.6 G.

    >>> count(70_553_706_496)
    '70.6 G'
    """
    return scaled(value, "", digits)


def number(value: float | None, digits: int = 3) -> str:
    """Return a plain figure to `digits` significant digits, a dash where there is none.

    >>> number(59.78)
    '59.8'
    """
    return "–" if value is None else _significant(value, digits)


def usd(value: float | None) -> str:
    """Return whole dollars; a dash where there is no price.

    >>> usd(42587.4), usd(None)
    ('42,587', '–')
    """
    return "–" if value is None else f"{value:,.0f}"


def percent(value: float) -> str:
    """Return a share in percent.

    >>> percent(0.125)
    '12%'
    """
    return f"{value:.0%}" if value >= 0.1 or value == 0 else f"{value:.1%}"


def _significant(value: float, digits: int) -> str:
    text = f"{value:.{digits}g}"
    return f"{value:.0f}" if "e+" in text else text
