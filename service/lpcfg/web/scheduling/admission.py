"""Who may come in: only as much work waits as is soon done.

A sentence of n tokens takes time that grows faster than n, so what waits is counted in estimated
seconds, not in requests. The estimate's shape is that of the engine; its scale is learned from
what the work really takes here.
"""

from dataclasses import dataclass, field

from lpcfg.web.http.problems import Refused

# Seconds for one sentence: overhead, per token, and per cube of tokens (the recursion's bound).
# Fitted to 0.5, 1.2, 5 and 100 ms at 10, 20, 40 and 120 tokens; only ratios matter, the scale is
# learned.
_EACH, _LINEAR, _CUBIC = 1e-4, 4e-5, 5e-8
_CHARACTERS_PER_TOKEN = 4  # of raw text, a little under the English average, so never too cheap
_LEARNING = 0.05  # weight of the newest batch in the scale: about 20 batches are remembered
_SCALES = (0.05, 50.0)


def cost(tokens: float) -> float:
    """Estimated seconds for one sentence, on the machine the numbers above were measured on."""
    return _EACH + _LINEAR * tokens + _CUBIC * tokens**3


def cost_of_text(text: str, longest: int) -> float:
    """… for one sentence of raw text; none is longer than the limit."""
    return cost(min(len(text) / _CHARACTERS_PER_TOKEN, longest))


@dataclass
class Admission:
    """Counts what was let in and is not done. Used on the event loop only."""

    threads: int
    most_requests: int
    """Requests that may wait beyond those that are worked on."""
    most_seconds: float
    requests: int = 0
    cost: float = 0.0
    scale: float = 1.0
    """Seconds here per estimated second."""
    refused: int = field(default=0)

    @property
    def waiting_seconds(self) -> float:
        """How long a request let in now would wait for its turn, if turns were not shared."""
        return self.cost * self.scale / self.threads

    def check(self) -> None:
        """Raises Refused where nothing more may wait. An idle service takes work of any size."""
        if self.requests <= self.threads:
            return
        wait = self.waiting_seconds
        if self.requests - self.threads >= self.most_requests or wait >= self.most_seconds:
            self.refused += 1
            raise Refused(
                "overload",
                f"expected at most {self.most_requests} requests or {self.most_seconds:g} seconds "
                f"of work to wait, got {self.requests - self.threads} and {wait:.2g}: come back "
                "when the header Retry-After says",
                retry_after=wait,
            )

    def enter(self, estimate: float) -> None:
        """A request is let in."""
        self.requests += 1
        self.cost += estimate

    def leave(self) -> None:
        """A request is done."""
        self.requests -= 1
        if not self.requests:
            self.cost = 0.0  # what rounding left

    def worked(self, estimate: float, seconds: float) -> None:
        """Work estimated at so much took this long."""
        if estimate > 0:
            self.cost = max(self.cost - estimate, 0.0)
            low, high = _SCALES
            self.scale += _LEARNING * (min(max(seconds / estimate, low), high) - self.scale)

    def correct(self, difference: float) -> None:
        """What was let in turns out to cost this much more, or less."""
        self.cost = max(self.cost + difference, 0.0)
