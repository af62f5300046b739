"""Do the tasks of a run on the workers of an executor, whatever dies meanwhile.

What is done outlives the process that does it: a `Checkpoint` notes that a task begins before it
does, and that it is done after its results are on the disk. So a run may be killed at any moment
and started again, and a task that kills whoever does it is set aside after a few attempts.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, Generic, TypeVar

from lpcfg.base.errors import LpcfgError, SchedulerError, WorkerError
from lpcfg.base.executors import Executor
from lpcfg.base.urls import network_failures

ATTEMPTS = 3
"""How often a task may be begun that kills whoever does it."""
AHEAD = 2
"""Tasks handed out for each worker, so that none waits for its next one."""
LONGEST_WAIT = 600.0
"""Seconds without any worker after which a run ends: whoever starts workers has given up."""
T = TypeVar("T")
R = TypeVar("R")


class Checkpoint(ABC, Generic[T, R]):
    """Knows what is to do, and what is done, of a run that can be resumed."""

    @abstractmethod
    def next(self, *, idle: bool) -> T | None:
        """Note that the next task begins, and return it; None if there is none for now.

        `idle` says that no other task is under way: one that may be to blame for the end of an
        earlier process is handed out alone.
        """

    @abstractmethod
    def done(self, task: T, result: R) -> None:
        """Note that a task is done."""

    @abstractmethod
    def failed(self, task: T, error: BaseException) -> None:
        """Take back a task that killed its worker, or raised what it should not. Let it be done
        again, or set it aside after too many attempts.
        """

    @abstractmethod
    def returned(self, task: T) -> None:
        """Take back a task that was lost through no fault of its own."""


def complete(
    checkpoint: Checkpoint[T, R],
    executor: Executor,
    call: Callable[..., R],
    *shared: Any,
    watch: Callable[[], None],
    every: float = 0.5,
) -> None:
    """Call a function with the shared arguments and each task, until all tasks are done.

    Meanwhile call `watch` about every so many seconds.

    Raises:
        LpcfgError: that a task raised, because the run cannot go on
    """
    running: dict[Future[Any], T] = {}
    workers, looked = executor.workers, time.monotonic()
    seen = looked
    while True:
        while len(running) < AHEAD * max(1, workers):
            if (task := checkpoint.next(idle=not running)) is None:
                break
            running[executor.submit(call, *shared, task)] = task
        if not running:
            return
        for future in wait(running, every, FIRST_COMPLETED).done:
            _settle(checkpoint, running.pop(future), future)
        if time.monotonic() - looked >= every:
            workers, looked = executor.workers, time.monotonic()
            seen = looked if workers else seen
            if looked - seen > LONGEST_WAIT:
                raise SchedulerError(
                    f"expected workers, got none for {LONGEST_WAIT:.0f} s: start some and run "
                    "again; nothing done is lost"
                )
            watch()


def _settle(checkpoint: Checkpoint[T, R], task: T, future: "Future[R]") -> None:
    error = future.exception()
    fatal: tuple[type[Exception], ...] = (LpcfgError, *network_failures())
    if error is None:
        checkpoint.done(task, future.result())
    elif isinstance(error, SchedulerError):
        checkpoint.returned(task)
    elif isinstance(error, fatal) and not isinstance(error, WorkerError):
        raise error
    else:
        checkpoint.failed(task, error)
