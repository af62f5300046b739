"""The compiled loops: the only place with layout tricks.

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
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numba import njit

from lpcfg.grammar.tables import Bools, Doubles, Ints, Longs, Singles

Kernel = TypeVar("Kernel", bound=Callable[..., Any])
Numbers = TypeVar("Numbers", bound=np.ndarray[Any, Any])


def compiled(**options: Any) -> Callable[[Kernel], Kernel]:
    """Compile a function; unlike numba's own decorator, keep its types for those who call it."""
    decorate: Callable[[Kernel], Kernel] = njit(cache=True, nogil=True, **options)
    return decorate


_DRIFT = 20
"""A vector is rescaled when its largest component leaves 1 by more than this power of two."""


_SMALL = 2.0**-40
"""Numbers below this are split into mantissa and exponent before they become float32."""


_EDGE_SHARE = 0.03
"""An edge is skipped if its estimate is below this share of what its item needs."""


_CROWD = 400
"""Above this number of items that end at one word, the threshold for further items rises."""


class Rules(NamedTuple):
    """The coarse grammar by pairs of children.

    Rules pair_start[p] : pair_start[p + 1] have the children of pair p = pair[b, c]; -1 means no
    rule, and best[p] is the largest q among them.
    """

    pair: Ints
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
    admitted there. Items with an estimated posterior below `least` are dropped. Once stopped[0] is
    set, nothing more is built.
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
    """The tables of a member divided by the coarse ones: C / q, c∞, and c¹ / (c¹ of m = 1)."""

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


@compiled(fastmath={"contract"})
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
    larger[: len(array)] = array
    return larger


@compiled()
def build_chart(rules: Rules, words: Words, left: Doubles, right: Doubles, bounds: Bounds) -> Chart:
    """Run the coarse inside pass (figure 5 with m = 1), and keep every edge it uses.

    Cells are filled by their right end, then from right to left, so an item comes after all items
    it is made of. An item with too low an estimated posterior is dropped at once, with its edges.
    """
    n, symbols = len(words.start) - 1, rules.pair.shape[0]
    item_symbol, item_entry = np.empty(32 * n, np.int32), np.empty(32 * n, np.int32)
    item_start, item_end = np.empty(32 * n, np.int32), np.empty(32 * n, np.int32)
    inside, edge_start = np.empty(32 * n), np.empty(32 * n + 1, np.int64)
    edge_rule, edge_left = np.empty(64 * n, np.int32), np.empty(64 * n, np.int32)
    edge_right, edge_value = np.empty(64 * n, np.int32), np.empty(64 * n)
    cell_start = np.zeros((n + 1, n + 1), np.int32)
    cell_end = np.zeros((n + 1, n + 1), np.int32)
    ends, n_ends = np.empty((n + 1, n + 1), np.int32), np.zeros(n + 1, np.int32)
    found = np.empty(symbols, np.int32)  # symbols found in this cell
    outlook, score, first = np.empty(symbols), np.zeros(symbols), np.full(symbols, -1, np.int32)
    # edges of this cell, each linked to the previous one of the same symbol
    new_rule, new_left = np.empty(256, np.int32), np.empty(256, np.int32)
    new_right, new_next = np.empty(256, np.int32), np.empty(256, np.int32)
    new_value = np.empty(256)
    items, edges = 0, 0
    lead = np.ones(n + 1)  # the best estimate of any sequence of items from 0 to here
    pair, pair_start, best = rules.pair.ravel(), rules.pair_start, rules.best
    parent, q = rules.parent, rules.q
    most = (pair_start[1:] - pair_start[:-1]).max()
    for k in range(1, n + 1):
        if bounds.stopped[0]:
            break
        lead[k], column = 0.0, items
        for i in range(k - 1, -1, -1):
            n_found, n_new = 0, 0
            brightest = 0.0
            for a in range(symbols):
                outlook[a] = left[i, a] * right[k, a]
                brightest = max(brightest, outlook[a])
            crowd = min(max((items - column) / _CROWD - 1.0, 0.0), 100.0)
            ahead = lead[k] / lead[i] if lead[i] > 0.0 else 1.0
            least = bounds.least * ahead * 256.0**crowd
            least_edge = least * _EDGE_SHARE
            negligible = least_edge / brightest if brightest > 0.0 else np.inf
            cell_start[i, k] = items
            cell_end[i, k] = items
            limit = bounds.cell[i, k]
            if limit == 1:
                continue
            if k == i + 1:
                for t in range(words.start[i], words.start[k]):
                    a = words.symbol[t]
                    if limit >= 2 and not bounds.allowed[limit - 2, a]:
                        continue
                    found[n_found] = a
                    n_found += 1
                    score[a] = words.weight[t]
                    first[a] = words.entry[t]
            for at in range(n_ends[i]):
                j = ends[i, at]
                low, high = cell_start[j, k], cell_end[j, k]
                if low == high:
                    continue
                size = n_new + (cell_end[i, j] - cell_start[i, j]) * (high - low) * most
                if size > len(new_rule):
                    new_rule, new_left = _room(new_rule, size), _room(new_left, size)
                    new_right, new_next = _room(new_right, size), _room(new_next, size)
                    new_value = _room(new_value, size)
                for b_item in range(cell_start[i, j], cell_end[i, j]):
                    row, b_inside = item_symbol[b_item] * symbols, inside[b_item]
                    for c_item in range(low, high):
                        p = pair[row + item_symbol[c_item]]
                        if p < 0:
                            continue
                        both = b_inside * inside[c_item]
                        if both * best[p] < negligible:
                            continue
                        for t in range(pair_start[p], pair_start[p + 1]):
                            a, value = parent[t], q[t] * both
                            if value * outlook[a] < least_edge:
                                continue
                            if limit >= 2 and not bounds.allowed[limit - 2, a]:
                                continue
                            if first[a] < 0:
                                found[n_found] = a
                                n_found += 1
                            score[a] += value
                            new_rule[n_new] = t
                            new_left[n_new], new_right[n_new] = b_item, c_item
                            new_value[n_new], new_next[n_new] = value, first[a]
                            first[a] = n_new
                            n_new += 1
            size = items + n_found
            if size > len(item_symbol):
                item_symbol, item_entry = _room(item_symbol, size), _room(item_entry, size)
                item_start, item_end = _room(item_start, size), _room(item_end, size)
                inside, edge_start = _room(inside, size), _room(edge_start, size + 1)
                edge_start = _room(edge_start, len(item_symbol) + 1)
            if edges + n_new > len(edge_rule):
                size = edges + n_new
                edge_rule, edge_left = _room(edge_rule, size), _room(edge_left, size)
                edge_right, edge_value = _room(edge_right, size), _room(edge_value, size)
            for at in range(n_found):
                a = found[at]
                estimate = score[a] * outlook[a]
                if estimate >= least and score[a] > 0.0:
                    lead[k] = max(lead[k], lead[i] * estimate)
                    item_symbol[items], item_start[items], item_end[items] = a, i, k
                    inside[items], edge_start[items] = score[a], edges
                    item_entry[items] = first[a] if k == i + 1 else -1
                    e = first[a] if k > i + 1 else -1
                    while e >= 0:
                        edge_rule[edges], edge_value[edges] = rules.rule[new_rule[e]], new_value[e]
                        edge_left[edges], edge_right[edges] = new_left[e], new_right[e]
                        edges += 1
                        e = new_next[e]
                    items += 1
                score[a] = 0.0
                first[a] = -1
            cell_end[i, k] = items
            if items > cell_start[i, k]:
                ends[i, n_ends[i]] = k
                n_ends[i] += 1
    edge_start[items] = edges
    return Chart(
        item_symbol[:items],
        item_start[:items],
        item_end[:items],
        item_entry[:items],
        inside[:items],
        edge_start[: items + 1],
        edge_rule[:edges],
        edge_left[:edges],
        edge_right[:edges],
        edge_value[:edges],
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
    old, edge_start = np.empty(n_items, np.int32), np.empty(n_items + 1, np.int64)
    rule, left = np.empty(n_edges, np.int32), np.empty(n_edges, np.int32)
    right, old_edge = np.empty(n_edges, np.int32), np.empty(n_edges, np.int64)
    n_items, n_edges = 0, 0
    for t in range(items):
        if not alive[t]:
            continue
        new[t], old[n_items], edge_start[n_items] = n_items, t, n_edges
        n_items += 1
        for e in range(chart.edge_start[t], chart.edge_start[t + 1]):
            if kept[e]:
                rule[n_edges], old_edge[n_edges] = chart.rule[e], e
                left[n_edges], right[n_edges] = new[chart.left[e]], new[chart.right[e]]
                n_edges += 1
    edge_start[n_items] = n_edges
    smaller = Chart(
        chart.symbol[old],
        chart.start[old],
        chart.end[old],
        chart.entry[old],
        chart.inside[old],
        edge_start,
        rule,
        left,
        right,
        chart.value[old_edge],
    )
    return smaller, item_posterior[old], edge_posterior[old_edge]


@compiled(fastmath={"reassoc", "contract", "nsz"})
def _dot(x: Singles, y: Singles) -> np.float32:
    total = np.float32(0.0)
    for i in range(len(x)):
        total += x[i] * y[i]
    return total


@compiled(fastmath={"reassoc", "contract", "nsz"})
def _add(y: Singles, factor: np.float32, x: Singles) -> None:
    for i in range(len(x)):
        y[i] += factor * x[i]


@compiled()
def _rescale(vector: Singles) -> int:
    """Scale the vector back towards 1 if it has drifted. Return the exponent taken out."""
    largest = np.float32(0.0)
    for x in vector:
        largest = max(largest, abs(x))
    if largest == 0.0:
        return 0
    exponent = math.frexp(largest)[1]
    if abs(exponent) <= _DRIFT:
        return 0
    # in two steps, because 2 ** -exponent itself may be beyond float32
    half = exponent // 2
    first, second = np.float32(2.0**-half), np.float32(2.0 ** (half - exponent))
    for i in range(len(vector)):
        vector[i] = vector[i] * first * second
    return exponent


@compiled()
def _apart(number: float) -> tuple[float, int]:
    """Split a number that may be too small for float32: number = mantissa · 2 ** exponent."""
    if number >= _SMALL:
        return number, 0
    mantissa, exponent = math.frexp(number)
    return mantissa, int(exponent)


@compiled()
def fine_pass(
    chart: Chart, item_posterior: Doubles, edge_posterior: Doubles, fine: Fine, n: int
) -> tuple[float, int, Doubles, Doubles]:
    """Compute inside, outside and marginals with the tensors (figures 4 and 5) on a pruned chart.

    Return p(x) divided by the coarse p(x), as a number and an exponent of two, and the signed
    posterior μ / p(x) of every item and edge. If p(x) is zero, the posteriors are zero.
    """
    items, edges = len(chart.symbol), len(chart.rule)
    at = np.zeros(items + 1, np.int64)
    for t in range(items):
        at[t + 1] = at[t] + fine.states[chart.symbol[t]]
    term_at = np.zeros(edges + 1, np.int64)
    for e in range(edges):
        term_at[e + 1] = term_at[e] + fine.terms[chart.rule[e]]
    alpha, beta = np.zeros(at[items], np.float32), np.zeros(at[items], np.float32)
    up, down = np.zeros(items, np.int64), np.zeros(items, np.int64)  # exponents of α and β
    of_left = np.empty(term_at[edges], np.float32)
    of_right = np.empty(term_at[edges], np.float32)
    for t in range(items):
        vector = alpha[at[t] : at[t + 1]]
        if chart.entry[t] >= 0:
            from_entry = fine.entry_start[chart.entry[t]]
            vector[:] = fine.c_inf[from_entry : from_entry + len(vector)]
            continue
        largest = -(1 << 40)
        for e in range(chart.edge_start[t], chart.edge_start[t + 1]):
            _, own = _apart(chart.value[e] / chart.inside[t])
            largest = max(largest, own + up[chart.left[e]] + up[chart.right[e]])
        for e in range(chart.edge_start[t], chart.edge_start[t + 1]):
            r, b, c = chart.rule[e], chart.left[e], chart.right[e]
            share, own = _apart(chart.value[e] / chart.inside[t])
            shift = max(own + up[b] + up[c] - largest, -1000)
            weight = np.float32(share * 2.0**shift)
            m_a, m_b, m_c = len(vector), at[b + 1] - at[b], at[c + 1] - at[c]
            alpha_b, alpha_c = alpha[at[b] : at[b + 1]], alpha[at[c] : at[c + 1]]
            i, j, k = fine.parent_start[r], fine.left_start[r], fine.right_start[r]
            for s in range(term_at[e], term_at[e + 1]):
                of_left[s] = _dot(fine.left[j : j + m_b], alpha_b)
                of_right[s] = _dot(fine.right[k : k + m_c], alpha_c)
                _add(vector, weight * of_left[s] * of_right[s], fine.parent[i : i + m_a])
                i, j, k = i + m_a, j + m_b, k + m_c
        up[t] = largest + _rescale(vector)
    item_ratio, edge_ratio = np.zeros(items), np.zeros(edges)
    exponent, seen = -(1 << 40), False
    for t in range(items - 1, -1, -1):
        if chart.start[t] > 0 or chart.end[t] < n:
            break
        exponent = max(exponent, up[t] + _apart(item_posterior[t])[1])
    total = 0.0
    for t in range(items - 1, -1, -1):
        if chart.start[t] > 0 or chart.end[t] < n:
            break
        from_root = fine.root_start[chart.symbol[t]]
        vector = beta[at[t] : at[t + 1]]
        vector[:] = fine.c_one[from_root : from_root + len(vector)]
        at_root = _dot(vector, alpha[at[t] : at[t + 1]])
        share, own = _apart(item_posterior[t])
        total += share * at_root * 2.0 ** max(own + up[t] - exponent, -1000)
        seen = True
    if total == 0.0 or not seen:
        return 0.0, 0, item_ratio, edge_ratio
    fresh = np.ones(items, np.bool_)
    for t in range(items - 1, -1, -1):
        outer = beta[at[t] : at[t + 1]]
        down[t] += _rescale(outer)
        share, own = _apart(item_posterior[t])
        shift = min(max(own + up[t] + down[t] - exponent, -1000), 1000)
        item_ratio[t] = share * _dot(outer, alpha[at[t] : at[t + 1]]) * 2.0**shift / total
        for e in range(chart.edge_start[t], chart.edge_start[t + 1]):
            r, b, c = chart.rule[e], chart.left[e], chart.right[e]
            m_a, m_b, m_c = len(outer), at[b + 1] - at[b], at[c + 1] - at[c]
            i, j, k = fine.parent_start[r], fine.left_start[r], fine.right_start[r]
            beta_b, beta_c = beta[at[b] : at[b + 1]], beta[at[c] : at[c + 1]]
            weight_b = edge_posterior[e] / item_posterior[b]
            weight_c = edge_posterior[e] / item_posterior[c]
            b_factor = _weigh(b, weight_b, down[t] + up[c], beta_b, down, fresh)
            c_factor = _weigh(c, weight_c, down[t] + up[b], beta_c, down, fresh)
            value = 0.0
            for s in range(term_at[e], term_at[e + 1]):
                above = _dot(fine.parent[i : i + m_a], outer)
                value += above * of_left[s] * of_right[s]
                _add(beta_b, b_factor * above * of_right[s], fine.left[j : j + m_b])
                _add(beta_c, c_factor * above * of_left[s], fine.right[k : k + m_c])
                i, j, k = i + m_a, j + m_b, k + m_c
            share, own = _apart(edge_posterior[e])
            shift = min(max(own + up[b] + up[c] + down[t] - exponent, -1000), 1000)
            edge_ratio[e] = share * value * 2.0**shift / total
    return total, exponent, item_ratio, edge_ratio


@compiled()
def _weigh(
    child: int, weight: float, exponent: int, beta: Singles, down: Longs, fresh: Bools
) -> np.float32:
    """Compute the factor that brings a contribution to a child's β to the child's own exponent."""
    share, own = _apart(weight)
    exponent += own
    if fresh[child]:
        fresh[child] = False
        down[child] = exponent
    shift = exponent - down[child]
    if shift > _DRIFT:
        for i in range(len(beta)):
            beta[i] = np.float32(beta[i] * 2.0 ** max(-shift, -1000))
        down[child] = exponent
        shift = 0
    return np.float32(share * 2.0 ** max(shift, -1000))


@compiled()
def best_tree(chart: Chart, item_score: Doubles, edge_score: Doubles) -> tuple[Doubles, Longs]:
    """Find the derivation with the largest sum of scores. Return each item's total and best edge.

    `item_score` counts at items over one word; the edge of such an item is -1.
    """
    items = len(chart.symbol)
    best, back = np.full(items, -np.inf), np.full(items, -1, np.int64)
    for t in range(items):
        if chart.entry[t] >= 0:
            best[t] = item_score[t]
        for e in range(chart.edge_start[t], chart.edge_start[t + 1]):
            total = edge_score[e] + best[chart.left[e]] + best[chart.right[e]]
            if total > best[t]:
                best[t], back[t] = total, e
    return best, back


@compiled()
def shared_posteriors(
    chart: Chart,
    item_posterior: Doubles,
    chosen: Ints | Longs,
    labels_of: tuple[Ints, Ints],
    has: Bools,
) -> Doubles:
    """Compute, for chosen items, the posterior of each of their labels over their span.

    labels_of = (start, label): symbol a has the labels label[start[a] : start[a + 1]], and has[l,
    a] is True if a has label l. Items of one span are neighbours.
    """
    start, label = labels_of
    size = 0
    for t in chosen:
        size += start[chart.symbol[t] + 1] - start[chart.symbol[t]]
    result, at = np.empty(size), 0
    for t in chosen:
        low, high = t, t + 1
        while (
            low > 0
            and chart.start[low - 1] == chart.start[t]
            and chart.end[low - 1] == chart.end[t]
        ):
            low -= 1
        while (
            high < len(chart.symbol)
            and chart.start[high] == chart.start[t]
            and chart.end[high] == chart.end[t]
        ):
            high += 1
        for s in range(start[chart.symbol[t]], start[chart.symbol[t] + 1]):
            total = 0.0
            for u in range(low, high):
                if has[label[s], chart.symbol[u]]:
                    total += item_posterior[u]
            result[at] = total
            at += 1
    return result


@compiled()
def single_tree(chart: Chart, chosen: Longs) -> Chart:
    """Build the chart of a single derivation, given by its items in pre-order."""
    items = np.sort(chosen)
    new = np.full(len(chart.symbol), -1, np.int32)
    for at in range(len(items)):
        new[items[at]] = at
    size = len(items) // 2
    edge_start = np.zeros(len(items) + 1, np.int64)
    rule, value = np.empty(size, np.int32), np.empty(size)
    left, right = np.empty(size, np.int32), np.empty(size, np.int32)
    edges = 0
    for at in range(len(items)):
        t = items[at]
        for e in range(chart.edge_start[t], chart.edge_start[t + 1]):
            if chart.entry[t] < 0 and new[chart.left[e]] >= 0 and new[chart.right[e]] >= 0:
                rule[edges], value[edges] = chart.rule[e], chart.value[e]
                left[edges], right[edges] = new[chart.left[e]], new[chart.right[e]]
                edges += 1
                break
        edge_start[at + 1] = edges
    return Chart(
        chart.symbol[items],
        chart.start[items],
        chart.end[items],
        chart.entry[items],
        chart.inside[items],
        edge_start,
        rule,
        left,
        right,
        value,
    )
