"""YAML that is read safely: lines, bounds, and nothing that is rendered or run."""

from __future__ import annotations

import pytest
import yaml

from planner.handover.documents import MOST_BYTES, MOST_DEPTH, documents, line_of
from planner.handover.refusal import Unreadable

TEXT = """\
a: 1
b:
  - x
  - |
    two
    lines
c: {d: [1, 2], e: "on"}
f: on
g: 1.5
h: null
i: 2026-12-01
---
- last
"""


def test_values_are_those_of_yaml() -> None:
    first, second = documents(TEXT)
    plain = list(yaml.safe_load_all(TEXT))
    plain[0]["i"] = "2026-12-01"  # a date stays text
    assert [first, second] == plain
    assert second == ["last"]


def test_every_value_has_its_line() -> None:
    (first, second) = documents(TEXT)
    assert [line_of(first, key) for key in "abcfi"] == [1, 2, 7, 8, 11]
    assert [line_of(first["b"], n) for n in (0, 1)] == [3, 5]  # a block's text is below its mark
    assert line_of(second, 0) == 13


def test_aliases_and_merges_are_read_and_bounded() -> None:
    (one,) = documents("base: &b {x: 1, y: 2}\nnext: {<<: *b, y: 3}\nlist: [*b, *b]\n")
    assert one["next"] == {"x": 1, "y": 3}
    assert one["list"] == [{"x": 1, "y": 2}] * 2
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)
    )
    with pytest.raises(Unreadable, match="aliases expanded"):
        documents(bomb)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: {{ .Values.a }}", "line 1: a template"),
        ("x: 1\n{{- if .Values.b }}", "line 2: a template"),
        ("a: ${{ github.sha }}", "line 1: a template"),
        ("{% set a = 1 %}", "line 1: a template"),
        ("a: !!python/object/apply:os.system [id]", "line 1: tag"),
        ("a: !include other.yaml", "line 1: tag"),
        ("a: *nothing", "line 1:"),
        ("a: &a [*a]", "line 1: alias"),
        ("a: 1\na: 2", "line 2: key 'a' is there twice"),
        ("? [1, 2]\n: 3", "line 1: a key is an object"),
        ("a: [1", "not YAML"),
        ("a: \x07", "not YAML"),
        ("[" * (MOST_DEPTH + 2) + "]" * (MOST_DEPTH + 2), "objects within each other"),
        ("[" * 100_000, "nesting"),
        ("a: " + "x" * MOST_BYTES, "bytes; accepted"),
        ("[" + "1," * 30_000 + "]", "more than 20000 values"),
        ("a: !!int twelve", "is not what its tag says"),
        ("---\n" * 200, "documents"),
    ],
)
def test_what_is_not_read_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(Unreadable) as refused:
        documents(text)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_json_in_arguments_is_no_template() -> None:
    text = """args: ['--config', '{"a": {"b": {"c": 1}}}', "{{"]\n"""
    assert documents(text)[0]["args"][1] == '{"a": {"b": {"c": 1}}}'
