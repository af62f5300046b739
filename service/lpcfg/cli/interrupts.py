"""End a command at once on Ctrl-C, with exit code 130, without a message, and with nothing
half-written.

A thread waits for the signal, so a kernel that runs for seconds does not delay the end, and no
Python code is interrupted where it does not expect it. Worker processes inherit the blocked signal
and end when this process does.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable

from lpcfg.base.cancel import FINISHING, block_interrupts

INTERRUPTED = 130
"""The exit code that shells give a command ended by Ctrl-C: 128 + SIGINT."""
_PATIENCE = 5.0
"""Seconds that a file under way may take; a reader who stopped reading blocks a line for ever."""
_SHOW_CURSOR = b"\r\x1b[?25h\x1b[K"  # progress bars hide it


class _Gentle:
    """Holds a command's own function, which is called at the first interrupt instead of ending the
    process.
    """

    end: Callable[[], None] | None = None
    happened = False


def watch() -> None:
    """End this process when Ctrl-C comes. The main thread calls this before it starts any other
    thread.
    """
    if block_interrupts():
        threading.Thread(target=_wait, daemon=True, name="interrupts").start()


def end_gently(end: Callable[[], None]) -> None:
    """Call this function at the first interrupt, in a thread. The second interrupt ends the process
    as usual.
    """
    _Gentle.end = end


def happened() -> bool:
    """Return True if a gentle end was asked for."""
    return _Gentle.happened


def _wait() -> None:
    signal.sigwait({signal.SIGINT})
    if _Gentle.end is not None:
        _Gentle.happened = True
        _Gentle.end()
        signal.sigwait({signal.SIGINT})
    give_up = time.monotonic() + _PATIENCE
    while not FINISHING.acquire(timeout=0.02):
        if time.monotonic() > give_up or signal.SIGINT in signal.sigpending():
            break
    if sys.stderr.isatty():
        os.write(sys.stderr.fileno(), _SHOW_CURSOR)
    os._exit(INTERRUPTED)  # without unwinding, which crashes in kernels: see lpcfg.base.cancel
