"""The base parser of the dependency paper: arcs scored by a linear model of sparse features.

As in MSTParser, a score is the sum of weights of the arc's features (McDonald 2006). It is learned
as a conditional random field over projective trees, not by MIRA: the same features and the same
decoding, and scores that are log probabilities. Tags are given.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from benchmarks.dependency_trees.features import (
    ARC,
    COARSE,
    PAD,
    TAG,
    Keys,
    Words64,
    bucket,
    fact_codes,
    framed,
    joined,
    mixed,
    place_of,
    tag_codes,
)
from benchmarks.dependency_trees.k_best import k_best_trees
from numba import njit

from lpcfg.grammar.tables import Doubles, Longs, Singles
from lpcfg.kinds.dependencies import eisner
from lpcfg.kinds.dependencies.arcs import Arcs

FREQUENT = 3
"""Words seen so often have features of their own."""
SEEN = 2
"""So often must a feature occur on gold arcs to have a weight."""
PASSES = 3
RATE = 0.1
DECAY = 0.01
MARGIN = 0.5
"""Added to the scores of all wrong arcs while learning (softmax margin)."""
_MOST_BETWEEN = 24
ROOM = len(ARC.parts) + 2 * _MOST_BETWEEN


class Coded(NamedTuple):
    """Codes of all sentences' places, one behind the other, and their heads."""

    codes: Words64
    first: Longs
    heads: Longs
    words: Longs


@dataclass(frozen=True, eq=False)
class LinearParser:
    """Weights of features in an open table; `frequent` are the words with features of their own."""

    frequent: frozenset[str]
    keys: Keys
    weights: Singles

    def scores(self, arcs: Arcs) -> Doubles:
        """Return the scores of all arcs of a sentence; only its words and tags are looked at."""
        coded = coded_trees([arcs], self.frequent)
        score: Doubles = arc_scores(
            coded.codes, len(arcs.words), self.keys, self.weights, ARC.parts, ARC.distance
        )
        return score

    def k_best(self, arcs: Arcs, k: int) -> tuple[Longs, Doubles]:
        """Find the heads of the k best trees, a row each, and their log probabilities."""
        score = self.scores(arcs)
        heads, sums = k_best_trees(score, k)
        return heads, sums - eisner.inside(score)[2]


def learn(trees: Sequence[Arcs], seed: int = 0) -> LinearParser:
    """Learn from projective trees."""
    templates = ARC.parts, ARC.distance
    return LinearParser(
        *learned(
            trees,
            seed,
            lambda coded: _gold_keys(coded, *templates),
            lambda coded, order, keys, weights, squares: _learn(
                coded, order, keys, weights, squares, *templates
            ),
        )
    )


def learned(
    trees: Sequence[Arcs],
    seed: int,
    gold_keys: Callable[[Coded], Words64],
    take_pass: Callable[[Coded, Longs, Keys, Singles, Singles], None],
) -> tuple[frozenset[str], Keys, Singles]:
    """Return frequent words, and a table of the features that gold trees have, with its weights.

    A pass changes weights and sums of squares; weights are averaged from the second pass on.
    """
    count = Counter(word for arcs in trees for word in arcs.words)
    frequent = frozenset(word for word, n in count.items() if n >= FREQUENT)
    coded = coded_trees(trees, frequent)
    found, times = np.unique(gold_keys(coded), return_counts=True)
    kept = found[times >= SEEN]
    keys = table_of(kept, 1 << int(np.ceil(np.log2(max(2 * len(kept), 2)))))
    weights, squares = np.zeros(len(keys), np.float32), np.ones(len(keys), np.float32)
    total = np.zeros(len(keys), np.float32)
    random = np.random.default_rng(seed)
    for number in range(PASSES):
        take_pass(coded, random.permutation(len(trees)), keys, weights, squares)
        if number:
            total += weights
    return frequent, keys, total / np.float32(PASSES - 1)


def coded_trees(trees: Sequence[Arcs], frequent: frozenset[str]) -> Coded:
    of_word: dict[str, list[int]] = {}
    of_tag: dict[str, list[int]] = {}
    frames: list[Words64] = []
    heads: list[int] = []
    for arcs in trees:
        for word in arcs.words:
            if word not in of_word:
                of_word[word] = fact_codes(word, word in frequent)
        for tag in arcs.tags:
            if tag not in of_tag:
                of_tag[tag] = tag_codes(tag)
        words = np.array([of_word[word] for word in arcs.words], np.int64)
        frames.append(framed(words, np.array([of_tag[tag] for tag in arcs.tags], np.int64)))
        heads += arcs.heads
    return Coded(
        np.concatenate(frames),
        np.cumsum([0, *map(len, frames)]),
        np.array(heads, np.int64),
        np.cumsum([0, *(len(arcs.words) for arcs in trees)]),
    )


@njit(cache=True, nogil=True)
def arc_keys(
    codes: Words64, h: int, m: int, at: Longs, parts: Longs, far: Longs, out: Words64
) -> Any:
    """Write the keys of an arc's features into `out`: the templates', and those of every coarse tag
    between.
    """
    at[0], at[1] = h, m
    direction = 1 if m > h else 0
    count = joined(codes, at, direction, bucket(abs(m - h)), parts, far, out)
    low, high = min(h, m) + PAD, max(h, m) + PAD
    fine = mixed(mixed(np.uint64(900 + direction), codes[h + PAD, TAG]), codes[m + PAD, TAG])
    coarse = mixed(
        mixed(np.uint64(902 + direction), codes[h + PAD, COARSE]), codes[m + PAD, COARSE]
    )
    first = count
    for b in range(low + 1, high):
        key = mixed(fine, codes[b, COARSE])
        known = False
        for other in range(first, count, 2):
            known = known or out[other] == key
        if not known and h > 0 and count + 1 < len(out):
            out[count] = key
            out[count + 1] = mixed(coarse, codes[b, COARSE])
            count += 2
    return count


@njit(cache=True, nogil=True)
def _gold_keys(coded: Coded, parts: Longs, far: Longs) -> Any:
    """Return the keys of all gold arcs' features."""
    out = np.empty(len(coded.heads) * ROOM, np.uint64)
    keys, at = np.empty(ROOM, np.uint64), np.zeros(6, np.int64)
    total = 0
    for s in range(len(coded.first) - 1):
        codes = coded.codes[coded.first[s] : coded.first[s + 1]]
        for m in range(1, coded.words[s + 1] - coded.words[s] + 1):
            count = arc_keys(codes, coded.heads[coded.words[s] + m - 1], m, at, parts, far, keys)
            out[total : total + count] = keys[:count]
            total += count
    return out[:total]


@njit(cache=True, nogil=True)
def table_of(keys: Words64, size: int) -> Any:
    """Return an open table of keys, as `place_of` looks them up."""
    table = np.zeros(size, np.uint32)
    mask = np.uint64(size - 1)
    for key in keys:
        wanted = np.uint32(key >> np.uint64(32)) | np.uint32(1)
        at = key & mask
        while table[at] != 0 and table[at] != wanted:
            at = (at + np.uint64(1)) & mask
        table[at] = wanted
    return table


@njit(cache=True, nogil=True)
def arc_scores(
    codes: Words64, n: int, table: Keys, weights: Singles, parts: Longs, far: Longs
) -> Any:
    score = np.full((n + 1, n + 1), -1e30)
    keys, at = np.empty(ROOM, np.uint64), np.zeros(6, np.int64)
    for h in range(n + 1):
        for m in range(1, n + 1):
            if h == m:
                continue
            total = 0.0
            for key in keys[: arc_keys(codes, h, m, at, parts, far, keys)]:
                place = place_of(table, key)
                if place >= 0:
                    total += weights[place]
            score[h, m] = total
    return score


@njit(cache=True, nogil=True)
def _learn(
    coded: Coded,
    order: Longs,
    table: Keys,
    weights: Singles,
    squares: Singles,
    parts: Longs,
    far: Longs,
) -> None:
    """Take one pass of AdaGrad over the sentences in this order."""
    keys, at = np.empty(ROOM, np.uint64), np.zeros(6, np.int64)
    for s in order:
        codes = coded.codes[coded.first[s] : coded.first[s + 1]]
        heads = coded.heads[coded.words[s] : coded.words[s + 1]]
        n = len(heads)
        score = arc_scores(codes, n, table, weights, parts, far)
        for m in range(1, n + 1):
            score[heads[m - 1], m] -= MARGIN
        posterior, _ = eisner.marginals(score)
        for m in range(1, n + 1):
            for h in range(n + 1):
                gap = posterior[h, m] - (1.0 if h == heads[m - 1] else 0.0)
                if h == m or abs(gap) < 1e-3:
                    continue
                for key in keys[: arc_keys(codes, h, m, at, parts, far, keys)]:
                    place = place_of(table, key)
                    if place >= 0:
                        step = gap + DECAY * weights[place]
                        squares[place] += step * step
                        weights[place] -= RATE * step / np.sqrt(squares[place])
