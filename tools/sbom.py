"""Write docs/sbom.json: what the image ships besides this program, with its licences (CycloneDX).

    python tools/sbom.py [--check]

Packages and versions are those of requirements-service.lock that apply to the image, licences those
that the installed packages state. Run it where they are installed; `--check` writes nothing, and
fails where a package of the lock is not in the file, or the other way round.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata, version
from pathlib import Path
from typing import Any

from packaging.markers import Marker

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements-service.lock"
TARGET = ROOT / "docs" / "sbom.json"
LINE = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^ ;\\]+)\s*(?:;\s*([^\\]+))?")
IMAGE = {
    "sys_platform": "linux",
    "platform_system": "Linux",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "python_version": "3.13",
    "python_full_version": "3.13.0",
    "implementation_name": "cpython",
    "platform_python_implementation": "CPython",
}
"""What markers are decided for: the image of the Dockerfile."""
FILES = (
    ("swagger-ui", "the files of Swagger UI that swagger-ui-py carries", "Apache-2.0"),
    ("vega", "Vega, Vega-Lite and Vega-Embed that vl-convert-python carries", "BSD-3-Clause"),
)
"""What packages carry of others, and is sent to browsers."""


def locked(text: str) -> Iterator[tuple[str, str]]:
    """Return name and version of the packages of a lock file that apply to the image."""
    for line in text.splitlines():
        match = LINE.match(line)
        if match and (not match[3] or Marker(match[3].strip()).evaluate(IMAGE)):
            yield match[1].lower(), match[2]


def licence(name: str) -> str:
    """Return what an installed package says of its licence; raises where it says nothing."""
    about = metadata(name)
    expression = about.get("License-Expression")
    if expression:
        return str(expression)
    kinds = [c.rpartition(" :: ")[2] for c in about.get_all("Classifier", []) if "License ::" in c]
    text = (about.get("License") or "").strip().splitlines()
    result = " AND ".join(kinds) or (text[0] if text else "")
    if not result:
        raise LookupError(f"{name}: states no licence")
    return result


def component(name: str, number: str) -> dict[str, Any]:
    """Return a package as CycloneDX has it."""
    stated = licence(name)
    spdx = re.fullmatch(r"[A-Za-z0-9.+-]+(?: (?:AND|OR|WITH) [A-Za-z0-9.+-]+)*", stated)
    return {
        "type": "library",
        "bom-ref": f"pkg:pypi/{name}@{number}",
        "name": name,
        "version": number,
        "purl": f"pkg:pypi/{name}@{number}",
        "licenses": [{"expression": stated} if spdx else {"license": {"name": stated[:200]}}],
    }


def document() -> dict[str, Any]:
    """Return the bill of materials."""
    packages = sorted(locked(LOCK.read_text("utf-8")))
    files = [
        {"type": "file", "name": name, "description": text, "licenses": [{"expression": spdx}]}
        for name, text, spdx in FILES
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "name": "decode-planner",
                "version": version("decode-planner"),
                "licenses": [{"expression": "Apache-2.0"}],
            }
        },
        "components": [*(component(*package) for package in packages), *files],
    }


def differences(bill: dict[str, Any], lock: str) -> set[tuple[str, str]]:
    """Return the packages that stand in the bill or in the lock, but not in both."""
    billed = {(c["name"], c["version"]) for c in bill["components"] if c["type"] == "library"}
    return billed ^ set(locked(lock))


def main() -> int:
    """Write the file, or check it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        wrong = differences(json.loads(TARGET.read_text("utf-8")), LOCK.read_text("utf-8"))
        for name, number in sorted(wrong):
            print(f"{name} {number}: not in both")
        return int(bool(wrong))
    try:
        TARGET.write_text(json.dumps(document(), indent=1) + "\n", "utf-8")
    except (PackageNotFoundError, LookupError) as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
