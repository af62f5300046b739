"""Stop long work at a deadline, or when its result is no longer wanted."""

import time
from dataclasses import dataclass, field

from lpcfg.errors import DeadlineError, Stopped


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
