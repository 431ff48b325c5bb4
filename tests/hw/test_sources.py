"""Every figure names a source that a reader can look up, or is said to have none."""

from __future__ import annotations

import json
import shutil

import pytest

from planner import Scenario, hw, plan
from planner.hw import figure
from planner.hw._data import EDITION, FOLDER, load
from tests.scripts import script

hardware = script("hardware")

TABLES = ("accelerators", "links", "prices")


@pytest.mark.parametrize("table", TABLES)
def test_every_source_is_a_named_key_that_is_used_and_can_be_looked_up(table):
    assert list(hardware.faults(table, load(table, EDITION))) == []
    sources = load(table, EDITION)["sources"]
    assert all(not key.isdigit() for key in sources)
    assert not [text for text in sources.values() if "passage" in text.lower()]


@pytest.mark.parametrize("table", TABLES)
def test_the_files_are_in_their_one_form(table):
    text = (FOLDER / f"{table}-{EDITION}.json").read_text(encoding="utf-8")
    assert hardware.as_text(json.loads(text)) == text


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"sources": {"one": "a public source passage 17"}}, "'one' is nothing a reader can look"),
        ({"sources": {"one": "Some datasheet", "two": "Another one"}}, "source 'two' is not used"),
        ({"sources": {}}, "source 'one' is used and has no text"),
        ({"sources": {"One Two": "Some datasheet"}}, "'One Two' is not lower-case words"),
        ({"sources": {"one": "Some datasheet"}, "edition": "1999-01-01"}, "edition '1999-01-01'"),
        ({"sources": {"unsourced-x": "Some datasheet"}}, "must start with 'Unsourced'"),
    ],
)
def test_faults_are_found_and_named(change, fault):
    data = {"edition": EDITION, "specs": [{"source": "one"}], **change}
    assert any(fault in line for line in hardware.faults("links", data))


def test_confidence_of_a_figure_is_its_own_or_that_of_its_row():
    h20 = hw.get_accelerator("h20-141gb")
    assert h20.figures["bandwidth_bytes_per_s"].confidence == "unsourced"
    assert h20.figures["peaks_flops_per_s.fp8"].confidence == "third_party"
    assert set(h20.weak_figures) == {"bandwidth_bytes_per_s"}
    epyc = hw.get_accelerator("epyc-9654")
    assert set(epyc.weak_figures) == {"memory_bytes"}
    assert epyc.figures["memory_bytes"].confidence == "assumed"
    assert hw.describe(h20)["confidences"]["bandwidth_bytes_per_s"] == "unsourced"


def test_weak_confidences_are_known_by_the_key_of_their_source():
    prefixes = {key.partition("-")[0] for key in load("accelerators", EDITION)["sources"]}
    assert set(figure.WEAK) <= prefixes
    weak = {i for i, a in hw.load_catalogue().items() if a.weak_figures}
    assert weak == {"h20-141gb", "epyc-9654", "epyc-9755", "xeon-6980p", "xeon-6972p"}


@pytest.mark.parametrize(
    ("gpu", "start"),
    [
        (
            "h20-141gb",
            "bandwidth_bytes_per_s of h20-141gb (4 TB/s, elsewhere 4.8 TB/s) is unsourced",
        ),
        ("epyc-9755", "memory_bytes of epyc-9755 (825 GB) is assumed: one module of 64 GiB"),
    ],
)
def test_a_plan_says_what_rests_on_nobody(gpu, start):
    answer = plan(Scenario(model="meta-llama/Llama-3.1-8B-Instruct", gpu=gpu, batch=1))
    (note,) = [note for note in answer.notes if note.code == "weak_figure"]
    assert note.text.startswith(start)
    assert answer.points[0].tpot_s.p50 > 0


def test_a_plan_on_sourced_figures_says_nothing():
    answer = plan(Scenario(model="meta-llama/Llama-3.1-8B-Instruct", gpu="h100-sxm5", batch=1))
    assert not [note for note in answer.notes if note.code == "weak_figure"]


MINE = """
id = "gpu-of-the-test"
name = "GPU of the test"
vendor = "ACME"
architecture = "One"
bandwidth_bytes_per_s = 4e12
memory_bytes = 96e9
source = "ACME One datasheet, 2026-12"
[peaks_flops_per_s]
bf16 = 1.2e15
[link]
name = "Wire"
bytes_per_s = 3e11
"""


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """Return a copy of the data folder that the tool writes to."""
    folder = tmp_path / "hw" / "data"
    shutil.copytree(FOLDER, folder)
    shutil.copy(hardware.CODE, folder.with_name("_data.py"))
    monkeypatch.setattr(hardware, "FOLDER", folder)
    monkeypatch.setattr(hardware, "CODE", folder.with_name("_data.py"))
    return folder


@pytest.mark.usefixtures("copied")
def test_an_accelerator_is_taken_in_from_a_users_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(MINE)
    hardware.main(["add", str(path), "acme-one-datasheet-2026-12"])
    assert hardware.check() == []
    row = hardware.read("accelerators")["accelerators"][-1]
    assert row["sources"] == ["acme-one-datasheet-2026-12"]
    assert (row["link"], row["peaks"]) == (["Wire", 3e11], {"bf16": 1.2e15})
    with pytest.raises(SystemExit, match="'gpu-of-the-test' is in the catalogue"):
        hardware.main(["add", str(path), "another-key"])


def test_a_new_edition_leaves_the_old_files_alone(copied):
    before = {path.name: path.read_bytes() for path in copied.iterdir()}
    hardware.main(["edition", "2099-01-01"])
    for name, content in before.items():
        assert (copied / name).read_bytes() == content
    assert json.loads((copied / "links-2099-01-01.json").read_text())["edition"] == "2099-01-01"
    assert 'EDITION = "2099-01-01"' in hardware.CODE.read_text()
    with pytest.raises(SystemExit, match="no date after"):
        hardware.main(["edition", "2020-01-01"])
