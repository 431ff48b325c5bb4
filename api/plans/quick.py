"""What the time of a plan depends on, for plans that are small enough to be quick."""

from __future__ import annotations

from collections.abc import Hashable
from operator import attrgetter

from api.catalog.names import is_own
from planner.scenario import EngineSettings, MachineFields, Scenario

MOST_POINTS = 16
"""Points of a plan that may be quick [-]."""
_machine = attrgetter(*MachineFields.model_fields, *EngineSettings.model_fields, "speculation")
_beyond_decode = attrgetter("isl", "osl", "tpot_ms", "ttft_ms", "disaggregated")


def kind_of(scenario: Scenario) -> Hashable | None:
    """Return what a deployment is known by.

    None where the plan may take long (serving, limits, levers, many points), where an object stands
    inline, whose deployment nothing remembers, or where the store has to be asked for one.
    """
    if scenario.batch is None or any(part is not None for part in _beyond_decode(scenario)):
        return None
    if len(scenario.batch) * len(scenario.context or (1,)) > MOST_POINTS:
        return None
    if any(isinstance(name, dict) or is_own(name) for name in (scenario.model, scenario.gpu)):
        return None
    machine: Hashable = _machine(scenario)
    return machine
