"""Tasks are done once, whoever dies over them; what kills everybody is set aside."""

import errno
import gzip
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from lpcfg.base.errors import InputError, SchedulerError, StoreError
from lpcfg.base.executors import Executor, Inline, Processes, Threads
from lpcfg.base.files import RemoteFolder
from lpcfg.predict import checkpoint, engine, output, worker
from lpcfg.predict.checkpoint import CollectionCheckpoint
from lpcfg.predict.engine import ATTEMPTS, Checkpoint, complete
from lpcfg.predict.run import find, run
from lpcfg.predict.tasks import Join, PredictChunk, PredictDocuments, RunSpec, Task
from lpcfg.predict.worker import do
from tests.predict.small_runs import WORDS, Killed, predict, published, rows, run_by, spec


class Numbers(Checkpoint[int, int]):
    """Hands out numbers, and keeps their results and how often they were begun."""

    def __init__(self, most: int) -> None:
        self.left = list(range(most))
        self.begun: Counter[int] = Counter()
        self.results: dict[int, int] = {}
        self.set_aside: dict[int, str] = {}

    def next(self, *, idle: bool) -> int | None:
        del idle
        if not self.left:
            return None
        self.begun[self.left[0]] += 1
        return self.left.pop(0)

    def done(self, task: int, result: int) -> None:
        assert task not in self.results
        self.results[task] = result

    def failed(self, task: int, error: BaseException) -> None:
        if isinstance(error, StoreError):
            raise error
        if self.begun[task] < ATTEMPTS:
            self.left.append(task)
        else:
            self.set_aside[task] = repr(error)


def _silent() -> None:
    """Watch nothing."""


def times(factor: int, number: int) -> int:
    return factor * number


@pytest.mark.parametrize("start", [Inline, partial(Threads, 3), partial(Processes, 2)])
def test_every_task_is_done_once(start: Callable[[], Executor]) -> None:
    numbers = Numbers(20)
    with start() as executor:
        complete(numbers, executor, times, 3, watch=_silent)
    assert numbers.results == {k: 3 * k for k in range(20)}
    assert set(numbers.begun.values()) == {1}


def die_over(victim: int, number: int) -> int:
    if number == victim:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_a_task_that_kills_its_processes_is_set_aside() -> None:
    numbers = Numbers(8)
    with Processes(2) as executor:
        complete(numbers, executor, die_over, 5, watch=_silent)
    assert set(numbers.results) == {*range(8)} - {5}
    assert numbers.begun[5] == ATTEMPTS
    assert numbers.set_aside[5].startswith("WorkerError")


def test_an_error_that_nobody_expects_sets_its_task_aside() -> None:
    numbers = Numbers(8)
    complete(numbers, Inline(), lambda number: 1 // (number - 5), watch=_silent)
    assert set(numbers.results) == {*range(8)} - {5}
    assert numbers.set_aside == {5: repr(ZeroDivisionError("integer division or modulo by zero"))}


def test_an_error_that_the_checkpoint_raises_ends_the_run() -> None:
    def fail(_: int) -> int:
        raise StoreError("no model")

    with pytest.raises(StoreError, match="no model"):
        complete(Numbers(2), Inline(), fail, watch=_silent)


def test_few_tasks_are_handed_out_ahead() -> None:
    numbers, most = Numbers(40), []

    def work(number: int) -> int:
        most.append(number - len(numbers.results))
        time.sleep(0.001)
        return number

    with Threads(3) as executor:
        complete(numbers, executor, work, watch=_silent)
    assert max(most) <= engine.AHEAD * 3


def test_the_run_is_watched_while_a_task_takes_long() -> None:
    seen: list[float] = []
    with Threads(1) as executor:
        complete(
            Numbers(1),
            executor,
            lambda number: time.sleep(0.3) or number,
            watch=lambda: seen.append(time.monotonic()),
            every=0.05,
        )
    assert len(seen) >= 3


# Collections --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    return published(tmp_path_factory.mktemp("store"))


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """Write twelve documents, of which one is long, and one deadly."""
    folder = tmp_path / "texts"
    folder.mkdir()
    for number in range(10):
        (folder / f"{number}.txt").write_text(f"{WORDS} It slept {number} times.")
    (folder / "deadly.txt").write_text(f"{WORDS} It slept 99 times.")
    (folder / "long.txt").write_text("\n\n".join(f"{WORDS} {n} dogs slept." for n in range(20)))
    return folder


def names_of(task: Task) -> list[str]:
    one = isinstance(task, PredictDocuments)
    return [each.name for each in task.documents] if one else [task.document.name]  # type: ignore[union-attr]


def deadly(spec: RunSpec, task: Task) -> Any:
    """Do a task, but for one document or one chunk, over which the process dies."""
    if "deadly.txt" in names_of(task) or (isinstance(task, PredictChunk) and task.chunk.index == 3):
        os.kill(os.getpid(), signal.SIGKILL)
    return do(spec, task)


def outputs(out: Path) -> Counter[str]:
    return Counter(row["id"] for path in (out / "trees").iterdir() for row in rows(path))


def test_documents_that_kill_their_workers_are_failures(
    store: str, texts: Path, tmp_path: Path
) -> None:
    asked = spec(store, tmp_path / "out", chunk=300)
    told = CollectionCheckpoint(asked, asked.folder(), find([str(texts)], None, asked.out))
    with Processes(2) as executor:
        complete(told, executor, deadly, asked, watch=_silent)
    assert {record.name: one.reason for record, one in told.failures()} == dict.fromkeys(
        ("deadly.txt", "long.txt"), "3 processes died over it: is there enough memory?"
    )
    found = outputs(tmp_path / "out")
    assert len(found) == 20
    assert set(found.values()) == {1}


class Together(Inline):
    """Ends the process and all its workers when a deadly document is handed out."""

    workers = 2

    def __init__(self) -> None:
        self._held: list[tuple[Future[Any], Callable[[], Future[Any]], Task]] = []

    def submit(self, call: Callable[..., Any], /, *given: Any) -> "Future[Any]":
        if len(given) == 1:
            return super().submit(call, *given)
        run: Callable[..., Future[Any]] = super().submit
        self._held.append((Future(), partial(run, call, *given), given[-1]))
        return self._held[-1][0]

    def work(self) -> None:
        """Do what was handed out, all of it under way at the same time."""
        if any("deadly.txt" in names_of(task) for _, _, task in self._held):
            raise Killed
        for future, start, _ in self._held:
            future.set_result(start().result())
        self._held.clear()


def test_a_document_that_ends_the_run_is_given_up_alone(
    store: str, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that was under way with it has been there as often, and is done all the same."""
    asked, ends = spec(store, tmp_path / "out", chunk=300), 0
    while True:
        executor = Together()

        def wait(running: Any, *_: object, executor: Together = executor) -> Any:
            executor.work()
            return type("", (), {"done": list(running)})

        monkeypatch.setattr(engine, "wait", wait)
        try:
            summary = run_by(asked, lambda executor=executor: executor, texts)
        except Killed:
            ends += 1
        else:
            break
    assert ends == ATTEMPTS
    assert summary.failures == 1
    (told,) = rows(tmp_path / "out" / "failures.jsonl")
    assert Path(told["input"]).name == "deadly.txt"
    found = outputs(tmp_path / "out")
    assert len(found) == 60
    assert set(found.values()) == {1}
    (texts / "deadly.txt").write_text("Hello!")
    again, tasks = predict(asked, texts)
    assert (again.failures, len(tasks)) == (0, 1)


def twice(spec: RunSpec, task: Task) -> Any:
    """Do a task twice, as where a worker dies before it can tell that it is done."""
    do(spec, task)
    return do(spec, task)


@pytest.mark.parametrize("packed", [False, True])
def test_a_task_that_is_done_twice_is_done_once(
    packed: bool, store: str, texts: Path, tmp_path: Path
) -> None:
    if packed:
        long = texts / "long.txt"
        (texts / "long.txt.gz").write_bytes(gzip.compress(long.read_bytes()))
        long.unlink()
    asked = spec(store, tmp_path / "out", chunk=100)
    told = CollectionCheckpoint(asked, asked.folder(), find([str(texts)], None, asked.out))
    complete(told, Inline(), twice, asked, watch=_silent)
    assert told.failures() == []
    assert told.progress.sentences == 62
    found = outputs(tmp_path / "out")
    assert len(found) == 62
    assert set(found.values()) == {1}


def test_tasks_that_a_scheduler_has_lost_are_no_failures(
    store: str, texts: Path, tmp_path: Path
) -> None:
    asked, lost = spec(store, tmp_path / "out", chunk=300), Counter[str]()

    def lose(spec: RunSpec, task: Task) -> Any:
        lost[str(task.keys)] += 1
        if lost[str(task.keys)] <= ATTEMPTS + 1:
            raise SchedulerError("gone")
        return do(spec, task)

    told = CollectionCheckpoint(asked, asked.folder(), find([str(texts)], None, asked.out))
    complete(told, Inline(), lose, asked, watch=_silent)
    assert told.failures() == []
    assert set(outputs(tmp_path / "out").values()) == {1}


def test_long_documents_are_handed_out_first(store: str, texts: Path, tmp_path: Path) -> None:
    _, tasks = predict(spec(store, tmp_path / "out", chunk=300), texts)
    kinds = [type(task).__name__ for task in tasks if not isinstance(task, Join)]
    assert kinds == sorted(kinds)
    assert kinds[0] == "PredictChunk"


class Slow(Threads):
    """Takes as long over a task as it has bytes; notes when each thread was busy last."""

    def __init__(self, workers: int, bytes_a_second: float) -> None:
        super().__init__(workers)
        self._rate = bytes_a_second
        self.last: dict[int, float] = {}

    def submit(self, call: Callable[..., Any], /, *given: Any) -> "Future[Any]":
        return super().submit(self._slowly, call, *given)

    def _slowly(self, call: Callable[..., Any], *given: Any) -> Any:
        from threading import get_ident

        task = given[-1]
        result = None if len(given) == 1 else call(*given)
        if isinstance(task, PredictChunk):
            time.sleep(task.weight / self._rate)
        elif isinstance(task, PredictDocuments):
            time.sleep(sum(one.size for one in task.documents) / self._rate)
        self.last[get_ident()] = time.monotonic()
        return result


def test_no_worker_is_left_with_a_long_file_at_the_end(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One file is as long as a third of 3,000 short ones, and comes last by its name.

    `benchmarks.corpora uneven` does the same with 200 MB.
    """
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(3000):
        (folder / f"{number:04}.txt").write_text("Hello! " * 10)
    (folder / "z.txt").write_text("Hello!\n\n" * 10_000)
    monkeypatch.setattr(worker, "load_model", _Echo)
    begun, workers = time.monotonic(), 4
    executor = Slow(workers, 100_000)
    summary = run_by(spec(store, tmp_path / "out", chunk=2000), lambda: executor, folder)
    whole = time.monotonic() - begun
    assert summary.progress.sentences == 40_000
    assert len(executor.last) == workers
    assert min(executor.last.values()) - begun > 0.9 * whole


class _Echo:
    """Stands for a model that answers at once."""

    def __init__(self, model: str, store: str) -> None:
        from lpcfg.kinds.constituency.kind import Constituency
        from lpcfg.kinds.sentences import ENGLISH
        from lpcfg.store.versions import resolve

        self.kind, self.predictor, self.segmenter = Constituency(), None, ENGLISH
        self.reference = resolve(model, store)

    def predict(self, sentences: list[Any], _: object) -> list[Any]:
        from lpcfg.kinds.constituency.results import Analysis

        blank = ("failed", None, (), None, None, False, 0.0, ())
        return [Analysis(one, *blank) for one in sentences]  # type: ignore[arg-type]


def test_notes_of_what_was_begun_are_few_in_an_object_store(
    store: str, texts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []
    write = RemoteFolder.write
    monkeypatch.setattr(
        RemoteFolder, "write", lambda *given: (written.append(given[1]), write(*given))
    )
    monkeypatch.setattr(checkpoint, "_PAUSE", 600.0)
    predict(spec(store, f"memory://{texts.name}{time.time_ns()}", chunk=300), texts)
    assert written.count(".work/begun.json") == 1


class Outage:
    """Fails the first uses of a network's files."""

    def __init__(self, times: int, error: type[OSError] = TimeoutError) -> None:
        self.left, self.error = times, error

    def over(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def failing(*given: Any, **named: Any) -> Any:
            self.left -= 1
            if self.left >= 0:
                raise self.error("out of reach")
            return call(*given, **named)

        return failing


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> str:
    """Put one document into a network's folder; waiting takes no time."""
    monkeypatch.setattr(worker, "PAUSES", (0.0, 0.0))
    folder = f"memory://{uuid4().hex}"
    fsspec.filesystem("memory").pipe_file(f"{folder}/in/a.txt", WORDS.encode())
    return folder


def test_an_input_that_is_out_of_reach_is_tried_again(
    store: str, memory: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = spec(store, tmp_path / "out")
    documents = find([f"{memory}/in"], None, asked.out)
    for failures, error, expected in (
        *((2, TimeoutError, 0), (3, TimeoutError, 1)),
        *((1, FileNotFoundError, 1), (1, PermissionError, 1)),
    ):
        outage = Outage(failures, error)
        with monkeypatch.context() as patched:
            opened = MemoryFileSystem._open
            patched.setattr(MemoryFileSystem, "_open", outage.over(opened))
            again = replace(asked, out=f"{asked.out}-{failures}-{error.__name__}")
            summary = run(again, documents, Inline, lambda _: None, mix=False)
        assert summary.failures == expected, (failures, error)


def test_an_output_that_is_out_of_reach_is_tried_again_then_told(
    store: str, texts: Path, memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = spec(store, f"{memory}/out")
    with monkeypatch.context() as patched:
        patched.setattr(RemoteFolder, "writer", Outage(3).over(RemoteFolder.writer))
        told = "cannot write to memory:.*: out of reach: mend it and run again; nothing done is"
        with pytest.raises(InputError, match=told):
            predict(asked, texts)
    with monkeypatch.context() as patched:
        patched.setattr(RemoteFolder, "writer", Outage(2).over(RemoteFolder.writer))
        summary, _ = predict(asked, texts)
    assert summary.failures == 0


def test_a_full_disk_ends_the_run_at_once_and_nothing_is_lost(
    store: str, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, calls = spec(store, tmp_path / "out"), 0

    def full() -> None:
        nonlocal calls
        calls += 1
        if calls > 4:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(worker, "writer", lambda *given: _Full(output.writer(*given), full))
    with pytest.raises(InputError, match=r"cannot write to .*: \[Errno 28\] No space left"):
        predict(asked, texts)
    monkeypatch.undo()
    done = outputs(tmp_path / "out") if (tmp_path / "out" / "trees").exists() else Counter()
    assert not list((tmp_path / "out").rglob("*.tmp"))
    predict(asked, texts)
    found = outputs(tmp_path / "out")
    assert len(found) == 62
    assert set(found.values()) == {1}
    assert done.keys() <= found.keys()


class _Full:
    """Writes rows until the disk is full."""

    def __init__(self, rows: Any, check: Callable[[], None]) -> None:
        self._rows, self._check = rows, check

    def __enter__(self) -> "_Full":
        self._rows.__enter__()
        return self

    def __exit__(self, *given: Any) -> None:
        self._rows.__exit__(*given)

    def add(self, *given: Any) -> None:
        self._check()
        self._rows.add(*given)
