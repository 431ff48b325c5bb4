"""Run by the interpreter of a generated Python client: calls what a file says, by its functions.

Arguments: the file of calls, the address of the service. It knows nothing of this repository.
"""

from __future__ import annotations

import importlib
import inspect
import io
import json
import pkgutil
import re
import sys
import time
import typing
from pathlib import Path
from typing import Any

import decode_planner_client as generated
from decode_planner_client import api, types


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name.replace("-", "_")).lower()


def functions() -> dict[str, Any]:
    """Every operation of the client by its name."""
    modules = {}
    for package in pkgutil.iter_modules(api.__path__):
        tag = importlib.import_module(f"{api.__name__}.{package.name}")
        for module in pkgutil.iter_modules(tag.__path__):
            modules[module.name] = importlib.import_module(f"{tag.__name__}.{module.name}")
    return modules


def typed(kind: Any, value: Any) -> Any:
    """What a parameter takes for a value of JSON."""
    for each in typing.get_args(kind) or (kind,):
        if hasattr(each, "from_dict") and isinstance(value, dict):
            try:
                return each.from_dict(value)
            except (ValueError, KeyError, TypeError):  # another member of a union
                continue
        if isinstance(each, type) and issubclass(each, str) and each is not str:
            return each(value)
    return value


def main() -> None:
    calls = json.loads(Path(sys.argv[1]).read_text())
    client = generated.Client(base_url=sys.argv[2], timeout=120)
    modules, answers, called = functions(), {}, []
    for call in calls:
        module = modules.pop(snake(call["operation"]))
        send = module.sync_detailed
        hints = typing.get_type_hints(send, vars(importlib.import_module(module.__name__)))
        given = {**call["query"], **call["headers"]}
        for name, text in call["path"].items():
            operation, _, fields = text.partition(".")
            value: Any = answers.get(operation)
            for part in fields.split(".") if value is not None and fields else ():
                value = value[part]
            given[name] = text if value is None else value
        arguments = {snake(name): typed(hints[snake(name)], value) for name, value in given.items()}
        if call["body"] is not None:
            arguments["body"] = typed(hints["body"], call["body"])
        unknown = set(arguments) - set(inspect.signature(send).parameters)
        assert not unknown, (call["operation"], unknown)
        if call["sends"]:
            payload = io.BytesIO(answers[call["sends"]].payload.read())
            arguments["body"] = types.File(payload=payload)
        answer = send(client=client, **arguments)
        while call["ended"] and answer.parsed.state not in call["ended"]:
            time.sleep(0.2)
            answer = send(client=client, **arguments)
        status = int(answer.status_code)
        assert 200 <= status < 300, (call["operation"], status, answer.content[:2000])
        if status != 204 and call["operation"] != "metrics":
            assert answer.parsed is not None, call["operation"]
            # What was read is what was sent, but for what the model does not name.
            parsed = answer.parsed
            plain = parsed.to_dict() if hasattr(parsed, "to_dict") else parsed
            answers[call["operation"]] = plain
        called.append(call["operation"])
    assert not modules, f"never called: {sorted(modules)}"
    print(json.dumps(called))  # noqa: T201 - what the test reads


if __name__ == "__main__":
    main()
