"""Compute off the event loop: requests wait in a queue, and threads take small batches from it.

A request is a Line of tasks. Lines are served in turn, so a long request does not delay short ones.
A thread takes tasks of several lines at once, worth a few milliseconds, so that handing over costs
little. Each task runs by itself: its result does not depend on its batch.

    event loop    submit → line ───────────────────────────────────→ line.done: results, or an error
    threads              line → prepare → line of tasks → batches →
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import structlog

from lpcfg.cancel import Stop
from lpcfg.errors import LpcfgError
from lpcfg.web.scheduling.admission import Admission

BATCH_SECONDS = 0.01
"""A batch is filled up to this much estimated work.

It is short for a person, and long compared with the 0.1 ms that handing over a batch takes.
"""


_log = structlog.get_logger("lpcfg.web")

R = TypeVar("R")
"""The result of a task."""


class FaultError(LpcfgError):
    """A task raised an unexpected error: a fault of the service, not of the client."""


@dataclass(frozen=True, slots=True)
class Task(Generic[R]):
    """A computation, and its cost in estimated seconds."""

    run: Callable[[], R]
    cost: float


@dataclass(eq=False, slots=True)
class Line(Generic[R]):
    """The tasks of one request, in order. A thread calls `prepare` to create them."""

    prepare: Callable[[], Sequence[Task[R]]]
    estimate: float
    stop: Stop
    done: asyncio.Future[list[R]]
    tasks: deque[tuple[int, Task[R]]] = field(default_factory=deque)
    results: list[Any] = field(default_factory=list)
    """One place per task; empty until the line is prepared."""
    missing: int = 0


@dataclass(slots=True)
class _Turn:
    """The work that a thread takes at once (a line to prepare, or tasks), and its outcomes."""

    unprepared: Line[Any] | None = None
    work: list[tuple[Line[Any], int, Task[Any]]] = field(default_factory=list)
    outcomes: list[Any] = field(default_factory=list)
    """Results of tasks, or their errors."""
    cost: float = 0.0
    seconds: float = 0.0

    def run(self) -> None:
        started = time.perf_counter()
        if self.unprepared is not None:
            self._prepare(self.unprepared)
        self.outcomes += [_outcome(line, task) for line, _, task in self.work]
        self.seconds = time.perf_counter() - started

    def _prepare(self, line: Line[Any]) -> None:
        try:
            line.stop.check()
            tasks = line.prepare()
        except LpcfgError as error:
            self.outcomes.append(error)
            return
        self.cost = sum(task.cost for task in tasks)
        line.results = [None] * len(tasks)
        line.missing = len(tasks)
        line.tasks.extend(enumerate(tasks))


def _outcome(line: Line[R], task: Task[R]) -> R | LpcfgError:
    try:
        line.stop.check()
        return task.run()
    except LpcfgError as error:
        return error


class Workers:
    """A fixed number of threads that serve lines."""

    def __init__(self, threads: int, admission: Admission) -> None:
        self._admission = admission
        self._loop = asyncio.get_running_loop()
        self._lines: deque[Line[Any]] = deque()
        self._again: deque[_Turn] = deque()
        self._ready = threading.Condition()
        self._closed = False
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="parse")
        for _ in range(threads):
            self._start()

    def submit(
        self, prepare: Callable[[], Sequence[Task[R]]], estimate: float, stop: Stop
    ) -> Line[R]:
        """Add a line. Its `done` gets the results of these tasks, or the first error."""
        line: Line[R] = Line(prepare, estimate, stop, self._loop.create_future())
        self._admission.enter(estimate)
        with self._ready:
            self._lines.append(line)
            self._ready.notify()
        return line

    def close(self) -> None:
        """Let the threads finish their present work, then end them."""
        with self._ready:
            self._closed = True
            self._ready.notify_all()
        self._threads.shutdown()

    # On the threads -------------------------------------------------------------------------------

    def _start(self) -> None:
        self._threads.submit(self._serve)

    def _serve(self) -> None:
        """Take turns until closed, or until one raises an unexpected error."""
        while (turn := self._take()) is not None:
            try:
                turn.run()
            except BaseException as error:
                if not self._closed:
                    self._loop.call_soon_threadsafe(self._broke, error, turn)
                raise
            line = turn.unprepared
            if line is not None and line.tasks:
                with self._ready:
                    self._lines.appendleft(line)
                    self._ready.notify()
            self._loop.call_soon_threadsafe(self._deliver, turn)

    def _take(self) -> _Turn | None:
        with self._ready:
            while not (self._lines or self._again or self._closed):
                self._ready.wait()
            if self._closed:
                return None
            if self._again:
                return self._again.popleft()
            if not self._lines[0].results:
                return _Turn(unprepared=self._lines.popleft())
            turn = self._batch(BATCH_SECONDS / self._admission.scale)
            if self._lines:
                self._ready.notify()
            return turn

    def _batch(self, room: float) -> _Turn:
        turn = _Turn()
        while turn.cost < room and self._lines and self._lines[0].results:
            line = self._lines.popleft()
            while turn.cost < room and line.tasks:
                index, task = line.tasks.popleft()
                turn.work.append((line, index, task))
                turn.cost += task.cost
            if line.tasks:
                self._lines.append(line)
        return turn

    # On the event loop ----------------------------------------------------------------------------

    def _deliver(self, turn: _Turn) -> None:
        if turn.unprepared is not None:
            self._prepared(turn)
            return
        for (line, index, _), outcome in zip(turn.work, turn.outcomes, strict=True):
            if isinstance(outcome, LpcfgError):
                _fail(line, outcome)
            else:
                line.results[index] = outcome
            self._count(line)
        self._admission.worked(turn.cost, turn.seconds)

    def _prepared(self, turn: _Turn) -> None:
        line = turn.unprepared
        if line is None:
            return
        self._admission.correct(turn.cost - line.estimate)
        for error in turn.outcomes:
            if isinstance(error, LpcfgError):
                _fail(line, error)
        if not line.results:
            self._finish(line)

    def _count(self, line: Line[Any]) -> None:
        line.missing -= 1
        if not line.missing:
            self._finish(line)

    def _finish(self, line: Line[Any]) -> None:
        self._admission.leave()
        if not line.done.done():
            line.done.set_result(line.results)

    def _broke(self, error: BaseException, turn: _Turn) -> None:
        """Handle a turn that raised an unexpected error: run its tasks again, one by one.

        Only one task is at fault, and the others still get answers. The thread's loop has ended
        with the error, so it is started again.
        """
        self._start()
        _log.error("fault", exc_info=error)
        fault = FaultError("expected an answer, got a fault of the service: report it")
        if turn.unprepared is not None:
            _fail(turn.unprepared, fault)
            self._admission.correct(-turn.unprepared.estimate)
            self._finish(turn.unprepared)
        elif len(turn.work) == 1:
            _fail(turn.work[0][0], fault)
            self._count(turn.work[0][0])
            self._admission.worked(turn.cost, turn.seconds)
        else:
            with self._ready:
                self._again.extend(_Turn(work=[one], cost=one[2].cost) for one in turn.work)
                self._ready.notify_all()


def _fail(line: Line[Any], error: LpcfgError) -> None:
    line.stop.cancel()  # ends the remaining tasks of the line at once
    if not line.done.done():
        line.done.set_exception(error)
