"""Posteriors → trees: the best derivation under an objective.

| objective      | maximises over derivations                                         |
|----------------|--------------------------------------------------------------------|
| `max-rule`     | Σ of abs μ(a → b c, i, k, j) / p(x), and of abs μ(a, i, i+1) / p(x)  |
| `max-marginal` | Σ of abs μ(a, i, j) / p(x) (Goodman, 1996)                          |
| `max-product`  | Π of abs μ(a → b c, i, k, j) / μ(a, i, j), the tree of the best PCFG |

Spectral marginals may be negative; their magnitudes count (NAACL 3.3).
"""

from dataclasses import dataclass

import numpy as np

from lpcfg.engine import kernels
from lpcfg.engine.coarse import Unfinished
from lpcfg.engine.fine import Posteriors
from lpcfg.errors import InputError
from lpcfg.grammar import Doubles, Longs

OBJECTIVES = ("max-rule", "max-marginal", "max-product")
PIECE = 10.0
_TINY = 1e-300  # its log is finite: an impossible edge loses to every possible one


@dataclass(frozen=True, eq=False)
class Derivation:
    """A tree of the chart: its score, and its items in pre-order."""

    score: float
    items: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Scores:
    """What an objective adds up: for items over one word, for edges, and for roots."""

    item: Doubles
    edge: Doubles
    root: Doubles


def check_objective(objective: str) -> None:
    """Raises InputError for an objective that there is not."""
    if objective not in OBJECTIVES:
        raise InputError(
            f"expected an objective among {', '.join(OBJECTIVES)}, got {objective!r}",
            pointer="/objective",
        )


def scores(posteriors: Posteriors, objective: str) -> Scores:
    """The scores of every item and edge under an objective."""
    item, edge = np.abs(posteriors.item), np.abs(posteriors.edge)
    if objective == "max-rule":
        return Scores(item, edge, np.zeros(len(item)))
    above = np.repeat(item, np.diff(posteriors.pruned.chart.edge_start))
    if objective == "max-marginal":
        return Scores(item, above, np.zeros(len(item)))
    share = np.log(np.maximum(edge, _TINY)) - np.log(np.maximum(above, _TINY))
    return Scores(np.zeros(len(item)), share, np.log(np.maximum(item, _TINY)))


def best(posteriors: Posteriors, objective: str) -> Derivation:
    """The derivation of the whole sentence with the highest score."""
    chart = posteriors.pruned.chart
    weights = scores(posteriors, objective)
    total, back = kernels.best_tree(chart, weights.item, weights.edge)
    root = max(_roots(posteriors), key=lambda t: total[t] + weights.root[t])
    items = _followed(chart, back, root)
    return Derivation(float(total[root] + weights.root[root]), items)


def _roots(posteriors: Posteriors) -> range:
    chart, n = posteriors.pruned.chart, posteriors.pruned.length
    first = len(chart.symbol)
    while first and chart.start[first - 1] == 0 and chart.end[first - 1] == n:
        first -= 1
    return range(first, len(chart.symbol))


def _followed(chart: kernels.Chart, back: Longs, root: int) -> tuple[int, ...]:
    items, stack = [], [root]
    while stack:
        t = stack.pop()
        items.append(t)
        if (e := back[t]) >= 0:
            stack += (int(chart.right[e]), int(chart.left[e]))
    return tuple(items)


def cover(unfinished: Unfinished, log_rules: Doubles) -> list[tuple[int, ...]]:
    """Analyses of pieces that together make the sentence, left to right, as items in pre-order.

    Few pieces with high estimates are wanted: a piece costs as much as an estimate of e to the
    -PIECE. A word that nothing spans is an empty piece.
    """
    chart, n = unfinished.chart, unfinished.length
    total, back = kernels.best_tree(chart, np.log(chart.inside), log_rules)
    price = PIECE - np.log(np.maximum(unfinished.estimate, _TINY))
    cost, last = [0.0] + [np.inf] * n, [-1] * (n + 1)
    for k in range(1, n + 1):
        cost[k] = cost[k - 1] - np.log(_TINY) + PIECE
        for t in np.flatnonzero(chart.end == k).tolist():
            if total[t] > -np.inf and cost[chart.start[t]] + price[t] < cost[k]:
                cost[k], last[k] = cost[chart.start[t]] + price[t], t
    pieces, k = [], n
    while k > 0:
        t = last[k]
        pieces.append(_followed(chart, back, t) if t >= 0 else ())
        k = int(chart.start[t]) if t >= 0 else k - 1
    return pieces[::-1]
