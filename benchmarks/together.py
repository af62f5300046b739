"""Sentences a second of several threads or processes at once, as a container would see them.

    OMP_NUM_THREADS=1 python -m benchmarks.together --model en --treebank dev.mrg

Threads share one parser; processes have one each, and all begin at the same moment. It prints one
object a line. A machine with two cores shows what four processes cost each other there.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

from benchmarks.environment import ROOT, Record, environment

from lpcfg.kinds.constituency.predict import Parser
from lpcfg.kinds.sentences import sentence_from_tree
from lpcfg.trees.brackets import read
from lpcfg.trees.normalize import normalize

THREADS, PROCESSES = (1, 2), (1, 2, 4)

WORKER = """
import json, sys, time
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.kinds.constituency.results import Sentence
parser = Parser.load(sys.argv[1], sys.argv[2])
sentences = [Sentence(tuple(words)) for words in json.loads(sys.stdin.readline())]
parser.parse(sentences[:20])
print("ready", flush=True)
sys.stdin.readline()
for sentence in sentences:
    parser.parse([sentence])
print("done", flush=True)
"""


def main() -> None:
    arguments = _arguments()
    trees = filter(None, map(normalize, read(arguments.treebank)))
    sentences = [tree.tokens() for tree in islice(trees, arguments.sentences)]
    about = {"model": arguments.model, "treebank": arguments.treebank.name, "n": len(sentences)}
    for record in (
        *threads(arguments.model, arguments.store, arguments.treebank, len(sentences)),
        *processes(arguments.model, arguments.store, sentences),
    ):
        print(json.dumps({**environment(0), **about, **record}), flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="en", help="NAME or NAME@VERSION")
    parser.add_argument("--store", default=ROOT / "model_store", type=Path, help="the model store")
    parser.add_argument("--treebank", required=True, type=Path, help="trees whose words are parsed")
    parser.add_argument("--sentences", type=int, default=1000, help="of the treebank, at most")
    return parser.parse_args()


def threads(model: str, store: Path, treebank: Path, most: int) -> Sequence[Record]:
    """Measure sentences a second of one parser, by the number of threads that use it."""
    trees = islice(filter(None, map(normalize, read(treebank))), most)
    parser, sentences = Parser.load(model, store), list(map(sentence_from_tree, trees))
    parser.parse(sentences[:20])
    records = []
    for count in THREADS:
        with ThreadPoolExecutor(count) as pool:
            began = time.perf_counter()
            list(pool.map(lambda one: parser.parse([one]), sentences))
            elapsed = time.perf_counter() - began
        records.append(_record("threads", count, len(sentences), elapsed))
    return records


def processes(model: str, store: Path, sentences: Sequence[Sequence[str]]) -> Sequence[Record]:
    """Measure sentences a second of all processes, each of which parses every sentence."""
    records = []
    for count in PROCESSES:
        with ExitStack() as stack:
            workers = [stack.enter_context(_started(model, store)) for _ in range(count)]
            for worker in workers:
                _say(worker, json.dumps(sentences))
            for worker in workers:
                _expect(worker, "ready")
            began = time.perf_counter()
            for worker in workers:
                _say(worker, "go")
            for worker in workers:
                _expect(worker, "done")
            elapsed = time.perf_counter() - began
        records.append(_record("processes", count, count * len(sentences), elapsed))
    return records


def _record(what: str, count: int, sentences: int, elapsed: float) -> Record:
    return {
        "what": what,
        "at_once": count,
        "cores": os.cpu_count(),
        "sentences_per_second": round(sentences / elapsed, 1),
    }


def _started(model: str, store: Path) -> "subprocess.Popen[str]":
    """Start a process that loads the model, reads its sentences, and waits for a word to begin."""
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, model, str(store)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _say(worker: "subprocess.Popen[str]", line: str) -> None:
    assert worker.stdin is not None
    print(line, file=worker.stdin, flush=True)


def _expect(worker: "subprocess.Popen[str]", line: str) -> None:
    assert worker.stdout is not None
    if worker.stdout.readline().strip() != line:
        raise SystemExit("expected a process that parses, got one that ended: see its error")


if __name__ == "__main__":
    main()
