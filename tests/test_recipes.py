"""The recipes of CONTRIBUTING.md, executed as written in a copy of the repository.

A fenced block whose first line names a file (`toml acme-one.toml`) is that file; one of `sh` is
run; one of `text` is what the commands before it print.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GUIDE = ROOT.joinpath("CONTRIBUTING.md").read_text("utf-8")
RECIPES = [title for title in re.findall(r"^## (.+)$", GUIDE, re.MULTILINE) if title[:3] == "Add"]
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
STATED = r"^Touches (\d+) files? and takes about \d+ minutes\.$"
LEFT_OUT = (".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", "dist", "build")


def section(title: str) -> str:
    return GUIDE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def contents(folder: Path) -> dict[str, bytes]:
    """Files of the repository by their path; those that commands leave behind do not count."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in files
        if not re.search(r"__pycache__|_cache/|\.hypothesis", str(path))
    }


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    folder = tmp_path / "decode-planner"
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*LEFT_OUT))
    return folder


def run(script: str, folder: Path) -> str:
    """Run a block of commands as a newcomer's shell does; it must not fail."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "PYTHONPATH": str(folder), "COLUMNS": "200"}
    environment.pop("PYTEST_XDIST_WORKER", None)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_there_are_the_four_recipes() -> None:
    kinds = ("an accelerator", "a model family", "an engine", "a kernel")
    assert [f"Add {kind}" for kind in kinds] == RECIPES


@pytest.mark.slow
@pytest.mark.parametrize("title", RECIPES)
def test_a_recipe_does_what_it_says(title: str, clone: Path) -> None:
    before = contents(clone)
    given, printed = set(), ""
    for language, name, body in BLOCK.findall(section(title)):
        if name:
            clone.joinpath(name).write_text(body, "utf-8")
            if "/" not in name:
                given.add(name)  # what the newcomer had: not a file of the repository
        elif language == "sh":
            printed += run(body, clone)
        elif language == "text":
            missing = [line for line in body.splitlines() if line not in printed]
            assert not missing, printed
    after = contents(clone)
    touched = {name for name in after if before.get(name) != after[name]} - given
    assert not set(before) - set(after)
    stated = re.search(STATED, section(title), re.MULTILINE)
    assert stated is not None
    assert len(touched) == int(stated[1]), sorted(touched)


@pytest.mark.slow
@pytest.mark.parametrize("title", RECIPES)
def test_what_a_recipe_writes_passes_lint_and_types(title: str, clone: Path) -> None:
    written = []
    for language, name, body in BLOCK.findall(section(title)):
        if language == "python":
            clone.joinpath(name).write_text(body, "utf-8")
            written.append(name)
    if written:
        files = " ".join(written)
        run(f"ruff check {files} && ruff format --check {files} && mypy {files}", clone)
