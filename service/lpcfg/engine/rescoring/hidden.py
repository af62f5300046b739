"""The hidden part: g = v_label · relu(h) of items, u_rule · relu(h') of edges.

h is a sum of rows, one for each position beside an item or edge, and one for its lengths:

    h = Σ_p row_p(word at p) + length row,   row_p(w) = W_pᵀ vector(w) + tag row + suffix row

Rows of positions that always come together (`POSITION_OFFSETS`) are summed once a sentence, those
of a span once a cell.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lpcfg.base.jit import compiled
from lpcfg.base.prefetch import ask_for_all
from lpcfg.engine.pruned.kernels import Chart
from lpcfg.engine.rescoring.features import PAD, length_bucket
from lpcfg.grammar.tables import Ints, Longs, Singles, frozen

POSITION_OFFSETS = (
    *((0, -2), (0, -1), (0, 0), (0, 1)),  # an item's start i: i - 2, i - 1, i, i + 1
    *((1, -2), (1, -1), (1, 0), (1, 1)),  # its end k: k - 2, k - 1, k, k + 1
    (2, 0),  # its head
    *((3, -1), (3, 0)),  # an edge's start
    *((4, -1), (4, 0)),  # its split j
    *((5, -1), (5, 0)),  # its end
    *((6, 0), (7, 0)),  # its heads
)
"""Every position: the sum that it is part of, and its offset."""
POSITIONS, SUMS = len(POSITION_OFFSETS), 8
START, END, HEAD, EDGE_START, SPLIT, EDGE_END, LEFT_HEAD, RIGHT_HEAD = range(SUMS)
LENGTHS = 12
_OFFSETS = frozen(np.array(POSITION_OFFSETS, np.int64))


class Hidden(NamedTuple):
    """Tables of width H. `word` (d, POSITIONS · H) multiplies words' vectors, `tag` and `suffix`
    have a row of POSITIONS · H for every tag and suffix; `length` (3, LENGTHS, H) has rows of an
    item's length, and of an edge's left and right lengths."""

    word: Singles
    tag: Singles
    suffix: Singles
    length: Singles
    label: Singles
    rule: Singles


@compiled()
def sum_rows(table: Singles, rows: Longs, other_table: Singles, other_rows: Longs) -> Singles:
    """Return table[rows] + other_table[other_rows]."""
    result = np.empty((len(rows), table.shape[1]), np.float32)
    for k in range(len(rows)):
        a, b = table[rows[k]], other_table[other_rows[k]]
        for h in range(len(a)):
            result[k, h] = a[h] + b[h]
    return result


@compiled()
def gather(by_word: Singles, n: int, width: int) -> Singles:
    """Sum the rows of positions that come together: sums[s, i] has all whose anchor is place i.

    Args:
        by_word: the rows of every word at every position, (n + 2 PAD, POSITIONS · H)
        n: the number of words
        width: H

    Returns:
        (SUMS, n + 1, H)
    """
    sums = np.zeros((SUMS, n + 1, width), np.float32)
    for p in range(len(_OFFSETS)):
        s, offset = _OFFSETS[p]
        for i in range(n + 1):
            row = by_word[i + offset + PAD, p * width : (p + 1) * width]
            for h in range(width):
                sums[s, i, h] += row[h]
    return sums


@compiled(borrows=True, fastmath={"contract"})
def write_row(
    start: Singles, vector: NDArray[np.int8], scale: float, table: Singles, out: Singles
) -> None:
    """Write start + scale · vector · table; for so small a product, a library would start threads.

    Four rows of the table are added at a time, so that `out` is read and written a fourth as often.
    """
    for h in range(len(out)):
        out[h] = start[h]
    whole = len(vector) - len(vector) % 4
    for d in range(0, whole, 4):
        x0, x1 = np.float32(scale * vector[d]), np.float32(scale * vector[d + 1])
        x2, x3 = np.float32(scale * vector[d + 2]), np.float32(scale * vector[d + 3])
        r0, r1, r2, r3 = table[d], table[d + 1], table[d + 2], table[d + 3]
        for h in range(len(out)):
            out[h] += x0 * r0[h] + x1 * r1[h] + x2 * r2[h] + x3 * r3[h]
    for d in range(whole, len(vector)):
        x0, r0 = np.float32(scale * vector[d]), table[d]
        for h in range(len(out)):
            out[h] += x0 * r0[h]


@compiled(helper=True, borrows=True, fastmath={"reassoc", "contract", "nsz"})
def _score(base: Singles, first: Singles, second: Singles, weight: Singles) -> np.float32:
    total = np.float32(0.0)
    for h in range(len(base)):
        total += max(base[h] + first[h] + second[h], np.float32(0.0)) * weight[h]
    return total


@compiled(helper=True, borrows=True)
def sum_into(out: Singles, a: Singles, b: Singles, c: Singles) -> None:
    for h in range(len(out)):
        out[h] = a[h] + b[h] + c[h]


@compiled()
def hidden_scores(
    chart: Chart, head: Ints, sums: Singles, hidden: Hidden, rows: tuple[Ints, Ints]
) -> tuple[Singles, Singles]:
    """Compute g of every item and edge; rows = (of symbols, of rules) in the tables label and
    rule.
    """
    item, edge = np.empty(len(chart.symbol), np.float32), np.empty(len(chart.rule), np.float32)
    _write_scores(
        chart, head, sums, hidden, rows, np.zeros((4, sums.shape[2]), np.float32), item, edge
    )
    return item, edge


@compiled(helper=True, borrows=True)
def _write_scores(
    chart: Chart,
    head: Ints,
    sums: Singles,
    hidden: Hidden,
    rows: tuple[Ints, Ints],
    buffers: Singles,
    item: Singles,
    edge: Singles,
) -> None:
    """Write g of every item and edge; `buffers` has four rows of zeros."""
    of_symbol, of_rule = rows
    item_sum, edge_base, edge_sum, zeros = buffers[0], buffers[1], buffers[2], buffers[3]
    last_start, last_end = -1, -1
    for t in range(len(chart.symbol)):
        i, k = chart.start[t], chart.end[t]
        if i != last_start or k != last_end:
            # what all items over [i, k), and all edges below them, share of h
            last_start, last_end = i, k
            length = hidden.length[0, length_bucket(k - i)]
            sum_into(item_sum, sums[START, i], sums[END, k], length)
            sum_into(edge_base, sums[EDGE_START, i], sums[EDGE_END, k], zeros)
        # g = v_label · relu(h), with the row of the item's head
        label = hidden.label[of_symbol[chart.symbol[t]]]
        item[t] = _score(item_sum, sums[HEAD, head[t]], zeros, label)
        for e in range(chart.edge_start[t], chart.edge_start[t + 1]):
            if e + 1 < len(edge):  # rows of rules lie anywhere in megabytes
                row = of_rule[chart.rule[e + 1]] * len(edge_sum)
                ask_for_all(hidden.rule, row, row + len(edge_sum))
            # g = u_rule · relu(h'), with the rows of the split, of both lengths and of both heads
            left, right = chart.left[e], chart.right[e]
            j = chart.end[left]
            sum_into(edge_sum, edge_base, sums[SPLIT, j], hidden.length[1, length_bucket(j - i)])
            add_to(edge_sum, hidden.length[2, length_bucket(k - j)])
            heads = sums[LEFT_HEAD, head[left]], sums[RIGHT_HEAD, head[right]]
            edge[e] = _score(edge_sum, heads[0], heads[1], hidden.rule[of_rule[chart.rule[e]]])


@compiled(helper=True, borrows=True)
def add_to(out: Singles, a: Singles) -> None:
    for h in range(len(out)):
        out[h] += a[h]
