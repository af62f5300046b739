"""Pause the garbage collector where very many objects are made, and none of them is garbage."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the garbage collector: building many trees is up to four times as fast without it.

    It would visit all objects again and again as their number grows, and find no garbage.
    """
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def skip_the_last_collections() -> None:
    """Let the process end without a visit to every object that it made, a tenth of a second."""
    gc.freeze()
