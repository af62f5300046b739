"""Speed of this checkout against an earlier commit, in one run.

    python -m benchmarks.speed --model en --treebank dev.mrg --base 002aed7

The earlier commit is checked out under `artifacts/`, and each side parses in a process of its own.
The two take turns at the same sentences, so that what else the machine does slows both; a sentence
costs the least CPU time of all its turns. Before anything is timed, this side's charts are compared
with the exact engine. The result is one Markdown table, whose last column is what counts; `--write`
puts it in its place in a file.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import chain, cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmarks.environment import ROOT, commit, cpu
from benchmarks.page import put
from benchmarks.parse import check_agreement

from lpcfg.kinds.constituency.model import from_bundle
from lpcfg.store.versions import load
from lpcfg.trees.brackets import read
from lpcfg.trees.normalize import normalize

LENGTHS = (20, 40, 80, 160)
PIECES = 6
"""Pieces of running text of every length, and sentences of random words."""
RANDOM_WORDS = 200

WORKER = """
import json, sys, time
started = time.process_time()
import lpcfg
parser = lpcfg.load(sys.argv[1], store=sys.argv[2])
parser.parse([["It", "works", "."]])
seconds = time.process_time() - started
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
memory = int(status["VmHWM"].split()[0]) / 1000
parser.parse([["It", "works", "."]], rescore=False)
print(json.dumps({"start": seconds, "memory": memory}), flush=True)
for line in sys.stdin:
    layer, sentences = json.loads(line)
    seconds = []
    for words in sentences:
        sentence = lpcfg.Sentence(tuple(words))
        began = time.thread_time()
        parser.parse([sentence], rescore=layer)
        seconds.append(time.thread_time() - began)
    print(json.dumps(seconds), flush=True)
"""
"""Written for both sides alike, so it uses only what the earlier commit has as well."""


class Job(NamedTuple):
    """Sentences to time, with or without the rescoring layer."""

    name: str
    layer: bool
    sentences: Sequence[Sequence[str]]


class Side:
    """A process that parses with the package of one checkout."""

    def __init__(self, checkout: Path, model: str, store: Path) -> None:
        variables = {**os.environ, "PYTHONPATH": str(checkout / "service"), "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-c", WORKER, model, str(store)],
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        began = self._read()
        self.start, self.memory = began["start"], began["memory"]

    def seconds(self, job: Job) -> Sequence[float]:
        """Return the CPU seconds of every sentence."""
        assert self._process.stdin is not None
        print(json.dumps([job.layer, job.sentences]), file=self._process.stdin, flush=True)
        seconds: Sequence[float] = self._read()
        return seconds

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("expected a process that parses, got one that ended: see its error")
        return json.loads(line)

    def close(self) -> None:
        """End the process by the end of its input."""
        assert self._process.stdin is not None
        with self._process:
            self._process.stdin.close()


def main() -> None:
    arguments = _arguments()
    found = filter(None, map(normalize, read(arguments.treebank)))
    gold = list(islice(found, arguments.sentences))
    check_agreement(from_bundle(load(arguments.model, arguments.store)), gold)
    sides = []
    for checkout in (checked_out(arguments.base), ROOT):
        Side(checkout, arguments.model, arguments.store.resolve()).close()  # compiles its kernels
        sides.append(Side(checkout, arguments.model, arguments.store.resolve()))
    jobs = list(jobs_of([tree.tokens() for tree in gold]))
    rows = [(job, *compared(sides, job, arguments.turns)) for job in jobs]
    text = table(rows, sides, arguments.base)
    print(text)
    if arguments.write:
        put(arguments.write, "speed", text)
    for side in sides:
        side.close()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="en", help="NAME or NAME@VERSION, which both can load")
    parser.add_argument("--store", default=ROOT / "model_store", type=Path, help="the model store")
    parser.add_argument("--treebank", required=True, type=Path, help="trees whose words are parsed")
    parser.add_argument("--base", required=True, help="the earlier commit")
    parser.add_argument("--sentences", type=int, default=200, help="of the treebank, at most")
    parser.add_argument("--turns", type=int, default=5, help="how often each side parses each")
    parser.add_argument("--write", type=Path, help="the file that the table is put into")
    return parser.parse_args()


def checked_out(base: str) -> Path:
    """Check an earlier commit out, if it is not there from another run."""
    folder = ROOT / "artifacts" / f"speed-{base}"
    if not folder.exists():
        subprocess.run(
            ["git", "worktree", "add", "--quiet", "--detach", str(folder), base],
            cwd=ROOT,
            check=True,
        )
    return folder


def jobs_of(sentences: Sequence[Sequence[str]]) -> Iterator[Job]:
    """Yield everything that is timed: the treebank, pieces of its text, and random words."""
    yield Job("treebank, without layer", False, sentences)
    yield Job("treebank, with layer", True, sentences)
    text = cycle(chain.from_iterable(sentences))
    for length in LENGTHS:
        pieces = [list(islice(text, length)) for _ in range(PIECES)]
        yield Job(f"{length} words of running text", True, pieces)
    words = sorted(set(chain.from_iterable(sentences)))
    rng = np.random.default_rng(0)
    drawn = rng.integers(len(words), size=(PIECES, RANDOM_WORDS)).tolist()
    yield Job(f"{RANDOM_WORDS} random words", True, [[words[x] for x in row] for row in drawn])


def compared(sides: Sequence[Side], job: Job, turns: int) -> tuple[float, float]:
    """Return the mean milliseconds of a sentence of both sides, which take turns."""
    least = np.full((len(sides), len(job.sentences)), np.inf)
    for _ in range(turns):
        for row, side in enumerate(sides):
            least[row] = np.minimum(least[row], side.seconds(job))
    before, after = (1000 * least.mean(axis=1)).tolist()
    return before, after


def table(rows: Sequence[tuple[Job, float, float]], sides: Sequence[Side], base: str) -> str:
    """Write the figures as a Markdown table."""
    lines = [
        f"{cpu()}, commit {commit()} against {base}; CPU time of one thread",
        "",
        "| milliseconds a sentence | before | now | sentences a second | before / now |",
        "|---|---|---|---|---|",
    ]
    for job, before, after in rows:
        speed = f"{1000 / after:.0f}"
        lines.append(
            f"| {job.name} | {before:.2f} | {after:.2f} | {speed} | {before / after:.2f} |"
        )
    old, new = sides
    for name, before, after in (
        ("import to first parse, seconds", old.start, new.start),
        ("peak memory after it, MB", old.memory, new.memory),
    ):
        lines.append(f"| {name} | {before:.2f} | {after:.2f} | | {before / after:.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
