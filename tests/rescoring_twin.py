"""The rescoring layer written to be read: derivations one by one, features by their names.

Shares no code with the kernels but names' codes, which both start from.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from lpcfg.engine.pruned.kernels import Chart
from lpcfg.engine.rescoring.hidden import Hidden

Derivation = tuple[frozenset[int], frozenset[int]]
"""Its items and its edges."""


def derivations(chart: Chart, n: int) -> Iterator[tuple[int, Derivation]]:
    """Every derivation of the whole sentence, with its root."""
    for t in range(len(chart.symbol)):
        if chart.start[t] == 0 and chart.end[t] == n:
            for derivation in below(chart, t):
                yield t, derivation


def below(chart: Chart, t: int) -> Iterator[Derivation]:
    if chart.end[t] == chart.start[t] + 1:
        yield frozenset([t]), frozenset()
        return
    for e in range(chart.edge_start[t], chart.edge_start[t + 1]):
        for left, right in product(below(chart, chart.left[e]), below(chart, chart.right[e])):
            yield left[0] | right[0] | {t}, left[1] | right[1] | {e}


@dataclass(frozen=True)
class Enumerated:
    log_z: float
    item: np.ndarray
    edge: np.ndarray
    best: Derivation


def enumerated(
    chart: Chart, n: int, item: Sequence[float], edge: Sequence[float], root: Sequence[float]
) -> Enumerated:
    """Z, posteriors and the best derivation under p(d) ∝ exp of the sum of its scores."""
    found = [
        (math.fsum([*(item[t] for t in items), *(edge[e] for e in edges), root[top]]), items, edges)
        for top, (items, edges) in derivations(chart, n)
    ]
    most = max(score for score, *_ in found)
    z = math.fsum(math.exp(score - most) for score, *_ in found)
    of_item, of_edge = np.zeros(len(chart.symbol)), np.zeros(len(chart.rule))
    for score, items, edges in found:
        share = math.exp(score - most) / z
        of_item[list(items)] += share
        of_edge[list(edges)] += share
    _, *best = max(found, key=lambda one: one[0])
    return Enumerated(most + math.log(z), of_item, of_edge, (best[0], best[1]))


# Hidden part --------------------------------------------------------------------------------------


def bucket(words: int) -> int:
    """The group of a length."""
    ends = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 45)
    return sum(words > end for end in ends)


def hidden_item(
    hidden: Hidden, rows: np.ndarray, span: tuple[int, int], head: int, label: int
) -> float:
    """g = v · relu(h) of an item over [i, k); rows[p + 2] has a row per position of word p."""
    i, k = span
    places = (i - 2, i - 1, i, i + 1, k - 2, k - 1, k, k + 1, head)
    h = hidden.length[0, bucket(k - i)].astype(np.float64)
    for position, place in enumerate(places):
        h = h + rows[place + 2, position]
    return float(np.maximum(h, 0) @ hidden.label[label].astype(np.float64))


def hidden_edge(
    hidden: Hidden, rows: np.ndarray, span: tuple[int, int, int], heads: tuple[int, int], rule: int
) -> float:
    """g = u · relu(h') of an edge over [i, j) and [j, k)."""
    i, j, k = span
    places = (i - 1, i, j - 1, j, k - 1, k, *heads)
    h = hidden.length[1, bucket(j - i)] + hidden.length[2, bucket(k - j)].astype(np.float64)
    for position, place in enumerate(places, start=9):
        h = h + rows[place + 2, position]
    return float(np.maximum(h, 0) @ hidden.rule[rule].astype(np.float64))


# Sparse part --------------------------------------------------------------------------------------

ITEM = (
    *((), ("length",), ("word", 0), ("word", -1), ("word", "before"), ("word", "after")),
    *(("tag", 0), ("tag", -1), ("tag", "before"), ("tag", "after")),
    *(("tag", "before", "tag", 0), ("tag", -1, "tag", "after"), ("tag", "before", "tag", "after")),
    ("tag", 0, "tag", -1),
    ("tag", "before", "tag", 0, "tag", -1, "tag", "after"),
    *(("word", "before", "word", "after"), ("word", 0, "word", -1)),
    *(("word", "before", "word", 0), ("word", -1, "word", "after"), ("suffix", 0), ("suffix", -1)),
)
"""The features of a constituent but for its marked label and its head: facts, and where."""
MULTIPLIERS = (0x2545F4914F6CDD1D, 0x369DEA0F31A53F85, 0x1B873593CC9E2D51, 0x4CF5AD432745937F)
ROWS = {"word": 0, "suffix": 1, "prefix": 2, "shape": 3, "tag": 4}
_ALL = (1 << 64) - 1


def key(number: int) -> int:
    """The number of a kind of feature, mixed by the same steps as names' codes."""
    x = (number + 1) * 0x1E3779B97F4A7C15 & _ALL
    x ^= _signed_shift(x, 31)
    x = x * 0x3F58476D1CE4E5B9 & _ALL
    return x ^ _signed_shift(x, 29)


def _signed_shift(x: int, by: int) -> int:
    signed = x - (1 << 64) if x >> 63 else x
    return (signed >> by) & _ALL


def slot(number: int, bits: int) -> int:
    x = number & _ALL
    x ^= _signed_shift(x, 32)
    x = x * 0x7A2F1D8C35B94E63 & _ALL
    x ^= _signed_shift(x, 29)
    x = x * 0x5851F42D4C957F2D & _ALL
    return (x >> 32) & ((1 << bits) - 1)


def boundary_slots(codes: np.ndarray, i: int, k: int, label: int, bits: int) -> list[int]:
    """The slots of the features in ITEM of a constituent over [i, k)."""
    place = {0: i + 2, -1: k + 1, "before": i + 1, "after": k + 2}
    found = []
    for number, facts in enumerate(ITEM):
        total = key(number) + label
        if facts == ("length",):
            total += bucket(k - i) * MULTIPLIERS[0]
        else:
            pairs = zip(facts[::2], facts[1::2], strict=True)
            for multiplier, (what, where) in zip(MULTIPLIERS, pairs, strict=False):
                total += int(codes[ROWS[what], place[where]]) * multiplier
        found.append(slot(total, bits))
    return found
