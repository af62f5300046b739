"""The examples that both parts of the layer learn from, and the gradient of their scores."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lpcfg.base.jit import compiled
from lpcfg.engine.pruned.kernels import Chart
from lpcfg.engine.rescoring.chart import View, inside_outside
from lpcfg.engine.rescoring.layer import padded_codes
from lpcfg.engine.rescoring.names import Names
from lpcfg.grammar.tables import Doubles, Ints, Longs, Singles
from lpcfg.training.rescoring.charts import Charts, Record
from lpcfg.training.rescoring.targets import Target

MARGIN = np.float32(0.6)
"""Added to the score of every item outside the target while learning; worth .1 to .2 F1."""
LEAST_GRADIENT = 1e-3
"""Items and edges with a smaller gradient are left out of a step, for speed."""

Gradient = tuple[Doubles, Doubles]
Task = tuple[View, Target, np.float32]
"""The view of a chart, its target, and w₀."""


@dataclass(frozen=True, eq=False)
class ChartExamples:
    """Charts with their targets. `facts` are those of every word (`WordFacts`), `times` says how
    often a pass visits each chart, `prior_weight` is w₀, `domains` has the code of each chart's
    domain.
    """

    charts: Charts
    names: Names
    facts: Longs
    times: Ints
    prior_weight: float
    domains: Longs

    @property
    def visits(self) -> int:
        """Sentences in a pass."""
        return int(self.times.sum())

    def order(self, rng: np.random.Generator) -> Sequence[int]:
        """Return the charts of a pass, in random order."""
        order: Sequence[int] = rng.permutation(
            np.repeat(np.arange(len(self.charts)), self.times)
        ).tolist()
        return order

    def sparse(self, number: int) -> tuple[Record, Longs]:
        """Return the record with a number, and the codes of its words."""
        record = self.charts[number]
        tags = self.names.tag[record.view.preterminal]
        return record, padded_codes(self.facts[:, record.words], tags, int(self.domains[number]))

    def gradient(self, record: Record, item: Singles, edge: Singles) -> Gradient:
        """Compute the gradient of log p(target | x), with the margin, by the scores g, which
        change.
        """
        task = record.view, record.target, np.float32(self.prior_weight)
        return gradient_of(record.chart, task, item, edge)

    def log_share(self, record: Record, item: Singles, edge: Singles) -> float:
        """Compute log p(target | x), without the margin, by the scores g, of which those of edges
        change.
        """
        target, view = record.target, record.view
        prior_weight, n = np.float32(self.prior_weight), len(record.words)
        edge += prior_weight * view.edge
        root = prior_weight * view.root
        log_z, _, _ = inside_outside(record.chart, item, edge, root, n)
        top = np.flatnonzero(target.item)[-1]  # children come before their parents
        return float(item[target.item].sum() + edge[target.edge].sum() + root[top] - log_z)


@compiled()
def gradient_of(chart: Chart, task: Task, item: Singles, edge: Singles) -> Gradient:
    """Compute what `ChartExamples.gradient` returns."""
    seen, target, prior_weight = task
    for t in range(len(item)):
        item[t] += np.float32(0.0) if target.item[t] else MARGIN
    for e in range(len(edge)):
        edge[e] += prior_weight * seen.edge[e]
    n = len(seen.preterminal)
    _, of_item, of_edge = inside_outside(chart, item, edge, prior_weight * seen.root, n)
    return target.item - of_item, target.edge - of_edge
