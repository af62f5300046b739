"""Sparse features of items and edges, hashed into a table of weights by one kernel.

A feature f that combines the codes x₁, x₂ … of words beside an item or edge has the number

    key_f + code of the label or rule + P x₁ + Q x₂ + R x₃ + S x₄      (modulo 2⁶⁴)

and its slot in the table is a hash of that number (Weinberger et al. 2009). Positions of words:
with an item over [i, k), *first* is i, *last* k − 1, *before* i − 1 and *after* k; the split of an
edge is between j − 1 (*x*) and j (*y*).
"""

import zlib

import numpy as np
from numpy.typing import NDArray

from lpcfg.base.jit import compiled
from lpcfg.base.prefetch import ask_for
from lpcfg.engine.pruned.kernels import Chart
from lpcfg.engine.rescoring.names import Names, mixed
from lpcfg.grammar.tables import Ints, Longs, Singles, frozen

CodedText = tuple[Longs, Ints]
"""A sentence's codes, and the heads of the items of its chart."""
Weights = Singles | NDArray[np.int8]
"""Weights of features as they are learned, or as they are stored in bytes (see `quantized`)."""
Buffers = tuple[Longs, Longs]
"""Space for the numbers of an item's or edge's features, and for their slots."""

PAD = 2
"""Codes beside the sentence's ends: the word at p has column p + PAD."""
WORD, SUFFIX, PREFIX, SHAPE, TAG, DOMAIN = range(6)
"""Rows of a sentence's codes. The domain is the same in all columns, 0 if it has none."""
N_CODES = 6

ITEM_FEATURES, WORD_FEATURES, EDGE_FEATURES = 29, 21, 27
DOMAIN_ITEM_FEATURES, DOMAIN_WORD_FEATURES, DOMAIN_EDGE_FEATURES = 8, 5, 6
"""More features where the sentence has a domain."""
MAX_FEATURES = 48
"""Features of one item or edge, with some to spare."""
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
def _hash_features(numbers: Longs, label: int, mask: int, out: Longs, count: int) -> None:
    """Write the slots of features, given their numbers without the label's or rule's code."""
    for f in range(count):
        x = numbers[f] + label
        x ^= x >> 32
        x *= _FIRST_MIX
        x ^= x >> 29
        x *= _LAST_MIX
        out[f] = (x >> 32) & mask


@compiled(helper=True, borrows=True, inline="always")
def _write_span_features(codes: Longs, i: int, k: int, out: Longs) -> None:
    """Write the numbers of the features that all items over [i, k), more than one word, share."""
    word, tag, suffix = codes[WORD], codes[TAG], codes[SUFFIX]
    before, first, last, after = i + PAD - 1, i + PAD, k + PAD - 1, k + PAD
    key = _KEYS
    # the label itself, its length, the words at and beside its ends
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
    # pairs of these, and all four tags
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
    out[21] = key[21]  # of the label with sibling marks, which `item_slots` puts in


@compiled(helper=True, borrows=True, inline="always")
def _write_head_features(codes: Longs, i: int, k: int, head: int, out: Longs) -> None:
    """Write the numbers of the features of an item's head."""
    word, tag = codes[WORD], codes[TAG]
    before, after, w = i + PAD - 1, k + PAD, head + PAD
    key = _KEYS
    out[22] = key[22] + word[w] * _P
    out[23] = key[23] + tag[w] * _P
    out[24] = key[24] + word[w] * _P + word[after] * _Q
    out[25] = key[25] + word[w] * _P + word[before] * _Q
    out[26] = key[26] + tag[w] * _P + tag[before] * _Q + tag[after] * _R
    out[27] = key[27] + tag[w] * _P + length_bucket(k - i) * _Q
    out[28] = key[28] + word[w] * _P + tag[before] * _Q + tag[after] * _R


@compiled(helper=True, borrows=True, inline="always")
def _write_word_features(codes: Longs, i: int, out: Longs) -> None:
    """Write the numbers of the features that all items over word i share."""
    word, tag, suffix = codes[WORD], codes[TAG], codes[SUFFIX]
    w, key = i + PAD, _KEYS[32:]
    # the label itself, and what the word is
    out[0] = key[0]
    out[1] = key[1] + word[w] * _P
    out[2] = key[2] + suffix[w] * _P
    out[3] = key[3] + codes[SHAPE, w] * _P
    out[4] = key[4] + codes[PREFIX, w] * _P
    # its neighbours, alone and together
    out[5] = key[5] + word[w - 1] * _P
    out[6] = key[6] + word[w + 1] * _P
    out[7] = key[7] + tag[w - 1] * _P
    out[8] = key[8] + tag[w + 1] * _P
    out[9] = key[9] + tag[w - 2] * _P + tag[w - 1] * _Q
    out[10] = key[10] + tag[w + 1] * _P + tag[w + 2] * _Q
    out[11] = key[11] + tag[w - 1] * _P + tag[w + 1] * _Q
    # the word or its ending, with its neighbours
    out[12] = key[12] + word[w] * _P + tag[w - 1] * _Q
    out[13] = key[13] + word[w] * _P + tag[w + 1] * _Q
    out[14] = key[14] + word[w] * _P + word[w - 1] * _Q
    out[15] = key[15] + word[w] * _P + word[w + 1] * _Q
    out[16] = key[16] + suffix[w] * _P + tag[w - 1] * _Q
    out[17] = key[17] + suffix[w] * _P + tag[w + 1] * _Q
    out[18] = key[18] + suffix[w] * _P + word[w - 1] * _Q
    out[19] = key[19] + suffix[w] * _P + word[w + 1] * _Q
    out[20] = key[20] + word[w] * _P + tag[w - 1] * _Q + tag[w + 1] * _R


@compiled(helper=True, borrows=True, inline="always")
def _write_edge_features(
    codes: Longs,
    span: tuple[int, int, int],
    heads: tuple[int, int],
    label: int,
    rule: int,
    out: Longs,
) -> None:
    """Write the numbers of the features of an edge: of its rule, beside words of its span.

    Args:
        span: (i, j, k); the children are over [i, j) and [j, k)
        heads: the head words of the children
        label: the code of the parent's label, and `rule` that of the edge's rule
        out: where the numbers are written, without the code of the rule, which is added at the end
            to all of them. So features of the label alone contain label − rule, and feature 1, the
            rule with sibling marks, is completed by `edge_slots`.
    """
    word, tag = codes[WORD], codes[TAG]
    i, j, k = span
    before, first, last, after = i + PAD - 1, i + PAD, k + PAD - 1, k + PAD
    x, y = j + PAD - 1, j + PAD
    left, right = heads[0] + PAD, heads[1] + PAD
    left_length, right_length = length_bucket(j - i), length_bucket(k - j)
    key = _KEYS[64:]
    # the rule itself, and with sibling marks
    out[0] = key[0]
    out[1] = key[1]
    # the words on both sides of the split, and the lengths of the children
    out[2] = key[2] + word[x] * _P
    out[3] = key[3] + word[y] * _P
    out[4] = key[4] + tag[x] * _P
    out[5] = key[5] + tag[y] * _P
    out[6] = key[6] + tag[x] * _P + tag[y] * _Q
    out[7] = key[7] + left_length * _P
    out[8] = key[8] + right_length * _P
    out[9] = key[9] + left_length * _P + right_length * _Q
    # the words at the ends of the span
    out[10] = key[10] + word[first] * _P
    out[11] = key[11] + word[last] * _P
    out[12] = key[12] + word[before] * _P
    out[13] = key[13] + word[after] * _P
    # the heads of the children, alone, together, and with their distance and the split
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
    # of the parent's label in place of the rule
    label_for_rule = label - rule
    out[25] = label_for_rule + key[25] + word[left] * _P + word[right] * _Q
    out[26] = label_for_rule + key[26] + word[left] * _P + word[right] * _Q + word[y] * _R


@compiled(helper=True, borrows=True, inline="always")
def _write_domain_item_features(codes: Longs, i: int, k: int, head: int, out: Longs) -> None:
    """Write the numbers of an item's features that its sentence's domain has of its own."""
    word, tag, domain = codes[WORD], codes[TAG], codes[DOMAIN, 0]
    before, first, last, after = i + PAD - 1, i + PAD, k + PAD - 1, k + PAD
    key = _KEYS[96:]
    out[0] = domain + key[0]
    out[1] = domain + key[1] + length_bucket(k - i) * _P
    out[2] = domain + key[2] + tag[before] * _P + tag[after] * _Q
    out[3] = domain + key[3] + tag[first] * _P + tag[last] * _Q
    out[4] = domain + key[4] + tag[head + PAD] * _P + length_bucket(k - i) * _Q
    out[5] = domain + key[5] + tag[before] * _P + tag[first] * _Q
    out[6] = domain + key[6] + tag[last] * _P + tag[after] * _Q
    out[7] = domain + key[7] + word[head + PAD] * _P


@compiled(helper=True, borrows=True, inline="always")
def _write_domain_word_features(codes: Longs, i: int, out: Longs) -> None:
    """Write the same for an item over one word."""
    word, tag, domain, w = codes[WORD], codes[TAG], codes[DOMAIN, 0], i + PAD
    key = _KEYS[112:]
    out[0] = domain + key[0]
    out[1] = domain + key[1] + word[w] * _P
    out[2] = domain + key[2] + tag[w - 1] * _P
    out[3] = domain + key[3] + tag[w + 1] * _P
    out[4] = domain + key[4] + tag[w - 1] * _P + tag[w + 1] * _Q


@compiled(helper=True, borrows=True, inline="always")
def _write_domain_edge_features(
    codes: Longs, span: tuple[int, int, int], heads: tuple[int, int], out: Longs
) -> None:
    """Write the same for an edge."""
    tag, domain = codes[TAG], codes[DOMAIN, 0]
    i, j, k = span
    left, right = tag[heads[0] + PAD], tag[heads[1] + PAD]
    key = _KEYS[120:]
    out[0] = domain + key[0]
    out[1] = domain + key[1]
    out[2] = domain + key[2] + tag[j + PAD - 1] * _P + tag[j + PAD] * _Q
    out[3] = domain + key[3] + left * _P + right * _Q
    out[4] = domain + key[4] + length_bucket(j - i) * _P + length_bucket(k - j) * _Q
    out[5] = domain + key[5] + tag[i + PAD - 1] * _P + tag[k + PAD] * _Q


@compiled(borrows=True)
def item_slots(
    chart: Chart,
    t: int,
    text: CodedText,
    names: Names,
    buffers: Buffers,
    mask: int,
    new_span: bool,
) -> int:
    """Write the slots of item t's features, and return how many. If it is not the first item over
    its span (`new_span`), the numbers that it shares with the one before are there already.
    """
    numbers, slots = buffers
    codes, head = text
    i, k, a = chart.start[t], chart.end[t], chart.symbol[t]
    has_domain = codes[DOMAIN, 0] != 0
    if k == i + 1:
        # over one word: all features are shared by the items there
        count = WORD_FEATURES
        if new_span:
            _write_word_features(codes, i, numbers)
            if has_domain:
                _write_domain_word_features(codes, i, numbers[count:])
        if has_domain:
            count += DOMAIN_WORD_FEATURES
        _hash_features(numbers, names.label[a], mask, slots, count)
        return count
    # over several words: those of the span are shared, those of the head and the mark are not
    count = ITEM_FEATURES
    if new_span:
        _write_span_features(codes, i, k, numbers)
    _write_head_features(codes, i, k, head[t], numbers)
    numbers[21] = _KEYS[21] + names.marked[a] - names.label[a]
    if has_domain:
        _write_domain_item_features(codes, i, k, head[t], numbers[count:])
        count += DOMAIN_ITEM_FEATURES
    _hash_features(numbers, names.label[a], mask, slots, count)
    return count


@compiled(borrows=True)
def edge_slots(
    chart: Chart, t: int, e: int, text: CodedText, names: Names, buffers: Buffers, mask: int
) -> int:
    """Write the slots of the features of edge e, below item t, and return how many."""
    numbers, slots = buffers
    codes, head = text
    left, right, r = chart.left[e], chart.right[e], chart.rule[e]
    span = chart.start[t], chart.end[left], chart.end[t]
    label, rule = names.label[chart.symbol[t]], names.rule[r]
    _write_edge_features(codes, span, (head[left], head[right]), label, rule, numbers)
    numbers[1] += names.marked_rule[r] - rule
    count = EDGE_FEATURES
    if codes[DOMAIN, 0] != 0:
        _write_domain_edge_features(codes, span, (head[left], head[right]), numbers[count:])
        numbers[count + 1] += names.marked_rule[r] - rule
        count += DOMAIN_EDGE_FEATURES
    _hash_features(numbers, rule, mask, slots, count)
    return count


@compiled()
def new_buffers() -> Buffers:
    return np.empty(MAX_FEATURES, np.int64), np.empty(MAX_FEATURES, np.int64)


@compiled(helper=True, borrows=True)
def _prefetch(weight: Weights, slots: Longs, count: int) -> None:
    for f in range(count):
        ask_for(weight, slots[f])


@compiled(helper=True, borrows=True, fastmath={"reassoc", "contract", "nsz"})
def _sum_weights(weight: Weights, slots: Longs, count: int) -> np.float32:
    """Sum the weights in these slots; byte q counts as q |q|, and the sum of such is exact."""
    total = np.float32(0.0)
    for f in range(count):
        q = np.float32(weight[slots[f]])
        total += q * abs(q) if weight.itemsize == 1 else q
    return total


def sparse_scores(
    chart: Chart, text: CodedText, names: Names, weight: Weights
) -> tuple[Singles, Singles]:
    """Compute g = w·f of every item and every edge.

    Args:
        text: the codes of the sentence's words (`layer.padded_codes`), and the heads of all items

    Returns:
        g of items and of edges; if weights are bytes, in their unit (`QuantizedWeights.unit`)
    """
    item, edge = np.empty(len(chart.symbol), np.float32), np.empty(len(chart.rule), np.float32)
    numbers, slots = np.empty(MAX_FEATURES, np.int64), np.empty((2, MAX_FEATURES), np.int64)
    _write_scores(chart, text, names, weight, (numbers, slots), item, edge)
    return item, edge


@compiled(borrows=True)
def _write_scores(
    chart: Chart,
    text: CodedText,
    names: Names,
    weight: Weights,
    buffers: tuple[Longs, Longs],
    item: Singles,
    edge: Singles,
) -> None:
    """Write g of every item and edge.

    Weights lie anywhere in a table of megabytes. So those of one item are asked for while the
    features of the next are computed; buffers = (numbers of features, two rows of slots).
    """
    numbers, slots = buffers
    mask = len(weight) - 1
    # items: ask for the weights of item t, then sum those of item t − 1, which have come by now
    last_start, last_end = -1, -1
    count, before = 0, 0
    for t in range(len(item)):
        new_span = chart.start[t] != last_start or chart.end[t] != last_end
        last_start, last_end = chart.start[t], chart.end[t]
        current = slots[t % 2]
        before, count = count, item_slots(chart, t, text, names, (numbers, current), mask, new_span)
        _prefetch(weight, current, count)
        if t > 0:
            item[t - 1] = _sum_weights(weight, slots[(t - 1) % 2], before)
    item[-1] = _sum_weights(weight, slots[(len(item) - 1) % 2], count)
    # edges, likewise
    for t in range(len(item)):
        for e in range(chart.edge_start[t], chart.edge_start[t + 1]):
            current = slots[e % 2]
            before, count = count, edge_slots(chart, t, e, text, names, (numbers, current), mask)
            _prefetch(weight, current, count)
            if e > 0:
                edge[e - 1] = _sum_weights(weight, slots[(e - 1) % 2], before)
    if len(edge):
        edge[-1] = _sum_weights(weight, slots[(len(edge) - 1) % 2], count)
