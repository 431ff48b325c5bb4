"""What the application holds for all requests, and hands to the areas that answer them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from litestar.connection import ASGIConnection

from api.lanes import AnswerCache, Lanes, Processes, QuickWork
from api.measurements.calibrations import Calibrations
from api.settings import Settings
from api.store import Database, PointReads


@dataclass(frozen=True, slots=True)
class Services:
    """Settings, the store, the calibration of each workspace, and where work is done."""

    settings: Settings
    database: Database
    points: PointReads
    calibrations: Calibrations
    lanes: Lanes
    processes: Processes
    answers: AnswerCache
    quick: QuickWork


def services(connection: ASGIConnection[Any, Any, Any, Any]) -> Services:
    """Return the services of the application that a request came to."""
    application: Services = connection.app.state.services
    return application
