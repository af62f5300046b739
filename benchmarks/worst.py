"""The slowest of many random inputs: words in disorder, few words repeated, odd characters.

    OMP_NUM_THREADS=1 python -m benchmarks.worst --model en --treebank dev.mrg --inputs 10000

It prints one object: median, p99 and the largest CPU time of one input in milliseconds, with the
slowest input itself.
"""

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
from benchmarks.environment import ROOT, environment

from lpcfg.kinds.constituency.predict import Parser
from lpcfg.kinds.sentences import Sentence
from lpcfg.trees.brackets import read

ODD = ("(", ")", ",", "'", "...", "-", "42", "3.14", "%", "http://x.org", "\N{GRINNING FACE}", "é")
LONGEST = 200
"""The most words of an input: the service takes no more by default."""


def main() -> None:
    arguments = _arguments()
    parser = Parser.load(arguments.model, arguments.store)
    known = sorted({word for tree in read(arguments.treebank) for word in tree.tokens()})
    parser.parse("It works.")
    slowest: tuple[float, Sequence[str]] = (0.0, ())
    seconds = []
    for words in islice(inputs(known, np.random.default_rng(0)), arguments.inputs):
        began = time.thread_time()
        parser.parse([Sentence(tuple(words))])
        seconds.append(time.thread_time() - began)
        slowest = max(slowest, (seconds[-1], words))
    p50, p99 = (1000 * np.percentile(seconds, [50, 99])).round(1).tolist()
    record = {
        **environment(0),
        "model": arguments.model,
        "inputs": len(seconds),
        "p50_ms": p50,
        "p99_ms": p99,
        "worst_ms": round(1000 * slowest[0], 1),
        "worst": " ".join(slowest[1])[:200],
    }
    print(json.dumps(record))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="en", help="NAME or NAME@VERSION")
    parser.add_argument("--store", default=ROOT / "model_store", type=Path, help="the model store")
    parser.add_argument("--treebank", required=True, type=Path, help="trees whose words are drawn")
    parser.add_argument("--inputs", type=int, default=10_000)
    return parser.parse_args()


def inputs(known: Sequence[str], rng: np.random.Generator) -> Iterator[list[str]]:
    """Yield inputs of 1 to LONGEST words, of four kinds in turn: known words in disorder, few known
    words again and again, known words among odd ones, and odd ones alone."""
    while True:
        few = rng.choice(known, size=int(rng.integers(1, 5))).tolist()
        both = [*rng.choice(known, size=len(ODD)).tolist(), *ODD]
        for words in (known, few, both, ODD):
            yield rng.choice(words, size=int(rng.integers(1, LONGEST + 1))).tolist()


if __name__ == "__main__":
    main()
