"""Means of projected trees, smoothed (NAACL 3.2), from which C, c∞ and c¹ are made.

A projection gives every node v a vector Y(v) of its inside tree and Z(v) of its outside tree. It
comes from a singular value decomposition, from clusters, or from another source; here vectors are
only averaged. `compact` turns the third moments of rules into tables.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lpcfg.grammar.tables import Doubles, Floats, Ints, Longs, frozen
from lpcfg.train.data.examples import Examples
from lpcfg.train.data.treebank import Forest

BLOCK = 512
"""The most products that are added in single precision."""
Sides = tuple[Floats, Floats, Floats]
"""Values for the parent, the left and the right child."""


@dataclass(frozen=True, eq=False)
class Projection:
    """Y and Z of every node: row v of `inside` and `outside` has m_a numbers, then zeros."""

    symbol: Ints
    states: Ints
    inside: Floats
    outside: Floats

    @property
    def width(self) -> int:
        """The length of a row, which is the largest m_a."""
        return int(self.inside.shape[1])

    @cached_property
    def count(self) -> Longs:
        """count(a) of every symbol."""
        return frozen(np.bincount(self.symbol, minlength=len(self.states)).astype(np.int64))

    @cached_property
    def mean_inside(self) -> Doubles:
        """F of every symbol, the mean of Y; 0 for a symbol never seen."""
        return group_means(self.inside, self.symbol, len(self.states))

    @cached_property
    def mean_outside(self) -> Doubles:
        """H of every symbol, the mean of Z; 0 for a symbol never seen."""
        return group_means(self.outside, self.symbol, len(self.states))


def group_means(vectors: Floats, group: Ints | Longs, n_groups: int) -> Doubles:
    """Compute the mean vector of every group, 0 for an empty one. Negative groups are ignored."""
    order = np.argsort(group, kind="stable")
    start = np.searchsorted(group[order], np.arange(n_groups + 1))
    size = np.diff(start)
    seen = np.flatnonzero(size)
    result = np.zeros((n_groups, vectors.shape[1]))
    if len(seen):
        members = vectors[order[start[0] :]]
        sums = np.add.reduceat(members, start[seen] - start[0], axis=0, dtype=np.float64)
        result[seen] = sums / size[seen, None]
    return result


@dataclass(frozen=True)
class Smoothing:
    """The constants C in the weights √n / (C + √n) of an estimate from n examples.

    C = 0 trusts it.
    """

    rule: float
    lexical: float

    def rule_weight(self, n: Longs | int) -> Doubles:
        """Compute λ of a rule seen n times."""
        return _weight(n, self.rule)

    def lexical_weight(self, n: Longs | int) -> Doubles:
        """Compute ν of an entry seen n times."""
        return _weight(n, self.lexical)


def _weight(n: Longs | int, constant: float) -> Doubles:
    root = np.sqrt(np.asarray(n, np.float64))
    # An entry never seen has no mean of its own, even without smoothing.
    return np.divide(root, constant + root, out=np.zeros_like(root), where=root > 0)


@dataclass(frozen=True, eq=False)
class Occurrences:
    """The occurrences of rules: nodes[start[r] : start[r + 1]] have rule r."""

    examples: Examples
    projection: Projection
    nodes: Longs
    start: Longs

    @classmethod
    def of(cls, examples: Examples, projection: Projection) -> "Occurrences":
        order = np.argsort(examples.node_rule, kind="stable")
        first = np.arange(examples.grammar.n_rules + 1)
        start = np.searchsorted(examples.node_rule[order], first).astype(np.int64)
        return cls(examples, projection, frozen(order), frozen(start))

    @cached_property
    def count(self) -> Longs:
        """count(a → b c) of every rule."""
        return frozen(np.diff(self.start))

    @cached_property
    def share(self) -> Doubles:
        """count(a → b c) / count(a) of every rule, 0 for a rule never seen."""
        of_parent = self.projection.count[self.examples.grammar.rules[:, 0]]
        share: Doubles = self.count / np.maximum(of_parent, 1)
        return share

    def sides(self, nodes: Longs) -> Sides:
        """Return Z of nodes, and Y of their left and of their right children."""
        outside, inside = self.projection.outside, self.projection.inside
        return (
            outside[nodes],
            inside[self.examples.forest.left[nodes]],
            inside[self.examples.forest.right[nodes]],
        )

    def tail(self, rules: Longs | Ints) -> tuple[Doubles, Doubles, Doubles]:
        """Return H of rules' parents, and F of their left and of their right children."""
        a, b, c = self.examples.grammar.rules[rules].T
        inside = self.projection.mean_inside
        return self.projection.mean_outside[a], inside[b], inside[c]


def third_moment(sides: Sides) -> Floats:
    """Sum z⊗y₂⊗y₃ over examples.

    Products are added in the numbers' own precision within a block, and in double precision over
    blocks: with blocks of 32,768, sums of single numbers were wrong by up to 3e-4.
    """
    parent, left, right = sides
    shape = (parent.shape[1], left.shape[1], right.shape[1])
    total = np.zeros((shape[0], shape[1] * shape[2]))
    step = min(BLOCK, max(1, (1 << 17) // max(1, total.shape[1])))  # products stay in the cache
    for k in range(0, len(parent), step):
        pairs = left[k : k + step, :, None] * right[k : k + step, None, :]
        total += parent[k : k + step].T @ pairs.reshape(-1, total.shape[1])
    return total.reshape(shape).astype(parent.dtype)


def _second_moment(one: Floats, other: Floats) -> Floats:
    """Sum y⊗y' over examples, in double precision."""
    total: Floats = one.astype(np.float64).T @ other.astype(np.float64)
    return total.astype(one.dtype)


def smoothed(sides: Sides, tail: tuple[Doubles, Doubles, Doubles], weight: float) -> Floats:
    """Compute λE + (1−λ)(λE² + (1−λ)(λE³ + (1−λ)E⁴)) of a rule's examples, with λ = weight.

    E is the mean of z⊗y₂⊗y₃. E² averages three products, each of a pair's mean and the third's
    mean. E³ is the product of the three means. E⁴ is the product of the symbols' means H, F, F
    (`tail`).
    """
    n = len(sides[0])
    first, second, third = (side.mean(axis=0, dtype=np.float64) for side in sides)
    parent, left, right = sides
    rest = 1.0 - weight
    result = third_moment(sides) * (weight / n)
    pairs = weight * rest / (3.0 * n)
    result += pairs * _second_moment(parent, left)[:, :, None] * third
    result += pairs * _second_moment(parent, right)[:, None, :] * second[:, None]
    result += pairs * _second_moment(left, right) * first[:, None, None]
    result += weight * rest**2 * np.einsum("i,j,k->ijk", first, second, third)
    result += rest**3 * np.einsum("i,j,k->ijk", *tail)
    return result


def terminal_directions(
    examples: Examples, projection: Projection, smoothing: Smoothing
) -> Doubles:
    """Compute νE^{a→x} + (1−ν)H^a of every entry a → x: the direction of its c∞, in rows like Z's.

    An entry that no leaf has, like a → ANY, gets H^a.
    """
    grammar, node_entry = examples.grammar, examples.node_entry
    n_entries = len(grammar.entries)
    counts = np.bincount(node_entry[node_entry >= 0], minlength=n_entries)
    weight = smoothing.lexical_weight(counts)[:, None]
    own = group_means(projection.outside, node_entry, n_entries)
    return weight * own + (1.0 - weight) * projection.mean_outside[grammar.entries[:, 0]]


def root_vectors(forest: Forest, projection: Projection) -> Doubles:
    """Compute c¹ of every symbol: the sum of Y over roots / the number of trees, in rows like Y's.

    Preterminals have one too, because a sentence may be one word.
    """
    symbol = forest.symbol[forest.roots]
    means = group_means(projection.inside[forest.roots], symbol, len(projection.states))
    share = np.bincount(symbol, minlength=len(projection.states)) / forest.n_trees
    return means * share[:, None]
