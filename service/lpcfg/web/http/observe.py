"""Wraps every request: request id, trace, metrics, log line and protective headers.

This is pure ASGI, so that request bodies pass through without a copy.
"""

import re
import secrets
import time
from typing import Any

import structlog
from asgi_correlation_id import correlation_id
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lpcfg.errors import LpcfgError
from lpcfg.web.http.bodies import too_large
from lpcfg.web.http.problems import Refused, problem_of, response
from lpcfg.web.state import Service

_log = structlog.get_logger("lpcfg.web")
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-(..)")
_REQUEST_ID = re.compile(r"[!-~]{1,128}")
_QUIET = frozenset({"/v2/health/live", "/v2/health/ready", "/metrics"})
_UNBOUNDED = frozenset({"/v1/batch"})
_DIGITS = 18  # of a Content-Length: an exabyte
_CLOSE = {"connection": "close"}  # the rest of that body will not be read
_PROTECTION = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'; object-src 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}


def is_request_id(given: str) -> bool:
    """Return True if a client's X-Request-ID may be used: it must be short and printable."""
    return _REQUEST_ID.fullmatch(given) is not None


class Observed:
    """Observes the requests that go through to an application.

    A path that answers GET answers HEAD as well: the same, without the body.
    """

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app = app
        self.service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        bare = scope["method"] == "HEAD"
        asked = {**scope, "method": "GET"} if bare else scope
        headers = Headers(scope=scope)
        trace, flags = _trace(headers.get("traceparent", ""))
        told = {"traceparent": f"00-{trace}-{secrets.token_hex(8)}-{flags}", **_PROTECTION}
        status = 500

        async def observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                outgoing = MutableHeaders(scope=message)
                for name, value in told.items():
                    outgoing.setdefault(name, value)
                if self.service.draining:
                    outgoing["connection"] = "close"
            elif bare:
                message["body"] = b""
            await send(message)

        try:
            refused = self._too_long(headers.get("content-length", ""), scope["path"])
            if refused is not None:
                await response(problem_of(refused), _CLOSE)(asked, receive, observed)
            else:
                await self.app(asked, receive, observed)
        finally:
            route = asked.get("route")
            self._record(scope["method"], route, status, time.perf_counter() - started, trace)

    def _too_long(self, declared: str, path: str) -> LpcfgError | None:
        """Look at a declared length before the body is read."""
        if len(declared) > _DIGITS:  # int() refuses 4,300 with an error
            expected = f"expected a Content-Length of at most {_DIGITS} digits"
            return Refused("http", f"{expected}, got {len(declared)}: send the body's length")
        most = self.service.settings.max_body_bytes
        if declared.isdecimal() and int(declared) > most and path not in _UNBOUNDED:
            return too_large(int(declared), most)
        return None

    def _record(self, method: str, route: Any, status: int, seconds: float, trace: str) -> None:
        endpoint = getattr(route, "path", "other")
        self.service.metrics.requests.labels(endpoint, str(status)).inc()
        self.service.metrics.latency.labels(endpoint).observe(seconds)
        if endpoint not in _QUIET:
            _log.info(
                "request",
                method=method,
                endpoint=endpoint,
                status=status,
                seconds=round(seconds, 6),
                request_id=correlation_id.get(),
                trace_id=trace,
            )


def _trace(traceparent: str) -> tuple[str, str]:
    """Return the trace a request belongs to, or a new one, and its flags (W3C trace context)."""
    match = _TRACEPARENT.match(traceparent)
    return (match[1], match[2]) if match else (secrets.token_hex(16), "00")
