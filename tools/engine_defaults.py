"""What a version of a serving engine accepts and defaults to, read from its published package.

    python tools/engine_defaults.py vllm 0.33.0            writes the facts of that version
    python tools/engine_defaults.py --drift vllm newest    prints what changed since the newest file

The package is downloaded as a wheel into a temporary folder and read as text: it is not built,
installed or imported. `--package` reads a wheel, source archive or folder that is at hand instead.
Facts are names, types, defaults and tables by device memory; no text of a package is kept.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from engine_args.drift import drift
from engine_args.package import Package, Unreadable, download, newest_version, read_package
from engine_args.reader import Facts, read, table, tables
from engine_args.store import DATA, read_all, write_day, write_facts, write_parser

from planner.engines.versions import numbers

FACTS, PARSERS = "defaults", "parsers"


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns 2 for what cannot be read, with one line that says why."""
    options = _command().parse_args(arguments)
    try:
        facts = _facts(options)
        if options.drift:
            print(_report(facts, options))
            return 0
        written = [
            write_facts(facts.planner(), options.data / FACTS),
            write_day(options.data / FACTS),
        ]
        if not options.facts_only:
            written.append(write_parser(facts.parser(), options.data / PARSERS))
    except Unreadable as error:
        print(error, file=sys.stderr)
        return 2
    for path in written:
        print(path)
    return 0


def _command() -> argparse.ArgumentParser:
    summary, _, usage = (__doc__ or "").partition("\n\n")
    command = argparse.ArgumentParser(
        description=summary, epilog=usage, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command.add_argument("engine", help=", ".join(tables()))
    command.add_argument("version", nargs="?", default="newest", help="0.33.0, or newest")
    command.add_argument("--package", type=Path, help="wheel, source archive or folder to read")
    command.add_argument("--released", help="month of the version, where the package has no dates")
    command.add_argument("--drift", action="store_true", help="print what changed; write nothing")
    command.add_argument("--against", help="version to compare with, instead of the newest file")
    command.add_argument("--facts-only", action="store_true", help="without the whole parser")
    command.add_argument("--data", type=Path, default=DATA, help="folder of the engine data")
    return command


def _facts(options: argparse.Namespace) -> Facts:
    looked = table(options.engine)
    newest = options.version == "newest"
    if options.package is not None:
        if newest:
            raise Unreadable("version: of what --package holds; accepted: a version")
        package = read_package(options.package, looked["files"])
    else:
        version = newest_version(looked["distribution"]) if newest else options.version
        if not numbers(version) or version.startswith("-"):
            raise Unreadable(f"version: {version!r} is none; accepted: 0.33.0, newest")
        options.version = version
        package = download(looked["distribution"], version, looked["files"])
    dated = Package(package.name, package.files, options.released or package.built)
    return read(options.engine, options.version, dated)


def _report(facts: Facts, options: argparse.Namespace) -> str:
    parsers = read_all(options.engine, options.data / PARSERS)
    if options.against:
        parsers = [one for one in parsers if one["version"] == options.against]
    if not parsers:
        raise Unreadable(
            f"version: no parser of {options.engine} {options.against or ''} is on file"
        )
    old = parsers[-1]
    return drift(old, facts.parser(), _rules_of(old["version"], options), facts.rules)


def _rules_of(version: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return the tables that held at a version: those of the newest facts up to it."""
    facts = read_all(options.engine, options.data / FACTS)
    held = [one["rules"] for one in facts if numbers(one["version"]) <= numbers(version)]
    rules: dict[str, Any] = held[-1] if held else {}
    return rules


if __name__ == "__main__":
    sys.exit(main())
