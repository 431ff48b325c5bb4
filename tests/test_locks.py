"""Packaging as written: the lock files, the versions of Python, the hooks before a commit.

The two lock files have one set of versions, and the image none of the tools of development.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]


def pins(name: str) -> dict[str, set[str]]:
    """Hashes by pin."""
    hashes: dict[str, set[str]] = {}
    pin = ""
    for line in ROOT.joinpath(name).read_text("utf-8").splitlines():
        if line and not line.startswith((" ", "#")):
            pin = line.split()[0]
        hashes.setdefault(pin, set()).update(re.findall(r"sha256:\w+", line))
    del hashes[""]
    return hashes


def test_the_image_has_the_versions_that_are_tested() -> None:
    everything, image = pins("requirements.lock"), pins("requirements-service.lock")
    assert image
    assert all(hashes for hashes in image.values())
    assert image.items() <= everything.items()


def test_the_image_has_no_tools_of_development() -> None:
    extras = _project()["optional-dependencies"]
    tools = [re.split(r"[>=\[]", item)[0] for item in extras["dev"]]
    image = {pin.partition("==")[0] for pin in pins("requirements-service.lock")}
    assert "pytest" in tools
    assert set(tools) - image == set(tools) - {"pyyaml"}  # gguf and litestar need it, too
    assert "requirements-service.lock" in ROOT.joinpath("Dockerfile").read_text("utf-8")
    assert "requirements.lock" not in ROOT.joinpath("Dockerfile").read_text("utf-8")


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-service.lock"])
def test_a_lock_names_no_host(name: str) -> None:
    """Where packages come from is the business of whoever installs them."""
    text = ROOT.joinpath(name).read_text("utf-8")
    assert not re.findall(r"https?://|@ |--(?:extra-)?index-url|--find-links|file:", text)


def test_the_versions_of_python_are_the_same_everywhere() -> None:
    project = _project()
    prefix = "Programming Language :: Python :: "
    named = [c.removeprefix(prefix) for c in project["classifiers"] if c.startswith(prefix)]
    assert named == ["3.11", "3.12", "3.13", "3.14"]
    assert project["requires-python"] == f">={named[0]}"
    makefile = ROOT.joinpath("Makefile").read_text("utf-8")
    tried = re.findall(r"python(3\.\d+)", makefile.partition("BIN :=")[0])
    assert tried == named[::-1]
    assert f"--python-version {named[0]} " in makefile  # a universal lock holds from here up


def test_the_version_is_the_newest_of_the_changelog() -> None:
    changelog = ROOT.joinpath("CHANGELOG.md").read_text("utf-8")
    heading = r"^## (\d+\.\d+\.\d+), \d{4}-\d{2}-\d{2}$"
    released = re.findall(heading, changelog, re.MULTILINE)
    assert released[0] == _project()["version"]
    numbers = [tuple(map(int, version.split("."))) for version in released]
    assert numbers == sorted(numbers, reverse=True)


def test_hooks_before_a_commit_run_what_is_locked() -> None:
    config = yaml.safe_load(ROOT.joinpath(".pre-commit-config.yaml").read_text("utf-8"))
    locked = {pin.partition("==")[0] for pin in pins("requirements.lock")}
    hooks = [hook for repo in config["repos"] for hook in repo["hooks"]]
    assert {repo["repo"] for repo in config["repos"]} == {"local"}
    assert {hook["language"] for hook in hooks} == {"system"}
    tools = [hook["entry"].split()[0] for hook in hooks]
    assert all(tool.startswith(".venv/bin/") for tool in tools)
    assert {tool.removeprefix(".venv/bin/") for tool in tools} == {"ruff", "mypy"} <= locked


def _project() -> dict[str, Any]:
    text = ROOT.joinpath("pyproject.toml").read_text("utf-8")
    project: dict[str, Any] = tomllib.loads(text)["project"]
    return project
