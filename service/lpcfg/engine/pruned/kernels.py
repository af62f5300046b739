"""The compiled loops: with `simd`, the only place with layout tricks.

A pruned chart is a hypergraph. Its *items* are symbols over spans, cell by cell, bottom-up. Its
*edges* are rules over two items, grouped by the item above, in the same order. One loop forward is
therefore an inside pass, and one loop backward an outside pass. The coarse pass builds the chart
with the m = 1 grammar. The fine pass runs the tensors over it *relative to the coarse pass*: with
coarse inside values α⁰ and coarse rule probabilities q, an edge a → b c enters α_a / α⁰_a with the
weight q α⁰_b α⁰_c / α⁰_a. These weights sum to one, so the range of float32 is enough for vectors.
Vectors that still drift are rescaled by exact powers of two, with one exponent per item. A weight
itself may be too small for float32 where nothing is pruned, and a member may prefer just that edge:
its exponent is kept beside it as well (`_split_exponent`).

Inside-outside is written twice here, for the numbers of m = 1 in float64 and vectors in float32.
The coarse pass runs before anything is pruned, over 6.5 times as many edges (60 sentences of
gum/dev); one product an edge is all it needs, without terms, dot products or rescaling.
"""

import math
from typing import Any, NamedTuple, TypeVar

import numpy as np

from lpcfg.base import prefetch
from lpcfg.base.jit import compiled
from lpcfg.engine.pruned import simd
from lpcfg.engine.pruned.simd import LANES
from lpcfg.grammar.tables import Bools, Doubles, Ints, Longs, Shorts, Singles

AnyArray = TypeVar("AnyArray", bound=np.ndarray[Any, Any])


_MOST_DRIFT = 20
"""A vector is rescaled when its largest component leaves 1 by more than this power of two."""


_SMALL = 2.0**-40
"""Numbers below this are split into mantissa and exponent before they become float32."""


_EDGE_SHARE = 0.3
"""An edge is skipped if its estimate is below this share of what its item needs."""


_SEQUENCE_FACTOR = 0.5
"""Each item multiplies the best estimate of a sequence of items by this.

The chances of items that stand side by side count what each of them adds, and nothing for the rules
that would join them, so that a sequence of many items had an estimate far above 1 and excluded the
items over them. With 1 in place of .5, 4 % of the sentences of craft/dev and 7 % of gum/dev had no
analysis in their first chart; with .5, one in a thousand and one in 250 have none.
"""


_BEAM_LIMIT, _BEAM_LIMIT_OF_SENTENCE = 200, 16_000
"""The beam limit: above this number of items that end at one word, the threshold for further items
rises. In sentences of more than 80 words, it is the second number divided by the number of words.

The threshold is multiplied by 256 at twice the number, by 256⁴ at three times, by 256⁹ at four
times: estimates may be far above 1. Without this, lists of 250 species had 10,000 items that end at
one word and 31 million edges, and took half a minute. Without the second number, 200 random words
take 1.8 times as long; with it, F1 loses .13 on 246 sentences of more than 80 words of four banks.
"""
_HUGE = 1e150
"""The largest inside value of an item. Products of two larger ones might overflow, as they did in a
list of 400 numbers.
"""


_ZERO: int = np.int64(0)  # type: ignore[assignment]
"""Numba compiles a function that is called with a literal 0 once more for it, but not for this."""


_ROUNDED_UP, _LEAST_SINGLE = 1.0 + 1e-6, 1e-30
"""A product in float32 times the first is above its true value, if that is above the second."""


class Rules(NamedTuple):
    """The coarse grammar by pairs of children.

    Rules pair_start[p] : pair_start[p + 1] have the children of pair p = pair[b, c]; -1 means no
    rule, and best[p] is the largest q among them.
    """

    pair: Ints | Shorts
    pair_start: Ints
    best: Doubles
    parent: Ints
    rule: Ints
    q: Doubles
    root: Doubles


class ContextModel(NamedTuple):
    """The statistics behind the figure of merit: which tags stand beside which constituents
    (Caraballo and Charniak, 1998). Tags are t and u; the sentence's ends have tag T.

    transition[t, u] = follows[u, t] = p(tag u follows tag t), before[t, a] = expected number of
    constituents a that start after t, after[u, a] = p(u follows a constituent a). `tag` and `share`
    hold each preterminal's tag and its share p(a | t).
    """

    transition: Doubles
    follows: Doubles
    before: Doubles
    after: Doubles
    tag: Ints
    share: Doubles


class Candidates(NamedTuple):
    """Candidates start[w] : start[w + 1] of every word: preterminal, entry and weight."""

    start: Ints
    symbol: Ints
    entry: Ints
    weight: Doubles


class Bounds(NamedTuple):
    """The limits of a chart.

    cell[i, k] is 0 (anything), 1 (nothing), or 2 + a row of `allowed`, which holds the symbols
    admitted there. Items are dropped if their estimated posterior is below `least` times that of
    the best sequence of items over the same words. Once stopped[0] is set, nothing more is built.
    """

    cell: Ints
    allowed: Bools
    least: float
    stopped: Bools


class Chart(NamedTuple):
    """Items and edges. The edges of item t are edge_start[t] : edge_start[t + 1].

    `inside` holds the coarse inside values α⁰ of items; `value` is q α⁰_b α⁰_c of an edge; `entry`
    is the lexical entry of an item over one word, and -1 for other items.
    """

    symbol: Ints
    start: Ints
    end: Ints
    entry: Ints
    inside: Doubles
    edge_start: Longs
    rule: Ints
    left: Ints
    right: Ints
    value: Doubles


class Fine(NamedTuple):
    """The tables of a member divided by the coarse ones: C / q, c∞, and c¹ / (c¹ of m = 1).

    Terms of rules are stored in blocks (see `simd`).
    """

    states: Ints
    terms: Ints
    parent_start: Longs
    left_start: Longs
    right_start: Longs
    parent: Singles
    left: Singles
    right: Singles
    entry_start: Longs
    c_inf: Singles
    root_start: Longs
    c_one: Singles


class Inside(NamedTuple):
    """p(x) divided by the coarse p(x) as number and exponent of two, and what it is made of.

    The vector α of item t is alpha[vec[t] : vec[t + 1]] · 2 ** a_exp[t]. From term_start[e] on,
    of_left holds left · α of edge e's left child, one number a term, and of_right right · α.
    """

    total: float
    exponent: int
    vec: Longs
    term_start: Longs
    alpha: Singles
    a_exp: Longs
    of_left: Singles
    of_right: Singles


@compiled(helper=True, borrows=True, fastmath={"contract"})
def _plus(y: Doubles, factor: float, x: Doubles) -> None:
    for i in range(len(x)):
        y[i] += factor * x[i]


@compiled()
def merit_factors(
    words: Candidates, context: ContextModel
) -> tuple[Doubles, Doubles, Doubles, Longs]:
    """Compute the factors of the figure of merit by a hidden Markov model of tags.

    The figure of merit left[i, a] · right[k, a] · α(a, i, k) estimates the posterior of symbol a
    over [i, k) (Caraballo and Charniak, 1998). With forward probabilities F and backward ones B,

        left[i, a] = Σ_t F[i, t] before[t, a] / p(words)
        right[k, a] = Σ_u p(word k | u) B[k, u] after[u, a]

    Returns:
        left and right, (n + 1, symbols); the weights of the candidates, those of each word divided
        by a power of two so that F stays in range; and the exponents of these powers
    """
    n, tags = len(words.start) - 1, context.transition.shape[0] - 1
    # beside both ends stands tag T = tags, which emits nothing else
    emission = np.zeros((n + 1, tags + 1))
    emission[n, tags] = 1.0
    forward = np.zeros((n + 1, tags + 1))
    forward[0, tags] = 1.0
    weight = words.weight.copy()
    exponent = np.zeros(n, np.int64)
    for w in range(n):
        # p(word | tag): the weights of the tag's preterminals, each by its share of the tag
        for t in range(words.start[w], words.start[w + 1]):
            a = words.symbol[t]
            emission[w, context.tag[a]] += weight[t] * context.share[a]
        # F[w + 1, u] = p(word | u) Σ_t F[w, t] p(u | t)
        for t in range(tags + 1):
            if forward[w, t] > 0.0:
                _plus(forward[w + 1], forward[w, t], context.transition[t])
        mass = 0.0
        for t in range(tags + 1):
            forward[w + 1, t] *= emission[w, t]
            mass += forward[w + 1, t]
        # divide the word's numbers by a power of two, so that F sums to about 1
        exponent[w] = math.frexp(mass)[1]
        scale = 2.0 ** -exponent[w]
        for t in range(tags + 1):
            forward[w + 1, t] *= scale
            emission[w, t] *= scale
        for t in range(words.start[w], words.start[w + 1]):
            weight[t] *= scale
    # from the right: B[i − 1, t] = Σ_u p(u | t) p(word i | u) B[i, u], of which one row is kept
    backward, earlier = np.zeros(tags + 1), np.zeros(tags + 1)
    backward[tags] = 1.0
    symbols = context.before.shape[1]
    left, right = np.zeros((n + 1, symbols)), np.zeros((n + 1, symbols))
    total = 0.0
    for t in range(tags + 1):
        total += forward[n, t] * context.transition[t, tags]
    for i in range(n, -1, -1):
        for t in range(tags + 1):
            if forward[i, t] > 0.0:
                _plus(left[i], forward[i, t] / total, context.before[t])
        for t in range(tags + 1):
            mass = emission[i, t] * backward[t]
            if mass > 0.0:
                _plus(right[i], mass, context.after[t])
                _plus(earlier, mass, context.follows[t])
        backward, earlier = earlier, backward
        earlier[:] = 0.0
    return left, right, weight, exponent


@compiled()
def _grown(array: AnyArray, size: int) -> AnyArray:
    """Return the array, or a larger copy with room for `size` elements."""
    if size <= len(array):
        return array
    larger: AnyArray = np.empty(max(2 * len(array), size), array.dtype)  # type: ignore[assignment]
    for x in range(len(array)):
        larger[x] = array[x]
    return larger


@compiled(helper=True, inline="always")
def _in_singles(table: Doubles) -> Singles:
    """Round the rows of a table to float32, each filled up to full blocks."""
    width = simd.padded(table.shape[1])
    result = np.zeros(len(table) * width, np.float32)
    for i in range(len(table)):
        for k in range(table.shape[1]):
            result[i * width + k] = table[i, k]
    return result


class _Cells(NamedTuple):
    """The items of a chart that is being built, by cell, and where the cells to a start end.

    Cell [i, k] has the items from first[i, k] up to last[i, k]; those of [i, j] and [j, k] can be
    joined for each j in ends[i, : n_ends[i]]. For the k that is being filled, low[j] and high[j]
    are first[j, k] and last[j, k], side by side in memory.
    """

    first: Ints
    last: Ints
    ends: Ints
    n_ends: Ints
    low: Ints
    high: Ints


class _Pairs(NamedTuple):
    """Two items side by side with rules above them: their pair, and the product of both inside."""

    pair: Ints
    left: Ints
    right: Ints
    both: Doubles


class _Edges(NamedTuple):
    """The edges of one cell, each linked to the previous one of the same symbol."""

    rule: Ints
    left: Ints
    right: Ints
    value: Doubles
    previous: Ints


@compiled(helper=True)
def _new_pairs(size: int) -> _Pairs:
    numbers = np.empty((3, size), np.int32)
    return _Pairs(numbers[0], numbers[1], numbers[2], np.empty(size))


@compiled(helper=True)
def _new_edges(size: int) -> _Edges:
    numbers = np.empty((4, size), np.int32)
    return _Edges(numbers[0], numbers[1], numbers[2], np.empty(size), numbers[3])


@compiled(helper=True, borrows=True)
def _add_words(
    words: Candidates, i: int, outside: Singles, in_cell: tuple[Ints, Doubles, Ints]
) -> int:
    """Write the preterminals over word i, their weights and their entries; return how many."""
    symbol, score, newest = in_cell
    n_symbols = 0
    for t in range(words.start[i], words.start[i + 1]):
        a = words.symbol[t]
        if outside[a] >= 0.0:
            symbol[n_symbols] = a
            n_symbols += 1
            score[a] = words.weight[t]
            newest[a] = words.entry[t]
    return n_symbols


@compiled(helper=True, borrows=True)
def _count_pairs(cells: _Cells, i: int) -> int:
    """Count the pairs of items below the cell from i."""
    first, last, ends, n_ends, low, high = cells
    pairs = 0
    for e in range(n_ends[i]):
        j = ends[i, e]
        pairs += (last[i, j] - first[i, j]) * (high[j] - low[j])
    return pairs


@compiled(helper=True, borrows=True)
def _list_pairs(
    cells: _Cells,
    i: int,
    chart: Chart,
    rules: Rules,
    negligible: float,
    pairs: _Pairs,
) -> tuple[int, int]:
    """Write the pairs of items below the cell from i that have a rule above them with a chance.

    A pair has none if α_b α_c times the best q of its rules is below `negligible`. It is
    overwritten by the next one (see `_list_edges`). Return how many pairs there are, and how many
    rules above them.
    """
    symbol, inside = chart.symbol, chart.inside
    pair, pair_start, best = rules.pair, rules.pair_start, rules.best
    first, last, ends, n_ends, low, high = cells
    out_pair, out_left, out_right, out_both = pairs
    n_pairs, n_rules = 0, 0
    for e in range(n_ends[i]):
        # items b over [i, j), and items c from c_first to c_last over [j, k)
        j = ends[i, e]
        c_first, c_last = low[j], high[j]
        if c_first == c_last:
            continue
        for b in range(first[i, j], last[i, j]):
            b_symbol, b_inside = symbol[b], inside[b]
            for c in range(c_first, c_last):
                pair_id = pair[b_symbol, symbol[c]]
                if pair_id < 0:
                    continue
                both = b_inside * inside[c]
                out_pair[n_pairs], out_both[n_pairs] = pair_id, both
                out_left[n_pairs], out_right[n_pairs] = b, c
                has_chance = both * best[pair_id] >= negligible
                n_pairs += has_chance
                n_rules += has_chance * (pair_start[pair_id + 1] - pair_start[pair_id])
    return n_pairs, n_rules


@compiled(helper=True, borrows=True)
def _list_edges(
    pairs: _Pairs,
    size: int,
    rules: Rules,
    outside: Singles,
    least: float,
    in_cell: tuple[Ints, Doubles, Ints],
    edges: _Edges,
) -> tuple[int, int]:
    """Write the edges above the first `size` pairs whose figure of merit is not too small.

    Every edge is written, and overwritten by the next one if it is too small: a branch that the
    processor often guesses wrongly would cost more.

    in_cell = (symbols found in this cell, the sum of each symbol's edges, its last edge or -1).
    Return how many symbols and edges there are.
    """
    symbol, score, newest = in_cell
    pair, left, right, product = pairs
    pair_start, parent, q = rules.pair_start, rules.parent, rules.q
    out_rule, out_left, out_right, out_value, previous = edges
    n_symbols, n_edges = 0, 0
    # one edge for each rule above each pair, of value q α_b α_c
    for s in range(size):
        pair_id, both = pair[s], product[s]
        for t in range(pair_start[pair_id], pair_start[pair_id + 1]):
            value = q[t] * both
            out_rule[n_edges], out_value[n_edges] = t, value
            out_left[n_edges], out_right[n_edges] = left[s], right[s]
            n_edges += value * outside[parent[t]] >= least
    # α_a is the sum over the edges of symbol a, which are linked from the last one back
    for e in range(n_edges):
        a = parent[out_rule[e]]
        if newest[a] < 0:
            symbol[n_symbols] = a
            n_symbols += 1
        score[a] += out_value[e]
        previous[e] = newest[a]
        newest[a] = e
    return n_symbols, n_edges


@compiled(helper=True, inline="always")
def _grown_chart(chart: Chart, items: int, edges: int) -> Chart:
    """Return the chart, or a copy with room for so many items and edges."""
    symbol = _grown(chart.symbol, items)
    return Chart(
        symbol,
        _grown(chart.start, items),
        _grown(chart.end, items),
        _grown(chart.entry, items),
        _grown(chart.inside, items),
        _grown(chart.edge_start, len(symbol) + 1),
        _grown(chart.rule, edges),
        _grown(chart.left, edges),
        _grown(chart.right, edges),
        _grown(chart.value, edges),
    )


@compiled(helper=True, borrows=True)
def _add_items(
    chart: Chart,
    items: int,
    edges: int,
    cell: tuple[int, int],
    in_cell: tuple[Ints, Doubles, Ints],
    n_symbols: int,
    new: _Edges,
    rule: Ints,
    factors: tuple[Doubles, Doubles],
    least: float,
) -> tuple[int, int, float]:
    """Add the symbols found in a cell to the chart, with their edges, if their figure of merit is
    not too small.

    in_cell = (symbols, scores, last edges, or entries of words), factors = (left, right). Scores
    and last edges are cleared. Return how many items and edges there are now, and the best figure.
    """
    symbols, score, newest = in_cell
    i, k = cell
    left, right = factors
    best = 0.0
    for s in range(n_symbols):
        a = symbols[s]
        estimate = score[a] * left[i, a] * right[k, a]
        if estimate >= least and 0.0 < score[a] < _HUGE:
            best = max(best, estimate)
            chart.symbol[items], chart.start[items], chart.end[items] = a, i, k
            chart.inside[items], chart.edge_start[items] = score[a], edges
            chart.entry[items] = newest[a] if k == i + 1 else -1
            # the edges of the item, from the last one back
            e = newest[a] if k > i + 1 else -1
            while e >= 0:
                chart.rule[edges], chart.value[edges] = (
                    rule[new.rule[e]],
                    new.value[e],
                )
                chart.left[edges], chart.right[edges] = new.left[e], new.right[e]
                edges += 1
                e = new.previous[e]
            items += 1
        score[a] = 0.0
        newest[a] = -1
    return items, edges, best


@compiled()
def build_chart(
    rules: Rules, words: Candidates, left: Doubles, right: Doubles, bounds: Bounds
) -> Chart:
    """Run the coarse inside pass (figure 5 with m = 1), and keep every edge it uses:

        α(a, i, k) = Σ_{i < j < k} Σ_{a → b c} q(a → b c) α(b, i, j) α(c, j, k)

    Cells are filled by their right end, then from right to left, so an item comes after all items
    it is made of. An item whose figure of merit left · right · α is too low (`merit_factors`) is
    dropped at once, with its edges.
    """
    # arrays that grow when they are full
    n, symbols = len(words.start) - 1, rules.pair.shape[0]
    numbers = np.empty((7, 64 * n), np.int32)
    chart = Chart(
        numbers[0],
        numbers[1],
        numbers[2],
        numbers[3],
        np.empty(64 * n),
        np.empty(64 * n + 1, np.int64),
        numbers[4],
        numbers[5],
        numbers[6],
        np.empty(64 * n),
    )
    first, last = np.zeros((n + 1, n + 1), np.int32), np.zeros((n + 1, n + 1), np.int32)
    ends, n_ends = np.empty((n + 1, n + 1), np.int32), np.zeros(n + 1, np.int32)
    low, high = np.zeros(n + 1, np.int32), np.zeros(n + 1, np.int32)
    cells = _Cells(first, last, ends, n_ends, low, high)
    # the symbols found in a cell, their scores, and their last edges (or entries of words)
    in_cell = np.empty(symbols, np.int32), np.zeros(symbols), np.empty(symbols, np.int32)
    in_cell[2][:] = -1
    items, edges, capacity = _ZERO, _ZERO, _ZERO + 256
    beam_limit = min(_BEAM_LIMIT, _BEAM_LIMIT_OF_SENTENCE / n)
    pairs, new = _new_pairs(capacity), _new_edges(capacity)
    left_singles, right_singles, width = _in_singles(left), _in_singles(right), simd.padded(symbols)
    outside = np.empty(width, np.float32)
    prefix = np.zeros(n + 1)  # the best figure of merit of a sequence of items from 0 to here
    prefix[0] = 1.0
    for k in range(1, n + 1):
        if bounds.stopped[0]:
            break
        column_start = items
        for i in range(k - 1, -1, -1):
            first[i, k] = last[i, k] = low[i] = high[i] = items
            cell_limit = bounds.cell[i, k]
            if cell_limit == 1:
                continue
            # left · right of every symbol, the figure of merit without α; forbidden ones have none
            largest_outside = simd.multiply_max(
                left_singles, i * width, right_singles, k * width, width // LANES, outside
            )
            if cell_limit >= 2:
                for a in range(symbols):
                    if not bounds.allowed[cell_limit - 2, a]:
                        outside[a] = -1.0  # below every threshold
            # the least figure: rises beyond the beam limit, and with what rivals over [i, k) have
            excess = max((items - column_start) / beam_limit - 1.0, 0.0)
            rival = prefix[k] / prefix[i] if prefix[i] > 0.0 else 1.0
            least = bounds.least * rival * 256.0 ** min(excess * max(excess, 1.0), 100.0)
            if k == i + 1:
                # over a word: α is the weight of the preterminal
                n_symbols, n_edges = _add_words(words, i, outside, in_cell), 0
            else:
                # over several words: all pairs of items, then all rules above them
                n_pairs = _count_pairs(cells, i)
                if n_pairs > len(pairs.pair):
                    pairs = _new_pairs(2 * n_pairs)
                least_edge = least * _EDGE_SHARE
                negligible = least_edge / max(largest_outside * _ROUNDED_UP, _LEAST_SINGLE)
                n_pairs, n_rules = _list_pairs(cells, i, chart, rules, negligible, pairs)
                if n_rules > len(new.rule):
                    new = _new_edges(2 * n_rules)
                n_symbols, n_edges = _list_edges(
                    pairs, n_pairs, rules, outside, least_edge, in_cell, new
                )
            # move to the chart what is above the least figure
            if items + n_symbols > len(chart.symbol) or edges + n_edges > len(chart.rule):
                chart = _grown_chart(chart, items + n_symbols, edges + n_edges)
            items, edges, best = _add_items(
                chart,
                items,
                edges,
                (i, k),
                in_cell,
                n_symbols,
                new,
                rules.rule,
                (left, right),
                least,
            )
            prefix[k] = min(max(prefix[k], prefix[i] * best * _SEQUENCE_FACTOR), _HUGE)
            last[i, k] = high[i] = items
            if items > first[i, k]:
                ends[i, n_ends[i]] = k
                n_ends[i] += 1
    chart.edge_start[items] = edges
    return Chart(
        chart.symbol[:items],
        chart.start[:items],
        chart.end[:items],
        chart.entry[:items],
        chart.inside[:items],
        chart.edge_start[: items + 1],
        chart.rule[:edges],
        chart.left[:edges],
        chart.right[:edges],
        chart.value[:edges],
    )


@compiled()
def coarse_posteriors(chart: Chart, root: Doubles, n: int) -> tuple[float, Doubles, Doubles]:
    """Run the coarse outside pass: compute p(x), and the posterior of every item and edge."""
    items = len(chart.symbol)
    outside = np.zeros(items)
    item_posterior, edge_posterior = np.zeros(items), np.zeros(len(chart.rule))
    total = 0.0
    # p(x) = Σ_a α(a, 0, n) c¹_a; items over the whole sentence are the last ones
    for t in range(items - 1, -1, -1):
        if chart.start[t] > 0 or chart.end[t] < n:
            break
        outside[t] = root[chart.symbol[t]]
        total += outside[t] * chart.inside[t]
    if total == 0.0:
        return total, item_posterior, edge_posterior
    # β of a child: β_a q α_sibling over all edges, of which `value` holds q α_b α_c
    for t in range(items - 1, -1, -1):
        if outside[t] == 0.0:
            continue
        item_posterior[t] = outside[t] * chart.inside[t] / total
        for e in range(chart.edge_start[t], chart.edge_start[t + 1]):
            value = outside[t] * chart.value[e]
            edge_posterior[e] = value / total
            outside[chart.left[e]] += value / chart.inside[chart.left[e]]
            outside[chart.right[e]] += value / chart.inside[chart.right[e]]
    return total, item_posterior, edge_posterior


@compiled()
def prune(
    chart: Chart,
    item_posterior: Doubles,
    edge_posterior: Doubles,
    least_item: float,
    least_edge: float,
    n: int,
) -> tuple[Chart, Doubles, Doubles]:
    """Remove unlikely items and edges from the chart. Return it with the remaining posteriors.

    Items that can no longer be built from words, or reached from a root, are removed as well.
    """
    # forward: keep likely items that words or likely edges over kept items build
    items, edges = len(chart.symbol), len(chart.rule)
    alive, kept = np.zeros(items, np.bool_), np.zeros(edges, np.bool_)
    for t in range(items):
        if item_posterior[t] < least_item or item_posterior[t] == 0.0:
            continue
        alive[t] = chart.entry[t] >= 0
        for e in range(chart.edge_start[t], chart.edge_start[t + 1]):
            if edge_posterior[e] >= least_edge and alive[chart.left[e]] and alive[chart.right[e]]:
                kept[e] = True
                alive[t] = True
    # backward: of these, keep what a root over the whole sentence is made of
    reached, n_items, n_edges = np.zeros(items, np.bool_), 0, 0
    for t in range(items - 1, -1, -1):
        if not alive[t] or not (reached[t] or (chart.start[t] == 0 and chart.end[t] == n)):
            alive[t] = False
            continue
        n_items += 1
        for e in range(chart.edge_start[t], chart.edge_start[t + 1]):
            if kept[e]:
                n_edges += 1
                reached[chart.left[e]] = True
                reached[chart.right[e]] = True
    # copy the rest: item t becomes item u, and edge e edge v
    renumbered = np.empty(items, np.int32)
    symbol, start = np.empty(n_items, np.int32), np.empty(n_items, np.int32)
    end, entry = np.empty(n_items, np.int32), np.empty(n_items, np.int32)
    inside, of_item = np.empty(n_items), np.empty(n_items)
    edge_start, rule = np.empty(n_items + 1, np.int64), np.empty(n_edges, np.int32)
    left, right = np.empty(n_edges, np.int32), np.empty(n_edges, np.int32)
    value, of_edge = np.empty(n_edges), np.empty(n_edges)
    u, v = _ZERO, _ZERO
    for t in range(items):
        if not alive[t]:
            continue
        renumbered[t], edge_start[u] = u, v
        symbol[u], start[u], end[u] = chart.symbol[t], chart.start[t], chart.end[t]
        entry[u], inside[u], of_item[u] = chart.entry[t], chart.inside[t], item_posterior[t]
        u += 1
        for e in range(chart.edge_start[t], chart.edge_start[t + 1]):
            if kept[e]:
                rule[v], value[v], of_edge[v] = chart.rule[e], chart.value[e], edge_posterior[e]
                left[v], right[v] = renumbered[chart.left[e]], renumbered[chart.right[e]]
                v += 1
    edge_start[u] = v
    smaller = Chart(symbol, start, end, entry, inside, edge_start, rule, left, right, value)
    return smaller, of_item, of_edge


@compiled(borrows=True)
def _rescale(vectors: Singles, start: int, end: int) -> int:
    """Scale vectors[start:end] back towards 1 if it has drifted. Return the exponent taken out."""
    largest = simd.largest(vectors, start, (end - start) // LANES)
    if largest == 0.0:
        return 0
    exponent = math.frexp(largest)[1]
    if abs(exponent) <= _MOST_DRIFT:
        return 0
    # in two steps, because 2 ** -exponent itself may be beyond float32
    half = exponent // 2
    first, second = np.float32(2.0**-half), np.float32(2.0 ** (half - exponent))
    for i in range(start, end):
        vectors[i] = vectors[i] * first * second
    return exponent


@compiled(helper=True)
def _split_exponent(number: float) -> tuple[float, int]:
    """Split a number that may be too small for float32: number = mantissa · 2 ** exponent."""
    if number >= _SMALL:
        return number, 0
    mantissa, exponent = math.frexp(number)
    return mantissa, int(exponent)


@compiled(helper=True)
def _power_of_two(exponent: int) -> float:
    """Return a power of two; most exponents are 0, and those beyond 1000 change no sum."""
    return 1.0 if exponent == 0 else math.ldexp(1.0, int(min(max(exponent, -1000), 1000)))


@compiled(helper=True, borrows=True)
def _prefetch_terms(fine: Fine, r: int) -> None:
    """Ask for the terms of a rule that is used soon: most of them are in no cache."""
    prefetch.ask_for_all(fine.left, fine.left_start[r], fine.left_start[r + 1])
    prefetch.ask_for_all(fine.right, fine.right_start[r], fine.right_start[r + 1])
    prefetch.ask_for_all(fine.parent, fine.parent_start[r], fine.parent_start[r + 1])


@compiled()
def fine_inside(chart: Chart, item_posterior: Doubles, fine: Fine, n: int) -> Inside:
    """Compute the inside vectors α with the tensors (figures 4 and 5) on a pruned chart.

    Relative to the coarse pass, with the weight w_e = q α⁰_b α⁰_c / α⁰_a of an edge a → b c,

        α_a = Σ_e w_e Σ_t parent[t] · (left[t] · α_b) (right[t] · α_c),   α over a word = c∞
    """
    symbol, _, _, entry, inside, edge_start, rule, left, right, value = chart
    states, terms, parent_start, left_start, right_start = fine[:5]
    p_terms, l_terms, r_terms = fine.parent, fine.left, fine.right
    items, edges = len(symbol), len(rule)
    # where the vector of each item, and the terms of each edge, begin
    vec, term_start = np.zeros(items + 1, np.int64), np.zeros(edges + 1, np.int64)
    widest = 1
    for t in range(items):
        vec[t + 1] = vec[t] + simd.padded(states[symbol[t]])
    for e in range(edges):
        term_start[e + 1] = term_start[e] + simd.padded(terms[rule[e]])
        widest = max(widest, term_start[e + 1] - term_start[e])
    alpha, a_exp = np.zeros(vec[items], np.float32), np.zeros(items, np.int64)
    of_left = np.empty(term_start[edges], np.float32)
    of_right, product = np.empty(term_start[edges], np.float32), np.empty(widest, np.float32)
    for t in range(items):
        m_a = int(states[symbol[t]])
        if entry[t] >= 0:
            from_entry = fine.entry_start[entry[t]]
            for i in range(m_a):
                alpha[vec[t] + i] = fine.c_inf[from_entry + i]
            continue
        # the largest exponent of two among the summands, which the sum is kept with
        top = -(1 << 40)
        for e in range(edge_start[t], edge_start[t + 1]):
            _, own = _split_exponent(value[e] / inside[t])
            top = max(top, own + a_exp[left[e]] + a_exp[right[e]])
        for e in range(edge_start[t], edge_start[t + 1]):
            r, b, c, s = rule[e], left[e], right[e], term_start[e]
            if e + 1 < edges:
                _prefetch_terms(fine, rule[e + 1])
            # add w_e Σ_t parent[t] · (left[t] · α_b) (right[t] · α_c)
            blocks = (term_start[e + 1] - s) // LANES
            mantissa, own = _split_exponent(value[e] / inside[t])
            weight = mantissa * _power_of_two(own + a_exp[b] + a_exp[c] - top)
            m_b, m_c = states[symbol[b]], states[symbol[c]]
            simd.apply_terms(l_terms, left_start[r], m_b, blocks, alpha, vec[b], of_left, s)
            simd.apply_terms(r_terms, right_start[r], m_c, blocks, alpha, vec[c], of_right, s)
            simd.multiply(of_left, s, of_right, s, blocks, product)
            simd.add_terms(p_terms, parent_start[r], m_a, blocks, weight, product, alpha, vec[t])
        a_exp[t] = top + _rescale(alpha, vec[t], vec[t + 1])
    total, exponent = _sum_roots(chart, item_posterior, fine, n, vec, alpha, a_exp)
    return Inside(total, exponent, vec, term_start, alpha, a_exp, of_left, of_right)


@compiled(helper=True, inline="always")
def _sum_roots(
    chart: Chart,
    item_posterior: Doubles,
    fine: Fine,
    n: int,
    vec: Longs,
    alpha: Singles,
    a_exp: Longs,
) -> tuple[float, int]:
    """Compute p(x) / coarse p(x) = Σ_a μ⁰_a c¹_a · α_a over the roots, whose coarse posteriors are
    μ⁰; return it as a number and an exponent of two.
    """
    first = len(chart.symbol)
    exponent, total = -(1 << 40), 0.0
    while first and chart.start[first - 1] == 0 and chart.end[first - 1] == n:
        first -= 1
        exponent = max(exponent, a_exp[first] + _split_exponent(item_posterior[first])[1])
    for t in range(len(chart.symbol) - 1, first - 1, -1):
        from_root, value = fine.root_start[chart.symbol[t]], 0.0
        for i in range(fine.states[chart.symbol[t]]):
            value += fine.c_one[from_root + i] * alpha[vec[t] + i]
        mantissa, own = _split_exponent(item_posterior[t])
        total += mantissa * value * _power_of_two(own + a_exp[t] - exponent)
    return (total, exponent) if total != 0.0 else (0.0, 0)


@compiled()
def fine_pass(
    chart: Chart, item_posterior: Doubles, edge_posterior: Doubles, fine: Fine, n: int
) -> tuple[float, int, Doubles, Doubles]:
    """Compute inside, outside and marginals with the tensors (figures 4 and 5) on a pruned chart.

    With the coarse posteriors μ⁰ of items and edges, each edge e = a → b c adds to its children

        β_b += μ⁰_e / μ⁰_b Σ_t left[t] (parent[t] · β_a) (right[t] · α_c)      (β_c likewise)

    and the posteriors are μ_a = μ⁰_a (α_a · β_a) and μ_e = μ⁰_e Σ_t (parent[t] · β_a)
    (left[t] · α_b) (right[t] · α_c), both divided by p(x) / coarse p(x).

    Returns:
        p(x) / coarse p(x), as a number and an exponent of two, and the signed posterior μ / p(x)
        of every item and edge. If p(x) is zero, the posteriors are zero.
    """
    symbol, start, end, _, _, edge_start, rule, left, right, _ = chart
    states, _, parent_start, left_start, right_start = fine[:5]
    p_terms, l_terms, r_terms = fine.parent, fine.left, fine.right
    inside = fine_inside(chart, item_posterior, fine, n)
    total, exponent, vec, term_start, alpha, a_exp, of_left, of_right = inside
    items, edges = len(symbol), len(rule)
    item_ratio, edge_ratio = np.zeros(items), np.zeros(edges)
    if total == 0.0:
        return 0.0, 0, item_ratio, edge_ratio
    beta, b_exp = np.zeros(vec[items], np.float32), np.zeros(items, np.int64)
    of_parent = np.empty(max(1, len(of_left)), np.float32)
    product = np.empty(len(of_parent), np.float32)
    fresh = np.ones(items, np.bool_)
    for t in range(items - 1, -1, -1):
        # β of a root is c¹; of others it is complete, because all items above came before
        m_a = int(states[symbol[t]])
        if start[t] == 0 and end[t] == n:
            from_root = fine.root_start[symbol[t]]
            for i in range(m_a):
                beta[vec[t] + i] = fine.c_one[from_root + i]
        b_exp[t] += _rescale(beta, vec[t], vec[t + 1])
        # the posterior of the item
        mu = simd.dot(beta, vec[t], alpha, vec[t], (vec[t + 1] - vec[t]) // LANES)
        mantissa, own = _split_exponent(item_posterior[t])
        item_ratio[t] = mantissa * mu * _power_of_two(own + a_exp[t] + b_exp[t] - exponent) / total
        for e in range(edge_start[t], edge_start[t + 1]):
            r, b, c, s = rule[e], left[e], right[e], term_start[e]
            if e + 1 < edges:
                _prefetch_terms(fine, rule[e + 1])
            # factors that bring the summands to the exponents of β_b and β_c
            blocks = (term_start[e + 1] - s) // LANES
            m_b, m_c = states[symbol[b]], states[symbol[c]]
            weight_b = edge_posterior[e] / item_posterior[b]
            weight_c = edge_posterior[e] / item_posterior[c]
            b_factor = _outside_factor(b, weight_b, b_exp[t] + a_exp[c], beta, vec, b_exp, fresh)
            c_factor = _outside_factor(c, weight_c, b_exp[t] + a_exp[b], beta, vec, b_exp, fresh)
            # parent · β_a times left · α_b gives the edge's posterior and its share of β_c
            simd.apply_terms(p_terms, parent_start[r], m_a, blocks, beta, vec[t], of_parent, _ZERO)
            simd.multiply(of_parent, _ZERO, of_left, s, blocks, product)
            mu = simd.dot(product, _ZERO, of_right, s, blocks)
            simd.add_terms(r_terms, right_start[r], m_c, blocks, c_factor, product, beta, vec[c])
            simd.multiply(of_parent, _ZERO, of_right, s, blocks, product)
            simd.add_terms(l_terms, left_start[r], m_b, blocks, b_factor, product, beta, vec[b])
            mantissa, own = _split_exponent(edge_posterior[e])
            shift = own + a_exp[b] + a_exp[c] + b_exp[t] - exponent
            edge_ratio[e] = mantissa * mu * _power_of_two(shift) / total
    return total, exponent, item_ratio, edge_ratio


@compiled(borrows=True)
def _outside_factor(
    child: int,
    weight: float,
    exponent: int,
    beta: Singles,
    vec: Longs,
    b_exp: Longs,
    fresh: Bools,
) -> float:
    """Compute the factor that brings a contribution to a child's β to the child's own exponent."""
    mantissa, own = _split_exponent(weight)
    exponent += own
    if fresh[child]:
        fresh[child] = False
        b_exp[child] = exponent
    shift = exponent - b_exp[child]
    if shift > _MOST_DRIFT:
        for i in range(vec[child], vec[child + 1]):
            beta[i] = np.float32(beta[i] * _power_of_two(-shift))
        b_exp[child] = exponent
        shift = 0
    return mantissa * _power_of_two(shift)


@compiled()
def best_tree(chart: Chart, item_score: Doubles, edge_score: Doubles) -> tuple[Doubles, Longs]:
    """Find the derivation with the largest sum of scores. Return each item's total and best edge.

    `item_score` counts at items over one word; the edge of such an item is -1.
    """
    items = len(chart.symbol)
    best, back = np.empty(items), np.empty(items, np.int64)
    for t in range(items):
        best[t], back[t] = item_score[t] if chart.entry[t] >= 0 else -np.inf, -1
        for e in range(chart.edge_start[t], chart.edge_start[t + 1]):
            total = edge_score[e] + best[chart.left[e]] + best[chart.right[e]]
            if total > best[t]:
                best[t], back[t] = total, e
    return best, back


@compiled()
def derivation(chart: Chart, back: Longs, root: int) -> Ints:
    """Return the items of the best derivation below a root, in pre-order; `back` has the edges."""
    items = np.empty(2 * (chart.end[root] - chart.start[root]), np.int32)
    stack = np.empty(len(items), np.int32)
    stack[0], waiting, size = root, 1, 0
    while waiting:
        waiting -= 1
        t = stack[waiting]
        items[size] = t
        size += 1
        e = back[t]
        if e >= 0:
            stack[waiting], stack[waiting + 1] = chart.right[e], chart.left[e]
            waiting += 2
    return items[:size]


@compiled()
def label_shares(
    chart: Chart, item_posterior: Doubles, labels_of: tuple[Ints, Ints, Bools], n_labels: int
) -> tuple[Longs, Doubles, Doubles]:
    """Compute the posterior of every label of every item over its span: the sum over the items
    there that have the label. Those of item t are share[begin[t] : begin[t + 1]].

    Also return the gain of every item, p − ½ summed over its labels. A label that a chain repeats
    is right a second time where the whole item is.

    labels_of = (start, label, repeated): symbol a has the labels label[start[a] : start[a + 1]], of
    which repeated ones stand above themselves in the chain. Items of one span are neighbours.
    """
    # where the labels of each item begin
    start, label, repeated = labels_of
    items = len(chart.symbol)
    begin = np.zeros(items + 1, np.int64)
    for t in range(items):
        a = chart.symbol[t]
        begin[t + 1] = begin[t] + start[a + 1] - start[a]
    share, total, gain = np.empty(begin[items]), np.zeros(n_labels), np.zeros(items)
    low = 0
    while low < items:
        # items low … high − 1 stand over one span; sum the posterior of each label there
        high = low
        while (
            high < items
            and chart.start[high] == chart.start[low]
            and chart.end[high] == chart.end[low]
        ):
            a = chart.symbol[high]
            for s in range(start[a], start[a + 1]):
                if not repeated[s]:
                    total[label[s]] += item_posterior[high]
            high += 1
        # the share of an item's label is this sum, and its gain Σ min(p, 1) − ½
        for t in range(low, high):
            first = start[chart.symbol[t]]
            for s in range(begin[t + 1] - begin[t]):
                p = share[begin[t] + s] = total[label[first + s]]
                gain[t] += min(item_posterior[t] if repeated[first + s] else p, 1.0) - 0.5
        # clear the sums for the next span
        for t in range(low, high):
            a = chart.symbol[t]
            for s in range(start[a], start[a + 1]):
                total[label[s]] = 0.0
        low = high
    return begin, share, gain
