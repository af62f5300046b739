"""Turn rules' smoothed third moments into few rank-one terms, with few dense tensors at a time.

With μ₁ the mean of a rule's Z, d₁ = Z − μ₁, Cov₁₂ the mean of d₁⊗d₂ and T that of d₁⊗d₂⊗d₃ (and so
on), NAACL 3.2's estimate is

    S = A μ₁μ₂μ₃ + B (Cov₁₂μ₃ + Cov₁₃μ₂ + μ₁Cov₂₃) + λT + (1−λ)³ HFF,
    A = 1 − (1−λ)³,   B = λ(1 + (1−λ)/3),

and the n examples, shrunk to uμ + vd with u³ = A and uv² = B, have the third moment

    A μ₁μ₂μ₃ + B (Cov₁₂μ₃ + Cov₁₃μ₂ + μ₁Cov₂₃) + v³T.

So n + 1 terms, the shrunk examples and HFF, equal S up to (λ − v³)T. This is exact for n ≤ 2, where
T = 0, and without smoothing, where v = λ = 1. For a rule seen more often than it may have terms,
the examples are clustered, and a few sweeps of alternating least squares move the clusters' means
towards S. A tensor that is thin in two directions is kept as its fibres.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

from lpcfg.grammar.tables import Doubles, Floats, Grammar, Ints, Longs, Tables
from lpcfg.training.estimators.moments import Occurrences, Sides, Smoothing

CLUSTER_ROUNDS = 3
BATCH_NUMBERS = 1 << 20
"""Numbers in the tensors that are fitted together: 4 MB in single precision, for the cache."""
GRAIN = 8
"""Tensors are fitted together if their shapes agree after rounding up to a multiple of this.

The zeros that are added change no least squares solution.
"""
RIDGE = 1e-9
"""Added to normal equations, relative to their mean diagonal, so that equal terms are harmless."""
FEW = 64
"""Rules kept as fibres that make one task."""


@dataclass(frozen=True)
class Compaction:
    """The most terms per rule, and the number of sweeps of alternating least squares."""

    terms: int
    sweeps: int


@dataclass(frozen=True, eq=False)
class CompactReport:
    """The result per symbol and rule.

    states[a] is m_a, terms[r] is K_r, and error[r] the relative distance of the terms from C.
    """

    states: Ints
    terms: Ints
    error: Doubles

    def facts(self, grammar: Grammar) -> dict[str, object]:
        """Return the report as facts for a manifest."""
        del grammar
        return {
            "states": self.states.tolist(),
            "terms": int(self.terms.sum()),
            "mean_term_error": float(self.error.mean()) if len(self.error) else 0.0,
            "largest_term_error": float(self.error.max(initial=0.0)),
        }


def tables_of(
    occurrences: Occurrences,
    smoothing: Smoothing,
    compaction: Compaction,
    *,
    workers: int,
) -> tuple[Tables, Doubles]:
    """Build the tables of projected trees.

    Also return each rule's relative error of C (0 if exact).
    """
    grammar, states = occurrences.examples.grammar, occurrences.states
    terms = compact(occurrences, smoothing, compaction, workers=workers)
    directions, roots = occurrences.terminal_directions(smoothing), occurrences.root_vectors()
    error = np.zeros(grammar.n_rules)
    error[terms.rules] = terms.error
    sides = [
        flat(rows, states[grammar.rules[terms.rule, side]]) for side, rows in enumerate(terms.sides)
    ]
    dtype = occurrences.dtype
    tables = Tables(
        grammar=grammar,
        states=states,
        terms=np.bincount(terms.rule, minlength=grammar.n_rules).astype(np.int32),
        parent=sides[0],
        left=sides[1],
        right=sides[2],
        c_inf=flat(directions.astype(dtype), states[grammar.entries[:, 0]]),
        c_one=flat(roots.astype(dtype), states),
    )
    return tables, error


def flat(rows: Floats, length: Ints) -> Floats:
    """Join the first length[k] numbers of every row k."""
    joined: Floats = rows[np.arange(rows.shape[1]) < length[:, None]]
    return joined


@dataclass(frozen=True, eq=False)
class Terms:
    """C of some rules, as terms.

    `rule[t]` is the rule of term t, whose three vectors are rows t of `sides`, padded with zeros.
    `error[k]` is ‖terms − C‖ / ‖C‖ of the rule `rules[k]`.
    """

    rules: Longs
    error: Doubles
    rule: Longs
    sides: Sides


def compact(
    occurrences: Occurrences, smoothing: Smoothing, compaction: Compaction, *, workers: int
) -> Terms:
    """Compute C = count(a → b c) / count(a) · S of every rule that occurs, in the grammar's order.

    The tasks do not depend on the number of workers, so that number does not change a byte.
    """
    tasks = list(_tasks(occurrences, smoothing, compaction))
    with ThreadPoolExecutor(workers) as pool:
        parts = list(pool.map(lambda task: task(), tasks))
    width, dtype = occurrences.width, occurrences.dtype
    rules = np.concatenate([np.empty(0, np.int64), *(part.rules for part in parts)])
    error = np.concatenate([np.empty(0), *(part.error for part in parts)])
    rule = np.concatenate([np.empty(0, np.int64), *(part.rule for part in parts)])
    by_rule, by_term = np.argsort(rules), np.argsort(rule, kind="stable")
    sides = []
    for side in range(3):
        rows = [np.empty((0, width)), *(part.sides[side] for part in parts)]
        sides.append(np.concatenate(rows)[by_term].astype(dtype))
    return Terms(rules[by_rule], error[by_rule], rule[by_term], (sides[0], sides[1], sides[2]))


def _tasks(
    occurrences: Occurrences, smoothing: Smoothing, compaction: Compaction
) -> Iterator[Callable[[], Terms]]:
    """Yield tasks that together cover every rule that occurs. The long tasks come first."""
    n = occurrences.count
    shapes = occurrences.states[occurrences.examples.grammar.rules].astype(np.int64)
    fibres = shapes.prod(axis=1) // shapes.max(axis=1, initial=1)
    terms = n + (smoothing.rule > 0)
    is_rare = terms <= compaction.terms
    is_thin = fibres <= np.minimum(terms, compaction.terms)
    for rules, shape in _batches(np.flatnonzero((n > 0) & ~is_rare & ~is_thin), occurrences):
        yield partial(_fitted, occurrences, smoothing, compaction, rules, shape)
    thin = np.flatnonzero((n > 0) & is_thin)
    for k in range(0, len(thin), FEW):
        yield partial(_fibres, occurrences, smoothing, thin[k : k + FEW])
    rare = np.flatnonzero((n > 0) & is_rare & ~is_thin)
    for size in np.unique(n[rare]).tolist():
        yield partial(_examples, occurrences, smoothing, rare[n[rare] == size], size)


def _batches(
    rules: Longs, occurrences: Occurrences
) -> Iterator[tuple[Longs, tuple[int, int, int]]]:
    """Group rules whose tensors are fitted together. Yield each group and its padded shape."""
    shapes = occurrences.states[occurrences.examples.grammar.rules[rules]].astype(np.int64)
    shapes = np.minimum(-(-shapes // GRAIN) * GRAIN, occurrences.width)
    order = np.lexsort(shapes.T)
    cuts = np.flatnonzero(np.diff(shapes[order], axis=0).any(axis=1)) + 1
    for group in np.split(order, cuts):
        if len(group):
            p, q, r = shapes[group[0]].tolist()
            step = max(1, BATCH_NUMBERS // (p * q * r))
            for k in range(0, len(group), step):
                yield rules[group[k : k + step]], (p, q, r)


def _terms(
    occurrences: Occurrences, rules: Longs, error: Doubles, rule: Longs, sides: Sides
) -> Terms:
    """Scale terms of S by count(a → b c) / count(a), and give a term's vectors the same length."""
    norms = [np.sqrt(np.einsum("ti,ti->t", side, side, dtype=np.float64)) for side in sides]
    share = occurrences.share[rule]
    length = np.cbrt(share * norms[0] * norms[1] * norms[2])
    width = occurrences.width
    balanced = []
    for side, norm in zip(sides, norms, strict=True):
        scale = np.divide(length, norm, out=np.zeros_like(norm), where=norm > 0)
        padded = np.zeros((len(side), width))
        padded[:, : side.shape[1]] = side * scale[:, None]
        balanced.append(padded)
    return Terms(rules, error, rule, (balanced[0], balanced[1], balanced[2]))


# Rules seen rarely: shrunk examples ---------------------------------------------------------------


def shrinkage(weight: Doubles | float) -> tuple[Doubles, Doubles]:
    """Compute u and v for λ = weight."""
    rest = 1.0 - np.asarray(weight, np.float64)
    first = 1.0 - rest**3
    second = weight * (1.0 + rest / 3.0)
    u = np.cbrt(first)
    v = np.sqrt(np.divide(second, u, out=np.zeros_like(u), where=u > 0))
    return u, v


def _examples(occurrences: Occurrences, smoothing: Smoothing, rules: Longs, n: int) -> Terms:
    """Return the shrunk examples of rules seen n times each, and their HFF."""
    weight = float(smoothing.rule_weight(n))
    u, v = shrinkage(weight)
    rows = (occurrences.start[rules][:, None] + np.arange(n)).ravel()
    deviations, sides = [], []
    for side, tail in zip(occurrences.sides, occurrences.tail(rules), strict=True):
        examples = side[rows].reshape(len(rules), n, -1).astype(np.float64)
        mean = examples.mean(axis=1, keepdims=True)
        deviations.append(examples - mean)
        shrunk = u * mean + v * deviations[-1]
        sides.append(np.concatenate([shrunk, tail[:, None]], axis=1) if weight < 1 else shrunk)
    scale = np.full(sides[0].shape[1], 1.0 / n)
    scale[n:] = (1.0 - weight) ** 3
    sides[0] *= scale[:, None]
    deviations[0] *= (weight - v**3) / n
    error = _relative(deviations, sides)
    rule = np.repeat(rules, len(scale))
    width = occurrences.width
    parent, left, right = (side.reshape(-1, width) for side in sides)
    return _terms(occurrences, rules, error, rule, (parent, left, right))


def _relative(rest: list[Doubles], terms: list[Doubles]) -> Doubles:
    """Compute ‖rest‖ / ‖terms + rest‖ for a batch, both being sums of products of rows."""
    squared = _inner(rest, rest)
    whole = squared + 2 * _inner(rest, terms) + _inner(terms, terms)
    ratio = np.divide(squared, whole, out=np.zeros_like(whole), where=whole > 0)
    return np.sqrt(np.maximum(ratio, 0.0))


def _inner(left: list[Doubles], right: list[Doubles]) -> Doubles:
    products = np.ones((1, 1, 1))
    for a, b in zip(left, right, strict=True):
        products = products * (a @ np.swapaxes(b, 1, 2))
    total: Doubles = products.sum(axis=(1, 2))
    return total


# Thin tensors: fibres -----------------------------------------------------------------------------


def _fibres(occurrences: Occurrences, smoothing: Smoothing, rules: Longs) -> Terms:
    """Return S itself, as its longest fibres times unit vectors."""
    width = occurrences.width
    unit = np.eye(width)
    rows: list[list[Floats]] = [[], [], []]
    size = []
    for r in rules.tolist():
        shape = occurrences.shape(r)
        tensor = occurrences.smoothed(r, occurrences.sums_of(r), smoothing)
        axis = int(np.argmax(shape))
        second_axis, third_axis = (k for k in range(3) if k != axis)
        fibres = np.zeros((shape[second_axis] * shape[third_axis], width))
        fibres[:, : shape[axis]] = np.moveaxis(tensor, axis, 2).reshape(len(fibres), -1)
        second, third = np.divmod(np.arange(len(fibres)), shape[third_axis])
        rows[axis].append(fibres)
        rows[second_axis].append(unit[second])
        rows[third_axis].append(unit[third])
        size.append(len(fibres))
    parent, left, right = (np.concatenate(side) for side in rows)
    rule = np.repeat(rules, size)
    return _terms(occurrences, rules, np.zeros(len(rules)), rule, (parent, left, right))


# All others: clusters of shrunk examples, then alternating least squares --------------------------


def _fitted(
    occurrences: Occurrences,
    smoothing: Smoothing,
    compaction: Compaction,
    rules: Longs,
    shape: tuple[int, int, int],
) -> Terms:
    target = np.zeros((len(rules), *shape), occurrences.dtype)
    lefts, rights = (np.zeros((len(rules), compaction.terms, m)) for m in shape[1:])
    for k, r in enumerate(rules.tolist()):
        p, q, s = occurrences.shape(r)
        sums = occurrences.sums_of(r)
        weight = float(smoothing.rule_weight(sums.n))
        n_centres = compaction.terms - (weight < 1)
        left, right = _centres(occurrences.kept(r), sums.means, shrinkage(weight), n_centres)
        target[k, :p, :q, :s] = occurrences.smoothed(r, sums, smoothing)
        lefts[k, :n_centres, :q], rights[k, :n_centres, :s] = left, right
        if weight < 1:
            _, f, g = occurrences.tail(np.array([r]))
            lefts[k, -1, :q], rights[k, -1, :s] = f[0, :q], g[0, :s]
    parent, left, right = least_squares(target, lefts, rights, compaction.sweeps)
    error = _distance(target, parent, left, right)
    rule = np.repeat(rules, compaction.terms)
    parent, left, right = (side.reshape(-1, side.shape[2]) for side in (parent, left, right))
    return _terms(occurrences, rules, error, rule, (parent, left, right))


def _centres(
    sides: Sides,
    means: tuple[Doubles, Doubles, Doubles],
    uv: tuple[Doubles, Doubles],
    n_centres: int,
) -> tuple[Doubles, Doubles]:
    """Find the children's parts of the means of clusters of shrunk examples (Lloyd's algorithm).

    `sides` are some examples; `means` are those of all.
    """
    u, v = uv
    shrunk, scale = [], []
    for side, mean in zip(sides, means, strict=True):
        shrunk.append(u * mean + v * (side - mean))
        scale.append(float(np.sqrt((shrunk[-1] ** 2).mean())) or 1.0)
    points = np.concatenate([side / s for side, s in zip(shrunk, scale, strict=True)], axis=1)
    centres = points[np.linspace(0, len(points) - 1, n_centres).astype(np.int64)]
    for _ in range(CLUSTER_ROUNDS):
        nearest = np.argmax(points @ centres.T - 0.5 * (centres**2).sum(axis=1), axis=1)
        member = (nearest == np.arange(n_centres)[:, None]).astype(np.float64)
        size = member.sum(axis=1, keepdims=True)
        centres = np.where(size > 0, member @ points / np.maximum(size, 1.0), centres)
    p, q = sides[0].shape[1], sides[0].shape[1] + sides[1].shape[1]
    return centres[:, p:q] * scale[1], centres[:, q:] * scale[2]


def least_squares(
    tensors: Floats, left: Doubles, right: Doubles, sweeps: int
) -> tuple[Doubles, Doubles, Doubles]:
    """Fit terms to a batch of tensors, (batch, terms, m) each, starting from left and right sides.

    This is alternating least squares: each sweep solves for every side in turn, given the other
    two.
    """
    batch, p, q, r = tensors.shape
    n_terms = left.shape[1]
    by_right = np.swapaxes(tensors.reshape(batch, p * q, r), 1, 2)
    by_parent = tensors.reshape(batch, p, q * r)
    parent = np.empty((batch, n_terms, p))
    for _ in range(sweeps):
        partial_sums = (right.astype(tensors.dtype) @ by_right).reshape(batch, n_terms, p, q)
        parent = _unit(_solved(left, right, partial_sums @ _columns(left, tensors)))
        across = np.swapaxes(partial_sums, 2, 3)
        left = _unit(_solved(parent, right, across @ _columns(parent, tensors)))
        partial_sums = (parent.astype(tensors.dtype) @ by_parent).reshape(batch, n_terms, q, r)
        across = np.swapaxes(partial_sums, 2, 3)
        right = _solved(parent, left, across @ _columns(left, tensors))
    return parent, left, right


def _columns(side: Doubles, like: Floats) -> Floats:
    return side[..., None].astype(like.dtype)


def _solved(first: Doubles, second: Doubles, products: Floats) -> Doubles:
    """Solve the normal equations for the third side of every term."""
    gram = (first @ np.swapaxes(first, 1, 2)) * (second @ np.swapaxes(second, 1, 2))
    n_terms = gram.shape[1]
    ridge = RIDGE * np.trace(gram, axis1=1, axis2=2) / n_terms
    # For a tensor of zeros, any ridge will do.
    damped = gram + np.where(ridge > 0, ridge, 1.0)[:, None, None] * np.eye(n_terms)
    return np.asarray(np.linalg.solve(damped, products[..., 0]), np.float64)


def _unit(side: Doubles) -> Doubles:
    norm = np.linalg.norm(side, axis=2, keepdims=True)
    unit: Doubles = np.divide(side, norm, out=np.zeros_like(side), where=norm > 0)
    return unit


def _distance(tensors: Floats, parent: Doubles, left: Doubles, right: Doubles) -> Doubles:
    """Compute ‖terms − tensor‖ / ‖tensor‖ of every tensor of a batch."""
    batch, p = tensors.shape[:2]
    flat = tensors.reshape(batch, p, -1)
    dtype = tensors.dtype
    pairs = left.astype(dtype)[..., :, None] * right.astype(dtype)[..., None, :]
    carried = np.swapaxes(parent, 1, 2).astype(dtype) @ pairs.reshape(batch, parent.shape[1], -1)
    missed = np.linalg.norm(carried - flat, axis=(1, 2))
    whole = np.linalg.norm(flat, axis=(1, 2))
    ratio: Doubles = np.divide(missed, whole, out=np.zeros_like(whole), where=whole > 0)
    return ratio.astype(np.float64)
