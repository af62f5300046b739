"""Compute off the event loop: requests wait in queues, and threads take small batches from them.

A request is a Work of tasks. Each priority has its queue. The priorities share the time by their
weights, and clients take turns in one, so that a long request does not delay short ones. A thread
takes tasks of several requests at once, worth a few milliseconds, so that handing over costs
little. Each task runs by itself: its result does not depend on its batch.

One thread more than the others serves single sentences alone: where long sentences keep all others
busy, the system shares the cores with it, and a sentence of 2 ms does not wait for them.

    event loop    submit → queue ───────────────────────────────→ work.done: results, or an error
    threads                queue → prepare → its tasks → batches →

Work that is worth no more than a batch is prepared and done at once, and the event loop is told of
several batches together unless a request ends: each message to it makes two threads ask for the
interpreter's lock.
"""

import asyncio
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import structlog

from lpcfg.base.cancel import Stop
from lpcfg.base.errors import LpcfgError, SettingsError
from lpcfg.serve.scheduling.admission import Admission, Priority, Ticket
from lpcfg.serve.scheduling.phases import Phase, note, noted_in, phase

BATCH_SECONDS = 0.01
"""A batch is filled up to this much estimated work.

It is short for a person, and long compared with the 0.1 ms that handing over a batch takes.
"""
_MOST_UNTOLD = 5
"""Turns after which the event loop is told of them though no request has ended.

They are 50 ms of work, so late does admission know that less is waiting.
"""
_WEIGHTS = {Priority.SINGLE: 4.0, Priority.LARGER: 2.0, Priority.BATCH: 1.0}

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
class Work(Generic[R]):
    """The tasks of one request, in order. A thread calls `prepare` to create them."""

    prepare: Callable[[], Sequence[Task[R]]]
    ticket: Ticket
    stop: Stop
    done: asyncio.Future[list[R]]
    tasks: deque[tuple[int, Task[R]]] = field(default_factory=deque)
    results: list[Any] = field(default_factory=list)
    """One place per task; empty until the tasks are prepared."""
    missing: int = 0
    """Tasks that are not done."""
    submitted: float = field(default_factory=time.perf_counter)
    waited: float = 0.0
    """Seconds until a thread took it."""
    worked: float = 0.0
    """Seconds that threads worked for it."""
    phases: list[Phase] | None = None
    """The list that its phases are noted in, if there is one."""


@dataclass(slots=True)
class _Queue:
    """The work of one priority that waits, by client.

    Its clock runs with the seconds worked for it, the slower the greater its weight.
    """

    weight: float
    clock: float = 0.0
    clients: "OrderedDict[str, deque[Work[Any]]]" = field(default_factory=OrderedDict)


class Queues:
    """Work that waits for a thread. Use it under a lock.

    The priority whose clock is behind comes next. One that had nothing to do cannot save up time:
    its clock is set to that of the priority served last.
    """

    def __init__(self) -> None:
        self._queues = {priority: _Queue(weight) for priority, weight in _WEIGHTS.items()}
        self._now = 0.0

    def add(self, work: Work[Any], *, first: bool = False) -> None:
        """Let work wait behind that of its client; `first`: it comes next in its priority."""
        queue, client = self._queues[work.ticket.priority], work.ticket.client
        if not queue.clients:
            queue.clock = max(queue.clock, self._now)
        waiting = queue.clients.setdefault(client, deque())
        if first:
            waiting.appendleft(work)
            queue.clients.move_to_end(client, last=False)
        else:
            waiting.append(work)

    def next(self, only: Priority | None = None) -> Priority | None:
        """Return the priority whose turn it is, among those where work waits."""
        found = [
            (queue.clock, priority.value, priority)
            for priority, queue in self._queues.items()
            if queue.clients and only in (None, priority)
        ]
        return min(found)[2] if found else None

    def peek(self, priority: Priority) -> Work[Any] | None:
        """Return the work whose turn it is in this priority."""
        clients = self._queues[priority].clients
        return next(iter(clients.values()))[0] if clients else None

    def pop(self, priority: Priority) -> Work[Any]:
        """Take the work whose turn it is in this priority. Its client comes after the others."""
        clients = self._queues[priority].clients
        client, waiting = next(iter(clients.items()))
        work = waiting.popleft()
        if waiting:
            clients.move_to_end(client)
        else:
            del clients[client]
        return work

    def charge(self, priority: Priority, seconds: float) -> None:
        """Let a priority's clock run by work of this many seconds."""
        queue = self._queues[priority]
        self._now = max(self._now, queue.clock)
        queue.clock += seconds / queue.weight


@dataclass(slots=True)
class _Turn:
    """A thread's turn: a request to prepare, or tasks to do, and what came of them."""

    priority: Priority
    unprepared: Work[Any] | None = None
    prepared_in: float = 0.0
    """Seconds that preparing took."""
    error: LpcfgError | None = None
    """Why the request could not be prepared."""
    tasks: list[tuple[Work[Any], int, Task[Any]]] = field(default_factory=list)
    outcomes: list[Any] = field(default_factory=list)
    """Results of tasks, or their errors."""
    spent: list[float] = field(default_factory=list)
    """Seconds for each of them."""
    cost: float = 0.0
    charged: float = 0.0
    """Seconds that the priority was charged with when the turn was taken."""
    ended: list[Work[Any]] = field(default_factory=list)
    """The requests whose last tasks were done in it."""

    @property
    def seconds(self) -> float:
        return self.prepared_in + sum(self.spent)

    @property
    def is_awaited(self) -> bool:
        """Tell whether somebody waits for its outcomes: an end, an error, or the true cost."""
        failed = any(isinstance(one, LpcfgError) for one in self.outcomes)
        return failed or bool(self.ended) or self.unprepared is not None

    def run(self, room: float) -> None:
        """Prepare the request or do the tasks; both, if it costs no more than the room."""
        last = time.perf_counter()
        if self.unprepared is not None:
            work = self.unprepared
            work.waited = last - work.submitted
            note(work.phases, "queue", work.waited)
            with noted_in(work.phases), phase("tokenize"):
                self._prepare(work)
            self.prepared_in = time.perf_counter() - last
            last += self.prepared_in
            if self.cost <= room:
                self.tasks = [(work, index, task) for index, task in work.tasks]
                work.tasks.clear()
        for work, _, task in self.tasks:
            self.outcomes.append(_outcome(work, task))
            now = time.perf_counter()
            self.spent.append(now - last)
            last = now

    def _prepare(self, work: Work[Any]) -> None:
        try:
            work.stop.check()
            tasks = work.prepare()
        except LpcfgError as error:
            self.error = error
            return
        self.cost = sum(task.cost for task in tasks)
        work.results = [None] * len(tasks)
        work.missing = len(tasks)
        work.tasks.extend(enumerate(tasks))


def _outcome(work: Work[R], task: Task[R]) -> R | LpcfgError:
    try:
        work.stop.check()
        with noted_in(work.phases):
            return task.run()
    except LpcfgError as error:
        return error


class Workers:
    """A fixed number of threads that do the work of requests."""

    def __init__(self, threads: int, admission: Admission) -> None:
        self._admission = admission
        self._loop = asyncio.get_running_loop()
        self._queues = Queues()
        self._again: deque[_Turn] = deque()
        self._untold: list[_Turn] = []
        """Turns that are done and that the event loop has not taken, in order."""
        self._telling = False
        """True while a message is on its way to the event loop, which will take them all."""
        lock = threading.Lock()
        self._any, self._single = threading.Condition(lock), threading.Condition(lock)
        self._idle = 0
        """Threads that wait for work of any priority, and have not been woken."""
        self._closed = False
        self._threads = ThreadPoolExecutor(threads + 1, thread_name_prefix="parse")
        try:
            for only in (*[None] * threads, Priority.SINGLE):
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
        ticket: Ticket,
        stop: Stop,
        phases: list[Phase] | None = None,
    ) -> Work[R]:
        """Add the work of a request. Its `done` gets the tasks' results, or the first error."""
        work: Work[R] = Work(prepare, ticket, stop, self._loop.create_future(), phases=phases)
        with self._any:
            self._queues.add(work)
            self._wake(ticket.priority)
        return work

    def close(self) -> None:
        """Let the threads finish their present work, then end them."""
        with self._any:
            self._closed = True
            self._any.notify_all()
            self._single.notify_all()
        self._threads.shutdown()

    def _wake(self, priority: Priority) -> None:
        """Wake a thread for this priority: the one of single sentences if all others are busy."""
        if self._idle:
            self._idle -= 1
            self._any.notify()
        elif priority is Priority.SINGLE:
            self._single.notify()

    @property
    def _room(self) -> float:
        """The estimated cost of a batch."""
        return BATCH_SECONDS / self._admission.scale

    # On the threads -------------------------------------------------------------------------------

    def _start(self, only: Priority | None) -> None:
        self._threads.submit(self._serve, only)

    def _serve(self, only: Priority | None) -> None:
        """Take turns, of one priority or any, until closed or until one raises another error."""
        while (turn := self._take(only)) is not None:
            try:
                turn.run(self._room)
            except BaseException as error:
                if not self._closed:
                    self._loop.call_soon_threadsafe(self._broke, error, turn, only)
                raise
            work = turn.unprepared
            with self._any:
                self._queues.charge(turn.priority, turn.seconds - turn.charged)
                if work is not None and work.tasks:
                    self._queues.add(work, first=True)
                    self._wake(turn.priority)
                self._keep(turn)
                due = turn.is_awaited or len(self._untold) >= _MOST_UNTOLD
                tell, self._telling = due and not self._telling, due or self._telling
            if tell:
                self._loop.call_soon_threadsafe(self._deliver)

    def _keep(self, turn: _Turn) -> None:
        """Keep a turn for the event loop, under the lock, and see which requests end in it."""
        for work, _, _ in turn.tasks:
            work.missing -= 1
            if not work.missing:
                turn.ended.append(work)
        self._untold.append(turn)

    def _take(self, only: Priority | None) -> _Turn | None:
        waiting = self._any if only is None else self._single
        with waiting:
            while True:
                if self._closed:
                    return None
                if self._again and only is None:
                    return self._again.popleft()
                priority = self._queues.next(only)
                if priority is not None:
                    return self._turn(priority)
                self._idle += only is None
                waiting.wait()

    def _turn(self, priority: Priority) -> _Turn:
        """Take a request to prepare, or tasks of prepared ones, worth the seconds of a batch."""
        turn, room = _Turn(priority), self._room
        while turn.cost < room and (work := self._queues.peek(priority)) is not None:
            if not work.results:
                if not turn.tasks:
                    turn.unprepared = self._queues.pop(priority)
                break
            self._queues.pop(priority)
            while turn.cost < room and work.tasks:
                index, task = work.tasks.popleft()
                turn.tasks.append((work, index, task))
                turn.cost += task.cost
            if work.tasks:
                self._queues.add(work)
        turn.charged = turn.cost * self._admission.scale
        self._queues.charge(priority, turn.charged)
        if (following := self._queues.next()) is not None:
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
        costs: dict[Work[Any], float] = {}
        for (work, index, task), outcome, seconds in zip(
            turn.tasks, turn.outcomes, turn.spent, strict=True
        ):
            work.worked += seconds
            if isinstance(outcome, LpcfgError):
                _fail(work, outcome)
            else:
                work.results[index] = outcome
            costs[work] = costs.get(work, 0.0) + task.cost
        for work, cost in costs.items():
            self._admission.worked(work.ticket, cost)
        for work in turn.ended:
            self._finish(work)
        if turn.tasks:
            self._admission.learn(turn.cost, sum(turn.spent))

    def _prepared(self, work: Work[Any], turn: _Turn) -> None:
        work.worked += turn.prepared_in
        self._admission.correct(work.ticket, turn.cost - work.ticket.cost)
        if turn.error is not None:
            _fail(work, turn.error)
        if not work.results:
            self._finish(work)

    def _finish(self, work: Work[Any]) -> None:
        self._admission.leave(work.ticket)
        if not work.done.done():
            work.done.set_result(work.results)

    def _broke(self, error: BaseException, turn: _Turn, only: Priority | None) -> None:
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
        elif len(turn.tasks) == 1:
            with self._any:
                self._keep(_Turn(turn.priority, tasks=turn.tasks, outcomes=[fault], spent=[0.0]))
            self._deliver()
        else:
            with self._any:
                self._again.extend(
                    _Turn(turn.priority, tasks=[one], cost=one[2].cost) for one in turn.tasks
                )
                self._idle = 0
                self._any.notify_all()


def _fail(work: Work[Any], error: LpcfgError) -> None:
    work.stop.cancel()  # ends the remaining tasks of the request at once
    if not work.done.done():
        work.done.set_exception(error)
