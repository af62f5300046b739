"""Choose what a thread works on next: lanes share the time by weight, clients take turns in one.

A lane's clock runs with the seconds worked for it, the slower the greater its weight; the lane
whose clock is behind comes next. A lane that had nothing to do cannot save up time: its clock is
set to that of the lane served last.
"""

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from lpcfg.serve.scheduling.admission import Lane, Place

_WEIGHTS = {Lane.SINGLE: 4.0, Lane.LARGER: 2.0, Lane.BATCH: 1.0}


class Placed(Protocol):
    """Something that has a place among what was let in."""

    @property
    def place(self) -> Place:
        """The lane and the client."""


P = TypeVar("P", bound=Placed)


@dataclass(slots=True)
class _Waiting(Generic[P]):
    weight: float
    clock: float = 0.0
    clients: "OrderedDict[str, deque[P]]" = field(default_factory=OrderedDict)


class Lanes(Generic[P]):
    """Lines that wait for a thread. Use it under a lock."""

    def __init__(self) -> None:
        self._lanes: dict[Lane, _Waiting[Any]] = {
            lane: _Waiting(weight) for lane, weight in _WEIGHTS.items()
        }
        self._now = 0.0

    def add(self, line: P, *, first: bool = False) -> None:
        """Let a line wait behind those of its client; `first`: it comes next in its lane."""
        lane, client = self._lanes[line.place.lane], line.place.client
        if not lane.clients:
            lane.clock = max(lane.clock, self._now)
        waiting = lane.clients.setdefault(client, deque())
        if first:
            waiting.appendleft(line)
            lane.clients.move_to_end(client, last=False)
        else:
            waiting.append(line)

    def next(self, only: Lane | None = None) -> Lane | None:
        """Return the lane whose turn it is, among those where lines wait."""
        found = [
            (waiting.clock, lane.value, lane)
            for lane, waiting in self._lanes.items()
            if waiting.clients and only in (None, lane)
        ]
        return min(found)[2] if found else None

    def peek(self, lane: Lane) -> P | None:
        """Return the line whose turn it is in this lane."""
        clients = self._lanes[lane].clients
        return next(iter(clients.values()))[0] if clients else None

    def pop(self, lane: Lane) -> P:
        """Take the line whose turn it is in this lane. Its client's next comes after the others."""
        clients = self._lanes[lane].clients
        client, waiting = next(iter(clients.items()))
        line: P = waiting.popleft()
        if waiting:
            clients.move_to_end(client)
        else:
            del clients[client]
        return line

    def charge(self, lane: Lane, seconds: float) -> None:
        """Let the lane's clock run by work of this many seconds."""
        waiting = self._lanes[lane]
        self._now = max(self._now, waiting.clock)
        waiting.clock += seconds / waiting.weight
