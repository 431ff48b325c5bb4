"""A bar while an answer takes its time: on a terminal alone, and gone before the answer."""

from __future__ import annotations

import io
import threading
from contextlib import redirect_stderr

import pytest

from planner.commands.progress import Bar, busy


class Terminal(io.StringIO):
    """A standard error that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def able(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


def test_a_long_answer_shows_a_bar() -> None:
    with redirect_stderr(Terminal()) as terminal, busy("Searching options", after_s=0.0):
        for _ in range(1000):
            if "Searching options" in terminal.getvalue():
                break
            threading.Event().wait(0.02)
    text = terminal.getvalue()
    assert "Searching options" in text
    assert "0:00:0" in text  # the time passed
    assert threading.active_count() < 5


def test_a_short_one_shows_nothing() -> None:
    with redirect_stderr(Terminal()) as terminal, busy("Searching options"):
        pass
    assert terminal.getvalue() == ""


def test_nothing_is_written_where_nobody_looks() -> None:
    with redirect_stderr(io.StringIO()) as shown, busy("Searching options", after_s=0.0):
        threading.Event().wait(0.05)
    assert shown.getvalue() == ""


def test_errors_pass_and_the_bar_goes() -> None:
    terminal = Terminal()
    with (
        redirect_stderr(terminal),
        pytest.raises(ValueError, match="wrong"),
        busy("Searching", after_s=0.0),
    ):
        raise ValueError("wrong")
    before = terminal.getvalue()
    threading.Event().wait(0.15)
    assert terminal.getvalue() == before


def test_a_bar_that_comes_too_late_is_not_shown() -> None:
    bar = Bar("Searching")
    bar.stop()
    with redirect_stderr(Terminal()) as terminal:
        bar.start()
    assert terminal.getvalue() == ""


def test_a_bar_shows_the_part_that_is_done() -> None:
    with redirect_stderr(Terminal()) as terminal, busy("Exporting", after_s=60.0) as bar:
        bar(1, 0)  # how many there are is not known
        bar(2, 4)
        bar.start()
        shown, task = bar._shown or (None, None)
        assert shown is not None
        assert (shown.tasks[0].completed, shown.tasks[0].total) == (2, 4)
        assert shown.tasks[0].id == task
    assert "Exporting" in terminal.getvalue()
