"""Metrics from a local address, loopback or private: no redirects, bounded in size and time."""

from __future__ import annotations

import http.client
import ipaddress
import socket
from urllib.parse import urlsplit

from planner.handover.facts import read_facts
from planner.handover.prometheus import MOST_BYTES
from planner.handover.refusal import Unreadable

TIMEOUT_S = 10.0


def is_address(text: str) -> bool:
    """Return whether a text is a URL rather than a file."""
    return text.startswith(("http://", "https://"))


def scrape(url: str) -> str:
    """Return the text at a URL; where it names no path, that of the first path engines export at.

    trtllm-serve answers JSON at `/metrics` and Prometheus text elsewhere, so JSON is passed over.
    Raises Unreadable for an address that is not of this machine or network, or no answer of 200.
    """
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise Unreadable(f"url: {url[:80]}: {error}") from None
    if parts.scheme != "http" or not parts.hostname:
        raise Unreadable(f"url: {url[:80]} is not read; accepted: http:// and a local address")
    try:
        port = parts.port or 80
        resolved = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
        address = ipaddress.ip_address(str(resolved[0][4][0]).partition("%")[0])
    except (OSError, ValueError) as error:
        raise Unreadable(f"url: {parts.hostname[:80]}: {error}") from None
    if address.is_link_local or not (address.is_loopback or address.is_private):
        raise Unreadable(f"url: {address} is not local; accepted: loopback or a private address")
    body, status = "", 404
    for path in (parts.path,) if parts.path else _paths():
        status, body = _get(str(address), port, path, parts.netloc)
        if status == 200 and not body.lstrip().startswith(("[", "{")):
            return body
    if status != 200:
        raise Unreadable(f"url: {parts.netloc} answers {status}; accepted: 200")
    return body


def _paths() -> list[str]:
    """Return the paths that engines export metrics at, `/metrics` first."""
    rows = read_facts("metrics.json")["engines"].values()
    return ["/metrics", *(row["path"] for row in rows if "path" in row)]


def _get(address: str, port: int, path: str, host: str) -> tuple[int, str]:
    """Return the status and text at a path. Raises Unreadable for no answer."""
    connection = http.client.HTTPConnection(address, port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", path, headers={"Host": host})
        response = connection.getresponse()
        body = response.read(MOST_BYTES + 1)
    except (OSError, http.client.HTTPException) as error:
        raise Unreadable(f"url: {host}: {error or type(error).__name__}") from None
    finally:
        connection.close()
    return response.status, body.decode("utf-8", "replace")
