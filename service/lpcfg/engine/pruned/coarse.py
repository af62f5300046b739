"""The coarse pass: the m = 1 grammar says which items and edges of a chart are worth tensors.

While the chart is built, an item is kept only where its estimated posterior is not too small; the
estimate looks at the words on both sides through a model of tags (`kernels.look_around`). What is
kept gets exact coarse posteriors, and what falls below `Thresholds.item` and `.edge` goes. Where
that leaves no analysis, the chart is built again with lower estimates.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from lpcfg.cancel import Stop
from lpcfg.engine.pruned import kernels
from lpcfg.engine.pruned.kernels import Bounds, Chart, Rules, Words
from lpcfg.grammar.tables import Bools, Doubles, Emissions, Ints, Tables, frozen


@dataclass(frozen=True)
class Thresholds:
    """Posteriors below which items and edges are left out; `estimate` while the chart is built."""

    estimate: float = 1e-5
    item: float = 2e-4
    edge: float = 1e-4

    def given_tags(self) -> "Thresholds":
        """For words with tags, which leave fewer candidates and make estimates less exact."""
        return replace(self, estimate=self.estimate * 1e-3)

    def wider(self, times: int) -> "Thresholds":
        """For another try, after the chart had no analysis so many times."""
        return replace(self, estimate=self.estimate * WIDER**times)


TRIES, WIDER = 3, 1e-2
"""Charts built before a sentence is given up, and how the estimate's threshold falls each time."""


@dataclass(frozen=True, eq=False)
class ContextTables:
    """What stands beside constituents, counted in a treebank (see `kernels.Context`)."""

    transition: Doubles
    before: Doubles
    after: Doubles


@dataclass(frozen=True, eq=False)
class Pruned:
    """A chart with the coarse posteriors of its items and edges, and the coarse log p(x).

    Weights of the words were divided by powers of two; `taken_out` is the log of their product.
    """

    length: int
    chart: Chart
    item: Doubles
    edge: Doubles
    taken_out: float
    log_probability: float


@dataclass(frozen=True, eq=False)
class Unfinished:
    """The widest chart built, which has no analysis of the whole; `estimate` is of its items."""

    length: int
    chart: Chart
    estimate: Doubles


class Coarse:
    """The m = 1 grammar, ready to prune."""

    def __init__(self, tables: Tables, context: ContextTables, tag: Ints, share: Doubles) -> None:
        self._rules = rules_by_children(tables)
        self._context = kernels.Context(
            context.transition,
            frozen(context.transition.T),
            context.before,
            context.after,
            tag,
            share,
        )

    def prune(
        self,
        emissions: Emissions,
        thresholds: Thresholds,
        limits: "Limits | None" = None,
        *,
        tries: int = TRIES,
        stop: Stop | None = None,
    ) -> Pruned | Unfinished:
        """The chart of what may be, or what there is of it where nothing spans the sentence."""
        n = emissions.length
        words = Words(emissions.start, emissions.symbol, emissions.entry, emissions.weight)
        left, right, weight, exponent = kernels.look_around(words, self._context)
        words = words._replace(weight=weight)
        stop = stop or Stop()
        limits = limits or Limits.none(n)
        for attempt in range(tries):
            stop.check()
            bounds = limits.bounds(thresholds.wider(attempt).estimate, stop)
            chart = kernels.build_chart(self._rules, words, left, right, bounds)
            stop.check()
            total, item, edge = kernels.coarse_posteriors(chart, self._rules.root, n)
            if total == 0.0:
                continue
            chart, item, edge = kernels.prune(
                chart, item, edge, thresholds.item, thresholds.edge, n
            )
            if len(chart.symbol):
                taken_out = float(exponent.sum()) * math.log(2.0)
                return Pruned(n, chart, item, edge, taken_out, math.log(total) + taken_out)
        outlook = left[chart.start, chart.symbol] * right[chart.end, chart.symbol]
        return Unfinished(n, chart, np.minimum(outlook * chart.inside, 1.0))

    def log_rules(self, chart: Chart) -> Doubles:
        """log q of every edge."""
        below = chart.inside[chart.left] * chart.inside[chart.right]
        return np.log(chart.value / below)


@dataclass(frozen=True, eq=False)
class Limits:
    """Which cells are closed (1) or admit only the symbols of a row of `allowed` (2 + row)."""

    cell: Ints
    allowed: Bools

    @classmethod
    def none(cls, n: int) -> "Limits":
        return cls(np.zeros((n + 1, n + 1), np.int32), np.ones((1, 1), np.bool_))

    def bounds(self, least: float, stop: Stop) -> Bounds:
        return Bounds(self.cell, self.allowed, least, np.frombuffer(stop.cancelled, np.bool_))


def rules_by_children(tables: Tables) -> Rules:
    """The m = 1 tables, by pairs of children."""
    rules = tables.grammar.rules
    n = tables.grammar.n_symbols
    order = np.lexsort((rules[:, 0], rules[:, 2], rules[:, 1]))
    code = rules[order, 1].astype(np.int64) * n + rules[order, 2]
    distinct, first = np.unique(code, return_index=True)
    pair = np.full((n, n), -1, np.int32)
    pair.ravel()[distinct] = np.arange(len(distinct))
    q = np.array([tables.dense(r).item() for r in order])
    # A grammar of one-word sentences has no pairs; the kernel wants the size of the largest.
    ends = [len(order)] if len(order) else [0, 0]
    return Rules(
        pair=frozen(pair),
        pair_start=frozen(np.append(first, ends).astype(np.int32)),
        best=frozen(np.maximum.reduceat(q, first)) if len(q) else q,
        parent=frozen(rules[order, 0]),
        rule=frozen(order.astype(np.int32)),
        q=frozen(q),
        root=frozen(np.asarray(tables.c_one, np.float64)),
    )
