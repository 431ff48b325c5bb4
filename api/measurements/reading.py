"""From the body of a request to rows; nothing in it is opened as a file."""

from __future__ import annotations

import json

from api.web.accept import CSV, JSON
from api.web.call import call_planner
from api.web.problem import Problem, over_limit, rejected
from planner.benchmarks import Context, Measurements, MissingContext, read_text


def read_body(raw: bytes, kind: str, context: Context, most: int) -> Measurements:
    """Return the rows of a body of a media type; the format is recognised by its content."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Problem(400, "the body is not UTF-8 text") from None
    if kind == JSON:
        _require_json(text)
    elif kind == CSV and (lines := text.count("\n")) > most + 1:
        raise over_limit("results", lines, most, "PLANNER_MAX_MEASURED_RUNS")
    return call_planner(_read, text, context)


def _read(text: str, context: Context) -> Measurements:
    try:
        return read_text(text, context, "the body", local=False)
    except MissingContext as missing:
        field = str(missing).partition(":")[0]
        message = f"{field}: the body does not say it; accepted: ?{field}= in the query"
        raise rejected(message) from None


def _require_json(text: str) -> None:
    """Raise 400 for a body that says it is JSON and is neither that nor lines of it."""
    try:
        json.loads(text)
    except ValueError:
        try:
            for line in filter(str.strip, text.splitlines()):
                json.loads(line)
        except ValueError as error:
            reason = str(error).split("\n")[0][:200]
            raise Problem(400, f"the body is not JSON: {reason}") from None
