"""`planner workspace`: everything of a workspace into a file of lines, and back from one."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from api.commands.client import Client, run, server_option
from planner.commands.progress import busy

PATH = "/v1/workspace/lines"
PAGE = 1_000
"""Things that are asked for, or sent, at a time."""
PAGE_BYTES = 8_000_000


@click.group()
def command() -> None:
    """Export and import a workspace; what broke off goes on where it was."""


@command.command("export")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@server_option
def export(file: Path, server: str | None) -> None:
    """Write everything but API keys to FILE; FILE.partial is what a broken export has so far."""
    partial = file.with_name(f"{file.name}.partial")
    cursor = _resumed(partial)

    async def work(client: Client) -> None:
        at, done = cursor, 0
        with busy("Exporting") as bar, partial.open("ab") as out:
            while True:
                query = {"limit": PAGE, **({"cursor": at} if at else {})}
                page = (await client.send("GET", PATH, params=query)).content
                out.write(page)
                out.flush()
                last = json.loads(page.splitlines()[-1])
                if "end" in last:
                    return
                at, done = last["cursor"], done + PAGE
                bar(done, 0)

    run(server, work)
    partial.replace(file)
    click.echo(f"{file}: {file.stat().st_size:,} bytes")


def _resumed(partial: Path) -> str | None:
    """Return the cursor that a broken export goes on at; what stands after it is cut off."""
    if not partial.exists():
        return None
    cursor, keep, at = None, 0, 0
    with partial.open("rb") as lines:
        for line in lines:
            at += len(line)
            if line.startswith(b'{"cursor"') and line.endswith(b"\n"):
                cursor, keep = json.loads(line)["cursor"], at
    with partial.open("ab") as file:
        file.truncate(keep)
    return cursor


@command.command("import")
@click.argument("file", type=click.Path(dir_okay=False, exists=True, path_type=Path))
@click.option("--name", help="Of the import; by default a digest of FILE.")
@server_option
def load(file: Path, name: str | None, server: str | None) -> None:
    """Store what FILE holds under new ids; repeated, it stores what is not there yet."""
    called, size = name or _digest(file), file.stat().st_size

    async def work(client: Client) -> Counter[str]:
        counts: Counter[str] = Counter()
        sent = 0
        with busy("Importing") as bar:
            for page in _pages(file):
                kind = {"Content-Type": "application/x-ndjson"}
                query = {"name": called}
                answer = await client.json("POST", PATH, params=query, content=page, headers=kind)
                counts.update({key: n for key, n in answer.items() if type(n) is int})
                sent += len(page)
                bar(sent, size)
        return counts

    counts: Any = run(server, work)
    click.echo(", ".join(f"{number} {kind}" for kind, number in counts.items()))


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()[:32]


def _pages(file: Path) -> Iterator[bytes]:
    page, lines = bytearray(), 0
    with file.open("rb") as content:
        for line in content:
            page += line
            lines += 1
            if lines == PAGE or len(page) > PAGE_BYTES:
                yield bytes(page)
                page.clear()
                lines = 0
    if page:
        yield bytes(page)
