"""Compute off the event loop: requests wait in a queue, and threads take small batches from it.

A request is a Line of tasks. Lines are served in turn (lanes.py), so a long request does not delay
short ones. A thread takes tasks of several lines at once, worth a few milliseconds, so that handing
over costs little. Each task runs by itself: its result does not depend on its batch.

One thread more than the others serves the lane of single sentences alone: where long sentences keep
all others busy, the system shares the cores with it, and a sentence of 2 ms does not wait for them.

    event loop    submit → line ───────────────────────────────────→ line.done: results, or an error
    threads              line → prepare → line of tasks → batches →

A line that is worth no more than a batch is prepared and done at once, and the event loop is told
of several batches together unless a line ends: each message to it makes two threads ask for the
interpreter's lock.
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

from lpcfg.base.cancel import Stop
from lpcfg.base.errors import LpcfgError, SettingsError
from lpcfg.serve.scheduling.admission import Admission, Lane, Place
from lpcfg.serve.scheduling.lanes import Lanes
from lpcfg.serve.scheduling.phases import Phase, note, noted_in, phase

BATCH_SECONDS = 0.01
"""A batch is filled up to this much estimated work.

It is short for a person, and long compared with the 0.1 ms that handing over a batch takes.
"""
_MOST_UNTOLD = 5
"""Turns after which the event loop is told of them though no line has ended.

They are 50 ms of work, so late does admission know that less is waiting.
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
    place: Place
    stop: Stop
    done: asyncio.Future[list[R]]
    tasks: deque[tuple[int, Task[R]]] = field(default_factory=deque)
    results: list[Any] = field(default_factory=list)
    """One place per task; empty until the line is prepared."""
    missing: int = 0
    """Tasks that are not done."""
    submitted: float = field(default_factory=time.perf_counter)
    waited: float = 0.0
    """Seconds until a thread took it."""
    worked: float = 0.0
    """Seconds that threads worked for it."""
    phases: list[Phase] | None = None
    """The record that notes its phases, if there is one."""


@dataclass(slots=True)
class _Turn:
    """The work that a thread takes at once (a line to prepare, or tasks), and its outcomes."""

    lane: Lane
    unprepared: Line[Any] | None = None
    prepared_in: float = 0.0
    """Seconds that preparing the line took."""
    error: LpcfgError | None = None
    """Why the line could not be prepared."""
    work: list[tuple[Line[Any], int, Task[Any]]] = field(default_factory=list)
    outcomes: list[Any] = field(default_factory=list)
    """Results of tasks, or their errors."""
    spent: list[float] = field(default_factory=list)
    """Seconds for each of them."""
    cost: float = 0.0
    charged: float = 0.0
    """Seconds that the lane was charged with when the turn was taken."""
    ended: list[Line[Any]] = field(default_factory=list)
    """The lines whose last tasks were done in it."""

    @property
    def seconds(self) -> float:
        return self.prepared_in + sum(self.spent)

    @property
    def is_awaited(self) -> bool:
        """Tell whether somebody waits for its outcomes: an end, an error, or the true cost."""
        failed = any(isinstance(one, LpcfgError) for one in self.outcomes)
        return failed or bool(self.ended) or self.unprepared is not None

    def run(self, room: float) -> None:
        """Prepare the line or do the tasks; both, for a line that costs no more than the room."""
        last = time.perf_counter()
        if self.unprepared is not None:
            line = self.unprepared
            line.waited = last - line.submitted
            note(line.phases, "queue", line.waited)
            with noted_in(line.phases), phase("tokenize"):
                self._prepare(line)
            self.prepared_in = time.perf_counter() - last
            last += self.prepared_in
            if self.cost <= room:
                self.work = [(line, index, task) for index, task in line.tasks]
                line.tasks.clear()
        for line, _, task in self.work:
            self.outcomes.append(_outcome(line, task))
            now = time.perf_counter()
            self.spent.append(now - last)
            last = now

    def _prepare(self, line: Line[Any]) -> None:
        try:
            line.stop.check()
            tasks = line.prepare()
        except LpcfgError as error:
            self.error = error
            return
        self.cost = sum(task.cost for task in tasks)
        line.results = [None] * len(tasks)
        line.missing = len(tasks)
        line.tasks.extend(enumerate(tasks))


def _outcome(line: Line[R], task: Task[R]) -> R | LpcfgError:
    try:
        line.stop.check()
        with noted_in(line.phases):
            return task.run()
    except LpcfgError as error:
        return error


class Workers:
    """A fixed number of threads that serve lines."""

    def __init__(self, threads: int, admission: Admission) -> None:
        self._admission = admission
        self._loop = asyncio.get_running_loop()
        self._lanes: Lanes[Line[Any]] = Lanes()
        self._again: deque[_Turn] = deque()
        self._untold: list[_Turn] = []
        """Turns that are done and that the event loop has not taken, in order."""
        self._telling = False
        """True while a message is on its way to the event loop, which will take them all."""
        lock = threading.Lock()
        self._any, self._single = threading.Condition(lock), threading.Condition(lock)
        self._idle = 0
        """Threads that wait for work of any lane, and have not been woken."""
        self._closed = False
        self._threads = ThreadPoolExecutor(threads + 1, thread_name_prefix="parse")
        try:
            for only in (*[None] * threads, Lane.SINGLE):
                self._start(only)
        except RuntimeError as error:  # those that have started would keep the process from ending
            self.close()
            raise SettingsError(
                f"expected to start {threads + 1} threads, got `{error}`: set LPCFG_THREADS lower, "
                "or allow this process more"
            ) from error

    def submit(
        self,
        prepare: Callable[[], Sequence[Task[R]]],
        place: Place,
        stop: Stop,
        phases: list[Phase] | None = None,
    ) -> Line[R]:
        """Add a line. Its `done` gets the results of these tasks, or the first error."""
        line: Line[R] = Line(prepare, place, stop, self._loop.create_future(), phases=phases)
        with self._any:
            self._lanes.add(line)
            self._wake(place.lane)
        return line

    def close(self) -> None:
        """Let the threads finish their present work, then end them."""
        with self._any:
            self._closed = True
            self._any.notify_all()
            self._single.notify_all()
        self._threads.shutdown()

    def _wake(self, lane: Lane) -> None:
        """Wake a thread for this lane: the one of single sentences if all others are busy."""
        if self._idle:
            self._idle -= 1
            self._any.notify()
        elif lane is Lane.SINGLE:
            self._single.notify()

    @property
    def _room(self) -> float:
        """The estimated cost of a batch."""
        return BATCH_SECONDS / self._admission.scale

    # On the threads -------------------------------------------------------------------------------

    def _start(self, only: Lane | None) -> None:
        self._threads.submit(self._serve, only)

    def _serve(self, only: Lane | None) -> None:
        """Take turns, of one lane or any, until closed or until one raises an unexpected error."""
        while (turn := self._take(only)) is not None:
            try:
                turn.run(self._room)
            except BaseException as error:
                if not self._closed:
                    self._loop.call_soon_threadsafe(self._broke, error, turn, only)
                raise
            line = turn.unprepared
            with self._any:
                self._lanes.charge(turn.lane, turn.seconds - turn.charged)
                if line is not None and line.tasks:
                    self._lanes.add(line, first=True)
                    self._wake(turn.lane)
                self._keep(turn)
                due = turn.is_awaited or len(self._untold) >= _MOST_UNTOLD
                tell, self._telling = due and not self._telling, due or self._telling
            if tell:
                self._loop.call_soon_threadsafe(self._deliver)

    def _keep(self, turn: _Turn) -> None:
        """Keep a turn for the event loop, under the lock, and see which lines have ended in it."""
        for line, _, _ in turn.work:
            line.missing -= 1
            if not line.missing:
                turn.ended.append(line)
        self._untold.append(turn)

    def _take(self, only: Lane | None) -> _Turn | None:
        waiting = self._any if only is None else self._single
        with waiting:
            while True:
                if self._closed:
                    return None
                if self._again and only is None:
                    return self._again.popleft()
                lane = self._lanes.next(only)
                if lane is not None:
                    return self._turn(lane)
                self._idle += only is None
                waiting.wait()

    def _turn(self, lane: Lane) -> _Turn:
        """Take a line to prepare, or tasks of prepared lines, worth the seconds of a batch."""
        turn, room = _Turn(lane), self._room
        while turn.cost < room and (line := self._lanes.peek(lane)) is not None:
            if not line.results:
                if not turn.work:
                    turn.unprepared = self._lanes.pop(lane)
                break
            self._lanes.pop(lane)
            while turn.cost < room and line.tasks:
                index, task = line.tasks.popleft()
                turn.work.append((line, index, task))
                turn.cost += task.cost
            if line.tasks:
                self._lanes.add(line)
        turn.charged = turn.cost * self._admission.scale
        self._lanes.charge(lane, turn.charged)
        if (following := self._lanes.next()) is not None:
            self._wake(following)
        return turn

    # On the event loop ----------------------------------------------------------------------------

    def _deliver(self) -> None:
        with self._any:
            turns, self._untold, self._telling = self._untold, [], False
        for turn in turns:
            self._delivered(turn)

    def _delivered(self, turn: _Turn) -> None:
        if turn.unprepared is not None:
            self._prepared(turn.unprepared, turn)
        costs: dict[Line[Any], float] = {}
        for (line, index, task), outcome, seconds in zip(
            turn.work, turn.outcomes, turn.spent, strict=True
        ):
            line.worked += seconds
            if isinstance(outcome, LpcfgError):
                _fail(line, outcome)
            else:
                line.results[index] = outcome
            costs[line] = costs.get(line, 0.0) + task.cost
        for line, cost in costs.items():
            self._admission.worked(line.place, cost)
        for line in turn.ended:
            self._finish(line)
        if turn.work:
            self._admission.learn(turn.cost, sum(turn.spent))

    def _prepared(self, line: Line[Any], turn: _Turn) -> None:
        line.worked += turn.prepared_in
        self._admission.correct(line.place, turn.cost - line.place.cost)
        if turn.error is not None:
            _fail(line, turn.error)
        if not line.results:
            self._finish(line)

    def _finish(self, line: Line[Any]) -> None:
        self._admission.leave(line.place)
        if not line.done.done():
            line.done.set_result(line.results)

    def _broke(self, error: BaseException, turn: _Turn, only: Lane | None) -> None:
        """Handle a turn that raised an unexpected error: run its tasks again, one by one.

        Only one task is at fault, and the others still get answers. The thread's loop has ended
        with the error, so it is started again.
        """
        self._start(only)
        _log.error("fault", exc_info=error)
        fault = FaultError("expected an answer, got a fault of the service: report it")
        if turn.unprepared is not None:
            _fail(turn.unprepared, fault)
            self._finish(turn.unprepared)
        elif len(turn.work) == 1:
            with self._any:
                self._keep(_Turn(turn.lane, work=turn.work, outcomes=[fault], spent=[0.0]))
            self._deliver()
        else:
            with self._any:
                self._again.extend(
                    _Turn(turn.lane, work=[one], cost=one[2].cost) for one in turn.work
                )
                self._idle = 0
                self._any.notify_all()


def _fail(line: Line[Any], error: LpcfgError) -> None:
    line.stop.cancel()  # ends the remaining tasks of the line at once
    if not line.done.done():
        line.done.set_exception(error)
