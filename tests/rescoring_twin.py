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
    """List every derivation of the whole sentence, with its root."""
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
    """Compute Z, posteriors and the best derivation under p(d) ∝ exp of the sum of its scores."""
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
    """Find the group of a length."""
    ends = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 45)
    return sum(words > end for end in ends)


def hidden_item(
    hidden: Hidden, rows: np.ndarray, span: tuple[int, int], head: int, label: int
) -> float:
    """Compute g = v · relu(h) of an item over [i, k); rows[p + 2] has a row per position of word
    p.
    """
    i, k = span
    places = (i - 2, i - 1, i, i + 1, k - 2, k - 1, k, k + 1, head)
    h = hidden.length[0, bucket(k - i)].astype(np.float64)
    for position, place in enumerate(places):
        h = h + rows[place + 2, position]
    return float(np.maximum(h, 0) @ hidden.label[label].astype(np.float64))


def hidden_edge(
    hidden: Hidden, rows: np.ndarray, span: tuple[int, int, int], heads: tuple[int, int], rule: int
) -> float:
    """Compute g = u · relu(h') of an edge over [i, j) and [j, k)."""
    i, j, k = span
    places = (i - 1, i, j - 1, j, k - 1, k, *heads)
    h = hidden.length[1, bucket(j - i)] + hidden.length[2, bucket(k - j)].astype(np.float64)
    for position, place in enumerate(places, start=9):
        h = h + rows[place + 2, position]
    return float(np.maximum(h, 0) @ hidden.rule[rule].astype(np.float64))


# Sparse part --------------------------------------------------------------------------------------

BOUNDARY = (
    *("", "length", "word first", "word last", "word before", "word after"),
    *("tag first", "tag last", "tag before", "tag after"),
    *("tag before, tag first", "tag last, tag after", "tag before, tag after"),
    *("tag first, tag last", "tag before, tag first, tag last, tag after"),
    *("word before, word after", "word first, word last"),
    *("word before, word first", "word last, word after", "suffix first", "suffix last"),
)
"""The features of a constituent but for its marked label and its head: facts, and where."""
HEAD = (
    *("word head", "tag head", "word head, word after", "word head, word before"),
    *("tag head, tag before, tag after", "tag head, length", "word head, tag before, tag after"),
)
ONE_WORD = (
    *("", "word here", "suffix here", "shape here", "prefix here", "word before", "word after"),
    *("tag before", "tag after", "tag earlier, tag before", "tag after, tag later"),
    *("tag before, tag after", "word here, tag before", "word here, tag after"),
    *("word here, word before", "word here, word after"),
    *("suffix here, tag before", "suffix here, tag after"),
    *("suffix here, word before", "suffix here, word after"),
    "word here, tag before, tag after",
)
EDGE = (
    *("", "", "word x", "word y", "tag x", "tag y", "tag x, tag y", "left", "right", "left, right"),
    *("word first", "word last", "word before", "word after", "word lefthead", "word righthead"),
    *("tag lefthead", "tag righthead", "word lefthead, word righthead"),
    *("word lefthead, tag righthead", "tag lefthead, word righthead"),
    *("tag lefthead, tag righthead", "tag lefthead, tag righthead, distance"),
    *("tag lefthead, tag righthead, tag x, tag y", "word lefthead, word y"),
    *("word lefthead, word righthead", "word lefthead, word righthead, word y"),
)
"""Of an edge; x and y are the words on both sides of its split."""
OWN_ITEM = (
    *("", "length", "tag before, tag after", "tag first, tag last", "tag head, length"),
    *("tag before, tag first", "tag last, tag after", "word head"),
)
OWN_WORD = ("", "word here", "tag before", "tag after", "tag before, tag after")
OWN_EDGE = (
    *("", "", "tag x, tag y", "tag lefthead, tag righthead", "left, right"),
    "tag before, tag after",
)
"""Features more of a sentence that has a kind of text, to whose code their numbers are added."""
MULTIPLIERS = (0x2545F4914F6CDD1D, 0x369DEA0F31A53F85, 0x1B873593CC9E2D51, 0x4CF5AD432745937F)
ROWS = {"word": 0, "suffix": 1, "prefix": 2, "shape": 3, "tag": 4, "kind": 5}
_ALL = (1 << 64) - 1


def key(number: int) -> int:
    """Compute the number of a kind of feature by the same steps as names' codes."""
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


@dataclass(frozen=True)
class Facts:
    """Codes of words at named places, and groups of named lengths."""

    codes: np.ndarray
    places: dict[str, int]
    lengths: dict[str, int]

    def number(self, feature: str) -> int:
        """Sum a feature's facts, each times its multiplier."""
        total = 0
        for multiplier, fact in zip(MULTIPLIERS, filter(None, feature.split(", ")), strict=False):
            if fact in self.lengths:
                value = bucket(self.lengths[fact])
            else:
                what, where = fact.split()
                value = int(self.codes[ROWS[what], self.places[where] + 2])
            total += value * multiplier
        return total


def item_slots(
    codes: np.ndarray, i: int, k: int, head: int, names: tuple[int, int], bits: int
) -> list[int]:
    """Find the slots of an item over [i, k); names are the codes of its label and its marked
    label.
    """
    label, marked = names
    kind = int(codes[ROWS["kind"], 0])

    def of_kind(first: int, features: tuple[str, ...]) -> list[int]:
        parts = enumerate(features if kind else ())
        return [slot(key(first + f) + label + kind + facts.number(x), bits) for f, x in parts]

    if k == i + 1:
        places = {"earlier": i - 2, "before": i - 1, "here": i, "after": i + 1, "later": i + 2}
        facts = Facts(codes, places, {})
        told = [slot(key(32 + f) + label + facts.number(x), bits) for f, x in enumerate(ONE_WORD)]
        return told + of_kind(112, OWN_WORD)
    places = {"before": i - 1, "first": i, "last": k - 1, "after": k, "head": head}
    facts = Facts(codes, places, {"length": k - i})
    bare = [key(f) + label + facts.number(x) for f, x in enumerate(BOUNDARY)]
    of_head = [key(22 + f) + label + facts.number(x) for f, x in enumerate(HEAD)]
    shared = [slot(total, bits) for total in (*bare, key(21) + marked, *of_head)]
    return shared + of_kind(96, OWN_ITEM)


def edge_slots(
    codes: np.ndarray,
    span: tuple[int, int, int],
    heads: tuple[int, int],
    names: tuple[int, int, int],
    bits: int,
) -> list[int]:
    """Find the slots of an edge; names are the codes of the label above, its rule, its marked
    rule.
    """
    i, j, k = span
    label, rule, marked = names
    places = {"before": i - 1, "first": i, "x": j - 1, "y": j, "last": k - 1, "after": k}
    places |= {"lefthead": heads[0], "righthead": heads[1]}
    lengths = {"left": j - i, "right": k - j, "distance": max(heads[1] - heads[0], 1)}
    facts = Facts(codes, places, lengths)
    base = {1: marked, 25: label, 26: label}
    more = {22: key(64 + 21), 23: key(64 + 21)}  # these go on from the pair of the heads' tags
    shared = [
        slot(key(64 + f) + more.get(f, 0) + base.get(f, rule) + facts.number(x), bits)
        for f, x in enumerate(EDGE)
    ]
    kind = int(codes[ROWS["kind"], 0])
    own = enumerate(OWN_EDGE if kind else ())
    return shared + [
        slot(key(120 + f) + kind + (marked if f == 1 else rule) + facts.number(x), bits)
        for f, x in own
    ]
