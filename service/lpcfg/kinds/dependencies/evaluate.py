"""Evaluate dependency trees: attachment scores, whole trees, calibration."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from lpcfg.base.errors import InputError
from lpcfg.kinds.dependencies.arcs import Arcs

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
