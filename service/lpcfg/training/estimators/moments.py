"""Means of projected trees, smoothed (NAACL 3.2), from which C, c∞ and c¹ are made.

A projection gives every node v a vector Y(v) of its inside tree and Z(v) of its outside tree. It
comes from a singular value decomposition, from clusters, or from another source; here vectors are
only averaged. `compact` turns the third moments of rules into tables.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lpcfg.base.executors import reduce_tree
from lpcfg.grammar.tables import Doubles, Floats, Ints, Longs
from lpcfg.training.data.examples import Examples
from lpcfg.training.data.shards import Shard, shards_of
from lpcfg.training.data.treebank import Bools

KEPT = 512
"""Examples of a rule that are kept. A rule seen more often is known by them and by sums."""
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

    def part(self, nodes: slice) -> "Projection":
        """Return Y and Z of some nodes."""
        return Projection(self.symbol[nodes], self.states, self.inside[nodes], self.outside[nodes])


def group_sums(vectors: Floats, group: Ints | Longs, n_groups: int) -> Doubles:
    """Sum the vectors of every group in double precision. Negative groups are ignored."""
    order = np.argsort(group, kind="stable")
    start = np.searchsorted(group[order], np.arange(n_groups + 1))
    seen = np.flatnonzero(np.diff(start))
    result = np.zeros((n_groups, vectors.shape[1]))
    if len(seen):
        members = vectors[order[start[0] :]]
        result[seen] = np.add.reduceat(members, start[seen] - start[0], axis=0, dtype=np.float64)
    return result


def _means(sums: Doubles, count: Longs) -> Doubles:
    """Divide sums by counts, where there are any; sums of nothing stay 0."""
    means: Doubles = sums / np.maximum(count, 1)[:, None]
    return means


@dataclass(frozen=True)
class Smoothing:
    """The constants C in the weights √n / (C + √n) of an estimate from n examples.

    C = 0 does not smooth.
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


# Sums over nodes ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RuleSums:
    """Sums over a rule's examples, in double precision: of their number, of z, y₂ and y₃, of the
    products of two of these, (z, y₂), (z, y₃) and (y₂, y₃), and of z⊗y₂⊗y₃.
    """

    n: int
    first: tuple[Doubles, Doubles, Doubles]
    second: tuple[Doubles, Doubles, Doubles]
    third: Doubles

    @classmethod
    def of(cls, sides: Sides) -> "RuleSums":
        z, left, right = (side.astype(np.float64) for side in sides)
        first = (z.sum(axis=0), left.sum(axis=0), right.sum(axis=0))
        second = (z.T @ left, z.T @ right, left.T @ right)
        return cls(len(z), first, second, third_moment(sides))

    def plus(self, other: "RuleSums") -> "RuleSums":
        first, second = (
            tuple(mine + its for mine, its in zip(ours, theirs, strict=True))
            for ours, theirs in ((self.first, other.first), (self.second, other.second))
        )
        return RuleSums(self.n + other.n, first, second, self.third + other.third)  # type: ignore[arg-type]

    @property
    def means(self) -> tuple[Doubles, Doubles, Doubles]:
        """The means of z, y₂ and y₃."""
        z, left, right = (side / self.n for side in self.first)
        return z, left, right

    def smoothed(self, tail: tuple[Doubles, Doubles, Doubles], weight: float) -> Doubles:
        """Compute λE + (1−λ)(λE² + (1−λ)(λE³ + (1−λ)E⁴)) with λ = weight.

        E is the mean of z⊗y₂⊗y₃. E² averages three products, each of a pair's mean and the third's
        mean. E³ is the product of the three means. E⁴ is the product of the symbols' means H, F, F
        (`tail`).
        """
        n, rest = self.n, 1.0 - weight
        first, second, third = self.means
        result = self.third * (weight / n)
        pairs = weight * rest / (3.0 * n)
        result += pairs * self.second[0][:, :, None] * third
        result += pairs * self.second[1][:, None, :] * second[:, None]
        result += pairs * self.second[2] * first[:, None, None]
        result += weight * rest**2 * np.einsum("i,j,k->ijk", first, second, third)
        result += rest**3 * np.einsum("i,j,k->ijk", *tail)
        return result


def third_moment(sides: Sides) -> Doubles:
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
    return total.reshape(shape)


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over nodes that tables need, and the examples of rules themselves, up to KEPT a rule.

    `inside` and `outside` are sums of Y and Z by symbol, `roots` sums of the roots' Y by symbol,
    and `entries` sums of Z by entry. Kept example e has rule `rule[e]` and rows e of `sides`;
    kept examples are evenly spaced among all of the rule. `common` has the rules seen more often.
    """

    inside: Doubles
    outside: Doubles
    roots: Doubles
    entries: Doubles
    rule: Ints
    sides: Sides
    common: Mapping[int, RuleSums]

    @classmethod
    def of(cls, shard: Shard, projection: Projection) -> "Sums":
        """Sum over the nodes of a shard."""
        examples, symbol = shard.examples, projection.symbol
        n_symbols, roots = len(projection.states), examples.forest.roots
        order = np.flatnonzero(examples.node_rule >= 0)
        order = order[np.argsort(examples.node_rule[order], kind="stable")]
        rule = examples.node_rule[order]
        kept = _kept(rule, shard)
        return cls(
            inside=group_sums(projection.inside, symbol, n_symbols),
            outside=group_sums(projection.outside, symbol, n_symbols),
            roots=group_sums(projection.inside[roots], symbol[roots], n_symbols),
            entries=group_sums(
                projection.outside, examples.node_entry, len(examples.grammar.entries)
            ),
            rule=rule[kept],
            sides=_sides(examples, projection, order[kept]),
            common=_common(shard, projection, order, rule),
        )

    def merged(self, other: "Sums") -> "Sums":
        """Add the sums of later nodes."""
        sides = [np.concatenate(both) for both in zip(self.sides, other.sides, strict=True)]
        shared = self.common.keys() & other.common.keys()
        return Sums(
            self.inside + other.inside,
            self.outside + other.outside,
            self.roots + other.roots,
            self.entries + other.entries,
            np.concatenate([self.rule, other.rule]),
            (sides[0], sides[1], sides[2]),
            {
                **self.common,
                **other.common,
                **{r: self.common[r].plus(other.common[r]) for r in shared},
            },
        )


def _kept(rule: Ints, shard: Shard) -> Bools:
    """Tell which of a shard's occurrences of rules, sorted by rule, are among those KEPT."""
    first = np.searchsorted(rule, rule)
    place = shard.before[rule] + np.arange(len(rule)) - first
    last, gaps = shard.count[rule] - 1, KEPT - 1
    nearest = -(-place * gaps // np.maximum(last, 1))
    kept: Bools = (last < KEPT) | (nearest * last // gaps == place)
    return kept


def _common(shard: Shard, projection: Projection, order: Longs, rule: Ints) -> dict[int, RuleSums]:
    """Sum over the occurrences of rules that are seen more than KEPT times in all."""
    sums = {}
    own, first, size = np.unique(rule, return_index=True, return_counts=True)
    for r, k, n in zip(own.tolist(), first.tolist(), size.tolist(), strict=True):
        if shard.count[r] > KEPT:
            shape = projection.states[shard.examples.grammar.rules[r]]
            sides = _sides(shard.examples, projection, order[k : k + n])
            sums[r] = RuleSums.of(_cut(sides, shape))
    return sums


def _sides(examples: Examples, projection: Projection, nodes: Longs) -> Sides:
    """Return Z of nodes, and Y of their left and of their right children."""
    return (
        projection.outside[nodes],
        projection.inside[examples.forest.left[nodes]],
        projection.inside[examples.forest.right[nodes]],
    )


def _cut(sides: Sides, shape: Sequence[int] | Ints) -> Sides:
    """Take the first numbers of every row: as many as parent and children have states."""
    z, left, right = (side[:, :m] for side, m in zip(sides, shape, strict=True))
    return z, left, right


# Means of all nodes -------------------------------------------------------------------------------


class Occurrences:
    """The occurrences of rules, symbols and entries in a treebank, and what they average.

    The kept occurrences of rule r are rows start[r] : start[r + 1] of `sides`.
    """

    def __init__(self, examples: Examples, states: Ints, sums: Sums) -> None:
        grammar, forest = examples.grammar, examples.forest
        rule, entry = examples.node_rule, examples.node_entry
        self.examples, self.states, self.sums = examples, states, sums
        self.count = np.bincount(rule[rule >= 0], minlength=grammar.n_rules)
        self._of_symbol = np.bincount(forest.symbol, minlength=grammar.n_symbols)
        self._of_entry = np.bincount(entry[entry >= 0], minlength=len(grammar.entries))
        order = np.argsort(sums.rule, kind="stable")
        self.start = np.searchsorted(sums.rule[order], np.arange(grammar.n_rules + 1))
        z, left, right = (side[order] for side in sums.sides)
        self.sides: Sides = (z, left, right)
        self.mean_inside = _means(sums.inside, self._of_symbol)
        """F of every symbol, the mean of Y; 0 for a symbol never seen."""
        self.mean_outside = _means(sums.outside, self._of_symbol)
        """H of every symbol, the mean of Z; 0 for a symbol never seen."""

    @classmethod
    def of(cls, examples: Examples, projection: Projection) -> "Occurrences":
        """Sum up projected nodes."""
        parts = (Sums.of(shard, projection.part(shard.nodes)) for shard in shards_of(examples))
        return cls(examples, projection.states, reduce_tree(parts, Sums.merged))

    @property
    def width(self) -> int:
        """The length of a row, which is the largest m_a."""
        return int(self.sums.inside.shape[1])

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """The precision of Y and Z."""
        return self.sides[0].dtype

    @property
    def share(self) -> Doubles:
        """count(a → b c) / count(a) of every rule, 0 for a rule never seen."""
        of_parent = self._of_symbol[self.examples.grammar.rules[:, 0]]
        share: Doubles = self.count / np.maximum(of_parent, 1)
        return share

    def shape(self, r: int) -> tuple[int, int, int]:
        """Return the states of a rule's parent and children."""
        p, q, s = self.states[self.examples.grammar.rules[r]].tolist()
        return p, q, s

    def kept(self, r: int) -> Sides:
        """Return the kept examples of a rule: all, or KEPT evenly spaced."""
        rows = slice(self.start[r], self.start[r + 1])
        z, left, right = (side[rows] for side in self.sides)
        return _cut((z, left, right), self.shape(r))

    def tail(self, rules: Longs | Ints) -> tuple[Doubles, Doubles, Doubles]:
        """Return H of rules' parents, and F of their left and of their right children."""
        a, b, c = self.examples.grammar.rules[rules].T
        return self.mean_outside[a], self.mean_inside[b], self.mean_inside[c]

    def sums_of(self, r: int) -> RuleSums:
        """Return the sums over all examples of a rule."""
        return self.sums.common.get(r) or RuleSums.of(self.kept(r))

    def smoothed(self, r: int, sums: RuleSums, smoothing: Smoothing) -> Doubles:
        """Compute the smoothed third moment of a rule with these sums."""
        h, f, g = _cut(self.tail(np.array([r])), self.shape(r))
        return sums.smoothed((h[0], f[0], g[0]), float(smoothing.rule_weight(sums.n)))

    def terminal_directions(self, smoothing: Smoothing) -> Doubles:
        """Compute νE^{a→x} + (1−ν)H^a of every entry a → x: the direction of its c∞, in rows like
        Z's.

        An entry that no leaf has, like a → ANY, gets H^a.
        """
        weight = smoothing.lexical_weight(self._of_entry)[:, None]
        own = _means(self.sums.entries, self._of_entry)
        parents = self.examples.grammar.entries[:, 0]
        return weight * own + (1.0 - weight) * self.mean_outside[parents]

    def root_vectors(self) -> Doubles:
        """Compute c¹ of every symbol: the sum of Y over roots / the number of trees, in rows like
        Y's.

        Preterminals have one too, because a sentence may be one word.
        """
        return self.sums.roots / self.examples.forest.n_trees
