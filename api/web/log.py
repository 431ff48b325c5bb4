"""Structured logs: one JSON object a line on standard error."""

from __future__ import annotations

import logging
import sys
from typing import Any

import structlog

PROCESSORS: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,
]


def configure(level: str) -> None:
    """Set up structlog for the process."""
    structlog.configure(
        processors=[*PROCESSORS, structlog.processors.JSONRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[level.upper()]
        ),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=False,
    )


class JsonFormatter(logging.Formatter):
    """Writes what libraries log in the same shape."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as a line."""
        fields: dict[str, Any] = {"event": record.getMessage(), "logger": record.name}
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        stamped = structlog.processors.TimeStamper(fmt="iso", utc=True)(None, "", fields)
        fields = {**stamped, "level": record.levelname.lower()}
        return str(structlog.processors.JSONRenderer()(None, "", fields))


def of_libraries(level: str) -> dict[str, Any]:
    """Return the configuration of Python's own logging: of the server, in the same shape."""
    handler = {"class": "logging.StreamHandler", "formatter": "json", "stream": "ext://sys.stderr"}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": "api.web.log.JsonFormatter"}},
        "handlers": {"lines": handler},
        "root": {"handlers": ["lines"], "level": level.upper()},
        "loggers": {
            name: {"handlers": ["lines"], "level": level.upper(), "propagate": False}
            for name in ("_granian", "granian.access")
        },
    }
