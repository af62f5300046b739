"""Work on jobs: chunks of lines, each answered, written and made durable before the next.

A process takes the jobs that no other works on, those that a dead one has left included, and goes
on behind their last whole answer. At its end it leaves them to others, or to itself after a start.

A chunk may take the process with it, for want of memory. So attempts are counted on the disk before
they begin. A job over which one has died has no others beside it, so that it dies of itself alone;
once two have died at the same lines, the job is set aside.
"""

import asyncio
import math
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from io import BufferedRandom, BufferedReader
from typing import Any

import pydantic_core
import structlog

from lpcfg.base.errors import InputError, LpcfgError, Stopped
from lpcfg.base.executors import Executor
from lpcfg.predict.engine import Checkpoint, complete
from lpcfg.serve.http.context import Context
from lpcfg.serve.http.keys import Key
from lpcfg.serve.jobs import ATTEMPTS, LINES, Job, Jobs, Progress
from lpcfg.serve.routes.lines import AHEAD, Lines, checked
from lpcfg.serve.routes.tasks import Asked, growth
from lpcfg.serve.state import JOBS, Service

AT_ONCE = 2
"""Jobs that a process works on at once; clients take turns."""
_LOOK = 0.5  # seconds between looks for jobs of other processes
_SWEEP = 60.0  # seconds between looks for jobs that have expired, or could not be worked on
_BUSY = 2.0  # seconds between looks at a job that another process works on
_CHUNK = 64  # lines
_CHUNK_BYTES = 1 << 18  # of lines with one tree asked for: answers are up to 20 times as long
_BLOCK = 1 << 20  # bytes read at once to count answers
_log = structlog.get_logger("lpcfg.web")

Chunk = Sequence[tuple[int, bytes | LpcfgError]]


@dataclass(eq=False)
class _OpenJob:
    """A job that this process works on: its files, its lock and its span are open."""

    job: Job
    lines: Lines
    given: BufferedReader
    answers: BufferedRandom
    progress: Progress
    close: Callable[[], None]
    died: int
    """Attempts at the next lines that have died."""
    left: int
    """Lines to answer until these are no more the next ones; 0 if none has died."""
    is_alone: bool
    """True if a process died over it: nothing else is under way beside it."""
    began: float = field(default_factory=time.monotonic)
    is_begun: bool = False
    is_busy: bool = False

    def read(self, longest: int) -> Chunk:
        """Count the attempt, and read the next lines; none at the end."""
        if not self.is_begun:
            self.job.begin_attempt()
            self.is_begun = True
        most = _CHUNK_BYTES // growth(self.lines.asked.options)
        chunk = read_chunk(self.given, self.progress.answered + 1, longest, most)
        self.is_busy = bool(chunk)
        return chunk

    def write(self, found: Sequence[bytes]) -> None:
        """Keep the answers to the lines that were read last."""
        self.is_busy = False
        self.progress = _write(self.answers, self.job, found, self.progress)
        self.left -= len(found)
        if self.died and self.left <= 0:
            self.died = 0
            self.job.end_attempt(1)


Part = tuple[_OpenJob, Chunk]


class _OnLoop(Executor):
    """Runs coroutines on an event loop, for the thread that submits them."""

    workers = AT_ONCE

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def submit(self, call: Callable[..., Any], /, *given: Any) -> "Future[Any]":
        return asyncio.run_coroutine_threadsafe(call(*given), self._loop)

    def shutdown(self) -> None:
        """End nothing: the loop goes on."""


class Runner(Checkpoint[Part, Sequence[bytes]]):
    """Works on the jobs of a folder while the service runs.

    One thread reads and writes their files; the lines are answered on the event loop.
    """

    def __init__(self, service: Service, jobs: Jobs) -> None:
        self._service = service
        self._jobs = jobs
        self._open: list[_OpenJob] = []
        """Those that are worked on; whose turn it was last is the last one."""
        self._later: dict[str, float] = {}
        """When jobs are looked at again that cannot be worked on now; never, if they are done."""
        self._looks = self._sweeps = -math.inf
        """When the folder is looked through next, and when it is swept."""
        self._ends = threading.Event()

    async def run(self) -> None:
        """Work on jobs and remove expired ones, until cancelled or until the service drains."""
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1, "jobs") as thread:
            working = loop.run_in_executor(thread, self._work, _OnLoop(loop))
            try:
                await asyncio.shield(working)
            finally:
                self._ends.set()
                await working

    def _work(self, executor: Executor) -> None:
        with suppress(Stopped):
            while not self._ends.wait(_LOOK):
                self._watch()
                complete(self, executor, self._answers, watch=self._watch, every=_LOOK, ahead=1)
        for one in list(self._open):
            self._leave(one)

    def _watch(self) -> None:
        """Remove jobs that have expired, now and then. Raise Stopped if the service ends."""
        if self._ends.is_set() or self._service.draining:
            raise Stopped("the service ends: jobs are left")
        if time.monotonic() > self._sweeps:
            self._sweeps = time.monotonic() + _SWEEP
            with suppress(OSError):  # a disk that is away for a while
                self._jobs.sweep()

    async def _answers(self, part: Part) -> list[bytes]:
        """Answer the lines of a chunk. If that is cancelled, all of them are."""
        one, chunk = part
        room = asyncio.Semaphore(AHEAD * self._service.settings.threads)

        async def answer(number: int, line: bytes | LpcfgError) -> bytes:
            async with room:
                return await one.lines.answer(number, line)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(answer(*line)) for line in chunk]
        return [task.result() for task in tasks]

    # What is to do, and what is done --------------------------------------------------------------

    def next(self, *, idle: bool) -> Part | None:
        while (one := self._next_job(idle=idle)) is not None:
            with self._leaving(one):
                if chunk := one.read(self._service.settings.max_body_bytes):
                    return one, chunk
                self._finish(one)
        return None

    def done(self, task: Part, result: Sequence[bytes]) -> None:
        with self._leaving(task[0]):
            task[0].write(result)

    def failed(self, task: Part, error: BaseException) -> None:
        if isinstance(error, LpcfgError | OSError):
            self._leave(task[0], error)
        else:  # a fault of ours, or no memory: the attempt counts
            _log.error("job failed", job=task[0].job.facts.id, exc_info=error)
            self._close(task[0])

    def _next_job(self, *, idle: bool) -> _OpenJob | None:
        """Choose the job whose lines are next; None if there is none for now."""
        self._open_more()
        if any(one.is_alone and one.is_busy for one in self._open):
            return None
        for one in sorted(self._open, key=lambda one: not one.died):
            if not one.is_busy:
                self._open.remove(one)
                self._open.append(one)
                return one if idle or not one.is_alone else None
        return None

    def _open_more(self) -> None:
        """Open the oldest jobs, first those of clients for whom none is open."""
        if not self._service.models.ready:
            return
        while len(self._open) < AT_ONCE and time.monotonic() > self._looks:
            with suppress(OSError):  # a disk that is away for a while
                if waiting := self._waiting():
                    busy = Counter(one.job.facts.client for one in self._open)
                    job = min(waiting, key=lambda one: (busy[one.facts.client], one.facts.created))
                    self._begin(job)
                    continue
            self._looks = time.monotonic() + _LOOK

    def _waiting(self) -> list[Job]:
        """List the jobs that may be begun now."""
        jobs = {job.facts.id: job for job in self._jobs}
        self._later = {name: when for name, when in self._later.items() if name in jobs}
        found, now = [], time.monotonic()
        running = {one.job.facts.id for one in self._open}
        for name, job in jobs.items():
            if name in running or self._later.get(name, now) > now:
                continue
            progress = job.progress() or Progress()
            if progress.done or progress.failed:
                self._later[name] = math.inf
            else:
                found.append(job)
        return found

    def _begin(self, job: Job) -> None:
        """Open a job, unless another process works on it, or two have died over it."""
        self._later[job.facts.id] = time.monotonic() + _BUSY
        try:
            lines = self._lines(job)
            with ExitStack() as opened:
                if not opened.enter_context(job.locked()):
                    return
                if (died := job.attempts()) >= ATTEMPTS:
                    _set_aside(job)
                    return
                given = opened.enter_context(open(job.folder / LINES, "rb"))
                answers = opened.enter_context(open(job.answers, "ab+"))
                progress = _resume(answers, job, given)
                if self._service.traces is not None:
                    opened.enter_context(self._service.traces.job(lines.context))
                close = opened.pop_all().close
            left = _CHUNK if died else 0
            one = _OpenJob(job, lines, given, answers, progress, close, died, left, bool(died))
            self._open.append(one)
        except (LpcfgError, OSError) as error:
            self._postpone(job, error)

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

    def _finish(self, one: _OpenJob) -> None:
        """Note that all lines of a job are answered."""
        one.job.save(replace(one.progress, done=True))
        one.job.end_attempt(0)
        self._close(one)
        context = one.lines.context
        _log.info(
            "job",
            job=one.job.facts.id,
            key=one.job.facts.key,
            model=one.lines.asked.model.reference.hash,
            lines=one.job.facts.lines,
            sentences=context.sentences,
            tokens=context.tokens,
            seconds=round(time.monotonic() - one.began, 3),
        )

    @contextmanager
    def _leaving(self, one: _OpenJob) -> Iterator[None]:
        """Leave a job if its files are out of reach."""
        try:
            yield
        except (LpcfgError, OSError) as error:
            self._leave(one, error)

    def _leave(self, one: _OpenJob, error: BaseException | None = None) -> None:
        """Leave a job that is not done. That is not the fault of its lines."""
        one.job.end_attempt(one.died)
        self._close(one)
        if error is not None:
            self._postpone(one.job, error)

    def _close(self, one: _OpenJob) -> None:
        self._open.remove(one)
        one.close()

    def _postpone(self, job: Job, error: BaseException) -> None:
        """Let a job wait, unless it was deleted: for a model that is not served, a key that is
        gone, or a disk that is full.
        """
        if job.folder.exists():
            _log.warning("job waits", job=job.facts.id, reason=str(error))
            self._later[job.facts.id] = time.monotonic() + _SWEEP


def _set_aside(job: Job) -> None:
    """Work no more on a job. What is there of it is kept until it expires."""
    progress = replace(job.progress() or Progress(), failed=True)
    job.save(progress)
    _log.error("job set aside", job=job.facts.id, line=progress.answered + 1)


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


def read_chunk(given: BufferedReader, number: int, longest: int, most: int) -> Chunk:
    """Read the next lines, numbered from here: one, and others until they have so many bytes."""
    chunk: list[tuple[int, bytes | LpcfgError]] = []
    size = 0
    while not chunk or (len(chunk) < _CHUNK and size < most):
        line, length = _next_line(given, longest)
        if not line:
            break
        size += len(line)
        chunk.append((number + len(chunk), checked(line.removesuffix(b"\n"), length, longest)))
    return chunk


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
