"""Metrics from a local address, loopback or private: no redirects, bounded in size and time."""

from __future__ import annotations

import http.client
import ipaddress
import socket
from urllib.parse import urlsplit

from planner.handover.prometheus import MOST_BYTES
from planner.handover.refusal import Unreadable

TIMEOUT_S = 10.0


def is_address(text: str) -> bool:
    """Return whether a text is a URL rather than a file."""
    return text.startswith(("http://", "https://"))


def scrape(url: str) -> str:
    """Return the text at a URL; `/metrics` where it names no path.

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
    connection = http.client.HTTPConnection(str(address), port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", parts.path or "/metrics", headers={"Host": parts.netloc})
        response = connection.getresponse()
        body = response.read(MOST_BYTES + 1)
    except (OSError, http.client.HTTPException) as error:
        raise Unreadable(f"url: {parts.netloc}: {error or type(error).__name__}") from None
    finally:
        connection.close()
    if response.status != 200:
        raise Unreadable(f"url: {parts.netloc} answers {response.status}; accepted: 200")
    return body.decode("utf-8", "replace")
