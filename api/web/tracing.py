"""Traces by OpenTelemetry, where PLANNER_OTLP_ENDPOINT says where to; without it they cost nothing.

A request is a span; below it the plan and every statement of the store. Attributes hold route
templates, catalogue ids and table operations, never what a user wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from sqlalchemy import Engine, event

_NONE: AbstractContextManager[Any] = nullcontext()


class Tracing:
    """The tracer of this process, if there is one."""

    def __init__(self) -> None:
        self.tracer: Any = None
        self._provider: Any = None

    def start(self, endpoint: str) -> None:
        """Send spans to an OTLP endpoint over HTTP; raises ValueError without the extra `otel`."""
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError:
            raise ValueError(
                "PLANNER_OTLP_ENDPOINT: needs the extra `otel`: pip install decode-planner[otel]"
            ) from None
        resource = Resource.create({"service.name": "decode-planner"})
        self._provider = TracerProvider(resource=resource)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
        self.tracer = self._provider.get_tracer("decode-planner")

    def stop(self) -> None:
        """Send what waits, and end."""
        if self._provider is not None:
            self._provider.shutdown()
        self.tracer = self._provider = None

    def span(self, name: str, **attributes: Any) -> AbstractContextManager[Any]:
        """Open a span below the current one; its value is None where nothing is traced."""
        if self.tracer is None:
            return _NONE
        context: AbstractContextManager[Any] = self.tracer.start_as_current_span(
            name, attributes=attributes
        )
        return context

    @contextmanager
    def request(self, method: str, headers: Mapping[bytes, bytes]) -> Iterator[Any]:
        """Open the span of a request, below that of its sender where `traceparent` names one."""
        if self.tracer is None:
            yield None
            return
        from opentelemetry.propagate import extract
        from opentelemetry.trace import SpanKind

        carrier = {name.decode("latin-1"): text.decode("latin-1") for name, text in headers.items()}
        with self.tracer.start_as_current_span(
            method, context=extract(carrier), kind=SpanKind.SERVER
        ) as span:
            yield span

    def watch(self, engine: Engine) -> None:
        """Make every statement of an engine a span."""

        @event.listens_for(engine, "before_cursor_execute")
        def _begin(
            connection: Any, _cursor: Any, statement: str, _p: Any, _context: Any, _many: bool
        ) -> None:
            if self.tracer is None:
                return
            operation = statement.lstrip().split(None, 1)[0].upper()
            span = self.tracer.start_span(
                f"store {operation}", attributes={"db.system": engine.dialect.name}
            )
            connection.info.setdefault("planner_spans", []).append(span)

        @event.listens_for(engine, "after_cursor_execute")
        def _end(
            connection: Any, _cursor: Any, _statement: str, _p: Any, _context: Any, _many: bool
        ) -> None:
            for span in connection.info.pop("planner_spans", ()):
                span.end()

        @event.listens_for(engine, "handle_error")
        def _failed(context: Any) -> None:
            if context.connection is not None:
                for span in context.connection.info.pop("planner_spans", ()):
                    span.record_exception(context.original_exception)
                    span.end()


TRACING = Tracing()
