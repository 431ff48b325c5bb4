"""The examples, run as they stand; what they print is held to what they are about."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
NOTEBOOK = json.loads(EXAMPLES.joinpath("roofline.ipynb").read_text("utf-8"))
CODE = ["".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]


def printed(name: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def priced(*command: str) -> list[list[str]]:
    """Rows of accelerators with a price, of which there is at least one."""
    table = printed(*command).partition(" accelerators cannot hold")[0]
    rows = [line.split() for line in table.splitlines()[1:-1]]
    assert rows
    return rows


def test_they_are_all_in_the_index() -> None:
    names = {path.name for path in EXAMPLES.iterdir() if path.is_file()} - {"README.md"}
    index = EXAMPLES.joinpath("README.md").read_text("utf-8")
    assert names == set(re.findall(r"^\| \[`(\S+)`\]", index, re.MULTILINE))


def test_the_cheapest_is_listed_first_and_within_the_limit() -> None:
    rows = priced("cheapest_gpu.py")
    prices = [float(row[-1]) for row in rows]
    assert prices == sorted(prices)
    assert all(float(row[-2]) <= 40.0 for row in rows)


def test_arguments_are_a_model_and_a_limit() -> None:
    rows = priced("cheapest_gpu.py", "openai/gpt-oss-120b", "20")
    assert all(float(row[-2]) <= 20.0 for row in rows)


def test_fewer_kv_heads_take_a_smaller_cache() -> None:
    """2 (k and v) · 48 layers · 8 heads · 128 wide · 2 bytes = 197 kB, and so on in proportion."""
    caches = re.findall(r"(\d) KV heads: (\d+) kB a token", printed("own_model.py"))
    assert caches == [("8", "197"), ("4", "98"), ("2", "49")]


def test_more_users_get_more_tokens_later() -> None:
    rows = [line.split() for line in printed("under_load.py").splitlines()[1:9]]
    for column in (2, 3, 4):
        values = [float(row[column]) for row in rows]
        assert values == sorted(values)
    assert [row[-1] for row in rows] == sorted((row[-1] for row in rows), reverse=True)


def test_the_notebook_runs_from_top_to_bottom(capsys: pytest.CaptureFixture[str]) -> None:
    """As Jupyter does: the value of a cell's last expression is what it shows."""
    names: dict[str, Any] = {}
    charts = [shown for cell in CODE if (shown := _run(cell, names)) is not None]
    out = capsys.readouterr().out
    (chart,) = charts
    assert chart._repr_svg_().count("<polyline") == 1 + 4
    assert re.search(r"Llama 70B, tp 4 +59\.8 +295 +none", out)
    assert "nan" not in out


def _run(cell: str, names: dict[str, Any]) -> Any:
    tree = ast.parse(cell)
    last = tree.body[-1]
    value = tree.body.pop() if isinstance(last, ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)  # noqa: S102 (the notebook's own code)
    if not isinstance(value, ast.Expr):
        return None
    return eval(compile(ast.Expression(value.value), "cell", "eval"), names)  # noqa: S307 (as above)


def test_the_notebook_is_stored_without_results_of_a_run() -> None:
    assert (NOTEBOOK["nbformat"], NOTEBOOK["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in NOTEBOOK["cells"]}) == len(NOTEBOOK["cells"])
    cells = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] or cell["execution_count"] for cell in cells)
