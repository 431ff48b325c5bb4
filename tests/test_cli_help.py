"""Help, completion and what they load: the command line before it answers anything."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from planner.cli import COMMANDS
from tests.test_cli import answered


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("plan llama-3.1-70", "meta-llama/Llama-3.1-70B-Instruct"),
        ("plan MODEL --gpu b200", "b200-sxm"),
        ("plot roof", "roofline"),
        ("plot roofline MODEL --gpu h100", "h100-sxm5"),
        ("kernels --gpu epyc-96", "epyc-9654"),
        ("rec", "recommend"),
    ],
)
def test_ids_complete_in_a_shell(words: str, offered: str) -> None:
    """The last word is the one being typed."""
    from click.testing import CliRunner

    from planner.cli import planner

    typed = {
        "_PLANNER_COMPLETE": "bash_complete",
        "COMP_WORDS": f"planner {words}",
        "COMP_CWORD": str(len(words.split())),
    }
    shown = CliRunner().invoke(planner, env=typed, prog_name="planner").output
    assert f"plain,{offered}" in shown.splitlines()


@pytest.mark.parametrize(
    ("shell", "line"), [("bash", "complete"), ("zsh", "#compdef planner"), ("fish", "complete")]
)
def test_each_shell_has_its_completion(shell: str, line: str) -> None:
    from click.testing import CliRunner

    from planner.cli import planner

    asked = {"_PLANNER_COMPLETE": f"{shell}_source"}
    shown = CliRunner().invoke(planner, env=asked, prog_name="planner").output
    assert any(text.strip().startswith(line) for text in shown.splitlines())
    assert "_PLANNER_COMPLETE" in shown
    readme = Path(__file__).parents[1].joinpath("README.md").read_text("utf-8")
    assert f"_PLANNER_COMPLETE={shell}_source" in readme


def test_readme_names_every_command() -> None:
    readme = Path(__file__).parents[1].joinpath("README.md").read_text("utf-8")
    for name in COMMANDS:
        assert f"planner {name}" in readme, name


HEAVY = ("numpy", "pydantic", "scipy", "rich", "gguf", "litestar", "sqlalchemy", "alembic", "httpx")


def test_help_loads_no_library_that_only_answers_need() -> None:
    """It imports every command, those of the service too: what they compute with comes later."""
    code = (
        "import sys; from planner.cli import main; main(['--help']);"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"
    assert all(f"  {name} " in done.stdout for name in (*COMMANDS, "serve", "scenario", "db"))


def test_listing_models_builds_none() -> None:
    """Building all of them takes half a second, and any loads its family's importer."""
    code = (
        "import sys; from planner.cli import main; main(['models', 'list', '--kind', 'moe']);"
        "print([name for name in sys.modules if name.startswith('planner.models.families.')],"
        "file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"
    assert "deepseek-ai/DeepSeek-V3" in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = answered(capsys, name, "--help")
    assert f"planner {name}" in out
