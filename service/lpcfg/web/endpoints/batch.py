"""Batches: JSON lines in, JSON lines out, in order and in bounded memory."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from lpcfg.errors import InputError, LimitError, LpcfgError
from lpcfg.parsing.results import Options
from lpcfg.protocol.schemas import SentenceInput
from lpcfg.web.endpoints import inputs
from lpcfg.web.endpoints.tasks import Answer, encoded, parse_task
from lpcfg.web.http.bodies import read_json
from lpcfg.web.http.keys import Key
from lpcfg.web.http.limits import check_sentence
from lpcfg.web.http.problems import problem_of, problem_of_validation
from lpcfg.web.scheduling.work import Task
from lpcfg.web.served import Served
from lpcfg.web.state import Service, until_disconnect

_INPUT: TypeAdapter[inputs.AnyInput] = TypeAdapter(SentenceInput)
_AHEAD = 4
"""Lines in progress per thread: enough that no thread waits for the network."""

Answering = asyncio.Task[bytes]


class LinesResponse(StreamingResponse):
    """A streamed answer to a streamed body. It does not read the body itself; its content does."""

    media_type = "application/x-ndjson"

    async def __call__(self, _: Scope, __: Receive, send: Send) -> None:
        await self.stream_response(send)


@dataclass(frozen=True, eq=False)
class Batch:
    """One batch in progress, answered by one version of one model."""

    service: Service
    served: Served
    options: Options
    key: Key | None

    async def answers(self, request: Request) -> AsyncIterator[bytes]:
        """Yield one answer for each line of the request's body, in order, as soon as it is done."""
        ahead = asyncio.Queue[Answering | None](_AHEAD * self.service.settings.threads)
        under_way: set[Answering] = set()
        reading = asyncio.create_task(self._read(request, ahead, under_way))
        try:
            while (answering := await ahead.get()) is not None:
                await asyncio.wait([answering])
                if answering.cancelled():
                    return
                yield answering.result()
        finally:
            for task in (reading, *under_way):
                task.cancel()
            await asyncio.gather(reading, *under_way, return_exceptions=True)

    async def _read(
        self,
        request: Request,
        ahead: "asyncio.Queue[Answering | None]",
        under_way: set[Answering],
    ) -> None:
        """Start each line as it arrives. Cancel all of them if the client disconnects."""
        with suppress(ClientDisconnect):
            async for number, line in _lines(request, self.service.settings.max_body_bytes):
                answering = asyncio.create_task(self._answer(number, line))
                under_way.add(answering)
                answering.add_done_callback(under_way.discard)
                await ahead.put(answering)
            await ahead.put(None)
            await until_disconnect(request)
        for task in under_way:
            task.cancel()
        with suppress(asyncio.QueueFull):
            ahead.put_nowait(None)

    async def _answer(self, number: int, line: bytes | InputError) -> bytes:
        told = {"line": number, "model": self.served.version}
        try:
            sentence = await self._sentence(line)
        except LpcfgError as error:
            fault = problem_of(error)
        except ValidationError as error:
            fault = problem_of_validation([_under_line(dict(one)) for one in error.errors()])
        else:
            return json.dumps(told)[:-1].encode() + b', "sentence": ' + sentence + b"}\n"
        return encoded({**told, "problem": fault.model_dump(exclude_none=True)}) + b"\n"

    async def _sentence(self, line: bytes | InputError) -> bytes:
        if isinstance(line, InputError):
            raise line
        settings, stop = self.service.settings, self.service.stop()
        value = read_json(line, settings.max_json_depth)
        check_sentence(value, settings, "")
        given = _INPUT.validate_python(value)
        if self.key is not None:
            self.key.spend(1)

        def prepare() -> list[Task[Answer]]:
            sentence = inputs.sentence_of(given, settings, "")
            return [parse_task(self.service.cache, self.served, sentence, self.options, stop, "")]

        estimate = inputs.estimate(None, [given], settings)
        [answer] = await self.service.answers(prepare, estimate, stop)
        self.service.metrics.count("/v1/batch", [answer.tokens])
        return answer.body


def _under_line(error: Mapping[str, Any]) -> dict[str, Any]:
    """Return the error with its pointer made relative to the line instead of the body."""
    return {**error, "loc": ("body", *error["loc"])}


async def _lines(request: Request, longest: int) -> AsyncIterator[tuple[int, bytes | InputError]]:
    """Yield the numbered lines of a body. A blank or too long line yields an error in its place."""
    number, kept, length = 1, bytearray(), 0
    async for chunk in request.stream():
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            length += len(piece)
            yield number, _checked(bytes(kept) + piece, length, longest)
            number, length = number + 1, 0
            kept.clear()
        length += len(rest)
        if length <= longest:
            kept += rest
    if length:
        yield number, _checked(bytes(kept), length, longest)


def _checked(line: bytes, length: int, longest: int) -> bytes | InputError:
    if length <= longest:
        blank = InputError("expected a sentence as JSON, got a blank line: leave it out")
        return line if line.strip() else blank
    return LimitError(
        f"expected lines of at most {longest} bytes, got one of {length}: send a sentence a line",
        limit=longest,
        value=length,
    )
