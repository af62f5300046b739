"""Derivatives of the network's loss, layer by layer, the last first.

Every function takes the derivatives by what the network computed and adds those by parameters to
`out`, whose tables are pairs: rows, and a derivative for each.
"""

from typing import Any, NamedTuple

import numpy as np

from lpcfg.base.jit import compiled
from lpcfg.grammar.tables import Doubles, Longs, Singles
from lpcfg.kinds.dependencies import eisner, recurrence
from lpcfg.kinds.dependencies.inputs import FACTS
from lpcfg.kinds.dependencies.network import (
    LAYERS,
    N_DISTANCES,
    PAD,
    TAG_LAYER,
    WIDTHS,
    WINDOW,
    ArcParts,
    Batch,
    Parameters,
    arc_scores,
    distance_row,
    gates,
    inputs,
    summed,
    windows,
)

Gradients = dict[str, Any]
"""An array for a parameter, or (rows, an array for them) for a table."""
NEGLIGIBLE = 1e-4
"""Arcs whose posterior is so near to what it should be teach nothing."""


class Layers(NamedTuple):
    """The layers of a training batch: its rows of facts, what layers multiply, their gates and c,
    the parts of each that are kept.
    """

    rows: Longs
    seen: list[Singles]
    gates: list[Singles]
    c: list[Singles]
    kept: list[Singles]


def dropped(shape: tuple[int, ...], share: float, random: np.random.Generator) -> Singles:
    """Draw a mask: 0 for parts that are left out; for the others, the factor that makes up for
    those.
    """
    return (random.random(shape, np.float32) >= share) * np.float32(1 / (1 - share))


def forward(
    p: Parameters,
    batch: Batch,
    vectors: Singles,
    share: float,
    random: np.random.Generator,
) -> tuple[Singles, Singles, Layers]:
    """Compute the layer of tags and the last like `network.encoded`, but with parts of every layer
    left out, and without the root.
    """
    x = inputs(p, batch.rows, vectors)
    kept = [dropped(x.shape, share, random)]
    seen = [windows(x * kept[0])]
    read = np.maximum(seen[0] @ p["layer0.weight"] + p["layer0.bias"], 0)
    found, cells, states = [read], [read], list[Singles]()
    for k in range(LAYERS):
        if k:
            found.append(gates(p, k, states[-1]))
            c, read = recurrence.read(found[k], batch.first, batch.length)
            cells.append(c)
            seen.append(states[-1])
            read += states[-1]
        kept.append(dropped(read.shape, share, random) * batch.mask)
        states.append(read * kept[-1])
    return states[TAG_LAYER], states[-1], Layers(batch.rows, seen, found, cells, kept)


def backward(
    p: Parameters,
    batch: Batch,
    layers: Layers,
    by_tags: Singles,
    by_last: Singles,
    out: Gradients,
) -> None:
    """Compute the derivatives by tables and layers, given those by the layer of tags and the
    last.
    """
    by = by_last
    for k in reversed(range(LAYERS)):
        if k == TAG_LAYER:
            by = by + by_tags
        by = by * layers.kept[k + 1]
        if k:
            by_sum = recurrence.read_back(
                layers.gates[k], layers.c[k], by, batch.first, batch.length
            )
        else:
            by_sum = by * (layers.gates[0] > 0)
        out[f"layer{k}.weight"] = layers.seen[k].T @ by_sum
        out[f"layer{k}.bias"] = by_sum.sum(axis=0)
        through = by_sum @ p[f"layer{k}.weight"].T
        by = by + through if k else unwindowed(through)
    by = by * layers.kept[0]
    at = by.shape[1] - sum(WIDTHS.values())
    for k, fact in enumerate(FACTS):
        out[f"table.{fact}"] = layers.rows[:, k], by[:, at : at + WIDTHS[fact]]
        at += WIDTHS[fact]


def unwindowed(by: Singles) -> Singles:
    """Compute the derivatives by rows, given those by the windows of these rows."""
    n = len(by)
    by = by.reshape(n, WINDOW, -1)
    result = np.zeros((n, by.shape[2]), np.float32)
    for k in range(-PAD, PAD + 1):
        to, source = slice(max(0, -k), n - max(0, k)), slice(max(0, k), n - max(0, -k))
        result[source] += by[to, k + PAD]
    return result


def by_arcs(
    p: Parameters, states: Singles, parts: ArcParts, batch: Batch, heads: Longs, out: Gradients
) -> tuple[float, Singles]:
    """Compute −log p of the trees with these heads, and its derivatives by the states."""
    by = ArcParts(*(np.zeros_like(part) for part in parts))
    loss = _by_trees(parts, batch.first, batch.length, heads, by)
    by_states = np.zeros_like(states)
    names = ("arc.head", "arc.modifier", "arc.between", "pair.head", "pair.modifier")
    for name, part in zip(names, by, strict=False):
        out[name] = states.T @ part
        by_states += part @ p[name].T
    out["arc.distance"], out["arc.out"] = by.distance, by.out
    return loss, by_states


@compiled()
def _by_trees(parts: ArcParts, first: Longs, length: Longs, heads: Longs, by: ArcParts) -> float:
    """Add the derivatives by the parts of arcs to `by`, and return −log p of all trees."""
    loss, at = 0.0, 0
    for s in range(len(first)):
        score = arc_scores(parts, first[s], length[s])
        posterior, log_z = eisner.marginals(score)
        loss += log_z
        for m in range(1, length[s] + 1):
            head = heads[at + m - 1]
            loss -= score[head, m]
            posterior[head, m] -= 1
        at += length[s]
        _by_scores(parts, first[s] - 1, posterior, by)
    return loss


@compiled(helper=True, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
def _by_scores(parts: ArcParts, root: int, by_score: Doubles, by: ArcParts) -> None:
    """Add the derivatives by the parts of one sentence's arcs, given those by their scores."""
    n, width = len(by_score) - 1, len(parts.out)
    before = summed(parts.between[root : root + n + 1])
    by_before = np.zeros_like(before)
    by_pair = np.zeros((n + 1, n + 1), np.float32)
    for h in range(n + 1):
        for m in range(1, n + 1):
            step = np.float32(by_score[h, m])
            if h == m or abs(step) < NEGLIGIBLE:
                continue
            by_pair[h, m] = step
            low, high, row = min(h, m), max(h, m), distance_row(h, m)
            for a in range(width):
                hidden = parts.head[root + h, a] + parts.modifier[root + m, a]
                hidden += parts.distance[row, a] + before[high, a] - before[low + 1, a]
                is_on = np.float32(hidden > 0)
                by.out[a] += step * hidden * is_on
                by_hidden = step * parts.out[a] * is_on
                by.head[root + h, a] += by_hidden
                by.modifier[root + m, a] += by_hidden
                by.distance[row, a] += by_hidden
                by_before[high, a] += by_hidden
                by_before[low + 1, a] -= by_hidden
    # before[j] sums words 1 … j − 1, so word i is in all rows behind i.
    for j in range(n, 0, -1):
        for a in range(width):
            by_before[j, a] += by_before[j + 1, a]
            by.between[root + j, a] = by_before[j + 1, a]
    end = root + n + 1
    by.pair_head[root:end] = np.dot(by_pair, parts.pair_modifier[root:end])
    by.pair_modifier[root:end] = np.dot(by_pair.T, parts.pair_head[root:end])


class Ends(NamedTuple):
    """The rows of states at both ends of arcs, and the rows of the distances between them."""

    heads: Longs
    modifiers: Longs
    distances: Longs


def by_relations(
    p: Parameters,
    states: Singles,
    ends: Ends,
    hidden: Singles,
    by_score: Singles,
    out: Gradients,
    by_states: Singles,
) -> None:
    """Add derivatives by states, given those by relations' scores before the softmax."""
    out["relation.out"] = hidden.T @ by_score
    out["relation.bias"] = by_score.sum(axis=0)
    by: Singles = (by_score @ p["relation.out"].T) * (hidden > 0)
    out["relation.head"] = states[ends.heads].T @ by
    out["relation.modifier"] = states[ends.modifiers].T @ by
    out["relation.distance"] = np.zeros((N_DISTANCES, by.shape[1]), np.float32)
    add_rows(out["relation.distance"], ends.distances, by)
    add_rows(by_states, ends.heads, by @ p["relation.head"].T)
    add_rows(by_states, ends.modifiers, by @ p["relation.modifier"].T)


@compiled()
def add_rows(to: Singles, rows: Longs, values: Singles) -> None:
    """Add each row of values to the row of `to` that `rows` names (np.add.at takes ten times as
    long).
    """
    for k in range(len(rows)):
        for a in range(values.shape[1]):
            to[rows[k], a] += values[k, a]
