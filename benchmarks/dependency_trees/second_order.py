"""The base parser of second order: features of arcs, and of neighbouring modifiers of a head.

Learned like the parser of first order (`linear`), as a conditional random field over projective
trees whose scores are of head, nearer sibling and modifier (McDonald and Pereira 2006).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from benchmarks.dependency_trees import siblings
from benchmarks.dependency_trees.features import (
    ARC,
    PAD,
    SIBLINGS,
    TRIPLES,
    Keys,
    Words64,
    bucket,
    joined,
    place_of,
)
from benchmarks.dependency_trees.linear import (
    DECAY,
    MARGIN,
    RATE,
    ROOM,
    Coded,
    arc_keys,
    arc_scores,
    coded_trees,
    learned,
)
from numba import njit

from lpcfg.grammar.tables import Doubles, Longs, Singles
from lpcfg.kinds.dependencies.arcs import Arcs

LEAST_GAP = 1e-3
"""Posteriors so near to the truth teach nothing."""
_PAIR, _TRIPLE = 2, 4  # added to the direction, so that no two kinds of features share a key


class _Templates(NamedTuple):
    """Parts, and which have distances: of arcs, of siblings, of triples."""

    arcs: Longs
    far_arcs: Longs
    pairs: Longs
    far_pairs: Longs
    triples: Longs
    far_triples: Longs


_ALL = _Templates(
    *(ARC.parts, ARC.distance),
    *(SIBLINGS.parts, SIBLINGS.distance),
    *(TRIPLES.parts, TRIPLES.distance),
)


@dataclass(frozen=True, eq=False)
class SiblingParser:
    """Weights of features in an open table; `frequent` are the words with features of their own."""

    frequent: frozenset[str]
    keys: Keys
    weights: Singles

    def scores(self, arcs: Arcs) -> Doubles:
        """Return the scores of all h, s, m; only the sentence's words and tags are looked at."""
        coded = coded_trees([arcs], self.frequent)
        score: Doubles = _scores(coded.codes, len(arcs.words), self.keys, self.weights, _ALL)
        return score

    def k_best(self, arcs: Arcs, k: int) -> tuple[Longs, Doubles]:
        """Find the heads of the k best trees, a row each, and their log probabilities."""
        score = self.scores(arcs)
        heads, sums = siblings.k_best_trees(score, k)
        return heads, sums - siblings.inside(score)[3]


def learn(trees: Sequence[Arcs], seed: int = 0) -> SiblingParser:
    """Learn from projective trees."""
    return SiblingParser(
        *learned(
            trees,
            seed,
            lambda coded: _gold_keys(coded, _ALL),
            lambda coded, order, keys, weights, squares: _learn(
                coded, order, keys, weights, squares, _ALL
            ),
        )
    )


@njit(cache=True, nogil=True)
def _pair_keys(
    codes: Words64, s: int, m: int, at: Longs, templates: _Templates, out: Words64
) -> Any:
    """Write the keys of the features of neighbouring modifiers, s nearer to the head."""
    at[1], at[2] = m, s
    side = _PAIR + (1 if m > s else 0)
    return joined(codes, at, side, bucket(abs(m - s)), templates.pairs, templates.far_pairs, out)


@njit(cache=True, nogil=True)
def _triple_keys(
    codes: Words64, h: int, s: int, m: int, at: Longs, templates: _Templates, out: Words64
) -> Any:
    """Write the keys of the features of head, sibling and modifier."""
    at[0], at[1], at[2] = h, m, s if s != h else -PAD
    side = _TRIPLE + (1 if m > h else 0)
    near = bucket(abs(m - s))
    return joined(codes, at, side, near, templates.triples, templates.far_triples, out)


@njit(cache=True, nogil=True)
def sibling_of(heads: Longs, m: int) -> Any:
    """Return the nearest modifier of m's head between the two, or the head."""
    h = heads[m - 1]
    step = 1 if h > m else -1
    s = m + step
    while s != h and heads[s - 1] != h:
        s += step
    return s


@njit(cache=True, nogil=True)
def _gold_keys(coded: Coded, templates: _Templates) -> Any:
    """Return the keys of all features of gold trees."""
    room = ROOM + len(templates.pairs) + len(templates.triples)
    out = np.empty(len(coded.heads) * room, np.uint64)
    at = np.zeros(6, np.int64)
    total = 0
    for sentence in range(len(coded.first) - 1):
        codes = coded.codes[coded.first[sentence] : coded.first[sentence + 1]]
        heads = coded.heads[coded.words[sentence] : coded.words[sentence + 1]]
        for m in range(1, len(heads) + 1):
            h = heads[m - 1]
            total += arc_keys(codes, h, m, at, templates.arcs, templates.far_arcs, out[total:])
            if h > 0:
                s = sibling_of(heads, m)
                total += _triple_keys(codes, h, s, m, at, templates, out[total:])
                if s != h:
                    total += _pair_keys(codes, s, m, at, templates, out[total:])
    return out[:total]


@njit(cache=True, nogil=True)
def _weighed(keys: Words64, table: Keys, weights: Singles) -> Any:
    total = 0.0
    for key in keys:
        place = place_of(table, key)
        if place >= 0:
            total += weights[place]
    return total


@njit(cache=True, nogil=True)
def _scores(codes: Words64, n: int, table: Keys, weights: Singles, templates: _Templates) -> Any:
    arcs = arc_scores(codes, n, table, weights, templates.arcs, templates.far_arcs)
    out, at = np.empty(ROOM, np.uint64), np.zeros(6, np.int64)
    pairs = np.zeros((n + 1, n + 1))
    for s in range(1, n + 1):
        for m in range(1, n + 1):
            if s != m:
                count = _pair_keys(codes, s, m, at, templates, out)
                pairs[s, m] = _weighed(out[:count], table, weights)
    score = np.zeros((n + 1, n + 1, n + 1))
    score[0, 0] = arcs[0]
    for h in range(1, n + 1):
        for m in range(1, n + 1):
            step = 1 if m > h else -1
            for s in range(h, m, step):
                count = _triple_keys(codes, h, s, m, at, templates, out)
                value = arcs[h, m] + _weighed(out[:count], table, weights)
                score[h, s, m] = value if s == h else value + pairs[s, m]
    return score


@njit(cache=True, nogil=True)
def _stepped(keys: Words64, gap: float, table: Keys, weights: Singles, squares: Singles) -> None:
    """Take a step of AdaGrad against the gap between posterior and truth, for these features."""
    for key in keys:
        place = place_of(table, key)
        if place >= 0:
            step = gap + DECAY * weights[place]
            squares[place] += step * step
            weights[place] -= RATE * step / np.sqrt(squares[place])


@njit(cache=True, nogil=True)
def _learn(
    coded: Coded,
    order: Longs,
    table: Keys,
    weights: Singles,
    squares: Singles,
    templates: _Templates,
) -> None:
    """Take one pass over the sentences in this order."""
    for sentence in order:
        codes = coded.codes[coded.first[sentence] : coded.first[sentence + 1]]
        heads = coded.heads[coded.words[sentence] : coded.words[sentence + 1]]
        score = _scores(codes, len(heads), table, weights, templates)
        for m in range(1, len(heads) + 1):
            score[heads[m - 1], :, m] -= MARGIN
        gaps, _ = siblings.marginals(score)
        for m in range(1, len(heads) + 1):
            h = heads[m - 1]
            gaps[h, sibling_of(heads, m) if h > 0 else 0, m] -= 1.0
        _follow(codes, gaps, table, weights, squares, templates)


@njit(cache=True, nogil=True)
def _follow(
    codes: Words64,
    gaps: Doubles,
    table: Keys,
    weights: Singles,
    squares: Singles,
    templates: _Templates,
) -> None:
    """Step against the gaps of arcs, of neighbouring modifiers and of triples."""
    n = len(gaps) - 1
    out, at = np.empty(ROOM, np.uint64), np.zeros(6, np.int64)
    pairs = np.zeros((n + 1, n + 1))
    for m in range(1, n + 1):
        for h in range(n + 1):
            if h == m:
                continue
            gap = gaps[h, :, m].sum()
            if abs(gap) >= LEAST_GAP:
                arcs, far = templates.arcs, templates.far_arcs
                count = arc_keys(codes, h, m, at, arcs, far, out)
                _stepped(out[:count], gap, table, weights, squares)
            step = 1 if m > h else -1
            for s in range(h, m if h > 0 else 0, step):
                gap = gaps[h, s, m]
                if s != h:
                    pairs[s, m] += gap
                if abs(gap) >= LEAST_GAP:
                    count = _triple_keys(codes, h, s, m, at, templates, out)
                    _stepped(out[:count], gap, table, weights, squares)
    for s in range(1, n + 1):
        for m in range(1, n + 1):
            if abs(pairs[s, m]) >= LEAST_GAP:
                count = _pair_keys(codes, s, m, at, templates, out)
                _stepped(out[:count], pairs[s, m], table, weights, squares)
