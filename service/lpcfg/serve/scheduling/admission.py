"""Admission: let in only as much work as will soon be done, and from nobody more than a share.

The time for a sentence of n tokens grows faster than n, so waiting work is counted in estimated
seconds, not in requests. The estimate has the form of the engine's cost; its scale is learned from
the times measured here.

Requests are admitted by priority: what is refused in one says nothing of the others.

single   one sentence of usual length, or some short ones: done in a few milliseconds
larger   everything else that has one answer
batch    lines of /v1/batch, each a request of its own, as many as are read ahead
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from lpcfg.serve.http.problems import Refused

# Seconds for one sentence: overhead, per token, and per cube of tokens (the recursion's bound).
# Fitted to 0.5, 1.2, 5 and 100 ms at 10, 20, 40 and 120 tokens. Only the ratios matter, because
# the scale is learned.
_EACH, _LINEAR, _CUBIC = 1e-4, 4e-5, 5e-8
_CHARACTER = 5e-7  # seconds for a character of a token: .5 s for one of a megabyte
_CHARACTERS_PER_TOKEN = 4  # a little under the English average, so that costs are never too low
_LEARNING = 0.05  # weight of the newest batch in the scale: about 20 batches are remembered
_SCALES = (0.05, 50.0)
_USUAL = 25  # tokens of a sentence
_BYTES_PER_TOKEN = 8  # of JSON that lists tokens
_SINGLE = 0.025  # estimated seconds: a sentence of 75 tokens, or five of 40
_SURPLUS = 4  # times its limit that a priority may hold when many clients share it
_BATCH_AGAIN = 5.0  # seconds after which a batch may be tried again


def cost(tokens: float) -> float:
    """Estimate the seconds for one sentence, on the machine that the numbers above come from."""
    return _EACH + _LINEAR * tokens + _CUBIC * tokens**3


def cost_of_tokens(tokens: Sequence[str]) -> float:
    """Estimate the seconds for one sentence of these tokens."""
    return cost(len(tokens)) + _CHARACTER * sum(map(len, tokens))


def cost_of_text(text: str, longest: int) -> float:
    """Estimate the seconds for one sentence of raw text, none being longer than the limit."""
    return cost(min(len(text) / _CHARACTERS_PER_TOKEN, longest)) + _CHARACTER * len(text)


def tokens_of_text(text: str) -> int:
    """Estimate how many tokens a text has, which is at least one."""
    return max(len(text) // _CHARACTERS_PER_TOKEN, 1)


def cost_of_body(length: int) -> float:
    """Estimate the seconds for a body of so many bytes, as if all its sentences were usual ones."""
    return cost(_USUAL) * length / (_USUAL * _BYTES_PER_TOKEN)


class Priority(Enum):
    """Kinds of work that wait apart from each other."""

    __hash__ = object.__hash__  # Enum's own is Python, and a request looks up its priority 17 times

    SINGLE = "single"
    LARGER = "larger"
    BATCH = "batch"


def priority_of(estimate: float) -> Priority:
    """Return the priority for a request with this estimate."""
    return Priority.SINGLE if estimate <= _SINGLE else Priority.LARGER


@dataclass(eq=False, slots=True)
class Ticket:
    """A request that was let in, whose it is, and the estimated seconds of it that remain."""

    priority: Priority
    client: str
    cost: float


@dataclass(slots=True)
class _Load:
    """Requests that wait or are in progress, and the estimated seconds that remain of them."""

    requests: int = 0
    cost: float = 0.0

    def add(self, requests: int, cost: float) -> None:
        self.requests += requests
        self.cost = max(self.cost + cost, 0.0) if self.requests else 0.0


@dataclass
class Admission:
    """Counts the work that was let in and is not done. Use it on the event loop only."""

    threads: int
    most_requests: int
    """Requests of a priority that may wait, besides those in progress."""
    most_seconds: float
    most_batches: int = 8
    scale: float = 1.0
    """Seconds on this machine per estimated second."""
    refused: int = field(default=0)
    _loads: dict[Priority, _Load] = field(
        default_factory=lambda: {priority: _Load() for priority in Priority}
    )
    _clients: dict[tuple[Priority, str], _Load] = field(default_factory=dict)
    _sharing: dict[Priority, int] = field(default_factory=lambda: dict.fromkeys(Priority, 0))
    """How many clients have work in a priority."""
    _batches: dict[str, int] = field(default_factory=dict)

    @property
    def requests(self) -> int:
        """Requests that wait or are in progress, lines of batches among them."""
        return sum(one.requests for one in self._loads.values())

    @property
    def batches(self) -> int:
        """Batches in progress."""
        return sum(self._batches.values())

    @property
    def waiting_seconds(self) -> float:
        """Seconds until everything let in is done."""
        return self._seconds(sum(one.cost for one in self._loads.values()))

    def load(self, priority: Priority) -> tuple[int, float]:
        """Return the requests of a priority and the seconds of work that they are."""
        found = self._loads[priority]
        return found.requests, self._seconds(found.cost)

    def _seconds(self, estimate: float) -> float:
        return estimate * self.scale / self.threads

    def check(self, priority: Priority, client: str) -> None:
        """Raise Refused if no more of this client's may wait in this priority.

        An idle one accepts work of any size. Each of n clients may fill an n-th of a priority, so
        whoever comes finds room, even if it is full of others' work.
        """
        whole = self._loads[priority]
        if whole.requests <= self.threads:
            return
        own = self._clients.get((priority, client), _Load())
        clients = self._sharing[priority] + (own.requests == 0)
        if (own.requests and self._fills(own, 1 / clients)) or self._fills(whole, _SURPLUS):
            self.refused += 1
            number, seconds = whole.requests - self.threads, self._seconds(whole.cost)
            raise Refused(
                "overload",
                f"expected at most {self.most_requests} requests or {self.most_seconds:g} seconds "
                f"of work to wait, got {number} and {seconds:.2g}: try again after the time in "
                "the header Retry-After",
                retry_after=seconds,
            )

    def _fills(self, load: _Load, share: float) -> bool:
        if load.requests >= (self.threads + self.most_requests) * share:
            return True
        return self._seconds(load.cost) >= self.most_seconds * share

    def enter(self, priority: Priority, client: str, estimate: float) -> Ticket:
        """Count a request that was let in."""
        own = self._clients.get((priority, client))
        if own is None:
            own = self._clients[priority, client] = _Load()
            self._sharing[priority] += 1
        for load in (self._loads[priority], own):
            load.add(1, estimate)
        return Ticket(priority, client, estimate)

    def leave(self, ticket: Ticket) -> None:
        """Count a request that is done."""
        own = self._clients[ticket.priority, ticket.client]
        for load in (self._loads[ticket.priority], own):
            load.add(-1, -ticket.cost)
        if not own.requests:
            del self._clients[ticket.priority, ticket.client]
            self._sharing[ticket.priority] -= 1

    def worked(self, ticket: Ticket, estimate: float) -> None:
        """Take work with this estimate off what remains of a request."""
        self.correct(ticket, -min(estimate, ticket.cost))

    def correct(self, ticket: Ticket, difference: float) -> None:
        """Add to what remains of a request, after its cost turned out to differ by this much."""
        ticket.cost += difference
        for load in (self._loads[ticket.priority], self._clients[ticket.priority, ticket.client]):
            load.add(0, difference)

    def learn(self, estimate: float, seconds: float) -> None:
        """Learn from work with this estimate that took this many seconds."""
        if estimate > 0:
            low, high = _SCALES
            self.scale += _LEARNING * (min(max(seconds / estimate, low), high) - self.scale)

    # Batches --------------------------------------------------------------------------------------

    def check_batch(self, client: str) -> None:
        """Raise Refused if no more batches may begin. Half of them are the most for one client."""
        own, most = self._batches.get(client, 0), math.ceil(self.most_batches / 2)
        if own >= most or self.batches >= self.most_batches:
            self.refused += 1
            raise Refused(
                "overload",
                f"expected at most {self.most_batches} batches at once, and {most} of one client, "
                f"got {self.batches} and {own}: try again when one of them has ended",
                retry_after=_BATCH_AGAIN,
            )

    def enter_batch(self, client: str) -> None:
        """Count a batch that begins."""
        self._batches[client] = self._batches.get(client, 0) + 1

    def leave_batch(self, client: str) -> None:
        """Count a batch that has ended."""
        self._batches[client] -= 1
        if not self._batches[client]:
            del self._batches[client]
