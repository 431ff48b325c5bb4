"""Swagger UI from an installed package: the page asks no other host for anything."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from litestar import Router
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import SwaggerRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme, Tag
from litestar.static_files import create_static_files_router

from api.settings import Settings

FILES = "/schema/files"
OPEN = {"public": True, "any_media": True}
DESCRIPTION = """\
Where LLM decode sits on the roofline, what it delivers, what fits and what to run.

All quantities are SI, all rates per second. Errors are problem details (RFC 9457). Duplicate keys
in a JSON body count by their last value. A write is guarded by If-Match where it changes something,
and by Idempotency-Key where it makes something.
"""
TAGS = {
    "plans": "Answers that are not stored.",
    "catalog": "Models and accelerators, the catalogue's and your own; serving engines.",
    "scenarios": "Questions stored with their answers, revision by revision.",
    "comparisons": "Scenarios side by side, and where a difference comes from.",
    "measurements": "Benchmark results of your own, and the calibration they give you.",
    "workspace": "Everything out, everything in.",
    "changes": "Who changed what.",
    "system": "Health, metrics, editions.",
}


def openapi_config(version: str, settings: Settings) -> OpenAPIConfig:
    """Return the configuration of the document and its page."""
    bearer = SecurityScheme(
        type="http", scheme="bearer", description="API key made with `planner keys create`"
    )
    return OpenAPIConfig(
        title="Decode planner",
        version=version,
        description=DESCRIPTION,
        components=Components(security_schemes={"key": bearer}),
        security=[{"key": []}] if settings.keys_required else [{}, {"key": []}],
        tags=[Tag(name=name, description=text) for name, text in TAGS.items()],
        openapi_router=Router("/schema", route_handlers=[], opt=OPEN, include_in_schema=False),
        render_plugins=[
            SwaggerRenderPlugin(
                js_url=f"{FILES}/swagger-ui-bundle.js",
                css_url=f"{FILES}/swagger-ui.css",
                standalone_preset_js_url=f"{FILES}/swagger-ui-standalone-preset.js",
                favicon='<link rel="icon" href="data:,">',
            )
        ],
        use_handler_docstrings=True,
    )


def swagger_files() -> Router:
    """Return the route of Swagger UI's files, as the package ships them."""
    package = find_spec("swagger_ui")
    locations = package.submodule_search_locations if package else None
    directory = Path(next(iter(locations or ["."]))) / "static"
    return create_static_files_router(
        FILES, directories=[directory], opt=OPEN, include_in_schema=False
    )
