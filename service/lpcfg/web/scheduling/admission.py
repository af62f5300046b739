"""Admission: let in only as much work as will soon be done.

The time for a sentence of n tokens grows faster than n, so waiting work is counted in estimated
seconds, not in requests. The estimate has the form of the engine's cost; its scale is learned from
the times measured here.
"""

from dataclasses import dataclass, field

from lpcfg.web.http.problems import Refused

# Seconds for one sentence: overhead, per token, and per cube of tokens (the recursion's bound).
# Fitted to 0.5, 1.2, 5 and 100 ms at 10, 20, 40 and 120 tokens. Only the ratios matter, because
# the scale is learned.
_EACH, _LINEAR, _CUBIC = 1e-4, 4e-5, 5e-8
_CHARACTERS_PER_TOKEN = 4  # a little under the English average, so that costs are never too low
_LEARNING = 0.05  # weight of the newest batch in the scale: about 20 batches are remembered
_SCALES = (0.05, 50.0)


def cost(tokens: float) -> float:
    """Estimate the seconds for one sentence, on the machine that the numbers above come from."""
    return _EACH + _LINEAR * tokens + _CUBIC * tokens**3


def cost_of_text(text: str, longest: int) -> float:
    """Estimate the seconds for one sentence of raw text, none being longer than the limit."""
    return cost(min(len(text) / _CHARACTERS_PER_TOKEN, longest))


@dataclass
class Admission:
    """Counts the work that was let in and is not done. Use it on the event loop only."""

    threads: int
    most_requests: int
    """Requests that may wait, besides those in progress."""
    most_seconds: float
    requests: int = 0
    cost: float = 0.0
    scale: float = 1.0
    """Seconds on this machine per estimated second."""
    refused: int = field(default=0)

    @property
    def waiting_seconds(self) -> float:
        """How long a request let in now would wait, if requests were served one after the other."""
        return self.cost * self.scale / self.threads

    def check(self) -> None:
        """Raise Refused if no more may wait. An idle service accepts work of any size."""
        if self.requests <= self.threads:
            return
        wait = self.waiting_seconds
        if self.requests - self.threads >= self.most_requests or wait >= self.most_seconds:
            self.refused += 1
            raise Refused(
                "overload",
                f"expected at most {self.most_requests} requests or {self.most_seconds:g} seconds "
                f"of work to wait, got {self.requests - self.threads} and {wait:.2g}: try again "
                "after the time in the header Retry-After",
                retry_after=wait,
            )

    def enter(self, estimate: float) -> None:
        """Count a request that was let in."""
        self.requests += 1
        self.cost += estimate

    def leave(self) -> None:
        """Count a request that is done."""
        self.requests -= 1
        if not self.requests:
            self.cost = 0.0  # removes what rounding left

    def worked(self, estimate: float, seconds: float) -> None:
        """Learn from work with this estimate that took this many seconds."""
        if estimate > 0:
            self.cost = max(self.cost - estimate, 0.0)
            low, high = _SCALES
            self.scale += _LEARNING * (min(max(seconds / estimate, low), high) - self.scale)

    def correct(self, difference: float) -> None:
        """Add to the waiting work, after its cost turned out to differ by this much."""
        self.cost = max(self.cost + difference, 0.0)
