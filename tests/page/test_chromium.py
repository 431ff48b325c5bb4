"""Making Chromium present: found, installed, or told how, and never a failure."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.scripts import ROOT

SCRIPT = ROOT / "tools/chromium.sh"
TOOLS = ("bash", "env", "id")


def run(folder: Path, named: str = "", **commands: str) -> subprocess.CompletedProcess[str]:
    """Run it where only these commands exist; each is the text of a shell script."""
    for name in TOOLS:
        (folder / name).symlink_to(str(shutil.which(name)))
    for name, text in commands.items():
        path = folder / name.replace("_", "-")
        path.unlink(missing_ok=True)
        path.write_text(f"#!{shutil.which('bash')}\n{text}\n", "utf-8")
        path.chmod(0o755)
    env = {"PATH": str(folder), "LOG": str(folder / "log"), "PLANNER_TEST_CHROMIUM": named}
    return subprocess.run([str(SCRIPT)], env=env, capture_output=True, text=True, check=False)


def test_nothing_is_done_where_there_is_one(tmp_path: Path) -> None:
    result = run(tmp_path, chromium="", id="echo 0", apt_get='echo "$@" >> "$LOG"')
    assert (result.returncode, result.stdout) == (0, "")
    assert not (tmp_path / "log").exists()


def test_it_is_installed_by_root(tmp_path: Path) -> None:
    result = run(tmp_path, id="echo 0", apt_get='echo "$@" >> "$LOG"')
    assert (result.returncode, result.stdout) == (0, "")
    update, install = (tmp_path / "log").read_text("utf-8").splitlines()
    assert update.startswith("update")
    assert install.split()[0] == "install"
    assert "chromium" in install.split()


@pytest.mark.parametrize(
    ("commands", "why"),
    [
        ({"id": "echo 1000", "apt_get": 'echo "$@" >> "$LOG"'}, "needs root and apt-get"),
        ({"id": "echo 0"}, "needs root and apt-get"),
        ({"id": "echo 0", "apt_get": "exit 100"}, "apt-get did not install it"),
    ],
)
def test_a_machine_that_cannot_is_told_how(
    tmp_path: Path, commands: dict[str, str], why: str
) -> None:
    """It ends well: the tests that need it are skipped."""
    result = run(tmp_path, **commands)
    assert result.returncode == 0
    assert "apt-get install chromium" in result.stdout
    assert why in result.stdout
    assert not (tmp_path / "log").exists()


def test_a_named_one_counts(tmp_path: Path) -> None:
    name = str(tmp_path / "mine")
    result = run(tmp_path, named=name, mine="", id="echo 1000")
    assert (result.returncode, result.stdout) == (0, "")
