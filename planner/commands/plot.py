"""`planner plot`: pictures of a scenario, in a file or in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from planner.commands.options import scenario_options

CHARTS = ("roofline", "intensity", "throughput", "time", "memory")
EXAMPLES = """\b
Examples:
  planner plot roofline llama-3.1-70b-instruct --gpu h100-sxm5 --tp 4 -o roofline.svg
  planner plot throughput deepseek-v3 --gpu h200-sxm --tp 8 --engine vllm
"""


@click.command(epilog=EXAMPLES)
@click.argument("picture", metavar="PICTURE", type=click.Choice(CHARTS))
@scenario_options
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write: .svg, .png or .html; without it the plot is made of characters.",
)
@click.option("--theme", type=click.Choice(("light", "dark")), default="light", help="Colours.")
def command(picture: str, output: Path | None, theme: str, **fields: Any) -> None:
    """Draw PICTURE of a scenario: roofline, intensity, throughput, time or memory."""
    from planner.pictures import chart, look
    from planner.pictures.terminal import PLOTS
    from planner.scenario import Scenario

    view = look(Scenario(**fields))
    if output is not None:
        from planner.pictures.files import write

        write(chart(picture, view), output, theme)
        click.echo(str(output))
        return
    if picture not in PLOTS:
        raise click.UsageError(
            f"output: {picture} has no plot of characters; accepted: -o FILE, or one of "
            f"{', '.join(PLOTS)}"
        )
    click.echo(PLOTS[picture](view))
