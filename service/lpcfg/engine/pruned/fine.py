"""The fine pass: compute the marginals of one or several members over one pruned chart.

All members share the grammar and the coarse pass. Each member gives every item and edge a signed
posterior μ / p(x); dividing by its own signed p(x) cancels a sign that the whole chart shares. The
trees and the served probabilities come from the mean of the members' *votes*. A member's votes are
the magnitudes of its posteriors, all divided by the largest one if that is above 1. Without this, a
member whose p(x) nearly cancelled would have huge posteriors and outvote the others (on gum/dev,
four members: F1 82.2 with votes, 81.4 with plain means). All means over members use their weights.

So a negative posterior is not clipped to 0: it votes with its magnitude, in trees (NAACL 3.3) and
in served probabilities alike. `ratio` keeps the signs, for raw marginals and `clipped_mass`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from lpcfg.engine.pruned import kernels
from lpcfg.engine.pruned.coarse import Pruned
from lpcfg.engine.pruned.simd import in_blocks
from lpcfg.grammar.tables import Doubles, Floats, Grammar, Ints, Longs, Tables, frozen


class Member(NamedTuple):
    """The tables of one member in the kernel's form, and the weight of its votes."""

    tables: kernels.Fine
    weight: float


@dataclass(frozen=True, eq=False)
class Posteriors:
    """Votes on the items and edges of a pruned chart, and p(x) as sign and log-magnitude.

    `ratio` is the mean of the members' signed μ / p(x) of every item.
    """

    pruned: Pruned
    item: Doubles
    edge: Doubles
    ratio: Doubles
    sign: int
    log_probability: float
    negative: int
    """How many members gave a negative p(x)."""
    rescored: bool = False
    """True if items and edges have the rescoring layer's posteriors in place of votes."""
    domain: str = ""
    """The domain that the layer took the sentence for; "" for none."""

    @property
    def clipped_mass(self) -> float:
        """How far the signed posteriors of all items are outside [0, 1], summed."""
        return float((np.maximum(self.ratio - 1.0, 0.0) + np.maximum(-self.ratio, 0.0)).sum())


class TableArrays(Protocol):
    """Tables as `Tables` names them, or what makes each array when it is asked for."""

    @property
    def grammar(self) -> Grammar: ...

    @property
    def states(self) -> Ints: ...

    @property
    def terms(self) -> Ints: ...

    @property
    def c_one(self) -> Floats: ...

    @property
    def parent(self) -> Floats: ...

    @property
    def left(self) -> Floats: ...

    @property
    def right(self) -> Floats: ...

    @property
    def c_inf(self) -> Floats: ...

    @property
    def side_start(self) -> tuple[Longs, Longs, Longs]: ...

    @property
    def entry_offset(self) -> Longs: ...

    @property
    def root_offset(self) -> Longs: ...


def relative(tables: TableArrays, coarse: Tables, weight: float = 1.0) -> Member:
    """Divide the tables by the coarse ones, in float32. The sides are used one after the other."""
    q = np.asarray(coarse.parent * coarse.left * coarse.right, np.float64)
    roots = np.repeat(np.asarray(coarse.c_one, np.float64), tables.states)
    c_one = np.divide(tables.c_one, roots, out=np.zeros(len(roots)), where=roots > 0)
    sides = [
        in_blocks(flat, start, tables.terms, tables.states[children], divisor)
        for flat, start, children, divisor in zip(
            (getattr(tables, side) for side in ("parent", "left", "right")),
            tables.side_start,
            tables.grammar.rules.T,
            (q, np.ones(len(q)), np.ones(len(q))),
            strict=True,
        )
    ]
    made = kernels.Fine(
        states=tables.states,
        terms=tables.terms,
        parent_start=sides[0][1],
        left_start=sides[1][1],
        right_start=sides[2][1],
        parent=frozen(sides[0][0]),
        left=frozen(sides[1][0]),
        right=frozen(sides[2][0]),
        entry_start=tables.entry_offset,
        c_inf=frozen(np.asarray(tables.c_inf, np.float32)),
        root_start=tables.root_offset,
        c_one=frozen(c_one.astype(np.float32)),
    )
    return Member(made, weight)


def posteriors(pruned: Pruned, members: Sequence[Member]) -> Posteriors:
    """Average the members' votes.

    If no member gives any, or their p(x) cancel, return the coarse posteriors.
    """
    item, edge = np.zeros(len(pruned.item)), np.zeros(len(pruned.edge))
    ratio = np.zeros(len(pruned.item))
    totals = []
    for tables, weight in members:
        total, exponent, of_item, of_edge = kernels.fine_pass(
            pruned.chart, pruned.item, pruned.edge, tables, pruned.length
        )
        # Tables with numbers far apart may overflow; such a member has no say in this sentence.
        if total != 0.0 and math.isfinite(total + of_item.sum() + of_edge.sum()):
            totals.append((total, exponent, weight))
            ratio += weight * of_item
            vote = weight / max(1.0, float(np.abs(of_item).max()))
            item += vote * np.abs(of_item)
            edge += vote * np.abs(of_edge)
    sign, log = _mean(totals) if totals else (0, -math.inf)
    if sign == 0:
        return Posteriors(
            pruned, pruned.item, pruned.edge, pruned.item, 1, pruned.log_probability, 0
        )
    whole = sum(weight for *_, weight in totals)
    return Posteriors(
        pruned=pruned,
        item=item / whole,
        edge=edge / whole,
        ratio=ratio / whole,
        sign=sign,
        log_probability=pruned.log_probability + log,
        negative=sum(total < 0 for total, *_ in totals),
    )


def tree_ratio(chart: kernels.Chart, members: Sequence[Member], n: int) -> tuple[int, float]:
    """Compute p(tree) / coarse p(tree) as sign and log, from a chart that holds this tree alone."""
    ones = np.ones(len(chart.symbol))
    single = chart._replace(inside=ones, value=np.ones(len(chart.rule)))
    ratios = []
    for tables, weight in members:
        inside = kernels.fine_inside(single, ones, tables, n)
        ratios.append((inside.total, inside.exponent, weight))
    finite = [ratio for ratio in ratios if math.isfinite(ratio[0])]
    return _mean(finite) if finite else (1, 0.0)


def _mean(ratios: Sequence[tuple[float, int, float]]) -> tuple[int, float]:
    """Average numbers given as (mantissa, exponent of two, weight). Return sign and log."""
    highest = max((exponent for value, exponent, _ in ratios if value != 0.0), default=0)
    total = sum(w * value * 2.0 ** max(exponent - highest, -1000) for value, exponent, w in ratios)
    if total == 0.0:
        return 0, -math.inf
    whole = sum(weight for *_, weight in ratios)
    return 1 if total > 0 else -1, math.log(abs(total) / whole) + highest * math.log(2.0)
