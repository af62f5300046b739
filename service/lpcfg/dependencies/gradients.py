"""Derivatives of the network's loss, layer by layer, the last first.

Every function takes the derivatives by what the network computed and adds those by parameters to
`out`, whose tables are pairs: rows, and a derivative for each.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from lpcfg.dependencies.inputs import FACTS
from lpcfg.dependencies.network import (
    LAYERS,
    PAD,
    WIDTHS,
    WINDOW,
    ArcParts,
    Batch,
    Parameters,
    distance_row,
    inputs,
    windows,
)
from lpcfg.grammar.tables import Doubles, Longs, Singles

Gradients = dict[str, Any]
"""An array for a parameter, or (rows, an array for them) for a table."""
NEGLIGIBLE = 1e-4
"""Arcs whose posterior is so near to what it should be teach nothing."""


class Layers(NamedTuple):
    """The layers of a training batch: rows with words left out, inputs, windows, activations."""

    rows: Longs
    seen: list[Singles]
    sums: list[Singles]
    kept: list[Singles]
    below: list[Singles]


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
    """Compute c and e like `network.encoded`, but with parts of every layer left out."""
    kept = [dropped((len(vectors), vectors.shape[1] + sum(WIDTHS.values())), share, random)]
    below = [inputs(p, batch.rows, vectors) * kept[0]]
    seen, sums = [], []
    for k in range(LAYERS):
        seen.append(windows(below[k]))
        sums.append(seen[k] @ p[f"layer{k}.weight"] + p[f"layer{k}.bias"])
        above = np.maximum(sums[k], 0)
        if k:
            above += below[k]
        kept.append(dropped(above.shape, share, random) * batch.mask[:, None])
        below.append(above * kept[-1])
    return below[1], below[-1], Layers(batch.rows, seen, sums, kept, below)


def backward(
    p: Parameters, layers: Layers, by_first: Singles, by_last: Singles, out: Gradients
) -> None:
    """Compute the derivatives by tables and layers, given those by c and e."""
    by = by_last
    for k in reversed(range(LAYERS)):
        if k == 0:
            by = by + by_first
        by = by * layers.kept[k + 1]
        by_sum = by * (layers.sums[k] > 0)
        out[f"layer{k}.weight"] = layers.seen[k].T @ by_sum
        out[f"layer{k}.bias"] = by_sum.sum(axis=0)
        through = unwindowed(by_sum @ p[f"layer{k}.weight"].T)
        by = through + by if k else through
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
    p: Parameters, states: Singles, parts: ArcParts, by_score: Doubles, out: Gradients
) -> Singles:
    """Compute the derivatives by e of the root and the words, given those by the scores of arcs."""
    head, modifier = np.zeros_like(parts.head), np.zeros_like(parts.modifier)
    before = np.zeros_like(parts.before)
    _by_arcs(parts, by_score, head, modifier, before, out["arc.distance"], out["arc.out"])
    # before[j] sums words 1 … j − 1, so word i is in all rows behind i.
    between = np.cumsum(before[::-1], axis=0, dtype=np.float32)[::-1][2:]
    out["arc.head"] += states.T @ head
    out["arc.modifier"] += states.T @ modifier
    out["arc.between"] += states[1:].T @ between
    by_states: Singles = head @ p["arc.head"].T + modifier @ p["arc.modifier"].T
    by_states[1:] += between @ p["arc.between"].T
    return by_states


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
def _by_arcs(
    parts: ArcParts,
    by_score: Doubles,
    head: Singles,
    modifier: Singles,
    before: Singles,
    distance: Singles,
    out: Singles,
) -> None:
    n, width = len(head) - 1, len(out)
    for h in range(n + 1):
        for m in range(1, n + 1):
            by = np.float32(by_score[h, m])
            if h == m or abs(by) < NEGLIGIBLE:
                continue
            low, high = min(h, m), max(h, m)
            row = distance_row(h, m)
            for a in range(width):
                hidden = parts.head[h, a] + parts.modifier[m, a] + parts.distance[row, a]
                hidden += parts.before[high, a] - parts.before[low + 1, a]
                if hidden > 0:
                    out[a] += by * hidden
                    step = by * parts.out[a]
                    head[h, a] += step
                    modifier[m, a] += step
                    distance[row, a] += step
                    before[high, a] += step
                    before[low + 1, a] -= step


def by_relations(
    p: Parameters,
    states: Singles,
    heads: Longs,
    hidden: Singles,
    by_score: Singles,
    out: Gradients,
    by_states: Singles,
) -> None:
    """Add derivatives by e, given those by relations' scores before the softmax."""
    out["relation.out"] += hidden.T @ by_score
    out["relation.bias"] += by_score.sum(axis=0)
    by = (by_score @ p["relation.out"].T) * (hidden > 0)
    out["relation.head"] += states[heads].T @ by
    out["relation.modifier"] += states[1:].T @ by
    rows = [distance_row(head, m) for m, head in enumerate(heads, start=1)]
    np.add.at(out["relation.distance"], rows, by)
    np.add.at(by_states, heads, by @ p["relation.head"].T)
    by_states[1:] += by @ p["relation.modifier"].T
