"""Speculative decoding: what a step drafts and yields, and what of it is assumed."""

from __future__ import annotations

from planner.calibration import Calibration, Speculation
from planner.models.spec import ModelSpec, Note
from planner.scenario import SpeculationOptions

CHARGED = (
    "a step verifies the drafts and makes new ones, each for the time of one layer; memory holds "
    "the layers that the model has for it, and no draft model besides"
)


def speculate(
    given: SpeculationOptions, calibration: Calibration, spec: ModelSpec
) -> tuple[Speculation, list[Note]]:
    """Return what a step drafts and yields, and what of it is assumed.

    Where no acceptance is given, each draft is right as often as in the calibration's measured
    runs, a = (accepted − 1)/drafts, and counts only after right ones: Σ aⁱ over i = 0…drafts
    (Leviathan, Kalman, Matias 2023).
    """
    notes = [Note("speculation", CHARGED)]
    if not spec.mtp_params and given.drafts:
        text = "the model has no multi-token-prediction layers: the cost of a draft is assumed"
        notes.append(Note("no_draft_layers", text))
    if given.accepted is not None:
        return Speculation(given.drafts, given.accepted), notes
    measured = calibration.speculation
    right = (measured.accepted - 1) / measured.drafts
    accepted = sum(right**n for n in range(given.drafts + 1))
    text = (
        f"{accepted:.3g} tokens a step assumed: a draft is right {right:.0%} of the time, as in "
        f"runs measured at {measured.drafts} a step"
    )
    return Speculation(given.drafts, accepted), [*notes, Note("assumed_acceptance", text)]
