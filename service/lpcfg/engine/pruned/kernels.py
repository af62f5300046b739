"""The compiled loops: with `lanes`, the only place with layout tricks.

A pruned chart is a hypergraph. Its *items* are symbols over spans, cell by cell, bottom-up. Its
*edges* are rules over two items, grouped by the item above, in the same order. One loop forward is
therefore an inside pass, and one loop backward an outside pass. The coarse pass builds the chart
with the m = 1 grammar. The fine pass runs the tensors over it *relative to the coarse pass*: with
coarse inside values α⁰ and coarse rule probabilities q, an edge a → b c enters α_a / α⁰_a with the
weight q α⁰_b α⁰_c / α⁰_a. These weights sum to one, so the range of float32 is enough for vectors.
Vectors that still drift are rescaled by exact powers of two, with one exponent per item. A weight
itself may be too small for float32 where nothing is pruned, and a member may prefer just that edge:
its exponent is kept beside it as well (`_apart`).

Inside-outside is written twice here, for the numbers of m = 1 in float64 and vectors in float32.
The coarse pass runs before anything is pruned, over 6.5 times as many edges (60 sentences of
gum/dev); one product an edge is all it needs, without terms, dot products or rescaling.
"""

import math
from typing import Any, NamedTuple, TypeVar

import numpy as np

from lpcfg.base import prefetch
from lpcfg.base.jit import compiled
from lpcfg.engine.pruned import lanes
from lpcfg.engine.pruned.lanes import LANES
from lpcfg.grammar.tables import Bools, Doubles, Ints, Longs, Shorts, Singles

Numbers = TypeVar("Numbers", bound=np.ndarray[Any, Any])


_DRIFT = 20
"""A vector is rescaled when its largest component leaves 1 by more than this power of two."""


_SMALL = 2.0**-40
"""Numbers below this are split into mantissa and exponent before they become float32."""


_EDGE_SHARE = 0.3
"""An edge is skipped if its estimate is below this share of what its item needs."""


_JOIN = 0.5
"""Each item multiplies the best estimate of a sequence of items by this.

The chances of items that stand side by side count what each of them adds, and nothing for the rules
that would join them, so that a sequence of many items had an estimate far above 1 and excluded the
items over them. With 1 in place of .5, 4 % of the sentences of craft/dev and 7 % of gum/dev had no
analysis in their first chart; with .5, one in a thousand and one in 250 have none.
"""


_CROWD, _CROWD_OF_ALL = 200, 16_000
"""Above this number of items that end at one word, the threshold for further items rises. In
sentences of more than 80 words, it is the second number divided by the number of words.

The threshold is multiplied by 256 at twice the number, by 256⁴ at three times, by 256⁹ at four
times: estimates may be far above 1. Without this, lists of 250 species had 10,000 items that end at
one word and 31 million edges, and took half a minute. Without the second number, 200 random words
take 1.8 times as long; with it, F1 loses .13 on 246 sentences of more than 80 words of four banks.
"""
_HUGE = 1e150
"""The largest inside value of an item. Products of two larger ones might overflow, as they did in a
list of 400 numbers.
"""


_START: int = np.int64(0)  # type: ignore[assignment]
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


class Context(NamedTuple):
    """Statistics of what stands beside constituents. Tags are t; the sentence's ends have tag T.

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


class Words(NamedTuple):
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

    Terms of rules are stored in blocks (see `lanes`).
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

    The vector α of item t is alpha[at[t] :] · 2 ** up[t]. The terms of edge e, applied to α of its
    left and of its right child, are of_left[term_at[e] :] and of_right[term_at[e] :].
    """

    total: float
    exponent: int
    at: Longs
    term_at: Longs
    alpha: Singles
    up: Longs
    of_left: Singles
    of_right: Singles


@compiled(helper=True, borrows=True, fastmath={"contract"})
def _plus(y: Doubles, factor: float, x: Doubles) -> None:
    for i in range(len(x)):
        y[i] += factor * x[i]


@compiled()
def look_around(words: Words, context: Context) -> tuple[Doubles, Doubles, Doubles, Longs]:
    """Run a hidden Markov model of tags over the words, from the left and from the right.

    Return left[i, a], how likely symbol a is to start at i, and right[k, a], how likely it is to
    end at k. left[i, a] · right[k, a] · inside(a, i, k) estimates a posterior (Caraballo and
    Charniak, 1998). Also return the weights scaled by powers of two, and each word's exponent.
    """
    n, tags = len(words.start) - 1, context.transition.shape[0] - 1
    emission = np.zeros((n + 1, tags + 1))
    emission[n, tags] = 1.0
    forward = np.zeros((n + 1, tags + 1))
    forward[0, tags] = 1.0
    weight = words.weight.copy()
    exponent = np.zeros(n, np.int64)
    for w in range(n):
        for t in range(words.start[w], words.start[w + 1]):
            a = words.symbol[t]
            emission[w, context.tag[a]] += weight[t] * context.share[a]
        for t in range(tags + 1):
            if forward[w, t] > 0.0:
                _plus(forward[w + 1], forward[w, t], context.transition[t])
        seen = 0.0
        for t in range(tags + 1):
            forward[w + 1, t] *= emission[w, t]
            seen += forward[w + 1, t]
        exponent[w] = math.frexp(seen)[1]
        scale = 2.0 ** -exponent[w]
        for t in range(tags + 1):
            forward[w + 1, t] *= scale
            emission[w, t] *= scale
        for t in range(words.start[w], words.start[w + 1]):
            weight[t] *= scale
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
            seen = emission[i, t] * backward[t]
            if seen > 0.0:
                _plus(right[i], seen, context.after[t])
                _plus(earlier, seen, context.follows[t])
        backward, earlier = earlier, backward
        earlier[:] = 0.0
    return left, right, weight, exponent


@compiled()
def _room(array: Numbers, size: int) -> Numbers:
    """Return the array, or a larger copy with room for `size` elements."""
    if size <= len(array):
        return array
    larger: Numbers = np.empty(max(2 * len(array), size), array.dtype)  # type: ignore[assignment]
    for x in range(len(array)):
        larger[x] = array[x]
    return larger


@compiled(helper=True, inline="always")
def _in_singles(table: Doubles) -> Singles:
    """Round the rows of a table to float32, each filled up to full blocks."""
    width = lanes.padded(table.shape[1])
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
def _room_for_pairs(size: int) -> _Pairs:
    numbers = np.empty((3, size), np.int32)
    return _Pairs(numbers[0], numbers[1], numbers[2], np.empty(size))


@compiled(helper=True)
def _room_for_edges(size: int) -> _Edges:
    numbers = np.empty((4, size), np.int32)
    return _Edges(numbers[0], numbers[1], numbers[2], np.empty(size), numbers[3])


@compiled(helper=True, borrows=True)
def _words_found(words: Words, i: int, outlook: Singles, found: tuple[Ints, Doubles, Ints]) -> int:
    """Write the preterminals over word i, their weights and their entries; return how many."""
    symbol, score, newest = found
    n_found = 0
    for t in range(words.start[i], words.start[i + 1]):
        a = words.symbol[t]
        if outlook[a] >= 0.0:
            symbol[n_found] = a
            n_found += 1
            score[a] = words.weight[t]
            newest[a] = words.entry[t]
    return n_found


@compiled(helper=True, borrows=True)
def _pairs_at_most(cells: _Cells, i: int) -> int:
    """Count the pairs of items below the cell from i."""
    first, last, ends, n_ends, low, high = cells
    size = 0
    for at in range(n_ends[i]):
        j = ends[i, at]
        size += (last[i, j] - first[i, j]) * (high[j] - low[j])
    return size


@compiled(helper=True, borrows=True)
def _pairs_below(
    cells: _Cells,
    i: int,
    chart: Chart,
    rules: Rules,
    negligible: float,
    out: _Pairs,
) -> tuple[int, int]:
    """Write the pairs of items below the cell from i that have a rule above them with a chance.

    A pair without a chance is overwritten by the next one (see `_edges_above`). Return how many
    pairs there are, and how many rules above them.
    """
    symbol, inside = chart.symbol, chart.inside
    pair, pair_start, best = rules.pair, rules.pair_start, rules.best
    first, last, ends, n_ends, low, high = cells
    out_pair, out_left, out_right, out_both = out
    pairs, above = 0, 0
    for at in range(n_ends[i]):
        j = ends[i, at]
        begin, end = low[j], high[j]
        if begin == end:
            continue
        for b in range(first[i, j], last[i, j]):
            b_symbol, b_inside = symbol[b], inside[b]
            for c in range(begin, end):
                p = pair[b_symbol, symbol[c]]
                if p < 0:
                    continue
                both = b_inside * inside[c]
                out_pair[pairs], out_both[pairs] = p, both
                out_left[pairs], out_right[pairs] = b, c
                has_chance = both * best[p] >= negligible
                pairs += has_chance
                above += has_chance * (pair_start[p + 1] - pair_start[p])
    return pairs, above


@compiled(helper=True, borrows=True)
def _edges_above(
    pairs: _Pairs,
    size: int,
    rules: Rules,
    outlook: Singles,
    least: float,
    found: tuple[Ints, Doubles, Ints],
    out: _Edges,
) -> tuple[int, int]:
    """Write the edges above the first `size` pairs whose estimated posterior is not too small.

    Every edge is written, and overwritten by the next one if its estimate is too small: a branch
    that the processor often guesses wrongly would cost more.

    found = (symbols found in this cell, the sum of each symbol's edges, its last edge or -1).
    Return how many symbols and edges there are.
    """
    symbol, score, last = found
    pair, left, right, product = pairs
    pair_start, parent, q = rules.pair_start, rules.parent, rules.q
    out_rule, out_left, out_right, out_value, previous = out
    n_found, edges = 0, 0
    for at in range(size):
        p, both = pair[at], product[at]
        for t in range(pair_start[p], pair_start[p + 1]):
            value = q[t] * both
            out_rule[edges], out_value[edges] = t, value
            out_left[edges], out_right[edges] = left[at], right[at]
            edges += value * outlook[parent[t]] >= least
    for e in range(edges):
        a = parent[out_rule[e]]
        if last[a] < 0:
            symbol[n_found] = a
            n_found += 1
        score[a] += out_value[e]
        previous[e] = last[a]
        last[a] = e
    return n_found, edges


@compiled(helper=True, inline="always")
def _with_room(chart: Chart, items: int, edges: int) -> Chart:
    """Return the chart, or a copy with room for so many items and edges."""
    symbol = _room(chart.symbol, items)
    return Chart(
        symbol,
        _room(chart.start, items),
        _room(chart.end, items),
        _room(chart.entry, items),
        _room(chart.inside, items),
        _room(chart.edge_start, len(symbol) + 1),
        _room(chart.rule, edges),
        _room(chart.left, edges),
        _room(chart.right, edges),
        _room(chart.value, edges),
    )


@compiled(helper=True, borrows=True)
def _keep(
    chart: Chart,
    items: int,
    edges: int,
    cell: tuple[int, int],
    found: tuple[Ints, Doubles, Ints],
    n_found: int,
    new: _Edges,
    rule: Ints,
    outlook: tuple[Doubles, Doubles],
    least: float,
) -> tuple[int, int, float]:
    """Add those found in a cell to the chart, with their edges, whose estimate is not too small.

    found = (symbols, scores, last edges, or entries of words), outlook = (left, right). Scores and
    last edges are cleared. Return how many items and edges there are now, and the best estimate.
    """
    symbols, score, newest = found
    i, k = cell
    left, right = outlook
    best = 0.0
    for at in range(n_found):
        a = symbols[at]
        estimate = score[a] * left[i, a] * right[k, a]
        if estimate >= least and 0.0 < score[a] < _HUGE:
            best = max(best, estimate)
            chart.symbol[items], chart.start[items], chart.end[items] = a, i, k
            chart.inside[items], chart.edge_start[items] = score[a], edges
            chart.entry[items] = newest[a] if k == i + 1 else -1
            e = newest[a] if k > i + 1 else -1
            while e >= 0:
                chart.rule[edges], chart.value[edges] = rule[new.rule[e]], new.value[e]
                chart.left[edges], chart.right[edges] = new.left[e], new.right[e]
                edges += 1
                e = new.previous[e]
            items += 1
        score[a] = 0.0
        newest[a] = -1
    return items, edges, best


@compiled()
def build_chart(rules: Rules, words: Words, left: Doubles, right: Doubles, bounds: Bounds) -> Chart:
    """Run the coarse inside pass (figure 5 with m = 1), and keep every edge it uses.

    Cells are filled by their right end, then from right to left, so an item comes after all items
    it is made of. An item with too low an estimated posterior is dropped at once, with its edges.
    """
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
    found = np.empty(symbols, np.int32), np.zeros(symbols), np.empty(symbols, np.int32)
    found[2][:] = -1
    items, edges, room = _START, _START, _START + 256
    most = min(_CROWD, _CROWD_OF_ALL / n)
    pairs, new = _room_for_pairs(room), _room_for_edges(room)
    near_left, near_right, width = _in_singles(left), _in_singles(right), lanes.padded(symbols)
    outlook = np.empty(width, np.float32)
    lead = np.zeros(n + 1)  # the best estimate of any sequence of items from 0 to here
    lead[0] = 1.0
    for k in range(1, n + 1):
        if bounds.stopped[0]:
            break
        column = items
        for i in range(k - 1, -1, -1):
            first[i, k] = last[i, k] = low[i] = high[i] = items
            limit = bounds.cell[i, k]
            if limit == 1:
                continue
            brightest = lanes.products(
                near_left, i * width, near_right, k * width, width // LANES, outlook
            )
            if limit >= 2:
                for a in range(symbols):
                    if not bounds.allowed[limit - 2, a]:
                        outlook[a] = -1.0  # below every threshold
            crowd = max((items - column) / most - 1.0, 0.0)
            ahead = lead[k] / lead[i] if lead[i] > 0.0 else 1.0
            least = bounds.least * ahead * 256.0 ** min(crowd * max(crowd, 1.0), 100.0)
            if k == i + 1:
                n_found, n_new = _words_found(words, i, outlook, found), 0
            else:
                size = _pairs_at_most(cells, i)
                if size > len(pairs.pair):
                    pairs = _room_for_pairs(2 * size)
                least_edge = least * _EDGE_SHARE
                negligible = least_edge / max(brightest * _ROUNDED_UP, _LEAST_SINGLE)
                size, above = _pairs_below(cells, i, chart, rules, negligible, pairs)
                if above > len(new.rule):
                    new = _room_for_edges(2 * above)
                n_found, n_new = _edges_above(pairs, size, rules, outlook, least_edge, found, new)
            if items + n_found > len(chart.symbol) or edges + n_new > len(chart.rule):
                chart = _with_room(chart, items + n_found, edges + n_new)
            items, edges, best = _keep(
                chart,
                items,
                edges,
                (i, k),
                found,
                n_found,
                new,
                rules.rule,
                (left, right),
                least,
            )
            lead[k] = min(max(lead[k], lead[i] * best * _JOIN), _HUGE)
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
    for t in range(items - 1, -1, -1):
        if chart.start[t] > 0 or chart.end[t] < n:
            break
        outside[t] = root[chart.symbol[t]]
        total += outside[t] * chart.inside[t]
    if total == 0.0:
        return total, item_posterior, edge_posterior
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
    new = np.empty(items, np.int32)
    symbol, start = np.empty(n_items, np.int32), np.empty(n_items, np.int32)
    end, entry = np.empty(n_items, np.int32), np.empty(n_items, np.int32)
    inside, of_item = np.empty(n_items), np.empty(n_items)
    edge_start, rule = np.empty(n_items + 1, np.int64), np.empty(n_edges, np.int32)
    left, right = np.empty(n_edges, np.int32), np.empty(n_edges, np.int32)
    value, of_edge = np.empty(n_edges), np.empty(n_edges)
    at, edge = _START, _START
    for t in range(items):
        if not alive[t]:
            continue
        new[t], edge_start[at] = at, edge
        symbol[at], start[at], end[at] = chart.symbol[t], chart.start[t], chart.end[t]
        entry[at], inside[at], of_item[at] = chart.entry[t], chart.inside[t], item_posterior[t]
        at += 1
        for e in range(chart.edge_start[t], chart.edge_start[t + 1]):
            if kept[e]:
                rule[edge], value[edge], of_edge[edge] = (
                    chart.rule[e],
                    chart.value[e],
                    edge_posterior[e],
                )
                left[edge], right[edge] = new[chart.left[e]], new[chart.right[e]]
                edge += 1
    edge_start[at] = edge
    smaller = Chart(symbol, start, end, entry, inside, edge_start, rule, left, right, value)
    return smaller, of_item, of_edge


@compiled(borrows=True)
def _rescale(vectors: Singles, at: int, end: int) -> int:
    """Scale vectors[at:end] back towards 1 if it has drifted. Return the exponent taken out."""
    largest = lanes.largest(vectors, at, (end - at) // LANES)
    if largest == 0.0:
        return 0
    exponent = math.frexp(largest)[1]
    if abs(exponent) <= _DRIFT:
        return 0
    # in two steps, because 2 ** -exponent itself may be beyond float32
    half = exponent // 2
    first, second = np.float32(2.0**-half), np.float32(2.0 ** (half - exponent))
    for i in range(at, end):
        vectors[i] = vectors[i] * first * second
    return exponent


@compiled(helper=True)
def _apart(number: float) -> tuple[float, int]:
    """Split a number that may be too small for float32: number = mantissa · 2 ** exponent."""
    if number >= _SMALL:
        return number, 0
    mantissa, exponent = math.frexp(number)
    return mantissa, int(exponent)


@compiled(helper=True)
def _two_to(exponent: int) -> float:
    """Return a power of two; most exponents are 0, and those beyond 1000 change no sum."""
    return 1.0 if exponent == 0 else math.ldexp(1.0, int(min(max(exponent, -1000), 1000)))


@compiled(helper=True, borrows=True)
def _ask_for_terms(fine: Fine, r: int) -> None:
    """Ask for the terms of a rule that is used soon: most of them are in no cache."""
    prefetch.ask_for_all(fine.left, fine.left_start[r], fine.left_start[r + 1])
    prefetch.ask_for_all(fine.right, fine.right_start[r], fine.right_start[r + 1])
    prefetch.ask_for_all(fine.parent, fine.parent_start[r], fine.parent_start[r + 1])


@compiled()
def fine_inside(chart: Chart, item_posterior: Doubles, fine: Fine, n: int) -> Inside:
    """Compute the inside vectors α with the tensors (figures 4 and 5) on a pruned chart."""
    symbol, _, _, entry, inside, edge_start, rule, left, right, value = chart
    states, terms, parent_start, left_start, right_start = fine[:5]
    of_rule_parent, of_rule_left, of_rule_right = fine.parent, fine.left, fine.right
    items, edges = len(symbol), len(rule)
    at, term_at = np.zeros(items + 1, np.int64), np.zeros(edges + 1, np.int64)
    most = 1
    for t in range(items):
        at[t + 1] = at[t] + lanes.padded(states[symbol[t]])
    for e in range(edges):
        term_at[e + 1] = term_at[e] + lanes.padded(terms[rule[e]])
        most = max(most, term_at[e + 1] - term_at[e])
    alpha, up = np.zeros(at[items], np.float32), np.zeros(items, np.int64)
    of_left = np.empty(term_at[edges], np.float32)
    of_right, both = np.empty(term_at[edges], np.float32), np.empty(most, np.float32)
    for t in range(items):
        m_a = int(states[symbol[t]])
        if entry[t] >= 0:
            from_entry = fine.entry_start[entry[t]]
            for i in range(m_a):
                alpha[at[t] + i] = fine.c_inf[from_entry + i]
            continue
        largest = -(1 << 40)
        for e in range(edge_start[t], edge_start[t + 1]):
            _, own = _apart(value[e] / inside[t])
            largest = max(largest, own + up[left[e]] + up[right[e]])
        for e in range(edge_start[t], edge_start[t + 1]):
            r, b, c, s = rule[e], left[e], right[e], term_at[e]
            if e + 1 < edges:
                _ask_for_terms(fine, rule[e + 1])
            blocks = (term_at[e + 1] - s) // LANES
            share, own = _apart(value[e] / inside[t])
            weight = share * _two_to(own + up[b] + up[c] - largest)
            m_b, m_c = states[symbol[b]], states[symbol[c]]
            lanes.applied(of_rule_left, left_start[r], m_b, blocks, alpha, at[b], of_left, s)
            lanes.applied(of_rule_right, right_start[r], m_c, blocks, alpha, at[c], of_right, s)
            lanes.multiplied(of_left, s, of_right, s, blocks, both)
            lanes.combined(of_rule_parent, parent_start[r], m_a, blocks, weight, both, alpha, at[t])
        up[t] = largest + _rescale(alpha, at[t], at[t + 1])
    total, exponent = _at_roots(chart, item_posterior, fine, n, at, alpha, up)
    return Inside(total, exponent, at, term_at, alpha, up, of_left, of_right)


@compiled(helper=True, inline="always")
def _at_roots(
    chart: Chart,
    item_posterior: Doubles,
    fine: Fine,
    n: int,
    at: Longs,
    alpha: Singles,
    up: Longs,
) -> tuple[float, int]:
    """Compute p(x) divided by the coarse p(x), as a number and an exponent of two."""
    first = len(chart.symbol)
    exponent, total = -(1 << 40), 0.0
    while first and chart.start[first - 1] == 0 and chart.end[first - 1] == n:
        first -= 1
        exponent = max(exponent, up[first] + _apart(item_posterior[first])[1])
    for t in range(len(chart.symbol) - 1, first - 1, -1):
        from_root, value = fine.root_start[chart.symbol[t]], 0.0
        for i in range(fine.states[chart.symbol[t]]):
            value += fine.c_one[from_root + i] * alpha[at[t] + i]
        share, own = _apart(item_posterior[t])
        total += share * value * _two_to(own + up[t] - exponent)
    return (total, exponent) if total != 0.0 else (0.0, 0)


@compiled()
def fine_pass(
    chart: Chart, item_posterior: Doubles, edge_posterior: Doubles, fine: Fine, n: int
) -> tuple[float, int, Doubles, Doubles]:
    """Compute inside, outside and marginals with the tensors (figures 4 and 5) on a pruned chart.

    Return p(x) divided by the coarse p(x), as a number and an exponent of two, and the signed
    posterior μ / p(x) of every item and edge. If p(x) is zero, the posteriors are zero.
    """
    symbol, start, end, _, _, edge_start, rule, left, right, _ = chart
    states, _, parent_start, left_start, right_start = fine[:5]
    of_rule_parent, of_rule_left, of_rule_right = fine.parent, fine.left, fine.right
    found = fine_inside(chart, item_posterior, fine, n)
    total, exponent, at, term_at, alpha, up, of_left, of_right = found
    items, edges = len(symbol), len(rule)
    item_ratio, edge_ratio = np.zeros(items), np.zeros(edges)
    if total == 0.0:
        return 0.0, 0, item_ratio, edge_ratio
    beta, down = np.zeros(at[items], np.float32), np.zeros(items, np.int64)
    above = np.empty(max(1, len(of_left)), np.float32)
    both = np.empty(len(above), np.float32)
    fresh = np.ones(items, np.bool_)
    for t in range(items - 1, -1, -1):
        m_a = int(states[symbol[t]])
        if start[t] == 0 and end[t] == n:
            from_root = fine.root_start[symbol[t]]
            for i in range(m_a):
                beta[at[t] + i] = fine.c_one[from_root + i]
        down[t] += _rescale(beta, at[t], at[t + 1])
        at_item = lanes.dot(beta, at[t], alpha, at[t], (at[t + 1] - at[t]) // LANES)
        share, own = _apart(item_posterior[t])
        item_ratio[t] = share * at_item * _two_to(own + up[t] + down[t] - exponent) / total
        for e in range(edge_start[t], edge_start[t + 1]):
            r, b, c, s = rule[e], left[e], right[e], term_at[e]
            if e + 1 < edges:
                _ask_for_terms(fine, rule[e + 1])
            blocks = (term_at[e + 1] - s) // LANES
            m_b, m_c = states[symbol[b]], states[symbol[c]]
            weight_b = edge_posterior[e] / item_posterior[b]
            weight_c = edge_posterior[e] / item_posterior[c]
            b_factor = _weigh(b, weight_b, down[t] + up[c], beta, at, down, fresh)
            c_factor = _weigh(c, weight_c, down[t] + up[b], beta, at, down, fresh)
            lanes.applied(of_rule_parent, parent_start[r], m_a, blocks, beta, at[t], above, _START)
            lanes.multiplied(above, _START, of_left, s, blocks, both)
            at_edge = lanes.dot(both, _START, of_right, s, blocks)
            lanes.combined(of_rule_right, right_start[r], m_c, blocks, c_factor, both, beta, at[c])
            lanes.multiplied(above, _START, of_right, s, blocks, both)
            lanes.combined(of_rule_left, left_start[r], m_b, blocks, b_factor, both, beta, at[b])
            share, own = _apart(edge_posterior[e])
            shift = own + up[b] + up[c] + down[t] - exponent
            edge_ratio[e] = share * at_edge * _two_to(shift) / total
    return total, exponent, item_ratio, edge_ratio


@compiled(borrows=True)
def _weigh(
    child: int,
    weight: float,
    exponent: int,
    beta: Singles,
    at: Longs,
    down: Longs,
    fresh: Bools,
) -> float:
    """Compute the factor that brings a contribution to a child's β to the child's own exponent."""
    share, own = _apart(weight)
    exponent += own
    if fresh[child]:
        fresh[child] = False
        down[child] = exponent
    shift = exponent - down[child]
    if shift > _DRIFT:
        for i in range(at[child], at[child + 1]):
            beta[i] = np.float32(beta[i] * _two_to(-shift))
        down[child] = exponent
        shift = 0
    return share * _two_to(shift)


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
    start, label, repeated = labels_of
    items = len(chart.symbol)
    begin = np.zeros(items + 1, np.int64)
    for t in range(items):
        a = chart.symbol[t]
        begin[t + 1] = begin[t] + start[a + 1] - start[a]
    share, total, gain = np.empty(begin[items]), np.zeros(n_labels), np.zeros(items)
    low = 0
    while low < items:
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
        for t in range(low, high):
            first = start[chart.symbol[t]]
            for s in range(begin[t + 1] - begin[t]):
                p = share[begin[t] + s] = total[label[first + s]]
                gain[t] += min(item_posterior[t] if repeated[first + s] else p, 1.0) - 0.5
        for t in range(low, high):
            a = chart.symbol[t]
            for s in range(start[a], start[a + 1]):
                total[label[s]] = 0.0
        low = high
    return begin, share, gain
