"""The bill of materials says what the lock of the image does, and every licence allows shipping."""

from __future__ import annotations

import json
import re

import pytest

from tests.scripts import ROOT, script

tool = script("sbom")
BILL = json.loads((ROOT / "docs" / "sbom.json").read_text("utf-8"))
LOCK = (ROOT / "requirements-service.lock").read_text("utf-8")
COPYLEFT = re.compile(r"(?<![A-Z])(?:A?GPL|SSPL|BUSL|CC-BY-NC)", re.IGNORECASE)
"""Licences that a program under Apache-2.0 is not shipped with; LGPL and MPL are linked only."""


def test_the_bill_is_that_of_the_lock() -> None:
    assert tool.differences(BILL, LOCK) == set()
    assert (BILL["bomFormat"], BILL["specVersion"]) == ("CycloneDX", "1.6")
    names = [each["name"] for each in BILL["components"]]
    assert len(set(names)) == len(names) > 40


@pytest.mark.parametrize("component", BILL["components"], ids=lambda each: each["name"])
def test_every_part_states_a_licence_that_allows_shipping(component: dict[str, object]) -> None:
    (licence,) = component["licenses"]
    stated = licence.get("expression") or licence["license"]["name"]
    assert stated
    assert not COPYLEFT.search(stated.replace("LGPL", "")), stated


def test_markers_are_decided_for_the_image() -> None:
    lock = (
        "one==1.0 \\\n    --hash=sha256:0\n"
        "two[extra]==2.0 ; sys_platform == 'win32' \\\n    --hash=sha256:0\n"
        "Three==3.0 ; python_full_version >= '3.12' \\\n"
        "    # via one\n"
    )
    assert list(tool.locked(lock)) == [("one", "1.0"), ("three", "3.0")]


def test_what_differs_is_named() -> None:
    bill = {"components": [{"type": "library", "name": "one", "version": "1.0"}]}
    assert tool.differences(bill, "one==1.1 \\\n") == {("one", "1.0"), ("one", "1.1")}


def test_a_package_without_a_licence_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from email.message import Message

    said = Message()
    monkeypatch.setattr(tool, "metadata", lambda _: said)
    with pytest.raises(LookupError, match="x: states no licence"):
        tool.licence("x")
    said["License"] = "MIT\nmore of it"
    assert tool.licence("x") == "MIT"
    said["Classifier"] = "License :: OSI Approved :: BSD License"
    assert tool.licence("x") == "BSD License"
    said["License-Expression"] = "Apache-2.0 OR MIT"
    assert tool.licence("x") == "Apache-2.0 OR MIT"
