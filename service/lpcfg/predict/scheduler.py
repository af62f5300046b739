"""Workers of a dask.distributed scheduler, which read inputs and write outputs themselves.

Only names of files and counts pass through scheduler and coordinator. A task whose worker dies goes
to another one; tasks may so be done twice, and write the same file twice, each time whole.
"""

import threading
import time
from concurrent.futures import CancelledError
from contextlib import ExitStack
from queue import Empty, SimpleQueue
from typing import Any, cast

from distributed import Client, KilledWorker, WorkerPlugin, get_worker

from lpcfg.base.errors import InputError
from lpcfg.base.executors import _connected as connected
from lpcfg.predict.crew import LIVES, Watch, given_up
from lpcfg.predict.job import Job, Outcome, Task
from lpcfg.predict.ledger import Ledger
from lpcfg.predict.work import Worker

AHEAD = 2
"""Tasks handed out for each thread of the workers, so that none waits for its next one."""
ALONE = 600.0
"""Seconds without any worker after which a run ends: whoever starts workers has given up."""


class Cluster:
    """The workers of the scheduler at an address."""

    def __init__(self, job: Job, address: str) -> None:
        self._job = job
        self._done: SimpleQueue[Any] = SimpleQueue()
        self._open = ExitStack()
        self._client: Client = self._open.enter_context(connected(address))
        self._client.register_plugin(Loaded())

    def run(self, ledger: Ledger, watch: Watch, every: float) -> None:
        """Hand out tasks as long as there are any. Workers may come and go meanwhile."""
        running: dict[Any, tuple[Task, int]] = {}
        more, seen = True, time.monotonic()
        while more or running:
            threads = _threads(self._client)
            seen = time.monotonic() if threads else seen
            if time.monotonic() - seen > ALONE:
                raise InputError(
                    f"expected workers of the scheduler, got none for {ALONE:.0f} s: start some "
                    "and run again; nothing done is lost"
                )
            room = AHEAD * max(1, threads)
            while more and len(running) < room:
                task = ledger.next()
                more = task is not None
                if task is not None:
                    running[self._submit(task)] = task, 1
            if running:
                self._collect(ledger, running, every)
                more = True  # what was collected may have made new tasks
            watch()

    def _collect(
        self, ledger: Ledger, running: dict[Any, tuple[Task, int]], seconds: float
    ) -> None:
        """Wait a while for tasks, and record those that are done."""
        try:
            done = [self._done.get(timeout=seconds)]
        except Empty:
            return
        while not self._done.empty():
            done.append(self._done.get())
        for future in done:
            task, lives = running.pop(future)
            try:
                ledger.record(future.result())
            except KilledWorker:
                if lives < LIVES:
                    running[self._submit(task)] = task, lives + 1
                else:
                    ledger.record(given_up(task, self._job))
            except CancelledError as error:
                raise InputError(
                    "expected a scheduler that lives until the run ends, got none: start it and "
                    "run again; nothing done is lost"
                ) from error

    def _submit(self, task: Task) -> Any:
        future = self._client.submit(_do, self._job, task, pure=False)
        future.add_done_callback(self._done.put)  # type: ignore[no-untyped-call]
        return future

    def end(self) -> None:
        """Leave the scheduler, which forgets what was not begun."""
        self._open.close()


class Loaded(WorkerPlugin):
    """Keeps the model of the last job in a worker process."""

    name = "lpcfg-corpora"

    def setup(self, worker: object) -> None:
        """Begin without a model: it is loaded with the first task."""
        del worker
        self._lock = threading.Lock()
        self._worker: Worker | None = None

    def worker_of(self, job: Job) -> Worker:
        """Return what does the tasks of a job."""
        with self._lock:
            if self._worker is None or self._worker.job != job:
                self._worker = Worker(job)
            return self._worker


def _do(job: Job, task: Task) -> Outcome:
    return cast(Loaded, get_worker().plugins[Loaded.name]).worker_of(job).do(task)


def _threads(client: Client) -> int:
    """Count the threads of all workers that are there now."""
    return sum(client.nthreads().values())  # type: ignore[no-untyped-call]
