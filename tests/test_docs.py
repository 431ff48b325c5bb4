"""The documentation against the code: links lead somewhere, names exist, commands work."""

from __future__ import annotations

import ast
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from planner.answer import Answer, Limits, MemoryAnswer, Serving
from planner.cli import main
from tests.scripts import script

ROOT = Path(__file__).parents[1]
FLOW = script("draw_flow")
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*.md")]
ANSWERS: dict[str, type[Answer]] = {"memory": MemoryAnswer, "serving": Serving, "limits": Limits}
"""Parts of an answer whose fields pages name: `memory.max_batch`."""
README = ROOT.joinpath("README.md").read_text("utf-8")
LINK = re.compile(r"\]\(([^)\s]+)\)")
PLACE = re.compile(r"[A-Z]{3,}")
"""What a name of a file leaves open: `accelerators-DATE.json`."""
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\b[^\n]*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    text = FENCED.sub("", page.read_text("utf-8"))
    broken = []
    for link in LINK.findall(text):
        if "://" in link:
            continue
        path, _, heading = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (heading and heading not in _anchors(target)):
            broken.append(link)
    assert broken == []


def _anchors(page: Path) -> set[str]:
    """Return a page's headings as links name them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h).strip().lower().replace(" ", "-") for h in headings}


def test_the_index_has_every_page() -> None:
    index = ROOT.joinpath("docs/README.md").read_text("utf-8")
    pages = {path.name for path in ROOT.glob("docs/*.md")} - {"README.md"}
    assert pages <= set(LINK.findall(index))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_are_named_exist(page: Path) -> None:
    """A changelog names files that are no more, the recipes those that are yet to be written."""
    if page.name in ("CHANGELOG.md", "CONTRIBUTING.md"):
        return
    named = re.findall(
        r"`((?:planner|api|tools|tests|docs|bench)/[^\s`]+)`", page.read_text("utf-8")
    )
    assert [name for name in named if not any(ROOT.glob(PLACE.sub("*", name)))] == []


def _definitions() -> set[str]:
    """Return functions, classes, methods and fields of the library by dotted name."""
    names: set[str] = set()
    for path in (ROOT / "planner").rglob("*.py"):
        module = ".".join(path.relative_to(ROOT / "planner").with_suffix("").parts)
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names.add(f"{module}.{node.name}")
            if isinstance(node, ast.ClassDef):
                names |= {f"{module}.{node.name}.{name}" for name in _members(node)}
    return names


def _members(node: ast.ClassDef) -> set[str]:
    functions = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
    targets = [item.target for item in node.body if isinstance(item, ast.AnnAssign)]
    return functions | {target.id for target in targets if isinstance(target, ast.Name)}


def test_the_functions_of_the_formulas_exist() -> None:
    """`roofline.Roof.ridge`, the end of a longer name, `loading.loaded_bytes`, or of an answer."""
    text = ROOT.joinpath("docs/physics.md").read_text("utf-8")
    named = set(re.findall(r"`([a-z_]+(?:\.[A-Za-z_]\w*)+)`", text))
    named -= {name for name in named if name.endswith((".py", ".md"))}
    known = _definitions() | {_module(path) for path in (ROOT / "planner").rglob("*.py")}
    known |= {f"{part}.{name}" for part, model in ANSWERS.items() for name in model.model_fields}
    lost = [n for n in sorted(named) if not any(f".{k}".endswith(f".{n}") for k in known)]
    assert lost == []


def _module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT / "planner").with_suffix("").parts)


def test_the_picture_of_the_flow_is_that_of_the_code() -> None:
    """Run `python tools/draw_flow.py` where this fails."""
    assert FLOW.FILE.read_text("utf-8") == FLOW.drawing(FLOW.rooms())


def test_an_arrow_that_follows_from_others_is_not_drawn() -> None:
    graph = {"cli": {"plans", "models"}, "plans": {"models"}, "models": set()}
    assert FLOW.reduced(graph) == {"cli": {"plans"}, "plans": {"models"}, "models": set()}
    assert FLOW.layers(FLOW.reduced(graph)) == [["models"], ["plans"], ["cli"]]


def test_a_long_arrow_passes_between_the_rooms() -> None:
    graph = {"top": {"low", "middle"}, "middle": {"base"}, "base": set(), "low": set()}
    table = FLOW.layers(graph)
    assert [sorted(row) for row in table] == [["base", "low"], ["low>top:1", "middle"], ["top"]]
    assert table[0].index("low") == table[1].index("low>top:1")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a working directory with the files that the README's commands read."""
    scenario: dict[str, Any] = {
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "gpu": "h100-sxm5",
        "batch": [8],
        "context": [2048],
    }
    for name in ("fp8", "bf16"):
        tmp_path.joinpath(f"{name}.json").write_text(json.dumps(scenario | {"weights": name}))
    tmp_path.joinpath("lengths.txt").write_text("100\n300\n")
    tmp_path.joinpath("ROWS.csv").write_text(
        "model,gpu,n_gpus,tp,engine,weight_format,batch,context,metric,value\n"
        "meta-llama/Llama-3.1-8B-Instruct,h100-sxm5,1,1,vllm,bf16,8,2048,tpot_ms,7.5\n"
    )
    tmp_path.joinpath("RESULTS").write_text(
        json.dumps([{"n_prompt": 0, "n_gen": 128, "n_depth": 0, "avg_ts": 140.0}])
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLANNER_DATA_DIR", str(tmp_path / "data"))
    return tmp_path


PLACES = {
    "MODEL": "meta-llama/Llama-3.1-8B-Instruct",
    "GPU": "h100-sxm5",
    "ENGINE": "vllm",
    "--context 8192 --tpot-ms 50 --all": "--context 8192 --tpot-ms 50 --gpu GPU",
}
COMMANDS = [
    command.strip()
    for block in blocks(README.partition("## Check")[0], "sh")
    for line in block.splitlines()
    for command in line.partition("#")[0].split(";")
    if command.startswith(("planner", " planner"))
]


REFITS = "planner validate --choices"
"""Fits the calibration again for each fold: minutes."""


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "command",
    [pytest.param(c, marks=pytest.mark.slow) if c.strip() == REFITS else c for c in COMMANDS],
)
def test_the_readmes_commands_work(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    for place, value in reversed(PLACES.items()):
        command = command.replace(place, value)
    main(shlex.split(command)[1:])
    assert capsys.readouterr().out


def test_the_first_answer_begins_as_the_readme_says(capsys: pytest.CaptureFixture[str]) -> None:
    main(shlex.split(COMMANDS[0])[1:])
    assert capsys.readouterr().out.startswith(blocks(README, "text")[0].strip())


def test_the_readmes_python_works() -> None:
    (code,) = blocks(README, "python")
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 (the README's own code)
    assert names["answer"].limits.saturation_intensity == pytest.approx(59.8, abs=0.05)


def test_the_accelerator_to_copy_works(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = ROOT.joinpath("docs/hardware.md").read_text("utf-8")
    folder.joinpath("mygpu.toml").write_text(blocks(page, "toml")[0])
    main(["plan", PLACES["MODEL"], "--gpu", "mygpu.toml"])
    assert "ridge is 300" in capsys.readouterr().out
