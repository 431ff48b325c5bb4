"""Options and arguments the commands share: every option of a scenario is defined here, once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from planner.commands.completion import accelerators, models
from planner.commands.loads import LoadType, disaggregated, graphs, lengths, lora, speculation
from planner.commands.numbers import whole, wholes
from planner.errors import InvalidInput

Function = TypeVar("Function", bound=Callable[..., Any])
Decorator = Callable[[Function], Function]


class Numbers(click.ParamType[list[int]]):
    """Whole numbers, separated by commas, or a range that doubles; `8k` is 8192."""

    name = "n[,n…]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[int]:
        """Return a list of numbers; the scenario checks their range."""
        if isinstance(value, list):
            return value
        try:
            return wholes(str(value))
        except InvalidInput as error:
            self.fail(f"{param.name if param else 'value'}: {error}", param, ctx)


class Whole(click.ParamType[int]):
    """A whole number; `8k` is 8192."""

    name = "n"

    def __init__(self, least: int = 1, most: int = 2**30) -> None:
        """Take the smallest and the largest number accepted."""
        self.least, self.most = least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number."""
        field = param.name if param else "value"
        try:
            result = value if isinstance(value, int) else whole(str(value))
        except InvalidInput as error:
            self.fail(f"{field}: {error}", param, ctx)
        if not self.least <= result <= self.most:
            self.fail(f"{field}: {result}; accepted: {self.least} to {self.most}", param, ctx)
        return result


NUMBERS = Numbers()
LENGTHS = LoadType("tokens", lengths)
DRAFTS = LoadType("drafts[:accepted]", speculation)
WORKERS = LoadType("same|tp=n:…", disaggregated)
LORA = LoadType("adapters:rank", lora)
GRAPHS = LoadType("on|off|n", graphs)
SWITCH = click.Choice(["on", "off"])
SPREAD = "1024, lognormal:MEAN:CV, uniform:LOW:HIGH or @FILE of one length a line"


def together(*decorators: Decorator[Function]) -> Decorator[Function]:
    """Return a decorator that adds options in the order given."""

    def decorate(function: Function) -> Function:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


model_argument = click.argument("model", metavar="MODEL", shell_complete=models)
json_option = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
gpu_option = click.option(
    "--gpu",
    required=True,
    metavar="GPU",
    shell_complete=accelerators,
    help="Accelerator: catalogue id, or a .json or .toml file.",
)

weights_option = click.option(
    "--weights", metavar="FORMAT", help="Weight format; default the checkpoint's."
)
kv_option = click.option("--kv", metavar="FORMAT", help="KV cache format; default the engine's.")
engine_option = click.option(
    "--engine", metavar="ENGINE", help="Serving engine; `planner engines list` names them."
)
version_option = click.option(
    "--engine-version", metavar="VERSION", help="Version of the engine; default the newest known."
)
format_options = together(weights_option, kv_option, engine_option, version_option)

setting_options = together(
    click.option("--memory-fraction", type=float, help="Share of memory the engine plans with."),
    click.option("--kv-pool-bytes", type=float, help="Cache pool of one GPU [byte]."),
    click.option("--max-sequences", type=int, help="Sequences that may run at once on one rank."),
    click.option("--max-batched-tokens", type=int, help="Tokens of a step."),
    click.option("--max-model-len", type=int, help="Longest context; of llama.cpp, the cache."),
    click.option("--block-size", type=int, help="Tokens of a cache block."),
    click.option("--prefix-caching", type=SWITCH, help="Whether prefixes are cached."),
    click.option("--chunked-prefill", type=SWITCH, help="Whether prompts run in chunks."),
    click.option("--graphs", type=GRAPHS, help="CUDA graphs: on, off or the largest batch."),
    click.option("--kv-offload-bytes", type=float, help="Host memory for caches [byte]."),
    click.option("--decode-cp", type=int, help="Ranks that share a sequence's cache."),
    click.option("--nodes", type=int, help="Hosts one replica spans."),
    click.option("--lora", type=LORA, help="Adapters held: ADAPTERS:RANK."),
    click.option("--layers-on-gpu", type=int, help="llama.cpp: layers on the GPU."),
    click.option("--vision", type=SWITCH, help="Whether image and sound encoders are loaded."),
)

worker_options = together(
    click.option("--workers", type=int, default=1, help="Processes that work on it."),
    click.option("--cluster", metavar="tcp://HOST:PORT", help="Workers of Dask instead."),
)

pp_option = click.option("--pp", type=int, default=1, help="Pipeline stages.")
ep_option = click.option("--ep", type=int, default=1, help="Expert-parallel ranks.")
attention_dp_option = click.option(
    "--attention-dp", type=int, default=1, help="Attention data-parallel ranks."
)
deployment_options = together(
    click.option("--tp", type=int, default=1, help="Tensor-parallel ranks."),
    pp_option,
    ep_option,
    attention_dp_option,
    click.option("--replicas", type=int, default=1, help="Equal replicas."),
    format_options,
    setting_options,
)

workload_options = together(
    click.option("--users", type=int, help="People in all, each with one request at a time."),
    click.option("--think-time-s", type=float, default=0.0, help="From answer to request [s]."),
    click.option(
        "--concurrency-in-all", type=int, help="Requests in flight in all replicas together."
    ),
    click.option("--requests-per-s", type=float, help="Requests that arrive at all replicas."),
    click.option("--arrival-cv", type=float, default=1.0, help="Of gaps; Poisson is 1."),
    click.option("--isl", type=LENGTHS, help=f"Input tokens of a request: {SPREAD}."),
    click.option("--osl", type=LENGTHS, help="Output tokens of a request, likewise."),
    click.option("--prefix-hit", type=float, default=0.0, help="Share of input cached."),
    click.option("--turns", type=int, default=1, help="Requests of a session."),
    click.option("--prefix-tokens", type=int, default=0, help="Tokens all requests begin with."),
    click.option("--tpot-ms", type=float, help="Limit on TPOT [ms]."),
    click.option("--ttft-ms", type=float, help="Limit on TTFT [ms]."),
    click.option("--e2e-ms", type=float, help="Limit on a whole request [ms]."),
    click.option("--tokens-per-s-per-user", type=float, help="Least tokens/s of a stream."),
    click.option("--tpot-requests-percentile", type=float, help="Of requests within that limit."),
    click.option("--ttft-requests-percentile", type=float, help="Of requests within that limit."),
    click.option("--e2e-requests-percentile", type=float, help="Of requests within that limit."),
    click.option(
        "--percentile",
        type=float,
        default=50,
        help="Percentile of the prediction's uncertainty the limits apply to.",
    ),
)
"""Requests, and limits on them: the fields of `Workload`."""

load_options = together(
    click.option("--batch", type=NUMBERS, help="Sequences decoding at once: 1,8,64 or 1-64."),
    click.option("--context", type=NUMBERS, help="Tokens in each sequence's cache: 8k."),
    click.option("--concurrency", type=int, help="Closed-loop clients of one replica."),
    workload_options,
    click.option(
        "--speculation", type=DRAFTS, help="Drafts a step, and tokens it yields: 1 or 1:1.8."
    ),
    click.option(
        "--disaggregated",
        type=WORKERS,
        help="Prefill on workers of its own: same, "
        "or where they differ from decode's, tp=4:busy=0.7.",
    ),
)
scenario_options = together(
    model_argument,
    gpu_option,
    deployment_options,
    load_options,
    click.option("--name", help="Name of the scenario."),
)
"""All options of one scenario: a field of it is an option of the same name."""
