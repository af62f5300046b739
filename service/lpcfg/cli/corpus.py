"""`lpcfg parse --out DIR`: a collection in, a folder of answers out."""

import sys
import time
from functools import partial
from typing import TYPE_CHECKING

import typer

from lpcfg.api.stores import chosen_store
from lpcfg.base.cores import cores
from lpcfg.base.errors import InputError
from lpcfg.base.options import Options
from lpcfg.cli.terminal import note, result, result_json
from lpcfg.predict.forms import Form

if TYPE_CHECKING:
    from lpcfg.predict.checkpoint import RunProgress
    from lpcfg.predict.run import Summary

_PAUSE = 10.0
"""Seconds between two lines of progress where there is no terminal."""


def parse_into(
    out: str,
    model: str,
    inputs: list[str],
    *,
    form: Form | None,
    output: str,
    options: Options,
    jobs: int | None,
    scheduler: str | None,
    columns: str,
    piece: int,
    mix: bool,
    store: str | None,
    json: bool,
) -> None:
    """Parse inputs into the folder `out`. Exit with code 1 if some of them cannot be read."""
    if jobs is not None and scheduler is not None:
        raise typer.BadParameter("the scheduler has workers: omit one", param_hint="--jobs")
    from lpcfg.base.executors import Dask, Processes
    from lpcfg.predict.run import find, run
    from lpcfg.predict.tasks import RunSpec

    text, _, id = columns.partition(",")
    place, more = chosen_store(store), {"columns": (text, id or None), "chunk": piece}
    try:
        spec = RunSpec.of(model, place, out, output, options.as_json(), **more)
    except InputError as error:
        raise typer.BadParameter(str(error)) from error
    documents = find(inputs, form, out)
    start = partial(Processes, jobs or cores()) if scheduler is None else partial(Dask, scheduler)
    shown = _Shown()
    summary = run(spec, documents, start, shown, mix=mix)
    shown.end()
    _tell(summary, json=json)


def _tell(summary: "Summary", *, json: bool) -> None:
    done = summary.progress
    if json:
        result_json(
            {
                "documents": done.documents,
                "skipped": done.skipped,
                "sentences": done.sentences,
                "failures": summary.failures,
            }
        )
    else:
        skipped = f", {done.skipped} were done before" if done.skipped else ""
        result(f"{done.documents} documents, {done.sentences} sentences{skipped}")
    if summary.failures:
        note(f"{summary.failures} inputs or parts of them could not be read: {summary.where}")
        raise typer.Exit(1)


class _Shown:
    """Progress: one line that changes on a terminal, a line now and then elsewhere."""

    def __init__(self) -> None:
        self._begun = self._last = time.monotonic()
        self._before: int | None = None
        self._on_terminal = sys.stderr.isatty()

    def __call__(self, progress: "RunProgress") -> None:
        now = time.monotonic()
        if self._before is None:
            self._begun, self._before = now, progress.done
        if not self._on_terminal and now - self._last < _PAUSE:
            return  # every line would be one more in a log
        self._last = now
        seconds = max(now - self._begun, 1e-3)
        share = progress.done / progress.total if progress.total else 1.0
        rate = (progress.done - self._before) / seconds
        left = f", {_duration((progress.total - progress.done) / rate)} left" if rate else ""
        documents = progress.documents + progress.skipped
        line = (
            f"{share:.1%}, {documents} documents, {progress.sentences / seconds:.0f} sentences/s"
            f"{left}"
        )
        sys.stderr.write(f"\r\x1b[K{line}" if self._on_terminal else f"{line}\n")
        sys.stderr.flush()

    def end(self) -> None:
        """Take the changing line away."""
        if self._on_terminal:
            sys.stderr.write("\r\x1b[K")


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
