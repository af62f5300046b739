"""Processes that read and learn beside this one, where there is enough work for them.

They start while this process still imports what it needs, and import the same meanwhile. Python's
lock would let two threads of one process learn no faster than one.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeVar

from lpcfg.base.errors import TrainingError
from lpcfg.base.processes import processes

ENOUGH = 1 << 20
"""Bytes of trees from which processes are worth their start, a second's work of one core."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class Helpers:
    """Up to `workers` − 1 processes beside this one. None runs until `begin` is called."""

    def __init__(self, workers: int) -> None:
        if workers < 1:
            raise TrainingError(f"expected at least one worker, got {workers}: give 1 or more")
        self.workers = workers
        self._pool: ProcessPoolExecutor | None = None

    def begin(self, size: int) -> None:
        """Start the first process if so many bytes of trees are enough, and it does not run."""
        if size >= ENOUGH and self.workers > 1 and self._pool is None:
            self._pool = processes(self.workers - 1)
            self._pool.submit(_import, "lpcfg.training.pipeline")

    def map(self, do: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Do something to every item: helpers from the first one on, this process from the last.

        Each helper has one item, and one that waits. Taking back items that wait would do as well,
        but until Python 3.12 a pool hangs where a process dies and such items are left.
        """
        if self._pool is None:
            return [do(item) for item in items]
        given: list[Future[Result]] = []
        own: list[Result] = []
        with _explained():
            while len(given) + len(own) < len(items):
                if sum(not one.done() for one in given) < 2 * (self.workers - 1):
                    given.append(self._pool.submit(do, items[len(given)]))
                else:
                    own.append(do(items[-len(own) - 1]))
            return [*(one.result() for one in given), *reversed(own)]

    @contextmanager
    def beside(self) -> Iterator[Executor]:
        """Provide what works beside this thread: a process, without any a thread, or nobody."""
        if self._pool is not None:
            with _explained():
                yield self._pool
        elif self.workers > 1:
            with ThreadPoolExecutor(1) as thread:
                yield thread
        else:
            yield _Nobody()

    def __enter__(self) -> "Helpers":
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False)


class _Nobody(Executor):
    """Does every task at once, where it is handed in."""

    def submit(self, do: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(do(*given, **named))
        return done


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except BrokenProcessPool as error:
        raise TrainingError(
            "expected processes that work to the end, got one that was killed, often for want of "
            "memory: use fewer workers"
        ) from error


def _import(module: str) -> None:
    import_module(module)
