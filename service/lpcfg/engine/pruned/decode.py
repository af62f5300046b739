"""Decode posteriors: find the best derivations under an objective.

| objective      | maximises over derivations                                         |
|----------------|--------------------------------------------------------------------|
| `max-rule`     | Σ of abs μ(a → b c, i, k, j) / p(x), and of abs μ(a, i, i+1) / p(x)  |
| `max-marginal` | Σ of abs μ(a, i, j) / p(x) (Goodman, 1996)                          |
| `max-product`  | Π of abs μ(a → b c, i, k, j) / μ(a, i, j), the tree of the best PCFG |
| `max-spans`    | Σ of p(label, i, j) − ½: labels expected to be right, less those wrong |

Spectral marginals may be negative, so their magnitudes are used (NAACL 3.3). Under `max-spans`, the
labels of an item (two in `S|VP`, none in an intermediate symbol) count as people see them, whatever
items share them, and a tenth of `max-rule` is added. This tenth decides between derivations of one
tree, and keeps more trees right as a whole, with the same F1 (docs/results.md).

Posteriors of a rescoring layer are decoded by `max-spans` unless another objective is asked for,
those of the tensors alone by `max-rule`, as in the papers.
"""

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lpcfg.engine.pruned import kernels
from lpcfg.engine.pruned.coarse import Pruned, Unfinished
from lpcfg.engine.pruned.fine import Posteriors
from lpcfg.grammar.tables import Doubles, Ints, Longs

_MAX_RULE_SHARE = 0.1  # the share of max-rule in max-spans
FRAGMENT_COST = 10.0
"""In nats: one fragment more must gain a factor of e¹⁰ in figures of merit."""
_TINY = 1e-300  # stands for 0, because its log is finite: an impossible edge then loses to others


@dataclass(frozen=True, eq=False)
class Derivation:
    """A tree of the chart: its score, its items in pre-order, its edges in the chart's order."""

    score: float
    items: Ints
    edges: Longs


@dataclass(frozen=True, eq=False)
class ObjectiveScores:
    """The summands of an objective: for items over one word, for edges, and for roots."""

    item: Doubles
    edge: Doubles
    root: Doubles


def default_objective(posteriors: Posteriors) -> str:
    """Return the objective for posteriors where none is asked for."""
    return "max-spans" if posteriors.rescored else "max-rule"


def scores(posteriors: Posteriors, objective: str, gain: Doubles | None) -> ObjectiveScores:
    """Compute the scores of every item and edge under an objective; `gain` is what each item adds
    under max-spans.
    """
    item, edge = posteriors.item, posteriors.edge
    if objective == "max-rule":
        return ObjectiveScores(item, edge, np.zeros(len(item)))
    above = np.repeat(item, np.diff(posteriors.pruned.chart.edge_start))
    if objective == "max-marginal":
        return ObjectiveScores(item, above, np.zeros(len(item)))
    if objective == "max-spans" and gain is not None:
        of_edge = (
            np.repeat(gain, np.diff(posteriors.pruned.chart.edge_start)) + _MAX_RULE_SHARE * edge
        )
        return ObjectiveScores(gain + _MAX_RULE_SHARE * item, of_edge, np.zeros(len(item)))
    share = np.log(np.maximum(edge, _TINY)) - np.log(np.maximum(above, _TINY))
    return ObjectiveScores(np.zeros(len(item)), share, np.log(np.maximum(item, _TINY)))


def best(posteriors: Posteriors, objective: str, gain: Doubles | None = None) -> Derivation:
    """Find the derivation of the whole sentence with the highest score."""
    return best_by(scores(posteriors, objective, gain), posteriors.pruned)


def best_by(weights: ObjectiveScores, pruned: Pruned) -> Derivation:
    """Find the derivation of the whole sentence with the highest sum of these scores."""
    chart = pruned.chart
    total, back = kernels.best_tree(chart, weights.item, weights.edge)
    root = max(_roots(pruned), key=lambda t: total[t] + weights.root[t])
    items = kernels.derivation(chart, back, root)
    edges = np.sort(back[items])[pruned.length :]  # words have none
    return Derivation(float(total[root] + weights.root[root]), items, edges)


def _roots(pruned: Pruned) -> range:
    chart, n = pruned.chart, pruned.length
    first = len(chart.symbol)
    while first and chart.start[first - 1] == 0 and chart.end[first - 1] == n:
        first -= 1
    return range(first, len(chart.symbol))


def k_best(
    posteriors: Posteriors, objective: str, gain: Doubles | None = None
) -> Iterator[Derivation]:
    """Yield all derivations of the whole sentence, best first. Each is computed on demand."""
    weights = scores(posteriors, objective, gain)
    lazy = _Lazy(posteriors.pruned.chart, weights)
    queue = [(-lazy.score(t, 0) - weights.root[t], t, 0) for t in _roots(posteriors.pruned)]
    heapq.heapify(queue)
    while queue:
        cost, t, rank = heapq.heappop(queue)
        yield Derivation(-float(cost), *lazy.parts(t, rank))
        if lazy.exists(t, rank + 1):
            following = -lazy.score(t, rank + 1) - weights.root[t]
            heapq.heappush(queue, (following, t, rank + 1))


class _RankedDerivation(NamedTuple):
    """A derivation of an item: its cost (minus its score), its edge, and its children's ranks."""

    cost: float
    edge: int
    left: int
    right: int


@dataclass(slots=True)
class _Ranked:
    """The best derivations of an item known so far, and the candidates for the next one.

    `expanded` counts the derivations whose successors are already among the candidates.
    """

    known: list[_RankedDerivation]
    candidates: list[_RankedDerivation]
    seen: set[tuple[int, int, int]]
    expanded: int = 0
    exhausted: bool = False


class _Lazy:
    """Derivations of every item by rank (Huang and Chiang, 2005, algorithm 3, with a stack)."""

    def __init__(self, chart: kernels.Chart, weights: ObjectiveScores) -> None:
        self._chart = chart
        self._weights = weights
        self._best = kernels.best_tree(chart, weights.item, weights.edge)[0].tolist()
        self._ranked: dict[int, _Ranked] = {}

    def score(self, t: int, rank: int) -> float:
        """Return the score of an item's derivation of a rank that exists."""
        return self._best[t] if rank == 0 else -self._ranked[t].known[rank].cost

    def exists(self, t: int, rank: int) -> bool:
        """Return True if an item has a derivation of a rank above 0. Compute it if needed."""
        stack = [(t, rank)]
        while stack:
            top, wanted = stack[-1]
            if self._is_settled(top, wanted):
                stack.pop()
                continue
            state = self._of(top)
            if state.expanded < len(state.known):
                missing = self._expanded(state)
                if missing is not None:
                    stack.append(missing)
            elif state.candidates:
                state.known.append(heapq.heappop(state.candidates))
            else:
                state.exhausted = True
        return rank < len(self._of(t).known)

    def parts(self, t: int, wanted: int) -> tuple[Ints, Longs]:
        """Return the items of a derivation in pre-order, and its edges in the chart's order."""
        items, edges, stack = [], [], [(t, wanted)]
        while stack:
            top, rank = stack.pop()
            items.append(top)
            if self._chart.entry[top] < 0:
                derivation = self._of(top).known[rank]
                edges.append(derivation.edge)
                stack.append((int(self._chart.right[derivation.edge]), derivation.right))
                stack.append((int(self._chart.left[derivation.edge]), derivation.left))
        return np.array(items, np.int32), np.array(sorted(edges), np.int64)

    def _is_settled(self, t: int, rank: int) -> bool:
        """Return True once it is known if the item has a derivation of this rank (above 0)."""
        state = self._of(t)
        return rank < len(state.known) or state.exhausted

    def _of(self, t: int) -> _Ranked:
        state = self._ranked.get(t)
        if state is None:
            first, last = self._chart.edge_start[t], self._chart.edge_start[t + 1]
            candidates = [self._derivation_of(e, 0, 0) for e in range(first, last)]
            heapq.heapify(candidates)
            known = [heapq.heappop(candidates)] if candidates else []
            seen = {(derivation.edge, 0, 0) for derivation in (*known, *candidates)}
            state = self._ranked[t] = _Ranked(known, candidates, seen, exhausted=not known)
        return state

    def _expanded(self, state: _Ranked) -> tuple[int, int] | None:
        """Queue the successors of the next known derivation.

        Return None when done, or the (item, rank) that has to be computed first.
        """
        _, edge, left, right = state.known[state.expanded]
        b, c = int(self._chart.left[edge]), int(self._chart.right[edge])
        for child, rank in ((b, left + 1), (c, right + 1)):
            if not self._is_settled(child, rank):
                return child, rank
        for i, j, child, rank in ((left + 1, right, b, left + 1), (left, right + 1, c, right + 1)):
            if (edge, i, j) not in state.seen and self.exists(child, rank):
                state.seen.add((edge, i, j))
                heapq.heappush(state.candidates, self._derivation_of(edge, i, j))
        state.expanded += 1
        return None

    def _derivation_of(self, edge: int, left: int, right: int) -> _RankedDerivation:
        b, c = int(self._chart.left[edge]), int(self._chart.right[edge])
        below = self.score(b, left) + self.score(c, right)
        return _RankedDerivation(-(float(self._weights.edge[edge]) + below), edge, left, right)


def edges_between(chart: kernels.Chart, items: Ints) -> Longs:
    """Return the edges that join the items of a derivation, in the chart's order."""
    there = np.zeros(len(chart.symbol), np.bool_)
    there[items] = True
    above = np.repeat(there, np.diff(chart.edge_start))
    return np.flatnonzero(above & there[chart.left] & there[chart.right])


def single_tree(chart: kernels.Chart, items: Ints, edges: Longs) -> kernels.Chart:
    """Build the chart of a single derivation, given by its items and its edges, in order."""
    items = np.sort(items)
    edge_start = np.zeros(len(items) + 1, np.int64)
    np.cumsum(chart.entry[items] < 0, out=edge_start[1:])
    left, right = (
        np.searchsorted(items, below[edges]).astype(np.int32) for below in (chart.left, chart.right)
    )
    return kernels.Chart(
        chart.symbol[items],
        chart.start[items],
        chart.end[items],
        chart.entry[items],
        chart.inside[items],
        edge_start,
        chart.rule[edges],
        left,
        right,
        chart.value[edges],
    )


def derivation_log(posteriors: Posteriors, items: Ints, edges: Longs) -> float:
    """Compute log p(d | x) of a derivation from consistent posteriors: that of its root, times each
    edge's share of the item above it. It is −inf if an edge is missing, and never above 0.
    """
    items = np.sort(items)
    above = items[posteriors.pruned.chart.entry[items] < 0]
    if len(edges) < len(above):
        return -math.inf
    shares = posteriors.edge[edges] / np.maximum(posteriors.item[above], _TINY)
    with np.errstate(divide="ignore"):
        total = np.log(posteriors.item[items[-1]]) + np.log(shares).sum()
    return float(min(total, 0.0))


def fragments(unfinished: Unfinished, log_rules: Doubles) -> list[tuple[int, ...]]:
    """Find fragments that together cover the sentence, where no tree does: the fragment fallback.

    A shortest path over the words, where a fragment costs FRAGMENT_COST − log of its figure of
    merit, and a word under no item more than any.

    Returns:
        The fragments from left to right, each as items in pre-order; () for a word under no item
    """
    chart, n = unfinished.chart, unfinished.length
    total, back = kernels.best_tree(chart, np.log(chart.inside), log_rules)
    price = FRAGMENT_COST - np.log(np.maximum(unfinished.merit, _TINY))
    cost, last = [0.0] + [np.inf] * n, [-1] * (n + 1)
    for k in range(1, n + 1):
        cost[k] = cost[k - 1] - np.log(_TINY) + FRAGMENT_COST
        for t in np.flatnonzero(chart.end == k).tolist():
            if total[t] > -np.inf and cost[chart.start[t]] + price[t] < cost[k]:
                cost[k], last[k] = cost[chart.start[t]] + price[t], t
    result, k = [], n
    while k > 0:
        t = last[k]
        result.append(tuple(kernels.derivation(chart, back, t).tolist()) if t >= 0 else ())
        k = int(chart.start[t]) if t >= 0 else k - 1
    return result[::-1]
