"""The coarse pass: choose the items and edges of a chart with the m = 1 grammar.

While the chart is built, an item is kept only if its figure of merit is not too small: an estimate
of its posterior from the words on both sides (`kernels.merit_factors`). Then the exact coarse
posteriors of what was kept are computed, and items and edges below `Thresholds.item` and
`Thresholds.edge` are removed. If no analysis is left, the chart is built again with a lower
threshold for the figure of merit.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from lpcfg.base.cancel import Stop
from lpcfg.engine.pruned import kernels
from lpcfg.engine.pruned.kernels import Bounds, Candidates, Chart, Rules
from lpcfg.grammar.tables import Bools, Doubles, Emissions, Ints, Longs, Tables, frozen


@dataclass(frozen=True)
class Thresholds:
    """Least posteriors of items and edges, and the least figure of merit, `merit`."""

    merit: float = 1e-4
    item: float = 2e-4
    edge: float = 5e-5

    def given_tags(self) -> "Thresholds":
        """Lower the least figure of merit for words with tags: they have fewer candidates and less
        exact figures.
        """
        return replace(self, merit=self.merit * 1e-4)

    def wider(self, times: int) -> "Thresholds":
        """Lower the least figure of merit after so many charts without an analysis."""
        return replace(self, merit=self.merit * WIDER**times) if times else self


TRIES, WIDER = 3, 1e-2
"""How many charts are built before a sentence fails, and the factor on `merit` at each try."""
WIDENING_LIMIT = 100_000
"""Edges of a chart after which no wider one is tried, because it would cost more than it finds. The
twelve sentences of craft/dev, gum/dev and mctb/dev that need a second chart have at most 10,600
edges in the first; 200 random words have 80,000 there, and 130,000 in the second.
"""
FALLBACK_LIMIT = 3_000_000
"""Edges of a chart after which no other grammar is tried: it would find as little, in four times
the time. A list of 400 numbers took 50 s more."""


@dataclass(frozen=True, eq=False)
class ContextTables:
    """Counts of what stands beside constituents in a treebank (see `kernels.ContextModel`)."""

    transition: Doubles
    before: Doubles
    after: Doubles


@dataclass(frozen=True, eq=False)
class Pruned:
    """A chart with the coarse posteriors of its items and edges, and the coarse log p(x).

    The weights of the words were divided by powers of two; `log_scale` is the log of their product.
    """

    length: int
    chart: Chart
    item: Doubles
    edge: Doubles
    log_scale: float
    log_probability: float


@dataclass(frozen=True, eq=False)
class Unfinished:
    """The widest chart that was built, without an analysis of the whole.

    `merit` has the figure of merit of every item; `widened` says how often the thresholds were
    lowered for it.
    """

    length: int
    chart: Chart
    merit: Doubles
    widened: int

    @property
    def exceeds_widening_limit(self) -> bool:
        """Tell if a wider chart is not worth its time."""
        return len(self.chart.rule) > WIDENING_LIMIT

    @property
    def exceeds_fallback_limit(self) -> bool:
        """Tell if a chart of another grammar is not worth its time."""
        return len(self.chart.rule) > FALLBACK_LIMIT


class Coarse:
    """The m = 1 grammar, prepared for pruning."""

    def __init__(self, tables: Tables, context: ContextTables, tag: Ints, share: Doubles) -> None:
        self._rules = rules_by_children(tables)
        self._context = kernels.ContextModel(
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
        """Build a pruned chart, or return an unfinished one if no analysis spans the sentence."""
        n = emissions.length
        words, left, right, exponent = self.merit_factors(emissions)
        stop = stop or Stop()
        limits = limits or Limits.none(n)
        for attempt in range(tries):
            stop.check()
            bounds = limits.bounds(thresholds.wider(attempt), stop)
            chart = kernels.build_chart(self._rules, words, left, right, bounds)
            stop.check()
            if (pruned := self.pruned(chart, thresholds, n, exponent)) is not None:
                return pruned
            factors = left[chart.start, chart.symbol] * right[chart.end, chart.symbol]
            unfinished = Unfinished(n, chart, np.minimum(factors * chart.inside, 1.0), attempt)
            if unfinished.exceeds_widening_limit:
                break
        return unfinished

    def merit_factors(self, emissions: Emissions) -> tuple[Candidates, Doubles, Doubles, Longs]:
        """Compute what `kernels.merit_factors` does for these emissions.

        Returns:
            The words with their weights divided by powers of two; left and right, the factors of
            the figure of merit of every symbol at every word; and the exponents of the powers
        """
        words = Candidates(emissions.start, emissions.symbol, emissions.entry, emissions.weight)
        left, right, weight, exponent = kernels.merit_factors(words, self._context)
        return words._replace(weight=weight), left, right, exponent

    def pruned(
        self, chart: Chart, thresholds: Thresholds, n: int, exponent: Longs
    ) -> Pruned | None:
        """Remove unlikely items and edges from a chart over n words.

        Args:
            exponent: of the powers of two that the words' weights were divided by

        Returns:
            The smaller chart with its coarse posteriors, or None if no analysis is left
        """
        total, item, edge = kernels.coarse_posteriors(chart, self._rules.root, n)
        if not 0.0 < total < math.inf:
            return None
        smaller, item, edge = kernels.prune(chart, item, edge, thresholds.item, thresholds.edge, n)
        if not len(smaller.symbol):
            return None
        log_scale = float(exponent.sum()) * math.log(2.0)
        return Pruned(n, smaller, item, edge, log_scale, math.log(total) + log_scale)

    def log_rules(self, chart: Chart) -> Doubles:
        """Compute log q of the rule of every edge."""
        inside = np.log(chart.inside)  # the product of two may overflow
        return np.log(chart.value) - inside[chart.left] - inside[chart.right]


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits on cells: 1 closes a cell, 2 + row admits only the symbols of that `allowed` row."""

    cell: Ints
    allowed: Bools

    @classmethod
    def none(cls, n: int) -> "Limits":
        return cls(np.zeros((n + 1, n + 1), np.int32), np.ones((1, 1), np.bool_))

    def bounds(self, thresholds: Thresholds, stop: Stop) -> Bounds:
        stopped = np.frombuffer(stop.cancelled, np.bool_)
        return Bounds(self.cell, self.allowed, thresholds.merit, stopped)


def rules_by_children(tables: Tables) -> Rules:
    """Group the rules of the m = 1 tables by their pairs of children."""
    rules = tables.grammar.rules
    n = tables.grammar.n_symbols
    order = np.lexsort((rules[:, 0], rules[:, 2], rules[:, 1]))
    code = rules[order, 1].astype(np.int64) * n + rules[order, 2]
    distinct, first = np.unique(code, return_index=True)
    smallest = np.int16 if len(distinct) < 1 << 15 else np.int32  # half the memory to look through
    pair = np.full((n, n), -1, smallest)
    pair.ravel()[distinct] = np.arange(len(distinct))
    q = np.asarray(tables.parent * tables.left * tables.right, np.float64)[order]
    # A grammar of one-word sentences has no pairs, but the kernel needs a largest size.
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
