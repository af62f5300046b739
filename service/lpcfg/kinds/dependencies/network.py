"""A small network over the words of a sentence: scores of arcs, of relations and of tags.

    x_m          table rows of the word's facts, and its eigenword
    a_m          relu of W x over the word and its neighbours
    c, d         layers that read the sentence in both directions (recurrence.py); each adds to the
                 one before
    tags         softmax over the first of these: what the parser knows of a tag, it knows by it
    s(h, m)      (P e_h) · (Q e_m) + v · relu(A e_h + B e_m + distance row + Σ_{words between} C e)
    relation     softmax of V relu(F e_h + G e_m + distance row)

e is the last layer. The arcs' scores are those of a conditional random field over projective trees:
`eisner.marginals`. The root is word 0, with a learned e_0. Sentences stand one behind the other in
all matrices, PAD rows between them; the last of these is the root's.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lpcfg.base.jit import compiled
from lpcfg.grammar.tables import Doubles, Longs, Singles
from lpcfg.kinds.dependencies import recurrence
from lpcfg.kinds.dependencies.inputs import FACTS

Parameters = Mapping[str, Singles]
PAD = 1
WINDOW = 2 * PAD + 1
LAYERS = 3
"""The window's layer, and those that read in both directions."""
TAG_LAYER = 1
DISTANCES = np.array([1, 2, 3, 4, 5, 7, 10, 15, 20, 30], np.int64)
"""Lower bounds of the buckets of distances; every bucket has a row for either direction."""
N_DISTANCES = 2 * (len(DISTANCES) + 1)
WIDTHS = {"word": 48, "end2": 16, "end3": 32, "end4": 32, "start3": 16, "shape": 8}
"""Numbers in a row of the table of a fact."""


class Sizes(NamedTuple):
    """Widths of layers, of an arc's and of a relation's hidden vector, of the vectors whose
    products score pairs; numbers of classes.
    """

    layer: int
    arc: int
    relation: int
    pair: int
    relations: int
    tags: int


class Batch(NamedTuple):
    """Sentences one behind the other: rows of facts, 1 at words and 0 at padding, where each is."""

    rows: Longs
    mask: Singles
    first: Longs
    length: Longs


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
    layer, n = sizes.layer, WINDOW * (vector + sum(WIDTHS.values()))
    result["layer0.weight"] = drawn(n, layer, scale=float(np.sqrt(2 / n)))
    result["layer0.bias"] = np.zeros(layer, np.float32)
    for k in range(1, LAYERS):
        result[f"layer{k}.weight"] = drawn(layer, 3 * layer, scale=layer**-0.5)
        result[f"layer{k}.bias"] = recurrence.initial_bias(layer)
    result["root"] = drawn(layer, scale=0.3)
    for name, out in (("arc", sizes.arc), ("relation", sizes.relation)):
        for side in ("head", "modifier"):
            result[f"{name}.{side}"] = drawn(layer, out, scale=layer**-0.5)
        result[f"{name}.distance"] = drawn(N_DISTANCES, out, scale=0.1)
    result["arc.between"] = drawn(layer, sizes.arc, scale=0.3 * layer**-0.5)
    result["arc.out"] = drawn(sizes.arc, scale=0.1)
    for side in ("head", "modifier"):
        result[f"pair.{side}"] = drawn(layer, sizes.pair, scale=0.5 * layer**-0.5)
    result["relation.out"] = drawn(sizes.relation, sizes.relations, scale=sizes.relation**-0.5)
    result["relation.bias"] = np.zeros(sizes.relations, np.float32)
    result["tag.out"] = drawn(layer, sizes.tags, scale=layer**-0.5)
    result["tag.bias"] = np.zeros(sizes.tags, np.float32)
    return result


def batch_of(sentences: Sequence[Longs]) -> Batch:
    """Put rows of facts of several sentences into one matrix."""
    length = np.array([len(rows) for rows in sentences], np.int64)
    first = PAD + np.cumsum(length + PAD) - (length + PAD)
    rows = np.zeros((PAD + int((length + PAD).sum()), len(FACTS) + 1), np.int64)
    mask = np.zeros((len(rows), 1), np.float32)
    for start, sentence_rows in zip(first.tolist(), sentences, strict=True):
        rows[start : start + len(sentence_rows)] = sentence_rows
        mask[start : start + len(sentence_rows)] = 1
    return Batch(rows, mask, first, length)


def word_rows(batch: Batch) -> Longs:
    """Return the rows of all words of a batch."""
    rows: Longs = np.flatnonzero(batch.mask[:, 0])
    return rows


def windows(x: Singles) -> Singles:
    """Return every row with its neighbours, PAD on either side, side by side."""
    n, width = x.shape
    result = np.zeros((n, WINDOW, width), np.float32)
    for k in range(-PAD, PAD + 1):
        to, source = slice(max(0, -k), n - max(0, k)), slice(max(0, k), n - max(0, -k))
        result[to, k + PAD] = x[source]
    return result.reshape(n, WINDOW * width)


def embed(p: Parameters, rows: Longs, vectors: Singles) -> Singles:
    """Compute x of every row: its eigenword, then the table rows of its facts."""
    parts = [p[f"table.{fact}"][rows[:, k]] for k, fact in enumerate(FACTS)]
    return np.concatenate([vectors, *parts], axis=1)


def gates(p: Parameters, k: int, below: Singles) -> Singles:
    """Compute z, f and o of every row for layer k, which reads both ways: tanh(W x + b)."""
    result: Singles = below @ p[f"layer{k}.weight"]
    result += p[f"layer{k}.bias"]
    np.tanh(result, out=result)
    return result


def encode(p: Parameters, batch: Batch, vectors: Singles) -> tuple[Singles, Singles]:
    """Run the network on a batch.

    Returns:
        The layer of tags, and the last one, in which the root stands before each sentence
    """
    x = windows(embed(p, batch.rows, vectors))
    state = np.maximum(x @ p["layer0.weight"] + p["layer0.bias"], 0) * batch.mask
    tag_state = state
    for k in range(1, LAYERS):
        _, y = recurrence.forward(gates(p, k, state), batch.first, batch.length)
        state = state + y
        tag_state = state if k == TAG_LAYER else tag_state
    return tag_state, with_root(p, batch, state)


def with_root(p: Parameters, batch: Batch, last: Singles) -> Singles:
    """Return the states of words, and the root's before each sentence."""
    states = last.copy()
    states[batch.first - 1] = p["root"]
    return states


class ArcParts(NamedTuple):
    """The summands of arcs' hidden vectors, and the factors of their pairs, a row for a state."""

    head: Singles
    modifier: Singles
    between: Singles
    pair_head: Singles
    pair_modifier: Singles
    distance: Singles
    out: Singles


def arc_parts(p: Parameters, states: Singles) -> ArcParts:
    """Compute the parts of all arcs among these states."""
    return ArcParts(
        states @ p["arc.head"],
        states @ p["arc.modifier"],
        states @ p["arc.between"],
        states @ p["pair.head"],
        states @ p["pair.modifier"],
        p["arc.distance"],
        p["arc.out"],
    )


@compiled()
def distance_row(h: int, m: int) -> Any:
    """Return the row of a distance and its direction."""
    return 2 * np.searchsorted(DISTANCES, abs(h - m), side="right") + (1 if m > h else 0)


@compiled(helper=True)
def prefix_sums(between: Singles) -> Any:
    """Compute before[j], the sum of the rows of words 1 … j − 1, for j up to one behind the last.
    The sum over words between low and high is then before[high] − before[low + 1].
    """
    n, width = len(between) - 1, between.shape[1]
    before = np.zeros((n + 2, width), np.float32)
    for j in range(1, n + 1):
        for a in range(width):
            before[j + 1, a] = before[j, a] + between[j, a]
    return before


@compiled(fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
def arc_scores(parts: ArcParts, first: int, length: int) -> Any:
    """Compute s(h, m) of all arcs of the sentence whose first word is in row `first`.

    Pairs that are no arcs have a score below all others.
    """
    root, end = first - 1, first + length
    before = prefix_sums(parts.between[root:end])
    pairs = np.dot(parts.pair_head[root:end], parts.pair_modifier[root:end].T)
    score = np.full((length + 1, length + 1), -1e30)
    for h in range(length + 1):
        for m in range(1, length + 1):
            if h == m:
                continue
            low, high = min(h, m), max(h, m)
            near = parts.distance[distance_row(h, m)]
            head, modifier = parts.head[root + h], parts.modifier[root + m]
            upto, since = before[high], before[low + 1]
            total = np.float32(0)
            for a in range(len(near)):
                hidden = head[a] + modifier[a] + near[a] + upto[a] - since[a]
                total += parts.out[a] * max(hidden, np.float32(0))
            score[h, m] = total + pairs[h, m]
    return score


def distance_rows(heads: Longs, modifiers: Longs) -> Longs:
    """Return the rows of the distances from heads to modifiers."""
    far = np.searchsorted(DISTANCES, np.abs(heads - modifiers), side="right")
    rows: Longs = 2 * far + (modifiers > heads)
    return rows


def relation_hidden(p: Parameters, heads: Singles, modifiers: Singles, distances: Longs) -> Singles:
    """Return the hidden vectors of arcs, given the states at both ends and rows of distances."""
    hidden: Singles = heads @ p["relation.head"]
    hidden += modifiers @ p["relation.modifier"]
    hidden += p["relation.distance"][distances]
    np.maximum(hidden, 0, out=hidden)
    return hidden


def log_shares(score: Singles) -> Doubles:
    """Compute the log softmax of every row."""
    score = score.astype(np.float64)
    score = score - score.max(axis=1, keepdims=True, initial=-np.inf)
    shares: Doubles = score - np.log(np.exp(score).sum(axis=1, keepdims=True))
    return shares
