"""`planner work`: do the jobs of a store, without serving."""

from __future__ import annotations

import signal
import threading

import click

from api.commands.settings import load_settings


@click.command("work")
@click.option("--jobs", type=click.IntRange(1, 64), help="Jobs at once; PLANNER_LANE_JOBS or 1.")
def command(jobs: int | None) -> None:
    """Do the jobs that services of the same store are asked for, on this machine too.

    Ends with Ctrl-C or SIGTERM; what is not done then is done by another.
    """
    from sqlalchemy.exc import SQLAlchemyError

    from api.jobs.workshop import open_services
    from api.store.migrate import WrongRevision

    settings = load_settings(lane_jobs=jobs)
    if not settings.lane_jobs:
        raise click.UsageError("PLANNER_LANE_JOBS: 0 does no jobs; accepted: 1 to 64, or --jobs")
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    try:
        with open_services(settings):
            click.echo(f"working on jobs, {settings.lane_jobs} at once")
            ended.wait()
    except (WrongRevision, SQLAlchemyError, OSError) as error:
        raise click.ClickException(f"store: {str(error).splitlines()[0]}") from None
