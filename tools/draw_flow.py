"""Draw docs/flow.svg: the rooms of the code and how data flow through them, read from the imports.

    python tools/draw_flow.py

A room is an entry of `planner/`, or the service as a whole; its text is the first line of its
docstring. An arrow goes from a room to one that imports it, unless a longer way says so already.
Needs only the repository. tests/test_docs.py compares the file with the code.
"""

from __future__ import annotations

import ast
import re
import statistics
import textwrap
from collections.abc import Iterator, Mapping
from html import escape
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILE = ROOT / "docs" / "flow.svg"
SERVICE = "api"
MODULE = re.compile(rf"(planner|{SERVICE})(\.\w+)+")
"""A module that is loaded by its name, as commands are."""
EVERYWHERE = {"__init__", "errors", "units"}
"""What every room uses: arrows from there would say nothing."""

WIDTH, HEIGHT, GAP_X, GAP_Y, BEND, MARGIN, LANE = 250, 72, 18, 32, 16, 16, 26
LETTERS = 39
"""Letters of a line in a box."""
ROUNDS = 12
"""How often layers are put in order, downwards and upwards."""

AT_RUN_TIME = {"answer": {"pictures"}}
"""Imports that run back up on purpose: a notebook asks a plan for its picture, and gets it then."""

Graph = Mapping[str, set[str]]


def rooms() -> dict[str, list[Path]]:
    """Return the Python files of each room."""
    entries = sorted((ROOT / "planner").iterdir())
    files = {path.stem: sorted(path.rglob("*.py")) or [path] for path in entries if _is_room(path)}
    return files | {SERVICE: sorted((ROOT / SERVICE).rglob("*.py"))}


def _is_room(path: Path) -> bool:
    python = path.suffix == ".py" or (path / "__init__.py").is_file()
    return python and path.stem not in EVERYWHERE


def imports(files: Mapping[str, list[Path]]) -> dict[str, set[str]]:
    """Return the rooms that each room imports, wherever the import stands."""
    used = {room: {*_imported(paths)} for room, paths in files.items()}
    return {
        room: (names & set(files)) - {room} - AT_RUN_TIME.get(room, set())
        for room, names in used.items()
    }


def _imported(paths: list[Path]) -> Iterator[str]:
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Constant) and MODULE.fullmatch(str(node.value)):
                names = [str(node.value)]
            else:
                continue
            for package, name, *_ in (f"{name}.".split(".") for name in names):
                if package in ("planner", SERVICE):
                    yield name if package == "planner" else SERVICE


def reduced(graph: Graph) -> dict[str, set[str]]:
    """Return the graph without imports that follow from others."""
    reach: dict[str, set[str]] = {}

    def below(room: str) -> set[str]:
        if room not in reach:
            reach[room] = graph[room].union(*(below(other) for other in graph[room]))
        return reach[room]

    return {
        room: {name for name in used if not any(name in below(o) for o in used - {name})}
        for room, used in graph.items()
    }


def layers(graph: Graph) -> list[list[str]]:
    """Return rooms by the length of the longest way to them; a `from>to:n` holds a passing arrow.

    Rooms of a layer are ordered by the places of what they import and of what imports them.
    """
    height: dict[str, int] = {}

    def level(room: str) -> int:
        if room not in height:
            height[room] = 1 + max((level(other) for other in graph[room]), default=-1)
        return height[room]

    table: list[list[str]] = [[] for _ in range(1 + max(level(room) for room in sorted(graph)))]
    for room in sorted(graph):
        table[height[room]].append(room)
    near: dict[str, list[str]] = {}
    for way in ways(graph, height):
        for one, other in pairwise(way):
            near.setdefault(one, []).append(other)
            near.setdefault(other, []).append(one)
        for place, name in enumerate(way[1:-1], height[way[0]] + 1):
            table[place].append(name)
    for _ in range(ROUNDS):
        for fixed, row in (*pairwise(table), *pairwise(table[::-1])):
            _order(row, fixed, near)
    return table


def _order(row: list[str], fixed: list[str], near: Mapping[str, list[str]]) -> None:
    """Sort a layer by the mean place of each one's neighbours in the layer beside it."""
    beside, own = (
        {name: (place + 0.5) / len(names) for place, name in enumerate(names)}
        for names in (fixed, row)
    )
    wanted = {
        name: statistics.fmean(
            [beside[o] for o in near.get(name, ()) if o in beside] or [own[name]]
        )
        for name in row
    }
    row.sort(key=wanted.__getitem__)


def ways(graph: Graph, height: Mapping[str, int]) -> list[list[str]]:
    """Return each arrow as the places it goes through: a room, passing places, a room."""
    return [
        [other, *(f"{other}>{room}:{n}" for n in range(height[other] + 1, height[room])), room]
        for room in sorted(graph)
        for other in sorted(graph[room])
    ]


def drawing(files: Mapping[str, list[Path]]) -> str:
    """Return the picture."""
    graph = reduced(imports(files))
    table = layers(graph)
    height = {name: level for level, row in enumerate(table) for name in row}
    wide = max(sum(_width(name) + GAP_X for name in row) - GAP_X for row in table)
    middle: dict[str, float] = {}
    for row in table:
        x = MARGIN + (wide - sum(_width(name) + GAP_X for name in row) + GAP_X) / 2
        for name in row:
            middle[name] = x + _width(name) / 2
            x += _width(name) + GAP_X
    tops = {name: MARGIN + level * (HEIGHT + GAP_Y) for name, level in height.items()}
    size = wide + 2 * MARGIN, 2 * MARGIN + len(table) * (HEIGHT + GAP_Y) - GAP_Y
    body = [_arrow(way, middle, tops) for way in ways(graph, height)]
    body += [_box(room, files[room], middle[room], tops[room]) for room in sorted(graph)]
    return HEAD.format(width=size[0], height=size[1]) + "\n".join(body) + "\n</svg>\n"


HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" \
font-family="sans-serif" font-size="11" role="img">
<title>Rooms of the code, and how data flow through them</title>
<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" \
orient="auto"><path d="M0 0L8 4L0 8z" fill="#5b6b7b"/></marker></defs>
<rect width="100%" height="100%" fill="#fff"/>
"""


def _width(name: str) -> int:
    return LANE if ">" in name else WIDTH


def _arrow(way: list[str], middle: Mapping[str, float], tops: Mapping[str, float]) -> str:
    x, y = middle[way[0]], tops[way[0]] + HEIGHT
    path = f"M{x:.0f} {y:.0f}"
    for name in way[1:]:
        x2, y2 = middle[name], tops[name]
        path += f"C{x:.0f} {y + BEND:.0f} {x2:.0f} {y2 - BEND:.0f} {x2:.0f} {y2:.0f}"
        if name != way[-1]:
            path += f"V{y2 + HEIGHT:.0f}"
        x, y = x2, y2 + HEIGHT
    return f'<path d="{path}" fill="none" stroke="#5b6b7b" marker-end="url(#tip)"/>'


def _box(room: str, paths: list[Path], middle: float, top: float) -> str:
    """A room: its name, whether it holds data files, and what its docstring says first."""
    x = middle - WIDTH / 2
    folder = paths[0].parent
    data = room != SERVICE and folder.name == room and any(folder.rglob("data/*"))
    owner = next((path for path in paths if path == folder / "__init__.py"), paths[0])
    text = (ast.get_docstring(ast.parse(owner.read_text("utf-8"))) or "").partition("\n")[0]
    lines = textwrap.wrap(text.replace("`", ""), LETTERS, max_lines=3, placeholder="…")
    label = f"{room}, with data files" if data else room
    ends = room in (SERVICE, "cli", "commands")
    fill = "#eaf3ea" if data else "#f3ede2" if ends else "#eaf0f7"
    size = f'width="{WIDTH}" height="{HEIGHT}" rx="6"'
    bold = 'font-size="13" font-weight="bold"'
    parts = [
        f'<rect x="{x:.0f}" y="{top}" {size} fill="{fill}" stroke="#33475b"/>',
        f'<text x="{x + 10:.0f}" y="{top + 18}" {bold}>{escape(label)}</text>',
    ]
    for number, line in enumerate(lines):
        y = top + 35 + 14 * number
        parts.append(f'<text x="{x + 10:.0f}" y="{y}" fill="#33475b">{escape(line)}</text>')
    return "\n".join(parts)


def main() -> None:
    FILE.write_text(drawing(rooms()), encoding="utf-8")
    print(FILE.relative_to(ROOT))


if __name__ == "__main__":
    main()
