"""How similar two sentences are, by ridge regression (Jha, Schwartz and Ungar 2012).

features x     surface metrics of the pair and their eigenword similarity s; also x² and √x
s(a, b)        aᵀ W b / (|a| |b|); a and b say of each content word whether a sentence has it
W              similarities of words: the cube of the cosine of their eigenwords, 0 where it is
               negative, 1 for a word with itself
score          ridge regression on x, clipped to the scale people used

The paper's six surface metrics are numbers: the difference and the mean of lengths, and how many
words, content words, base forms and numerals both sentences have. Here the last four also enter as
shares, divided by √(number in a · number in b): a number alone confuses similar with long. The
cube, the content words and the shares were chosen by cross-validation on the paper's training
pairs: see docs/words.md.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import isfinite, nan
from pathlib import Path

import numpy as np

from lpcfg.base.errors import GrammarError, InputError, TrainingError
from lpcfg.text.files import lines
from lpcfg.text.tokenize import tokenize
from lpcfg.words.eigenwords import Eigenwords
from lpcfg.words.files import (
    contradictions_named,
    read_tensors,
    tensors_of,
    words_of,
    write_tensors,
)
from lpcfg.words.ridge import Doubles, Ridge, fit_by_folds
from lpcfg.words.surface import SURFACE, forms_in, is_word, sentence_sets, surface_metrics

Pair = tuple[str, str]
Forms = tuple[Sequence[str], Sequence[str]]
"""A pair of sentences as the forms of their tokens"""

KIND = "similarity"
EIGENWORDS = "eigenwords"
SCALE = (0.0, 5.0)
"""SemEval's: 0 is "on different topics", 5 "completely equivalent"."""

_POWER = 3


def word_similarities(words: Eigenwords, a: Sequence[str], b: Sequence[str]) -> Doubles:
    """Compute W for the words of a and of b, (len(a), len(b))."""
    cosines = words.matrix(a).astype(np.float64) @ words.matrix(b).astype(np.float64).T
    same = np.array([[in_a.lower() == in_b.lower() for in_b in b] for in_a in a], np.bool_)
    return np.where(same.reshape(cosines.shape), 1.0, np.clip(cosines, 0, 1) ** _POWER)


def eigenword_similarity(words: Eigenwords, a: Sequence[str], b: Sequence[str]) -> float:
    """Compute s of two sets of words, 0 if either is empty."""
    if not a or not b:
        return 0.0
    return float(word_similarities(words, a, b).sum() / np.sqrt(len(a) * len(b)))


def expanded(rows: Doubles) -> Doubles:
    """Return the columns, their squares and their square roots."""
    return np.hstack([rows, rows**2, np.sqrt(rows)])


@dataclass(frozen=True, eq=False)
class Alignment:
    """A word of the first sentence and the word of the second that it is most similar to."""

    first: int
    second: int
    """Places among the tokens of both sentences"""
    similarity: float


@dataclass(frozen=True, eq=False)
class Similarity:
    """A learned measure of sentences' similarity."""

    columns: tuple[str, ...]
    """Features it uses, among `SURFACE` and `EIGENWORDS`"""
    ridge: Ridge
    words: Eigenwords | None = None
    scale: tuple[float, float] = SCALE

    def __post_init__(self) -> None:
        check_columns(self.columns, self.words)

    def score(self, pairs: Sequence[Pair]) -> Doubles:
        """Score how similar the sentences of each pair are, on the scale."""
        return self.score_forms([(forms_in(a), forms_in(b)) for a, b in pairs])

    def score_forms(self, pairs: Sequence[Forms]) -> Doubles:
        """Return the same of sentences that are tokenised."""
        rows = expanded(features(pairs, self.columns, self.words))
        return np.clip(self.ridge.predict(rows), *self.scale)

    def align(self, a: Sequence[str], b: Sequence[str]) -> list[Alignment]:
        """Pair the words of two sentences of tokens that are each other's most similar word.

        Only words count, no marks; of equals, the first ones are taken.
        """
        if self.words is None:
            raise InputError(
                "expected a measure with vectors of words to align words by, got one of surface "
                "metrics alone: train it with vectors"
            )
        places = [[k for k, token in enumerate(side) if is_word(token)] for side in (a, b)]
        if not places[0] or not places[1]:
            return []
        table = word_similarities(self.words, [a[k] for k in places[0]], [b[k] for k in places[1]])
        best = table.argmax(axis=1)
        return [
            Alignment(places[0][i], places[1][j], float(table[i, j]))
            for i, j in enumerate(best.tolist())
            if table[i, j] > 0 and int(table[:, j].argmax()) == i
        ]

    def save(self, path: Path) -> None:
        """Write the measure with its vectors to one .safetensors file."""
        ridge = self.ridge
        tensors = {"mean": ridge.mean, "scale": ridge.scale, "weights": ridge.weights}
        if self.words is not None:
            tensors |= tensors_of(Eigenwords(self.words.words, self.words.vectors))
        numbers = {"intercept": ridge.intercept, "penalty": ridge.penalty}
        facts = {"columns": self.columns, "range": self.scale, **numbers}
        write_tensors(path, KIND, tensors, facts)

    @classmethod
    def load(cls, path: Path) -> "Similarity":
        """Read what `save` wrote."""
        tensors, facts = read_tensors(path, KIND)
        with contradictions_named(path):
            table = {name: tensors[name] for name in ("mean", "scale", "weights")}
            ridge = Ridge(
                **table, intercept=float(facts["intercept"]), penalty=float(facts["penalty"])
            )
            low, high = facts["range"]
            words = words_of(tensors, ()) if "words" in tensors else None
            return cls(tuple(facts["columns"]), ridge, words, (float(low), float(high)))


def check_columns(columns: Sequence[str], words: Eigenwords | None) -> None:
    """Refuse features that are not known, or that need vectors where there are none."""
    if unknown := set(columns) - {*SURFACE, EIGENWORDS}:
        raise GrammarError(f"expected features among {(*SURFACE, EIGENWORDS)}, got {unknown}")
    if EIGENWORDS in columns and words is None:
        raise GrammarError(f"expected vectors of words for the feature {EIGENWORDS}, got none")


def features(pairs: Sequence[Forms], columns: Sequence[str], words: Eigenwords | None) -> Doubles:
    """Return the features of pairs that the columns name, (len(pairs), len(columns))."""
    rows = []
    for pair in pairs:
        a, b = map(sentence_sets, pair)
        values = dict(zip(SURFACE, surface_metrics(a, b), strict=True))
        if words is not None:
            values[EIGENWORDS] = eigenword_similarity(words, a.content, b.content)
        rows.append([values[column] for column in columns])
    return np.array(rows, np.float64).reshape(len(pairs), len(columns))


def train_similarity(
    pairs: Sequence[Pair],
    scores: Sequence[float],
    words: Eigenwords | None = None,
    *,
    columns: Sequence[str] | None = None,
    scale: tuple[float, float] = SCALE,
) -> Similarity:
    """Learn a measure from pairs of sentences and people's scores."""
    if len(pairs) != len(scores):
        raise TrainingError(f"expected a score for each of {len(pairs)} pairs, got {len(scores)}")
    low, high = scale
    for number, value in enumerate(scores, start=1):
        if not low <= value <= high:
            raise TrainingError(
                f"expected scores from {low:g} to {high:g}, got {value:g} for pair {number}: "
                "correct it or change the scale"
            )
    chosen = tuple(columns or (SURFACE if words is None else (*SURFACE, EIGENWORDS)))
    check_columns(chosen, words)
    forms = [(forms_in(a), forms_in(b)) for a, b in pairs]
    rows = expanded(features(forms, chosen, words))
    ridge = fit_by_folds(rows, np.array(scores, np.float64))
    return Similarity(chosen, ridge, words, scale)


ScoredPairs = tuple[list[Pair], list[float]]
"""Pairs and people's scores of them."""


def read_scored_pairs(pairs: Path, scores: Path) -> ScoredPairs:
    """Read pairs and their scores from two files that go line by line."""
    read, gold = read_pairs(pairs), read_scores(scores)
    if len(read) != len(gold) or not read:
        raise InputError(
            f"expected a score for each pair, one or more, got {len(read)} pairs in {pairs} and "
            f"{len(gold)} scores in {scores}: give files that go together"
        )
    return read, gold


def comparison(measure: Similarity, pair: Pair) -> dict[str, object]:
    """Score a pair and align its words, as JSON: alignments hold places of tokens."""
    sides = [tokenize(sentence) for sentence in pair]
    forms = [[token.form for token in side] for side in sides]
    aligned = [] if measure.words is None else measure.align(*forms)
    first, second = (
        [{"text": token.text, "start": token.start, "end": token.end} for token in side]
        for side in sides
    )
    return {
        "score": float(measure.score_forms([(forms[0], forms[1])])[0]),
        "first": {"tokens": first},
        "second": {"tokens": second},
        "alignments": [asdict(alignment) for alignment in aligned],
    }


@dataclass(frozen=True)
class Correlations:
    """Pearson's correlations with people's scores, as in SemEval 2012."""

    sets: tuple[float, ...]
    all: float
    """Of all pairs at once"""
    mean: float
    """Of sets, weighted by their numbers of pairs"""


def correlations(measure: Similarity, sets: Sequence[ScoredPairs]) -> Correlations:
    """Correlate a measure's scores with people's."""
    predicted = [measure.score(pairs) for pairs, _ in sets]
    gold = [np.array(scores, np.float64) for _, scores in sets]
    each = [pearson(x, y) for x, y in zip(predicted, gold, strict=True)]
    sizes = [len(scores) for scores in gold]
    return Correlations(
        tuple(each),
        pearson(np.concatenate(predicted), np.concatenate(gold)),
        float(np.average(each, weights=sizes)),
    )


def pearson(predicted: Doubles, gold: Doubles) -> float:
    """Compute Pearson's correlation; 0 where either does not vary."""
    x, y = predicted - predicted.mean(), gold - gold.mean()
    size = float(np.linalg.norm(x) * np.linalg.norm(y))
    return float(x @ y) / size if size > 0 else 0.0


def read_pairs(path: Path | None) -> list[Pair]:
    """Read pairs of sentences, a pair a line, a tab between them; None is standard input."""
    pairs = []
    for number, line in enumerate(lines(path), start=1):
        sentences = line.rstrip("\r\n").split("\t")
        if len(sentences) != 2 or not all(map(str.strip, sentences)):
            raise InputError(
                f"expected two sentences with a tab between them, at {path or '<stdin>'}:{number}, "
                f"got {line.strip()[:60]!r}: correct the line"
            )
        pairs.append((sentences[0], sentences[1]))
    return pairs


def read_scores(path: Path) -> list[float]:
    """Read scores, a number a line."""
    scores = []
    for number, line in enumerate(lines(path), start=1):
        try:
            scores.append(float(line))
        except ValueError:
            scores.append(nan)
        if not isfinite(scores[-1]):
            raise InputError(
                f"expected a number, at {path}:{number}, got {line.strip()[:60]!r}: "
                "correct the line"
            )
    return scores
