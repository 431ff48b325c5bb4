"""Tests never read or write a calibration of the developer's own."""

from __future__ import annotations

import os
import tempfile

os.environ["PLANNER_DATA_DIR"] = tempfile.mkdtemp(prefix="planner-tests-")
