"""The shape of the code: floors, no circle, no knot, small files, no holes in its types.

Imports are read from the source, those inside functions and for types included: what is hidden
from a start-up is not hidden from a reader.
"""

from __future__ import annotations

import ast
import statistics
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FLOORS = (
    ("errors", "units", "roofline"),
    ("precision", "workload"),
    ("kernels", "scenario"),
    ("hw", "models", "answer"),
    ("step",),
    ("engines",),
    ("calibration",),
    ("deployment",),
    ("serving",),
    ("plans",),
    ("runs",),
    ("benchmarks",),
    ("fitting",),
    ("accuracy",),
    ("pictures", "handover"),
    ("commands",),
    ("cli", "__init__"),
)
"""Rooms of `planner/`, from the ground up: a room imports itself and what stands on lower floors.

Rooms of one floor do not import each other: models know no hardware, and hardware no models.
"""
API_FLOORS = (
    ("settings",),
    ("store",),
    ("web",),
    ("lanes",),
    ("catalog", "measurements"),
    ("services",),
    ("plans", "scenarios", "checks"),
    ("comparisons", "system", "agents", "changes"),
    ("workspace", "openapi", "page"),
    ("housekeeping",),
    ("jobs",),
    ("app",),
    ("commands", "__init__"),
)
"""Rooms of `api/`; the areas are those above `web`, and `web` is handed what it needs of them."""


def _modules(package: str) -> dict[str, Path]:
    """Return the files of a package by dotted name; a package's own is `package.__init__`."""
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path
        for path in sorted((ROOT / package).rglob("*.py"))
    }


MODULES = _modules("planner") | _modules("api")
FILES = [*MODULES.values(), *_modules("migrations").values()]
TREES = {name: ast.parse(path.read_text("utf-8")) for name, path in MODULES.items()}


def _imports(tree: ast.Module) -> Iterator[str]:
    """Yield the modules of this repository that a module imports anywhere."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            for candidate in (name, f"{name}.__init__", *_owners(name)):
                if candidate in MODULES:
                    yield candidate
                    break


def _owners(name: str) -> tuple[str, str]:
    """Return the module or package that an imported name is taken from."""
    owner = name.rpartition(".")[0]
    return owner, f"{owner}.__init__"


IMPORTS = {name: {*_imports(tree)} - {name} for name, tree in TREES.items()}


def _room(module: str) -> str:
    """Return the entry of `planner/` or `api/` that a module is or lies in."""
    return module.split(".")[1]


def _package(module: str) -> str:
    """Return the folder of a module; a file right under `planner/` or `api/` is its own."""
    folder = module.rpartition(".")[0]
    return folder if "." in folder else module


def _cycle(graph: Mapping[str, Iterable[str]]) -> list[str]:
    """Return one circle of a graph, empty where there is none."""
    done: set[str] = set()
    path: list[str] = []

    def visit(node: str) -> list[str]:
        if node in path:
            return [*path[path.index(node) :], node]
        if node in done:
            return []
        path.append(node)
        for other in sorted(graph.get(node, ())):
            if circle := visit(other):
                return circle
        path.pop()
        done.add(node)
        return []

    return next((circle for node in sorted(graph) if (circle := visit(node))), [])


def test_a_circle_is_recognised() -> None:
    assert _cycle({"a": ["b"], "b": ["c"], "c": ["b"]}) == ["b", "c", "b"]
    assert _cycle({"a": ["b", "c"], "b": ["c"], "c": []}) == []


def test_imports_are_read_wherever_they_stand() -> None:
    text = (
        "from planner import hw\nfrom planner.models import get_model\nimport planner.units\n"
        "def late():\n    from planner.step.parallel import Sharding\n"
    )
    assert {*_imports(ast.parse(text))} == {
        "planner.hw.__init__",
        "planner.models.__init__",
        "planner.units",
        "planner.step.parallel",
    }


def test_no_module_imports_itself_through_others() -> None:
    assert _cycle(IMPORTS) == []


def test_no_package_imports_itself_through_others() -> None:
    graph: dict[str, set[str]] = {}
    for module, imported in IMPORTS.items():
        packages = {_package(other) for other in imported} - {_package(module)}
        graph.setdefault(_package(module), set()).update(packages)
    assert _cycle(graph) == []


@pytest.mark.parametrize(("package", "floors"), [("planner", FLOORS), ("api", API_FLOORS)])
def test_imports_go_down(package: str, floors: tuple[tuple[str, ...], ...]) -> None:
    heights = {room: height for height, rooms in enumerate(floors) for room in rooms}
    modules = [name for name in MODULES if name.startswith(f"{package}.")]
    assert {_room(name) for name in modules} <= set(heights), "a room without a floor"
    climbs = [
        f"{module} imports {other}"
        for module in modules
        for other in sorted(IMPORTS[module])
        if other.startswith(f"{package}.")
        and _room(other) != _room(module)
        and heights[_room(other)] >= heights[_room(module)]
    ]
    assert climbs == []


def test_the_library_knows_nothing_of_the_service() -> None:
    library = {name: used for name, used in IMPORTS.items() if name.startswith("planner.")}
    assert not [name for name, used in library.items() if any(n.startswith("api.") for n in used)]


def test_the_root_is_a_list_of_rooms() -> None:
    entries = {path.name for path in (ROOT / "planner").iterdir()} - {"__pycache__", "py.typed"}
    assert len(entries) <= 25


def test_files_are_small() -> None:
    lines = {path: path.read_text("utf-8").count("\n") for path in FILES}
    assert 80 <= statistics.median(lines.values()) <= 150
    assert {str(path.relative_to(ROOT)) for path, count in lines.items() if count > 400} == set()


def test_a_part_declares_what_is_read_of_it() -> None:
    """`getattr(part, "width", 0)` takes a misspelt or forgotten attribute for a zero."""
    guarded = [
        f"{name}:{node.lineno}"
        for name, tree in TREES.items()
        if name.startswith(("planner.models.", "planner.step.", "planner.engines."))
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "getattr"
        and len(node.args) == 3
    ]
    assert guarded == []


def test_refusals_are_recognised_by_their_class() -> None:
    """The service answers 422 to an InvalidInput; another ValueError is a defect."""
    plain = [
        f"{name}: {node.name}"
        for name, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and node.name != "InvalidInput"
        and any(isinstance(base, ast.Name) and base.id == "ValueError" for base in node.bases)
    ]
    assert plain == []


def test_a_class_name_has_one_meaning() -> None:
    owners: dict[str, list[str]] = {}
    for name, tree in TREES.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                owners.setdefault(node.name, []).append(name)
    assert {name: used for name, used in owners.items() if len(used) > 1} == {}
