"""A published package as a set of text files: a wheel, a source archive or a folder.

A package is downloaded as a wheel, so that none of its code runs: it is neither built, installed
nor imported.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path


class Unreadable(ValueError):
    """A package that cannot be had or read; says what to do instead."""


@dataclass(frozen=True, slots=True)
class Package:
    """The files of a package that match the patterns."""

    name: str
    """File name of the wheel, archive or folder."""
    files: Mapping[str, str]
    """Text of each file by its path inside the package."""
    built: str | None
    """Month of the newest of these files (`2026-11`); None where the archive keeps no dates."""


def read_package(path: Path, patterns: list[str]) -> Package:
    """Return the files of a package at `path` whose paths match one of `patterns`.

    Raises Unreadable where it holds none of them.
    """
    opened = _of_folder if path.is_dir() else _of_wheel if path.suffix == ".whl" else _of_archive
    files, months = opened(path, patterns)
    if not files:
        raise Unreadable(f"package: {path} has no file like {', '.join(patterns)}")
    dated = [month for month in months if month > "2020"]
    return Package(path.name, files, max(dated, default=None))


def download(distribution: str, version: str, patterns: list[str]) -> Package:
    """Return the files of a published wheel, downloaded into a temporary folder.

    Raises Unreadable where there is none, as where a project publishes sources alone: building
    those would run their code.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--no-cache-dir", "--only-binary", ":all:", "--dest", folder]
        command += [f"{distribution}=={version}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - no shell, and the version was checked
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode or not wheels:
            raise Unreadable(
                f"package: no wheel of {distribution} {version} could be downloaded; give its "
                f"sources with --package"
            )
        return read_package(wheels[0], patterns)


def newest_version(distribution: str) -> str:
    """Return the newest published version; raises Unreadable where that cannot be told."""
    command = [sys.executable, "-m", "pip", "index", "versions", distribution]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - no shell, and the name is from engines.json
    _, opened, rest = done.stdout.partition("(")
    if done.returncode or not opened:
        raise Unreadable(f"package: the newest version of {distribution} is not known; give one")
    return rest.partition(")")[0]


def _matches(path: str, patterns: list[str]) -> bool:
    return any(fnmatch(path, pattern) for pattern in patterns)


def _of_wheel(path: Path, patterns: list[str]) -> tuple[dict[str, str], list[str]]:
    with zipfile.ZipFile(path) as archive:
        members = [item for item in archive.infolist() if _matches(item.filename, patterns)]
        files = {item.filename: archive.read(item).decode("utf-8") for item in members}
    return files, [f"{item.date_time[0]}-{item.date_time[1]:02}" for item in members]


def _of_archive(path: Path, patterns: list[str]) -> tuple[dict[str, str], list[str]]:
    files: dict[str, str] = {}
    with tarfile.open(path) as archive:
        for item in archive:
            inside = item.name.partition("/")[2]
            content = archive.extractfile(item) if _matches(inside, patterns) else None
            if content is not None:
                files[inside] = content.read().decode("utf-8")
    return files, []


def _of_folder(path: Path, patterns: list[str]) -> tuple[dict[str, str], list[str]]:
    inside = {str(file.relative_to(path)): file for file in sorted(path.rglob("*"))}
    wanted = {name: file for name, file in inside.items() if _matches(name, patterns)}
    return {name: file.read_text("utf-8") for name, file in wanted.items()}, []
