"""Write results to stdout, and everything else to stderr."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lpcfg.base.cancel import FINISHING
from lpcfg.base.errors import InputError

_PAUSE = 60.0
"""Seconds after which a line says how far it is, where there is no terminal."""
Progress = Callable[[str, int, int], None]
"""Told what is being done, and how many of how many items are (of 0: nobody knows)."""


def result(text: str) -> None:
    """Print one line of a result at once, because the reader may wait for it or interrupt the next
    one.
    """
    with FINISHING:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def result_json(value: object) -> None:
    """Print one line of a result, as JSON."""
    result(json.dumps(value, ensure_ascii=False, allow_nan=False))


def answer(value: object, text: str, *, json: bool) -> None:
    """Print a result as JSON for scripts, or else as text for people."""
    result_json(value) if json else result(text)


def result_table(rows: Iterable[Sequence[str]]) -> None:
    """Print rows of text with aligned columns."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        result("  ".join(map(str.ljust, row, widths)).rstrip())


def note(text: str) -> None:
    """Write a line to stderr about what could not be done as asked."""
    sys.stderr.write(f"lpcfg: {text}\n")


def check_output(path: Path) -> None:
    """Refuse a file that cannot be written. Commands call this before long work."""
    if path.is_dir():
        problem = "which is a folder: add a file's name"
    elif not path.parent.is_dir():
        problem = f"but there is no folder {path.parent}: make it or choose another"
    elif not os.access(path if path.exists() else path.parent, os.W_OK):
        problem = "where this user may not write: choose another place"
    else:
        return
    raise InputError(f"expected a file to write, got {path}, {problem}")


@contextmanager
def progress() -> Iterator[Progress]:
    """Show bars on a terminal. Elsewhere, write a line when a stage begins, at every tenth of it,
    and when a minute has passed.
    """
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=Console(stderr=True)) as bars:
        tasks = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=None)
            bars.update(tasks[what], completed=done, total=total or None)

        yield show


class _Lines:
    """Writes progress as plain lines, with the time that is left at the pace so far."""

    def __init__(self) -> None:
        self._written: dict[str, tuple[int, float]] = {}
        self._begun: dict[str, tuple[int, float]] = {}

    def __call__(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        before, begun = self._begun.setdefault(what, (done, now))
        tenths = 10 * done // total if total else 0
        last, written = self._written.get(what, (-1, now))
        if last < tenths or now - written > _PAUSE:
            self._written[what] = tenths, now
            left = (now - begun) / (done - before) * (total - done) if done > before else 0
            after = f", {left:.0f} s left" if left >= 1 else ""
            sys.stderr.write(
                f"{what}: {done} of {total}{after}\n" if total and done else f"{what}\n"
            )
