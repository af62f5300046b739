"""Batches: JSON lines in, JSON lines out, in order and in bounded memory.

A batch ends early, with a problem in its last line, if its client sends nothing for too long, and
if the service ends: then every line that still comes has a problem for its answer.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError, create_model
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from lpcfg.base.errors import InputError, LpcfgError
from lpcfg.kinds.registry import AnyKind, all_kinds, kind_named
from lpcfg.protocol.options import members_of
from lpcfg.protocol.schemas import BatchLine, BatchParameters, DependencyBatchLine
from lpcfg.serve.http.context import connection_of, context_of
from lpcfg.serve.http.keys import BEARER
from lpcfg.serve.http.problems import Refused, documented, problem_of
from lpcfg.serve.http.requests import GuardedRoute, pieces
from lpcfg.serve.routes.lines import AHEAD, Lines, checked
from lpcfg.serve.routes.tasks import Asked, check_bounds, located
from lpcfg.serve.state import Service, TheService, until_disconnect
from lpcfg.settings import Settings

router = APIRouter(route_class=GuardedRoute, dependencies=[Depends(BEARER)])

_LOOK = 0.05
"""Seconds between looks at a connection: while its client is not read from, nothing else tells
that it is gone."""
_BYTES_PER_SECOND = 1024
_ENDING = Refused(
    "ending", "expected a line before the service was told to end, got one after: send it again"
)

LINES = {
    "requestBody": {
        "description": "A sentence a line, as JSON: a string, or an object with tokens as in the "
        "`sentences` of /v1/parse. Each line is one sentence, so `text`, which may have several, "
        "is none. A line that is blank has a problem for its answer; a line break at the very end "
        "begins no other line. With `Content-Encoding: gzip`, the body is expanded.",
        "required": True,
        "content": {
            "application/x-ndjson": {
                "schema": {"type": "string"},
                "example": '"The cat sat."\n{"id": 2, "tokens": ["Cats", "sleep", "."]}\n',
            }
        },
    }
}
"""How the description of the service tells what the body of a batch is."""
ANSWERED = (
    "A line for each line, in order: what is wrong with one is its answer. The schema is that of a "
    "line."
)
_ONLY = {"/v1/dependencies/batch": "dependencies"}
"""The paths that answer by models of one kind."""
Answering = asyncio.Task[bytes]


def kinds_of(path: str) -> list[AnyKind]:
    """Return the kinds of models that answer the lines sent to a path."""
    return [kind_named(_ONLY[path])] if path in _ONLY else all_kinds()


@cache
def parameters_of(kind: AnyKind, settings: Settings) -> Any:
    """Return the parameters of a batch for models of a kind: the model and the kind's options."""
    members = members_of(kind.options, lambda setting: getattr(settings, setting))
    return create_model("Parameters", __base__=BatchParameters, **members)


async def read_query(request: Request, service: TheService) -> Asked:
    """Read from the query which model is to answer lines, and under which options."""
    given, only = dict(request.query_params), _ONLY.get(request.url.path)
    with located("#query"):
        kind = None if only is None else kind_named(only)
        model = service.models.named(given.get("model") or None, kind)
        try:
            read = parameters_of(model.kind, service.settings).model_validate(given)
        except ValidationError as error:
            faults = [{**one, "loc": ("query", *one["loc"])} for one in error.errors()]
            raise RequestValidationError(faults) from None
        options = model.kind.options.of(read.model_dump(exclude={"model"}))
        check_bounds(options, service.settings)
    return Asked(model, options)


InQuery = Annotated[Asked, Depends(read_query)]
"""What the query of a batch or a job asks for."""


@dataclass(frozen=True)
class _Late:
    """Lines that came too late to be begun before the service ends."""

    lines: int


class LinesResponse(StreamingResponse):
    """A streamed answer to a streamed body. It does not read the body itself; its content does."""

    media_type = "application/x-ndjson"

    def __init__(self, batch: "Batch", status_code: int = 200) -> None:
        super().__init__(batch.answers(), status_code)
        self._batch = batch

    async def __call__(self, _: Scope, __: Receive, send: Send) -> None:
        try:
            await self.stream_response(send)
        finally:
            self._batch.leave()


@dataclass(frozen=True, eq=False)
class Batch:
    """One batch in progress."""

    service: Service
    request: Request
    body: AsyncIterator[bytes]
    lines: Lines
    under_way: set[Answering] = field(default_factory=set)

    def __post_init__(self) -> None:
        client = context_of(self.request.scope).client
        self.service.admission.check_batch(client)
        self.service.admission.enter_batch(client)

    def leave(self) -> None:
        """Count this batch as ended."""
        self.service.admission.leave_batch(context_of(self.request.scope).client)

    async def answers(self) -> AsyncIterator[bytes]:
        """Yield one answer for each line of the request's body, in order, as soon as it is done."""
        ahead = asyncio.Queue[Answering | bytes | None](AHEAD * self.service.settings.threads)
        reading = asyncio.create_task(self._read(ahead))
        watching = asyncio.create_task(self._watch(reading))
        try:
            while (answering := await ahead.get()) is not None:
                if isinstance(answering, bytes):
                    yield answering
                    continue
                await asyncio.wait([answering])
                if answering.cancelled():
                    return
                yield answering.result()
        finally:
            others = (reading, watching, *self.under_way)
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

    async def _watch(self, reading: "asyncio.Task[None]") -> None:
        """Cancel everything once the client is gone, whether or not it is being read from."""
        connection = connection_of(self.request.scope)
        while connection is not None:
            await asyncio.sleep(_LOOK)
            if connection.is_gone():
                reading.cancel()
                self._cancel()
                return

    def _cancel(self) -> None:
        for task in self.under_way:
            task.cancel()

    async def _read(self, ahead: "asyncio.Queue[Answering | bytes | None]") -> None:
        """Start each line as it arrives. Cancel all of them if the client disconnects."""
        with suppress(ClientDisconnect):
            async for number, line in _lines(self.body, self.request, self.service):
                if isinstance(line, _Late):
                    await ahead.put(self._too_late(number, line.lines))
                    continue
                answering = asyncio.create_task(self.lines.answer(number, line))
                self.under_way.add(answering)
                answering.add_done_callback(self.under_way.discard)
                await ahead.put(answering)
            await ahead.put(None)
            await until_disconnect(self.request)
        self._cancel()
        with suppress(asyncio.QueueFull):
            ahead.put_nowait(None)

    def _too_late(self, number: int, lines: int) -> bytes:
        """Write the problem that lines from this one on are not begun any more."""
        return self.lines.refused(range(number, number + lines), problem_of(_ENDING))


async def _lines(
    body: AsyncIterator[bytes], request: Request, service: Service
) -> AsyncIterator[tuple[int, bytes | LpcfgError | _Late]]:
    """Yield the numbered lines of a body. A line that cannot be answered is an error in its place.

    The last one is an error, too, if the client stops sending, or the service must end.
    """
    longest = service.settings.max_body_bytes
    number, kept, length = 1, bytearray(), 0
    chunks = _chunks(body, request, service)
    async for chunk in chunks:
        if isinstance(chunk, LpcfgError):
            yield number, chunk
            return
        *ended, rest = chunk.split(b"\n")
        for at, piece in enumerate(ended):
            if _is_late(service):
                late = len(ended) - at
                yield number, _Late(late)
                number, length = number + late, 0
                kept.clear()
                break
            length += len(piece)
            yield number, checked(bytes(kept) + piece, length, longest)
            number, length = number + 1, 0
            kept.clear()
        length += len(rest)
        if length <= longest:
            kept += rest
    if length:
        yield number, checked(bytes(kept), length, longest)


async def _chunks(
    body: AsyncIterator[bytes], request: Request, service: Service
) -> AsyncIterator[bytes | LpcfgError]:
    """Yield the pieces of a body, or an error if no line ends for too long while it is waited for,
    or if the rest cannot be read.

    A line in pieces has a second more for each 1024 bytes of it.
    """
    connection = connection_of(request.scope)
    left = seconds = service.settings.body_seconds
    while True:
        started = time.monotonic()
        try:
            async with asyncio.timeout(max(min(left, service.remaining()), 0.0)):
                chunk = await anext(body, None)
            if service.remaining() <= 0:  # however much there is
                raise TimeoutError
        except (TimeoutError, InputError) as error:
            if connection is not None:
                connection.close_after_answer()  # the rest of the body is not read
            if isinstance(error, InputError):
                yield error
            else:
                yield _ENDING if service.remaining() <= 0 else _slow(seconds)
            return
        if chunk is None:
            return
        if b"\n" in chunk:
            left = seconds
        else:
            left += len(chunk) / _BYTES_PER_SECOND - (time.monotonic() - started)
        yield chunk


def _slow(seconds: float) -> Refused:
    return Refused(
        "slow",
        f"expected a line within {seconds:g} seconds, got none: send faster, or end the batch",
    )


def _is_late(service: Service) -> bool:
    """Return True if a line comes so late after the order to end that it is not begun any more."""
    return service.remaining() < service.settings.timeout_seconds / 2


# Endpoints ----------------------------------------------------------------------------------------


async def batch(request: Request, service: TheService, asked: InQuery) -> Response:
    """Answer each line of the body with a sentence or a problem, in order, as soon as it is done.

    Any model that is served may answer; options are those of its kind. Memory stays bounded for a
    batch of any length: the service reads on only as fast as its answers are read.
    """
    lines = Lines(service, asked, context_of(request.scope), request.url.path)
    return LinesResponse(Batch(service, request, pieces(request), lines))


for _path, _line in {"/v1/batch": BatchLine, "/v1/dependencies/batch": DependencyBatchLine}.items():
    router.post(
        _path,
        response_class=LinesResponse,
        responses={
            200: {"description": ANSWERED, "model": _line},
            **documented(
                *("content", "limit", "media-type", "key", "overload", "starting", "not-found")
            ),
        },
        openapi_extra=LINES,
        summary="Answer line by line",
    )(batch)
