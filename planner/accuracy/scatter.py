"""A scatter chart of predicted against measured values, as an SVG text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

WIDTH, MARGIN = 560, 56
COLOURS = ("#1b6ca8", "#d1495b", "#2e8b57", "#8d6a9f", "#c98b1b", "#4d4d4d", "#4fb0c6", "#b55d60")

Points = Sequence[tuple[float, float]]


def scatter(groups: Mapping[str, Points], title: str, unit: str) -> str:
    """Return a square chart on logarithmic axes: measured across, predicted up, one colour a group.

    The diagonal is a perfect prediction, the band one within 20%.
    """
    values = [v for points in groups.values() for pair in points for v in pair]
    low, high = 10 ** math.floor(math.log10(min(values))), 10 ** math.ceil(math.log10(max(values)))
    span = WIDTH - 2 * MARGIN

    def at(value: float) -> float:
        return span * math.log(value / low) / math.log(high / low)

    def place(measured: float, predicted: float) -> tuple[float, float]:
        return MARGIN + at(measured), WIDTH - MARGIN - at(predicted)

    label = f'font-family="sans-serif" font-size="11" role="img" aria-label="{title}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {WIDTH}" {label}>',
        f'<rect width="{WIDTH}" height="{WIDTH}" fill="white"/>',
        f'<text x="{WIDTH / 2}" y="20" text-anchor="middle" font-size="13">{title}</text>',
    ]
    for factor, dash in ((1.0, ""), (1.2, "4 4"), (1 / 1.2, "4 4")):
        (x1, y1), (x2, y2) = place(low, low * factor), place(high, high * factor)
        parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#999" '
            f'stroke-dasharray="{dash}"/>'
        )
    decade = low
    while decade <= high:
        (x, _), (_, y) = place(decade, low), place(low, decade)
        parts += [
            f'<text x="{x:.1f}" y="{WIDTH - MARGIN + 16}" text-anchor="middle">{decade:g}</text>',
            f'<text x="{MARGIN - 6}" y="{y + 4:.1f}" text-anchor="end">{decade:g}</text>',
        ]
        decade *= 10
    box = f'x="{MARGIN}" y="{MARGIN}" width="{span}" height="{span}"'
    turned = f'transform="translate(16 {WIDTH / 2}) rotate(-90)" text-anchor="middle"'
    parts += [
        f'<rect {box} fill="none" stroke="#333"/>',
        f'<text x="{WIDTH / 2}" y="{WIDTH - 14}" text-anchor="middle">measured [{unit}]</text>',
        f"<text {turned}>predicted [{unit}]</text>",
    ]
    for i, (name, points) in enumerate(sorted(groups.items())):
        colour = COLOURS[i % len(COLOURS)]
        for pair in points:
            x, y = place(*pair)
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="1.6" fill="{colour}"/>')
        top = MARGIN + 16 + 14 * i
        parts += [
            f'<circle cx="{MARGIN + 12}" cy="{top - 4}" r="3.5" fill="{colour}"/>',
            f'<text x="{MARGIN + 20}" y="{top}">{name}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])
