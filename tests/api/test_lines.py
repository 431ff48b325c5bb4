"""A workspace as lines: out and in again, resumed at any cursor, nothing stored twice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from api.web.problem import Problem
from api.workspace.service import pages
from tests.api.conftest import CONFIG, QUESTION, Client, Keyed, make_everything
from tests.api.test_errors import check
from tests.api.test_workspace import without_ids

PATH = "/v1/workspace/lines"
KIND = {"Content-Type": "application/x-ndjson"}


def things(lines: str) -> list[dict[str, Any]]:
    """The lines that hold something."""
    parsed = [json.loads(line) for line in lines.splitlines()]
    return [line for line in parsed if not set(line) & {"format", "cursor", "end"}]


@pytest.fixture(scope="module")
def everything(keyed: Keyed) -> str:
    """The lines of a workspace that has one of each kind, a changed and a deleted scenario."""
    ids = make_everything(keyed.client, keyed.writer)
    path, match = f"/v1/scenarios/{ids['scenario_id']}", {**keyed.writer, "If-Match": "*"}
    keyed.client.put(path, json={**QUESTION, "tags": ["second"]}, headers=match)
    keyed.client.delete(path, headers=match)
    answer = keyed.client.get(PATH, headers=keyed.writer)
    assert answer.headers["content-type"] == "application/x-ndjson"
    return answer.text


def test_lines_come_back_the_same_elsewhere(keyed: Keyed, everything: str) -> None:
    kinds = [next(iter(thing)) for thing in things(everything)]
    assert kinds == ["model", "accelerator", "measurement", "scenario", "scenario", "comparison"]
    assert everything.endswith('{"end": true}\n')
    theirs = {"headers": {**keyed.stranger, **KIND}}
    answer = keyed.client.post(f"{PATH}?name=first", content=everything, **theirs)
    assert answer.status_code == 201, answer.text
    counts = {f"{kind}s": kinds.count(kind) for kind in kinds}
    assert answer.json() == {"name": "first", "skipped": 0, "complete": True, **counts}
    exports = [
        keyed.client.get("/v1/workspace/export", headers=headers).json()
        for headers in (keyed.writer, keyed.stranger)
    ]
    assert without_ids(exports[0]) == without_ids(exports[1])
    sources = exports[1]["comparisons"][0]["answer"]["sources"]
    new = {scenario["id"] for scenario in exports[1]["scenarios"]}
    assert {source["scenario_id"] for source in sources} == new
    calibrations = {
        keyed.client.get("/v1/about", headers=headers).json()["editions"]["calibration"]
        for headers in (keyed.writer, keyed.stranger)
    }
    assert len(calibrations) == 1
    assert "+own.1." in calibrations.pop()
    again = keyed.client.post(f"{PATH}?name=first", content=everything, **theirs).json()
    # Own objects are what they were under their ids, all other lines are known.
    assert (again["skipped"], again["scenarios"], again["models"]) == (4, 0, 1)


def test_an_export_goes_on_at_any_cursor(keyed: Keyed, everything: str) -> None:
    wanted, seen, cursor = things(everything), [], None
    for _ in range(10):
        query = {"limit": 1, **({"cursor": cursor} if cursor else {})}
        lines = keyed.client.get(PATH, params=query, headers=keyed.writer).text
        seen += things(lines)
        last = json.loads(lines.splitlines()[-1])
        if "end" in last:
            break
        cursor = last["cursor"]
    assert seen == wanted
    check(keyed.client.get(f"{PATH}?cursor=abcd", headers=keyed.writer), 400)
    check(keyed.client.get(f"{PATH}?cursor={cursor}", headers=keyed.stranger), 400)


def test_an_import_goes_on_where_it_broke_off(client: Client) -> None:
    make_everything(client)
    lines = client.get(PATH).text
    broken = [*lines.splitlines(keepends=True)]
    scenarios = [i for i, line in enumerate(broken) if line.startswith('{"scenario"')]
    whole = broken[scenarios[1]]
    broken[scenarios[1]] = '{"scenario": {"id": "x"}}\n'
    problem = check(client.post(f"{PATH}?name=n", content="".join(broken), headers=KIND), 422)
    assert problem.detail.startswith(f"line {scenarios[1] + 1}: revisions")
    assert "name n to go on" in problem.detail
    assert len(client.get("/v1/scenarios").json()["items"]) == 2, "its page is not stored"
    first = "".join(broken[: scenarios[1]])
    half = client.post(f"{PATH}?name=n", content=first, headers=KIND).json()
    assert (half["scenarios"], half["complete"]) == (1, False)
    broken[scenarios[1]] = whole
    rest = client.post(f"{PATH}?name=n", content="".join(broken), headers=KIND).json()
    assert (rest["scenarios"], rest["skipped"], rest["complete"]) == (1, 2, True)
    assert len(client.get("/v1/scenarios").json()["items"]) == 4


@pytest.mark.parametrize(
    ("line", "status", "named"),
    [
        ("[]", 400, "not an object"),
        ("{}", 400, "not an object"),
        ("{", 400, "not an object"),
        ('{"model": {"id": "x", "config": {"a": 1e999}}}', 400, "not an object"),
        ('{"model": {"id": "x", "config": {"a": NaN}}}', 400, "not an object"),
        ('{"thing": 1}', 422, "accepted: one of model"),
        ('{"format": "other/1"}', 422, "decode-planner-lines/1"),
        ('{"model": {"id": "x", "config": {"model_type": "llama"}}}', 422, "config"),
        ('{"model": {"id": "x", "config": {"a": "\\u0000"}}}', 400, "NUL"),
        ('{"measurement": {"format": "x", "rows": [], "notes": [], "created_at": ""}}', 422, ""),
    ],
)
def test_what_is_no_line_is_refused_by_number(
    shared: Client, line: str, status: int, named: str
) -> None:
    content = f'{{"format": "decode-planner-lines/1"}}\n\n{line}\n'
    problem = check(shared.post(PATH, content=content, headers=KIND), status)
    assert problem.detail.startswith("line 3: ")
    assert named in problem.detail


def test_an_own_id_that_is_something_else_is_said(client: Client) -> None:
    make_everything(client)
    other = {"id": "mine", "config": {**CONFIG, "num_hidden_layers": 16}}
    line = json.dumps({"model": other})
    problem = check(client.post(PATH, content=line, headers=KIND), 409)
    assert problem.detail.startswith("line 1: id: own/mine is taken")


def test_other_bodies_are_refused(shared: Client) -> None:
    check(shared.post(PATH, content="{}", headers={"Content-Type": "application/json"}), 415)
    check(shared.post(f"{PATH}?name=a/b", content="", headers=KIND), 400)
    check(shared.get(PATH, headers={"Accept": "text/csv"}), 406)


def paged(chunks: list[bytes], most: int = 100) -> list[list[tuple[int, bytes]]]:
    async def body() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    async def collect() -> list[list[tuple[int, bytes]]]:
        return [page async for page in pages(body(), most)]

    return asyncio.run(collect())


def _cut(text: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(text), size):
        yield text[start : start + size]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_lines_are_the_same_however_the_body_is_cut(size: int) -> None:
    text = b"first\n\nsecond\r\nthird"
    assert paged(list(_cut(text, size))) == [[(1, b"first"), (3, b"second\r"), (4, b"third")]]


def test_pages_are_bounded() -> None:
    assert [len(page) for page in paged([b"x\n" * 450])] == [200, 200, 50]
    assert paged([]) == []
    with pytest.raises(Problem, match="line 2: accepted: 100 bytes at most") as refused:
        paged([b"x\n", b"y" * 101])
    assert refused.value.status == 413
