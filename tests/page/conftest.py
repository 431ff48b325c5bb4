"""The page on an empty store of its own, over HTTP and in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.conftest import Client, make_settings, started
from tests.api.server import serving


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """The service on an empty SQLite file, shared by the tests of a module."""
    folder: Path = tmp_path_factory.mktemp("page")
    with started(make_settings(f"sqlite:///{folder / 'planner.db'}")) as client:
        yield client


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium; what needs one is skipped where there is none."""
    from tests.page.chromium import HOW, chromium, launched

    path = chromium()
    if path is None:
        pytest.skip(HOW)
    with launched(path) as opened:
        yield opened


@pytest.fixture(scope="module")
def address(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A service of its own process; not started where there is no browser."""
    assert browser
    folder: Path = tmp_path_factory.mktemp("browser")
    with serving(f"sqlite:///{folder / 'planner.db'}", folder / "log") as server:
        yield server.base
