"""Eigenwords: seconds and memory of learning them, and what they say about tags.

    OMP_NUM_THREADS=1 python -m benchmarks.eigenwords --method one-step two-step lr-mvl

A probe finds tags by least squares on random features of vectors: of three neighbouring words, and
of tokens in context ([word; left; right], again of three neighbours). It learns on gum, masc and
the first 4,000 trees of craft. Accuracies rank ways of learning vectors; they are no tagger's.
"""

import argparse
import json
import os
import resource
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from benchmarks.environment import ROOT, Record, environment

from lpcfg.text.tokenize import penn_forms
from lpcfg.trees.brackets import read
from lpcfg.trees.normalize import normalize
from lpcfg.words.cca import EigenwordOptions, learn
from lpcfg.words.corpus import treebank_sentences
from lpcfg.words.eigenwords import Eigenwords

BANKS = ("gum", "craft", "masc", "genia")
DEV = ("gum", "craft", "mctb")
HIDDEN = 1200
PENALTY = 3.0

Tagged = list[tuple[list[str], list[str]]]
Vectors = Callable[[Sequence[str]], np.ndarray]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    data = Path(os.environ.get("LPCFG_DATA", ROOT.parent / "shared" / "data"))
    parser.add_argument("--data", type=Path, default=data)
    parser.add_argument("--method", nargs="+", default=["one-step"])
    parser.add_argument("--raw", action="store_true", help="counts instead of square roots")
    parser.add_argument("--no-probe", action="store_true")
    arguments = parser.parse_args()
    for method in arguments.method:
        record, words = measure(arguments.data, method, square_roots=not arguments.raw)
        if not arguments.no_probe:
            record |= probe(arguments.data, words)
        print(json.dumps(record | environment(0)), flush=True)


def measure(data: Path, method: str, *, square_roots: bool) -> tuple[Record, Eigenwords]:
    """Learn vectors from all raw text and the training trees' words; kernels are compiled first."""
    options = EigenwordOptions(method=method, square_roots=square_roots)  # type: ignore[arg-type]
    learn([["warm", "up"]] * 5, options=options)
    sentences = list(treebank_sentences(data / bank / "train.mrg" for bank in BANKS))
    texts = sorted((data / "text").glob("*.txt.gz"))
    wall, cpu = time.perf_counter(), time.process_time()
    words = learn(sentences, texts, options)
    return {
        "method": method,
        "square_roots": square_roots,
        "words": len(words.words),
        "wall_seconds": round(time.perf_counter() - wall, 1),
        "cpu_seconds": round(time.process_time() - cpu, 1),
        "learning_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000),
    }, words


def probe(data: Path, words: Eigenwords) -> Record:
    """Tag accuracy of a least-squares probe, per development set, with and without context."""
    train = tagged(data / "gum", "train") + tagged(data / "masc", "train")
    train += tagged(data / "craft", "train")[:4000]
    kinds: dict[str, Vectors] = {"words": words.matrix, "context": words.token_vectors}
    found: Record = {}
    for kind, vectors in kinds.items():
        tags = sorted({tag for _, one in train for tag in one})
        place = {tag: k for k, tag in enumerate(tags)}
        model = Probe(train, vectors, place)
        for bank in DEV:
            dev = tagged(data / bank, "dev")
            gold = [place.get(tag, -1) for _, one in dev for tag in one]
            right = np.mean(model.tags(dev) == gold)
            found[f"{kind} {bank}"] = round(100 * float(right), 2)
    return found


def tagged(folder: Path, part: str) -> Tagged:
    """Read words, in the forms that parsers look up, and tags of the trees of a bank."""
    found = []
    for tree in map(normalize, read(folder / f"{part}.mrg")):
        if tree is not None:
            tags = [leaf.label for leaf in tree.leaves()]
            found.append((list(penn_forms(tree.tokens(), tags)), tags))
    return found


class Probe:
    """Ridge regression of tags' indicators on linear and random rectified features."""

    def __init__(self, train: Tagged, vectors: Vectors, place: dict[str, int]) -> None:
        self._vectors = vectors
        width = self._windows(train[:1]).shape[1]
        rng = np.random.default_rng(0)
        self._mix = rng.standard_normal((width, HIDDEN)).astype(np.float32)
        self._bias = rng.standard_normal(HIDDEN).astype(np.float32) * np.float32(0.3)
        size = width + HIDDEN + 1
        moments, targets = np.zeros((size, size)), np.zeros((size, len(place)))
        for start in range(0, len(train), 1000):
            part = train[start : start + 1000]
            rows = self._features(part)
            gold = np.array([place[tag] for _, tags in part for tag in tags])
            moments += rows.T @ rows
            targets += rows.T @ np.eye(len(place), dtype=np.float32)[gold]
        self._weights = np.linalg.solve(moments + PENALTY * np.eye(size), targets)

    def tags(self, sentences: Tagged) -> np.ndarray:
        """Return the tags found for all tokens, one after the other."""
        return np.argmax(self._features(sentences) @ self._weights, axis=1)

    def _features(self, sentences: Tagged) -> np.ndarray:
        rows = self._windows(sentences)
        ones = np.ones((len(rows), 1), np.float32)
        return np.hstack([rows, np.maximum(rows @ self._mix + self._bias, 0), ones])

    def _windows(self, sentences: Tagged) -> np.ndarray:
        """Build vectors of the token before, the token and the next, with two facts of its
        spelling.
        """
        rows = []
        for tokens, _ in sentences:
            own = self._vectors(tokens)
            edge = np.zeros((1, own.shape[1]), np.float32)
            spelling = [[token[0].isupper(), token[0].isdigit()] for token in tokens]
            sides = [np.vstack([edge, own[:-1]]), own, np.vstack([own[1:], edge])]
            rows.append(np.hstack([*sides, np.array(spelling, np.float32)]))
        return np.vstack(rows)


if __name__ == "__main__":
    main()
