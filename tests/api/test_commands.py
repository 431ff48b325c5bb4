"""The commands, on the local store and as clients of a server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from api.commands.questions import question
from api.settings import Settings
from tests.api.conftest import CARD, CONFIG
from tests.api.server import serving

LLAMA = "meta-llama/Llama-3.1-70B-Instruct"
ON_H100 = (LLAMA, "--gpu", "h100-sxm5", "--tp", "4", "--batch", "32")
Run = Callable[..., subprocess.CompletedProcess[str]]


def planner(directory: Path, *arguments: str, **environment: str) -> Any:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("PLANNER_")}
    default = {"PLANNER_DATABASE_URL": f"sqlite:///{directory / 'cli.db'}"}
    return subprocess.run(
        [sys.executable, "-c", "from planner.cli import main; main()", *arguments],
        env={**inherited, **default, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        cwd=directory,
        check=False,
    )


@pytest.fixture(params=["local", "server"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Run]:
    """`planner` on the local store, then with a key on a server that requires one."""
    if request.param == "local":
        yield lambda *arguments: planner(tmp_path, *arguments)
        return
    url = f"sqlite:///{tmp_path / 'server.db'}"
    made = planner(
        tmp_path,
        "keys",
        "create",
        "--workspace",
        "team",
        "--scope",
        "write",
        PLANNER_DATABASE_URL=url,
    )
    with serving(url, tmp_path / "log", environment={"PLANNER_AUTH": "required"}) as server:
        environment = {"PLANNER_API_KEY": made.stdout.strip(), "PLANNER_SERVER": server.base}
        yield lambda *arguments: planner(tmp_path, *arguments, **environment)
    assert made.stdout.strip() not in server.text()


def test_save_list_show_compare_delete(run: Run) -> None:
    ids = []
    for name in ("bf16", "fp8"):
        saved = run("scenario", "save", *ON_H100, "--weights", name, "--name", name, "--tag", "x")
        assert saved.returncode == 0, saved.stderr
        ids.append(saved.stdout.split()[0])
    listed = json.loads(run("scenario", "list", "--tag", "x", "--json").stdout)
    assert [(item["id"], item["name"]) for item in listed] == [(ids[0], "bf16"), (ids[1], "fp8")]
    table = run("scenario", "list").stdout
    assert all(ident in table for ident in ids)
    shown = json.loads(run("scenario", "show", ids[0], "--recompute").stdout)
    assert (shown["stale"], shown["recomputed"]["differences"]) == (False, [])
    for pair in (("bf16", "fp8"), ids):
        compared = run("compare", *pair)
        assert compared.returncode == 0, compared.stderr
        assert "## From bf16 to fp8" in compared.stdout
        assert "| attention |" in compared.stdout
    done = json.loads(run("compare", *ids, "--json", "--save", "--name", "kept").stdout)
    assert (done["name"], done["id"] is not None) == ("kept", True)
    deleted = run("scenario", "delete", ids[0])
    assert deleted.returncode == 0
    assert run("scenario", "delete", ids[0]).returncode == 2
    gone = run("compare", "bf16", "fp8")
    assert (gone.returncode, gone.stdout) == (2, "")
    assert gone.stderr == "planner: scenarios: 'bf16': no scenario of this name\n"


def test_files_are_sent_by_what_is_in_them(run: Run, tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "card.json").write_text(json.dumps(CARD))
    for model in ("m", "m/config.json"):
        saved = run("scenario", "save", model, "--gpu", "card.json", "--json")
        assert saved.returncode == 0, saved.stderr
        stored = json.loads(saved.stdout)["scenario"]
        assert (stored["model"], stored["gpu"]) == (CONFIG, CARD)


def test_comparing_what_is_given_needs_no_store(tmp_path: Path) -> None:
    a = f"model={LLAMA},gpu=h100-sxm5,tp=4,weights=bf16,batch=8+32,name=BF16"
    file = {"model": LLAMA, "gpu": "h100-sxm5", "tp": 4, "weights": "fp8", "batch": [8, 32]}
    (tmp_path / "b.json").write_text(json.dumps({**file, "name": "FP8"}))
    for form in ((), ("--csv",), ("--json",)):
        done = planner(tmp_path, "compare", a, "b.json", *form)
        assert done.returncode == 0, done.stderr
        assert "BF16" in done.stdout
    attribution = json.loads(done.stdout)["attributions"][0]
    tpot = next(c for c in attribution["contributions"] if c["figure"] == "tpot_s")
    assert sum(tpot["steps"]) == tpot["difference"] < 0
    assert sum(k["difference_s"] for k in attribution["kernels"]) == tpot["difference"]
    assert not (tmp_path / "cli.db").exists()


@pytest.mark.parametrize(
    ("text", "scenario"),
    [
        ("tp=4,kv=fp8,prefix-hit=0.5", {"tp": 4, "kv": "fp8", "prefix_hit": 0.5}),
        ("batch=8+32,context=8192", {"batch": [8, 32], "context": [8192]}),
        ("isl=lognormal:1024:0.6", {"isl": {"lognormal": {"mean": 1024, "cv": 0.6}}}),
        ("speculation=1:1.8", {"speculation": {"drafts": 1, "accepted": 1.8}}),
        ("name=7", {"name": "7"}),
        ("unknown=7", {"unknown": "7"}),
        ("bf16", None),
    ],
)
def test_a_list_of_fields_is_read_as_the_options_are(text: str, scenario: object) -> None:
    assert question(text) == scenario


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("compare", f"model={LLAMA},tp=four", "x"), "'four' is not a valid integer"),
        (("compare", f"model={LLAMA},isl=long", "x"), "isl: 'long' is not a length"),
        (("scenario", "save", "nope", "--gpu", "h100-sxm5"), "model: unknown model 'nope'"),
        (("scenario", "show", "nope"), "no such scenario in this workspace"),
        (("compare", "tp=4", "gpu=x"), "model: field required"),
        (("compare", "tp=4", "x,y=1"), "accepted: field=value"),
        (("compare", "no.json", "no.json"), "cannot read 'no.json'"),
        (("scenario", "list", "--server", "nope"), "server: 'nope'"),
        (("scenario", "list", "--server", "http://127.0.0.1:1"), "server: http://127.0.0.1:1"),
        (("db", "upgrade", "nope"), "store: Can't locate revision"),
        (("keys", "create", "--workspace", "No Such"), "workspace: accepted"),
        (("keys", "revoke", "nope"), "no valid key 'nope'"),
        (("serve", "--port", "0"), "PLANNER_PORT"),
        (("serve", "--host", "192.0.2.1", "--port", "x"), "'x' is not a valid integer"),
    ],
)
def test_bad_input_is_one_line_and_2(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = planner(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.startswith("planner: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://x", "PLANNER_DATABASE_URL: not a database"),
        ("sqlite:////proc/nope/x.db", "store: "),
        ("postgresql://127.0.0.1:1/x", "store: "),
    ],
)
def test_a_store_that_is_not_there_is_one_line(tmp_path: Path, url: str, message: str) -> None:
    for arguments in (("scenario", "list"), ("serve",)):
        done = planner(tmp_path, *arguments, PLANNER_DATABASE_URL=url)
        assert done.returncode == 2
        assert message in done.stderr
        assert "Traceback" not in done.stderr


def test_migrating_by_hand(tmp_path: Path) -> None:
    printed = [
        planner(tmp_path, "db", *arguments).stdout.strip()
        for arguments in (("upgrade",), ("check",), ("downgrade", "--", "-1"), ("upgrade", "head"))
    ]
    assert printed == [
        "at revision 0008",
        "at revision 0008, tables as they should be",
        "at revision 0007",
        "at revision 0008",
    ]
    planner(tmp_path, "db", "downgrade", "base")
    behind = planner(tmp_path, "db", "check")
    assert behind.returncode == 2
    assert "run `planner db upgrade`" in behind.stderr


def test_keys_are_listed_without_themselves(tmp_path: Path) -> None:
    made = planner(tmp_path, "keys", "create", "--workspace", "team", "--name", "ci")
    ident = made.stderr.split()[1].rstrip(";")
    listed = planner(tmp_path, "keys", "list").stdout
    assert "ci" in listed
    assert made.stdout.strip() not in listed
    assert planner(tmp_path, "keys", "revoke", ident).returncode == 0
    assert "revoked" in planner(tmp_path, "keys", "list").stdout


def test_settings_are_printed_with_defaults_and_without_secrets(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("PLANNER_PORT=9001\nPLANNER_ALLOWED_HOSTS=a.example, b\n")
    url = "postgresql://u:hunter2@h/d"
    printed = planner(tmp_path, "serve", "--settings", PLANNER_DATABASE_URL=url).stdout
    assert "hunter2" not in printed
    assert "PLANNER_PORT=9001" in printed
    for name, field in Settings.model_fields.items():
        line = next(x for x in printed.splitlines() if x.startswith(f"PLANNER_{name.upper()}="))
        assert field.description
        assert field.description in line


def test_the_example_names_every_setting_with_its_default() -> None:
    text = (Path(__file__).parents[2] / ".env.example").read_text()
    docs = (Path(__file__).parents[2] / "docs" / "operating.md").read_text()
    for name, field in Settings.model_fields.items():
        default = field.get_default(call_default_factory=True)
        shown = "" if default in (None, []) else str(default)
        assert f"PLANNER_{name.upper()}={shown}" in text, name
        assert f"PLANNER_{name.upper()}" in docs, name
