"""The observable form (JMLR equations 14-16, figures 7 and 8) for given feature functions.

φ maps inside trees to features, ψ outside trees. Every node of every tree is an example, which
makes the expectations below ones over (tree, node) pairs, each tree counted once per node: only
then are the inside and the outside tree of a node independent given its symbol and state. (To
draw one node per tree, as in section 7.1, couples them through the number of nodes.)

The projections are U and V Σ⁻¹ of a truncated SVD of Ω^a, so that Y = Uᵀφ and Z = Σ⁻¹Vᵀψ (the
convention of the NAACL paper). Σ⁻¹ stands in Z and nowhere else.

For small numbers of features: all matrices are dense. The theory's tests stand on it; treebanks
are for `lpcfg.training.estimators.spectral`.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Optional

import numpy as np

from lpcfg.base.errors import TrainingError
from lpcfg.grammar.tables import Doubles, Grammar, Ints, Tables
from lpcfg.trees.tree import Tree

Features = Mapping[Hashable, float]


class Outside(NamedTuple):
    """The outside tree of a node: its parent's label, its sibling, its parent's outside tree."""

    label: str
    sibling: Tree
    is_left: bool
    above: Optional["Outside"]


InsideFeatures = Callable[[Tree], Features]
OutsideFeatures = Callable[[Outside | None], Features]
"""None stands for the outside tree of a root."""


@dataclass(frozen=True, eq=False)
class Moments:
    """The moments of the observable form, per symbol a, rule a → b c and entry a → x.

    omega[a]   Ω^a = E[φ(T₁) ψ(O)ᵀ | A₁ = a]                            (d_a, d'_a)
    rules[r]   E[⟦R₁ = a → b c⟧ ψ(O) ⊗ φ(T₂) ⊗ φ(T₃) | A₁ = a]          (d'_a, d_b, d_c)
    words[e]   E[⟦R₁ = a → x⟧ ψ(O) | A₁ = a]                            (d'_a,)
    roots[a]   E[⟦A₁ = a⟧ φ(T₁) | B = 1]                                (d_a,)
    """

    omega: Sequence[Doubles]
    rules: Sequence[Doubles]
    words: Sequence[Doubles]
    roots: Sequence[Doubles]


def observable_form(grammar: Grammar, moments: Moments, states: Sequence[int] | Ints) -> Tables:
    """Compute C, c∞ and c¹ of equations 14-16, with m_a = states[a]."""
    projections = [
        _projections(name, omega, int(m))
        for name, omega, m in zip(grammar.symbols, moments.omega, states, strict=True)
    ]
    inside = [u for u, _ in projections]
    outside = [v for _, v in projections]
    tensors = (
        np.einsum("def,di,ej,fk->ijk", moment, outside[a], inside[b], inside[c], optimize=True)
        for moment, (a, b, c) in zip(moments.rules, grammar.rules.tolist(), strict=True)
    )
    rows = (
        moment @ outside[a]
        for moment, (a, _) in zip(moments.words, grammar.entries.tolist(), strict=True)
    )
    columns = (root @ u for root, u in zip(moments.roots, inside, strict=True))
    return Tables.from_dense(grammar, states, tensors, rows, columns)


def _projections(symbol: str, omega: Doubles, m: int) -> tuple[Doubles, Doubles]:
    """Compute U and V Σ⁻¹ of the m largest singular values of Ω^a (figure 8)."""
    u, sigma, vt = np.linalg.svd(omega, full_matrices=False)
    # Below this a singular value is rounding error: the bound of numpy.linalg.matrix_rank.
    zero = sigma.max(initial=0.0) * max(omega.shape) * np.finfo(np.float64).eps
    rank = int((sigma > zero).sum())
    if m > rank:
        raise TrainingError(
            f"expected at most {rank} latent states for `{symbol}`, the rank of its Ω, got {m}: "
            "ask for fewer states or give features that tell more apart"
        )
    return u[:, :m], vt[:m].T / sigma[:m]


@dataclass(frozen=True, eq=False)
class Examples:
    """Every node of some s-trees, with its features.

    Per symbol a, phi[a] and psi[a] hold the vectors φ and ψ of its nodes, one row each, and
    `tree[a]` says which tree a node is in. `rule[r]` and `entry[e]` list the nodes of a rule or
    an entry, `root[a]` the roots: rows of phi[a] and psi[a]; `left[r]` and `right[r]` their
    children, rows of phi[b] and phi[c].
    """

    grammar: Grammar
    n_trees: int
    tree: Sequence[Ints]
    phi: Sequence[Doubles]
    psi: Sequence[Doubles]
    rule: Sequence[Ints]
    left: Sequence[Ints]
    right: Sequence[Ints]
    entry: Sequence[Ints]
    root: Sequence[Ints]

    def moments(self, weights: Doubles) -> Moments:
        """Average over nodes, with tree t counted weights[t] times.

        Weights are the trees' counts in a sample or, for exact moments, their probabilities.
        """
        grammar = self.grammar
        of_node = [weights[tree] for tree in self.tree]
        totals = [weight.sum() for weight in of_node]
        for name, total in zip(grammar.symbols, totals, strict=True):
            if total <= 0:
                raise TrainingError(
                    f"expected trees with `{name}` in them, got none: draw more trees, or leave "
                    "the symbol out of the grammar"
                )
        mean = [weight / total for weight, total in zip(of_node, totals, strict=True)]
        return Moments(
            omega=[
                (phi * w[:, None]).T @ psi
                for phi, psi, w in zip(self.phi, self.psi, mean, strict=True)
            ],
            rules=[self._rule_moment(r, mean) for r in range(grammar.n_rules)],
            words=[
                mean[a][nodes] @ self.psi[a][nodes]
                for (a, _), nodes in zip(grammar.entries.tolist(), self.entry, strict=True)
            ],
            roots=[
                of_node[a][nodes] @ self.phi[a][nodes] / weights.sum()
                for a, nodes in enumerate(self.root)
            ],
        )

    def _rule_moment(self, r: int, mean: Sequence[Doubles]) -> Doubles:
        a, b, c = self.grammar.rules[r]
        nodes = self.rule[r]
        outside = self.psi[a][nodes] * mean[a][nodes, None]
        left, right = self.phi[b][self.left[r]], self.phi[c][self.right[r]]
        moment: Doubles = np.einsum("nd,ne,nf->def", outside, left, right, optimize=True)
        return moment


def examples(
    grammar: Grammar, trees: Iterable[Tree], inside: InsideFeatures, outside: OutsideFeatures
) -> Examples:
    """Collect every node of s-trees that the grammar can build, with these features."""
    collected = _Collected(grammar, inside, outside)
    for tree in trees:
        collected.add(tree)
    return collected.examples()


class _Collected:
    """Nodes as they come, tree after tree: what `Examples` holds, in lists."""

    def __init__(self, grammar: Grammar, inside: InsideFeatures, outside: OutsideFeatures) -> None:
        self.grammar = grammar
        self.inside = inside
        self.outside = outside
        self.n_trees = 0
        symbols = range(grammar.n_symbols)
        self.tree: list[list[int]] = [[] for _ in symbols]
        self.phi: list[list[Features]] = [[] for _ in symbols]
        self.psi: list[list[Features]] = [[] for _ in symbols]
        self.root: list[list[int]] = [[] for _ in symbols]
        self.rule: list[list[tuple[int, int, int]]] = [[] for _ in range(grammar.n_rules)]
        self.entry: list[list[int]] = [[] for _ in range(len(grammar.entries))]

    def add(self, tree: Tree) -> None:
        root: list[int] = []
        inner: list[tuple[Tree, list[int]]] = []  # nodes, and the rows of node, left, right
        agenda: list[tuple[Tree, Outside | None, list[int]]] = [(tree, None, root)]
        while agenda:
            node, context, rows = agenda.pop()
            rows.append(self._add_node(node, context))
            if node.word is None:
                left, right = node.children
                inner.append((node, [rows[-1]]))
                above = inner[-1][1]
                agenda.append((right, Outside(node.label, left, False, context), above))
                agenda.append((left, Outside(node.label, right, True, context), above))
        for node, (row, left_row, right_row) in inner:
            self.rule[self._rule(node)].append((row, left_row, right_row))
        self.root[self._symbol(tree)].extend(root)
        self.n_trees += 1

    def _add_node(self, node: Tree, context: Outside | None) -> int:
        """Add a node, and return its row among the nodes of its symbol."""
        a = self._symbol(node)
        row = len(self.tree[a])
        self.tree[a].append(self.n_trees)
        self.phi[a].append(self.inside(node))
        self.psi[a].append(self.outside(context))
        if node.word is not None:
            self.entry[self._entry(node, a)].append(row)
        return row

    def _symbol(self, node: Tree) -> int:
        a = self.grammar.symbol_ids.get(node.label)
        if a is None:
            raise _unknown(node.label)
        return a

    def _entry(self, leaf: Tree, a: int) -> int:
        word, known = leaf.word or "", self.grammar.terminals
        x = known.index(word) if word in known else -1
        e = self.grammar.entry_ids.get((a, x))
        if e is None:
            raise _unknown(f"{leaf.label} → {leaf.word}")
        return e

    def _rule(self, node: Tree) -> int:
        a, b, c = (self._symbol(one) for one in (node, *node.children))
        r = self.grammar.rule_ids.get((a, b, c))
        if r is None:
            raise _unknown(" ".join((node.label, "→", *(child.label for child in node.children))))
        return r

    def examples(self) -> Examples:
        links = [np.array(rows, np.int32).reshape(-1, 3) for rows in self.rule]
        return Examples(
            grammar=self.grammar,
            n_trees=self.n_trees,
            tree=[np.array(tree, np.int32) for tree in self.tree],
            phi=[_matrix(rows) for rows in self.phi],
            psi=[_matrix(rows) for rows in self.psi],
            rule=[link[:, 0] for link in links],
            left=[link[:, 1] for link in links],
            right=[link[:, 2] for link in links],
            entry=[np.array(rows, np.int32) for rows in self.entry],
            root=[np.array(rows, np.int32) for rows in self.root],
        )


def _unknown(what: str) -> TrainingError:
    return TrainingError(
        f"expected trees that the grammar can build, got one with `{what}`: "
        "read the grammar off these trees"
    )


def _matrix(rows: Sequence[Features]) -> Doubles:
    """Stack feature vectors as rows, with columns in the order of their first appearance."""
    column: dict[Hashable, int] = {}
    for features in rows:
        for feature in features:
            column.setdefault(feature, len(column))
    matrix = np.zeros((len(rows), len(column)))
    for row, features in enumerate(rows):
        for feature, value in features.items():
            matrix[row, column[feature]] = value
    return matrix
