"""What is refused: text that cannot be read, and scenarios that an object cannot hold."""

from __future__ import annotations

from planner.errors import InvalidInput


class Unreadable(InvalidInput):
    """A file that is no command line or object known here; the message names its line."""


class Unwritable(InvalidInput):
    """A scenario that an engine's command line or an object cannot hold; names the field."""
