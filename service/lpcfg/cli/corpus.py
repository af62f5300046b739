"""`lpcfg parse --out DIR`: a collection in, a folder of answers out."""

from collections.abc import Sequence
from functools import partial

import typer

from lpcfg.base.cores import cores
from lpcfg.base.executors import Dask, Processes
from lpcfg.cli.terminal import note, progress, result, result_json
from lpcfg.predict.checkpoint import RunProgress
from lpcfg.predict.forms import Form
from lpcfg.predict.run import Summary, find, run
from lpcfg.predict.tasks import RunSpec


def answer_into(
    spec: RunSpec,
    inputs: Sequence[str],
    form: Form | None,
    jobs: int | None,
    scheduler: str | None,
    *,
    mix: bool,
    json: bool,
) -> None:
    """Answer the sentences of inputs. Exit with code 1 if some of them cannot be read."""
    if jobs is not None and scheduler is not None:
        raise typer.BadParameter("the scheduler has workers: omit one", param_hint="--jobs")
    documents = find(inputs, form, spec.out)
    start = partial(Processes, jobs or cores()) if scheduler is None else partial(Dask, scheduler)
    with progress() as show:

        def on_progress(now: RunProgress) -> None:
            show("KB of text", now.done >> 10, now.total >> 10)

        summary = run(spec, documents, start, on_progress, mix=mix)
    _tell(summary, json=json)


def _tell(summary: Summary, *, json: bool) -> None:
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
