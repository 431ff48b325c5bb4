"""The two lock files: one set of versions, and none of the tools of development in the image."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def pins(name: str) -> dict[str, set[str]]:
    """Hashes by pin."""
    found: dict[str, set[str]] = {}
    pin = ""
    for line in ROOT.joinpath(name).read_text("utf-8").splitlines():
        if line and not line.startswith((" ", "#")):
            pin = line.split()[0]
        found.setdefault(pin, set()).update(re.findall(r"sha256:\w+", line))
    del found[""]
    return found


def test_the_image_has_the_versions_that_are_tested() -> None:
    everything, image = pins("requirements.lock"), pins("requirements-service.lock")
    assert image
    assert all(hashes for hashes in image.values())
    assert image.items() <= everything.items()


def test_the_image_has_no_tools_of_development() -> None:
    extras = tomllib.loads(ROOT.joinpath("pyproject.toml").read_text("utf-8"))["project"]
    tools = [re.split(r"[>=\[]", item)[0] for item in extras["optional-dependencies"]["dev"]]
    image = {pin.partition("==")[0] for pin in pins("requirements-service.lock")}
    assert "pytest" in tools
    assert set(tools) - image == set(tools) - {"pyyaml"}  # gguf and litestar need it, too
    assert "requirements-service.lock" in ROOT.joinpath("Dockerfile").read_text("utf-8")
    assert "requirements.lock" not in ROOT.joinpath("Dockerfile").read_text("utf-8")
