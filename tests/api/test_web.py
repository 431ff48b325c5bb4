"""The service's own parts of HTTP without a server: cursors, tags, types, problems."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from api.scenarios.differences import MOST, differences
from api.settings import Settings
from api.web.accept import CSV, JSON, MARKDOWN, choose, query_parameters
from api.web.body import is_model, read, refuse_nul
from api.web.cursor import decode, encode
from api.web.gate import Gate, _proxy_id
from api.web.idempotency import Once
from api.web.problem import TYPE, Problem, not_found, over_limit, rejected, title
from api.web.tags import check_match, etag, require_match, tagged

texts = st.text("abcXYZ019-_=&?%/ \nüñ中", max_size=40)


@given(texts, texts)
def test_a_cursor_continues_its_own_query(last: str, query: str) -> None:
    cursor = encode(last, query)
    assert decode(cursor, query) == last
    assert cursor.isascii()
    assert "=" not in cursor


@given(texts, texts, texts)
def test_a_cursor_of_another_query_is_refused(last: str, query: str, other: str) -> None:
    if query == other:
        return
    with pytest.raises(Problem) as raised:
        decode(encode(last, query), other)
    assert (raised.value.status, raised.value.kind) == (400, "bad-cursor")


@pytest.mark.parametrize("cursor", ["", "x", "%%%", "AAAAAAAAAAA", "é", "a" * 500])
def test_a_mangled_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(Problem, match="cursor: not one that this query returned"):
        decode(cursor, "q")


@pytest.mark.parametrize(
    ("header", "revision", "stale"),
    [
        ('"3"', 3, False),
        ("*", 3, False),
        ('"1", "3"', 3, False),
        ('"3"', 4, True),
        ("3", 3, True),
        # A weak tag does not guard a write (RFC 9110, 13.1.1).
        ('W/"3"', 3, True),
    ],
)
def test_if_match(header: str, revision: int, stale: bool) -> None:
    if not stale:
        check_match(header, revision)
        return
    with pytest.raises(Problem, match=f"it is at revision {revision}") as raised:
        check_match(header, revision)
    assert raised.value.status == 412
    assert raised.value.headers == {"ETag": etag(revision)}


@pytest.mark.parametrize("header", [None, "", "  "])
def test_a_write_without_if_match(header: str | None) -> None:
    with pytest.raises(Problem, match="send If-Match") as raised:
        require_match(header)
    assert raised.value.status == 428
    assert require_match('"1"') == '"1"'


@pytest.mark.parametrize(
    ("header", "status"),
    [(None, 200), ('"7"', 304), ('W/"7"', 304), ("*", 304), ('"6", "7"', 304), ('"6"', 200)],
)
def test_if_none_match(header: str | None, status: int) -> None:
    response = tagged(header, b"{}", etag(7))
    assert (response.status_code or 200) == status
    assert response.headers["ETag"] == '"7"'


OFFERED = (JSON, CSV, MARKDOWN)


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        (None, JSON),
        ("", JSON),
        ("*/*", JSON),
        ("text/csv", CSV),
        ("text/*", CSV),
        ("text/markdown;q=0.9, text/csv;q=0.5", MARKDOWN),
        ("application/json;q=0.1, text/csv", CSV),
        # The most specific range counts: text of any kind but CSV.
        ("text/*, text/csv;q=0", MARKDOWN),
        ("TEXT/CSV", CSV),
        ("text/html, */*;q=0.1", JSON),
        ("text/csv;q=oops, application/json;q=0.2", JSON),
    ],
)
def test_the_type_that_is_liked_best(accept: str | None, kind: str) -> None:
    assert choose(accept, OFFERED) == kind


@pytest.mark.parametrize("accept", ["text/html", "image/*", "text/csv;q=0", "*/*;q=0"])
def test_what_cannot_be_answered(accept: str) -> None:
    with pytest.raises(Problem, match="offered: application/json, text/csv") as raised:
        choose(accept, OFFERED)
    assert raised.value.status == 406


def test_query_parameters_of_operations() -> None:
    document = {
        "paths": {
            "/a": {
                "parameters": [],
                "get": {
                    "operationId": "list",
                    "parameters": [
                        {"name": "limit", "in": "query", "schema": {"type": "integer"}},
                        {"name": "If-None-Match", "in": "header"},
                    ],
                },
                "post": {"operationId": "add"},
            }
        }
    }
    assert query_parameters(document) == {"list": {"limit": {"type": "integer"}}, "add": {}}


@pytest.mark.parametrize(
    ("problem", "status", "kind", "field"),
    [
        (not_found("scenario"), 404, "not-found", None),
        (rejected("tp: 3 does not divide"), 422, "not-acceptable-input", "tp"),
        (over_limit("batch", 10, 5, "PLANNER_MAX"), 422, "over-limit", "batch"),
        (Problem(409, "x"), 409, "conflict", None),
        (Problem(418, "x"), 418, "i'm-a-teapot", None),
    ],
)
def test_problems(problem: Problem, status: int, kind: str, field: str | None) -> None:
    details = problem.details("/path", "id-1")
    assert (details.status, details.type) == (status, TYPE + kind)
    assert (details.instance, details.request_id) == ("/path", "id-1")
    assert [error.field for error in details.errors] == ([field] if field else [])
    assert title(status) == details.title
    assert title(599) == "Error"


class Body(BaseModel):
    count: int
    name: str = ""


@pytest.mark.parametrize(
    ("value", "fields"),
    [
        ({"count": "3"}, ["count"]),
        ({}, ["count"]),
        ({"count": 1.5, "name": 7}, ["count", "name"]),
        ([], [""]),
    ],
)
def test_faults_of_a_body_are_named_by_field(value: Any, fields: list[str]) -> None:
    with pytest.raises(Problem) as raised:
        read(Body, value)
    assert raised.value.status == 422
    assert [error.field for error in raised.value.errors] == fields
    assert "\n" not in raised.value.detail


def test_a_body_that_is_right() -> None:
    assert read(Body, {"count": 3}) == Body(count=3)
    assert is_model(Body)
    assert not is_model(int)
    assert not is_model(Body(count=1))


@pytest.mark.parametrize(
    ("body", "refused"),
    [
        (b'{"a": "\\u0000"}', True),
        (b'{"\\u0000": 1}', True),
        (b'[{"a": ["x", "b\\u0000c"]}]', True),
        (b'{"a": "\\\\u0000"}', False),
        (b'{"a": "\\u0001"}', False),
        (b'{"a": \\u0000', False),  # no JSON: whoever reads it says so
        (b"", False),
    ],
)
def test_texts_with_nul(body: bytes, refused: bool) -> None:
    if not refused:
        refuse_nul(body)
        return
    with pytest.raises(Problem, match="NUL"):
        refuse_nul(body)


@pytest.mark.parametrize(
    ("header", "ident"),
    [
        (b"abcdef12", "abcdef12"),
        (b"a-b_c-d-e-f", "a-b_c-d-e-f"),
        (b"short", None),
        (b"x" * 65, None),
        (b"x" * 64, "x" * 64),
        (b"with space in it", None),
        ("ééééééééé".encode("latin-1"), None),
        (b"--------", None),
        (None, None),
    ],
)
def test_request_ids_of_a_proxy(header: bytes | None, ident: str | None) -> None:
    assert _proxy_id(header) == ident


@pytest.mark.parametrize(
    ("host", "accepted"),
    [
        (b"localhost", True),
        (b"LOCALHOST:8000", True),
        (b"[::1]", True),
        (b"[::1]:8000", True),
        (b"example.org", False),
        (b"localhost.example.org:80", False),
        (b"", False),
    ],
)
def test_names_of_the_host(host: bytes, accepted: bool) -> None:
    named = Settings(_env_file=None, allowed_hosts=["localhost", "[::1]"])
    assert Gate(named, (), lambda *_: None)._accepts(host) == accepted
    anyone = Settings(_env_file=None, host="0.0.0.0")  # noqa: S104 - nothing listens here
    assert Gate(anyone, (), lambda *_: None)._accepts(host)


def test_the_identity_of_a_request() -> None:
    once = Once.of("w", "key", "/a", b"body")
    assert once == Once.of("w", "key", "/a", b"body")
    others = [Once.of("w", "key", "/b", b"body"), Once.of("w", "key", "/a", b"other")]
    assert len({once.fingerprint, *(other.fingerprint for other in others)}) == 3
    assert Once.of("w", None, "/a", b"").key is None


@pytest.mark.parametrize("key", ["", "x" * 201, "é", "a\nb"])
def test_keys_that_are_none(key: str) -> None:
    with pytest.raises(Problem, match="Idempotency-Key: accepted: 1 to 200 printable ASCII"):
        Once.of("w", key, "/a", b"")


def test_differences_of_two_answers() -> None:
    """10 → 12 is 2 more and 1.2 times; words and switches have no difference; editions aside."""
    stored = {
        "points": [{"tpot": 10.0, "bound": "memory"}],
        "memory": {"fits": True, "batch": 0},
        "editions": {"models": "1"},
    }
    again = {
        "points": [{"tpot": 12.0, "bound": "compute"}],
        "memory": {"fits": False, "batch": 3, "new": None},
        "editions": {"models": "2"},
    }
    changed, more = differences(stored, again)
    found = {one.figure: (one.difference, one.ratio) for one in changed}
    assert found == {
        "points[0].tpot": (2.0, 1.2),
        "points[0].bound": (None, None),
        "memory.fits": (None, None),
        "memory.batch": (3, None),
    }
    assert more == 0
    assert differences(stored, stored) == ([], 0)


def test_no_more_differences_are_listed_than_fit() -> None:
    stored = {"points": [{"x": float(i)} for i in range(MOST + 20)]}
    again = {"points": [{"x": float(i) + 1} for i in range(MOST + 20)]}
    changed, more = differences(stored, again)
    assert (len(changed), more) == (MOST, 20)


@given(st.dictionaries(st.sampled_from("abcd"), st.floats(1, 1e6), min_size=1))
def test_what_is_listed_is_what_changed(figures: dict[str, float]) -> None:
    doubled = {name: 2 * value for name, value in figures.items()}
    changed, _ = differences(figures, doubled)
    assert {one.figure for one in changed} == set(figures)
    assert all(one.ratio == pytest.approx(2.0) for one in changed)
