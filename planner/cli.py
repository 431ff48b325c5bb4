"""The command line: `planner COMMAND`. Commands are loaded when they are called."""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

import click

from planner.errors import one_line

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

COMMANDS = {
    "plan": "planner.commands.plan",
    "sweep": "planner.commands.sweep",
    "recommend": "planner.commands.recommend",
    "fleet": "planner.commands.fleet",
    "largest": "planner.commands.largest",
    "roofline": "planner.commands.roofline",
    "plot": "planner.commands.plot",
    "kernels": "planner.commands.kernels",
    "models": "planner.commands.models",
    "gpus": "planner.commands.gpus",
    "engines": "planner.commands.engines",
    "check": "planner.commands.check",
    "manifest": "planner.commands.manifest",
    "observe": "planner.commands.observe",
    "mcp": "planner.commands.mcp",
    "validate": "planner.commands.validate",
    "calibrate": "planner.commands.calibrate",
}
"""Module of each of the library's commands; each has its click command as `command`."""

GROUP = "planner.commands"
"""Entry-point group by which a service adds commands."""

SERVICE = "decode-planner[service]"
"""What to install for the service's commands."""


class Commands(click.Group):
    """The library's commands, then those of installed services."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        del ctx
        return [*COMMANDS, *sorted(_added())]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load the command called `cmd_name`."""
        del ctx
        if cmd_name in COMMANDS:
            command = import_module(COMMANDS[cmd_name]).command
        else:
            added = _added()
            command = added[cmd_name].load() if cmd_name in added else None
        return command if isinstance(command, click.Command) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command to run; raises UsageError for an option given twice."""
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and not ctx.resilient_parsing:  # a shell that completes
            refuse_repeats(click.Context(command, parent=ctx, info_name=name), rest)
        return name, command, rest


def refuse_repeats(ctx: click.Context, args: list[str]) -> None:
    """Raise UsageError where an option that takes one value is given more than once.

    click keeps the last one without a word. A subcommand's own options are looked at too.
    """
    _, rest, given = ctx.command.make_parser(ctx).parse_args(list(args))
    for option in given:
        flag = not isinstance(option, click.Option) or option.is_flag or option.count
        if given.count(option) > 1 and not (flag or option.multiple):
            text = f"{option.name}: given {given.count(option)} times; accepted: one"
            raise click.UsageError(f"{text} {option.opts[-1]} {option.make_metavar(ctx)}")
    if isinstance(ctx.command, click.Group) and rest:
        command = ctx.command.get_command(ctx, rest[0])
        if command is not None:
            refuse_repeats(click.Context(command, parent=ctx, info_name=rest[0]), rest[1:])


def _added() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # slow to import, and few calls need it

    return {point.name: point for point in entry_points(group=GROUP)}


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="decode-planner", prog_name="planner")
def planner() -> None:
    """Plan LLM decode: rooflines, memory, latency and the batch to run, from a real config.json."""


def script() -> None:
    """Run the command line as a process of its own, which is short: it starts and ends lightly.

    Garbage is not collected, neither while modules are imported nor at the end, when all of them
    would be walked through once more. Pydantic's plugins, of which there are none, are not looked
    for in every installed package. NumPy makes no pool of threads for linear algebra, of which only
    a fit has a little.
    """
    gc.disable()
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        main()
    finally:
        gc.freeze()


def main(arguments: list[str] | None = None) -> None:
    """Run the command line. Exit 0 on an answer, 2 on bad input with one line on stderr."""
    try:
        planner.main(args=arguments, prog_name="planner", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as shown:
        click.echo(shown.format_message())
    except click.ClickException as error:
        _fail(error.format_message())
    except ModuleNotFoundError as error:
        _fail(f"{error.name} is not installed; the service needs: pip install '{SERVICE}'")
    except (ValueError, OSError) as error:
        _fail(one_line(error))
    except click.Abort:
        sys.exit(130)


def _fail(message: str) -> None:
    click.echo(f"planner: {' '.join(message.split())}", err=True)
    sys.exit(2)
