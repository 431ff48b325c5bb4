"""The view of kernels: those of a model's layers, or one of typed sizes, on any machine."""

from __future__ import annotations

from typing import Any

from api.page.render import fragment
from api.page.service import Pages
from api.page.shown import Query, Shown, texts_of
from api.web.call import call_planner
from api.web.problem import FieldError, Problem
from planner.commands.numbers import whole
from planner.errors import InvalidInput
from planner.hw import get_accelerator
from planner.models import get_model
from planner.pictures.kernels import kernels_chart, placed_rows, typed_rows
from planner.step.placement import Phase, place
from planner.step.ridges import ridges
from planner.step.typed import KERNELS, TILE, typed_kernel
from planner.units import number, scaled, seconds

MOST_RANKS = 1024
MODEL = "model"
"""The choice of kernels that stands for a model's layers."""
DEFAULTS = {"kernel": "gemm", "sizes": "4096,4096,4096", "gpu": "h100-sxm5", "format": "bf16"}
FIELDS = (
    "kernel",
    "sizes",
    "format",
    "tile",
    "gpu",
    "model",
    "phase",
    "tp",
    "batch",
    "context",
    "weights",
    "kv",
)
TYPED_HEAD = (
    "way",
    "bytes",
    "FLOP/byte",
    "compute time",
    "memory time",
    "time",
    "attains",
    "bound",
    "what helps",
)
PLACED_HEAD = (
    "kernel",
    "layers",
    "format",
    "FLOP",
    "bytes",
    "FLOP/byte",
    "ridge",
    "attains",
    "time",
    "bound",
    "what helps",
)


def show(pages: Pages, query: Query) -> Shown:
    """Return the kernels that a query asks for."""
    shown = Shown(texts_of(query, DEFAULTS), title="Kernels · Decode planner")
    shown.more = {"kinds": KERNELS}
    texts = shown.texts
    unknown = next((name for name in texts if name not in FIELDS), None)
    if unknown:
        shown.errors[""] = f"{unknown[:40]}: unknown field; accepted: {', '.join(FIELDS)}"
        return shown
    try:
        if texts.get("kernel", "gemm") == MODEL:
            _placed(pages, shown)
        else:
            _typed(pages, shown)
    except (Problem, InvalidInput) as error:
        shown.refuse(error, _field(error))
    return shown


def _field(error: Exception) -> str:
    return "sizes" if any(str(error).startswith(f"{name}:") for name in KERNELS) else ""


def _number(texts: dict[str, str], name: str, default: int) -> int:
    try:
        return whole(texts[name]) if name in texts else default
    except InvalidInput as error:
        raise Problem(422, "", errors=_errors(name, str(error))) from None


def _errors(name: str, message: str) -> list[Any]:
    return [FieldError(field=name, message=f"{name}: {message}")]


def _typed(pages: Pages, shown: Shown) -> None:
    texts = shown.texts
    name = texts.get("kernel", "gemm")
    try:
        sizes = [whole(part) for part in texts.get("sizes", "").replace("×", ",").split(",")]
    except InvalidInput as error:
        raise Problem(422, "", errors=_errors("sizes", str(error))) from None
    accelerator = pages.names.accelerator(texts.get("gpu", DEFAULTS["gpu"]))
    machine = call_planner(get_accelerator, accelerator, allow_files=False)
    result = typed_kernel(
        name, sizes, machine, texts.get("format", "bf16"), _number(texts, "tile", TILE)
    )
    shown.html["answer"] = fragment(
        "kernels_typed.html",
        result=result,
        title=KERNELS[name].title,
        number=number,
        scaled=scaled,
        head=TYPED_HEAD,
        rows=[
            (
                way.way,
                scaled(way.bytes, "B"),
                number(way.arithmetic_intensity, 4),
                seconds(way.compute_s),
                seconds(way.memory_s),
                seconds(way.time_s),
                scaled(way.attainable_flops_per_s, "FLOP/s"),
                way.bound,
                way.advice,
            )
            for way in result.ways
        ],
    )
    shown.charts["kernels"] = kernels_chart(typed_rows(result), ridges([accelerator]))


def _placed(pages: Pages, shown: Shown) -> None:
    texts = shown.texts
    model = pages.names.model(texts.get("model", ""))
    accelerator = pages.names.accelerator(texts.get("gpu", DEFAULTS["gpu"]))
    spec = call_planner(get_model, model, local=False)
    machine = call_planner(get_accelerator, accelerator, allow_files=False)
    formats = call_planner(spec.formats, texts.get("weights"), texts.get("kv"))
    batch, context = _number(texts, "batch", 1), _number(texts, "context", 8192)
    tp = _number(texts, "tp", 1)
    phase: Phase = "prefill" if texts.get("phase") == "prefill" else "decode"
    if not (1 <= batch <= 2**20 and 1 <= context <= 2**30 and 1 <= tp <= MOST_RANKS):
        raise Problem(
            422, f"batch: accepted: 1 to 1048576; context: 1 to 1073741824; tp: 1 to {MOST_RANKS}"
        )
    placed = call_planner(place, spec, machine, formats, batch, context, phase, tp)
    shown.html["answer"] = fragment(
        "kernels_placed.html",
        placed=placed,
        head=PLACED_HEAD,
        rows=[
            (
                f"{one.layer} {one.name}",
                str(one.layers),
                one.format,
                scaled(one.flops, ""),
                scaled(one.bytes, "B"),
                number(one.arithmetic_intensity, 4),
                number(one.ridge_point),
                scaled(one.attainable_flops_per_s, "FLOP/s"),
                seconds(one.time_s),
                one.bound,
                one.advice,
            )
            for one in placed.kernels
        ],
    )
    shown.charts["kernels"] = kernels_chart(placed_rows(placed), ridges([accelerator]))
