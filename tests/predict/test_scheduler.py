"""Runs on the workers of a scheduler: the same files, whoever dies."""

import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pyarrow.parquet
import pytest
from distributed import LocalCluster

from lpcfg.base import executors
from lpcfg.base.errors import SchedulerError
from lpcfg.base.executors import Dask
from lpcfg.cli import main
from lpcfg.predict import engine
from lpcfg.predict.engine import complete
from lpcfg.predict.run import find
from tests.predict.small_runs import WORDS, predict, published, rows, run_by, spec
from tests.s3 import Flaky, bucket, flaky_bucket

__all__ = ["bucket", "flaky_bucket"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    return published(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def threads() -> Iterator[str]:
    """Yield the address of a scheduler with two workers in this process."""
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """Eight short documents and a long one."""
    folder = tmp_path / "texts"
    folder.mkdir()
    for number in range(8):
        (folder / f"{number}.txt").write_text(f"{WORDS} It slept {number} times.")
    (folder / "long.txt").write_text("\n\n".join(f"{WORDS} {n} dogs slept." for n in range(50)))
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "trees").iterdir()}


def test_a_scheduler_changes_no_byte(threads: str, store: str, texts: Path, tmp_path: Path) -> None:
    predict(spec(store, tmp_path / "here"), texts)
    asked = spec(store, tmp_path / "there", chunk=300)
    first = run_by(asked, lambda: Dask(threads), texts)
    assert first.progress.documents == 9
    assert files(tmp_path / "there") == files(tmp_path / "here")
    again = run_by(asked, lambda: Dask(threads), texts)
    assert (again.progress.documents, again.progress.skipped) == (0, 9)


def test_the_command_takes_a_scheduler(
    threads: str, store: str, texts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["parse", "small", str(texts / "0.txt"), "--store", store]
    options = ["--out", str(tmp_path / "out"), "--scheduler", threads]
    assert main([*command, *options]) == 0
    assert capsys.readouterr().out == "1 documents, 2 sentences\n"
    assert main([*command, *options, "--jobs", "2"]) == 2
    assert "the scheduler has workers: omit one" in capsys.readouterr().err


def test_inputs_model_and_outputs_may_all_be_on_s3(threads: str, bucket: str) -> None:
    system = fsspec.filesystem("s3")
    place = published(f"{bucket}/models")  # type: ignore[arg-type]
    for name in ("a", "sub/b"):
        system.pipe_file(f"{bucket}/in/{name}.txt", f"{WORDS}\n\n".encode() * 20)
    asked = spec(place, f"{bucket}/out", chunk=300)
    documents = find([f"{bucket}/in"], None, asked.out)
    assert [one.name for one in documents] == ["a.txt", "sub/b.txt"]
    summary = run_by(asked, lambda: Dask(threads), f"{bucket}/in")
    assert summary.failures == 0
    found = [
        one.removeprefix(f"{bucket.removeprefix('s3://')}/out/")
        for one in system.find(f"{bucket}/out")
    ]
    assert [one for one in found if one.startswith(("trees", ".work"))] == [
        *("trees/a.txt.jsonl", "trees/sub/b.txt.jsonl")
    ]
    assert system.cat_file(f"{bucket}/out/trees/a.txt.jsonl").count(b"\n") == 20
    system.pipe_file(f"{bucket}/in/a.txt", WORDS.encode())
    again, tasks = predict(asked, f"{bucket}/in")
    assert (again.progress.documents, again.progress.skipped, len(tasks)) == (1, 1, 1)


@pytest.mark.parametrize("output", ["json", "parquet"])
def test_an_s3_that_fails_now_and_then_loses_and_doubles_nothing(
    output: str, threads: str, store: str, flaky_bucket: tuple[str, Flaky]
) -> None:
    """One request in twenty fails, also by an answer that is lost on its way back."""
    bucket, flaky = flaky_bucket
    system = fsspec.filesystem("s3")
    for number in range(60):
        system.pipe_file(f"{bucket}/in/{number:02}.txt", f"{WORDS} It slept.".encode())
    system.pipe_file(f"{bucket}/in/long.txt", f"{WORDS}\n\n".encode() * 60)
    flaky.share = 1 / 20
    asked = spec(store, f"{bucket}/out", output=output, chunk=300)
    first = run_by(asked, lambda: Dask(threads), f"{bucket}/in")
    again = run_by(asked, lambda: Dask(threads), f"{bucket}/in")
    flaky.share = 0
    assert (first.failures, first.progress.documents, first.progress.sentences) == (0, 61, 180)
    assert (again.progress.documents, again.progress.skipped) == (0, 61)
    assert sum(flaky.failed.values()) > 20
    assert len(flaky.failed) == 4
    ids = [id for one in system.find(f"{bucket}/out/trees") for id in _ids(system.cat_file(one))]
    assert len(ids) == len(set(ids)) == 180


def _ids(data: bytes) -> list[str]:
    if data.startswith(b"PAR1"):
        return pyarrow.parquet.read_table(io.BytesIO(data))["id"].to_pylist()
    return [json.loads(line)["id"] for line in data.splitlines()]


def test_a_run_ends_when_all_workers_are_gone_for_long(
    store: str, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "LONGEST_WAIT", 0.2)
    asked = spec(store, tmp_path / "out")
    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as cluster:

        def start() -> Dask:
            executor = Dask(cluster.scheduler_address)
            cluster.scale(0)
            while cluster.scheduler_info["workers"]:
                time.sleep(0.01)
            return executor

        with pytest.raises(SchedulerError, match=r"got none for 0 s: start some and run again"):
            run_by(asked, start, texts)


def test_a_worker_that_is_killed_loses_and_doubles_nothing(
    store: str, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(complete.__kwdefaults__, "every", 0.005)  # seconds: a part lasts longer
    asked = spec(store, tmp_path / "out", chunk=300)
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster:
        killed: list[int] = []

        def watch(_: object) -> None:
            if not killed and list((tmp_path / "out").rglob("*.part")):
                (worker,) = cluster.workers.values()
                killed.append(worker.pid)
                os.kill(worker.pid, signal.SIGKILL)

        run_by(asked, lambda: Dask(cluster.scheduler_address), texts, show=watch)
    assert killed
    ids = [row["id"] for path in (tmp_path / "out" / "trees").iterdir() for row in rows(path)]
    assert len(ids) == len(set(ids)) == 116


class Cluster:
    """A scheduler in a process of its own, always at one address, and a worker in another."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self._all: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        own = ["--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard"]
        self._start("dask_scheduler", *own)
        own = [self.address, "--no-nanny", "--nthreads", "1", "--no-dashboard"]
        self._start("dask_worker", *own)

    def _start(self, module: str, *arguments: str) -> None:
        command = [sys.executable, "-m", f"distributed.cli.{module}", *arguments]
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._all.append(subprocess.Popen(command, **silent))

    def kill(self) -> None:
        """Kill the scheduler, which ends the worker, or both."""
        for one in self._all:
            one.kill()
            one.wait()
        self._all.clear()


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    made.start()
    with Dask(made.address):
        pass  # the worker is there
    yield made
    made.kill()


@pytest.mark.parametrize("comes_back", [True, False])
def test_a_scheduler_that_is_killed_loses_and_doubles_nothing(
    comes_back: bool,
    cluster: Cluster,
    store: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The run goes on by one that comes back; else it says so, and resumes when it is given again.

    Slowly: each sentence is a task.
    """
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    for number in range(60):
        (folder / f"{number:02}.txt").write_text(f"{WORDS}\n\nIt slept {number} times.")
    asked = spec(store, out, chunk=40)

    def kill() -> None:
        while len(list((out / ".done").glob("*.json"))) < 20:
            time.sleep(0.01)
        cluster.kill()
        if comes_back:
            cluster.start()

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    if comes_back:
        run_by(asked, lambda: Dask(cluster.address), folder)
        killer.join()
    else:
        with monkeypatch.context() as patched:
            patched.setattr(executors, "PATIENCE", 5.0)
            with pytest.raises(SchedulerError, match=r"got none: start it and run again$"):
                run_by(asked, lambda: Dask(cluster.address), folder)
        killer.join()
        cluster.start()
        again = run_by(asked, lambda: Dask(cluster.address), folder)
        assert 20 <= again.progress.skipped < 60
    ids = [row["id"] for path in (out / "trees").iterdir() for row in rows(path)]
    assert len(ids) == len(set(ids)) == 120
    assert rows(out / "failures.jsonl") == []
