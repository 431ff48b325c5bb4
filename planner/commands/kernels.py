"""`planner kernels`: a model's kernels, or one of typed sizes, on a machine's roofline."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from planner.commands.completion import models
from planner.commands.numbers import whole
from planner.commands.options import Whole, gpu_option, json_option, kv_option, weights_option
from planner.commands.output import print_json, print_notes, print_table, print_verdict
from planner.errors import InvalidInput
from planner.units import number, scaled, seconds

if TYPE_CHECKING:
    from planner.plans.kernel_levers import PlacedWithLevers
    from planner.step.placement import Phase, Roofline
    from planner.step.typed import TypedKernel

TYPED = ("gemm", "gemv", "add", "rmsnorm", "softmax", "swiglu", "activation")
"""Kernels that are given by their sizes alone."""
MANY = ("gemm", "gemv", "attention")
"""Kernels with more sizes than a count of elements."""
WAYS = ("naive", "tiled", "fused")
EXAMPLES = """\b
Examples:
  planner kernels llama-3.1-70b-instruct --gpu h100-sxm5 --batch 64 --tp 4
  planner kernels llama-3.1-70b-instruct --gpu h100-sxm5 --prefill --context 8k
  planner kernels --gpu h100-sxm5 --gemm 4096,4096,4096
  planner kernels --gpu h100-sxm5 --attention fused --context 8k
  planner kernels --gpu epyc-9654 --add 1M --format fp32
"""


def typed_options(function: Any) -> Any:
    """Add an option for each kernel that may be typed."""
    from_last = reversed(TYPED)
    for name in from_last:
        sizes = {"gemm": "M,N,K", "gemv": "ROWS,COLUMNS"}.get(name, "COUNT")
        function = click.option(f"--{name}", metavar=sizes, help=f"One {name} of these sizes.")(
            function
        )
    return function


@click.command(epilog=EXAMPLES)
@click.argument("model", metavar="[MODEL]", required=False, shell_complete=models)
@gpu_option
@click.option("--batch", type=Whole(1, 2**20), default=1, help="Sequences.")
@click.option("--context", type=Whole(1, 2**30), default=8192, help="Tokens of each: 8k.")
@click.option("--prefill", is_flag=True, help="The kernels of a prompt instead of a decode step.")
@click.option("--tp", type=Whole(1, 1024), default=1, help="Tensor-parallel ranks of MODEL.")
@weights_option
@kv_option
@typed_options
@click.option(
    "--attention",
    type=click.Choice(WAYS),
    help="One attention over --context tokens, all its scores kept, tiled or fused.",
)
@click.option("--heads", type=Whole(), default=1, help="Heads of --attention.")
@click.option("--head-dim", type=Whole(), default=128, help="Width of a head of --attention.")
@click.option("--format", "number_format", default="bf16", help="Format of a typed kernel.")
@click.option("--tile", type=Whole(), default=128, help="Rows and columns of a tile kept on chip.")
@json_option
def command(
    as_json: bool,
    model: str | None,
    gpu: str,
    batch: int,
    context: int,
    prefill: bool,
    tp: int,
    weights: str | None,
    kv: str | None,
    attention: str | None,
    heads: int,
    head_dim: int,
    number_format: str,
    tile: int,
    **typed: str | None,
) -> None:
    """Place kernels on an accelerator's roofline, each on its own: those of MODEL's layers, or one
    whose sizes are given, with the traffic of every way to run it.
    """
    from planner.hw import get_accelerator
    from planner.step.typed import typed_kernel

    given = {name: text for name, text in typed.items() if text is not None}
    if attention is not None:
        given["attention"] = f"{context},{head_dim},{heads}"
    if bool(model) + len(given) != 1:
        raise click.UsageError(
            f"model: give MODEL, or one of --{', --'.join([*TYPED, 'attention'])}"
        )
    accelerator = get_accelerator(gpu)
    if model is None:
        ((name, text),) = given.items()
        result = typed_kernel(name, _sizes(name, text), accelerator, number_format, tile)
        if as_json:
            print_json(result)
        else:
            _print_typed(result, attention)
        return
    from planner.models import get_model
    from planner.plans.kernel_levers import placed_with_levers

    phase: Phase = "prefill" if prefill else "decode"
    placed = placed_with_levers(
        get_model(model), accelerator, weights, kv, batch, context, phase, tp
    )
    if as_json:
        print_json(placed)
        return
    _print_placed(placed)
    _print_levers(placed)


def _sizes(name: str, text: str) -> list[int]:
    """Return the sizes in a text; a count may be a product, as in 8192x8192."""
    try:
        sizes = [whole(part) for part in text.replace("x", ",").split(",")]
    except InvalidInput as error:
        raise click.UsageError(f"{name}: {error}") from None
    return sizes if name in MANY else [math.prod(sizes)]


def _print_typed(result: TypedKernel, attention: str | None) -> None:
    chosen = next(
        (way for way in result.ways if attention and way.way.startswith(attention)), result.ways[-1]
    )
    sizes = " × ".join(f"{name} {size:,}" for name, size in result.sizes.items())
    measured = result.measured_ridge_point
    print_verdict(
        f"{result.kernel}, {chosen.way}: {number(chosen.arithmetic_intensity, 4)} FLOP/byte, the "
        f"ridge is {number(result.ridge_point, 4)}"
        + (f" (measured {number(measured)})" if measured else "")
        + f": {chosen.bound}-bound, {seconds(chosen.time_s)}."
    )
    print_table(
        ("way", "bytes", "FLOP/B", "compute", "memory", "attains", "bound", "helps"),
        [
            (
                way.way,
                scaled(way.bytes, "B"),
                number(way.arithmetic_intensity, 4),
                seconds(way.compute_s),
                seconds(way.memory_s),
                scaled(way.attainable_flops_per_s, "FLOP/s"),
                way.bound,
                _gain(way.advice),
            )
            for way in result.ways
        ],
        title=f"{sizes} in {result.format} on {result.gpu}: {scaled(result.flops, 'FLOP')}",
        legend=HELPS,
    )
    print_notes(result.notes)


HELPS = (
    "compute, memory: time that each alone takes; helps: most gain of half the bytes where memory "
    "binds (fusion, quantised bytes, layout), of a format half as wide where compute does (tiling, "
    "tensor cores)"
)


def _gain(advice: str) -> str:
    return advice.partition("up to ")[2].partition(" ")[0]


def _rank(tp: int) -> str:
    return "" if tp == 1 else f", on one of {tp} ranks"


def _print_placed(result: Roofline) -> None:
    ridges = {one.format: one.ridge_point for one in result.kernels}
    total = (
        "sum",
        "",
        scaled(sum(k.flops * k.layers for k in result.kernels), ""),
        scaled(sum(k.bytes * k.layers for k in result.kernels), "B"),
        number(
            sum(k.flops * k.layers for k in result.kernels)
            / sum(k.bytes * k.layers for k in result.kernels)
        ),
        seconds(sum(k.time_s * k.layers for k in result.kernels)),
        "",
        "",
    )
    print_table(
        ("kernel", "format", "FLOP", "bytes", "FLOP/B", "time", "bound", "helps"),
        [
            *(
                (
                    f"{k.layers}× {k.name}",
                    k.format,
                    scaled(k.flops, ""),
                    scaled(k.bytes, "B"),
                    number(k.arithmetic_intensity),
                    seconds(k.time_s),
                    k.bound,
                    _gain(k.advice),
                )
                for k in result.kernels
            ),
            total,
        ],
        title=f"{result.model} on {result.gpu}, {result.phase} at batch {result.batch:,}, context "
        f"{result.context:,}{_rank(result.tp)}: kernels of one layer of each kind, the sum "
        "over all layers",
        legend="ridge "
        + ", ".join(f"{name} {number(ridge)}" for name, ridge in ridges.items())
        + f" FLOP/byte; {HELPS.partition('; ')[2]}",
    )


def _print_levers(result: PlacedWithLevers) -> None:
    """Print what helps which kernel; a prompt, and what one accelerator cannot run, have none."""
    if not result.levers:
        return
    texts = dict.fromkeys(f"{lever.code}: {lever.text}" for lever in result.levers)
    print_table(
        ("kernel", "lever", "kernel", "per user", "per GPU", "quality risk", "cost"),
        [
            (
                lever.kernel,
                lever.code,
                f"{number(lever.kernel_gain)}×",
                f"{number(lever.gain)}×",
                f"{number(lever.gain_per_gpu)}×",
                lever.quality_risk.partition(":")[0],
                lever.cost.partition(":")[0],
            )
            for lever in result.levers
        ],
        title="Levers that are not pulled: each gain is the difference of two steps as calibrated",
        legend="; ".join(texts),
    )
