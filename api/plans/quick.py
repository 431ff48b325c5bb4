"""Plans that are small enough to be quick: what their time depends on, and their answers as bytes.

A question about a deployment that was asked about before costs its own arithmetic and no more: the
deployment is found by what it is known by, and the answer is written as it is computed.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter

from api.catalog.names import is_own
from api.web.call import call_planner
from planner.calibration import Calibration, current
from planner.deployment import Deployment, deployment_of
from planner.hw import get_accelerator
from planner.models import get_model
from planner.plans.planning import plan_json
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


def quick_json(kind: Hashable, scenario: Scenario) -> bytes:
    """Return the plan of a scenario of a kind as JSON, by the calibration in use.

    Raises a 422 problem that names the field.
    """
    deployment = _deployment(_Known(kind, scenario), current())
    return call_planner(plan_json, scenario, deployment)


@dataclass(frozen=True, slots=True)
class _Known:
    """A scenario that stands for all of its kind."""

    kind: Hashable
    scenario: Scenario = field(compare=False)


@lru_cache(maxsize=1024)
def _deployment(known: _Known, _calibration: Calibration) -> Deployment:
    scenario = known.scenario
    call_planner(get_model, scenario.model, local=False)
    call_planner(get_accelerator, scenario.gpu, allow_files=False)
    return call_planner(deployment_of, scenario)
