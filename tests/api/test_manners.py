"""Manners of HTTP: early refusals, deadlines, limits on heads, packing, entity tags."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.web.bodies import Body
from api.web.compress import CODECS, coding_for, is_worth_it
from api.web.gate import MOST_HEADER_BYTES, MOST_TARGET_BYTES
from api.web.problem import Problem
from tests.api.conftest import HOST, Client, make_settings, started
from tests.api.server import Server, serving
from tests.api.test_errors import check


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service that asks for keys, and does not wait long for a body."""
    directory = tmp_path_factory.mktemp("strict")
    environment = {
        "PLANNER_AUTH": "required",
        "PLANNER_BODY_TIMEOUT_S": "0.5",
        "PLANNER_HEADER_TIMEOUT_S": "0.5",
    }
    url = f"sqlite:///{directory / 'planner.db'}"
    with serving(url, directory / "log", environment=environment) as server:
        yield server


class Wire:
    """A bare connection, that sends and reads as it likes."""

    def __init__(self, server: Server) -> None:
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=10)
        self.rest = b""

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def head(self, path: str, length: int | None, method: str = "POST", **more: str) -> None:
        fields = {"Host": "localhost", "Content-Type": "application/json", **more}
        if length is not None:
            fields["Content-Length"] = str(length)
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
        self.socket.sendall(f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode())

    def answer(self) -> tuple[int, dict[str, str], bytes]:
        """The next answer: status, headers and body."""
        data = self.rest
        while b"\r\n\r\n" not in data:
            piece = self.socket.recv(65536)
            assert piece, f"closed after {data!r}"
            data += piece
        head, _, body = data.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines)}
        length = int(headers.get("content-length", "0"))
        while len(body) < length:
            body += self.socket.recv(65536)
        self.rest = body[length:]
        return int(first.split()[1]), headers, body[:length]


@pytest.mark.parametrize("size", [10, 60_000, 300_000, 900_000, 3_000_000])
def test_a_refused_body_is_read_and_the_connection_goes_on(strict: Server, size: int) -> None:
    """Between 60 and 300 kB the rest of the body used to be taken for the next request."""
    with Wire(strict) as wire:
        for _ in range(2):
            wire.head("/v1/plans", size)
            wire.socket.sendall(b"x" * size)
            status, headers, body = wire.answer()
            assert status == 401
            assert json.loads(body)["status"] == 401
            assert "connection" not in headers
        wire.head("/health/live", None, method="GET")
        assert wire.answer()[0] == 200


def test_a_body_that_stops_has_a_deadline(strict: Server) -> None:
    with Wire(strict) as wire:
        began = time.monotonic()
        wire.head("/v1/plans", 1000)
        wire.socket.sendall(b"{")
        status, headers, _ = wire.answer()
        assert status == 401  # it is refused for its key, and given 5 s to be sent
        assert headers["connection"] == "close"
        assert 4 < time.monotonic() - began < 9


def test_slow_bodies_are_408_in_the_application(tmp_path: Path, question: dict[str, Any]) -> None:
    environment = {"PLANNER_BODY_TIMEOUT_S": "0.3"}
    url = f"sqlite:///{tmp_path / 'planner.db'}"
    with serving(url, tmp_path / "log", environment=environment) as server, Wire(server) as wire:
        body = json.dumps(question).encode()
        wire.head("/v1/plans", len(body))
        wire.socket.sendall(body[:-5])
        status, headers, answer = wire.answer()
        assert (status, headers["connection"]) == (408, "close")
        assert json.loads(answer)["detail"] == "the body was not sent within 0.3 s"

        def lines() -> Iterator[bytes]:
            for line in (b'{"format": "decode-planner-lines/1"}\n', b"\n", b'{"end": ', b"true}\n"):
                yield line
                time.sleep(0.15)

        path, kind = f"{server.base}/v1/workspace/lines", {"Content-Type": "application/x-ndjson"}
        loaded = httpx.post(path, content=lines(), headers=kind)
        assert (loaded.status_code, loaded.json()["complete"]) == (201, True)


def test_a_client_that_goes_away_is_nobody_s_trouble(strict: Server) -> None:
    for send in (b"POST /v1/plans HTTP/1.1\r\nHo", b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n"):
        with Wire(strict) as wire:
            wire.socket.sendall(send)
            wire.socket.shutdown(socket.SHUT_WR)
    with Wire(strict) as wire:
        wire.head("/health/live", None, method="GET")
        assert wire.answer()[0] == 200


def test_headers_that_do_not_come_have_a_deadline(strict: Server) -> None:
    with Wire(strict) as wire:
        wire.socket.sendall(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n")
        began = time.monotonic()
        wire.socket.recv(4096)
        assert time.monotonic() - began < 5


def test_long_heads_are_refused(shared: Client) -> None:
    long = {"X-Long": "x" * MOST_HEADER_BYTES}
    check(shared.get("/health/live", headers=long), 431)
    assert shared.get("/health/live", headers={"X-Long": "x" * 20_000}).status_code == 200
    problem = shared.get("/v1/scenarios?text=" + "x" * MOST_TARGET_BYTES)
    assert problem.status_code == 414


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("", None),
        ("gzip", "gzip"),
        ("gzip, deflate", "gzip"),
        ("GZIP;q=0.5", "gzip"),
        ("gzip;q=0", None),
        ("br", None),
        ("*", next(iter(CODECS))),
        ("identity;q=1, gzip;q=0.5", None),
        ("identity;q=0.5, gzip;q=1", "gzip"),
        ("gzip;q=nonsense", None),
        ("zstd, gzip", "zstd" if "zstd" in CODECS else "gzip"),
        ("zstd;q=0.1, gzip", "gzip"),
    ],
)
def test_codings_are_chosen_by_weight(accepted: str, coding: str | None) -> None:
    assert coding_for(accepted) == coding


@pytest.mark.parametrize(
    ("kind", "size", "more", "worth"),
    [
        (b"application/json", 5000, {}, True),
        (b"application/json", 100, {}, False),
        (b"text/csv", 5000, {}, True),
        (b"application/vnd.apache.parquet", 5000, {}, False),
        (b"application/json", 5000, {b"content-encoding": b"gzip"}, False),
    ],
)
def test_what_is_packed(kind: bytes, size: int, more: dict[bytes, bytes], worth: bool) -> None:
    assert is_worth_it({b"content-type": kind, **more}, size) is worth


@pytest.mark.parametrize("coding", CODECS)
def test_catalogues_are_packed_where_the_client_takes_it(shared: Client, coding: str) -> None:
    plain = shared.get("/v1/models", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert plain.headers["vary"] == "Accept-Encoding"
    with shared.stream("GET", "/v1/models", headers={"Accept-Encoding": coding}) as answer:
        raw = b"".join(answer.iter_raw())
        assert answer.headers["content-encoding"] == coding
        assert int(answer.headers["content-length"]) == len(raw)
        assert answer.headers["etag"] == f"W/{plain.headers['etag']}"
    assert len(raw) < len(plain.content) / 4
    if coding == "gzip":
        assert gzip.decompress(raw) == plain.content
    else:
        zstandard = pytest.importorskip("zstandard")
        assert zstandard.ZstdDecompressor().decompress(raw) == plain.content


CATALOGUES = (
    "/v1/models",
    "/v1/models/meta-llama/Llama-3.1-8B-Instruct",
    "/v1/accelerators?vendor=nvidia",
    "/v1/accelerators/h100-sxm5",
    "/v1/engines",
    "/v1/engines/vllm?gpu=h100-sxm5",
)


@pytest.mark.parametrize("path", CATALOGUES)
def test_what_a_client_has_is_not_sent_again(shared: Client, path: str) -> None:
    first = shared.get(path)
    assert first.status_code == 200
    for tag in (first.headers["etag"], f'"other", {first.headers["etag"]}', "*"):
        again = shared.get(path, headers={"If-None-Match": tag})
        assert (again.status_code, again.content) == (304, b"")
    assert shared.get(path, headers={"If-None-Match": '"other"'}).status_code == 200


def test_a_tag_of_a_list_changes_with_what_is_in_it(client: Client) -> None:
    from tests.api.conftest import CARD

    before = client.get("/v1/accelerators").headers["etag"]
    assert client.post("/v1/accelerators", json={"id": "card", "spec": CARD}).status_code == 201
    assert client.get("/v1/accelerators").headers["etag"] != before
    client.delete("/v1/accelerators/own/card")
    assert client.get("/v1/accelerators").headers["etag"] == before


def test_the_plan_of_a_scenario_has_a_tag(client: Client, question: dict[str, Any]) -> None:
    path = client.post("/v1/scenarios", json=question).headers["location"]
    tag = client.get(f"{path}/plan").headers["etag"]
    have = {"If-None-Match": tag}
    assert client.get(f"{path}/plan", headers=have).status_code == 304
    assert client.get(f"{path}/plan?recompute=true", headers=have).status_code == 200


def test_a_scenario_keeps_a_tag_that_guards_a_write(
    client: Client, question: dict[str, Any]
) -> None:
    """However large it is: a packed answer's tag is weak, and If-Match compares strong ones."""
    long = {**question, "notes": "x" * 9000}
    path = client.post("/v1/scenarios", json=long).headers["location"]
    read = client.get(path, params={"include": "plan"}, headers={"Accept-Encoding": "gzip"})
    assert read.headers["etag"] == '"1"'
    assert "content-encoding" not in read.headers
    changed = client.put(path, json=question, headers={"If-Match": read.headers["etag"]})
    assert changed.status_code == 200


def test_the_log_has_the_address_and_the_id_of_the_key(tmp_path: Path) -> None:
    from structlog.testing import capture_logs

    url = f"sqlite:///{tmp_path / 'planner.db'}"
    settings = make_settings(url, log_level="info", auth="required", behind_proxy=True)
    forged = "6.6.6.6, 192.0.2.7"
    with started(settings) as client, capture_logs() as lines:
        ident, key = client.app.state.api_keys.create("ours", "", "read")
        headers = {"Authorization": f"Bearer {key}", "X-Forwarded-For": forged}
        assert client.get("/v1/about", headers=headers).status_code == 200
        assert client.get("/v1/about", headers={"X-Forwarded-For": "<b>"}).status_code == 401
    lines = [line for line in lines if line["event"] == "request"]
    assert (lines[0]["client"], lines[0]["key_id"]) == ("192.0.2.7", ident)
    assert (lines[1]["client"], lines[1]["key_id"]) == ("testclient", None)
    assert key not in str(lines)


def test_a_server_starts_with_json_lines_alone(strict: Server) -> None:
    lines = [json.loads(line) for line in strict.text().splitlines()]
    start = next(line for line in lines if line["event"] == "start")
    assert start["url"] == strict.base
    assert start["documentation"] == f"{strict.base}/schema"
    assert start["keys"] == "required"
    assert all({"event", "level", "timestamp"} <= set(line) for line in lines)
    assert HOST not in strict.text()


def received(messages: list[dict[str, Any]], *, expected: bool = True) -> list[dict[str, Any]]:
    """What the application gets of a body, until there is no more of it."""
    rest = iter(messages)

    async def receive() -> Any:
        return next(rest)

    async def collect() -> list[dict[str, Any]]:
        body = Body(receive, 5.0, expected=expected)
        return [await body() for _ in messages]

    return asyncio.run(collect())


def piece(body: bytes, *, more: bool) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


LEFT = {"type": "http.disconnect"}


@pytest.mark.parametrize("before", [[], [piece(b"{", more=True)]])
def test_who_leaves_amid_a_body_is_no_defect(before: list[dict[str, Any]]) -> None:
    """The framework raises a 500 for it, which went into the log as one."""
    with pytest.raises(Problem, match="closed before the body had ended") as caught:
        received([*before, LEFT])
    assert caught.value.status == 400


def test_who_leaves_after_it_is_only_noticed() -> None:
    whole = [piece(b"{", more=True), piece(b"}", more=False), LEFT]
    assert received(whole) == whole
    assert received([LEFT], expected=False) == [LEFT]
