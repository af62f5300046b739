"""The fine pass: marginals of one or several members over one pruned chart.

Members share grammar and coarse pass. Each gives every item and edge a signed posterior
μ / p(x), divided by its own signed p(x), which heals a chart whose sign flipped as a whole; the
ensemble's posterior is their mean.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lpcfg.engine import kernels
from lpcfg.engine.coarse import Pruned
from lpcfg.grammar import Doubles, Tables, frozen


@dataclass(frozen=True, eq=False)
class Posteriors:
    """Signed posteriors of a pruned chart's items and edges, and p(x) as sign and log-magnitude."""

    pruned: Pruned
    item: Doubles
    edge: Doubles
    sign: int
    log_probability: float
    negative: int
    """Members whose p(x) came out negative."""

    @property
    def clipped_mass(self) -> float:
        """How far all items' posteriors together are outside [0, 1]."""
        return float((np.maximum(self.item - 1.0, 0.0) + np.maximum(-self.item, 0.0)).sum())


def relative(tables: Tables, coarse: Tables) -> kernels.Fine:
    """The tables divided by the coarse ones, in float32, as the kernel reads them."""
    q = np.array([coarse.dense(r).item() for r in range(coarse.grammar.n_rules)])
    sizes = tables.terms * tables.states[tables.grammar.rules[:, 0]]
    roots = np.repeat(np.asarray(coarse.c_one, np.float64), tables.states)
    c_one = np.divide(tables.c_one, roots, out=np.zeros(len(roots)), where=roots > 0)
    parent_start, left_start, right_start = tables.side_start
    return kernels.Fine(
        states=tables.states,
        terms=tables.terms,
        parent_start=parent_start,
        left_start=left_start,
        right_start=right_start,
        parent=frozen((tables.parent / np.repeat(q, sizes)).astype(np.float32)),
        left=frozen(tables.left.astype(np.float32)),
        right=frozen(tables.right.astype(np.float32)),
        entry_start=tables.entry_offset,
        c_inf=frozen(tables.c_inf.astype(np.float32)),
        root_start=tables.root_offset,
        c_one=frozen(c_one.astype(np.float32)),
    )


def posteriors(pruned: Pruned, members: Sequence[kernels.Fine]) -> Posteriors:
    """The mean of the members' posteriors; the coarse ones where no member gives any."""
    item, edge = np.zeros(len(pruned.item)), np.zeros(len(pruned.edge))
    ratios = []
    for member in members:
        total, exponent, of_item, of_edge = kernels.fine_pass(
            pruned.chart, pruned.item, pruned.edge, member, pruned.length
        )
        if total != 0.0 and math.isfinite(total):
            ratios.append((total, exponent))
            item += of_item
            edge += of_edge
    if not ratios:
        return Posteriors(pruned, pruned.item, pruned.edge, 1, pruned.log_probability, 0)
    sign, log = _mean(ratios)
    return Posteriors(
        pruned=pruned,
        item=item / len(ratios),
        edge=edge / len(ratios),
        sign=sign,
        log_probability=pruned.log_probability + log,
        negative=sum(total < 0 for total, _ in ratios),
    )


def tree_ratio(chart: kernels.Chart, members: Sequence[kernels.Fine], n: int) -> tuple[int, float]:
    """p(tree) over the coarse p(tree), as sign and log, of a chart that holds one tree alone."""
    ones = np.ones(len(chart.symbol)), np.ones(len(chart.rule))
    single = chart._replace(inside=ones[0], value=ones[1])
    ratios = [kernels.fine_pass(single, *ones, member, n)[:2] for member in members]
    return _mean(ratios) if ratios else (1, 0.0)


def _mean(ratios: Sequence[tuple[float, int]]) -> tuple[int, float]:
    """The mean of numbers given with exponents of two, as sign and log."""
    highest = max(exponent for _, exponent in ratios)
    mean = sum(value * 2.0 ** max(exponent - highest, -1000) for value, exponent in ratios)
    if mean == 0.0:
        return 0, -math.inf
    return int(np.sign(mean)), math.log(abs(mean) / len(ratios)) + highest * math.log(2.0)
