"""How notes are given in answers."""

from __future__ import annotations

from collections.abc import Iterable

from planner import answer
from planner.models.spec import Note


def note_answers(notes: Iterable[Note]) -> list[answer.NoteAnswer]:
    """Return notes as an answer gives them, each once."""
    return [answer.NoteAnswer(code=n.code, text=n.text) for n in dict.fromkeys(notes)]
