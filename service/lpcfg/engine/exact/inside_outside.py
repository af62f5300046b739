"""The exact engine: figures 4 and 5 on the full chart. The reference for every other engine.

No pruning, float64, any signs, any m per symbol. The states of all symbols stand side by side
in one "flat" vector of Σ_a m_a numbers, so that all rules together are one tensor in CP form
with T = Σ_r K_r terms, and the recursions of figure 5 are three lines. With

    λ[i, j] = left · α[i, j]      ρ[i, j] = right · α[i, j]      γ[i, j] = parent · β[i, j]

each of T numbers, one per term,

    α[i, j] = Σ_k  parentᵀ (λ[i, k] ∘ ρ[k, j])
    β[i, j] = Σ_k  leftᵀ (γ[i, k] ∘ ρ[j, k])  +  Σ_k  rightᵀ (γ[k, j] ∘ λ[k, i])
    μ(a → b c, i, k, j) = Σ_t  γ[i, j] ∘ λ[i, k] ∘ ρ[k, j],  over the rule's terms t

Spans of one width are computed together; row i of width w stands for the span [i, i + w).
Memory grows as 3 T n² / 2 numbers: a sentence of 20 words under 100,000 terms takes 0.5 GB.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy import sparse

from lpcfg.engine.exact.scaled import Scaled, SignedLog
from lpcfg.errors import InputError
from lpcfg.grammar.tables import Doubles, Emissions, Tables
from lpcfg.trees.tree import Tree

Matrix = Any  # scipy.sparse.csr_array, which has no types


@dataclass(frozen=True, eq=False)
class FlatTables:
    """The tables over flat states: parent, left and right are (T, Σ_a m_a) sparse matrices.

    `of_symbol` (Σ_a m_a, N) and `of_rule` (T, R) sum what belongs to one symbol, to one rule.
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
    """One side of every term as a sparse row over flat states."""
    symbol = np.repeat(tables.grammar.rules[:, side], tables.terms)
    size = tables.states[symbol].astype(np.int64)
    start = np.concatenate([[0], np.cumsum(size)])
    within = np.arange(start[-1]) - np.repeat(start[:-1], size)
    column = np.repeat(tables.root_offset[symbol], size) + within
    shape = (len(symbol), tables.root_offset[-1])
    return sparse.csr_array((np.asarray(numbers, np.float64), column, start), shape=shape)


def _owner(sizes: Any) -> Matrix:
    """Row n holds a one in the column of the part that n belongs to, parts being of these sizes."""
    column = np.repeat(np.arange(len(sizes)), sizes)
    ones = np.ones(len(column))
    start = np.arange(len(column) + 1)
    return sparse.csr_array((ones, column, start), shape=(len(column), len(sizes)))


@dataclass(frozen=True, eq=False)
class Chart:
    """Inside vectors of every span, and what the rules' left and right sides make of them.

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


def inside(tables: Tables, emissions: Emissions) -> Chart:
    """Inside vectors of every span (figure 5).

    α^{a,i,j} = Σ_k Σ_{a→b c} C^{a→b c}(α^{b,i,k}, α^{c,k,j}), and c∞ over single words.
    """
    if emissions.length == 0:
        raise InputError("expected a sentence of at least one word, got none: leave it out")
    flat = FlatTables.of(tables)
    chart = Chart(flat, emissions, *([Scaled.zeros(0, 0)] for _ in range(3)))
    for width in range(1, emissions.length + 1):
        alpha = _emitted(chart) if width == 1 else _combined(chart, width) @ flat.parent
        chart.alpha.append(alpha)
        chart.left.append(alpha @ flat.left.T)
        chart.right.append(alpha @ flat.right.T)
    return chart


def _emitted(chart: Chart) -> Scaled:
    """α over single words: weight · c∞ of every candidate."""
    tables, emissions = chart.flat.tables, chart.emissions
    alpha = np.zeros((emissions.length, tables.root_offset[-1]))
    for position, candidate in _candidates(emissions):
        a, e = emissions.symbol[candidate], emissions.entry[candidate]
        states = slice(tables.root_offset[a], tables.root_offset[a + 1])
        alpha[position, states] += emissions.weight[candidate] * tables.terminal_vector(e)
    return Scaled.normal(alpha, np.zeros(emissions.length, np.int64))


def _candidates(emissions: Emissions) -> Iterator[tuple[int, int]]:
    """(position, candidate) of every candidate of every word."""
    for position in range(emissions.length):
        for candidate in range(emissions.start[position], emissions.start[position + 1]):
            yield position, candidate


def _combined(chart: Chart, width: int) -> Scaled:
    """Σ_k λ[i, k] ∘ ρ[k, j] of every span [i, j) of a width."""
    rows = chart.length - width + 1
    total = Scaled.zeros(rows, chart.flat.left.shape[0])
    for split in range(1, width):
        total.add(chart.left[split][:rows] * chart.right[width - split][split:])
    return total


def _roots(flat: FlatTables) -> Doubles:
    """c¹ of all symbols, as one column over flat states."""
    return np.asarray(flat.tables.c_one, np.float64)[:, None]


@dataclass(frozen=True, eq=False)
class Marginals:
    """Inside and outside vectors of every span, and every marginal of a sentence.

    The arrays are posteriors μ/p(x): signed, so that the sign of a chart that flipped as a whole
    cancels, and never clipped. They are zero where p(x) is. `span` and `rule` are the
    raw μ. `beta` and `gamma` are indexed by width, as in `Chart`.
    """

    chart: Chart
    beta: list[Scaled]
    gamma: list[Scaled]

    @property
    def probability(self) -> SignedLog:
        """p(x)."""
        return self.chart.probability

    def spans(self, width: int) -> Doubles:
        """μ(a, i, i + width) / p(x), (rows, N)."""
        return self._spans(width).over(self.chart.total)

    def rules(self, width: int, split: int) -> Doubles:
        """μ(a → b c, i, i + split, i + width) / p(x), (rows, R)."""
        return self._rules(width, split).over(self.chart.total)

    def words(self) -> Doubles:
        """μ(a → x, w) / p(x) of every candidate of the emissions, in their order."""
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
        """μ(a, start, end)."""
        return self._spans(end - start).entry(start, a)

    def rule(self, r: int, start: int, split: int, end: int) -> SignedLog:
        """μ(a → b c, start, split, end) of rule r."""
        return self._rules(end - start, split - start).entry(start, r)

    def _spans(self, width: int) -> Scaled:
        mu: Scaled = (self.chart.alpha[width] * self.beta[width]) @ self.chart.flat.of_symbol
        return mu

    def _rules(self, width: int, split: int) -> Scaled:
        left = self.chart.left[split][: self.chart.length - width + 1]
        right = self.chart.right[width - split][split:]
        mu: Scaled = (self.gamma[width] * left * right) @ self.chart.flat.of_rule
        return mu


def outside(chart: Chart) -> Marginals:
    """Outside vectors of every span (figure 5), from the widest to single words.

    β^{a,0,n} = c¹_a; below, β of a left child is C_(1,3)(β of its parent, α of its sibling), of
    a right child C_(1,2), summed over parents and siblings.
    """
    beta = [Scaled.zeros(0, 0) for _ in range(chart.length + 1)]
    marginals = Marginals(chart, beta, list(beta))
    for width in range(chart.length, 0, -1):
        if width == chart.length:
            beta[width] = Scaled.normal(_roots(chart.flat).T, np.zeros(1, np.int64))
        else:
            beta[width] = _from_above(marginals, width)
        marginals.gamma[width] = beta[width] @ chart.flat.parent.T
    return marginals


def _from_above(marginals: Marginals, width: int) -> Scaled:
    """β of every span [i, j) of a width: by siblings [j, k) on its right and [k, i) on its left."""
    chart = marginals.chart
    rows = chart.length - width + 1
    as_left, as_right = (Scaled.zeros(rows, chart.flat.left.shape[0]) for _ in range(2))
    for sibling in range(1, rows):
        above = marginals.gamma[width + sibling]
        as_left[: rows - sibling].add(above * chart.right[sibling][width:])
        as_right[sibling:].add(above * chart.left[sibling][: rows - sibling])
    beta = as_left @ chart.flat.left
    beta.add(as_right @ chart.flat.right)
    return Scaled.normal(beta.values, beta.exponent)


@dataclass(frozen=True)
class Missing:
    """What a grammar lacks to build a tree: a rule `S → NP VP`, a word `NN → dog`, a root `NP`."""

    kind: Literal["rule", "word", "root"]
    name: str
    start: int
    end: int


@dataclass(frozen=True)
class TreeProbability:
    """p(tree), and all that is missing where the grammar cannot build the tree."""

    probability: SignedLog
    missing: tuple[Missing, ...] = ()


def tree_probability(tables: Tables, tree: Tree, emissions: Emissions) -> TreeProbability:
    """p(tree) of an s-tree whose labels are the grammar's symbols (figure 4).

    f_i = c∞ at preterminals, C(f_left, f_right) above them; p(tree) = f_root · c¹.
    """
    missing: list[Missing] = []
    done: list[_Node] = []  # the stack of finished nodes: on top, the leftmost
    position = emissions.length
    for node in reversed(list(tree.nodes())):
        if node.is_leaf:
            position -= 1
            if position < 0:
                break
            done.append(_leaf(tables, node, position, emissions, missing))
        elif len(node.children) == 2:
            done.append(_inner(tables, node.label, done.pop(), done.pop(), missing))
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
    return _rooted(tables, done.pop(), missing)


@dataclass(frozen=True, eq=False)
class _Node:
    """A finished node: its symbol (its name where the grammar has none), span and vector f."""

    name: str
    start: int
    end: int
    f: Scaled


_NOTHING = Scaled.zeros(1, 0)


def _leaf(
    tables: Tables, leaf: Tree, position: int, emissions: Emissions, missing: list[Missing]
) -> _Node:
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
        missing.append(Missing("word", f"{leaf.label} → {leaf.word}", position, position + 1))
    return _Node(leaf.label, position, position + 1, f)


def _inner(tables: Tables, name: str, left: _Node, right: _Node, missing: list[Missing]) -> _Node:
    ids = tables.grammar.symbol_ids
    key = (ids.get(name, -1), ids.get(left.name, -1), ids.get(right.name, -1))
    r = tables.grammar.rule_ids.get(key)
    f = _NOTHING
    if r is None:
        rule = f"{name} → {left.name} {right.name}"
        missing.append(Missing("rule", rule, left.start, right.end))
    elif not missing:
        parent_side, left_side, right_side = tables.rule(r)
        f = ((left.f @ left_side.T) * (right.f @ right_side.T)) @ parent_side
    return _Node(name, left.start, right.end, f)


def _rooted(tables: Tables, root: _Node, missing: list[Missing]) -> TreeProbability:
    a = tables.grammar.symbol_ids.get(root.name, -1)
    if a >= 0 and not tables.root_vector(a).any():
        missing.append(Missing("root", root.name, root.start, root.end))
    if missing:
        return TreeProbability(SignedLog.of(0.0), tuple(reversed(missing)))
    total = root.f @ np.asarray(tables.root_vector(a), np.float64)[:, None]
    return TreeProbability(total.entry(0, 0))
