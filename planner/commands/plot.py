"""`planner plot`: pictures of a scenario or of a fleet's day, in a file or in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from planner.commands.fleet import fleet_options, request_of
from planner.commands.options import model_argument, scenario_options

if TYPE_CHECKING:
    from planner.pictures.style import Spec

CHARTS = {
    "roofline": "The kernels of a step, and the step as its batch grows, below their roofs.",
    "intensity": "FLOP per byte against the batch, with the ridge and each curve's limit.",
    "throughput": "Tokens/s per GPU and TPOT against the batch.",
    "time": "Where the time of a step goes.",
    "memory": "Where the memory of a GPU goes.",
}
EXAMPLES = """\b
Examples:
  planner plot roofline llama-3.1-70b-instruct --gpu h100-sxm5 --tp 4 -o roofline.svg
  planner plot throughput deepseek-v3 --gpu h200-sxm --tp 8 --engine vllm
  planner plot fleet gpt-oss-120b --pool h100-sxm5:tp=2 --trace day.csv -o day.svg
"""
OUTPUT = click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write: .svg, .png or .html; without it the plot is made of characters.",
)
THEME = click.option(
    "--theme", type=click.Choice(("light", "dark")), default="light", help="Colours of a file."
)


class Pictures(click.Group):
    """The pictures there are; another name is refused with theirs."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command to run; raises UsageError for no picture."""
        if args and self.get_command(ctx, args[0]) is None and not ctx.resilient_parsing:
            raise click.UsageError(
                f"picture: {args[0][:40]!r} is none; accepted: {', '.join(self.commands)}"
            )
        return super().resolve_command(ctx, args)


@click.group(cls=Pictures, epilog=EXAMPLES)
def command() -> None:
    """Draw a picture into a file, or with characters."""


def _added(picture: str, meaning: str) -> None:
    """Add the command that draws one picture of a scenario."""

    @command.command(picture, help=meaning, short_help=meaning)
    @scenario_options
    @OUTPUT
    @THEME
    def draw(output: Path | None, theme: str, **fields: Any) -> None:
        from planner.pictures import chart, look
        from planner.pictures.terminal import PLOTS
        from planner.scenario import Scenario

        view = look(Scenario(**fields))
        if output is not None:
            _write(chart(picture, view), output, theme)
        elif picture in PLOTS:
            click.echo(PLOTS[picture](view))
        else:
            raise click.UsageError(
                f"output: {picture} has no plot of characters; accepted: -o FILE, or one of "
                f"{', '.join(PLOTS)}, fleet"
            )


for _picture, _meaning in CHARTS.items():
    _added(_picture, _meaning)


@command.command("fleet")
@model_argument
@fleet_options
@OUTPUT
@THEME
def draw_fleet(
    model: str,
    pools: tuple[dict[str, Any], ...],
    rates: str | None,
    output: Path | None,
    theme: str,
    **given: Any,
) -> None:
    """GPUs over a day by three ways of scaling; options are those of `planner fleet`."""
    from planner.pictures.fleet import fleet_chart
    from planner.pictures.terminal import fleet as plotted
    from planner.plans.fleet import fleet

    result = fleet(request_of(model, pools, rates, given))
    if output is None:
        click.echo(plotted(result))
    else:
        _write(fleet_chart(result), output, theme)


def _write(spec: Spec, output: Path, theme: str) -> None:
    from planner.pictures.files import write

    write(spec, output, theme)
    click.echo(str(output))
