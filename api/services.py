"""What the application holds for all requests, and hands to the areas that answer them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from litestar.connection import ASGIConnection

from api.lanes import Lanes, Processes
from api.measurements.calibrations import Calibrations
from api.settings import Settings
from api.store import Database


@dataclass(frozen=True, slots=True)
class Services:
    """Settings, the store, the calibration of each workspace, and where work is done."""

    settings: Settings
    database: Database
    calibrations: Calibrations
    lanes: Lanes
    processes: Processes


def services(connection: ASGIConnection[Any, Any, Any, Any]) -> Services:
    """Return the services of the application that a request came to."""
    application: Services = connection.app.state.services
    return application
