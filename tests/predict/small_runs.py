"""A store with the small model, and runs in this process."""

import json
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from lpcfg.base.executors import Executor, Inline
from lpcfg.kinds.constituency.model import to_bundle
from lpcfg.predict.forms import Form
from lpcfg.predict.run import Summary, find, run
from lpcfg.predict.tasks import RunSpec, Task
from lpcfg.store.versions import publish
from tests import small_models

WORDS = "Peter saw the man with the telescope in the old park."


def published(folder: Path) -> str:
    """Publish the small model as small@1, and return its store."""
    model = small_models.counts()
    publish(folder, "small", to_bundle(model, facts={}, card="# Small\n"))
    return str(folder)


def spec(store: str, out: str | Path, model: str = "small", **more: Any) -> RunSpec:
    """Describe a run of the small model."""
    return RunSpec.of(model, store, out, **more)


class Noting(Inline):
    """Does every task in this process, and keeps them; `most` ends it early, as a kill would."""

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self.tasks: list[Task] = []

    def submit(self, call: Callable[..., Any], /, *given: Any) -> "Future[Any]":
        if len(given) > 1:  # the other call loads the model
            if len(self.tasks) == self._most:
                raise Killed
            self.tasks.append(given[-1])
        return super().submit(call, *given)


class Killed(Exception):
    """The run ends here."""


def predict(
    spec: RunSpec, *sources: str | Path, form: Form | None = None, mix: bool = False
) -> tuple[Summary, list[Task]]:
    """Run in this process. Return the summary and the tasks it took."""
    executor = Noting()
    return run_by(spec, lambda: executor, *sources, form=form, mix=mix), executor.tasks


def run_by(
    spec: RunSpec,
    start: Callable[[], Executor],
    *sources: str | Path,
    form: Form | None = None,
    mix: bool = False,
    show: Callable[[Any], None] = lambda _: None,
) -> Summary:
    """Run by another executor."""
    return run(spec, find(map(str, sources), form, spec.out), start, show, mix=mix)


def rows(path: Path) -> list[dict[str, Any]]:
    """Read JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
