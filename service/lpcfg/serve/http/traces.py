"""Traces for OpenTelemetry: a span for each request or job, and one for each phase of its work.

The SDK and its exporter are the extra `lpcfg[otel]`. Their own variables, OTEL_*, say where traces
are sent, which of them, and under what name.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lpcfg.base.errors import SettingsError
from lpcfg.serve.http.context import Context

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

_FAULT = 500
_LAST = 3.0  # seconds for the spans that are left when the service ends


class Traces:
    """Makes the spans of requests and sends them, in the background."""

    def __init__(self, provider: "TracerProvider") -> None:
        from opentelemetry import trace

        self._provider = provider
        self._api = trace
        self._tracer = provider.get_tracer("lpcfg")

    @classmethod
    def otlp(cls) -> "Traces":
        """Send spans by OTLP, as the variables OTEL_* say. Raise without the extra."""
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import OTELResourceDetector, Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError as error:
            raise SettingsError(
                f"expected OpenTelemetry's SDK for LPCFG_TRACES=otlp, got `{error}`: "
                "pip install 'lpcfg[otel]', or unset it"
            ) from error
        named = Resource({"service.name": "lpcfg"}).merge(OTELResourceDetector().detect())
        provider = TracerProvider(resource=named, shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        return cls(provider)

    @contextmanager
    def job(self, context: Context) -> Iterator[None]:
        """Make the span of the work on a job, under that of the request that has left it."""
        self.begin(context)
        try:
            yield
        finally:
            self.finish(context, None)

    def begin(self, context: Context) -> None:
        """Begin the span of a request, under the one that its traceparent names."""
        api, above = self._api, None
        if context.parent:
            above = api.set_span_in_context(
                api.NonRecordingSpan(
                    api.SpanContext(
                        int(context.trace_id, 16),
                        int(context.parent, 16),
                        is_remote=True,
                        trace_flags=api.TraceFlags(int(context.flags, 16) & 1),
                    )
                )
            )
        span = self._tracer.start_span(context.method, above, api.SpanKind.SERVER)
        of = span.get_span_context()
        context.span, context.span_id = span, api.format_span_id(of.span_id)
        context.trace_id, context.flags = api.format_trace_id(of.trace_id), f"{of.trace_flags:02x}"
        if span.is_recording():
            context.phases = []

    def finish(self, context: Context, status: int | None) -> None:
        """End the span of a request, with one below it for each phase. A job has no status."""
        span = context.span
        if span is None:  # refused by the connection itself, which has taken no time
            self.begin(context)
            span = context.span
        span.update_name(f"{context.method} {context.endpoint}")
        span.set_attributes(_attributes(context, status))
        if status is not None and status >= _FAULT:
            span.set_status(self._api.StatusCode.ERROR)
        inside = self._api.set_span_in_context(span)
        for one in context.phases or ():
            self._tracer.start_span(one.name, inside, start_time=one.start).end(one.end)
        span.end(time.time_ns())

    def close(self) -> None:
        """Send what is left, as far as the collector takes it soon."""
        ending = threading.Thread(target=self._provider.shutdown, daemon=True)
        ending.start()
        ending.join(_LAST)


def _attributes(context: Context, status: int | None) -> dict[str, Any]:
    """Name what is known of a request as OpenTelemetry's conventions do, where they have a name."""
    known = {
        "http.request.method": None if status is None else context.method,
        "http.route": context.endpoint,
        "http.response.status_code": status,
        "client.address": context.address,
        "lpcfg.request_id": context.request_id,
        "lpcfg.key": context.key,
        "lpcfg.model": context.model,
        "lpcfg.sentences": context.sentences,
        "lpcfg.tokens": context.tokens,
    }
    return {name: value for name, value in known.items() if value is not None}
