"""`planner calibrate`: fit the calibration to the measured rows kept with the project."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command()
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path),
              help="Where to write it; the project's own file if not given.")  # fmt: skip
def command(output: Path | None) -> None:
    """Refit the calibration and write it to a file."""
    from planner.calibration.committed import DATA
    from planner.calibration.refit import refit_committed
    from planner.calibration.table import EDITION

    content = refit_committed()
    path = output or Path(str(DATA.joinpath(f"calibration-{EDITION}.json")))
    path.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    size = path.stat().st_size / 1e3
    click.echo(f"{path.name}: {content['provenance']['effects']} effects, {size:.0f} kB")
