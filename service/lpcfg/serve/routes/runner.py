"""Work on jobs: pieces of lines, each answered, written and made durable before the next.

A process takes the jobs that no other works on, those that a dead one has left included, and goes
on behind their last whole answer. At its end it leaves them to others, or to itself after a start.

A piece may take the process with it, for want of memory. So attempts are counted on the disk before
they begin. Pieces of a job over which one has died have no others beside them, so that it dies of
itself alone; once two have died with less than 64 lines answered between them, it is set aside.
"""

import asyncio
import math
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import replace
from io import BufferedRandom, BufferedReader
from typing import Any

import pydantic_core
import structlog

from lpcfg.base.errors import InputError, LpcfgError
from lpcfg.serve.http.context import Context
from lpcfg.serve.http.keys import Key
from lpcfg.serve.jobs import ATTEMPTS, LINES, Job, Jobs, Progress
from lpcfg.serve.routes.lines import AHEAD, Lines, checked
from lpcfg.serve.routes.tasks import Asked, growth
from lpcfg.serve.scheduling.work import R
from lpcfg.serve.state import JOBS, Service

AT_ONCE = 2
"""Jobs that a process works on at once; clients take turns."""
_LOOK = 0.5  # seconds between looks for jobs of other processes
_SWEEP = 60.0  # seconds between looks for jobs that have expired, or could not be worked on
_BUSY = 2.0  # seconds between looks at a job that another process works on
_PIECE = 64  # lines
_PIECE_BYTES = 1 << 18  # of lines with one tree asked for: answers are up to 20 times as long
_BLOCK = 1 << 20  # bytes read at once to count answers
_log = structlog.get_logger("lpcfg.web")

Piece = Sequence[tuple[int, bytes | LpcfgError]]


class Runner:
    """Works on the jobs of a folder while the service runs."""

    def __init__(self, service: Service, jobs: Jobs) -> None:
        self._service = service
        self._jobs = jobs
        self._running: dict[str, asyncio.Task[None]] = {}
        self._clients: dict[str, str] = {}
        self._later: dict[str, float] = {}
        """When jobs are looked at again that cannot be worked on now; never, if they are done."""
        self._room = asyncio.Semaphore(AT_ONCE)
        self._order = asyncio.Lock()

    async def run(self) -> None:
        """Start jobs and remove expired ones, until cancelled or until the service drains."""
        swept = -math.inf
        try:
            while not self._service.draining:
                if time.monotonic() - swept > _SWEEP:
                    swept = time.monotonic()
                    with suppress(OSError):  # a disk that is away for a while
                        await asyncio.to_thread(self._jobs.sweep)
                if self._service.models.ready:
                    with suppress(OSError):
                        await self._start()
                await asyncio.sleep(_LOOK)
        finally:
            for task in self._running.values():
                task.cancel()
            await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def _start(self) -> None:
        """Start the oldest jobs, first those of clients for whom none runs."""
        for name, task in list(self._running.items()):
            if task.done():
                del self._running[name], self._clients[name]
                if (fault := task.exception()) is not None:
                    _log.error("job failed", job=name, exc_info=fault)
        if len(self._running) == AT_ONCE:
            return
        waiting = await asyncio.to_thread(self._waiting)
        while waiting and len(self._running) < AT_ONCE:
            busy = Counter(self._clients.values())
            job = min(waiting, key=lambda one: (busy[one.facts.client], one.facts.created))
            waiting.remove(job)
            self._clients[job.facts.id] = job.facts.client
            self._running[job.facts.id] = asyncio.create_task(self._run(job))

    def _waiting(self) -> list[Job]:
        """List the jobs that may be begun now."""
        jobs = {job.facts.id: job for job in self._jobs}
        self._later = {name: when for name, when in self._later.items() if name in jobs}
        found, now = [], time.monotonic()
        for name, job in jobs.items():
            if name in self._running or self._later.get(name, now) > now:
                continue
            progress = job.progress() or Progress()
            if progress.done or progress.failed:
                self._later[name] = math.inf
            else:
                found.append(job)
        return found

    async def _run(self, job: Job) -> None:
        """Work on a job, unless another process does, until it is done, removed or left."""
        self._later[job.facts.id] = time.monotonic() + _BUSY
        try:
            lines = self._lines(job)
            traces = self._service.traces
            with job.locked() as ours:
                if ours and job.attempts() >= ATTEMPTS:
                    _set_aside(job)
                elif ours:
                    with nullcontext() if traces is None else traces.job(lines.context):
                        await self._answer(job, lines)
        except (LpcfgError, OSError) as error:
            if not job.folder.exists():  # it was deleted
                return
            # a model that is not served, a key that is gone, a full disk: tried again
            _log.warning("job waits", job=job.facts.id, reason=str(error))
            self._later[job.facts.id] = time.monotonic() + _SWEEP

    def _lines(self, job: Job) -> Lines:
        options, name = dict(job.facts.options), job.facts.key
        model = self._service.models.named(options.pop("model"))
        context = Context.of("JOB", [(b"traceparent", job.facts.trace.encode())])
        context.client, context.key, context.endpoint = job.facts.client, name, JOBS
        context.owner = None if self._service.keys is None else self._key(name)
        asked = Asked(model, model.kind.options.of(options))
        return Lines(self._service, asked, context, JOBS, patient=True)

    def _key(self, name: str | None) -> Key:
        for key in self._service.keys or ():
            if key.name == name:
                return key
        raise InputError(f"expected a job of a known key, got {name!r}: keep its key, or delete it")

    async def _answer(self, job: Job, lines: Lines) -> None:
        began = time.monotonic()
        with open(job.folder / LINES, "rb") as given, open(job.answers, "ab+") as answers:
            progress = await self._go_on(job, lines, given, answers)
        job.save(replace(progress, done=True))
        context = lines.context
        _log.info(
            "job",
            job=job.facts.id,
            key=job.facts.key,
            model=lines.asked.model.reference.hash,
            lines=job.facts.lines,
            sentences=context.sentences,
            tokens=context.tokens,
            seconds=round(time.monotonic() - began, 3),
        )

    async def _go_on(
        self, job: Job, lines: Lines, given: BufferedReader, answers: BufferedRandom
    ) -> Progress:
        """Answer the lines that have no answer yet, piece by piece."""
        progress = await asyncio.to_thread(_resume, answers, job, given)
        longest = self._service.settings.max_body_bytes
        most = _PIECE_BYTES // growth(lines.asked.options)
        first = number = progress.answered + 1
        died = job.attempts()
        room = AT_ONCE if died else 1
        async with AsyncExitStack() as alone:
            try:
                if died:
                    await alone.enter_async_context(self._room_for(room))
                await _to_its_end(job.begin_attempt)
                while piece := await asyncio.to_thread(read_piece, given, number, longest, most):
                    async with nullcontext() if died else self._room_for(room):
                        found = await self._answers(lines, piece)
                        progress = await _to_its_end(_write, answers, job, found, progress)
                    number += len(piece)
                    if died and number - first >= _PIECE:  # at the next lines, none has died
                        died = 0
                        job.end_attempt(1)
                        await alone.aclose()
                job.end_attempt(0)
            except (asyncio.CancelledError, LpcfgError, OSError):  # not the fault of these lines
                job.end_attempt(died)
                raise
        return progress

    @asynccontextmanager
    async def _room_for(self, pieces: int) -> AsyncIterator[None]:
        """Wait until there is room for so many pieces, and take it."""
        async with AsyncExitStack() as taken:
            async with self._order:  # two that want all room would wait for each other
                for _ in range(pieces):
                    await taken.enter_async_context(self._room)
            yield

    async def _answers(self, lines: Lines, piece: Piece) -> list[bytes]:
        """Answer the lines of a piece. If that is cancelled, all of them are."""
        room = asyncio.Semaphore(AHEAD * self._service.settings.threads)

        async def one(number: int, line: bytes | LpcfgError) -> bytes:
            async with room:
                return await lines.answer(number, line)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(*line)) for line in piece]
        return [task.result() for task in tasks]


def _set_aside(job: Job) -> None:
    """Work no more on a job. What is there of it is kept until it expires."""
    progress = replace(job.progress() or Progress(), failed=True)
    job.save(progress)
    _log.error("job set aside", job=job.facts.id, line=progress.answered + 1)


async def _to_its_end(work: Callable[..., R], *given: Any) -> R:
    """Do this on a thread, and wait for its end even if cancelled: the thread goes on."""
    working = asyncio.ensure_future(asyncio.to_thread(work, *given))
    try:
        return await asyncio.shield(working)
    finally:
        await asyncio.wait([working])


def _resume(answers: BufferedRandom, job: Job, given: BufferedReader) -> Progress:
    """Count whole answers, drop a torn one behind them, and pass by the lines that have them."""
    answers.seek(0)
    size = answered = problems = 0
    for line in answers:
        if not line.endswith(b"\n"):
            break
        size += len(line)
        answered += 1
        problems += _is_problem(line)
    answers.truncate(size)
    for _ in range(answered):
        _next_line(given, 0)
    progress = Progress(answered, problems)
    job.save(progress)
    return progress


def _is_problem(answer: bytes) -> bool:
    """Tell a problem from a sentence."""
    return "problem" in pydantic_core.from_json(answer)


def read_piece(given: BufferedReader, number: int, longest: int, most: int) -> Piece:
    """Read the next lines, numbered from here: one, and others until they have so many bytes."""
    piece: list[tuple[int, bytes | LpcfgError]] = []
    size = 0
    while not piece or (len(piece) < _PIECE and size < most):
        line, length = _next_line(given, longest)
        if not line:
            break
        size += len(line)
        piece.append((number + len(piece), checked(line.removesuffix(b"\n"), length, longest)))
    return piece


def _next_line(given: BufferedReader, longest: int) -> tuple[bytes, int]:
    """Read a line, and return no more of it than is needed, and its length without the break."""
    line = rest = given.readline(longest + 1)
    length = len(line)
    while rest and not rest.endswith(b"\n"):
        rest = given.readline(_BLOCK)
        length += len(rest)
    return line, length - rest.endswith(b"\n")


def _write(
    answers: BufferedRandom, job: Job, found: Sequence[bytes], progress: Progress
) -> Progress:
    """Add answers, durably, and say how many there are. Raise if the job is not there any more."""
    answers.write(b"".join(found))
    answers.flush()
    os.fsync(answers.fileno())
    told = Progress(
        progress.answered + len(found), progress.problems + sum(map(_is_problem, found))
    )
    job.save(told)
    return told
