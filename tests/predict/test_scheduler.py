"""Runs on the workers of a scheduler: the same files, whoever dies."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest
from distributed import LocalCluster

from lpcfg.base.errors import InputError
from lpcfg.cli import main
from lpcfg.predict import scheduler
from lpcfg.predict.job import Job
from lpcfg.predict.run import find, run
from lpcfg.predict.scheduler import Cluster
from tests.predict.small_runs import WORDS, job, parse, published, rows
from tests.s3 import bucket

__all__ = ["bucket"]


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
    parse(job(store, tmp_path / "here"), texts)
    asked = job(store, tmp_path / "there", piece=300)
    documents = find([str(texts)], None, asked.out)
    first = run(asked, documents, lambda job: Cluster(job, threads), lambda _: None, mix=False)
    assert first.progress.documents == 9
    assert files(tmp_path / "there") == files(tmp_path / "here")
    again = run(asked, documents, lambda job: Cluster(job, threads), lambda _: None, mix=False)
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
    asked = job(place, f"{bucket}/out", piece=300)
    documents = find([f"{bucket}/in"], None, asked.out)
    assert [one.name for one in documents] == ["a.txt", "sub/b.txt"]
    summary = run(asked, documents, lambda job: Cluster(job, threads), lambda _: None, mix=False)
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
    again, tasks = parse(asked, f"{bucket}/in")
    assert (again.progress.documents, again.progress.skipped, len(tasks)) == (1, 1, 1)


def test_a_run_ends_when_all_workers_are_gone_for_long(
    store: str, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "ALONE", 0.2)
    asked = job(store, tmp_path / "out")
    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as cluster:

        def hire(job: Job) -> Cluster:
            crew = Cluster(job, cluster.scheduler_address)
            cluster.scale(0)
            while cluster.scheduler_info["workers"]:
                time.sleep(0.01)
            return crew

        with pytest.raises(InputError, match=r"got none for 0 s: start some and run again"):
            run(asked, find([str(texts)], None, asked.out), hire, lambda _: None, mix=False)


def test_a_worker_that_is_killed_loses_and_doubles_nothing(
    store: str, texts: Path, tmp_path: Path
) -> None:
    asked = job(store, tmp_path / "out", piece=300)
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster:
        killed: list[int] = []

        def watch(_: object) -> None:
            if not killed and list((tmp_path / "out").rglob("*.part")):
                (worker,) = cluster.workers.values()
                killed.append(worker.pid)
                os.kill(worker.pid, signal.SIGKILL)

        def hire(job: Job) -> Cluster:
            return Cluster(job, cluster.scheduler_address)

        run(asked, find([str(texts)], None, asked.out), hire, watch, mix=False)
    assert killed
    ids = [row["id"] for path in (tmp_path / "out" / "trees").iterdir() for row in rows(path)]
    assert len(ids) == len(set(ids)) == 116
