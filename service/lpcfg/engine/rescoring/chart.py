"""Kernels over charts: what features look at, and inside-outside in logs."""

from typing import NamedTuple

import numpy as np

from lpcfg.base.jit import compiled
from lpcfg.engine.pruned.kernels import Chart, best_tree
from lpcfg.engine.rescoring.names import Heads
from lpcfg.grammar.tables import Doubles, Floats, Ints, Longs, Singles

_LEAST = 1e-30
"""Posteriors below count as this much."""


class View(NamedTuple):
    """The layer's view of a chart with the tensors' posteriors.

    It has every item's head, the symbol over every word in the best tree, and the scores that
    posteriors give edges and roots.
    """

    head: Ints
    preterminal: Ints
    edge: Singles
    root: Singles


@compiled()
def view(chart: Chart, item: Doubles, edge: Doubles, heads: Heads, n: int) -> View:
    """Compute what features need of a chart with posteriors of items and edges over n words."""
    total, back = best_tree(chart, item, edge)
    root = len(total) - 1
    for t in range(root, -1, -1):
        if chart.start[t] > 0 or chart.end[t] < n:
            break
        if total[t] >= total[root]:
            root = t
    leaves = leaves_of(chart, back, root, n)
    of_edge, of_root = base_scores(chart, item, edge, n)
    return View(find_heads(chart, back, heads), chart.symbol[leaves], of_edge, of_root)


@compiled(helper=True, inline="always")
def find_heads(chart: Chart, back: Longs, heads: Heads) -> Ints:
    """Return the head word of every item in its best derivation, whose edges are `back`.

    The head of an edge is that of the child whose label the parent's label ranks first; of equals,
    the left one unless `heads.rightmost`. Ranks of what an intermediate symbol holds come with it.
    """
    items = len(chart.symbol)
    head, best = np.empty(items, np.int32), np.zeros(items, np.int32)
    for t in range(items):
        e = back[t]
        if e < 0:
            head[t] = chart.start[t]
            continue
        left, right = chart.left[e], chart.right[e]
        # the best rank among the left child's labels, then that of the right child's
        base, first = heads.base[chart.symbol[t]], chart.symbol[left]
        so_far = best[left] if heads.partial[first] else heads.rank[base, heads.top[first]]
        last = heads.rank[base, heads.top[chart.symbol[right]]]
        takes_last = last < so_far or (last == so_far and heads.rightmost[base, last])
        head[t] = head[right] if takes_last else head[left]
        best[t] = min(last, so_far)
    return head


@compiled(helper=True, inline="always")
def leaves_of(chart: Chart, back: Longs, root: int, n: int) -> Ints:
    """Return the item over every word in the best derivation below a root."""
    leaf, stack = np.empty(n, np.int32), np.empty(len(chart.symbol) + 1, np.int32)
    stack[0], size = root, 1
    while size:
        size -= 1
        t = stack[size]
        e = back[t]
        if e < 0:
            leaf[chart.start[t]] = t
        else:
            stack[size], stack[size + 1] = chart.left[e], chart.right[e]
            size += 2
    return leaf


@compiled(helper=True, inline="always")
def base_scores(chart: Chart, item: Doubles, edge: Doubles, n: int) -> tuple[Singles, Singles]:
    """Compute log of an edge's posterior over that of the item above, and of a root's posterior."""
    of_edge, of_root = np.empty(len(edge), np.float32), np.zeros(len(item), np.float32)
    for t in range(len(item)):
        above = np.log(max(item[t], _LEAST))
        if chart.start[t] == 0 and chart.end[t] == n:
            of_root[t] = above
        for e in range(chart.edge_start[t], chart.edge_start[t + 1]):
            of_edge[e] = np.log(max(edge[e], _LEAST)) - above
    return of_edge, of_root


@compiled()
def inside_outside(
    chart: Chart, item_score: Floats, edge_score: Floats, root_score: Floats, n: int
) -> tuple[float, Doubles, Doubles]:
    """Compute log Z, and the posteriors of items and edges under p(d) ∝ exp of a derivation's
    scores:

        log α_t = score(t) + log Σ_e exp(score(e) + log α_left + log α_right)
        log Z = log Σ_roots exp(score(root) + log α_root)

    The recursion is written once more beside those of `pruned.kernels`, because scores are one
    number each and have no bound: sums are of logs, without vectors, terms or exponents.
    """
    items = len(chart.symbol)
    inside = np.empty(items)
    share = np.empty(len(chart.rule))
    for t in range(items):
        first, end = chart.edge_start[t], chart.edge_start[t + 1]
        if chart.end[t] == chart.start[t] + 1:
            inside[t] = item_score[t]
            continue
        # share of an edge in its item: the softmax of score(e) + log α_left + log α_right
        most = -np.inf
        for e in range(first, end):
            share[e] = edge_score[e] + inside[chart.left[e]] + inside[chart.right[e]]
            most = max(most, share[e])
        total = 0.0
        for e in range(first, end):
            share[e] = np.exp(share[e] - most)
            total += share[e]
        for e in range(first, end):
            share[e] /= total
        inside[t] = item_score[t] + most + np.log(total)
    # posteriors of the roots, which are the last items: the softmax of log α + score
    item, edge = np.zeros(items), np.zeros(len(chart.rule))
    most, root = -np.inf, items
    while root and chart.start[root - 1] == 0 and chart.end[root - 1] == n:
        root -= 1
        most = max(most, inside[root] + root_score[root])
    total = 0.0
    for t in range(root, items):
        item[t] = np.exp(inside[t] + root_score[t] - most)
        total += item[t]
    for t in range(root, items):
        item[t] /= total
    # p(e) = p(item above) share(e); p(t) sums p(e) over the edges that lead to t
    for t in range(items - 1, -1, -1):
        for e in range(chart.edge_start[t], chart.edge_start[t + 1]):
            edge[e] = item[t] * share[e]
            item[chart.left[e]] += edge[e]
            item[chart.right[e]] += edge[e]
    return most + np.log(total), item, edge
