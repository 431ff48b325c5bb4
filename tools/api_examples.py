"""Write api/openapi/answers.json: an example of every answer, from one call of every operation.

    python tools/api_examples.py

The calls are those of `api.openapi.calls`, on an empty SQLite file; lists keep their first item.
Run it after a change of what the service answers: `tests/api/test_examples.py` says when.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from litestar.testing import TestClient

from api.app import Application, create_app
from api.openapi.calls import CALLS, Call, resolved
from api.settings import Settings

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "api" / "openapi" / "answers.json"
BASE = "http://planner.local"


def answers_of(client: TestClient[Application]) -> Iterator[tuple[Call, Any]]:
    """Make every call of the table in its order; yield each with its response."""
    document = client.get("/schema/openapi.json").json()
    places = {
        operation["operationId"]: (method.upper(), path)
        for path, item in document["paths"].items()
        for method, operation in item.items()
    }
    answers: dict[str, Any] = {}
    raw: dict[str, bytes] = {}
    for call in CALLS:
        method, template = places[call.operation]
        path = template.format(**resolved(call, answers))
        sent: dict[str, Any] = {"params": call.query, "headers": dict(call.headers)}
        if call.sends:
            sent["content"] = raw[call.sends]
            sent["headers"]["Content-Type"] = "application/octet-stream"
        elif call.body is not None:
            sent["json"] = call.body
        response = client.request(method, path, **sent)
        while call.ended and response.json()["state"] not in call.ended:
            time.sleep(0.1)
            response = client.request(method, path, **sent)
        raw[call.operation] = response.content
        if response.headers.get("content-type") == "application/json" and response.content:
            answers[call.operation] = response.json()
        yield call, response


def shortened(value: Any) -> Any:
    """Return a document whose lists have their first item alone."""
    if isinstance(value, dict):
        return {key: shortened(item) for key, item in value.items()}
    return [shortened(item) for item in value[:1]] if isinstance(value, list) else value


def main() -> None:
    """Write the examples."""
    examples = {}
    with tempfile.TemporaryDirectory() as directory:
        url = f"sqlite:///{directory}/planner.db"
        settings = Settings(
            _env_file=None, database_url=url, log_level="error", allowed_hosts="planner.local"
        )
        with TestClient(create_app(settings), base_url=BASE) as client:
            for call, response in answers_of(client):
                if not 200 <= response.status_code < 300:
                    raise SystemExit(f"{call.operation}: {response.status_code} {response.text}")
                if response.headers.get("content-type") == "application/json" and response.content:
                    examples[call.operation] = shortened(response.json())
    lines = (f"{json.dumps(name)}: {json.dumps(each)}" for name, each in sorted(examples.items()))
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    print(f"{len(examples)} answers")


if __name__ == "__main__":
    main()
