"""Note when the phases of a request's work began and ended, where somebody wants to know.

A thread that works for a request has its list of phases at hand; without one, nothing is noted.
"""

import threading
import time
from dataclasses import dataclass

MOST = 64
"""Phases that are kept of one request: the first of them, if it has many sentences."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of time, in nanoseconds of the system's clock."""

    name: str
    start: int
    end: int


class _Present(threading.local):
    phases: list[Phase] | None = None


_present = _Present()


class noted_in:
    """Note the phases inside in this list, if there is one."""

    __slots__ = ("_phases",)

    def __init__(self, phases: list[Phase] | None) -> None:
        self._phases = phases

    def __enter__(self) -> None:
        _present.phases = self._phases

    def __exit__(self, *_: object) -> None:
        _present.phases = None


def note(phases: list[Phase] | None, name: str, seconds: float) -> None:
    """Note a phase that has taken so many seconds until now, while there is room."""
    if phases is not None and len(phases) < MOST:
        now = time.time_ns()
        phases.append(Phase(name, now - int(1e9 * seconds), now))


class phase:
    """Note what is done inside as a phase."""

    __slots__ = ("_name", "_started")

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        self._started = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        note(_present.phases, self._name, time.perf_counter() - self._started)
