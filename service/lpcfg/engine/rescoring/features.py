"""Sparse features of items and edges, hashed into a table of weights by one kernel.

A feature is a number made of a key of its own, the codes of a symbol or rule, and codes of what
stands around it; its slot in the table is a hash of that number. Positions of words: with an item
over [i, k), *first* is i, *last* k − 1, *previous* i − 1 and *next* k; the split of an edge is
between j − 1 and j.
"""

import zlib

import numpy as np
from numpy.typing import NDArray

from lpcfg.base.jit import compiled
from lpcfg.base.prefetch import ask_for
from lpcfg.engine.pruned.kernels import Chart
from lpcfg.engine.rescoring.names import Names, mixed
from lpcfg.grammar.tables import Ints, Longs, Singles, frozen

Text = tuple[Longs, Ints]
"""A sentence's codes, and the heads of the items of its chart."""
Weights = Singles | NDArray[np.int8]
"""Weights of features as they are learned, or as they are stored in bytes (see `levels`)."""
Room = tuple[Longs, Longs]
"""Room for the numbers of an item's or edge's features, and for their slots."""

PAD = 2
"""Codes beside the sentence's ends: the word at p has column p + PAD."""
WORD, SUFFIX, PREFIX, SHAPE, TAG, DOMAIN = range(6)
"""Rows of a sentence's codes. The kind of text is the same in all columns, 0 if it has none."""
N_CODES = 6

ITEM_FEATURES, WORD_FEATURES, EDGE_FEATURES = 29, 21, 27
OWN_ITEM, OWN_WORD, OWN_EDGE = 8, 5, 6
"""Features more where the sentence has a kind of text."""
MOST = 48
"""Room for the features of one item or edge."""
_P, _Q, _R, _S = 0x2545F4914F6CDD1D, 0x369DEA0F31A53F85, 0x1B873593CC9E2D51, 0x4CF5AD432745937F
_FIRST_MIX, _LAST_MIX = 0x7A2F1D8C35B94E63, 0x5851F42D4C957F2D
_KEYS = frozen(mixed(np.arange(128, dtype=np.int64)))
"""A number for every kind of feature: of items from 0, over single words from 32, of edges 64."""
HASH = zlib.crc32(np.concatenate([_KEYS, [_P, _Q, _R, _S, _FIRST_MIX, _LAST_MIX]]).tobytes())
"""Stored beside weights, which another hash of features would put into disorder."""


@compiled(helper=True)
def length_bucket(words: int) -> int:
    """Return the group of a length: 1 to 5 words each have their own, and longer groups widen; 12
    in all.
    """
    if words <= 5:
        return words - 1
    if words <= 7:
        return 5
    if words <= 10:
        return 6
    if words <= 15:
        return 7
    if words <= 20:
        return 8
    if words <= 30:
        return 9
    return 10 if words <= 45 else 11


@compiled(helper=True, borrows=True)
def _slots(numbers: Longs, label: int, mask: int, out: Longs, count: int) -> None:
    """Return the slots of features whose numbers, but for the label's code, are given."""
    for f in range(count):
        x = numbers[f] + label
        x ^= x >> 32
        x *= _FIRST_MIX
        x ^= x >> 29
        x *= _LAST_MIX
        out[f] = (x >> 32) & mask


@compiled(helper=True, borrows=True, inline="always")
def _cell(codes: Longs, i: int, k: int, out: Longs) -> None:
    """Return the features that all items over [i, k), more words than one, have in common."""
    word, tag, suffix = codes[WORD], codes[TAG], codes[SUFFIX]
    before, first, last, after = i + PAD - 1, i + PAD, k + PAD - 1, k + PAD
    key = _KEYS
    out[0] = key[0]
    out[1] = key[1] + length_bucket(k - i) * _P
    out[2] = key[2] + word[first] * _P
    out[3] = key[3] + word[last] * _P
    out[4] = key[4] + word[before] * _P
    out[5] = key[5] + word[after] * _P
    out[6] = key[6] + tag[first] * _P
    out[7] = key[7] + tag[last] * _P
    out[8] = key[8] + tag[before] * _P
    out[9] = key[9] + tag[after] * _P
    out[10] = key[10] + tag[before] * _P + tag[first] * _Q
    out[11] = key[11] + tag[last] * _P + tag[after] * _Q
    out[12] = key[12] + tag[before] * _P + tag[after] * _Q
    out[13] = key[13] + tag[first] * _P + tag[last] * _Q
    out[14] = key[14] + tag[before] * _P + tag[first] * _Q + tag[last] * _R + tag[after] * _S
    out[15] = key[15] + word[before] * _P + word[after] * _Q
    out[16] = key[16] + word[first] * _P + word[last] * _Q
    out[17] = key[17] + word[before] * _P + word[first] * _Q
    out[18] = key[18] + word[last] * _P + word[after] * _Q
    out[19] = key[19] + suffix[first] * _P
    out[20] = key[20] + suffix[last] * _P
    out[21] = key[21]  # the marked label's own, which is put in by `_item`


@compiled(helper=True, borrows=True, inline="always")
def _head(codes: Longs, i: int, k: int, head: int, out: Longs) -> None:
    """Return the features of an item's head."""
    word, tag = codes[WORD], codes[TAG]
    before, after, at = i + PAD - 1, k + PAD, head + PAD
    key = _KEYS
    out[22] = key[22] + word[at] * _P
    out[23] = key[23] + tag[at] * _P
    out[24] = key[24] + word[at] * _P + word[after] * _Q
    out[25] = key[25] + word[at] * _P + word[before] * _Q
    out[26] = key[26] + tag[at] * _P + tag[before] * _Q + tag[after] * _R
    out[27] = key[27] + tag[at] * _P + length_bucket(k - i) * _Q
    out[28] = key[28] + word[at] * _P + tag[before] * _Q + tag[after] * _R


@compiled(helper=True, borrows=True, inline="always")
def _over_word(codes: Longs, i: int, out: Longs) -> None:
    """Return the features that all items over one word have in common."""
    word, tag, suffix = codes[WORD], codes[TAG], codes[SUFFIX]
    at, key = i + PAD, _KEYS[32:]
    out[0] = key[0]
    out[1] = key[1] + word[at] * _P
    out[2] = key[2] + suffix[at] * _P
    out[3] = key[3] + codes[SHAPE, at] * _P
    out[4] = key[4] + codes[PREFIX, at] * _P
    out[5] = key[5] + word[at - 1] * _P
    out[6] = key[6] + word[at + 1] * _P
    out[7] = key[7] + tag[at - 1] * _P
    out[8] = key[8] + tag[at + 1] * _P
    out[9] = key[9] + tag[at - 2] * _P + tag[at - 1] * _Q
    out[10] = key[10] + tag[at + 1] * _P + tag[at + 2] * _Q
    out[11] = key[11] + tag[at - 1] * _P + tag[at + 1] * _Q
    out[12] = key[12] + word[at] * _P + tag[at - 1] * _Q
    out[13] = key[13] + word[at] * _P + tag[at + 1] * _Q
    out[14] = key[14] + word[at] * _P + word[at - 1] * _Q
    out[15] = key[15] + word[at] * _P + word[at + 1] * _Q
    out[16] = key[16] + suffix[at] * _P + tag[at - 1] * _Q
    out[17] = key[17] + suffix[at] * _P + tag[at + 1] * _Q
    out[18] = key[18] + suffix[at] * _P + word[at - 1] * _Q
    out[19] = key[19] + suffix[at] * _P + word[at + 1] * _Q
    out[20] = key[20] + word[at] * _P + tag[at - 1] * _Q + tag[at + 1] * _R


@compiled(helper=True, borrows=True, inline="always")
def _edge(
    codes: Longs,
    span: tuple[int, int, int],
    heads: tuple[int, int],
    label: int,
    rule: int,
    out: Longs,
) -> None:
    """Write the features of an edge over span = (i, j, k) with its children's heads. Its rule with
    marks, which is feature 1, is left out; features of the parent's label alone take back the rule.
    """
    word, tag = codes[WORD], codes[TAG]
    i, j, k = span
    before, first, last, after = i + PAD - 1, i + PAD, k + PAD - 1, k + PAD
    x, y = j + PAD - 1, j + PAD
    left, right = heads[0] + PAD, heads[1] + PAD
    left_length, right_length = length_bucket(j - i), length_bucket(k - j)
    key = _KEYS[64:]
    out[0] = key[0]
    out[1] = key[1]
    out[2] = key[2] + word[x] * _P
    out[3] = key[3] + word[y] * _P
    out[4] = key[4] + tag[x] * _P
    out[5] = key[5] + tag[y] * _P
    out[6] = key[6] + tag[x] * _P + tag[y] * _Q
    out[7] = key[7] + left_length * _P
    out[8] = key[8] + right_length * _P
    out[9] = key[9] + left_length * _P + right_length * _Q
    out[10] = key[10] + word[first] * _P
    out[11] = key[11] + word[last] * _P
    out[12] = key[12] + word[before] * _P
    out[13] = key[13] + word[after] * _P
    out[14] = key[14] + word[left] * _P
    out[15] = key[15] + word[right] * _P
    out[16] = key[16] + tag[left] * _P
    out[17] = key[17] + tag[right] * _P
    out[18] = key[18] + word[left] * _P + word[right] * _Q
    out[19] = key[19] + word[left] * _P + tag[right] * _Q
    out[20] = key[20] + tag[left] * _P + word[right] * _Q
    out[21] = key[21] + tag[left] * _P + tag[right] * _Q
    out[22] = out[21] + key[22] + length_bucket(max(right - left, 1)) * _R
    out[23] = out[21] + key[23] + tag[x] * _R + tag[y] * _S
    out[24] = key[24] + word[left] * _P + word[y] * _Q
    own = label - rule
    out[25] = own + key[25] + word[left] * _P + word[right] * _Q
    out[26] = own + key[26] + word[left] * _P + word[right] * _Q + word[y] * _R


@compiled(helper=True, borrows=True, inline="always")
def _own_item(codes: Longs, i: int, k: int, head: int, out: Longs) -> None:
    """Write an item's features of its sentence's kind of text."""
    word, tag, own = codes[WORD], codes[TAG], codes[DOMAIN, 0]
    before, first, last, after = i + PAD - 1, i + PAD, k + PAD - 1, k + PAD
    key = _KEYS[96:]
    out[0] = own + key[0]
    out[1] = own + key[1] + length_bucket(k - i) * _P
    out[2] = own + key[2] + tag[before] * _P + tag[after] * _Q
    out[3] = own + key[3] + tag[first] * _P + tag[last] * _Q
    out[4] = own + key[4] + tag[head + PAD] * _P + length_bucket(k - i) * _Q
    out[5] = own + key[5] + tag[before] * _P + tag[first] * _Q
    out[6] = own + key[6] + tag[last] * _P + tag[after] * _Q
    out[7] = own + key[7] + word[head + PAD] * _P


@compiled(helper=True, borrows=True, inline="always")
def _own_word(codes: Longs, i: int, out: Longs) -> None:
    """Write the features of a word's kind of text."""
    word, tag, own, at = codes[WORD], codes[TAG], codes[DOMAIN, 0], i + PAD
    key = _KEYS[112:]
    out[0] = own + key[0]
    out[1] = own + key[1] + word[at] * _P
    out[2] = own + key[2] + tag[at - 1] * _P
    out[3] = own + key[3] + tag[at + 1] * _P
    out[4] = own + key[4] + tag[at - 1] * _P + tag[at + 1] * _Q


@compiled(helper=True, borrows=True, inline="always")
def _own_edge(codes: Longs, span: tuple[int, int, int], heads: tuple[int, int], out: Longs) -> None:
    """Write an edge's features of its sentence's kind of text."""
    tag, own = codes[TAG], codes[DOMAIN, 0]
    i, j, k = span
    left, right = tag[heads[0] + PAD], tag[heads[1] + PAD]
    key = _KEYS[120:]
    out[0] = own + key[0]
    out[1] = own + key[1]
    out[2] = own + key[2] + tag[j + PAD - 1] * _P + tag[j + PAD] * _Q
    out[3] = own + key[3] + left * _P + right * _Q
    out[4] = own + key[4] + length_bucket(j - i) * _P + length_bucket(k - j) * _Q
    out[5] = own + key[5] + tag[i + PAD - 1] * _P + tag[k + PAD] * _Q


@compiled(borrows=True)
def item_slots(
    chart: Chart, t: int, text: Text, names: Names, room: Room, mask: int, fresh: bool
) -> int:
    """Write the slots of item t's features, and return how many; `fresh` at a new span."""
    numbers, slots = room
    codes, head = text
    i, k, a = chart.start[t], chart.end[t], chart.symbol[t]
    of_kind = codes[DOMAIN, 0] != 0
    if k == i + 1:
        count = WORD_FEATURES
        if fresh:
            _over_word(codes, i, numbers)
            if of_kind:
                _own_word(codes, i, numbers[count:])
        if of_kind:
            count += OWN_WORD
        _slots(numbers, names.label[a], mask, slots, count)
        return count
    count = ITEM_FEATURES
    if fresh:
        _cell(codes, i, k, numbers)
    _head(codes, i, k, head[t], numbers)
    numbers[21] = _KEYS[21] + names.marked[a] - names.label[a]
    if of_kind:
        _own_item(codes, i, k, head[t], numbers[count:])
        count += OWN_ITEM
    _slots(numbers, names.label[a], mask, slots, count)
    return count


@compiled(borrows=True)
def edge_slots(
    chart: Chart, t: int, e: int, text: Text, names: Names, room: Room, mask: int
) -> int:
    """Write the slots of the features of edge e, below item t, and return how many."""
    numbers, slots = room
    codes, head = text
    left, right, r = chart.left[e], chart.right[e], chart.rule[e]
    span = chart.start[t], chart.end[left], chart.end[t]
    label, rule = names.label[chart.symbol[t]], names.rule[r]
    _edge(codes, span, (head[left], head[right]), label, rule, numbers)
    numbers[1] += names.marked_rule[r] - rule
    count = EDGE_FEATURES
    if codes[DOMAIN, 0] != 0:
        _own_edge(codes, span, (head[left], head[right]), numbers[count:])
        numbers[count + 1] += names.marked_rule[r] - rule
        count += OWN_EDGE
    _slots(numbers, rule, mask, slots, count)
    return count


@compiled()
def room_for_slots() -> Room:
    return np.empty(MOST, np.int64), np.empty(MOST, np.int64)


@compiled(helper=True, borrows=True)
def _ask_for(weight: Weights, slots: Longs, count: int) -> None:
    for f in range(count):
        ask_for(weight, slots[f])


@compiled(helper=True, borrows=True, fastmath={"reassoc", "contract", "nsz"})
def _sum(weight: Weights, slots: Longs, count: int) -> np.float32:
    """Sum the weights in these slots; byte q counts as q |q|, and the sum of such is exact."""
    total = np.float32(0.0)
    for f in range(count):
        q = np.float32(weight[slots[f]])
        total += q * abs(q) if weight.itemsize == 1 else q
    return total


def sparse_scores(
    chart: Chart, text: Text, names: Names, weight: Weights
) -> tuple[Singles, Singles]:
    """Compute g = w·f of every item and every edge; text = (codes, heads of items).

    Of weights in bytes, g is told in their unit (`Levels.unit`).
    """
    item, edge = np.empty(len(chart.symbol), np.float32), np.empty(len(chart.rule), np.float32)
    numbers, slots = np.empty(MOST, np.int64), np.empty((2, MOST), np.int64)
    _write_scores(chart, text, names, weight, (numbers, slots), item, edge)
    return item, edge


@compiled(borrows=True)
def _write_scores(
    chart: Chart,
    text: Text,
    names: Names,
    weight: Weights,
    room: tuple[Longs, Longs],
    item: Singles,
    edge: Singles,
) -> None:
    """Write g of every item and edge.

    Weights lie anywhere in a table of megabytes. So those of one item are asked for while the
    features of the next are computed; room = (numbers of features, two rows of slots).
    """
    numbers, slots = room
    mask = len(weight) - 1
    last_start, last_end = -1, -1
    count, before = 0, 0
    for t in range(len(item)):
        fresh = chart.start[t] != last_start or chart.end[t] != last_end
        last_start, last_end = chart.start[t], chart.end[t]
        now = slots[t % 2]
        before, count = count, item_slots(chart, t, text, names, (numbers, now), mask, fresh)
        _ask_for(weight, now, count)
        if t > 0:
            item[t - 1] = _sum(weight, slots[(t - 1) % 2], before)
    item[-1] = _sum(weight, slots[(len(item) - 1) % 2], count)
    for t in range(len(item)):
        for e in range(chart.edge_start[t], chart.edge_start[t + 1]):
            now = slots[e % 2]
            before, count = count, edge_slots(chart, t, e, text, names, (numbers, now), mask)
            _ask_for(weight, now, count)
            if e > 0:
                edge[e - 1] = _sum(weight, slots[(e - 1) % 2], before)
    if len(edge):
        edge[-1] = _sum(weight, slots[(len(edge) - 1) % 2], count)
