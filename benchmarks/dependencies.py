"""Print the table of the dependency paper: a base parser, reranked by triples of tags and log |p|.

    python -m benchmarks.dependencies rerank gum-dep|craft [--order 1|2] [--limit N] [--longest N]
    python -m benchmarks.dependencies join en-dep model_store

`rerank` learns the base parser, of first or second order, on the training trees and, for the
reranker's lists, three times on two thirds of them (jack-knifed, contiguous). Punctuation is
stripped, tags are gold. Prints a row of the table for each set of features, and p of the paired
bootstrap against the row it is beside.

`join` adds a multiple of log p of the expansion to log p of a stored parser's 20 best trees on
gum-dep/dev, with the parser's own tags, and prints UAS by the factor.
"""

import argparse
import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from benchmarks.dependency_trees import expanded, linear, reranking, second_order
from benchmarks.dependency_trees.bootstrap import paired_bootstrap, right_heads
from benchmarks.dependency_trees.k_best import k_best_trees
from benchmarks.dependency_trees.reranking import Candidates
from benchmarks.dependency_trees.second_order import SiblingParser
from benchmarks.dependency_trees.tree_scores import TreeScores

from lpcfg.kinds.dependencies import conllu, spectral
from lpcfg.kinds.dependencies.arcs import Arcs, projectivized
from lpcfg.kinds.dependencies.head_rules import arcs_of
from lpcfg.kinds.dependencies.predict import DependencyParser
from lpcfg.kinds.dependencies.vocabulary import Vocabulary
from lpcfg.training.estimators.spectral import SpectralConfig
from lpcfg.trees.brackets import read
from lpcfg.trees.normalize import normalize

DATA = Path(os.environ.get("LPCFG_DATA", "../shared/data"))
K = 50
FOLDS = 3
PUNCTUATION = {",", ".", ":", "``", "''", "-LRB-", "-RRB-", "HYPH", "NFP"}


def bank(name: str, part: str) -> list[Arcs]:
    """Read the projective trees of a bank, without punctuation; tags are XPOS."""
    if name == "gum-dep":
        trees = [one.arcs for one in conllu.read(DATA / "gum-dep" / f"{part}.conllu")]
    else:
        normal = map(normalize, read(DATA / name / f"{part}.mrg"))
        trees = [arcs_of(tree) for tree in normal if tree is not None]
    kept = (stripped(projectivized(arcs)[0]) for arcs in trees)
    return [arcs for arcs in kept if arcs is not None]


def stripped(arcs: Arcs) -> Arcs | None:
    """Remove punctuation from a tree; words below it get its head instead."""
    tags = [tag.partition("|")[2] for tag in arcs.tags]
    kept = [m for m in range(1, len(tags) + 1) if tags[m - 1] not in PUNCTUATION]
    if not kept:
        return None
    number = {m: k for k, m in enumerate(kept, start=1)}
    heads = []
    for m in kept:
        head = arcs.heads[m - 1]
        while head and head not in number:
            head = arcs.heads[head - 1]
        heads.append(number.get(head, 0))
    roots = [k for k, head in enumerate(heads, start=1) if head == 0]
    heads = [roots[0] if h == 0 and k != roots[0] else h for k, h in enumerate(heads, start=1)]
    plain = Arcs(
        tuple(arcs.words[m - 1] for m in kept),
        tuple(heads),
        tuple(arcs.labels[m - 1] for m in kept),
        tuple(f"{tags[m - 1]}|{tags[m - 1]}" for m in kept),
    )
    return projectivized(plain)[0]


def spectral_model(trees: Sequence[Arcs], states: int) -> tuple[Vocabulary, spectral.Operators]:
    vocabulary = Vocabulary.of((word for arcs in trees for word in arcs.words), least=5)
    examples = spectral.Examples.of(trees, vocabulary)
    learned = spectral.Representation.learned(examples, len(vocabulary.names), states)
    return vocabulary, spectral.Operators.estimated(examples, learned)


BASES: dict[int, Callable[[Sequence[Arcs], int], linear.LinearParser | SiblingParser]] = {
    1: linear.learn,
    2: second_order.learn,
}


class Models:
    """The base parser and both generative models of some trees."""

    def __init__(self, trees: Sequence[Arcs], order: int, states: int, seed: int) -> None:
        started = time.process_time()
        self.base = BASES[order](trees, seed)
        base = time.process_time()
        self.vocabulary, self.operators = spectral_model(trees, states)
        algorithm = time.process_time()
        config = SpectralConfig(states=16)
        self.expanded = TreeScores(expanded.learn(trees, "spectral", config, seed=seed))
        self.seconds = {
            "base": round(base - started, 1),
            "algorithm 1": round(algorithm - base, 1),
            "expansion": round(time.process_time() - algorithm, 1),
        }

    def candidates(self, arcs: Arcs) -> Candidates:
        heads, logs = self.base.k_best(arcs, K)
        words = self.vocabulary.numbers(arcs.words)
        _, by_words = self.operators.probabilities(words, heads)
        by_trees, unseen = self.expanded.of(arcs, heads)
        columns = (logs, by_words, by_trees, unseen.astype(np.float64))
        return Candidates(arcs, heads, np.stack(columns, axis=1))


ROWS = (
    ("base parser", None, False),
    ("base score + triples", (0,), True),
    ("+ log p of Algorithm 1", (0, 1), True),
    ("+ log p of the expansion", (0, 2, 3), True),
    ("+ both", (0, 1, 2, 3), True),
)


def cut(one: Candidates, columns: Sequence[int]) -> Candidates:
    return Candidates(one.sentence, one.heads, one.numbers[:, list(columns)])


def rerank(given: argparse.Namespace) -> None:
    order, states, seed = given.order, given.states, given.seed
    train, dev = (
        [arcs for arcs in bank(given.bank, part) if len(arcs.words) <= given.longest]
        for part in ("train", "dev")
    )
    train = train[: given.limit]
    note(f"{len(train)} trees to learn from, {len(dev)} to parse")
    lists = []
    for k in range(FOLDS):
        low, high = k * len(train) // FOLDS, (k + 1) * len(train) // FOLDS
        models = Models([*train[:low], *train[high:]], order, states, seed)
        lists += [models.candidates(arcs) for arcs in train[low:high]]
        note(f"fold {k + 1}: {models.seconds}")
    models = Models(train, order, states, seed)
    note(f"all: {models.seconds}, conditions {models.operators.conditions}")
    of_dev = [models.candidates(arcs) for arcs in dev]
    words = np.array([len(arcs.words) for arcs in dev])
    best = np.array([one.right.max() for one in of_dev])
    report({"row": f"best of {K}", "uas": percent(best, words), "complete": complete(best, words)})
    right: dict[str, np.ndarray] = {}
    for title, columns, use_triples in ROWS:
        if columns is None:
            chosen = [0] * len(dev)
        else:
            examples = [cut(one, columns) for one in lists]
            model = reranking.learn(examples, use_triples=use_triples, seed=seed)
            chosen = [model.best(cut(one, columns)) for one in of_dev]
        found = np.array([one.right[k] for one, k in zip(of_dev, chosen, strict=True)])
        row = {"row": title, "uas": percent(found, words), "complete": complete(found, words)}
        against = {"base parser": None, "base score + triples": "base parser"}
        other = against.get(title, "base score + triples")
        if other is not None:
            gain, p = paired_bootstrap(right[other], found, words)
            row |= {"against": other, "gain": round(gain, 2), "p": round(p, 4)}
        right[title] = found
        report(row)


JOINED = 20
FACTORS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5)


def join(reference: str, store: str) -> None:
    train = [one.arcs for one in conllu.read(DATA / "gum-dep" / "train.conllu")]
    dev = [one.arcs for one in conllu.read(DATA / "gum-dep" / "dev.conllu")]
    trees = [projectivized(arcs)[0] for arcs in train]
    scores = TreeScores(expanded.learn(trees, "spectral", SpectralConfig(states=16)))
    parser = DependencyParser.load(reference, store)
    found = parser.parse([arcs.words for arcs in dev])
    words = np.array([len(arcs.words) for arcs in dev])
    first = right_heads(dev, [one.arcs for one in found])
    report({"row": "parser", "uas": percent(first, words), "complete": complete(first, words)})
    lists = []
    for arcs, one in zip(dev, found, strict=True):
        [score] = parser.arc_scores([arcs.words])
        heads, sums = k_best_trees(score, JOINED)  # log p(tree | sentence), but for log Z
        by_trees, _ = scores.of(one.arcs, heads)
        numbers = np.stack([sums, by_trees], axis=1)
        lists.append(Candidates(arcs, heads, numbers))
    for factor in FACTORS:
        weights = np.array([1.0, factor])
        right = np.array([one.right[np.argmax(one.numbers @ weights)] for one in lists])
        gain, p = paired_bootstrap(first, right, words)
        row = {"row": f"+ {factor} log p", "uas": percent(right, words)}
        report(
            {**row, "complete": complete(right, words), "gain": round(gain, 2), "p": round(p, 4)}
        )


def percent(right: np.ndarray, words: np.ndarray) -> float:
    return round(float(100 * right.sum() / words.sum()), 2)


def complete(right: np.ndarray, words: np.ndarray) -> float:
    return round(float(100 * (right == words).mean()), 2)


def report(row: dict[str, object]) -> None:
    print(json.dumps(row), flush=True)


def note(text: str) -> None:
    print(text, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("rerank")
    one.add_argument("bank", choices=("gum-dep", "craft"))
    one.add_argument("--order", type=int, choices=BASES, default=1, help="of the base parser")
    one.add_argument("--limit", type=int, help="learn from the first so many trees")
    one.add_argument("--longest", type=int, default=1000, help="leave longer sentences out")
    one.add_argument("--states", type=int, default=10)
    one.add_argument("--seed", type=int, default=0)
    other = commands.add_parser("join")
    other.add_argument("model")
    other.add_argument("store")
    given = parser.parse_args()
    if given.command == "join":
        join(given.model, given.store)
    else:
        rerank(given)


if __name__ == "__main__":
    main()
