"""Gradients of the network's loss by backpropagation: layer by layer, the last first.

d_x stands for the derivatives of the loss by x, in the shape of x. Every function takes those by
what the network computed, and writes those by parameters to `gradients`.
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
    embed,
    gates,
    prefix_sums,
    windows,
)

Gradients = dict[str, Any]
"""Derivatives by name: an array for a parameter, (rows, derivatives of each) for a table."""
NEGLIGIBLE = 1e-4
"""Arcs whose derivative (posterior, less 1 where the arc is right) is below this are skipped."""


class Activations(NamedTuple):
    """The results of a forward pass for `backward`: the rows of facts; of every layer its input,
    its gates and c (`recurrence`), and the dropout mask of its output. masks[0] is the embedding's.
    """

    rows: Longs
    inputs: list[Singles]
    gates: list[Singles]
    cells: list[Singles]
    masks: list[Singles]


def dropout_mask(shape: tuple[int, ...], rate: float, random: np.random.Generator) -> Singles:
    """Draw a mask of inverted dropout (Srivastava et al. 2014): 0 with probability `rate`, and
    otherwise 1 / (1 − rate), so that sums keep their mean.
    """
    return (random.random(shape, np.float32) >= rate) * np.float32(1 / (1 - rate))


def forward(
    p: Parameters,
    batch: Batch,
    vectors: Singles,
    rate: float,
    random: np.random.Generator,
) -> tuple[Singles, Singles, Activations]:
    """Run the network on a batch like `network.encode`, with dropout and without the root.

    Returns:
        The layer of tags, the last layer, and what `backward` needs
    """
    x = embed(p, batch.rows, vectors)
    masks = [dropout_mask(x.shape, rate, random)]
    inputs = [windows(x * masks[0])]
    y = np.maximum(inputs[0] @ p["layer0.weight"] + p["layer0.bias"], 0)
    gate_values, cells, states = [y], [y], list[Singles]()
    for k in range(LAYERS):
        if k:
            gate_values.append(gates(p, k, states[-1]))
            c, y = recurrence.forward(gate_values[k], batch.first, batch.length)
            cells.append(c)
            inputs.append(states[-1])
            y += states[-1]
        masks.append(dropout_mask(y.shape, rate, random) * batch.mask)
        states.append(y * masks[-1])
    return states[TAG_LAYER], states[-1], Activations(batch.rows, inputs, gate_values, cells, masks)


def backward(
    p: Parameters,
    batch: Batch,
    kept: Activations,
    d_tags: Singles,
    d_last: Singles,
    gradients: Gradients,
) -> None:
    """Compute the derivatives by tables and layers, given d_tags and d_last, those by the layer of
    tags and by the last layer.
    """
    d_x = d_last
    for k in reversed(range(LAYERS)):
        if k == TAG_LAYER:
            d_x = d_x + d_tags
        d_x = d_x * kept.masks[k + 1]
        if k:
            d_sum = recurrence.backward(
                kept.gates[k], kept.cells[k], d_x, batch.first, batch.length
            )
        else:
            d_sum = d_x * (kept.gates[0] > 0)
        gradients[f"layer{k}.weight"] = kept.inputs[k].T @ d_sum
        gradients[f"layer{k}.bias"] = d_sum.sum(axis=0)
        through = d_sum @ p[f"layer{k}.weight"].T
        d_x = d_x + through if k else windows_backward(through)
    d_x = d_x * kept.masks[0]
    column = d_x.shape[1] - sum(WIDTHS.values())
    for k, fact in enumerate(FACTS):
        gradients[f"table.{fact}"] = kept.rows[:, k], d_x[:, column : column + WIDTHS[fact]]
        column += WIDTHS[fact]


def windows_backward(d_windows: Singles) -> Singles:
    """Compute the derivatives by rows, given those by their windows (`network.windows`)."""
    n = len(d_windows)
    d_windows = d_windows.reshape(n, WINDOW, -1)
    d_x = np.zeros((n, d_windows.shape[2]), np.float32)
    for k in range(-PAD, PAD + 1):
        to, source = slice(max(0, -k), n - max(0, k)), slice(max(0, k), n - max(0, -k))
        d_x[source] += d_windows[to, k + PAD]
    return d_x


def arc_gradients(
    p: Parameters,
    states: Singles,
    parts: ArcParts,
    batch: Batch,
    heads: Longs,
    gradients: Gradients,
) -> tuple[float, Singles]:
    """Compute −log p of the trees with these heads, and its derivatives by the states.

    With s(h, m) the score of an arc, −log p = log Z − Σ_m s(head of m, m), so the derivative by
    s(h, m) is the posterior of the arc, less 1 if h is the head of m.
    """
    d_parts = ArcParts(*(np.zeros_like(part) for part in parts))
    loss = _tree_gradients(parts, batch.first, batch.length, heads, d_parts)
    d_states = np.zeros_like(states)
    names = ("arc.head", "arc.modifier", "arc.between", "pair.head", "pair.modifier")
    for name, part in zip(names, d_parts, strict=False):
        gradients[name] = states.T @ part
        d_states += part @ p[name].T
    gradients["arc.distance"], gradients["arc.out"] = d_parts.distance, d_parts.out
    return loss, d_states


@compiled()
def _tree_gradients(
    parts: ArcParts, first: Longs, length: Longs, heads: Longs, d_parts: ArcParts
) -> float:
    """Add the derivatives by the parts of arcs to `d_parts`, and return −log p of all trees."""
    loss, word = 0.0, 0
    for s in range(len(first)):
        score = arc_scores(parts, first[s], length[s])
        posterior, log_z = eisner.marginals(score)
        loss += log_z
        for m in range(1, length[s] + 1):
            head = heads[word + m - 1]
            loss -= score[head, m]
            posterior[head, m] -= 1
        word += length[s]
        _score_gradients(parts, first[s] - 1, posterior, d_parts)
    return loss


@compiled(helper=True, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
def _score_gradients(parts: ArcParts, root: int, d_score: Doubles, d_parts: ArcParts) -> None:
    """Add the derivatives by the parts of one sentence's arcs, given those by their scores.

    Back through s(h, m) = pair_head_h · pair_modifier_m + out · relu(hidden), with hidden = head_h
    + modifier_m + distance + Σ between, a difference of prefix sums (`network.prefix_sums`).
    """
    n, width = len(d_score) - 1, len(parts.out)
    before = prefix_sums(parts.between[root : root + n + 1])
    d_before = np.zeros_like(before)
    d_pair = np.zeros((n + 1, n + 1), np.float32)
    for h in range(n + 1):
        for m in range(1, n + 1):
            d_s = np.float32(d_score[h, m])
            if h == m or abs(d_s) < NEGLIGIBLE:
                continue
            d_pair[h, m] = d_s
            low, high, row = min(h, m), max(h, m), distance_row(h, m)
            for a in range(width):
                hidden = parts.head[root + h, a] + parts.modifier[root + m, a]
                hidden += parts.distance[row, a] + before[high, a] - before[low + 1, a]
                is_on = np.float32(hidden > 0)
                d_parts.out[a] += d_s * hidden * is_on
                d_hidden = d_s * parts.out[a] * is_on
                d_parts.head[root + h, a] += d_hidden
                d_parts.modifier[root + m, a] += d_hidden
                d_parts.distance[row, a] += d_hidden
                d_before[high, a] += d_hidden
                d_before[low + 1, a] -= d_hidden
    # back through the prefix sums: before[j] sums words 1 … j − 1, so word i is in all behind i
    for j in range(n, 0, -1):
        for a in range(width):
            d_before[j, a] += d_before[j + 1, a]
            d_parts.between[root + j, a] = d_before[j + 1, a]
    # back through the products of pairs
    end = root + n + 1
    d_parts.pair_head[root:end] = np.dot(d_pair, parts.pair_modifier[root:end])
    d_parts.pair_modifier[root:end] = np.dot(d_pair.T, parts.pair_head[root:end])


class Ends(NamedTuple):
    """The rows of states at both ends of arcs, and the rows of the distances between them."""

    heads: Longs
    modifiers: Longs
    distances: Longs


def relation_gradients(
    p: Parameters,
    states: Singles,
    ends: Ends,
    hidden: Singles,
    d_score: Singles,
    gradients: Gradients,
    d_states: Singles,
) -> None:
    """Compute the derivatives by the relations' parameters, and add those by states to `d_states`.

    Args:
        hidden: of every arc, from `network.relation_hidden`
        d_score: the derivatives by the relations' scores before the softmax
    """
    gradients["relation.out"] = hidden.T @ d_score
    gradients["relation.bias"] = d_score.sum(axis=0)
    d_hidden: Singles = (d_score @ p["relation.out"].T) * (hidden > 0)
    gradients["relation.head"] = states[ends.heads].T @ d_hidden
    gradients["relation.modifier"] = states[ends.modifiers].T @ d_hidden
    gradients["relation.distance"] = np.zeros((N_DISTANCES, d_hidden.shape[1]), np.float32)
    add_rows(gradients["relation.distance"], ends.distances, d_hidden)
    add_rows(d_states, ends.heads, d_hidden @ p["relation.head"].T)
    add_rows(d_states, ends.modifiers, d_hidden @ p["relation.modifier"].T)


@compiled()
def add_rows(to: Singles, rows: Longs, values: Singles) -> None:
    """Add each row of values to the row of `to` that `rows` names (np.add.at takes ten times as
    long).
    """
    for k in range(len(rows)):
        for a in range(values.shape[1]):
            to[rows[k], a] += values[k, a]
