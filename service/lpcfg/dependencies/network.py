"""A small network over the words of a sentence: scores of arcs, of relations and of tags.

    x_m          table rows of the word's facts, and its eigenword
    c, d, e      three layers; each sees two neighbours on either side, and adds to the one before
    tags         softmax over c: what the parser knows of a tag, it knows by c
    s(h, m)      v · relu(A e_h + B e_m + distance row + Σ_{words between} C e)
    relation     softmax of V relu(F e_h + G e_m + distance row)

The arcs' scores are those of a conditional random field over projective trees: `eisner.marginals`.
The root is word 0, with a learned e_0. Sentences stand one behind the other in all matrices, PAD
rows of zeros between them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from lpcfg.dependencies.inputs import FACTS
from lpcfg.grammar.tables import Doubles, Longs, Singles

Parameters = Mapping[str, Singles]
PAD = 2
LAYERS = 3
WINDOW = 2 * PAD + 1
DISTANCES = np.array([1, 2, 3, 4, 5, 7, 10, 15, 20, 30], np.int64)
"""Lower bounds of the buckets of distances; every bucket has a row for either direction."""
N_DISTANCES = 2 * (len(DISTANCES) + 1)
WIDTHS = {"word": 48, "end2": 16, "end3": 32, "end4": 32, "start3": 16, "shape": 8}
"""Numbers in a row of the table of a fact."""


class Sizes(NamedTuple):
    """Widths of layers, of an arc's and of a relation's hidden vector; numbers of classes."""

    layer: int
    arc: int
    relation: int
    relations: int
    tags: int


class Batch(NamedTuple):
    """Sentences one behind the other: rows of facts, 1 at words and 0 at padding, where each is."""

    rows: Longs
    mask: Singles
    first: tuple[int, ...]
    length: tuple[int, ...]


def initial(rows: Mapping[str, int], vector: int, sizes: Sizes, seed: int) -> dict[str, Singles]:
    """Draw parameters. Every matrix keeps the size of the vectors that it multiplies (He et
    al.).
    """
    random = np.random.default_rng(seed)

    def drawn(*shape: int, scale: float) -> Singles:
        return (random.standard_normal(shape) * scale).astype(np.float32)

    result: dict[str, Singles] = {}
    for fact in FACTS:
        result[f"table.{fact}"] = drawn(rows[fact], WIDTHS[fact], scale=0.1)
        result[f"table.{fact}"][0] = 0
    width, layer = vector + sum(WIDTHS.values()), sizes.layer
    for k in range(LAYERS):
        n = WINDOW * (width if k == 0 else layer)
        result[f"layer{k}.weight"] = drawn(n, layer, scale=float(np.sqrt(2 / n)))
        result[f"layer{k}.bias"] = np.zeros(layer, np.float32)
    result["root"] = drawn(layer, scale=0.3)
    for name, out in (("arc", sizes.arc), ("relation", sizes.relation)):
        for side in ("head", "modifier"):
            result[f"{name}.{side}"] = drawn(layer, out, scale=layer**-0.5)
        result[f"{name}.distance"] = drawn(N_DISTANCES, out, scale=0.1)
    result["arc.between"] = drawn(layer, sizes.arc, scale=0.3 * layer**-0.5)
    result["arc.out"] = drawn(sizes.arc, scale=0.1)
    result["relation.out"] = drawn(sizes.relation, sizes.relations, scale=sizes.relation**-0.5)
    result["relation.bias"] = np.zeros(sizes.relations, np.float32)
    result["tag.out"] = drawn(layer, sizes.tags, scale=layer**-0.5)
    result["tag.bias"] = np.zeros(sizes.tags, np.float32)
    return result


def batch_of(sentences: Sequence[Longs]) -> Batch:
    """Put rows of facts of several sentences into one matrix."""
    lengths = tuple(len(rows) for rows in sentences)
    first, at = [], PAD
    for length in lengths:
        first.append(at)
        at += length + PAD
    rows = np.zeros((at, len(FACTS) + 1), np.int64)
    mask = np.zeros(at, np.float32)
    for start, one in zip(first, sentences, strict=True):
        rows[start : start + len(one)] = one
        mask[start : start + len(one)] = 1
    return Batch(rows, mask, tuple(first), lengths)


def windows(x: Singles) -> Singles:
    """Return every row with its neighbours, PAD on either side, side by side."""
    n, width = x.shape
    result = np.zeros((n, WINDOW, width), np.float32)
    for k in range(-PAD, PAD + 1):
        to, source = slice(max(0, -k), n - max(0, k)), slice(max(0, k), n - max(0, -k))
        result[to, k + PAD] = x[source]
    return result.reshape(n, WINDOW * width)


def inputs(p: Parameters, rows: Longs, vectors: Singles) -> Singles:
    """Compute x of every row."""
    parts = [p[f"table.{fact}"][rows[:, k]] for k, fact in enumerate(FACTS)]
    return np.concatenate([vectors, *parts], axis=1)


def encoded(p: Parameters, batch: Batch, vectors: Singles) -> tuple[Singles, Singles]:
    """Compute c and e of every row."""
    below = inputs(p, batch.rows, vectors)
    first: Singles = below
    for k in range(LAYERS):
        above = np.maximum(windows(below) @ p[f"layer{k}.weight"] + p[f"layer{k}.bias"], 0)
        if k:
            above += below
        above *= batch.mask[:, None]
        below = above
        first = above if k == 0 else first
    return first, below


class ArcParts(NamedTuple):
    """The summands of an arc's hidden vector; `before[j]` sums C e of words 1 … j − 1."""

    head: Singles
    modifier: Singles
    before: Singles
    distance: Singles
    out: Singles


def arc_parts(p: Parameters, words: Singles) -> tuple[Singles, ArcParts]:
    """Compute e of the root and the words of one sentence, and the parts of its arcs."""
    states = np.concatenate([p["root"][None], words])
    between = np.zeros((len(states) + 1, p["arc.between"].shape[1]), np.float32)
    np.cumsum(states[1:] @ p["arc.between"], axis=0, out=between[2:])
    return states, ArcParts(
        states @ p["arc.head"],
        states @ p["arc.modifier"],
        between,
        p["arc.distance"],
        p["arc.out"],
    )


@njit(cache=True, nogil=True)
def distance_row(h: int, m: int) -> Any:
    """Return the row of a distance and its direction."""
    return 2 * np.searchsorted(DISTANCES, abs(h - m), side="right") + (1 if m > h else 0)


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
def arc_scores(parts: ArcParts) -> Any:
    """Compute s(h, m) of all arcs. Pairs that are no arcs have a score below all others."""
    n, width = len(parts.head) - 1, len(parts.out)
    score = np.full((n + 1, n + 1), -1e30)
    for h in range(n + 1):
        for m in range(1, n + 1):
            if h == m:
                continue
            low, high = min(h, m), max(h, m)
            near = parts.distance[distance_row(h, m)]
            head, modifier = parts.head[h], parts.modifier[m]
            upto, since = parts.before[high], parts.before[low + 1]
            total = np.float32(0)
            for a in range(width):
                hidden = head[a] + modifier[a] + near[a] + upto[a] - since[a]
                total += parts.out[a] * max(hidden, np.float32(0))
            score[h, m] = total
    return score


def relation_hidden(p: Parameters, states: Singles, heads: Longs) -> Singles:
    """Return the hidden vector of the arc to every word of a sentence, given the heads."""
    m = np.arange(1, len(states))
    far = 2 * np.searchsorted(DISTANCES, np.abs(heads - m), side="right") + (m > heads)
    hidden: Singles = states[heads] @ p["relation.head"]
    hidden += states[1:] @ p["relation.modifier"]
    hidden += p["relation.distance"][far]
    np.maximum(hidden, 0, out=hidden)
    return hidden


def log_shares(score: Singles) -> Doubles:
    """Compute the log softmax of every row."""
    score = score.astype(np.float64)
    score = score - score.max(axis=1, keepdims=True, initial=-np.inf)
    shares: Doubles = score - np.log(np.exp(score).sum(axis=1, keepdims=True))
    return shares
