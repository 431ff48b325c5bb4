"""The wheel, built and installed into an empty environment away from the checkout.

Packages it depends on are those of the environment that runs the tests, as no test asks a registry;
the package itself comes from the wheel alone.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
import sys
import sysconfig
import time
import urllib.request
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.test_docs import COMMANDS, README, blocks

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of programs of an environment that has the wheel."""
    folder = tmp_path_factory.mktemp("empty")
    venv.create(folder, with_pip=False)
    programs = folder / "bin"
    pip = [sys.executable, "-m", "pip", "--python", str(programs / "python"), "install"]
    subprocess.run([*pip, "--no-index", "--no-deps", str(wheel)], check=True, capture_output=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    packages.joinpath("dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return programs


@pytest.fixture
def environment(programs: Path, tmp_path: Path) -> dict[str, str]:
    """Return an environment that knows nothing of the checkout."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    path = f"{programs}{os.pathsep}{kept.get('PATH', '')}"
    return kept | {"PATH": path, "PLANNER_DATA_DIR": str(tmp_path / "data")}


def test_it_has_the_package_and_its_data_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {
        "planner",
        "api",
        "migrations",
    }
    data = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "planner").rglob("*")
        if path.suffix in (".json", ".gz", ".csv") or path.name == "py.typed"
    }
    assert data <= names
    assert not [name for name in names if "__pycache__" in name]


def test_the_readmes_first_command_is_answered(environment: dict[str, str], tmp_path: Path) -> None:
    done = subprocess.run(
        shlex.split(COMMANDS[0]),
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.startswith(blocks(README, "text")[0].strip())


def test_it_is_the_wheel_that_answers(environment: dict[str, str], tmp_path: Path) -> None:
    code = "import planner, api; print(planner.__file__, api.__file__)"
    done = subprocess.run(
        ["python", "-c", code], cwd=tmp_path, env=environment, capture_output=True, check=True
    )
    assert str(ROOT) not in done.stdout.decode()
    assert done.stdout.count(b"site-packages") == 2


def test_the_service_starts_and_answers(environment: dict[str, str], tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    log = tmp_path / "log"
    with log.open("wb") as sink:
        service = subprocess.Popen(
            ["planner", "serve", "--port", str(port)],
            cwd=tmp_path,
            env=environment,
            stdout=sink,
            stderr=sink,
        )
    try:
        assert _ready(f"{url}/health/ready", service), log.read_text()
        (body,) = re.findall(r"-d '(\{.*?\})'", README)
        answer = _post(f"{url}/v1/plans", body)
        assert answer["scenario"]["model"] == json.loads(body)["model"]
        assert answer["limits"]["saturation_intensity"] == pytest.approx(59.8, abs=0.05)
    finally:
        service.terminate()
        assert service.wait(30) is not None


def _ready(url: str, service: subprocess.Popen[bytes]) -> bool:
    """Return whether the service became ready before it ended, or before two minutes were over."""
    for _ in range(600):
        if service.poll() is not None:
            return False
        try:
            with urllib.request.urlopen(url, timeout=5) as response:  # noqa: S310 (loopback)
                return bool(response.status == 200)
        except OSError:
            time.sleep(0.2)
    return False


def _post(url: str, body: str) -> dict[str, Any]:
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, body.encode(), headers)  # noqa: S310 (loopback)
    with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310 (loopback)
        answer: dict[str, Any] = json.load(response)
    return answer
