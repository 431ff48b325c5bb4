"""The work of jobs: functions that a worker process can run.

Each takes how it sends progress and its result first, then what it works on.
"""

from __future__ import annotations

from typing import Any

from api.jobs.reports import PIECE_BYTES, Reporter, send_result
from api.jobs.schemas import Simulation
from api.lanes.processes import Send
from api.measurements.calibrations import calibration_of
from api.plans.work import answer_fleet, answer_recommendation, answer_sweep
from api.settings import Settings
from api.store import Database
from api.web.call import call_planner
from api.workspace.lines import export_lines
from planner.calibration import using
from planner.deployment import deployment_of
from planner.plans.confirm import answer_simulated, simulated
from planner.plans.editions import current_editions
from planner.plans.progress import reporting
from planner.scenario import Scenario


def sweep_job(send: Send, *work: Any) -> None:
    """Answer a sweep; `work` is what `answer_sweep` takes."""
    with reporting(Reporter(send)):
        send_result(send, answer_sweep(*work))


def recommendation_job(send: Send, *work: Any) -> None:
    """Answer a recommendation; `work` is what `answer_recommendation` takes."""
    with reporting(Reporter(send)):
        send_result(send, answer_recommendation(*work).model_dump_json().encode())


def fleet_job(send: Send, *work: Any) -> None:
    """Answer a fleet's day; `work` is what `answer_fleet` takes."""
    with reporting(Reporter(send)):
        send_result(send, answer_fleet(*work).model_dump_json().encode())


def simulation_job(send: Send, resolved: Scenario, scenario: Scenario, document: str) -> None:
    """Simulate the requests of a scenario."""
    with using(calibration_of(document)):
        seen, rate = call_planner(_simulated, resolved)
        editions = current_editions()
    answered = answer_simulated(seen, rate, resolved)
    result = Simulation(scenario=scenario, simulated=answered, editions=editions)
    send_result(send, result.model_dump_json().encode())


def _simulated(scenario: Scenario) -> Any:
    return simulated(scenario, deployment_of(scenario))


def export_job(send: Send, settings: Settings, workspace: str) -> None:
    """Write a workspace as lines; a few of them are held at a time."""
    database = Database(settings)
    report = Reporter(send)
    piece = bytearray()
    try:
        for line in export_lines(database, workspace, report=report):
            piece += line
            if len(piece) >= PIECE_BYTES:
                send(bytes(piece))
                piece.clear()
    finally:
        database.close()
    send_result(send, bytes(piece))
