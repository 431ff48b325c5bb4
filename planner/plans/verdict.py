"""The answer to a scenario in one sentence."""

from __future__ import annotations

from planner.answer import Plan


def verdict(plan: Plan) -> str:
    """Return where decode sits, whether that is within reach, and whether the load fits."""
    text = plan.limits.crossover_reason
    if plan.limits.crossover_batch is not None and not plan.memory.crossover_fits:
        text += f", which memory does not hold ({sequences(plan.memory.max_batch)} fit)"
    sentence = text[0].upper() + text[1:] + "."
    if not plan.memory.fits:
        return f"This load does not fit. {sentence}"
    return sentence + _in_practice(plan)


def sequences(number: int) -> str:
    """Return a number of sequences in words: `1 sequence`, `62 sequences`."""
    return "1 sequence" if number == 1 else f"{number:,} sequences"


def _in_practice(plan: Plan) -> str:
    """Where calibrated times are bound by something other than the roofline's memory."""
    batches_by_bound: dict[str, list[int]] = {}
    for point in plan.points:
        if point.bound != "memory":
            batches_by_bound.setdefault(point.bound, []).append(point.batch)
    if not batches_by_bound or plan.limits.crossover_batch is not None:
        return ""
    places = (
        f"{bound}-bound at batch {_span(batches)}" for bound, batches in batches_by_bound.items()
    )
    return f" As calibrated, {' and '.join(places)}."


def _span(batches: list[int]) -> str:
    low, high = min(batches), max(batches)
    return str(low) if low == high else f"{low}–{high}"
