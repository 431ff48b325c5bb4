"""Pictures as files: SVG, PNG and one-file HTML, made without asking any other host."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from planner.errors import InvalidInput
from planner.pictures.style import FILE_WIDTH, THEMES, Spec

KINDS = {"svg": "image/svg+xml", "png": "image/png", "html": "text/html; charset=utf-8"}
"""Media type of each kind of file."""
PNG_SCALE = 2.0
"""Pixels of a PNG to one of the specification [-]."""
EXTRA = "decode-planner[page]"
"""What to install for files."""


class NoRenderer(InvalidInput):
    """Files of pictures need an extra that is not installed, or are of another kind."""


def render(spec: Spec, kind: str, theme: str = "light") -> bytes:
    """Return a picture as a file of `kind`; raises NoRenderer."""
    if kind not in KINDS:
        raise NoRenderer(f"output: .{kind} is not a kind of picture; accepted: {', '.join(KINDS)}")
    if find_spec("vl_convert") is None:
        raise NoRenderer(f"output: pictures need an extra; accepted: pip install '{EXTRA}'")
    import vl_convert

    sized = {**spec, "width": FILE_WIDTH, "config": THEMES[theme]}
    if kind == "svg":
        return vl_convert.vegalite_to_svg(sized).encode()
    if kind == "png":
        return vl_convert.vegalite_to_png(sized, scale=PNG_SCALE)
    return vl_convert.vegalite_to_html(sized, bundle=True).encode()


def write(spec: Spec, path: Path, theme: str = "light") -> None:
    """Write a picture to a file whose ending says its kind; raises NoRenderer."""
    data = render(spec, path.suffix.lower().lstrip("."), theme)
    try:
        path.write_bytes(data)
    except OSError as error:
        raise NoRenderer(f"output: cannot write {str(path)!r}: {error.strerror}") from None


@cache
def browser_module() -> bytes:
    """Return the ES module that draws specifications in a browser, made by the renderer.

    It takes seconds the first time; a copy is kept in the user's data, by the renderer's version.
    """
    if find_spec("vl_convert") is None:
        raise NoRenderer(f"charts: they need an extra; accepted: pip install '{EXTRA}'")
    import vl_convert

    from planner.calibration.own import data_directory

    copy = data_directory() / f"charts-{version('vl-convert-python')}.js"
    try:
        return copy.read_bytes()
    except OSError:
        pass
    code = vl_convert.javascript_bundle("export {vegaEmbed};").encode()
    try:
        copy.parent.mkdir(parents=True, exist_ok=True)
        scratch = copy.with_suffix(".part")
        scratch.write_bytes(code)
        scratch.replace(copy)
    except OSError:
        pass  # a machine that keeps nothing makes it again
    return code
