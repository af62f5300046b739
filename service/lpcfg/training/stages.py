"""Measure each stage of training: seconds, CPU seconds, memory and items."""

import os
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

Progress = Callable[[str, int, int], None]
"""Called with a stage's name, the items done, and the number of items (0 if unknown)."""

MEGABYTE = 1_000_000
# getrusage counts kilobytes, except on a Mac.
_RSS_UNIT = 1 if os.uname().sysname == "Darwin" else 1024


def silent(stage: str, done: int, total: int) -> None:
    """Ignore progress."""


@dataclass(frozen=True)
class StageRecord:
    """One finished stage.

    CPU seconds are those of the process that does it (all threads) and of its worker processes that
    ended; stages that run in it at the same time count each other's. Peaks are the highest resident
    memory so far: of this process, and of its largest worker.
    """

    name: str
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    worker_peak_bytes: int
    items: int


class Stage:
    """A stage in progress. The code inside it counts its items."""

    def __init__(self, name: str, total: int, progress: Progress) -> None:
        self.name = name
        self.total = total
        self.items = 0
        self._progress = progress
        progress(name, 0, total)

    def advance(self, items: int = 1) -> None:
        self.items += items
        self._progress(self.name, self.items, self.total)

    def follow(self, what: str, done: int, total: int) -> None:
        """Show the progress that the only work of this stage reports itself."""
        del what, total
        self.advance(done - self.items)


class Stages:
    """The stages of one training, in the order they ended."""

    def __init__(self, progress: Progress = silent, prefix: str = "") -> None:
        self.records: list[StageRecord] = []
        self._progress = progress
        self._prefix = prefix

    def under(self, prefix: str) -> "Stages":
        """Return the same record, for stages whose names begin with a prefix."""
        part = Stages(self._progress, f"{self._prefix}{prefix} ")
        part.records = self.records
        return part

    def apart(self) -> "Stages":
        """Return a separate record with the same names, without progress."""
        return Stages(prefix=self._prefix)

    @contextmanager
    def stage(self, name: str, total: int = 0) -> Iterator[Stage]:
        """Measure the code inside. A stage that fails leaves no record."""
        stage = Stage(self._prefix + name, total, self._progress)
        seconds, cpu = time.perf_counter(), _cpu_seconds()
        yield stage
        own, workers = _usage()
        self.records.append(
            StageRecord(
                name=stage.name,
                seconds=time.perf_counter() - seconds,
                cpu_seconds=_cpu_seconds() - cpu,
                peak_bytes=own.ru_maxrss * _RSS_UNIT,
                worker_peak_bytes=workers.ru_maxrss * _RSS_UNIT,
                items=stage.items,
            )
        )


def _usage() -> tuple[resource.struct_rusage, resource.struct_rusage]:
    return resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)


def _cpu_seconds() -> float:
    return sum(usage.ru_utime + usage.ru_stime for usage in _usage())


def stage_table(records: Sequence[StageRecord]) -> str:
    """Write stages as a text table, with their sum below."""
    rows: list[tuple[str, ...]] = [("stage", "seconds", "CPU s", "items", "peak MB", "worker MB")]
    for record in records:
        peaks = (record.peak_bytes / MEGABYTE, record.worker_peak_bytes / MEGABYTE)
        rows.append(
            (
                record.name,
                f"{record.seconds:.2f}",
                f"{record.cpu_seconds:.2f}",
                str(record.items) if record.items else "",
                *(f"{peak:.0f}" for peak in peaks),
            )
        )
    seconds, cpu = (
        sum(t) for t in zip(*((r.seconds, r.cpu_seconds) for r in records), strict=True)
    )
    rows.append(("all", f"{seconds:.2f}", f"{cpu:.2f}", "", "", ""))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
        for row in rows
    )
