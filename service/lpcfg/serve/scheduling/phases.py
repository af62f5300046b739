"""Note when the phases of a request's work began and ended, where somebody wants to know.

A thread that works for a request has its list of phases at hand; without one, nothing is noted.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
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


_NOTHING = nullcontext()


def noted_in(phases: list[Phase] | None) -> AbstractContextManager[None]:
    """Note the phases inside in this list, if there is one."""
    return _NOTHING if phases is None else _noting_in(phases)


@contextmanager
def _noting_in(phases: list[Phase]) -> Iterator[None]:
    _present.phases = phases
    try:
        yield
    finally:
        _present.phases = None


def note(phases: list[Phase] | None, name: str, seconds: float) -> None:
    """Note a phase that has taken so many seconds until now, while there is room."""
    if phases is not None and len(phases) < MOST:
        now = time.time_ns()
        phases.append(Phase(name, now - int(1e9 * seconds), now))


def phase(name: str) -> AbstractContextManager[None]:
    """Note what is done inside as a phase, if somebody wants to know."""
    return _NOTHING if _present.phases is None else _noting(name, _present.phases)


@contextmanager
def _noting(name: str, phases: list[Phase]) -> Iterator[None]:
    started = time.perf_counter()
    try:
        yield
    finally:
        note(phases, name, time.perf_counter() - started)
