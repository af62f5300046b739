"""A store with the small model, and runs in this process."""

import json
from pathlib import Path
from typing import Any

from lpcfg.kinds.constituency.model import to_bundle
from lpcfg.predict.crew import Watch
from lpcfg.predict.forms import Form, Output
from lpcfg.predict.job import Job, Task
from lpcfg.predict.ledger import Ledger
from lpcfg.predict.run import Summary, find, run
from lpcfg.predict.work import Worker
from lpcfg.store.versions import publish
from tests import small_models

WORDS = "Peter saw the man with the telescope in the old park."


def published(folder: Path) -> str:
    """Publish the small model as small@1, and return its store."""
    model = small_models.counts()
    publish(folder, "small", to_bundle(model, facts={}, card="# Small\n"))
    return str(folder)


def job(store: str, out: str | Path, **options: Any) -> Job:
    """Make a job of the small model."""
    from lpcfg.store.versions import resolve

    reference = resolve("small", store)
    given = {"output": Output.JSON, **options}
    return Job(out=str(out), model="small@1", store=store, hash=reference.hash, **given)


class Inline:
    """Does every task in this process, and keeps them; `most` ends it early, as a kill would."""

    def __init__(self, job: Job, most: int | None = None) -> None:
        self._worker = Worker(job)
        self._most = most
        self.tasks: list[Task] = []

    def run(self, ledger: Ledger, watch: Watch, every: float) -> None:
        assert every > 0
        while (task := ledger.next()) is not None:
            if len(self.tasks) == self._most:
                raise Killed
            self.tasks.append(task)
            ledger.record(self._worker.do(task))
            watch()

    def end(self) -> None:
        """End nothing: there are no processes."""


class Killed(Exception):
    """The run ends here."""


def parse(
    job: Job, *sources: str | Path, form: Form | None = None, mix: bool = False
) -> tuple[Summary, list[Task]]:
    """Run a job in this process. Return its summary and the tasks it took."""
    crews: list[Inline] = []

    def hire(job: Job) -> Inline:
        crews.append(Inline(job))
        return crews[0]

    documents = find(map(str, sources), form, job.out)
    return run(job, documents, hire, lambda _: None, mix=mix), crews[0].tasks


def rows(path: Path) -> list[dict[str, Any]]:
    """Read JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
