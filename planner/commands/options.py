"""Options and arguments the commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from planner.commands.loads import Load, disaggregated, lengths, speculation
from planner.engines.names import names_text

Function = TypeVar("Function", bound=Callable[..., Any])


class Numbers(click.ParamType[list[int]]):
    """Whole numbers of 1 or more, separated by commas."""

    name = "n[,n…]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[int]:
        """Return a list of numbers; the scenario checks their range."""
        if isinstance(value, list):
            return value
        try:
            return [int(part) for part in str(value).split(",")]
        except ValueError:
            field = param.name if param else "value"
            self.fail(f"{field}: {value!r} is not a number or a comma-separated list", param, ctx)


NUMBERS = Numbers()
LENGTHS = Load("tokens", lengths)
DRAFTS = Load("drafts[:accepted]", speculation)
WORKERS = Load("same|tp=n:…", disaggregated)
SPREAD = "1024, lognormal:MEAN:CV, uniform:LOW:HIGH or @FILE of one length a line"

model_argument = click.argument("model", metavar="MODEL")
json_option = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")


def gpu_option(function: Function) -> Function:
    """Add --gpu: a catalogue id, or a JSON or TOML file of your own."""
    text = "Accelerator: catalogue id, or a .json or .toml file."
    return click.option("--gpu", required=True, metavar="GPU", help=text)(function)


def deployment_options(function: Function) -> Function:
    """Add the options that say how a model is deployed."""
    for option in reversed(
        (
            click.option("--tp", type=int, default=1, help="Tensor-parallel ranks."),
            click.option("--pp", type=int, default=1, help="Pipeline stages."),
            click.option("--ep", type=int, default=1, help="Expert-parallel ranks."),
            click.option(
                "--attention-dp", type=int, default=1, help="Attention data-parallel ranks."
            ),
            click.option("--replicas", type=int, default=1, help="Equal replicas."),
            *FORMAT_OPTIONS,
        )
    ):
        function = option(function)
    return function


FORMAT_OPTIONS = (
    click.option("--weights", metavar="FORMAT", help="Weight format; default the checkpoint's."),
    click.option("--kv", metavar="FORMAT", help="KV cache format; default the engine's."),
    click.option("--engine", metavar="ENGINE", help=f"{names_text()}."),
    click.option("--engine-version", metavar="VERSION", help="Version of the engine."),
)


def load_options(function: Function) -> Function:
    """Add the options that say what load a deployment is under."""
    for option in reversed(
        (
            click.option("--batch", type=NUMBERS, help="Sequences decoding at once: 1,8,64."),
            click.option("--context", type=NUMBERS, help="Tokens in each sequence's cache."),
            click.option("--concurrency", type=int, help="Closed-loop clients."),
            click.option("--isl", type=LENGTHS, help=f"Input tokens of a request: {SPREAD}."),
            click.option("--osl", type=LENGTHS, help="Output tokens of a request, likewise."),
            click.option("--prefix-hit", type=float, default=0.0, help="Share of input cached."),
            click.option(
                "--speculation",
                type=DRAFTS,
                help="Drafts a step, and tokens it yields: 1 or 1:1.8.",
            ),
            click.option(
                "--disaggregated",
                type=WORKERS,
                help="Prefill on workers of its own: same, "
                "or where they differ from decode's, tp=4:busy=0.7.",
            ),
            click.option("--tpot-ms", type=float, help="Limit on TPOT [ms]."),
            click.option("--ttft-ms", type=float, help="Limit on TTFT [ms]."),
            click.option(
                "--percentile",
                type=float,
                default=50,
                help="Percentile of the prediction's uncertainty the limits apply to.",
            ),
        )
    ):
        function = option(function)
    return function
