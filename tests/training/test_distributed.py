"""Members learned by the workers of a scheduler: the same bytes, whoever dies, and clear errors."""

import gc
import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from distributed import KilledWorker, LocalCluster, Worker, WorkerPlugin

from lpcfg.base import executors
from lpcfg.base.errors import TrainingError, WorkerError
from lpcfg.base.executors import Dask
from lpcfg.cli import main
from lpcfg.kinds.constituency.model import Model, to_bundle
from lpcfg.training import distributed
from lpcfg.training.config import TrainingConfig, member
from lpcfg.training.data import shards
from lpcfg.training.estimators import spectral
from lpcfg.training.pipeline import train
from tests.small_models import SMALL

CONFIG = TrainingConfig(
    sibling_threshold=2,
    members=(
        member("spectral", states=4),
        member("spectral", states=4, noise=0.1),
        member("clustering+em", states=2),
    ),
)


def stored(model: Model) -> dict[str, bytes]:
    bundle = to_bundle(model, facts={}, card="", exact=True)
    arrays = {name: array.tobytes() for name, array in bundle.tensors.items()}
    return {**arrays, "grammar": json.dumps(bundle.grammar).encode()}


@pytest.fixture(scope="module")
def threads() -> Iterator[str]:
    """Start a scheduler with two workers in this process, and return its address."""
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as cluster:
        yield cluster.scheduler_address


def test_a_scheduler_changes_no_byte_of_a_model(threads: str) -> None:
    here, report = train(SMALL, CONFIG)
    there, same = train(SMALL, CONFIG, scheduler=threads)
    assert stored(there) == stored(here)
    assert same.members == report.members
    assert {stage.name for stage in same.stages} == {stage.name for stage in report.stages}
    assert there.members[0].grammar is there.grammar


def test_steps_are_chosen_on_the_workers_too(threads: str, tmp_path: Path) -> None:
    bank = tmp_path / "bank.mrg"
    bank.write_text(SMALL.read_text(encoding="utf-8") * 8, encoding="utf-8")
    config = TrainingConfig(members=(member("em", states=2, steps=3, patience=2),))
    here, report = train(bank, config)
    there, same = train(bank, config, scheduler=threads)
    assert stored(there) == stored(here)
    assert same.members == report.members
    assert report.members[0]["held_out_f1"]


@pytest.fixture
def many_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a shard of every few trees."""
    monkeypatch.setattr(shards, "SHARD_NODES", 100)


@pytest.mark.usefixtures("many_shards")
def test_sums_over_shards_are_the_same_bytes_wherever_they_are_made(threads: str) -> None:
    here, report = train(SMALL, CONFIG)
    more, _ = train(SMALL, CONFIG, workers=2)
    there, same = train(SMALL, CONFIG, scheduler=threads)
    assert stored(there) == stored(here) == stored(more)
    assert same.members == report.members


class KillsSome(WorkerPlugin):
    """Ends the workers that begin the first of a kind of tasks, once for each kind."""

    def __init__(self, folder: Path, kinds: Sequence[str]) -> None:
        self.folder, self.kinds = folder, kinds

    def setup(self, worker: Worker) -> None:
        self.worker = worker

    def transition(self, key: str, _: str, finish: str, **__: Any) -> None:
        if finish != "executing":
            return
        for kind in self.kinds:
            if key.startswith(f"{kind}-"):
                try:
                    (self.folder / kind).touch(exist_ok=False)
                except FileExistsError:
                    continue
                os.kill(os.getpid(), signal.SIGKILL)


KINDS = ("_learn", "_counted", "_sums")


@pytest.mark.usefixtures("many_shards")
def test_workers_that_are_killed_change_nothing(tmp_path: Path) -> None:
    """One is killed over a whole member, one over counts of a shard, one over sums of a shard."""
    here, _ = train(SMALL, CONFIG)
    with LocalCluster(
        n_workers=4, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as cluster:
        with Dask(cluster.scheduler_address) as executor:
            executor.client.register_plugin(KillsSome(tmp_path, KINDS))
        there, _ = train(SMALL, CONFIG, scheduler=cluster.scheduler_address)
    assert {path.name for path in tmp_path.iterdir()} == set(KINDS)
    assert stored(there) == stored(here)


def test_an_error_on_a_worker_is_the_error_of_training(
    threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> distributed.Learned:
        raise TrainingError("expected trees of this kind, got others: use others")

    monkeypatch.setattr(distributed, "learn", refuse)
    with pytest.raises(TrainingError, match=r"^expected trees of this kind, got others"):
        train(SMALL, CONFIG, scheduler=threads)


def test_a_member_that_kills_every_worker_is_an_error(
    threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise KilledWorker("_counted", SimpleNamespace(address="tcp://worker"), 3)

    monkeypatch.setattr(spectral, "_counted", die)
    with pytest.raises(WorkerError, match=r"expected workers that live until .* \(memory\?\)"):
        train(SMALL, CONFIG, scheduler=threads)


def test_an_invalid_address_is_refused_at_once(capfd: pytest.CaptureFixture[str]) -> None:
    with (
        pytest.raises(WorkerError, match="expected a scheduler at nonsense, got: missing port"),
    ):
        Dask("nonsense")
    gc.collect()  # a client that was never connected would complain as it goes
    assert capfd.readouterr().err == ""


def test_an_absent_scheduler_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "PATIENCE", 0.2)
    with pytest.raises(WorkerError, match=r"expected a scheduler at tcp://127\.0\.0\.1:9, got"):
        train(SMALL, CONFIG, scheduler="tcp://127.0.0.1:9")


def test_a_scheduler_without_workers_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "PATIENCE", 0.2)
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster,
        pytest.raises(WorkerError, match=r"expected a worker of the scheduler at .*, got"),
    ):
        train(SMALL, CONFIG, scheduler=cluster.scheduler_address)


def test_without_the_package_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(WorkerError, match=r"pip install 'lpcfg\[distributed\]'"):
        train(SMALL, CONFIG, scheduler="tcp://127.0.0.1:9")


def test_workers_and_a_scheduler_are_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["train", str(SMALL), "--name", "small", "--workers", "2", "--scheduler", "tcp://a"]
    assert main(arguments) == 2
    assert "expected --workers or --scheduler, got both" in capsys.readouterr().err
