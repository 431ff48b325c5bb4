"""Documents about changes."""

from __future__ import annotations

from pydantic import Field

from planner.answer import Answer


class ChangeEntry(Answer):
    """One change of something stored."""

    id: str = Field(description="sorts by time")
    kind: str = Field(description="scenario, own (model or accelerator), measurement, …")
    object: str = Field(description="id of what was changed")
    action: str = Field(description="created, updated, deleted, …")
    revision: int | None = Field(description="revision it made of a scenario")
    key_id: str | None = Field(description="id of the API key; null without one")
    client: str | None = Field(description="address it came from; null for commands on the store")
    request_id: str | None = Field(description="id of the request in the log")
    changed_at: str = Field(description="when, in UTC")


class ChangePage(Answer):
    """One page of changes, newest first."""

    items: list[ChangeEntry] = Field(description="newest first")
    next_cursor: str | None = Field(description="pass as `cursor` for the next page")
