"""Stop long work: by a deadline, or because nobody waits for it any more."""

import time
from dataclasses import dataclass, field

from lpcfg.errors import DeadlineError, Stopped


@dataclass(slots=True)
class Stop:
    """Asked between steps of long work: raises when the work is no longer wanted."""

    deadline: float | None = None
    """On the clock of time.monotonic."""
    cancelled: bytearray = field(default_factory=lambda: bytearray(1))
    """One byte, in memory that compiled code looks at too."""

    @classmethod
    def after(cls, seconds: float) -> "Stop":
        """Stops work this long from now."""
        return cls(deadline=time.monotonic() + seconds)

    def cancel(self) -> None:
        """Stops the work, from any thread."""
        self.cancelled[0] = 1

    def check(self) -> None:
        """Raises Stopped once cancelled, DeadlineError once the deadline has passed."""
        if self.cancelled[0]:
            raise Stopped("the work was cancelled before it was done: nobody waits for it any more")
        if self.deadline is not None and time.monotonic() >= self.deadline:
            raise DeadlineError(
                "the deadline passed before the work was done: send less at once or allow more time"
            )
