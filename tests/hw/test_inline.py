"""Accelerators that a user describes."""

from __future__ import annotations

import json

import pytest

from planner import hw
from planner.hw import inline

GOOD = {
    "id": "x1",
    "peaks_flops_per_s": {"bf16": 1e15, "fp8": 2e15},
    "bandwidth_bytes_per_s": 4e12,
    "memory_bytes": 128 * 2**30,
    "source": "vendor mail of 2026-11-01",
}
TOML = """
bandwidth_bytes_per_s = 4e12
memory_bytes = 137438953472
source = "vendor mail"
domain_size = 16
[peaks_flops_per_s]
bf16 = 1e15
[link]
name = "wire"
bytes_per_s = 5e11
"""


def test_object():
    acc = hw.get_accelerator(GOOD)
    assert (acc.id, acc.name, acc.memory_bytes) == ("x1", "x1", 128 * 2**30)
    assert acc.ridge_points == {"bf16": 250, "fp8": 500}
    assert acc.compute_format("fp4")[0] == "bf16"
    assert {f.source for f in acc.figures.values()} == {GOOD["source"]}
    assert (acc.link, acc.domain_size, acc.confidence) == (hw.Link("none", None), 1, "user")
    assert hw.describe(acc)["price"] is None


def test_files(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(GOOD | {"notes": ["fast"], "tdp_w": 900}))
    acc = hw.get_accelerator(str(path))
    assert (acc.id, acc.tdp_w, acc.notes) == ("x1", 900, ("fast",))
    path = tmp_path / "Other.TOML"
    path.write_text(TOML)
    acc = hw.get_accelerator(path)
    assert (acc.id, acc.domain_size, acc.link.name) == ("Other", 16, "wire")
    assert acc.figures["link_bytes_per_s"].value == 5e11


def test_files_can_be_refused(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(GOOD))
    with pytest.raises(hw.UnknownAccelerator):
        hw.get_accelerator(str(path), allow_files=False)


def test_base_takes_the_rest_from_the_catalogue():
    acc = hw.get_accelerator({"base": "B200", "bandwidth_bytes_per_s": 8e12, "source": "DGX"})
    assert acc.ridge_point("fp4") == 1125
    assert acc.domain_size == 8
    with pytest.raises(hw.UnknownAccelerator):
        hw.get_accelerator({"base": "b2000", "source": "x"})
    with pytest.raises(hw.InvalidAccelerator, match=r"^gpu\.source"):
        hw.get_accelerator({"base": "b200", "bandwidth_bytes_per_s": 8e12})


def test_base_may_stand_in_a_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('base = "h100-sxm5"\nbandwidth_bytes_per_s = 3e12\nsource = "mine"\n')
    acc = hw.get_accelerator(path)
    assert (acc.id, acc.name, acc.bandwidth_bytes_per_s) == ("h100-sxm5", "mine", 3e12)
    assert acc.peaks_flops_per_s == hw.get_accelerator("h100-sxm5").peaks_flops_per_s


def test_an_id_does_not_make_it_the_catalogues_part():
    """Nothing measured on a part, and no price, holds for another machine of the same id."""
    assert hw.get_accelerator("h100-sxm5").part == "h100-sxm5"
    mine = hw.get_accelerator({**GOOD, "id": "h100-sxm5"})
    assert (mine.id, mine.part) == ("h100-sxm5", None)
    assert hw.describe(mine)["price"] is None
    variant = {"base": "h100-sxm5", "memory_bytes": 96e9, "source": "mine"}
    assert hw.get_accelerator(variant).part == "h100-sxm5"
    assert hw.get_accelerator({**variant, "id": "h100-sxm5"}).part == "h100-sxm5"
    assert hw.get_accelerator({**variant, "id": "h100-96gb"}).part is None


def test_link_without_domain_joins_an_unknown_number():
    acc = hw.get_accelerator(GOOD | {"link": {"name": "wire", "bytes_per_s": 1e11}})
    assert acc.domain_size is None


@pytest.mark.parametrize(
    "key", ["peaks_flops_per_s", "bandwidth_bytes_per_s", "memory_bytes", "source"]
)
def test_required(key):
    for data in ({k: v for k, v in GOOD.items() if k != key}, GOOD | {key: None}):
        with pytest.raises(
            hw.InvalidAccelerator, match=rf"^gpu\.{key}: required; accepted fields: "
        ):
            hw.get_accelerator(data)


@pytest.mark.parametrize(
    ("change", "start"),
    [
        ({"bandwidth_bytes_per_s": 3350}, "gpu.bandwidth_bytes_per_s: got 3350"),  # GB/s
        ({"bandwidth_bytes_per_s": float("nan")}, "gpu.bandwidth_bytes_per_s: got nan"),
        ({"bandwidth_bytes_per_s": float("inf")}, "gpu.bandwidth_bytes_per_s: got inf"),
        ({"bandwidth_bytes_per_s": -1e12}, "gpu.bandwidth_bytes_per_s: got -1000000000000.0"),
        ({"bandwidth_bytes_per_s": "3e12"}, "gpu.bandwidth_bytes_per_s: got '3e12'"),
        ({"bandwidth_bytes_per_s": 10**400}, "gpu.bandwidth_bytes_per_s: got 1000"),
        ({"bandwidth_bytes_per_s": 10**5000}, "gpu.bandwidth_bytes_per_s: got a number too long"),
        ({"memory_bytes": 80}, "gpu.memory_bytes: got 80"),  # GB
        ({"memory_bytes": True}, "gpu.memory_bytes: got 'True'"),
        ({"peaks_flops_per_s": {}}, "gpu.peaks_flops_per_s: got '{}'"),
        ({"peaks_flops_per_s": 1e15}, "gpu.peaks_flops_per_s: got '1000000000000000.0'"),
        ({"peaks_flops_per_s": {"fp5": 1e15}}, "gpu.peaks_flops_per_s: unknown format 'fp5'"),
        ({"peaks_flops_per_s": {"bf16": 989}}, "gpu.peaks_flops_per_s.bf16: got 989"),
        ({"peaks_flops_per_s": {"bf16": -1}}, "gpu.peaks_flops_per_s.bf16: got -1"),
        ({"domain_size": 2.5}, "gpu.domain_size: got 2.5"),
        ({"domain_size": 0}, "gpu.domain_size: got 0"),
        ({"link": "NVLink"}, "gpu.link: got 'NVLink'"),
        ({"link": {"speed": 1}}, "gpu.link: got"),
        ({"link": {"bytes_per_s": 0}}, "gpu.link.bytes_per_s: got 0"),
        ({"source": " "}, "gpu.source: got ' '"),
        ({"source": 5}, "gpu.source: got '5'"),
        ({"notes": "text"}, "gpu.notes: got 'text'"),
        ({"memory_gb": 80}, "gpu: unknown field 'memory_gb'"),
        ({5: 1}, "gpu: unknown field '5'"),
    ],
)
def test_bad_fields_are_named_with_what_is_accepted(change, start):
    with pytest.raises(hw.InvalidAccelerator) as caught:
        hw.get_accelerator(GOOD | change)
    message = str(caught.value)
    assert message.startswith(start)
    assert "accepted: " in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", b"{", "gpu: 'a.json' does not parse"),
        ("a.json", b"[1]", "gpu: 'a.json' must hold one object"),
        ("a.json", b"[" * 100_000, "gpu: 'a.json' does not parse"),
        ("a.toml", b"x = ", "gpu: 'a.toml' does not parse"),
        ("a.toml", b"x = 1", "gpu.peaks_flops_per_s: required"),
        ("a.json", b"\xff\xfe", "gpu: cannot read 'a.json': not UTF-8 text"),
        ("a.json", None, "gpu: cannot read 'a.json': No such file or directory"),
    ],
)
def test_bad_files(tmp_path, name, content, message):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(hw.InvalidAccelerator) as caught:
        hw.get_accelerator(str(path))
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "changes",
    [{"bandwidth_bytes_per_s": 8}, {"bandwidth": 8e12}, {"peaks_flops_per_s": {"fp4": "fast"}}],
)
def test_overrides_are_checked_too(changes):
    with pytest.raises(hw.InvalidAccelerator, match=r"^gpu"):
        inline.override(hw.get_accelerator("b200"), {"source": "me", **changes})


def test_override_adds_peaks_and_replaces_the_link():
    acc = inline.override(
        hw.get_accelerator("m4"),
        {
            "source": "me",
            "memory_bytes": 32 * 2**30,
            "peaks_flops_per_s": {"fp16": 4.3e12},
            "link": {"name": "Thunderbolt 5", "bytes_per_s": 10e9},
        },
    )
    assert acc.memory() == 32 * 2**30
    assert acc.compute_format("bf16")[0] == "fp16"
    assert acc.link == hw.Link("Thunderbolt 5", 10e9)
    assert acc.figures["link_bytes_per_s"].source == "me"
