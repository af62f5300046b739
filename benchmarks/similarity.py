"""Sentence similarity on SemEval 2012's pairs, our table beside the paper's (Jha et al. 2012).

    python -m benchmarks.similarity --words words.safetensors

Learns on the three training sets, with and without eigenwords; prints Pearson's correlation of
every test set, of ALL pairs and the weighted mean, and how often eigenwords win when the test
pairs are drawn anew. Then cross-validation on the training pairs alone, by which features were
chosen.
"""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from benchmarks.environment import ROOT

from lpcfg.words.files import load
from lpcfg.words.ridge import FOLDS
from lpcfg.words.similarity import (
    EIGENWORDS,
    Correlations,
    ScoredPairs,
    Similarity,
    correlations,
    pearson,
    read_scored_pairs,
    train_similarity,
)
from lpcfg.words.surface import COUNTED, LENGTHS, SURFACE

TRAIN = ("MSRpar", "MSRvid", "SMTeuroparl")
TEST = (*TRAIN, "surprise.OnWN", "surprise.SMTnews")
PAPER = {
    "paper: task baseline": (0.4334, 0.2996, 0.4542, 0.5864, 0.3908, 0.3110, 0.4356),
    "paper: system baseline (surface and WordNet)": (
        *(0.5143, 0.7736, 0.3574, 0.5017, 0.3867),
        *(0.6542, 0.5343),
    ),
    "paper: + eigenwords": (0.5267, 0.7787, 0.3853, 0.5237, 0.4495, 0.6724, 0.5560),
}
COLUMNS = {
    "lengths and counts": (*LENGTHS, *COUNTED),
    "lengths and counts + eigenwords": (*LENGTHS, *COUNTED, EIGENWORDS),
    "with shares": SURFACE,
    "with shares + eigenwords": (*SURFACE, EIGENWORDS),
}
DRAWS = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    data = Path(os.environ.get("LPCFG_DATA", ROOT.parent / "shared" / "data")) / "sts2012"
    parser.add_argument("--data", type=Path, default=data, help="folder with train and gold")
    parser.add_argument("--words", type=Path, required=True, help="what `lpcfg words train` wrote")
    arguments = parser.parse_args()
    train = _sets(arguments.data / "train", TRAIN)
    test = _sets(arguments.data / "gold", TEST)
    pairs = [pair for found, _ in train for pair in found]
    scores = [score for _, gold in train for score in gold]
    words = load(arguments.words)
    print(f"| | {' | '.join(TEST)} | ALL | mean | held-out train |\n|{'---|' * 9}")
    for name, values in PAPER.items():
        _print_row(name, [*values, None])
    measures = {}
    for name, columns in COLUMNS.items():
        measures[name] = train_similarity(pairs, scores, words, columns=columns)
        found = correlations(measures[name], test)
        held = _held_out(pairs, scores, measures[name])
        _print_row(name, [*found.sets, found.all, found.mean, held])
    _print_wins(measures["with shares"], measures["with shares + eigenwords"], test)


def _sets(folder: Path, names: Sequence[str]) -> list[ScoredPairs]:
    return [
        read_scored_pairs(folder / f"STS.input.{name}.txt", folder / f"STS.gs.{name}.txt")
        for name in names
    ]


def _print_row(name: str, values: Sequence[float | None]) -> None:
    cells = ["" if value is None else f"{value:.4f}" for value in values]
    print(f"| {name} | {' | '.join(cells)} |")


def _held_out(
    pairs: Sequence[tuple[str, str]], scores: Sequence[float], measure: Similarity
) -> float:
    """Compute the correlation over the training pairs, each scored by a measure of the other
    folds.
    """
    found = np.empty(len(pairs))
    for fold in range(FOLDS):
        held = [k for k in range(len(pairs)) if k % FOLDS == fold]
        rest = [k for k in range(len(pairs)) if k % FOLDS != fold]
        learned = train_similarity(
            [pairs[k] for k in rest],
            [scores[k] for k in rest],
            measure.words,
            columns=measure.columns,
        )
        found[held] = learned.score([pairs[k] for k in held])
    return pearson(found, np.array(scores))


def _print_wins(without: Similarity, with_words: Similarity, test: Sequence[ScoredPairs]) -> None:
    """Print how often one measure beats the other on pairs drawn with replacement within each
    set.
    """
    gold = [np.array(scores) for _, scores in test]
    found = [[measure.score(pairs) for pairs, _ in test] for measure in (without, with_words)]
    rng = np.random.default_rng(0)
    wins = np.zeros(2)
    for _ in range(DRAWS):
        drawn = [rng.integers(len(one), size=len(one)) for one in gold]
        both = [_drawn_correlations(scores, gold, drawn) for scores in found]
        wins += [both[1].all > both[0].all, both[1].mean > both[0].mean]
    print(
        f"\neigenwords win on ALL in {wins[0] / DRAWS:.1%} of draws, on the mean in "
        f"{wins[1] / DRAWS:.1%}"
    )


def _drawn_correlations(
    scores: Sequence[np.ndarray], gold: Sequence[np.ndarray], drawn: Sequence[np.ndarray]
) -> Correlations:
    parts = [(one[k], two[k]) for one, two, k in zip(scores, gold, drawn, strict=True)]
    each = [pearson(*part) for part in parts]
    pooled = [np.concatenate(side) for side in zip(*parts, strict=True)]
    mean = float(np.average(each, weights=[len(k) for k in drawn]))
    return Correlations(tuple(each), pearson(*pooled), mean)


if __name__ == "__main__":
    main()
