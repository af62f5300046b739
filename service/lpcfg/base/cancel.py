"""Stop long work at a deadline, when its result is no longer wanted, or at Ctrl-C.

Python raises KeyboardInterrupt in whatever bytecode runs next. Compiled kernels run some while they
turn arrays into Python objects, do not expect it to fail, and crash: 1 of 10 interrupted commands
segfaulted and 6 printed a SystemError. So a command blocks the signal for all its threads, and
one thread waits for it and ends the process (lpcfg.cli.interrupts).
"""

import signal
import threading
import time
from dataclasses import dataclass, field

from lpcfg.base.errors import DeadlineError, Stopped

FINISHING = threading.Lock()
"""Held while a file or a line is put in its place: an interrupt ends a command before or after."""


def block_interrupts() -> bool:
    """Keep Ctrl-C from this thread and those it starts; False where interrupts are ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell's background jobs do
        return False
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    return True


@dataclass(slots=True)
class Stop:
    """A signal that long work checks between its steps. `check` raises when the work should end."""

    deadline: float | None = None
    """A time on the clock of time.monotonic."""
    cancelled: bytearray = field(default_factory=lambda: bytearray(1))
    """One byte, in memory that compiled code can read too."""

    @classmethod
    def after(cls, seconds: float) -> "Stop":
        """Create a signal that stops the work so many seconds from now."""
        return cls(deadline=time.monotonic() + seconds)

    def cancel(self) -> None:
        """Stop the work. Any thread may call this."""
        self.cancelled[0] = 1

    def check(self) -> None:
        """Raise Stopped once cancelled, and DeadlineError once the deadline has passed."""
        if self.cancelled[0]:
            raise Stopped("the work was cancelled before it was done: its caller stopped waiting")
        if self.deadline is not None and time.monotonic() >= self.deadline:
            raise DeadlineError(
                "the deadline passed before the work was done: send less at once or allow more time"
            )
