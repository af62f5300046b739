"""Start worker processes that end with this one, however it ends."""

import atexit
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.context import SpawnContext, SpawnProcess
from types import ModuleType

from lpcfg.base.collector import skip_the_last_collections

_QUIETLY = "ignore:resource_tracker"


def processes(count: int) -> ProcessPoolExecutor:
    """Start worker processes that end with this one, even if it is killed.

    The start method is not "fork", because the caller may run threads (BLAS, numba) whose locks a
    forked child inherits. It is not "forkserver", because its workers are not counted among our
    children when a stage is measured.
    """
    with _tracked():
        return ProcessPoolExecutor(count, WithoutMain(), initializer=end_with_parent)


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


class _Worker(SpawnProcess):
    """A process that does not run the caller's script again, which may lack a `__main__` guard.

    A spawned process imports the module `__main__` by its file; nothing that workers do is in it.
    """

    def start(self) -> None:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            with _tracked():
                super().start()
        finally:
            sys.modules["__main__"] = main


class WithoutMain(SpawnContext):
    Process = _Worker


def end_with_parent() -> None:
    """End this worker when its parent ends.

    The pool's own workers would wait for work for ever, because each of them holds the writing end
    of the pipe too.
    """
    parent = multiprocessing.parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
    atexit.register(skip_the_last_collections)
