"""Interpolated Kneser-Ney n-gram models (Kneser and Ney 1995; one discount an order).

    p(w | c) = max(count(c w) − D, 0) / count(c ·)  +  D · N(c ·) / count(c ·) · p(w | c')

with N(c ·) the number of distinct words after c, c' the context without its first word, D =
n₁ / (n₁ + 2 n₂) from the n-grams seen once and twice, and a uniform distribution below the
unigrams. Below the highest order, count(c w) is the number of distinct words before c w; n-grams
at the start of a sentence, which have none, keep their counts.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lpcfg.base.errors import InputError, SettingsError
from lpcfg.grammar.tables import Doubles, Longs
from lpcfg.lm.corpus import Sentence, Vocabulary

NO_SINGLETONS_DISCOUNT = 0.5
"""Used if no n-gram is seen once: the estimate is then 0, and unseen words would be impossible."""
BEFORE_START = -1
"""Stands in contexts for the places before the start of the sentence."""


@dataclass(frozen=True, slots=True)
class Level:
    """N-grams of one order by key, their contexts by key, both sorted."""

    grams: Longs
    counts: Doubles
    contexts: Longs
    totals: Doubles
    """count(c ·)"""
    types: Doubles
    """N(c ·)"""
    discount: float


@dataclass(frozen=True)
class KneserNey:
    """A Kneser-Ney model of orders 1 to len(levels) over one vocabulary."""

    vocabulary: Vocabulary
    levels: tuple[Level, ...]

    @classmethod
    def train(cls, sentences: Iterable[Sentence], *, order: int, min_count: int = 2) -> "KneserNey":
        """Train a model. Words seen fewer than `min_count` times are its unknown word."""
        texts = list(sentences)
        vocabulary = Vocabulary.of(texts, min_count)
        base = vocabulary.start + 1
        if order < 1 or base**order > np.iinfo(np.int64).max:
            raise SettingsError(
                f"expected an order from 1 whose n-grams of {base} words have 63-bit keys, "
                f"got {order}: choose a lower one from 1 up"
            )
        seen = _windows(vocabulary, texts, order)
        seen = seen[(seen != BEFORE_START).all(axis=1)]
        levels = []
        for n in range(order, 0, -1):
            grams, counts = np.unique(seen, axis=0, return_counts=True)
            levels.append(_level(grams, counts.astype(np.float64), base))
            openings = _windows(vocabulary, texts, n - 1) if n > 2 else grams[:0, 1:]
            seen = np.concatenate((grams[:, 1:], openings[openings[:, :1].ravel() == base - 1]))
        return cls(vocabulary, tuple(reversed(levels)))

    def probabilities(self, windows: Longs) -> Doubles:
        """Compute p(w | c), (N,), of windows (N, order) of word numbers: the context, then the
        word.

        Places before the start of the sentence hold `BEFORE_START`.
        """
        base, order = self.vocabulary.start + 1, len(self.levels)
        result = np.full(len(windows), 1 / len(self.vocabulary.words))
        for n, level in enumerate(self.levels, start=1):
            window = windows[:, order - n :]
            inside = (window != BEFORE_START).all(axis=1)
            context, known = _find(level.contexts, _keys(window[:, :-1], base))
            gram, seen = _find(level.grams, _keys(window, base))
            counts = np.where(seen, level.counts[gram], 0.0)
            mixed = np.maximum(counts - level.discount, 0.0)
            mixed += level.discount * level.types[context] * result
            result = np.where(inside & known, mixed / level.totals[context], result)
        return result

    def perplexity(self, sentences: Iterable[Sentence]) -> float:
        """Compute the perplexity over known words, like `LanguageModel.perplexity`."""
        windows = _windows(self.vocabulary, sentences, len(self.levels))
        scored = windows[windows[:, -1] != 0]
        if not len(scored):
            raise InputError(
                f"expected a known word to score, got {len(windows)} words, all unknown "
                "to the model: choose text like what it was trained on"
            )
        return float(np.exp(-np.mean(np.log(self.probabilities(scored)))))


def _windows(vocabulary: Vocabulary, sentences: Iterable[Sentence], n: int) -> Longs:
    """Build windows (tokens, n): every word with the n − 1 words before it."""
    padding = np.full(n - 1, BEFORE_START, dtype=np.int64)
    padding[n - 2 :] = vocabulary.start
    windows = [np.empty((0, n), dtype=np.int64)]
    for words in vocabulary.encode(sentences):
        padded = np.concatenate((padding, words))
        if len(words):
            windows.append(np.lib.stride_tricks.sliding_window_view(padded, n))
    return np.concatenate(windows)


def _level(grams: Longs, counts: Doubles, base: int) -> Level:
    """Sum over the words after each context. `grams` must be sorted."""
    contexts, first = np.unique(_keys(grams[:, :-1], base), return_index=True)
    once, twice = np.count_nonzero(counts == 1), np.count_nonzero(counts == 2)
    return Level(
        _keys(grams, base),
        counts,
        contexts,
        np.add.reduceat(counts, first),
        np.diff(np.append(first, len(counts))).astype(np.float64),
        once / (once + 2 * twice) if once else NO_SINGLETONS_DISCOUNT,
    )


def _keys(grams: Longs, base: int) -> Longs:
    """Encode each row of word numbers as one number, in the same order; 0 for rows of length 0."""
    keys = np.zeros(len(grams), dtype=np.int64)
    for column in grams.T:
        keys = keys * base + column
    return keys


def _find(keys: Longs, wanted: Longs) -> tuple[Longs, NDArray[np.bool_]]:
    """Find each wanted key among the sorted keys. Return the indices, and which were found."""
    index = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return index, keys[index] == wanted
