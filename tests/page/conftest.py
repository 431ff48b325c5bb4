"""The page on an empty store of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.conftest import Client, make_settings, started


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """The service on an empty SQLite file, shared by the tests of a module."""
    folder: Path = tmp_path_factory.mktemp("page")
    with started(make_settings(f"sqlite:///{folder / 'planner.db'}")) as client:
        yield client
