"""Worker processes on this machine. Each loads the model once, and does task after task."""

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from typing import Protocol, TypeVar

from threadpoolctl import threadpool_limits

from lpcfg.base.errors import InputError, LpcfgError
from lpcfg.base.executors import WithoutMain
from lpcfg.base.executors import _end_with_parent as end_with_parent
from lpcfg.predict.job import Job, Outcome, ParseDocuments, Task, unread
from lpcfg.predict.ledger import Ledger
from lpcfg.predict.work import Worker

LIVES = 3
"""Worker processes that may die over one task before its documents are given up."""
Watch = Callable[[], None]
T = TypeVar("T")


class Crew(Protocol):
    """Workers of a job, wherever they are."""

    def run(self, ledger: Ledger, watch: Watch, every: float) -> None:
        """Do all tasks. Meanwhile call `watch` every so many seconds."""

    def end(self) -> None:
        """Let the workers go, whatever they do."""


class Processes:
    """Processes of a job. They start at once, while the caller finds out what there is to do."""

    def __init__(self, job: Job, size: int) -> None:
        self._workers = [_Process(job) for _ in range(size)]

    def run(self, ledger: Ledger, watch: Watch, every: float) -> None:
        pool = ThreadPoolExecutor(len(self._workers))
        try:
            running: set[Future[None]] = {
                pool.submit(_serve, worker, ledger) for worker in self._workers
            }
            while running:
                done, running = wait(running, every, FIRST_EXCEPTION)
                for one in done:
                    one.result()
                watch()
        finally:
            self.end()
            pool.shutdown(cancel_futures=True)

    def end(self) -> None:
        for worker in self._workers:
            worker.end()


def _serve(worker: "_Process", ledger: Ledger) -> None:
    """Give one worker tasks for as long as there are any."""
    while (task := ledger.next()) is not None:
        for outcome in _outcomes(worker, task, ledger.job):
            ledger.record(outcome)


def _outcomes(worker: "_Process", task: Task, job: Job) -> list[Outcome]:
    """Do a task, again with a new process where one dies over it."""
    for _ in range(LIVES):
        outcome = worker.do(task)
        if outcome is not None:
            return [outcome]
    if isinstance(task, ParseDocuments) and len(task.documents) > 1:  # which of them is it?
        alone = (ParseDocuments((document,)) for document in task.documents)
        return [outcome for one in alone for outcome in _outcomes(worker, one, job)]
    return [given_up(task, job)]


def given_up(task: Task, job: Job) -> Outcome:
    """Make the outcome of a task that too many processes died over."""
    documents = task.documents if isinstance(task, ParseDocuments) else (task.document,)
    reason = f"{LIVES} processes died over it: is there enough memory?"
    return Outcome(task, tuple(unread(one, job, reason) for one in documents))


class _Process:
    """A worker process, and how to talk to it."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._ended = False
        self._start()

    def _start(self) -> None:
        context = WithoutMain()
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs, self._job), daemon=True)
        self._process.start()
        theirs.close()

    def do(self, task: Task) -> Outcome | None:
        """Return the outcome of a task; None if the process died, and a new one was started."""
        try:
            self._pipe.send(task)
            outcome = self._pipe.recv()
        except (EOFError, OSError):
            self._process.join()
            self._pipe.close()
            if self._ended:
                return Outcome(task, broken="the run was ended")
            self._start()
            return None
        if isinstance(outcome, LpcfgError):
            raise outcome
        if not isinstance(outcome, Outcome):
            raise InputError(f"expected the outcome of a task, got {outcome!r}")
        return outcome

    def end(self) -> None:
        self._ended = True
        self._process.kill()


def _work(pipe: Connection, job: Job) -> None:
    """Do tasks that come through a pipe, until it closes. Runs in a process of its own."""
    end_with_parent()
    with threadpool_limits(1):  # one process a core is all there is room for
        worker = _or_error(lambda: Worker(job))
        for task in _tasks(pipe):
            if isinstance(worker, LpcfgError):
                _answer(pipe, worker)
            else:
                _answer(pipe, _or_error(partial(worker.do, task)))


def _or_error(work: Callable[[], T]) -> T | LpcfgError:
    """Return the result of some work, or the error that it raised, for the parent to raise."""
    try:
        return work()
    except LpcfgError as error:
        return error


def _tasks(pipe: Connection) -> Iterator[Task]:
    """Yield the tasks that come through a pipe, until the parent closes it or ends."""
    while True:
        try:
            task = pipe.recv()
        except (EOFError, ConnectionError):
            return
        yield task


def _answer(pipe: Connection, answer: Outcome | LpcfgError) -> None:
    with suppress(ConnectionError):  # the parent has ended
        pipe.send(answer)
