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
    probabilities: list[tuple[float, int]] = []
    for member in members:
        total, exponent, of_item, of_edge = kernels.fine_pass(
            pruned.chart, pruned.item, pruned.edge, member, pruned.length
        )
        if total != 0.0 and math.isfinite(total):
            probabilities.append((total, exponent))
            item += of_item
            edge += of_edge
    if not probabilities:
        return Posteriors(pruned, pruned.item, pruned.edge, 1, pruned.log_probability, 0)
    n = len(probabilities)
    highest = max(exponent for _, exponent in probabilities)
    mean = sum(total * 2.0 ** max(exponent - highest, -1000) for total, exponent in probabilities)
    sign = int(np.sign(mean))
    log = math.log(abs(mean) / n) + highest * math.log(2.0) if sign else -math.inf
    return Posteriors(
        pruned=pruned,
        item=item / n,
        edge=edge / n,
        sign=sign,
        log_probability=pruned.log_probability + log,
        negative=sum(total < 0 for total, _ in probabilities),
    )
