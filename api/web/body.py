"""Reading a JSON body into a model: strictly, with every fault named by field."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec
from litestar.config.app import AppConfig
from litestar.plugins import InitPlugin
from pydantic import BaseModel, ValidationError

from api.web.problem import FieldError, Problem
from planner.errors import faults, one_line

Model = TypeVar("Model", bound=BaseModel)


class BodyPlugin(InitPlugin):
    """Has `read` build every model in a request; listed after the pydantic plugin it overrides."""

    def on_app_init(self, app_config: AppConfig) -> AppConfig:
        """Put the decoder in front."""
        app_config.type_decoders = [(is_model, read), *(app_config.type_decoders or [])]
        return app_config


def is_model(kind: Any) -> bool:
    """Return whether a parameter is a pydantic model."""
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def read(kind: type[Model], value: Any) -> Model:
    """Return the model a body describes; raises a 422 problem that lists all faults."""
    try:
        return kind.model_validate(value, strict=True)
    except ValidationError as error:
        raise unacceptable(error) from None


def unacceptable(error: ValidationError) -> Problem:
    """Return the problem of a document that does not meet its model."""
    errors = [FieldError(field=field, message=message) for field, message in faults(error)]
    return Problem(422, one_line(error), kind="not-acceptable-input", errors=errors)


def json_of(body: bytes) -> Any:
    """Return the document of a body; raises 400 where it is not JSON."""
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise Problem(400, f"the body is not JSON: {error}") from None


def refuse_nul(body: bytes) -> None:
    r"""Raise 400 where a text holds NUL: Postgres has no such text, so neither store takes it.

    Only a body with the letters \u0000 is looked into: they may stand for a backslash and a u.
    """
    if b"\\u0000" not in body:
        return
    try:
        document = json.loads(body)
    except ValueError:
        return  # whoever reads the body says what is wrong with it
    if any("\0" in text for text in _texts(document)):
        raise Problem(400, "the body has a text with a NUL character in it")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
