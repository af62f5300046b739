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

from lpcfg.base.errors import SchedulerError
from lpcfg.base.executors import Executor

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
        """Take back a task that killed its worker, or raised an error. Let it be done again, or
        set it aside after too many attempts; raise the error if the run cannot go on.
        """


def complete(
    checkpoint: Checkpoint[T, R],
    executor: Executor,
    call: Callable[..., object],
    *shared: Any,
    watch: Callable[[], None],
    every: float = 0.5,
    ahead: int = AHEAD,
) -> None:
    """Call a function with the shared arguments and each task, until all tasks are done.

    The executor makes results R of what the function returns.

    Meanwhile call `watch` about every so many seconds. Errors of `watch` end the run, and so do
    those that the checkpoint raises.
    """
    running: dict[Future[Any], T] = {}
    workers, looked = executor.workers, time.monotonic()
    seen = looked
    try:
        while True:
            while len(running) < ahead * max(1, workers):
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
    finally:
        for future in running:
            future.cancel()


def _settle(checkpoint: Checkpoint[T, R], task: T, future: "Future[R]") -> None:
    error = future.exception()
    if error is None:
        checkpoint.done(task, future.result())
    else:
        checkpoint.failed(task, error)
