"""Files that are broken in thousands of ways: refused in one line or checked, never a traceback."""

from __future__ import annotations

import random
import time
import tracemalloc
from pathlib import Path

import pytest

from planner.errors import InvalidInput
from planner.handover.checking import CheckQuestion, check

FILES = sorted((Path(__file__).parent / "manifests").iterdir())
WORDS = (
    *("null", "-1", "0", "1e999", "99999999999999999999", "[]", "{}", "''", '"', "'", "&a", "*a"),
    *("true", "~", "!!python/name:os.system", "<<:", "- ", ": ", "{{ .Values.x }}", "$(id)"),
    *("`id`", "\\", "\n", "\t", "\0", "é", "\U0001f600", "--", "-", "=", "|", ">", "#", "EOF"),
    *("--tensor-parallel-size", "replicas:", "args:", "command: [sh, -c]", "nvidia.com/gpu: -3"),
    *("2**64", "<<'EOF'"),
)
SECONDS, MEGABYTES = 1.0, 200


def broken(rng: random.Random) -> str:
    """Return a manifest with up to twenty edits: words put in, lines moved, doubled and cut."""
    text = rng.choice(FILES).read_text("utf-8")
    for _ in range(rng.randint(1, 20)):
        at = rng.randrange(len(text) + 1)
        match rng.randrange(6):
            case 0:
                text = text[:at] + rng.choice(WORDS) + text[at:]
            case 1:
                text = text[:at] + text[at + rng.randint(1, 30) :]
            case 2:
                lines = text.split("\n")
                rng.shuffle(lines)
                text = "\n".join(lines) if rng.random() < 0.1 else text
            case 3:
                lines = text.split("\n")
                lines.insert(rng.randrange(len(lines) + 1), rng.choice(lines))
                text = "\n".join(lines)
            case 4:
                text = text[:at] + chr(rng.randrange(0x2100)) + text[at:]
            case 5:
                other = rng.choice(FILES).read_text("utf-8")
                text = text[:at] + other[rng.randrange(len(other)) :]
    return text


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_no_file_is_a_traceback(count: int) -> None:
    rng = random.Random(count)  # noqa: S311 - repeatable, not secret
    question = CheckQuestion(gpu="h100-sxm5", concurrency=8, isl=1000, osl=100, tpot_ms=50)
    answered = 0
    slowest = 0.0
    lines: set[int] = set()
    for _ in range(count):
        text = broken(rng)
        started = time.process_time()
        try:
            report = check({"file": text}, question)
        except InvalidInput as error:
            lines.add(str(error).count("\n"))
        else:
            answered += report.exit_code in (0, 1)
        slowest = max(slowest, time.process_time() - started)
    assert count / 20 < answered < count
    assert lines == {0}
    if count > 1000:
        assert slowest < SECONDS  # of a processor, whatever else it runs


def test_the_largest_file_is_read_in_bounded_memory() -> None:
    text = "vllm serve " + "a" * 200_000 + " '" + "b" * 50_000 + "'\n"
    tracemalloc.start()
    with pytest.raises(InvalidInput):
        check({"file": text})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < MEGABYTES * 1e6
