"""Measure what constituents' posteriors add to a dependency parser.

    python -m benchmarks.arcs_and_constituents en-dep en model_store

Of the dependency parser's 20 best trees of every sentence of gum-dep/dev, choose the one with the
largest log p(tree | sentence) + λ Σ log q, where q is the constituency model's expected number of
constituents over the words under each head, for heads with words under them, and at least FLOOR.
λ is chosen on one half of the sentences and used on the other, the halves interleaved.
"""

import argparse
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from benchmarks.dependency_trees.bootstrap import paired_bootstrap, right_heads
from benchmarks.dependency_trees.k_best import k_best_trees

from lpcfg.kinds.constituency.predict import Parser
from lpcfg.kinds.dependencies import conllu
from lpcfg.kinds.dependencies.arcs import modifiers
from lpcfg.kinds.dependencies.predict import DependencyParser

DATA = Path(os.environ.get("LPCFG_DATA", "../shared/data"))
BEST = 20
FLOOR = 0.01
FACTORS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8)
Spans = dict[tuple[int, int], float]


def yields(heads: Sequence[int]) -> list[tuple[int, int]]:
    """Return the spans [start, end) of words under each head, itself included, if not alone."""
    below = modifiers(heads)

    def span(word: int) -> tuple[int, int]:
        spans = [span(m) for m in below[word]]
        found = (
            min([word - 1, *(start for start, _ in spans)]),
            max([word, *(end for _, end in spans)]),
        )
        if spans:
            result.append(found)
        return found

    result: list[tuple[int, int]] = []
    for root in below[0]:
        span(root)
    return result


def constituents(parser: Parser, words: Sequence[str]) -> Spans:
    """Return the expected number of labels over every span."""
    found = parser.marginals(list(words))
    return {(one.start, one.end): one.expected for one in found.cells}


def agreement(heads: Sequence[int], spans: Spans) -> float:
    """Compute Σ log q over the spans under heads."""
    return sum(np.log(min(max(spans.get(one, 0.0), FLOOR), 1.0)) for one in yields(heads))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("dependencies", "constituency", "store"):
        arguments.add_argument(name)
    given = arguments.parse_args()
    parser = DependencyParser.load(given.dependencies, given.store)
    other = Parser.load(given.constituency, given.store)
    dev = [one.arcs for one in conllu.read(DATA / "gum-dep" / "dev.conllu")]
    words = np.array([len(arcs.words) for arcs in dev])
    started = time.process_time()
    spans = [constituents(other, arcs.words) for arcs in dev]
    seconds = time.process_time() - started
    first = right_heads(dev, [one.arcs for one in parser.parse([arcs.words for arcs in dev])])
    right = np.zeros((len(FACTORS), len(dev)), np.int64)
    for k, (arcs, score) in enumerate(
        zip(dev, parser.arc_scores([arcs.words for arcs in dev]), strict=True)
    ):
        heads, sums = k_best_trees(score, BEST)
        added = np.array([agreement(one, spans[k]) for one in heads.tolist()])
        gold = (heads == np.array(arcs.heads)).sum(axis=1)
        for row, factor in enumerate(FACTORS):
            right[row, k] = gold[np.argmax(sums + factor * added)]
    half = np.arange(len(dev)) % 2 == 0
    chosen = np.empty(len(dev), np.int64)
    for part in (half, ~half):
        chosen[part] = right[right[:, ~part].sum(axis=1).argmax(), part]
    for title, found in (
        ("parser", first),
        *((f"λ = {factor}", right[row]) for row, factor in enumerate(FACTORS)),
        ("λ of the other half", chosen),
    ):
        gain, p = paired_bootstrap(first, found, words)
        uas = 100 * found.sum() / words.sum()
        row = {"row": title, "uas": round(float(uas), 2), "gain": round(gain, 2), "p": round(p, 4)}
        print(json.dumps(row), flush=True)
    print(json.dumps({"constituency model's CPU seconds": round(seconds, 1)}))


if __name__ == "__main__":
    main()
