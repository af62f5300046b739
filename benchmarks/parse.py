"""Sentences per second, by length, threads and pruning, and the time of each part.

    python -m benchmarks.parse --json --model en --store model_store --treebank dev.mrg

It prints one object per line: the treebank as it is, on one thread and on two; sentences of 10 to
160 words; pruning thresholds with their F1; starts of a process with and without compiled kernels.
The model is first compared with the exact engine on short sentences.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from itertools import chain, cycle, islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from benchmarks.environment import ROOT, Record, environment

from lpcfg.engine.exact.inside_outside import inside
from lpcfg.engine.pruned import decode, fine
from lpcfg.engine.pruned.coarse import Coarse, Thresholds
from lpcfg.kinds.constituency.brackets import evaluate
from lpcfg.kinds.constituency.model import Model, from_bundle
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.kinds.sentences import Sentence, sentence_from_tree
from lpcfg.store.versions import load
from lpcfg.trees.brackets import read
from lpcfg.trees.normalize import normalize
from lpcfg.trees.tree import Tree

LENGTHS = (10, 20, 40, 80, 160)
SCALES = (0.0, 0.1, 1.0, 10.0, 100.0)
"""Factors on the default thresholds. 0 removes nothing."""
UNPRUNED_WORDS = 15
"""Longer sentences are not parsed without pruning."""
CHECKED = 5
CHECKED_WORDS = 6
AGREEMENT = 1e-3
"""log p(x) of whole charts in float32: 4e-5 at most in tests/engine/test_fine.py."""

START = """
import sys, time
started = time.perf_counter()
from lpcfg.kinds.constituency.results import Sentence
from lpcfg.kinds.constituency.predict import Parser
imported = time.perf_counter()
parser = Parser.load(sys.argv[1], sys.argv[2])
loaded = time.perf_counter()
parser.parse([Sentence(tuple(sys.argv[3:]))])
print(imported - started, loaded - imported, time.perf_counter() - loaded, time.process_time())
lines = dict(line.split(":") for line in open("/proc/self/status"))
print(*(lines[name].split()[0] for name in ("VmRSS", "VmHWM")))
"""


def main() -> None:
    arguments = _arguments()
    for record in measure(arguments):
        if arguments.json:
            print(json.dumps(record), flush=True)
        else:
            print("  ".join(f"{key}={value}" for key, value in record.items()), flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", required=True, help="NAME or NAME@VERSION")
    parser.add_argument("--store", required=True, type=Path, help="the model store")
    parser.add_argument("--treebank", required=True, type=Path, help="gold trees")
    parser.add_argument("--sentences", type=int, default=1000, help="of the treebank, at most")
    parser.add_argument("--repeat", type=int, default=20, help="sentences of every length")
    parser.add_argument("--profile", action="store_true", help="only where the time goes")
    parser.add_argument("--starts", action="store_true", help="only starts of a process")
    parser.add_argument("--json", action="store_true", help="one object a line")
    return parser.parse_args()


def measure(arguments: argparse.Namespace) -> Iterator[Record]:
    """Yield all records, each with its environment."""
    trees = (tree for tree in map(normalize, read(arguments.treebank)) if tree is not None)
    gold = list(islice(trees, arguments.sentences))
    model = from_bundle(load(arguments.model, arguments.store))
    check_agreement(model, gold)
    parser = Parser(model)
    parser.parse(list(map(sentence_from_tree, gold[:1])))
    about = {
        "model": arguments.model,
        "states": model.states,
        "members": len(model.members),
        "treebank": arguments.treebank.name,
    }
    for record in _records(parser, gold, arguments):
        yield {**environment(0), **about, **record}


def _records(
    parser: Parser, gold: Sequence[Tree], arguments: argparse.Namespace
) -> Iterator[Record]:
    if not arguments.starts:
        yield from _parsing(parser, gold, arguments)
    if not arguments.profile:
        for cache in ("cold", "warm"):
            yield start(arguments.model, arguments.store, gold[0].tokens(), cache)


def _parsing(
    parser: Parser, gold: Sequence[Tree], arguments: argparse.Namespace
) -> Iterator[Record]:
    yield profile(parser, gold)
    if arguments.profile:
        return
    for threads in (1, 2):
        yield throughput(parser, gold, threads)
    for length in LENGTHS:
        yield of_length(parser, gold, length, arguments.repeat)
    for scale in SCALES:
        yield pruned(parser.model, gold, scale)


def check_agreement(model: Model, gold: Sequence[Tree]) -> None:
    """End the program unless whole charts of short sentences have the exact engine's p(x)."""
    short = (tree for tree in gold if len(tree.tokens()) <= CHECKED_WORDS)
    # an item of no probability at all has no share to divide by
    nothing_out = Thresholds(merit=0.0, item=math.ulp(0.0), edge=0.0)
    for tree in islice(short, CHECKED):
        for member in model.members or (model.coarse,):
            alone = replace(model, members=(member,), fallback=None)
            parser = Parser(alone, thresholds=nothing_out)
            sentence = sentence_from_tree(tree)
            (found,) = parser.parse([sentence])
            right = inside(member, parser._emissions(sentence)).probability
            if found.status != "parsed" and right.sign == 0:
                continue
            error = abs((found.log_probability or 0.0) - right.log)
            if found.sign != right.sign or error > AGREEMENT:
                raise SystemExit(
                    f"expected log p(x) {right.sign}, {right.log} of {sentence.tokens}, "
                    f"got {found.sign}, {found.log_probability}: nothing to time"
                )


def timed(parser: Parser, sentences: Sequence[Sentence]) -> tuple[list[Any], list[float]]:
    """Analyse sentences one by one. Return the analyses and the seconds of each."""
    analyses, seconds = [], []
    for sentence in sentences:
        started = time.perf_counter()
        analyses += parser.parse([sentence])
        seconds.append(time.perf_counter() - started)
    return analyses, seconds


def summary(seconds: Sequence[float]) -> Record:
    """Compute p50 and p99 of single sentences, in milliseconds."""
    p50, p99 = np.percentile(seconds, [50, 99]) * 1000
    return {
        "n": len(seconds),
        "p50_ms": round(float(p50), 3),
        "p99_ms": round(float(p99), 3),
        "mean_ms": round(1000 * sum(seconds) / len(seconds), 3),
    }


def throughput(parser: Parser, gold: Sequence[Tree], threads: int) -> Record:
    """Measure sentences per second of wall-clock time; each thread takes the next sentence."""
    sentences = list(map(sentence_from_tree, gold))
    with ThreadPoolExecutor(threads) as pool:
        started = time.perf_counter()
        parts = list(pool.map(lambda one: timed(parser, [one]), sentences))
        elapsed = time.perf_counter() - started
    trees = [analyses[0].parses[0].tree if analyses[0].parses else None for analyses, _ in parts]
    return {
        "what": "treebank",
        "parse_threads": threads,
        "sentences_per_second": round(len(sentences) / elapsed, 1),
        "f1": round(evaluate(zip(gold, trees, strict=True)).brackets.f1, 2),
        **summary([seconds[0] for _, seconds in parts]),
    }


def of_length(parser: Parser, gold: Sequence[Tree], length: int, repeat: int) -> Record:
    """Collect sentences of one length: the treebank's own, then pieces of its running text."""
    own = [tuple(tree.tokens()) for tree in gold if len(tree.tokens()) == length]
    text = cycle(chain.from_iterable(tree.tokens() for tree in gold))
    cut = [tuple(islice(text, length)) for _ in range(repeat - len(own))]
    _, seconds = timed(parser, [Sentence(words) for words in (own + cut)[:repeat]])
    record = summary(seconds)
    return {
        "what": "length",
        "length": length,
        "of_the_treebank": min(len(own), repeat),
        "sentences_per_second": round(len(seconds) / sum(seconds), 1),
        **record,
    }


def pruned(model: Model, gold: Sequence[Tree], scale: float) -> Record:
    """Measure speed and F1 with thresholds of `scale` times the default."""
    default = asdict(Thresholds())
    thresholds = Thresholds(**{name: scale * value for name, value in default.items()})
    if scale == 0:
        thresholds = replace(thresholds, item=math.ulp(0.0))
        gold = [tree for tree in gold if len(tree.tokens()) <= UNPRUNED_WORDS]
    analyses, seconds = timed(
        Parser(model, thresholds=thresholds), list(map(sentence_from_tree, gold))
    )
    trees = [one.parses[0].tree if one.parses else None for one in analyses]
    return {
        "what": "pruning",
        "scale": scale,
        **asdict(thresholds),
        "most_words": max(len(tree.tokens()) for tree in gold),
        "f1": round(evaluate(zip(gold, trees, strict=True)).brackets.f1, 2),
        "sentences_per_second": round(len(seconds) / sum(seconds), 1),
        **summary(seconds),
    }


def profile(parser: Parser, gold: Sequence[Tree]) -> Record:
    """Measure milliseconds per sentence in the coarse and fine passes, the decoder, the rest."""
    spent = {"coarse": 0.0, "fine": 0.0, "decode": 0.0}
    with ExitStack() as stack:
        stack.enter_context(_watched(spent, "coarse", Coarse, "prune"))
        stack.enter_context(_watched(spent, "fine", fine, "posteriors"))
        stack.enter_context(_watched(spent, "fine", fine, "tree_ratio"))
        stack.enter_context(_watched(spent, "decode", decode, "best"))
        _, seconds = timed(parser, list(map(sentence_from_tree, gold)))
    parts = {name: 1000 * value / len(seconds) for name, value in spent.items()}
    parts["python"] = 1000 * sum(seconds) / len(seconds) - sum(parts.values())
    return {
        "what": "profile",
        **{f"{name}_ms": round(value, 3) for name, value in parts.items()},
        **summary(seconds),
    }


@contextmanager
def _watched(spent: dict[str, float], name: str, owner: object, attribute: str) -> Iterator[None]:
    """Add the seconds of every call to spent[name]."""
    function = getattr(owner, attribute)

    def watched(*given: Any, **named: Any) -> Any:
        started = time.perf_counter()
        result = function(*given, **named)
        spent[name] += time.perf_counter() - started
        return result

    with patch.object(owner, attribute, watched):
        yield


def start(model: str, store: Path, words: Sequence[str], cache: str) -> Record:
    """Measure the seconds from a new process's first import to its first parse, and its memory.

    A cold cache is empty, so every kernel is compiled. A warm one has just been filled.
    """
    with tempfile.TemporaryDirectory() as folder:
        variables = {**os.environ, "NUMBA_CACHE_DIR": folder}
        command = [sys.executable, "-c", START, model, str(store), *words]
        for _ in range(1 if cache == "cold" else 2):
            began = time.perf_counter()
            done = subprocess.run(
                command, cwd=ROOT, env=variables, capture_output=True, text=True, check=True
            )
            process = time.perf_counter() - began
    *parts, cpu, resident, peak = (float(part) for part in done.stdout.split())
    names = ("import_seconds", "load_seconds", "first_parse_seconds")
    return {
        "what": "start",
        "cache": cache,
        **{name: round(value, 3) for name, value in zip(names, parts, strict=True)},
        "seconds": round(sum(parts), 3),
        "process_seconds": round(process, 3),
        "cpu_seconds": round(cpu, 3),
        "resident_mb": round(resident / 1024, 1),
        "peak_mb": round(peak / 1024, 1),
    }


if __name__ == "__main__":
    main()
