"""Bodies that are broken, large, or at the edge of what a number or a text can be."""

from __future__ import annotations

import json
import math
import random
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from tests.api.conftest import CARD, CONFIG, QUESTION, RESULTS, Client
from tests.api.record import record
from tests.api.test_errors import check

JSON = {"Content-Type": "application/json"}
TARGETS: list[tuple[str, dict[str, Any]]] = [
    ("/v1/plans", QUESTION),
    ("/v1/scenarios", QUESTION),
    ("/v1/sweeps", {"scenario": QUESTION, "gpu": ["h100-sxm5"], "tp": [4]}),
    ("/v1/roofline", {"model": QUESTION["model"], "gpu": "h100-sxm5"}),
    ("/v1/comparisons", {"scenarios": [QUESTION, {**QUESTION, "tp": 8}]}),
    ("/v1/models", {"id": "mine", "config": CONFIG}),
    ("/v1/accelerators", {"id": "card", "spec": CARD}),
    ("/v1/measurements?gpu=h100-sxm5&tp=1", RESULTS),
]
EDGES = [
    "NaN",
    "Infinity",
    "-Infinity",
    "1e999",
    "-1",
    "0",
    "1.5",
    "true",
    "null",
    '""',
    "[]",
    "{}",
    "9223372036854775808",
    "1" + "0" * 400,
    "-0.0",
    "5e-324",
    '"\\u0000"',
    '"\\ud800"',
]


def mutants(seed: int, count: int) -> Iterator[tuple[str, bytes]]:
    """Valid bodies with something broken in each; together they are gigabytes."""
    rng = random.Random(seed)  # noqa: S311 - a fixed sequence
    for _ in range(count):
        path, document = rng.choice(TARGETS)
        text = json.dumps(document).encode()
        kind = rng.randrange(6)
        if kind == 0:
            text = text[: rng.randrange(len(text))]
        elif kind == 1:
            broken = bytearray(text)
            for _ in range(rng.randint(1, 4)):
                broken[rng.randrange(len(broken))] = rng.randrange(256)
            text = bytes(broken)
        elif kind == 2:
            text = rng.randbytes(rng.randrange(200))
        elif kind == 3:
            key = rng.choice(list(document))
            text = json.dumps({**document, key: "@"}).replace('"@"', rng.choice(EDGES)).encode()
        elif kind == 4:
            nest = rng.choice([5, 500, 5_000, 200_000])
            text = rng.choice([b"[", b'{"a":']) * nest
        else:
            key = rng.choice(list(document))
            wrong = rng.choice([1, "x", [], {}, None, [[1]], {"a": 1}, "é" * 300])
            text = json.dumps({**document, key: wrong}).encode()
        yield path, text


@pytest.mark.parametrize("count", [500, pytest.param(100_000, marks=pytest.mark.slow)])
@pytest.mark.reliability
def test_malformed_bodies_are_never_a_defect(shared: Client, shared_url: str, count: int) -> None:
    seen: dict[int, int] = {}
    for path, body in mutants(count, count):
        response = shared.post(path, content=body, headers=JSON)
        seen[response.status_code] = seen.get(response.status_code, 0) + 1
        if response.status_code >= 400:
            assert response.status_code in {400, 409, 413, 422}, (path, body[:200], response.text)
            check(response, response.status_code)
    record("mutated bodies", shared_url, **{str(status): n for status, n in sorted(seen.items())})
    assert seen[400] > count / 10
    assert seen[422] > count / 20


FIELDS = ("tp", "batch", "context", "concurrency", "isl", "prefix_hit", "tpot_ms", "percentile")


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
@pytest.mark.parametrize("field", FIELDS)
def test_numbers_that_are_none_are_refused(shared: Client, field: str, text: str) -> None:
    body = json.dumps({**QUESTION, field: "@"}).replace('"@"', text).encode()
    assert shared.post("/v1/scenarios", content=body, headers=JSON).status_code in {400, 422}


@pytest.mark.parametrize("value", [2**53, 2**63, -(2**63) - 1, 10**30, 10**400, 1.5, True, "4"])
@pytest.mark.parametrize("field", ["tp", "batch", "context"])
def test_integers_beyond_reason_are_refused(shared: Client, field: str, value: Any) -> None:
    body = json.dumps({**QUESTION, field: value})
    assert shared.post("/v1/scenarios", content=body, headers=JSON).status_code in {400, 422}


def test_floats_come_back_bit_equal(shared: Client) -> None:
    rng = random.Random(7)  # noqa: S311 - a fixed sequence
    values = [-0.0, 0.0, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 0.1, 1 / 3, 1e22]
    while len(values) < 2000:
        value = struct.unpack("<d", rng.randbytes(8))[0]
        if math.isfinite(value):
            values.append(value)
    config = {**CONFIG, "x_values": values}
    response = shared.post("/v1/scenarios", json={**QUESTION, "model": config, "tp": 1})
    assert response.status_code == 201, response.text
    read = shared.get(response.headers["location"]).json()
    back = read["scenario"]["model"]["x_values"]
    assert [struct.pack("<d", v) for v in back] == [struct.pack("<d", v) for v in values]


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e-9, 1e9, 123456.789012345])
def test_a_limit_comes_back_bit_equal(shared: Client, value: float) -> None:
    response = shared.post("/v1/scenarios", json={**QUESTION, "tpot_ms": value})
    assert shared.get(response.headers["location"]).json()["scenario"]["tpot_ms"] == value


TEXTS = [
    "é",
    "e\u0301",
    "👩‍👩‍👧‍👦",
    "\u202eabc",
    "\ufeffx",
    "x" * 200,
    "‮",
    "ß",
    "İ",
    " a ",
    "'\";--",
    "%_\\",
]


@pytest.mark.parametrize("text", TEXTS)
def test_texts_come_back_unchanged(shared: Client, text: str) -> None:
    body = {**QUESTION, "name": text, "notes": text * 40, "tags": [text]}
    response = shared.post("/v1/scenarios", json=body)
    assert response.status_code == 201, response.text
    read = shared.get(response.headers["location"]).json()
    assert (read["name"], read["notes"], read["tags"]) == (text, text * 40, [text])
    listed = shared.get("/v1/scenarios", params={"tag": text}).json()["items"]
    assert [item["id"] for item in listed] == [read["id"]]


@pytest.mark.parametrize("text", ["\\u0000", "a\\u0000b", "\\ud800", "\\udc00x"])
@pytest.mark.parametrize("where", ["name", "notes", "tags", "model"])
def test_texts_that_are_none_are_refused(shared: Client, where: str, text: str) -> None:
    value: Any = {"name": "@", "notes": "@", "tags": ["@"], "model": {**CONFIG, "x": {"@": "y"}}}
    body = json.dumps({**QUESTION, where: value[where]}).replace("@", text).encode()
    check(shared.post("/v1/scenarios", content=body, headers=JSON), 400)


def test_a_backslash_and_u0000_is_a_text(shared: Client) -> None:
    response = shared.post("/v1/scenarios", json={**QUESTION, "name": "\\u0000"})
    assert (response.status_code, response.json()["name"]) == (201, "\\u0000")


@pytest.mark.parametrize("chunked", [False, True])
def test_one_byte_over_the_limit_is_413(shared: Client, chunked: bool) -> None:
    def body(size: int) -> bytes:
        text = json.dumps({**QUESTION, "notes": "x"})
        return text.encode() + b" " * (size - len(text))

    def send(size: int) -> int:
        content: Any = iter([body(size)]) if chunked else body(size)
        return shared.post("/v1/scenarios", content=content, headers=JSON).status_code

    assert send(1_000_000) == 201
    assert send(1_000_001) == 413


def test_limits_of_lists_and_points_are_422(shared: Client) -> None:
    many = list(range(1, 4_000))
    cases = [
        ("/v1/plans", {**QUESTION, "batch": many, "context": [1024] * 6}, "MAX_PLAN_POINTS"),
        (
            "/v1/sweeps",
            {"scenario": QUESTION, "batch": many, "context": [1024] * 40},
            "MAX_SWEEP_POINTS",
        ),
        ("/v1/sweeps", {"scenario": QUESTION, "tp": [1] * 65}, "tp"),
        ("/v1/scenarios", {**QUESTION, "tags": ["x"] * 65}, "tags"),
        ("/v1/scenarios", {**QUESTION, "name": "x" * 201}, "name"),
        ("/v1/comparisons", {"scenarios": [QUESTION] * 17}, "scenarios"),
    ]
    for path, body, word in cases:
        problem = check(shared.post(path, json=body), 422)
        assert word in problem.detail


def test_duplicate_keys_count_by_the_last(shared: Client) -> None:
    body = json.dumps(QUESTION)[:-1] + ', "tp": 8}'
    response = shared.post("/v1/plans", content=body, headers=JSON)
    assert response.json()["scenario"]["tp"] == 8


def test_no_answer_has_null_where_a_number_is_promised(shared: Client) -> None:
    plan = shared.post("/v1/plans", json=QUESTION).json()
    for point in plan["points"]:
        assert None not in point.values()
        assert None not in point["tpot_s"].values()
