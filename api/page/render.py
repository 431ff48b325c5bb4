"""From a template to a response: Jinja, and the headers that keep a page to its own host."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from litestar import Response
from markupsafe import Markup

FOLDER = Path(__file__).parent
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
"""No inline script or style, no evaluation of text, nothing from another host."""
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
VIEWS = (
    ("/", "Explore"),
    ("/compare", "Compare"),
    ("/recommend", "Recommend"),
    ("/fleet", "Fleet"),
    ("/check", "Check"),
    ("/kernels", "Kernels"),
    ("/accuracy", "Accuracy"),
)


@cache
def environment() -> Environment:
    """Return the templates, with every text escaped and every misspelt name an error."""
    made = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["views"] = VIEWS
    made.filters["query"] = urlencode
    return made


def fragment(template: str, **values: Any) -> str:
    """Return a filled template."""
    return environment().get_template(template).render(**values)


def page(template: str, charts: Any, status: int = 200, **values: Any) -> Response[bytes]:
    """Return a page, with the specifications of its charts as data for its script."""
    body = fragment(template, charts=embedded(charts), **values).encode()
    return Response(
        body, status_code=status, headers={**HEADERS, "content-type": "text/html; charset=utf-8"}
    )


def embedded(value: Any) -> Markup:
    """Return JSON that may stand in an element: without what would end it or begin another."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("&", r"\u0026").replace("<", r"\u003c"))  # noqa: S704 - escaped here


def document(value: Any) -> Response[bytes]:
    """Return what a script of the page asked for, as JSON without NaN."""
    body = json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
    return Response(body, headers={**HEADERS, "content-type": "application/json"})


def file(body: bytes, media_type: str, **headers: str) -> Response[bytes]:
    """Return a file that a page shows or saves."""
    return Response(body, headers={**HEADERS, "content-type": media_type, **headers})
