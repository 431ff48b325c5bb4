"""`planner largest`: the largest model and context that a card of one's own runs fast enough."""

from __future__ import annotations

import click

from planner.commands.options import gpu_option, json_option
from planner.commands.output import print_json, print_notes, print_table, print_verdict
from planner.commands.progress import busy
from planner.units import count, number


@click.command()
@gpu_option
@click.option("--tokens-per-s", type=float, default=10.0, help="Least tokens per second.")
@click.option("--context", type=int, default=8192, help="Least context [token].")
@click.option("--format", "formats", multiple=True, help="Weight format to try; repeatable.")
@click.option("--host-memory-gb", type=float, help="Host memory for layers beyond the card.")
@click.option("--host-gb-per-s", type=float, help="Host bandwidth; with --host-memory-gb.")
@click.option("--percentile", type=float, default=50, help="Of the prediction's uncertainty.")
@json_option
def command(
    gpu: str,
    tokens_per_s: float,
    context: int,
    formats: tuple[str, ...],
    host_memory_gb: float | None,
    host_gb_per_s: float | None,
    percentile: float,
    as_json: bool,
) -> None:
    """Say which models of the catalogue one card runs at so many tokens/s, the largest first."""
    from planner.plans.largest import FORMATS, LargestRequest, largest_models

    if (host_memory_gb is None) != (host_gb_per_s is None):
        raise click.UsageError("host-memory-gb, host-gb-per-s: give both, or none")
    request = LargestRequest(
        gpu=gpu,
        tokens_per_s=tokens_per_s,
        context=context,
        formats=list(formats) or list(FORMATS),
        host_memory_bytes=host_memory_gb and host_memory_gb * 1e9,
        host_bytes_per_s=host_gb_per_s and host_gb_per_s * 1e9,
        percentile=percentile,
    )
    with busy("Asking every model"):
        result = largest_models(request)
    if as_json:
        print_json(result)
        return
    if not result.models:
        print_verdict(f"No model of the catalogue runs at {tokens_per_s:g} tokens/s on {gpu}.")
    else:
        best = result.models[0]
        print_verdict(
            f"The largest is {best.model} in {best.weights}: "
            f"{number(best.tokens_per_s.p50)} tokens/s, up to {best.max_context:,} tokens."
        )
    print_table(
        ("model", "parameters", "active", "weights", "on card", "context", "tokens/s", "80%"),
        [
            (
                one.model,
                count(one.total_params),
                count(one.active_params),
                one.weights,
                f"{one.layers_on_gpu} of {one.layers}",
                f"{one.max_context:,}",
                number(one.tokens_per_s.p50),
                f"{number(one.tokens_per_s.p10)} – {number(one.tokens_per_s.p90)}",
            )
            for one in result.models
        ],
    )
    print_notes(result.notes)
