"""Read requests: find the endpoint, check the key and the room, and read JSON within the limits."""

import asyncio
import gzip
import inspect
import re
import zlib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
import pydantic_core
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from lpcfg.base.collector import collector_paused
from lpcfg.base.errors import InputError, LimitError, LpcfgError, Stopped
from lpcfg.serve.http import problems
from lpcfg.serve.http.context import context_of
from lpcfg.serve.http.problems import BodyLimitError, Refused
from lpcfg.serve.state import Service, service_of
from lpcfg.settings import Settings

# This expression never backtracks, so it takes linear time.
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_NO_MARKS = bytes(set(range(256)) - set(b'[]{}"'))
_NEVER = re.compile(r"q=0(?:\.0*)?", re.IGNORECASE)
_JSON_TYPE = re.compile(r"application/(?:[\w.-]+\+)?json\s*(?:;.*)?", re.IGNORECASE)

_LARGE = 1 << 14  # bytes of a body that is read off the event loop: others wait a millisecond
_WORTH = 1024  # bytes of an answer that is compressed
_GZIP = 31  # what zlib calls gzip, with any window
_PIECE = 1 << 16  # bytes that are expanded at once, as many as come at once uncompressed
MOST_CONSTRAINTS = 10_000
"""The most constraints of all sentences of a request together."""

R = TypeVar("R")


async def value_of(request: Request) -> Any:
    """Read a body as strict JSON, within the limits. Errors have messages for the client."""
    if not _JSON_TYPE.fullmatch(request.headers.get("content-type", "")):
        raise Refused(
            "media-type",
            "expected the header content-type: application/json, got "
            f"{request.headers.get('content-type')!r}: send JSON and say so",
        )
    return await decoded(await body_of(request), _read, service_of(request))


async def body_of(request: Request) -> bytes:
    """Read a body, up to the limit.

    Starlette's middleware is not used: it answers in plain text and would limit batches as well.
    """
    body = bytearray()
    try:
        async for piece in pieces(request, service_of(request).settings.max_body_bytes):
            body += piece
    except ClientDisconnect:
        raise Stopped("expected the rest of the body, got a closed connection") from None
    return bytes(body)


def _read(body: bytes, settings: Settings) -> Any:
    value = read_json(body, settings)
    check_size(value, settings)
    return value


async def decoded(data: bytes, read: Callable[[bytes, Settings], R], service: Service) -> R:
    """Read these bytes, off the event loop if they are many."""
    if len(data) < _LARGE:
        return read(data, service.settings)
    reading = service.reader.submit(_read_many, data, read, service.settings)
    return await asyncio.wrap_future(reading)


def _read_many(data: bytes, read: Callable[[bytes, Settings], R], settings: Settings) -> R:
    """Read these bytes without the garbage collector: a megabyte of lists takes an eighth of the
    time, in which no other thread runs.
    """
    with collector_paused():
        return read(data, settings)


Handler = Callable[[Request], Coroutine[Any, Any, Response]]
_TAKES = ["body", "request", "service"]
"""The parameters of an endpoint with a JSON body."""


class GuardedRoute(APIRoute):
    """A route for computing. It checks the key and the room for work before it reads the body."""

    guarded: Handler
    """Answers a request, without the layers that FastAPI puts around it."""

    def get_route_handler(self) -> Handler:
        handle = super().get_route_handler() if self.body_field is None else self._plain_handler()

        async def guarded(request: Request) -> Response:
            context = context_of(request.scope)
            if not context.has_entered:
                service_of(request).enter(request.scope, context)
            return await _compressed(await handle(request), request)

        self.guarded = guarded
        return guarded

    def _plain_handler(self) -> Handler:
        """Call an endpoint with its body and the service.

        FastAPI looks anew in each request for what an endpoint depends on: a tenth of a
        millisecond, and it would answer a body that is no JSON with 400 without a reason.
        """
        endpoint, field = self.endpoint, self.body_field
        if field is None or list(inspect.signature(endpoint).parameters) != _TAKES:
            raise TypeError(f"expected an endpoint that takes {', '.join(_TAKES)}, got {endpoint}")

        async def handle(request: Request) -> Response:
            value = await value_of(request)
            body, faults = field.validate(value, loc=("body",))
            if faults:
                raise RequestValidationError(faults, body=value)
            answer: Response = await endpoint(body, request, service_of(request))
            return answer

        return handle


class Direct:
    """Takes requests that compute to their endpoint at once, and hands everything else on.

    FastAPI's router tries one route after the other and wraps each request in several layers. All
    that they do for fixed paths with a JSON body is to find the endpoint and to answer errors.
    """

    def __init__(self, app: ASGIApp, routes: Iterable[GuardedRoute]) -> None:
        self.app = app
        self._routes = {route.path: route for route in routes if route.body_field is not None}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = None
        if scope["type"] == "http" and scope["method"] == "POST" and not scope.get("root_path"):
            route = self._routes.get(scope["path"])
        if route is None:
            await self.app(scope, receive, send)
            return
        scope["route"] = route
        request = Request(scope, receive)
        try:
            answer = await route.guarded(request)
        except (LpcfgError, RequestValidationError) as error:
            answer = problems.answer(request, error)
        await answer(scope, receive, send)


# Bodies -------------------------------------------------------------------------------------------


def pieces(request: Request, most: int | None = None) -> AsyncIterator[bytes]:
    """Return the pieces of a body as they come, expanded if it is compressed.

    Raise Refused for a compression that is not known here. The pieces raise LimitError for a body
    of more bytes than this, compressed or expanded, and InputError for one that is no gzip.
    """
    encoding = request.headers.get("content-encoding", "identity").lower()
    if encoding not in ("identity", "gzip"):
        raise Refused(
            "media-type",
            f"expected the content-encoding gzip or none, got {encoding!r}: send one of them",
        )
    stream = _limited(request.stream(), most)
    return stream if encoding == "identity" else _limited(_expanded(stream), most)


async def _limited(stream: AsyncIterator[bytes], most: int | None) -> AsyncIterator[bytes]:
    size = 0
    async for chunk in stream:
        size += len(chunk)
        if most is not None and size > most:
            raise too_large(size, most)
        yield chunk


async def _expanded(stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Expand gzip, one member or several, no further than it is read."""
    member, whole = zlib.decompressobj(_GZIP), False
    try:
        async for chunk in stream:
            left, piece = chunk, b""
            while left or (len(piece) == _PIECE and not member.eof):
                if member.eof:
                    member = zlib.decompressobj(_GZIP)
                piece = member.decompress(left, _PIECE)
                left, whole = member.unconsumed_tail or member.unused_data, member.eof
                if piece:
                    yield piece
                    await asyncio.sleep(0)  # a small chunk may expand to a thousand times its size
    except zlib.error as error:
        raise InputError(f"expected a body in gzip, got something else ({error})") from None
    if not whole:
        raise InputError("expected a whole body in gzip, got the beginning of one: send all of it")


def _accepts_gzip(request: Request) -> bool:
    """Return True if the client names gzip, and with a weight (`q`) above 0 or none."""
    for one in request.headers.get("accept-encoding", "").split(","):
        coding, _, weight = one.partition(";")
        if coding.strip().lower() == "gzip":
            return _NEVER.fullmatch(weight.strip()) is None
    return False


async def _compressed(answer: Response, request: Request) -> Response:
    """Compress an answer that is worth it, off the event loop, for a client that can read it."""
    body = getattr(answer, "body", b"")
    if len(body) >= _WORTH and _accepts_gzip(request):
        answer.body = await asyncio.to_thread(gzip.compress, body, 1)
        answer.headers["content-encoding"] = "gzip"
        answer.headers["content-length"] = str(len(answer.body))
        answer.headers["vary"] = "Accept-Encoding"
    return answer


def too_large(size: int, most: int) -> LimitError:
    """Create the error for a body beyond the limit."""
    return BodyLimitError(
        f"expected a body of at most {most} bytes, got {size} or more: send less at once, or use "
        "/v1/batch",
        limit=most,
        value=size,
    )


def read_json(body: bytes, settings: Settings) -> Any:
    """Read a JSON value as RFC 8259 defines it: no NaN, no lone surrogates, not too deep."""
    most_depth = settings.max_json_depth
    opened = body.count(b"[") + body.count(b"{")  # few of them are not deep, however they nest
    if opened > most_depth and (depth := json_depth(body)) > most_depth:
        raise LimitError(
            f"expected JSON at most {most_depth} levels deep, got {depth}: nest less",
            limit=most_depth,
            value=depth,
        )
    try:
        return pydantic_core.from_json(body, allow_inf_nan=False, cache_strings="keys")
    except ValueError as error:
        got = f"something else ({error})" if body.strip() else "nothing"
        raise InputError(f"expected JSON in UTF-8, got {got}: send JSON") from None


def json_depth(body: bytes) -> int:
    """Compute the deepest nesting of brackets outside strings, in linear time."""
    if b"\\" not in body:  # all quotes delimit strings: brackets and quotes tell the same
        body = body.translate(None, _NO_MARKS).replace(b'""', b"")
    marks = np.frombuffer(_STRING.sub(b"", body), np.uint8)
    opened = (marks == ord("[")) | (marks == ord("{"))
    closed = (marks == ord("]")) | (marks == ord("}"))
    steps = opened.astype(np.int32) - closed.astype(np.int32)
    return int(steps.cumsum().max(initial=0))


# Limits, checked before anything looks at elements one by one -------------------------------------


def check_count(what: str, given: int, most: int, pointer: str) -> None:
    """Raise LimitError if a request has more of these than it may."""
    if given > most:
        raise LimitError(
            f"expected at most {most} {what} in one request, got {given}: send them in several, "
            "or line by line to /v1/batch",
            limit=most,
            value=given,
            pointer=pointer,
        )


def check_length(tokens: int, settings: Settings, pointer: str, which: str = "") -> None:
    """Raise LimitError for a sentence of more tokens than it may have."""
    if tokens > settings.max_tokens:
        raise LimitError(
            f"expected at most {settings.max_tokens} tokens in a sentence, got {tokens} in the "
            f"one{which or ' sent'}: split it",
            limit=settings.max_tokens,
            value=tokens,
            pointer=pointer,
        )


def check_size(value: Any, settings: Settings) -> None:
    """Raise LimitError for a body with longer lists than a request may have.

    A megabyte holds 349,000 elements: to look at each took 5 seconds and 885 MB.
    """
    for name in ("sentences", "trees", "pairs"):
        check_count(name, len(_list(value, name)), settings.max_sentences, f"/{name}")
    constraints = 0
    for number, one in enumerate(_list(value, "sentences")):
        pointer = f"/sentences/{number}"
        if found := check_sentence(one, settings, pointer):
            constraints += found
            check_count("constraints", constraints, MOST_CONSTRAINTS, f"{pointer}/constraints")


def check_sentence(value: Any, settings: Settings, pointer: str) -> int:
    """Raise LimitError for a sentence of too many tokens; return how many constraints it has."""
    check_length(len(_list(value, "tokens")), settings, f"{pointer}/tokens")
    return len(_list(value, "constraints"))


def _list(value: Any, name: str) -> Sequence[Any]:
    """Return a member if it is a list; what else it may be is told when it is validated."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, list) else ()
