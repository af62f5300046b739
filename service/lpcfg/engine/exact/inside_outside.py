"""The exact engine: figures 4 and 5 on the full chart. Every other engine is tested against it.

It does not prune, computes in float64, and accepts any signs and any m per symbol. The states of
all symbols stand side by side in one "flat" vector of Σ_a m_a numbers. All rules together are then
one tensor with T = Σ_r K_r rank-one terms, and the recursions of figure 5 are three lines. Let

    ℓ[i, j] = left · α[i, j]      r[i, j] = right · α[i, j]      u[i, j] = parent · β[i, j]

each with T numbers, one per term. Then

    α[i, j] = Σ_k  parentᵀ (ℓ[i, k] ∘ r[k, j])
    β[i, j] = Σ_k  leftᵀ (u[i, k] ∘ r[j, k])  +  Σ_k  rightᵀ (u[k, j] ∘ ℓ[k, i])
    μ(a → b c, i, k, j) = Σ_t  u[i, j] ∘ ℓ[i, k] ∘ r[k, j],  over the rule's terms t

Spans of one width are computed together; row i of width w stands for the span [i, i + w).
Memory grows as 3 T n² / 2 numbers: a sentence of 20 words under 100,000 terms takes 0.5 GB.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy import sparse

from lpcfg.base.errors import InputError
from lpcfg.engine.exact.scaled import Scaled, SignedLog
from lpcfg.grammar.tables import Doubles, Emissions, Tables
from lpcfg.trees.tree import Tree

Matrix = Any  # scipy.sparse.csr_array, which has no types


@dataclass(frozen=True, eq=False)
class FlatTables:
    """The tables over flat states: parent, left and right are (T, Σ_a m_a) sparse matrices.

    Multiplying by `of_symbol` (Σ_a m_a, N) sums over the states of each symbol, and by `of_rule`
    (T, R) over the terms of each rule.
    """

    tables: Tables
    parent: Matrix
    left: Matrix
    right: Matrix
    of_symbol: Matrix
    of_rule: Matrix

    @classmethod
    def of(cls, tables: Tables) -> "FlatTables":
        sides = (tables.parent, tables.left, tables.right)
        parent, left, right = (_flat_side(tables, k, flat) for k, flat in enumerate(sides))
        return cls(tables, parent, left, right, _owner(tables.states), _owner(tables.terms))


def _flat_side(tables: Tables, side: int, numbers: Doubles | Any) -> Matrix:
    """Build one side of every term as a sparse row over flat states."""
    symbol = np.repeat(tables.grammar.rules[:, side], tables.terms)
    size = tables.states[symbol].astype(np.int64)
    start = np.concatenate([[0], np.cumsum(size)])
    within = np.arange(start[-1]) - np.repeat(start[:-1], size)
    column = np.repeat(tables.root_offset[symbol], size) + within
    shape = (len(symbol), tables.root_offset[-1])
    return sparse.csr_array((np.asarray(numbers, np.float64), column, start), shape=shape)


def _owner(sizes: Any) -> Matrix:
    """Build a matrix that maps each item to its part, for parts of these sizes: (items, parts)."""
    column = np.repeat(np.arange(len(sizes)), sizes)
    ones = np.ones(len(column))
    start = np.arange(len(column) + 1)
    return sparse.csr_array((ones, column, start), shape=(len(column), len(sizes)))


@dataclass(frozen=True, eq=False)
class InsideChart:
    """Inside vectors of every span, and their products with the left and right sides of all terms.

    Lists are indexed by width; index 0 is empty.
    """

    flat: FlatTables
    emissions: Emissions
    alpha: list[Scaled]
    left: list[Scaled]
    right: list[Scaled]

    @property
    def length(self) -> int:
        return self.emissions.length

    @cached_property
    def total(self) -> Scaled:
        """p(x), as one number: Σ_a α^{a,0,n} · c¹_a."""
        return self.alpha[self.length] @ _roots(self.flat)

    @property
    def probability(self) -> SignedLog:
        """p(x)."""
        return self.total.entry(0, 0)


def inside(tables: Tables, emissions: Emissions) -> InsideChart:
    """Compute the inside vectors of every span (figure 5).

    α^{a,i,j} = Σ_k Σ_{a→b c} C^{a→b c}(α^{b,i,k}, α^{c,k,j}), and c∞ over single words.

    Raises:
        InputError: for a sentence without words
    """
    if emissions.length == 0:
        raise InputError("expected a sentence of at least one word, got none: leave it out")
    flat = FlatTables.of(tables)
    chart = InsideChart(flat, emissions, *([Scaled.zeros(0, 0)] for _ in range(3)))
    for width in range(1, emissions.length + 1):
        alpha = _emitted(chart) if width == 1 else _combined(chart, width) @ flat.parent
        chart.alpha.append(alpha)
        chart.left.append(alpha @ flat.left.T)
        chart.right.append(alpha @ flat.right.T)
    return chart


def _emitted(chart: InsideChart) -> Scaled:
    """Compute α over single words: weight · c∞ of every candidate."""
    tables, emissions = chart.flat.tables, chart.emissions
    alpha = np.zeros((emissions.length, tables.root_offset[-1]))
    for position, candidate in _candidates(emissions):
        a, e = emissions.symbol[candidate], emissions.entry[candidate]
        states = slice(tables.root_offset[a], tables.root_offset[a + 1])
        alpha[position, states] += emissions.weight[candidate] * tables.terminal_vector(e)
    return Scaled.normal(alpha, np.zeros(emissions.length, np.int64))


def _candidates(emissions: Emissions) -> Iterator[tuple[int, int]]:
    """Yield (position, candidate) for every candidate of every word."""
    for position in range(emissions.length):
        for candidate in range(emissions.start[position], emissions.start[position + 1]):
            yield position, candidate


def _combined(chart: InsideChart, width: int) -> Scaled:
    """Compute Σ_k ℓ[i, k] ∘ r[k, j] for every span [i, j) of a width."""
    rows = chart.length - width + 1
    total = Scaled.zeros(rows, chart.flat.left.shape[0])
    for split in range(1, width):
        total.add(chart.left[split][:rows] * chart.right[width - split][split:])
    return total


def _roots(flat: FlatTables) -> Doubles:
    """Return c¹ of all symbols, as one column over flat states."""
    return np.asarray(flat.tables.c_one, np.float64)[:, None]


@dataclass(frozen=True, eq=False)
class ExactMarginals:
    """Inside and outside vectors of every span, and every marginal of a sentence.

    `spans`, `rules` and `words` return posteriors μ/p(x). They are signed and never clipped, and
    zero where p(x) is zero; dividing by p(x) cancels a sign that the whole chart shares. `span` and
    `rule` return raw μ. `beta` and `parent` are indexed by width, as in `InsideChart`.
    """

    chart: InsideChart
    beta: list[Scaled]
    parent: list[Scaled]

    @property
    def probability(self) -> SignedLog:
        """p(x)."""
        return self.chart.probability

    def spans(self, width: int) -> Doubles:
        """Compute μ(a, i, i + width) / p(x), (rows, N)."""
        return self._spans(width).over(self.chart.total)

    def rules(self, width: int, split: int) -> Doubles:
        """Compute μ(a → b c, i, i + split, i + width) / p(x), (rows, R)."""
        return self._rules(width, split).over(self.chart.total)

    def words(self) -> Doubles:
        """Compute μ(a → x, w) / p(x) of every candidate of the emissions, in their order."""
        tables, emissions = self.chart.flat.tables, self.chart.emissions
        result = np.zeros(len(emissions.symbol))
        for position, candidate in _candidates(emissions):
            a, e = emissions.symbol[candidate], emissions.entry[candidate]
            states = slice(tables.root_offset[a], tables.root_offset[a + 1])
            row = self.beta[1][position : position + 1]
            vector = emissions.weight[candidate] * tables.terminal_vector(e)
            mu = Scaled(row.values[:, states] @ vector[:, None], row.exponent)
            result[candidate] = mu.over(self.chart.total)[0, 0]
        return result

    def span(self, a: int, start: int, end: int) -> SignedLog:
        """Compute μ(a, start, end)."""
        return self._spans(end - start).entry(start, a)

    def rule(self, r: int, start: int, split: int, end: int) -> SignedLog:
        """Compute μ(a → b c, start, split, end) of rule r."""
        return self._rules(end - start, split - start).entry(start, r)

    def _spans(self, width: int) -> Scaled:
        mu: Scaled = (self.chart.alpha[width] * self.beta[width]) @ self.chart.flat.of_symbol
        return mu

    def _rules(self, width: int, split: int) -> Scaled:
        left = self.chart.left[split][: self.chart.length - width + 1]
        right = self.chart.right[width - split][split:]
        mu: Scaled = (self.parent[width] * left * right) @ self.chart.flat.of_rule
        return mu


def outside(chart: InsideChart) -> ExactMarginals:
    """Compute the outside vectors of every span (figure 5), from the widest to single words.

    β^{a,0,n} = c¹_a at the root. Below it, β of a left child is C_(1,3)(β of its parent, α of its
    sibling), and β of a right child uses C_(1,2); both are summed over parents and siblings.
    """
    beta = [Scaled.zeros(0, 0) for _ in range(chart.length + 1)]
    marginals = ExactMarginals(chart, beta, list(beta))
    for width in range(chart.length, 0, -1):
        if width == chart.length:
            beta[width] = Scaled.normal(_roots(chart.flat).T, np.zeros(1, np.int64))
        else:
            beta[width] = _from_above(marginals, width)
        marginals.parent[width] = beta[width] @ chart.flat.parent.T
    return marginals


def _from_above(marginals: ExactMarginals, width: int) -> Scaled:
    """Compute β of spans [i, j) of one width, from siblings [j, k) to the right and [k, i) left."""
    chart = marginals.chart
    rows = chart.length - width + 1
    as_left, as_right = (Scaled.zeros(rows, chart.flat.left.shape[0]) for _ in range(2))
    for sibling in range(1, rows):
        above = marginals.parent[width + sibling]
        as_left[: rows - sibling].add(above * chart.right[sibling][width:])
        as_right[sibling:].add(above * chart.left[sibling][: rows - sibling])
    beta = as_left @ chart.flat.left
    beta.add(as_right @ chart.flat.right)
    return Scaled.normal(beta.values, beta.exponent)


@dataclass(frozen=True)
class Gap:
    """A gap in the grammar: a missing rule `S → NP VP`, word `NN → dog` or root `NP`."""

    kind: Literal["rule", "word", "root"]
    name: str
    start: int
    end: int


@dataclass(frozen=True)
class ExactTreeProbability:
    """p(tree), and everything missing if the grammar cannot build the tree."""

    probability: SignedLog
    missing: tuple[Gap, ...] = ()


def tree_probability(tables: Tables, tree: Tree, emissions: Emissions) -> ExactTreeProbability:
    """Compute p(tree) of an s-tree whose labels are the grammar's symbols (figure 4).

    f_i = c∞ at preterminals, C(f_left, f_right) above them; p(tree) = f_root · c¹.

    Raises:
        InputError: for a node with one child or more than two, or a tree over other words
    """
    missing: list[Gap] = []
    finished: list[_FinishedNode] = []  # a stack of finished nodes, the leftmost on top
    position = emissions.length
    for node in reversed(list(tree.nodes())):
        if node.is_leaf:
            position -= 1
            if position < 0:
                break
            finished.append(_leaf(tables, node, position, emissions, missing))
        elif len(node.children) == 2:
            finished.append(_inner(tables, node.label, finished.pop(), finished.pop(), missing))
        else:
            raise InputError(
                f"expected an s-tree, with two children under {node.label!r}, "
                f"got {len(node.children)}: binarize the tree first"
            )
    if position != 0:
        raise InputError(
            f"expected a tree over {emissions.length} words, got {len(tree.leaves())}: "
            "give the tree's own words"
        )
    return _rooted(tables, finished.pop(), missing)


@dataclass(frozen=True, eq=False)
class _FinishedNode:
    """A finished node: its name (a symbol, if the grammar has it), span and vector f."""

    name: str
    start: int
    end: int
    f: Scaled


_NOTHING = Scaled.zeros(1, 0)


def _leaf(
    tables: Tables, leaf: Tree, position: int, emissions: Emissions, missing: list[Gap]
) -> _FinishedNode:
    a = tables.grammar.symbol_ids.get(leaf.label, -1)
    candidates = range(emissions.start[position], emissions.start[position + 1])
    vectors = [
        emissions.weight[t] * tables.terminal_vector(emissions.entry[t])
        for t in candidates
        if emissions.symbol[t] == a
    ]
    f = _NOTHING
    if vectors:
        f = Scaled.normal(np.sum(vectors, axis=0)[None, :], np.zeros(1, np.int64))
    else:
        missing.append(Gap("word", f"{leaf.label} → {leaf.word}", position, position + 1))
    return _FinishedNode(leaf.label, position, position + 1, f)


def _inner(
    tables: Tables, name: str, left: _FinishedNode, right: _FinishedNode, missing: list[Gap]
) -> _FinishedNode:
    ids = tables.grammar.symbol_ids
    key = (ids.get(name, -1), ids.get(left.name, -1), ids.get(right.name, -1))
    r = tables.grammar.rule_ids.get(key)
    f = _NOTHING
    if r is None:
        rule = f"{name} → {left.name} {right.name}"
        missing.append(Gap("rule", rule, left.start, right.end))
    elif not missing:
        parent_side, left_side, right_side = tables.rule(r)
        f = ((left.f @ left_side.T) * (right.f @ right_side.T)) @ parent_side
    return _FinishedNode(name, left.start, right.end, f)


def _rooted(tables: Tables, root: _FinishedNode, missing: list[Gap]) -> ExactTreeProbability:
    a = tables.grammar.symbol_ids.get(root.name, -1)
    if a >= 0 and not tables.root_vector(a).any():
        missing.append(Gap("root", root.name, root.start, root.end))
    if missing:
        return ExactTreeProbability(SignedLog.of(0.0), tuple(reversed(missing)))
    total = root.f @ np.asarray(tables.root_vector(a), np.float64)[:, None]
    return ExactTreeProbability(total.entry(0, 0))
