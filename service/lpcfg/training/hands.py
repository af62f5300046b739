"""Do work on parts of a treebank, and merge its results in a fixed order.

Parts are merged as the leaves of one binary tree, whose shape depends on their number alone. So
sums of rounded numbers are the same, bit for bit, for any number of workers and any order in which
these are ready.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol

from threadpoolctl import threadpool_limits


class Hands(Protocol):
    """Workers, wherever they are.

    Results stay with them until `results` asks for these; the other methods accept them.
    """

    def each(self, do: Callable[..., Any], parts: Iterable[Any], *shared: Any) -> list[Any]:
        """Do something to every part, with the shared arguments."""

    def totals(
        self,
        do: Callable[..., Sequence[Any]],
        parts: Iterable[Any],
        merge: Callable[[Any, Any], Any],
        places: int,
        *shared: Any,
    ) -> list[Any]:
        """Do something to every part, and merge the results of each place over all parts.

        `do` returns as many results as there are places.
        """

    def results(self, made: Sequence[Any]) -> list[Any]:
        """Return what was made."""


def folded(results: Iterable[Any], merge: Callable[[Any, Any], Any]) -> Any:
    """Merge results as the leaves of a binary tree, in their order, as early as possible.

    At most one result for each level of the tree waits to be merged.
    """
    waiting: list[tuple[int, Any]] = []  # with the number of leaves below it
    for result in results:
        size = 1
        while waiting and waiting[-1][0] == size:
            result = merge(waiting.pop()[1], result)
            size *= 2
        waiting.append((size, result))
    total = waiting.pop()[1]
    while waiting:
        total = merge(waiting.pop()[1], total)
    return total


class Here:
    """Threads of this process."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._pool = ThreadPoolExecutor(workers)

    def each(self, do: Callable[..., Any], parts: Iterable[Any], *shared: Any) -> list[Any]:
        return list(self._done(do, parts, *shared))

    def totals(
        self,
        do: Callable[..., Sequence[Any]],
        parts: Iterable[Any],
        merge: Callable[[Any, Any], Any],
        places: int,
        *shared: Any,
    ) -> list[Any]:
        del places

        def merged(one: Sequence[Any], other: Sequence[Any]) -> Sequence[Any]:
            return list(self._pool.map(merge, one, other))

        return list(folded(self._done(do, parts, *shared), merged))

    def results(self, made: Sequence[Any]) -> list[Any]:
        return list(made)

    def end(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def _done(self, do: Callable[..., Any], parts: Iterable[Any], *shared: Any) -> Iterator[Any]:
        """Yield results in order.

        One part more is taken than there are workers: while the first result takes long, the
        others have work.
        """
        running: deque[Future[Any]] = deque()
        for part in parts:
            running.append(self._pool.submit(do, part, *shared))
            if len(running) > self._workers:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()


@contextmanager
def here(workers: int) -> Iterator[Here]:
    """Provide threads of this process, each with one thread of BLAS."""
    hands = Here(workers)
    with threadpool_limits(1):
        try:
            yield hands
        finally:
            hands.end()
