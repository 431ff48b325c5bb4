"""Completing the document the framework makes.

Its schemas of pydantic models lose constraints, its errors have another shape, and it knows nothing
of other media types. Everything is replaced from what the handlers themselves say.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from litestar import Litestar
from litestar._openapi.plugin import OpenAPIPlugin
from litestar.handlers import HTTPRouteHandler
from litestar.routes import HTTPRoute
from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from api.openapi.examples import ANSWERS, EXAMPLES
from api.openapi.schemas import prepared
from api.web.accept import BYTES, JSON
from api.web.problem import MEDIA_TYPE, ProblemDetails

REF = "#/components/schemas/{model}"
Schema = dict[str, Any]
Model = type[BaseModel]

PROBLEMS = {
    400: "The request cannot be read: JSON, parameters, headers or cursor",
    401: "An API key is missing or not valid",
    403: "The key may not do this",
    404: "This workspace has no such thing",
    406: "Nothing the client accepts can be answered",
    408: "The body was not sent in time",
    409: "It exists already, or its state does not allow this",
    412: "It has changed since it was read",
    413: "The body is too large",
    415: "The body does not say it is JSON",
    422: "The body is read, but not acceptable; `errors` names the fields",
    428: "If-Match is missing",
    500: "The service failed",
    503: "The service is busy, or the store does not answer; try again after Retry-After",
}
FREE_OBJECT: Schema = {"type": "object", "additionalProperties": True}
"""Any object; generators of clients take one without `additionalProperties` for an empty one."""
TAG_HEADER = {"description": "revision, in quotes", "schema": {"type": "string"}}
BINARY = {"type": "string", "format": "binary"}
PLACE_HEADER = {"description": "path of what was made", "schema": {"type": "string"}}


_DOCUMENTS: dict[tuple[bool, frozenset[str]], Schema] = {}
"""Completed documents by whether keys are required and by their operations: making one is most of
the time an application takes to be made."""


def document_of(app: Litestar, keys_required: bool) -> Schema:
    """Return the completed document of an application, which serves it from now on."""
    plugin = app.plugins.get(OpenAPIPlugin)
    handlers = {str(handler.operation_id): handler for handler in _handlers(app)}
    key = keys_required, frozenset(handlers)
    if key not in _DOCUMENTS:
        _DOCUMENTS[key] = plugin.provide_openapi_schema()
        _complete_document(_DOCUMENTS[key], handlers)
    plugin._openapi_schema = _DOCUMENTS[key]
    return _DOCUMENTS[key]


def _complete_document(document: Schema, handlers: dict[str, HTTPRouteHandler]) -> None:
    wanted: list[tuple[Model, JsonSchemaMode]] = [(ProblemDetails, "serialization")]
    for handler in handlers.values():
        wanted += [(model, "validation") for model in [_body(handler)] if model]
        wanted += [(model, "serialization") for model in [_answer(handler)] if model]
    references, definitions = models_json_schema(
        list(dict.fromkeys(wanted)), ref_template=REF, by_alias=True
    )
    document["components"]["schemas"] = prepared(definitions["$defs"])
    document["components"]["responses"] = {
        f"Problem{status}": _problem(text, references[ProblemDetails, "serialization"])
        for status, text in PROBLEMS.items()
    }
    for path, item in document["paths"].items():
        for operation in item.values():
            handler = handlers[operation["operationId"]]
            _complete(path, operation, handler, references)


def _handlers(app: Litestar) -> Iterator[HTTPRouteHandler]:
    for route in app.routes:
        if isinstance(route, HTTPRoute):
            for handler in route.route_handlers:
                if isinstance(handler.operation_id, str) and handler.resolve_include_in_schema():
                    yield handler


def _body(handler: HTTPRouteHandler) -> Model | None:
    field = handler.parsed_data_field
    return field.annotation if field and issubclass(field.annotation, BaseModel) else None


def _answer(handler: HTTPRouteHandler) -> Model | None:
    annotation = handler.parsed_fn_signature.return_type.annotation
    for kind in (annotation, *get_args(annotation)):
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return kind
    return None


def _problem(text: str, reference: Schema) -> Schema:
    return {"description": text, "content": {MEDIA_TYPE: {"schema": reference}}}


def _complete(path: str, operation: Schema, handler: HTTPRouteHandler, references: Any) -> None:
    body, answer, kinds = _body(handler), _answer(handler), handler.opt.get("consumes", ())
    operation["summary"] = operation["description"].split(";")[0].removesuffix(".")
    _describe_request(operation, handler, references)
    for parameter in operation.get("parameters", ()):
        parameter["schema"] = _without_null(parameter["schema"])
        if parameter["name"] == "If-Match":
            parameter["required"] = not handler.opt.get("may_make")
    success = {code: r for code, r in operation["responses"].items() if code.startswith("2")}
    for response in success.values():
        _describe_success(response, operation, handler, answer, references)
    names = {p["name"] for p in operation.get("parameters", ())}
    if "If-None-Match" in names:
        success["304"] = {"description": "Not changed", "headers": {"ETag": TAG_HEADER}}
    if operation["operationId"] == "createComparison":
        success["200"] = {**success["201"], "description": "Answered, not saved (save=false)"}
    if handler.opt.get("may_make"):
        success["201"] = {**success["200"], "description": "Made"}
    problems = _statuses(path, operation, handler, names, body is not None or kinds)
    references_to = {
        str(s): {"$ref": f"#/components/responses/Problem{s}"} for s in sorted(problems)
    }
    operation["responses"] = {**success, **references_to}
    if handler.opt.get("public"):
        operation["security"] = []


def _describe_request(operation: Schema, handler: HTTPRouteHandler, references: Any) -> None:
    body, kinds = _body(handler), handler.opt.get("consumes", ())
    if body:
        content = operation["requestBody"]["content"][JSON]
        content["schema"] = references[body, "validation"]
        content["example"] = EXAMPLES[operation["operationId"]]
    if handler.opt.get("reads_stream"):
        operation["requestBody"] = {
            "required": True,
            "content": {BYTES: {"schema": BINARY}},
            "description": f"Also accepted: {', '.join(kind for kind in kinds if kind != BYTES)}",
        }
    elif kinds:
        shown = EXAMPLES[operation["operationId"]]
        operation["requestBody"] = {
            "required": True,
            "content": {JSON: _free_body(shown, handler.opt.get("body"))},
            # Generators of clients know no other type, and would leave out the operation.
            "description": f"Also accepted: {', '.join(kind for kind in kinds if kind != JSON)}",
        }


def _free_body(example: Schema, schema: Schema | None) -> Schema:
    """Return what a body without a model may be; results of benchmarks are JSON of many shapes."""
    objects: Schema = {"type": "array", "items": FREE_OBJECT, "minItems": 1}
    return {"schema": schema or {"anyOf": [FREE_OBJECT, objects]}, "example": example}


def _describe_success(
    response: Schema,
    operation: Schema,
    handler: HTTPRouteHandler,
    answer: Model | None,
    references: Any,
) -> None:
    names = {p["name"] for p in operation.get("parameters", ())}
    if answer:
        response["content"] = {
            kind: {"schema": references[answer, "serialization"]}
            if kind == JSON
            else {"schema": {"type": "string"}}
            for kind in handler.opt.get("produces", (JSON,))
        }
        if operation["operationId"] in ANSWERS:
            response["content"][JSON]["example"] = ANSWERS[operation["operationId"]]
    elif streams := handler.opt.get("streams"):
        response["content"] = {key: {"schema": {} if key == JSON else BINARY} for key in streams}
    elif operation["operationId"] == "metrics":
        response["content"] = {"text/plain": {"schema": {"type": "string"}}}
    headers: Schema = {}
    if names & {"If-Match", "If-None-Match"} and answer:
        headers["ETag"] = TAG_HEADER
    one_made = handler.opt.get("made") or handler.opt.get("may_make")
    several = handler.opt.get("several") or operation["operationId"] == "importWorkspace"
    if one_made or ("Idempotency-Key" in names and not several):
        headers["Location"] = PLACE_HEADER
    if headers:
        response["headers"] = headers


def _statuses(
    path: str,
    operation: Schema,
    handler: HTTPRouteHandler,
    names: set[str],
    body: bool | tuple[str, ...],
) -> set[int]:
    statuses = {500, 503}
    if not handler.opt.get("any_media"):
        statuses |= {400, 406}
    if not handler.opt.get("public"):
        statuses |= {400, 401, 403}
    if "{" in path and not handler.opt.get("may_make"):
        statuses.add(404)
    if body:
        statuses |= {408, 413, 415, 422}
    if "If-Match" in names:
        statuses |= {409, 412} if handler.opt.get("may_make") else {409, 412, 428}
    if "Idempotency-Key" in names or operation["operationId"].startswith("delete"):
        statuses.add(409)
    if handler.opt.get("streams"):
        statuses |= {400, 409}
    if handler.opt.get("refuses"):
        statuses.add(422)
    return statuses


def _without_null(schema: Schema) -> Schema:
    """Return a parameter's schema without null: leaving it out is how it is not given."""
    for word in ("oneOf", "anyOf"):
        if word in schema:
            types = [item for item in schema[word] if item.get("type") != "null"]
            rest = {k: v for k, v in schema.items() if k != word}
            return {**rest, **types[0]} if len(types) == 1 else {**rest, "anyOf": types}
    return schema
