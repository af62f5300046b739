"""Wrap every request: request id, trace, metrics, log line and protective headers.

This is pure ASGI and stands around everything else, so that faults are observed too. A refusal that
the connection itself answers (http/deadlines.py) is observed by the same functions.
"""

from typing import Any

import structlog
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lpcfg.base.errors import LpcfgError
from lpcfg.serve.http.context import MEMBER, Context
from lpcfg.serve.http.problems import Refused, problem_of, response
from lpcfg.serve.http.requests import too_large
from lpcfg.serve.state import BATCHES, JOBS, Service

_log = structlog.get_logger("lpcfg.web")
_QUIET = frozenset({"/v2/health/live", "/v2/health/ready", "/metrics"})
_DIGITS = 18  # of a Content-Length: an exabyte
_CLOSE = {"connection": "close"}  # the rest of that body will not be read
PROTECTION = [
    (
        b"content-security-policy",
        b"default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
        b"object-src 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]


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
        context = scope.get(MEMBER) or self.service.context(scope)
        if self.service.traces is not None and scope["path"] not in _QUIET:
            self.service.traces.begin(context)
        bare = scope["method"] == "HEAD"
        asked = {**scope, MEMBER: context, "method": "GET" if bare else scope["method"]}
        status = 500

        async def observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = _with(message["headers"], context, self.service.draining)
            elif bare:
                message["body"] = b""
            await send(message)

        try:
            declared = Headers(scope=scope).get("content-length", "")
            refused = self._too_long(declared, scope["path"])
            if refused is not None:
                await response(problem_of(refused), _CLOSE)(asked, receive, observed)
            else:
                await self.app(asked, receive, observed)
        finally:
            context.endpoint = getattr(asked.get("route"), "path", "other")
            finish(self.service, context, status)

    def _too_long(self, declared: str, path: str) -> LpcfgError | None:
        """Look at a declared length before the body is read."""
        if len(declared) > _DIGITS:  # int() refuses 4,300 with an error
            expected = f"expected a Content-Length of at most {_DIGITS} digits"
            return Refused("http", f"{expected}, got {len(declared)}: send the body's length")
        settings = self.service.settings
        most = settings.job_bytes if path == JOBS else settings.max_body_bytes
        if declared.isdecimal() and int(declared) > most and path not in BATCHES:
            return too_large(int(declared), most)
        return None


def _with(headers: Any, context: Context, draining: bool) -> list[tuple[bytes, bytes]]:
    """Add what every answer's head says to the headers of one."""
    given = list(headers)
    names = {name.lower() for name, _ in given}
    given += [one for one in PROTECTION if one[0] not in names]
    given += context.headers()
    if draining:
        given = [one for one in given if one[0].lower() != b"connection"]
        given.append((b"connection", b"close"))
    return given


def finish(service: Service, context: Context, status: int) -> None:
    """Count an answered request and log it."""
    seconds = context.seconds()
    service.metrics.answered(context.endpoint, status, seconds)
    if context.endpoint in _QUIET:
        return
    service.answered += 1
    if service.traces is not None:
        service.traces.finish(context, status)
    done = {}
    if context.sentences:
        done = {
            "model": context.model,
            "sentences": context.sentences,
            "tokens": context.tokens,
            "queue_seconds": round(context.waited, 6),
            "compute_seconds": round(context.worked, 6),
        }
    _log.info(
        "request",
        method=context.method,
        endpoint=context.endpoint,
        status=status,
        seconds=round(seconds, 6),
        address=context.address,
        key=context.key,
        request_id=context.request_id,
        trace_id=context.trace_id,
        **done,
    )
