"""Evaluate dependency trees: attachment scores, whole trees, calibration."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

import numpy as np

from lpcfg.base.errors import InputError
from lpcfg.kinds.dependencies.arcs import Arcs
from lpcfg.kinds.dependencies.predict import DependencyParser, ParsedArcs

BINS = 20


@dataclass(frozen=True)
class Scores:
    """Percentages. Relations are compared whole, subtype included.

    `uas` and `las` count all words, those `without_punctuation` only words whose gold tag is not
    PUNCT; `complete` are sentences in which every head is right.
    """

    uas: float
    las: float
    complete: float
    uas_without_punctuation: float
    las_without_punctuation: float
    complete_without_punctuation: float
    tag_accuracy: float | None
    words: int
    sentences: int

    def as_json(self) -> dict[str, float | int | None]:
        return asdict(self)


def evaluate(gold: Sequence[Arcs], predicted: Sequence[Arcs]) -> Scores:
    """Compare trees over the same words."""
    _check_alike(gold, predicted)
    heads, relations, plain, tags = [], [], [], []
    for one, other in zip(gold, predicted, strict=True):
        right = np.array(one.heads) == np.array(other.heads)
        heads.append(right)
        relations.append(
            right & np.array([a == b for a, b in zip(one.labels, other.labels, strict=True)])
        )
        plain.append(np.array([not tag.startswith("PUNCT") for tag in one.tags or one.words]))
        if one.tags and other.tags:
            tags += [a == b for a, b in zip(one.tags, other.tags, strict=True)]
    all_heads, all_relations, is_plain = map(np.concatenate, (heads, relations, plain))
    return Scores(
        _percent(all_heads),
        _percent(all_relations),
        _percent(np.array([right.all() for right in heads])),
        _percent(all_heads[is_plain]),
        _percent(all_relations[is_plain]),
        _percent(np.array([right[p].all() for right, p in zip(heads, plain, strict=True)])),
        _percent(np.array(tags)) if tags else None,
        len(all_heads),
        len(gold),
    )


def _percent(right: np.ndarray) -> float:
    return float(100 * right.mean()) if len(right) else 100.0


def _check_alike(gold: Sequence[Arcs], predicted: Sequence[Arcs]) -> None:
    if not gold or len(gold) != len(predicted):
        raise InputError(
            f"expected as many trees as there are gold ones, at least one, got {len(predicted)} "
            f"for {len(gold)}: parse every sentence"
        )
    for number, (one, other) in enumerate(zip(gold, predicted, strict=True), start=1):
        if one.words != other.words:
            raise InputError(
                f"expected the same words in both trees of sentence {number}: "
                "compare trees of one file"
            )


def calibration_error(probabilities: Sequence[float], right: Sequence[bool]) -> float:
    """Compute the mean distance between probability and share of right answers, over bins of equal
    width.
    """
    p, is_right = np.array(probabilities), np.array(right)
    bins = np.minimum((p * BINS).astype(int), BINS - 1)
    error = 0.0
    for b in np.unique(bins):
        inside = bins == b
        error += abs(p[inside].mean() - is_right[inside].mean()) * inside.mean()
    return float(error)


@dataclass(frozen=True)
class Measured:
    """The scores of a parser on gold trees."""

    scores: Scores
    calibration_error: float
    relation_calibration_error: float
    sentences_per_second: float
    right: tuple[tuple[int, int], ...]
    """Right heads, and words, of each sentence."""

    measure = "UAS"
    shown = (
        ("UAS", "uas", 2),
        ("LAS", "las", 2),
        ("tag accuracy", "tag_accuracy", 2),
        ("calibration error", "calibration_error", 4),
        ("sentences a second", "sentences_per_second", 1),
    )

    def as_json(self) -> dict[str, Any]:
        """Return what `lpcfg evaluate --json` prints."""
        return {
            **self.scores.as_json(),
            "calibration_error": self.calibration_error,
            "relation_calibration_error": self.relation_calibration_error,
            "sentences_per_second": self.sentences_per_second,
        }

    def counts(self) -> list[tuple[float, float]]:
        """Return right heads, and twice the words, of every sentence."""
        return [(right, 2 * words) for right, words in self.right]

    def text(self) -> str:
        """Write the scores as lines."""
        one = self.scores
        plain = (
            one.uas_without_punctuation,
            one.las_without_punctuation,
            one.complete_without_punctuation,
        )
        lines = [f"sentences {one.sentences}, words {one.words}"]
        for title, figures in (
            ("all words", (one.uas, one.las, one.complete)),
            ("without punctuation", plain),
        ):
            lines.append(f"{title}: UAS {{:.2f}}, LAS {{:.2f}}, complete {{:.2f}}".format(*figures))
        if one.tag_accuracy is not None:
            lines.append(f"tags right: {one.tag_accuracy:.2f} %")
        return "\n".join(
            [
                *lines,
                f"calibration error: heads {self.calibration_error:.4f}, "
                f"heads with relations {self.relation_calibration_error:.4f}",
                f"sentences a second: {self.sentences_per_second:.0f}",
            ]
        )


def measure(parser: DependencyParser, gold: Iterable[Arcs]) -> Measured:
    """Parse the words of gold trees, from tokens alone, and compare; seconds are of the CPU."""
    gold = list(gold)
    parser.parse([arcs.words for arcs in gold[:4]])  # compiled before the clock starts
    started = time.process_time()
    found = parser.parse([arcs.words for arcs in gold])
    seconds = time.process_time() - started
    pairs = list(zip(gold, found, strict=True))
    right = [_right(one, other, relations=False) for one, other in pairs]
    both = [_right(one, other, relations=True) for one, other in pairs]
    sure = [p for one in found for p in one.head_probabilities]
    return Measured(
        evaluate(gold, [one.arcs for one in found]),
        calibration_error(sure, list(chain(*right))),
        calibration_error([p for one in found for p in one.probabilities], list(chain(*both))),
        len(gold) / max(seconds, 1e-9),
        tuple((sum(one), len(one)) for one in right),
    )


def _right(gold: Arcs, found: ParsedArcs, *, relations: bool) -> list[bool]:
    return [
        head == gold.heads[m] and (not relations or found.arcs.labels[m] == gold.labels[m])
        for m, head in enumerate(found.arcs.heads)
    ]
