"""The one shape of an error: RFC 9457 problem details."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus

from pydantic import BaseModel, ConfigDict, Field

from planner.errors import named

MEDIA_TYPE = "application/problem+json"
TYPE = "urn:decode-planner:problem:"


class FieldError(BaseModel):
    """One field that is not acceptable."""

    model_config = ConfigDict(extra="forbid")

    field: str = Field(description="dotted path of the field, empty for the body as a whole")
    message: str


class ProblemDetails(BaseModel):
    """An error, as every route answers it."""

    model_config = ConfigDict(extra="forbid")

    type: str = Field(description="names the kind of problem", examples=[f"{TYPE}not-found"])
    title: str = Field(description="the status in words")
    status: int = Field(ge=400, le=599)
    detail: str = Field(description="what is wrong with this request")
    instance: str = Field(description="path of the request")
    request_id: str = Field(description="id of the request in the log")
    errors: list[FieldError] = Field(default_factory=list)


class Problem(Exception):
    """An error to answer with; services raise it."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        kind: str | None = None,
        errors: list[FieldError] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.title = title(status)
        self.kind = kind or self.title.lower().replace(" ", "-")
        self.errors = errors or []
        self.headers = dict(headers or {})

    def __reduce__(self) -> tuple[Callable[..., Problem], tuple[object, ...]]:
        """Pickle it: worker processes raise problems too."""
        fields = (self.status, self.detail, self.kind, self.errors, self.headers)
        return _problem, fields

    def details(self, instance: str, request_id: str) -> ProblemDetails:
        """Return the document that describes this problem."""
        return ProblemDetails(
            type=TYPE + self.kind,
            title=self.title,
            status=self.status,
            detail=self.detail,
            instance=instance,
            request_id=request_id,
            errors=self.errors,
        )


def _problem(
    status: int, detail: str, kind: str, errors: list[FieldError], headers: Mapping[str, str]
) -> Problem:
    return Problem(status, detail, kind=kind, errors=errors, headers=headers)


def title(status: int) -> str:
    """Return the phrase of a status."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"


def not_found(what: str) -> Problem:
    """Return the problem of something this workspace does not have."""
    return Problem(404, f"no such {what} in this workspace")


def rejected(message: str) -> Problem:
    """Return the problem of a field the planner does not accept: `field: what; accepted: …`.

    Of a field with several names it is the first.
    """
    errors = [FieldError(field=named(message), message=message)]
    return Problem(422, message, kind="not-acceptable-input", errors=errors)


def over_limit(field: str, count: int, limit: int, setting: str) -> Problem:
    """Return the problem of a request beyond a limit, which it names."""
    message = f"{field}: {count} asked; accepted: {limit} at most (setting {setting})"
    return Problem(
        422, message, kind="over-limit", errors=[FieldError(field=field, message=message)]
    )
