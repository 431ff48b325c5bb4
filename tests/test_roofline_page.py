"""docs/roofline.md: each of the 24 worked figures, by one command whose output it shows."""

from __future__ import annotations

import re

import pytest

from tests.scripts import ROOT, script

PAGE = script("roofline_page")
TEXT = ROOT.joinpath("docs/roofline.md").read_text("utf-8")
COMMANDS = {block[1]: block[2] for block in PAGE.BLOCK.finditer(TEXT)}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_print_what_the_page_shows(command: str) -> None:
    """Run `python tools/roofline_page.py` where a change of the output is meant."""
    assert PAGE.printed(command) == COMMANDS[command]


def test_every_fact_has_a_command() -> None:
    sections = re.findall(r"^## Facts? (.+)$", TEXT, re.MULTILINE)
    named = {int(number) for number in re.findall(r"\d+", " ".join(sections))}
    named |= {int(n) for n in re.findall(r"\b[Ff]acts? (\d+)", TEXT)}
    named |= {int(n) for n in re.findall(r"[Ff]acts \d+ and (\d+)", TEXT)}
    assert named >= set(range(1, 25))
    assert len(COMMANDS) >= 20


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("roofline --gpu h100-sxm5", ["295.3", "590.7"]),
        ("roofline --gpu b200-sxm", ["292.2", "584.4", "1169", "281.2", "562.5", "1125"]),
        ("kernels --gpu h100-sxm5 --gemm 4096,4096,4096", ["137 GFLOP", "101 MB", "1365"]),
        ("kernels --gpu h100-sxm5 --gemv 4096,4096", ["1 FLOP/byte"]),
        ("kernels --gpu h100-sxm5 --add 8192x8192 --format fp32", ["0.08333"]),
        ("kernels --gpu h100-sxm5 --rmsnorm 8192x8192", ["1.5 FLOP/byte", "80.1 µs", "407 ns"]),
        ("kernels --gpu h100-sxm5 --attention fused --context 8k", ["4096", "64"]),
        ("models show meta-llama/Meta-Llama-3-70B", ["327,680"]),
    ],
)
def test_the_figures_of_the_texts_are_in_the_output(command: str, words: list[str]) -> None:
    for word in words:
        assert word in COMMANDS[command], word
