"""Measure runs over collections, and simulate those that one machine cannot hold.

python -m benchmarks.corpora overhead    the runner against the engine called directly
python -m benchmarks.corpora resume      how soon work starts beside 2,000 finished documents
python -m benchmarks.corpora kills       kill -9 at random moments
python -m benchmarks.corpora workers     kill a scheduler's workers, and the coordinator
python -m benchmarks.corpora serve       a service that takes its model from S3, with a cold cache
python -m benchmarks.corpora training    learning by 1 and more workers of a scheduler, and by none
python -m benchmarks.corpora memory      a long file in chunks
python -m benchmarks.corpora uneven      one file of 200 MB among 3,000 short ones
python -m benchmarks.corpora processes   1, 2, … processes, by the wall clock
python -m benchmarks.corpora compare     the simulation with runs of 1, 2, … processes
python -m benchmarks.corpora simulate    1 to 1,000 workers, from measured times of tasks
"""

import argparse
import contextlib
import gzip
import hashlib
import heapq
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from itertools import islice
from pathlib import Path
from threading import get_ident
from typing import Any

from benchmarks.environment import Record, environment

from lpcfg.base.executors import Inline, Threads
from lpcfg.kinds.kind import Loaded, NoOptions
from lpcfg.kinds.registry import load_model
from lpcfg.kinds.sentences import ENGLISH
from lpcfg.predict import worker as workers_of_runs
from lpcfg.predict.checkpoint import CollectionCheckpoint
from lpcfg.predict.engine import complete
from lpcfg.predict.run import find, run
from lpcfg.predict.tasks import (
    Join,
    Outcome,
    PredictChunk,
    PredictDocuments,
    RunSpec,
    Task,
)
from lpcfg.predict.tasks import (
    Record as Done,
)
from lpcfg.predict.worker import Source, Worker
from lpcfg.store.versions import resolve

DATA = Path(os.environ.get("LPCFG_DATA", "../shared/data"))
PIECE = 1 << 15
"""Bytes of a task, an eighth of the default: few documents then still make many tasks."""


def paragraphs(count: int, skip: int = 0) -> list[str]:
    """Return paragraphs of eLife's articles, the first ones behind those to skip."""
    with gzip.open(DATA / "text" / "elife.txt.gz", "rt", encoding="utf-8") as lines:
        return list(islice(lines, skip, skip + count))


def write_documents(folder: Path, texts: list[str]) -> None:
    folder.mkdir(parents=True)
    for number, text in enumerate(texts):
        (folder / f"{number:05}.txt").write_text(text, encoding="utf-8")


def spec_of(model: str, out: Path, **more: object) -> RunSpec:
    return RunSpec.of(model, "model_store", out, **more)


class Timed(Inline):
    """Does tasks in this process; keeps their outcomes and CPU seconds."""

    def __init__(self) -> None:
        self.outcomes: list[tuple[Outcome, float]] = []

    def submit(self, call: Callable[..., Any], /, *given: Any) -> "Future[Any]":
        begun = time.process_time()
        future = super().submit(call, *given)
        if len(given) > 1:  # the other call loads the model
            self.outcomes.append((future.result(), time.process_time() - begun))
        return future


class Remembered:
    """Gives the answers to sentences, one after the other, that were made before."""

    segmenter = ENGLISH

    def __init__(self, answers: Sequence[Any]) -> None:
        self.left = iter(answers)

    def predict(self, sentences: Sequence[Any], *_: object) -> Iterator[Any]:
        return islice(self.left, len(sentences))


def run_here(spec: RunSpec, folder: Path) -> tuple[Timed, float]:
    """Run over the inputs of a folder; return the executor, and the CPU seconds that it took."""
    executor, begun = Timed(), time.process_time()
    inputs = find([str(folder / "in")], None, spec.out)
    run(spec, inputs, lambda: executor, lambda _: None, mix=False)
    return executor, time.process_time() - begun


def overhead(arguments: argparse.Namespace, folder: Path) -> Record:
    """Compare CPU seconds of all that a run adds to its engine with those of the engine.

    The run finds its answers made, so that the engine's own seconds, which vary by more than the
    rest takes, are no part of the difference.
    """
    texts = paragraphs(arguments.documents)
    write_documents(folder / "in", texts)
    model = load_model(arguments.model, "model_store")
    for _ in range(2):  # the first time, words have to be looked up, and kernels loaded
        begun = time.process_time()
        answers = [
            answer
            for text in texts
            for answer in model.predict(list(model.segmenter.sentences(text)), model.kind.options())
        ]
        direct = time.process_time() - begun
    added = []
    for turn in range(arguments.turns):
        begun = time.process_time()
        sum(1 for text in texts for _ in ENGLISH.sentences(text))
        finding = time.process_time() - begun
        remembered: Loaded[Any, NoOptions, Any]
        remembered = replace(model, predictor=Remembered(answers))
        workers_of_runs.load_model = lambda *_, remembered=remembered: remembered
        _, seconds = run_here(spec_of(arguments.model, folder / f"out{turn}"), folder)
        added.append(seconds - finding)
    return {
        "documents": len(texts),
        "sentences": len(answers),
        "direct_cpu_seconds": round(direct, 2),
        "added_cpu_seconds": [round(one, 3) for one in added],
        "overhead": round(statistics.median(added) / direct, 4),
    }


def resume(arguments: argparse.Namespace, folder: Path) -> Record:
    """Tell when the first task is handed out beside finished documents."""
    write_documents(folder / "in", ["Hello!"] * arguments.documents)
    spec = spec_of(arguments.model, folder / "out")
    run_here(spec, folder)
    (folder / "in" / "99999.txt").write_text("One more.")
    wall, cpu = time.perf_counter(), time.process_time()
    documents = find([str(folder / "in")], None, spec.out)
    checkpoint = CollectionCheckpoint(spec, spec.folder(), documents)
    assert checkpoint.next(idle=True) is not None
    found = time.perf_counter() - wall, time.process_time() - cpu
    loading = time.process_time()
    Worker(spec)
    return {
        "documents": arguments.documents,
        "seconds_to_first_task": round(found[0], 3),
        "cpu_seconds_to_first_task": round(found[1], 3),
        "cpu_seconds_to_load_the_model": round(time.process_time() - loading, 3),
    }


def command_of(arguments: argparse.Namespace, folder: Path, jobs: int, *more: str) -> list[str]:
    base = [sys.executable, "-m", "lpcfg", "parse", arguments.model, str(folder / "in")]
    own = ["--store", "model_store", "--out", str(folder / "out"), "--jobs", str(jobs)]
    return [*base, *own, *more]


def kills(arguments: argparse.Namespace, folder: Path) -> Record:
    """Kill a run at random moments until it has been killed often enough, then let it end.

    Every other kill waits for the run's first document: a start takes seconds on a busy machine.
    """
    texts = paragraphs(arguments.documents)
    write_documents(folder / "in", texts)
    (folder / "in" / "long.txt").write_text("\n\n".join(texts[: len(texts) // 4]))
    command = command_of(arguments, folder, 2, "--piece", "4000")
    chance, torn, done = random.Random(arguments.seed), 0, []
    for kill in range(arguments.kills):
        before = _trees_in(folder)
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as one:
            while kill % 2 and one.poll() is None and _trees_in(folder) == before:
                time.sleep(0.01)
            time.sleep(chance.uniform(0, arguments.longest / (10 if kill % 2 else 1)))
            alive = one.poll() is None
            one.kill()
        done += [_trees_in(folder)] if alive else []
        for path in (folder / "out" / "trees").rglob("*.jsonl"):
            lines = path.read_bytes().splitlines(keepends=True)
            torn += any(not line.endswith(b"}\n") for line in lines)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    ids = _ids(folder / "out")
    expected = _expected(arguments, folder)
    return {
        "kills": len(done),
        "documents": len(texts) + 1,
        "documents_done_at_each_kill": done,
        "sentences": len(ids),
        "torn_files": torn,
        "doubled": sum(count > 1 for count in ids.values()),
        "lost": len(expected - ids.keys()),
    }


def workers(arguments: argparse.Namespace, folder: Path) -> Record:
    """Kill workers of a scheduler while they work, and once the command; count what is there."""
    from distributed import LocalCluster

    write_documents(folder / "in", paragraphs(arguments.documents))
    chance, left = random.Random(arguments.seed), []
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with LocalCluster(n_workers=0, dashboard_address=":0") as cluster:
        address = cluster.scheduler_address
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", address]
        worker += ["--no-nanny", "--nthreads", "1", "--no-dashboard"]
        alive = [subprocess.Popen(worker, **silent) for _ in range(2)]
        command = command_of(arguments, folder, 1, "--piece", "100")  # several tasks a document
        at = command.index("--jobs")
        command[at : at + 2] = ["--scheduler", address]
        running = subprocess.Popen(command, **silent)
        for kill in range(arguments.kills):
            wanted = (kill + 1) * arguments.documents // (arguments.kills + 2)
            while running.poll() is None and _trees_in(folder) < wanted:
                time.sleep(0.02)
            time.sleep(chance.random() / 10)
            left.append(arguments.documents - _trees_in(folder))
            victim = chance.randrange(2)
            alive[victim].kill()
            alive[victim].wait()
            alive[victim] = subprocess.Popen(worker, **silent)  # as who keeps workers would
            if kill == arguments.kills // 2:
                running.kill()
                running.wait()
                running = subprocess.Popen(command, **silent)
        code = running.wait()
        for one in alive:
            one.kill()
            one.wait()
    ids = _ids(folder / "out")
    expected = _expected(arguments, folder)
    return {
        "documents": arguments.documents,
        "documents_left_at_each_kill_of_a_worker": left,
        "coordinators_killed": 1,
        "exit_code": code,
        "sentences": len(ids),
        "doubled": sum(count > 1 for count in ids.values()),
        "lost": len(expected - ids.keys()),
    }


def _trees_in(folder: Path) -> int:
    return sum(1 for _ in (folder / "out" / "trees").glob("*.jsonl"))


def _ids(out: Path) -> Counter[str]:
    """Count the sentences' ids in an output folder."""
    return Counter(
        json.loads(line)["id"]
        for path in (out / "trees").rglob("*.jsonl")
        for line in path.read_text().splitlines()
    )


def _expected(arguments: argparse.Namespace, folder: Path) -> set[str]:
    """Parse the inputs without any kill, and return the sentences' ids."""
    run_here(spec_of(arguments.model, folder / "whole"), folder)
    return set(_ids(folder / "whole"))


def serve(arguments: argparse.Namespace, folder: Path) -> Record:
    """Tell how long a service needs that takes its model from S3 with an empty cache."""
    import fsspec
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    access = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    where = {"AWS_DEFAULT_REGION": "us-east-1", "AWS_ENDPOINT_URL": f"http://{host}:{port}"}
    os.environ |= {**access, **where}
    fsspec.filesystem("s3").mkdir("bucket")
    place = f"{arguments.model}/{resolve(arguments.model, 'model_store').version}"
    fsspec.filesystem("s3").put(f"model_store/{place}", f"bucket/models/{place}", recursive=True)
    found: Record = {}
    # The first start is from the disk: it compiles kernels, where there are none yet.
    stores = (
        ("first", "model_store"),
        ("cold", "s3://bucket/models"),
        ("warm", "s3://bucket/models"),
    )
    for cache, store in stores:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        found[f"seconds_{cache}"] = round(_seconds_to_ready(arguments.model, store, folder), 2)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found[f"cpu_seconds_{cache}"] = round(
            after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 2
        )
    server.stop()
    return found


def _seconds_to_ready(model: str, store: str, home: Path) -> float:
    """Start a service, and end it when it is ready."""
    begun, said = time.perf_counter(), []
    own = ["--model", model, "--store", store]
    with subprocess.Popen(
        [sys.executable, "-m", "lpcfg", "serve", "--port", "0", *own],
        env={**os.environ, "HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as service:
        assert service.stdout is not None
        for line in service.stdout:
            said.append(line)
            if line.startswith("ready"):
                seconds = time.perf_counter() - begun
                service.terminate()
                return seconds
    raise SystemExit(f"the service ended with {service.returncode}: {''.join(said)}")


def training(arguments: argparse.Namespace, folder: Path) -> Record:
    """Learn from the treebank here, and by 1 and more workers of a scheduler."""
    from distributed import LocalCluster

    found: Record = {}
    learn = [sys.executable, "-m", "lpcfg", "train", *map(str, arguments.treebank)]
    options = ["--rescore", "none", "--exact", "--name", "bank", "--store", str(folder), "--json"]
    options += ["--config", str(arguments.config)] if arguments.config else []
    hashes = []
    for count in (0, *arguments.jobs):
        begun = time.perf_counter()
        with contextlib.ExitStack() as stack:
            where = ["--workers", "1"]
            if count:
                cluster = LocalCluster(
                    n_workers=count, threads_per_worker=1, memory_limit=0, dashboard_address=":0"
                )
                where = ["--scheduler", stack.enter_context(cluster).scheduler_address]
            begun = time.perf_counter()
            done = subprocess.run(
                [*learn, *options, *where], check=True, stdout=subprocess.PIPE, text=True
            )
            if count:
                with cluster.get_client() as client:
                    peaks = client.run(peak_mb)
                found[f"worker_peak_mb_{count}"] = sorted(peaks.values())
        told = json.loads(done.stdout)
        found[f"seconds_{count}"] = round(time.perf_counter() - begun, 1)
        stages = {one["name"]: one for one in told["stages"]}
        found[f"stages_{count}"] = {
            name: round(stages[name]["seconds"], 1)
            for name in ("features", "decomposition", "moments")
        }
        hashes.append(_tensors(folder / "bank" / str(told["version"])))
    found |= {"sizes": told["sizes"], "same_bytes": len(set(hashes)) == 1}
    return found


def _tensors(version: Path) -> str:
    """Compute the SHA-256 of a version's numbers."""
    digest = hashlib.sha256()
    for path in sorted(version.glob("*.safetensors")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def long_file(path: Path, megabytes: int) -> Path:
    """Write so many megabytes of paragraphs."""
    block = "\n\n".join(paragraphs(2000)).encode()
    with path.open("wb") as file:
        for _ in range(megabytes * 1_000_000 // len(block) + 1):
            file.write(block + b"\n\n")
    return path


def memory(arguments: argparse.Namespace, folder: Path) -> Record:
    """Cut a generated file of so many megabytes, and watch the resident memory."""
    path = long_file(folder / "long.txt", arguments.megabytes)
    spec = spec_of(arguments.model, folder / "out")
    (document,) = find([str(path)], None, spec.out)
    peaks, begun, chunks = [], time.process_time(), 0
    for chunks, _ in enumerate(Source(document, spec, lambda: ENGLISH), start=1):
        if chunks in (100, 1000):
            peaks.append(peak_mb())
    return {
        "megabytes": document.size // 1_000_000,
        "chunks": chunks,
        "peak_rss_mb_after_100_1000_and_all_chunks": [*peaks, peak_mb()],
        "megabytes_per_cpu_second": round(document.size / 1e6 / (time.process_time() - begun)),
    }


def uneven(arguments: argparse.Namespace, folder: Path) -> Record:
    """Share out one long file, the last by its name, and 3,000 short ones; tell when each worker
    was busy last. Workers sleep as long as a task has bytes: nothing is parsed.
    """
    write_documents(folder / "in", paragraphs(3000))
    long_file(folder / "in" / "z.txt", 200)
    spec = spec_of(arguments.model, folder / "out")
    documents = find([str(folder / "in")], None, spec.out)
    checkpoint = CollectionCheckpoint(spec, spec.folder(), documents)
    last: dict[int, float] = {}
    rate = sum(one.size for one in documents) / (arguments.workers * arguments.seconds)

    def pretend(spec: RunSpec, task: Task) -> Outcome:
        if isinstance(task, Join):
            return Outcome((Done.of(task.document, spec, task.sha256),))
        long = isinstance(task, PredictChunk)
        time.sleep((task.weight if long else sum(d.size for d in task.documents)) / rate)
        last[get_ident()] = time.monotonic()
        return (
            Outcome() if long else Outcome(tuple(Done.of(one, spec, "") for one in task.documents))
        )

    begun = time.monotonic()
    with Threads(arguments.workers) as executor:
        complete(checkpoint, executor, pretend, spec, watch=lambda: None)
    whole = time.monotonic() - begun
    return {
        "documents": checkpoint.progress.documents,
        "workers": len(last),
        "seconds": round(whole, 1),
        "first_worker_idle_at": round((min(last.values()) - begun) / whole, 4),
    }


def peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000


def processes(arguments: argparse.Namespace, folder: Path) -> Record:
    """Parse the same documents by 1, 2, … processes."""
    write_documents(folder / "in", paragraphs(arguments.documents, arguments.skip))
    found: Record = {"documents": arguments.documents, "skipped": arguments.skip}
    for jobs in arguments.jobs:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        found[f"seconds_{jobs}"], found["sentences"] = timed(arguments, folder, jobs)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found[f"cpu_seconds_{jobs}"] = round(
            after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1
        )
    return found


def timed(arguments: argparse.Namespace, folder: Path, jobs: int) -> tuple[float, int]:
    """Parse the folder's documents by so many processes; return wall seconds and sentences."""
    begun = time.perf_counter()
    command = command_of(arguments, folder, jobs, "--json", "--piece", str(PIECE))
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    wall = time.perf_counter() - begun
    (folder / "out").rename(folder / f"out{jobs}")
    return round(wall, 2), json.loads(done.stdout)["sentences"]


# Simulation ---------------------------------------------------------------------------------------


def task_seconds(model: str, folder: Path, documents: int) -> list[float]:
    """Measure the CPU seconds of tasks of one document each."""
    write_documents(folder / "in", paragraphs(documents))
    spec = spec_of(model, folder / "out")
    worker = Worker(spec)
    found = find([str(folder / "in")], None, spec.out)
    seconds = []
    for document in [found[0], *found]:  # the first one compiles kernels, and is left out
        begun = time.process_time()
        worker.do(PredictDocuments((document,)))
        seconds.append(time.process_time() - begun)
    return seconds[1:]


def makespan(tasks: Iterable[float], workers: int, start: float, hand_out: float) -> float:
    """Compute when the last worker ends, if each takes the next task when it is free.

    One coordinator hands out a task in `hand_out` seconds; workers begin after `start` seconds.
    """
    free = [start] * workers
    coordinator = 0.0
    last = 0.0
    for seconds in tasks:
        at = heapq.heappop(free)
        coordinator = max(coordinator + hand_out, at)
        last = max(last, coordinator + seconds)
        heapq.heappush(free, coordinator + seconds)
    return last


def compare(arguments: argparse.Namespace, folder: Path) -> Record:
    """Simulate runs by 1, 2, … processes of this machine from measured tasks, and time the runs.

    Processes that share a core take turns, so their tasks take longer.
    """
    write_documents(folder / "first" / "in", paragraphs(1))
    start, _ = timed(arguments, folder / "first", 1)
    write_documents(folder / "in", paragraphs(arguments.documents))
    spec = spec_of(arguments.model, folder / "alone", chunk=PIECE)
    documents = find([str(folder / "in")], None, spec.out)
    warm = spec_of(arguments.model, folder / "warm")
    Worker(warm).do(PredictDocuments((documents[0],)))
    executor, seconds = run_here(spec, folder)
    tasks = [one for _, one in executor.outcomes]
    hand_out = (seconds - sum(tasks)) / len(tasks)
    found: Record = {
        "tasks": len(tasks),
        "mean_task_seconds": round(statistics.mean(tasks), 3),
        "longest_task_seconds": round(max(tasks), 3),
        "hand_out_milliseconds": round(1000 * hand_out, 2),
        "start_seconds": start,
    }
    for jobs in arguments.jobs:
        turns = max(1.0, jobs / len(os.sched_getaffinity(0)))
        took = makespan((turns * one for one in tasks), jobs, turns * start, hand_out)
        found[f"simulated_{jobs}"] = round(took, 2)
        found[f"measured_{jobs}"], found["sentences"] = timed(arguments, folder, jobs)
    return found


def simulate(arguments: argparse.Namespace, folder: Path) -> Record:
    """Simulate a run of tasks like those measured, with 1 to 1,000 workers."""
    seconds = task_seconds(arguments.model, folder, arguments.documents)
    chance = random.Random(arguments.seed)
    sizes = [
        sum(chance.choices(seconds, k=arguments.documents_a_task)) for _ in range(arguments.tasks)
    ]
    alone = sum(sizes)
    found: Record = {
        "tasks": len(sizes),
        "mean_task_seconds": round(alone / len(sizes), 2),
        "longest_task_seconds": round(max(sizes), 2),
    }
    for workers in (1, 2, 4, 10, 100, 1000):
        slow = [one * (arguments.straggling if chance.random() < 0.01 else 1.0) for one in sizes]
        took = makespan(slow, workers, arguments.start, arguments.hand_out)
        found[f"speedup_{workers}"] = round(alone / took, 2)
    return found


QUESTIONS = {
    one.__name__: one
    for one in (
        *(overhead, resume, kills, workers, serve, training),
        *(memory, uneven, processes, compare, simulate),
    )
}


def main() -> None:
    """Answer one question, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("question", choices=QUESTIONS)
    parser.add_argument("--model", default="en")
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--skip", type=int, default=0, help="paragraphs, in `processes`")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--longest", type=float, default=20.0, help="seconds before a kill")
    parser.add_argument("--treebank", type=Path, nargs="+", default=[DATA / "craft" / "train.mrg"])
    parser.add_argument("--config", type=Path, help="of training")
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--workers", type=int, default=8, help="in `uneven`")
    parser.add_argument("--seconds", type=float, default=60.0, help="of `uneven`, about")
    parser.add_argument("--tasks", type=int, default=20_000)
    parser.add_argument("--documents-a-task", type=int, default=100)
    parser.add_argument("--start", type=float, default=3.0, help="seconds until a worker is ready")
    parser.add_argument("--hand-out", type=float, default=0.002, help="seconds a task takes here")
    parser.add_argument("--straggling", type=float, default=3.0, help="of 1 task in 100")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = QUESTIONS[arguments.question](arguments, Path(folder))
    print(json.dumps({"question": arguments.question, **found, **environment(arguments.seed)}))


if __name__ == "__main__":
    main()
