"""Run calls on workers: in this thread, on threads, processes, or the workers of a dask scheduler.

Every executor submits a call, maps many, and reduces their results. `reduce` merges results as the
leaves of one binary tree, whose shape depends on their number alone. So sums of rounded numbers are
the same, bit for bit, for any number of workers and any order in which these are ready.
"""

import atexit
import multiprocessing
import os
import signal
import sys
import threading
import traceback
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib import import_module
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnContext, SpawnProcess
from operator import getitem
from queue import Empty, SimpleQueue
from types import ModuleType
from typing import Any, Self
from uuid import uuid4

from threadpoolctl import threadpool_limits

from lpcfg.base.collector import skip_the_last_collections
from lpcfg.base.errors import SchedulerError, TrainingError, WorkerError

ENOUGH = 1 << 20
"""Bytes of trees from which processes are worth their start, a second's work of one core."""
PATIENCE = 30.0
"""Seconds within which a scheduler has to answer and to have a worker."""
_QUIETLY = "ignore:resource_tracker"
Call = Callable[..., Any]


class Executor(ABC):
    """Workers, wherever they are. Leaving its `with` block ends them.

    Results of `map` and `reduce` may stay with the workers until `gather` asks for them. The other
    methods accept these as arguments.
    """

    workers: int
    """How many calls run at a time."""

    @abstractmethod
    def submit(self, call: Call, /, *given: Any) -> "Future[Any]":
        """Begin a call. Its result comes to this process.

        The future raises what the call raised, and WorkerError if a worker died over it.
        """

    def map(self, call: Call, items: Iterable[Any], *shared: Any) -> list[Any]:
        """Call a function with every item, and the shared arguments, in order."""
        return list(self._ordered(call, items, shared))

    def reduce(
        self,
        call: Callable[..., Sequence[Any]],
        items: Iterable[Any],
        merge: Callable[[Any, Any], Any],
        width: int,
        *shared: Any,
    ) -> list[Any]:
        """Call a function with every item, and merge each of its `width` results over all items."""
        del width

        def merged(left: Sequence[Any], right: Sequence[Any]) -> Sequence[Any]:
            futures = [self.submit(merge, *both) for both in zip(left, right, strict=True)]
            return [future.result() for future in futures]

        return list(reduce_tree(self._ordered(call, items, shared), merged))

    def gather(self, results: Sequence[Any]) -> list[Any]:
        """Bring results of `map` or `reduce` to this process."""
        return list(results)

    @abstractmethod
    def shutdown(self) -> None:
        """End the workers. Calls that have not begun are cancelled."""

    def _ordered(self, call: Call, items: Iterable[Any], shared: Sequence[Any]) -> Iterator[Any]:
        """Yield results in order.

        One item more is taken than there are workers: while the first result takes long, the others
        have work.
        """
        running: deque[Future[Any]] = deque()
        for item in items:
            running.append(self.submit(call, item, *shared))
            if len(running) > self.workers:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()


def reduce_tree(results: Iterable[Any], merge: Callable[[Any, Any], Any]) -> Any:
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


class Inline(Executor):
    """Makes every call at once, in the thread that submits it."""

    workers = 1

    def submit(self, call: Call, /, *given: Any) -> "Future[Any]":
        return _settled(Future(), partial(call, *given))

    def shutdown(self) -> None:
        """End nothing: there are no workers."""


def _settled(future: "Future[Any]", call: Callable[[], Any]) -> "Future[Any]":
    """Make a call, and give its result or its error to a future."""
    try:
        future.set_result(call())
    except BaseException as error:
        future.set_exception(error)
    return future


class Threads(Executor):
    """Threads of this process."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool = ThreadPoolExecutor(workers)

    def submit(self, call: Call, /, *given: Any) -> "Future[Any]":
        return self._pool.submit(call, *given)

    def shutdown(self) -> None:
        self._pool.shutdown(cancel_futures=True)


# Processes ----------------------------------------------------------------------------------------


class Processes(Executor):
    """Processes of this machine, started when calls need them. They end with this one.

    A process that dies over a call is replaced for the next one.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._calls: SimpleQueue[tuple[Future[Any], Call, Sequence[Any]] | None] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._all: list[_Process] = []

    def submit(self, call: Call, /, *given: Any) -> "Future[Any]":
        if len(self._all) < self.workers and not self._idle.acquire(blocking=False):
            self._all.append(_Process())
            threading.Thread(target=self._serve, args=(self._all[-1],), daemon=True).start()
        future: Future[Any] = Future()
        self._calls.put((future, call, given))
        return future

    def map(self, call: Call, items: Iterable[Any], *shared: Any) -> list[Any]:
        """Call a function with every item: this process helps, from the last item on."""
        given = list(items)
        futures = [self.submit(call, item, *shared) for item in given]
        own: list[Any] = []
        while len(own) < len(given) and futures[-1 - len(own)].cancel():
            own.append(call(given[-1 - len(own)], *shared))
        return [*(one.result() for one in futures[: len(given) - len(own)]), *reversed(own)]

    def shutdown(self) -> None:
        with suppress(Empty):
            while waiting := self._calls.get_nowait():
                waiting[0].cancel()
        for process in self._all:
            self._calls.put(None)
            process.end()

    def _serve(self, process: "_Process") -> None:
        """Give calls to one process, until there are no more."""
        while (waiting := self._calls.get()) is not None:
            future, call, given = waiting
            if future.set_running_or_notify_cancel():
                _settled(future, partial(process.run, call, given))
            self._idle.release()


class _Process:
    """One worker process and the pipe to it."""

    _starting = threading.Lock()
    """Held while a process starts, which changes what the whole interpreter sees."""

    def __init__(self) -> None:
        self._ended = False
        self._start()

    def _start(self) -> None:
        context = WithoutMain()
        with self._starting:
            if self._ended:
                raise EOFError
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(target=_work, args=(theirs,), daemon=True)
            self._process.start()
            theirs.close()

    def run(self, call: Call, given: Sequence[Any]) -> Any:
        """Make a call in the process."""
        try:
            if self._pipe.closed:
                self._start()
            self._pipe.send((call, given))
            result, error = self._pipe.recv()
        except (EOFError, ConnectionError) as error:
            raise self._lost() from error
        if error is not None:
            raise error
        return result

    def _lost(self) -> WorkerError:
        """Leave a dead process, and make the error of whoever waits for it."""
        self._process.join()
        self._pipe.close()
        return WorkerError(
            "expected processes that work to the end, got one that was killed, often for want of "
            "memory: use fewer workers"
        )

    def end(self) -> None:
        """Kill the process, whatever it does."""
        with self._starting:
            self._ended = True
        self._process.kill()
        self._process.join()  # it counts among our children when a stage is measured


def _work(pipe: Connection) -> None:
    """Make the calls that come through a pipe, until it closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends with its parent
    _end_with_parent()
    while True:
        try:
            answer = _answer(*pipe.recv())
        except (EOFError, ConnectionError):
            return
        with suppress(ConnectionError):  # the parent has ended
            try:
                pipe.send(answer)
            except Exception as error:  # of pickle: nothing was sent
                pipe.send((None, TypeError(f"expected a result that can be sent: {error!r}")))


def _answer(call: Call, given: Sequence[Any]) -> tuple[Any, Exception | None]:
    """Make a call. Return its result, or its error with the lines that led to it."""
    try:
        return call(*given), None
    except Exception as error:
        error.add_note("".join(traceback.format_exception(error)))
        return None, error


@contextmanager
def _tracked() -> Iterator[None]:
    """Start Python's tracker of semaphores, as every first process does, without its side effects.

    It lets Ctrl-C through where a command holds it back, and would write a warning when it removes
    the semaphores of a command that Ctrl-C has ended.
    """
    held_back = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    sys.warnoptions.append(_QUIETLY)
    try:
        yield
    finally:
        sys.warnoptions.remove(_QUIETLY)
        signal.pthread_sigmask(signal.SIG_SETMASK, held_back)


class _WithoutMain(SpawnProcess):
    """A process that does not run the caller's script again, which may lack a `__main__` guard.

    A spawned process imports the module `__main__` by its file; nothing that workers do is in it.
    """

    def start(self) -> None:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            with _tracked():
                resource_tracker.ensure_running()
            super().start()  # with Ctrl-C held back, as in the thread that starts it
        finally:
            sys.modules["__main__"] = main


class WithoutMain(SpawnContext):
    """Starts processes anew.

    A forked one would inherit the locks of threads (BLAS, numba) that the caller may run.
    """

    Process = _WithoutMain


def _end_with_parent() -> None:
    """End this process when its parent ends, even while it works."""
    parent = multiprocessing.parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
    atexit.register(skip_the_last_collections)


class Pool(Executor):
    """This process and up to `workers` − 1 beside it, which start once there is enough work.

    They start while this process still imports what it needs, and import the same meanwhile.
    Python's lock would let two threads of one process work no faster than one.
    """

    def __init__(self, workers: int) -> None:
        if workers < 1:
            raise TrainingError(f"expected at least one worker, got {workers}: give 1 or more")
        self.workers = workers
        self._beside: Executor = Threads(1) if workers > 1 else Inline()

    def start(self, size: int, module: str) -> None:
        """Let the first process import a module, if so many bytes of trees are enough."""
        if size >= ENOUGH and self.workers > 1 and not isinstance(self._beside, Processes):
            self._beside = Processes(self.workers - 1)
            self._beside.submit(import_module, module)

    def submit(self, call: Call, /, *given: Any) -> "Future[Any]":
        """Begin a call beside this thread: in a process, without any a thread, or at once."""
        return self._beside.submit(call, *given)

    def map(self, call: Call, items: Iterable[Any], *shared: Any) -> list[Any]:
        local = self._beside if isinstance(self._beside, Processes) else Inline()
        return local.map(call, items, *shared)

    def shutdown(self) -> None:
        self._beside.shutdown()


# Workers of a scheduler ---------------------------------------------------------------------------


class Dask(Executor):
    """The workers of the dask.distributed scheduler at an address, which come and go.

    If one dies, the scheduler gives its calls to others. The client submits the merges of two
    results right behind the second of them, and the scheduler prefers what was submitted first: few
    results wait to be merged.
    """

    def __init__(self, address: str) -> None:
        self._open = ExitStack()
        self.client = self._open.enter_context(_connected(address))
        self._kept: set[Any] = set()
        """Futures of calls that run: the scheduler forgets those that nobody keeps."""

    @property
    def workers(self) -> int:  # type: ignore[override]
        """The threads of all workers that are there now.

        Raise SchedulerError where the scheduler has been away for too long.
        """
        if self.client.status == "closed":
            raise _gone()
        try:
            return sum(self.client.nthreads().values())
        except (OSError, AttributeError):  # AttributeError: it looks for the scheduler
            return 0

    def submit(self, call: Call, /, *given: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        remote = self._submit(call, *given)
        self._kept.add(remote)
        remote.add_done_callback(partial(self._deliver, future))
        return future

    def _deliver(self, future: "Future[Any]", remote: Any) -> None:
        with suppress(KeyError):  # it has been shut down
            self._kept.remove(remote)
            _settled(future, partial(_explained, remote.result))

    def map(self, call: Call, items: Iterable[Any], *shared: Any) -> list[Any]:
        return [self._submit(call, item, *shared) for item in items]

    def reduce(
        self,
        call: Callable[..., Sequence[Any]],
        items: Iterable[Any],
        merge: Callable[[Any, Any], Any],
        width: int,
        *shared: Any,
    ) -> list[Any]:
        from distributed import wait

        def merged(left: Sequence[Any], right: Sequence[Any]) -> list[Any]:
            return [self._submit(merge, *both) for both in zip(left, right, strict=True)]

        def made() -> Iterator[list[Any]]:
            for item in items:
                whole = self._submit(call, item, *shared)
                yield [self._submit(getitem, whole, place) for place in range(width)]

        totals: list[Any] = reduce_tree(made(), merged)
        with self.client.as_current():
            _explained(partial(wait, totals))
        return totals

    def gather(self, results: Sequence[Any]) -> list[Any]:
        gathered: list[Any] = _explained(partial(self.client.gather, list(results)))
        return gathered

    def shutdown(self) -> None:
        """Leave the scheduler, which forgets what was not begun."""
        self._kept.clear()
        self._open.close()

    def _submit(self, call: Call, *given: Any) -> Any:
        key = f"{call.__name__}-{uuid4().hex}"
        return _explained(partial(self.client.submit, _single, call, *given, key=key))


def _single(call: Call, *given: Any) -> Any:
    """Make a call with one thread of BLAS, whose number would change the last bits."""
    with threadpool_limits(1):
        return call(*given)


def _explained(ask: Callable[[], Any]) -> Any:
    """Return what a call to the scheduler returns. Its errors become ours."""
    from distributed import KilledWorker
    from distributed.client import ClosedClientError
    from distributed.comm.core import CommClosedError

    try:
        return ask()
    except KilledWorker as error:
        raise WorkerError(
            f"expected workers that live until the work is done, got: {error}: see what ended them "
            "(memory?) and run again"
        ) from error
    except (CancelledError, ClosedClientError, CommClosedError) as error:
        raise _gone() from error


def _gone() -> SchedulerError:
    return SchedulerError(
        "expected a scheduler that lives until the work is done, got none: start it and run again"
    )


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    """Connect to the scheduler at an address, which must have at least one worker."""
    try:
        import dask
        from distributed import Client
        from distributed.comm.addressing import parse_address, parse_host_port
    except ImportError as error:
        raise WorkerError(
            "expected the package `distributed` to reach a scheduler, found none: "
            "pip install 'lpcfg[distributed]', or work without a scheduler"
        ) from error
    # A treebank is a large task, but is sent once.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "10GB"}):
        try:
            protocol, place = parse_address(address)
            if protocol == "tcp":
                parse_host_port(place)  # a client of what is no address would wait for a minute
            client = Client(  # type: ignore[no-untyped-call]
                address, timeout=PATIENCE, set_as_default=False
            )
        except (OSError, ValueError) as error:
            raise _missing(f"a scheduler at {address}", error) from error
        with client:
            try:
                client.wait_for_workers(1, timeout=PATIENCE)
            except OSError as error:
                raise _missing(f"a worker of the scheduler at {address}", error) from error
            yield client


def _missing(expected: str, error: Exception) -> WorkerError:
    return WorkerError(
        f"expected {expected}, got: {error}: start `dask scheduler`, and `dask worker ADDRESS` "
        "where lpcfg is installed"
    )
