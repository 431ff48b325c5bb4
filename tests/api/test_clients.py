"""Clients that generators make of the published document call every operation, as they are made.

The generators are no dependency of this project. They are taken from an environment of their own,
made by this test where the package index, or the one of npm, can be reached; else it is skipped.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.openapi.calls import CALLS, Call, resolved
from tests.api.conftest import Client
from tests.api.server import Server, serving

HERE = Path(__file__).parent
PYTHON_GENERATOR = "openapi-python-client==0.29.1"
TEXTS = {"metrics", "exportLines", "getJobResult"}
"""Operations whose answers are no JSON documents."""
NODE_PACKAGES = ("openapi-typescript@7.13.0", "openapi-fetch@0.17.0", "typescript@5.9.3")


def test_every_operation_is_called(shared: Client) -> None:
    document = shared.get("/schema/openapi.json").json()
    operations = {o["operationId"] for item in document["paths"].values() for o in item.values()}
    assert [call.operation for call in CALLS] == list(dict.fromkeys(c.operation for c in CALLS))
    assert {call.operation for call in CALLS} == operations


def test_a_call_takes_what_an_earlier_one_answered() -> None:
    call = Call("b", {"x_id": "a.inner.id", "y": "plain", "z": "a"})
    answers = {"a": {"inner": {"id": 7}}}
    assert resolved(call, answers) == {"x_id": "7", "y": "plain", "z": "a"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    url = f"sqlite:///{tmp_path / 'planner.db'}"
    with serving(url, tmp_path / "log") as started:
        yield started


def run(*command: str | Path, cwd: Path, seconds: float = 300) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def written_calls(directory: Path) -> Path:
    calls = directory / "calls.json"
    calls.write_text(json.dumps([{**asdict(call), "body": call.body} for call in CALLS]))
    return calls


@pytest.mark.slow
def test_a_generated_python_client_calls_every_operation(server: Server, tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    run(sys.executable, "-m", "venv", environment, cwd=tmp_path)
    python = environment / "bin" / "python"
    installed = run(python, "-m", "pip", "install", "--quiet", PYTHON_GENERATOR, cwd=tmp_path)
    if installed.returncode:
        pytest.skip(f"{PYTHON_GENERATOR} cannot be installed: {installed.stderr[-300:]}")
    document = tmp_path / "openapi.json"
    document.write_text(httpx.get(f"{server.base}/schema/openapi.json").text)
    hooks = tmp_path / "generator.yaml"
    # It would format what it writes, and knows no lines of JSON: to a client they are bytes.
    hooks.write_text(
        "post_hooks: []\ncontent_type_overrides: {application/x-ndjson: application/octet-stream}\n"
    )
    generator = environment / "bin" / "openapi-python-client"
    made = run(
        generator,
        "generate",
        "--path",
        document,
        "--config",
        hooks,
        "--fail-on-warning",
        cwd=tmp_path,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    project = next(tmp_path.glob("*-client"))
    shutil.copy(HERE / "clients" / "drive.py", project)
    driven = run(python, "drive.py", written_calls(tmp_path), server.base, cwd=project)
    assert driven.returncode == 0, driven.stderr[-4000:]
    assert json.loads(driven.stdout) == [call.operation for call in CALLS]


@pytest.mark.slow
def test_a_generated_typescript_client_calls_every_operation(
    server: Server, tmp_path: Path
) -> None:
    """Types by openapi-typescript; calls checked against them by the compiler, then made."""
    if shutil.which("npm") is None:
        pytest.skip("node and npm are not installed")
    (tmp_path / "package.json").write_text('{"type": "module", "private": true}')
    installed = run(
        "npm", "install", "--no-audit", "--no-fund", "--silent", *NODE_PACKAGES, cwd=tmp_path
    )
    if installed.returncode:
        pytest.skip(f"npm cannot install {NODE_PACKAGES[0]}: {installed.stderr[-300:]}")
    document = httpx.get(f"{server.base}/schema/openapi.json").json()
    (tmp_path / "openapi.json").write_text(json.dumps(document))
    binaries = tmp_path / "node_modules" / ".bin"
    # A field with a default may be left out of a question, which this generator has to be told.
    made = run(
        binaries / "openapi-typescript",
        "openapi.json",
        "--output",
        "schema.ts",
        "--default-non-nullable=false",
        cwd=tmp_path,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    (tmp_path / "calls.ts").write_text(typescript(document, server.base))
    options = ("--strict", "--target", "es2022", "--module", "nodenext", "--skipLibCheck")
    checked = run(binaries / "tsc", *options, "calls.ts", cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout[-4000:]
    driven = run("node", "calls.js", cwd=tmp_path)
    assert driven.returncode == 0, driven.stderr[-4000:]
    assert json.loads(driven.stdout) == [call.operation for call in CALLS]


def typescript(document: dict[str, Any], base: str) -> str:
    """A program of one typed call for each operation."""
    places = {
        operation["operationId"]: (method.upper(), path)
        for path, item in document["paths"].items()
        for method, operation in item.items()
    }
    lines = [
        'import createClient from "openapi-fetch";',
        'import type { paths } from "./schema.js";',
        f'const client = createClient<paths>({{ baseUrl: "{base}" }});',
        "const called: string[] = [];",
        "const pause = () => new Promise((done) => setTimeout(done, 200));",
        "function good<T>(name: string, answer: { response: Response; data?: T }): T {",
        "  const failure = `${name}: ${answer.response.status} ${JSON.stringify(answer)}`;",
        "  if (!answer.response.ok) throw new Error(failure.slice(0, 500));",
        "  called.push(name);",
        "  return answer.data as T;",
        "}",
    ]
    for call in CALLS:
        method, path = places[call.operation]
        arguments: list[str] = []
        parameters = {
            kind: "{" + ", ".join(f"{json.dumps(k)}: {v}" for k, v in values.items()) + "}"
            for kind, values in (
                ("path", {name: _typescript_value(text) for name, text in call.path.items()}),
                ("query", {k: json.dumps(v) for k, v in call.query.items()}),
                ("header", {k: json.dumps(v) for k, v in call.headers.items()}),
            )
            if values
        }
        if parameters:
            inner = ", ".join(f"{kind}: {text}" for kind, text in parameters.items())
            arguments.append(f"params: {{{inner}}}")
        if call.body is not None:
            arguments.append(f"body: {json.dumps(call.body)}")
        if call.sends:
            arguments.append(f"body: {call.sends} as unknown as string")
            arguments.append("bodySerializer: (body: string) => body")
            arguments.append('headers: {"Content-Type": "application/octet-stream"}')
        if call.operation in TEXTS:
            arguments.append('parseAs: "text"')
        given = f", {{{', '.join(arguments)}}}" if arguments else ""
        sent = f"client.{method}({json.dumps(path)}{given})"
        if call.ended:
            states = json.dumps(call.ended)
            lines.append(f"while (!{states}.includes((await {sent}).data!.state)) await pause();")
        lines.append(f"const {call.operation} = good({json.dumps(call.operation)}, await {sent});")
    return "\n".join([*lines, "console.log(JSON.stringify(called));", ""])


def _typescript_value(text: str) -> str:
    """A value, or the field of an earlier answer; ids keep their slash."""
    operation, _, fields = text.partition(".")
    known = {call.operation for call in CALLS}
    if not (fields and operation in known):
        return json.dumps(text)
    # Comparisons come as texts of other media types too.
    return f"(({operation} as Exclude<typeof {operation}, string>).{fields} as string)"
