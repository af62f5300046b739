"""The pivot algorithm (ACL14, figure 1), with several features a node (section 6.2).

    project         φ, ψ → Y, Z of every node: the CCA of section 5.2
    decompose       per symbol: find pivots among inside features f by v_f = E[Z | f], which gives
                    p(h | f) and r(f | h); the same with outside features g and E[Y | g], which
                    gives s(g | h'); then match the states h' with the states h (figure 2)
    joint_states    per rule: find t(h₁, h₂, h₃ | a → b c), which maximises the concave
                    Σ log Σ_h t(h₁, h₂, h₃) s(g | h₁) r(f₂ | h₂) r(f₃ | h₃)
    positive_terms  write t as a mixture of few terms
    maximised       normalise (step 3), and smooth

q and π are those of section 6.1: the words of a preterminal are inside features, and being a root
is an outside feature. All results are expected counts, as in EM, so they go through EM's M-step,
and EM may continue from there. No number is negative.

r and s sum to one over each feature template. Section 6.2 sums the objective over all 392 triples
of templates. Here each template is in at least one triple, and the objective is still concave.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import scipy.sparse
from threadpoolctl import threadpool_limits

from lpcfg.grammar.tables import Doubles, Floats, Ints, Longs, Tables
from lpcfg.training.data.features import Features, NodeArrays, Side
from lpcfg.training.data.treebank import Forest
from lpcfg.training.estimators.em import (
    Corpus,
    EmReport,
    Mixture,
    Numbers,
    Shape,
    climb,
    maximised,
    numbers_of_terms,
)
from lpcfg.training.estimators.inputs import EstimatorInputs, check_least
from lpcfg.training.estimators.pivot_decomposition import (
    align_states,
    conditional_means,
    convex_weights,
    find_pivots,
)
from lpcfg.training.estimators.spectral import SpectralConfig, project

EXAMPLES_A_RULE = 512
"""Occurrences of a rule that its t is estimated from, evenly spaced.

Four times as many take three times as long and gain 0.2 F1 on craft/dev.
"""
ALIGNED_BY = 200
"""Features of either side that align states: the most frequent. The others count as one."""
ALIGNMENT_STEPS = 50
SETTLED = 1e-6
"""EM over few samples need not go further: the counts behind it have three digits."""
SAME_PLANE = 1e-4
"""Singular values of the candidates' points below this share of the first are rounding errors.

This is a thousand times the rounding of single precision.
"""


@dataclass(frozen=True)
class PivotConfig(SpectralConfig):
    """Settings of the pivot algorithm, besides those of the spectral estimator.

    It starts from the spectral estimator's projection. Its `sweeps` are steps of EM that turn
    tensors into terms.

    states              m: no symbol has more latent states than this
    pivot_count         a pivot is a feature of at least this many examples
    rule_steps          of EM on the states of a rule and its children
    """

    states: int = 24
    sweeps: int = 8
    pivot_count: int = 20
    rule_steps: int = 10
    rule_back_off: float | None = 6.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, pivot_count=1, rule_steps=1)


@dataclass(frozen=True)
class PivotEmConfig(PivotConfig):
    """Settings of the pivot algorithm followed by EM, besides those of the pivot algorithm.

    steps               of EM
    patience            with trees to choose by, stop after this many steps without improvement, and
                        keep the best; 0 takes all steps
    """

    steps: int = 4
    patience: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, steps=0, patience=0)


def estimate(inputs: EstimatorInputs, config: PivotConfig) -> tuple[Tables, EmReport]:
    """Estimate tables by the pivot algorithm."""
    tables = pivoted(inputs, config).tables()
    return tables, EmReport(tables.states, tables.terms, (), (), 0)


def estimate_em(inputs: EstimatorInputs, config: PivotEmConfig) -> tuple[Tables, EmReport]:
    """Estimate tables by the pivot algorithm and EM."""
    corpus, mixture = Corpus(inputs.examples), pivoted(inputs, config)
    smoothing, steps, patience = config.smoothing_weights, config.steps, config.patience
    return climb(inputs, corpus, mixture, smoothing, steps=steps, patience=patience)


def pivoted(inputs: EstimatorInputs, config: PivotConfig) -> Mixture:
    """Find the L-PCFG of figure 1."""
    examples, stages, grammar = inputs.examples, inputs.stages, inputs.examples.grammar
    projection, _ = project(inputs, config)
    features = Features.of(NodeArrays(examples), config.chosen(inputs.seed))
    corpus = Corpus(examples)
    with (
        threadpool_limits(1),
        ThreadPoolExecutor(inputs.workers) as pool,
        stages.stage("pivots", grammar.n_symbols) as stage,
    ):

        def decomposed(a: int) -> Decomposed:
            nodes = features.nodes[features.start[a] : features.start[a + 1]]
            width = projection.states[a]
            inside, outside = projection.inside[nodes, :width], projection.outside[nodes, :width]
            return decompose(
                features.inside(a), features.outside(a), inside, outside, config.pivot_count
            )

        evidence = Evidence.of(
            examples.forest, features, list(pool.map(decomposed, range(grammar.n_symbols)))
        )
        stage.advance(grammar.n_symbols)
    with stages.stage("rules", grammar.n_rules) as stage, threadpool_limits(1):
        mixture, counts = _counted(corpus, evidence, config, inputs)
        stage.advance(grammar.n_rules)
    return maximised(corpus, mixture, counts, config.smoothing_weights)


# Symbols -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Decomposed:
    """The distributions of a symbol's features and states.

    r(f | h) (d, m), s(g | h) (d', m), p(h | f) (d, m) and p(h | a) (m,).
    """

    inside: Doubles
    outside: Doubles
    posterior: Doubles
    prior: Doubles


def decompose(
    phi: Side, psi: Side, inside: Floats, outside: Floats, pivot_count: int
) -> Decomposed:
    """Take step 1 of figure 1 for one symbol, from its examples' features and rows of Y and Z."""
    f, g = _membership(phi), _membership(psi)
    sides = [
        _Points.of(f, outside.astype(np.float64), phi.count, pivot_count),
        _Points.of(g, inside.astype(np.float64), psi.count, pivot_count),
    ]
    m = min(side.most for side in sides)
    p_inside, p_outside = (side.weights(m) for side in sides)
    joint = phi.count[:, None] * p_inside
    s = _given_state(psi, psi.count[:, None] * p_outside)
    if m > 1:
        s = _given_state(psi, s @ _aligned(f, g, p_inside, s).T)
    prior = joint.sum(axis=0) / max(joint.sum(), 1.0)
    return Decomposed(_given_state(phi, joint), s, p_inside, prior)


def _membership(side: Side) -> scipy.sparse.csr_matrix:
    """Build the matrix whose row f marks the examples with feature f."""
    n, templates = side.feature.shape
    example = np.repeat(np.arange(n), templates)
    ones = np.ones(n * templates)
    return scipy.sparse.csr_matrix(
        (ones, (side.feature.ravel(), example)), shape=(side.n_features, n)
    )


@dataclass(frozen=True, eq=False)
class _Points:
    """The features' points in the other side's projection, and the features that may be pivots."""

    points: Doubles
    candidates: Longs
    most: int
    """The most states for which there are pivots."""

    @classmethod
    def of(
        cls, member: scipy.sparse.csr_matrix, rows: Doubles, count: Longs, pivot_count: int
    ) -> "_Points":
        points = conditional_means(member, rows, count.astype(np.float64))
        candidates = np.flatnonzero(count >= pivot_count)
        most = 1
        if len(candidates) > 1:
            centred = points[candidates] - points[candidates].mean(axis=0)
            values = np.linalg.svd(centred, compute_uv=False)
            plane = int((values > max(SAME_PLANE * np.abs(points).max(), 0)).sum())
            most = max(1, min(plane + 1, rows.shape[1]))
        return cls(points, candidates, most)

    def weights(self, m: int) -> Doubles:
        """Compute p(h | f) of every feature."""
        if m == 1:
            return np.ones((len(self.points), 1))
        corners = self.points[find_pivots(self.points, m, self.candidates)]
        return convex_weights(self.points, corners)


def _given_state(side: Side, joint: Doubles) -> Doubles:
    """Normalise to p(feature | h): columns that sum to one over each template.

    A column stays zero if no feature of a template goes with the state.
    """
    template = np.zeros(side.n_features, np.int64)
    template[side.feature] = np.arange(side.feature.shape[1])
    sums = np.zeros((side.feature.shape[1], joint.shape[1]))
    np.add.at(sums, template, joint)
    own = sums[template]
    given: Doubles = np.divide(joint, own, out=np.zeros_like(joint), where=own > 0)
    return given


def _aligned(
    f: scipy.sparse.csr_matrix, g: scipy.sparse.csr_matrix, posterior: Doubles, emitted: Doubles
) -> Doubles:
    """Compute t(h' | h) of figure 2 from the most frequent features."""
    rows = np.sort(np.argsort(-np.asarray(f.sum(axis=1)).ravel(), kind="stable")[:ALIGNED_BY])
    common = np.argsort(-np.asarray(g.sum(axis=1)).ravel(), kind="stable")
    columns, rest = np.sort(common[:ALIGNED_BY]), common[ALIGNED_BY:]
    together = (f[rows] @ g.T).tocsc()
    table = [together[:, columns].toarray(), np.asarray(together[:, rest].sum(axis=1))]
    likelihoods = [emitted[columns], emitted[rest].sum(axis=0, keepdims=True)]
    return align_states(
        np.concatenate(table, axis=1),
        posterior[rows],
        np.concatenate(likelihoods),
        steps=ALIGNMENT_STEPS,
        settled=SETTLED,
    )


# Rules -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Evidence:
    """The evidence that features give of each node's state.

    The feature of template k at a node has row inside_of[node, k] of `inside`, which is its r(f |
    h). A preterminal's only feature has all columns k. `outside` and s are stored in the same way.
    """

    states: Ints
    inside_of: Ints
    outside_of: Ints
    inside: Floats
    outside: Floats
    posterior: Floats
    prior: Doubles

    @classmethod
    def of(cls, forest: Forest, features: Features, symbols: Sequence[Decomposed]) -> "Evidence":
        states = np.array([len(each.prior) for each in symbols], np.int32)
        width = int(states.max(initial=1))
        sides = [
            [side(a) for a in range(features.n_symbols)]
            for side in (features.inside, features.outside)
        ]
        return cls(
            states=states,
            inside_of=_rows_of(forest, features, sides[0]),
            outside_of=_rows_of(forest, features, sides[1]),
            inside=_stacked([each.inside for each in symbols], width),
            outside=_stacked([each.outside for each in symbols], width),
            posterior=_stacked([each.posterior for each in symbols], width),
            prior=_stacked([each.prior[None] for each in symbols], width).astype(np.float64),
        )


def _rows_of(forest: Forest, features: Features, sides: list[Side]) -> Ints:
    """Return the rows of every node's features, symbol after symbol."""
    columns = max((side.feature.shape[1] for side in sides), default=0)
    rows = np.zeros((forest.n_nodes, columns), np.int32)
    first = 0
    for a, side in enumerate(sides):
        own = np.arange(columns) % max(side.feature.shape[1], 1)
        if side.n_features:
            nodes = features.nodes[features.start[a] : features.start[a + 1]]
            rows[nodes] = first + side.feature[:, own]
        first += side.n_features
    return rows


def _stacked(parts: list[Doubles], width: int) -> Floats:
    rows = np.zeros((sum(map(len, parts)), width), np.float32)
    first = 0
    for part in parts:
        rows[first : first + len(part), : part.shape[1]] = part
        first += len(part)
    return rows


def _counted(
    corpus: Corpus, evidence: Evidence, config: PivotConfig, inputs: EstimatorInputs
) -> tuple[Mixture, Numbers]:
    """Compute the expected counts of all parameters, in the form of EM's E-step."""
    smoothing = config.smoothing_weights
    k = numbers_of_terms(corpus, config.compaction.terms, smoothing)
    first = np.concatenate([[0], np.cumsum(k)]).astype(np.int64)
    width = evidence.inside.shape[1]
    sides = [np.zeros((first[-1], width)) for _ in range(3)]
    nodes, grammar = corpus.nodes, corpus.grammar
    order = np.argsort(nodes.rule, kind="stable")
    start = np.searchsorted(nodes.rule[order], np.arange(grammar.n_rules + 1))

    def terms(r: int) -> list[Floats]:
        own = order[start[r] : start[r + 1]]
        t = joint_states(_triples(corpus, evidence, r, own), config.rule_steps)
        n_terms = k[r] - (smoothing.rule > 0)
        random = np.random.default_rng([inputs.seed, r])
        return [len(own) * rows for rows in positive_terms(t, n_terms, config.sweeps, random)]

    largest_first = np.argsort(-np.diff(start), kind="stable").tolist()
    with ThreadPoolExecutor(inputs.workers) as pool:
        for r, of_rule in zip(largest_first, pool.map(terms, largest_first), strict=True):
            for side, rows in zip(sides, of_rule, strict=True):
                side[first[r] : first[r] + len(rows), : rows.shape[1]] = rows
    lexical, root = _leaves_and_roots(corpus, evidence)
    counts = Numbers(sides[0], sides[1], sides[2], lexical, root)
    given = Numbers(*(rows.astype(np.float32) for rows in counts))
    return Mixture(grammar, Shape(grammar.rules, evidence.states, first), given), counts


def _leaves_and_roots(corpus: Corpus, evidence: Evidence) -> tuple[Doubles, Doubles]:
    """Compute the expected counts of words and of roots (section 6.1)."""
    nodes = corpus.nodes
    leaves = np.flatnonzero(nodes.entry >= 0)
    lexical = np.zeros((len(corpus.grammar.entries), evidence.inside.shape[1]))
    np.add.at(lexical, nodes.entry[leaves], evidence.posterior[evidence.inside_of[leaves, 0]])
    roots = nodes.tree_start[1:] - 1
    posterior = (
        evidence.outside[evidence.outside_of[roots, 0]] * evidence.prior[nodes.symbol[roots]]
    )
    posterior /= posterior.sum(axis=1, keepdims=True)
    root = np.zeros((corpus.grammar.n_symbols, evidence.inside.shape[1]))
    np.add.at(root, nodes.symbol[roots], posterior)
    return lexical, root


def _triples(corpus: Corpus, evidence: Evidence, r: int, own: Longs) -> list[Floats]:
    """Return s(g | h₁), r(f₂ | h₂) and r(f₃ | h₃) of a rule's occurrences, a row per triple."""
    count = min(len(own), EXAMPLES_A_RULE)
    chosen = own[np.linspace(0, len(own) - 1, count).astype(np.int64)]
    nodes = corpus.nodes
    p, q, m = evidence.states[corpus.grammar.rules[r]].tolist()
    triples = np.arange(max(evidence.outside_of.shape[1], evidence.inside_of.shape[1]))

    def rows(table: Floats, of: Ints, which: Longs | Ints, shift: int) -> Floats:
        column = (triples + shift) % of.shape[1]
        picked: Floats = table[of[which][:, column].ravel()]
        return picked

    return [
        rows(evidence.outside, evidence.outside_of, chosen, 0)[:, :p],
        rows(evidence.inside, evidence.inside_of, nodes.left[chosen], 0)[:, :q],
        rows(evidence.inside, evidence.inside_of, nodes.right[chosen], 1)[:, :m],
    ]


def joint_states(rows: list[Floats], steps: int) -> Floats:
    """Find t(h₁, h₂, h₃) that maximises Σ log Σ t s r r over rows (step 2 of figure 1).

    Start from the uniform distribution.
    """
    full = tuple(side.shape[1] for side in rows)
    # A state that no row allows is zero after one step, so rare rules need few of a tensor's rows.
    kept = [np.flatnonzero(side.any(axis=0)) for side in rows]
    s, left, right = (side[:, states] for side, states in zip(rows, kept, strict=True))
    pairs = (left[:, :, None] * right[:, None, :]).reshape(len(s), -1)
    t = np.full((s.shape[1], pairs.shape[1]), 1.0 / (s.shape[1] * pairs.shape[1]), s.dtype)
    for _ in range(steps):
        p = np.einsum("ni,ni->n", s, pairs @ t.T)
        weight = np.divide(1.0, p, out=np.zeros_like(p), where=p > 0)
        t *= (s * weight[:, None]).T @ pairs
        t /= t.sum()
    result = np.zeros(full, s.dtype)
    result[np.ix_(*kept)] = t.reshape(*map(len, kept))
    return result


def positive_terms(
    t: Floats, n_terms: int, sweeps: int, random: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """Write a distribution over three states as a mixture of at most `n_terms` products.

    This is exact if the distribution has that few fibres; otherwise some sweeps of EM approach it.
    Row k of each result holds p(k) times the k-th term's distribution.
    """
    axis = int(np.argmax(t.shape))
    fibres = np.moveaxis(t, axis, 2).reshape(-1, t.shape[axis])
    if len(fibres) <= n_terms:
        return _fibres(t, axis, fibres)
    sides = [t.sum(axis=axes) for axes in ((1, 2), (0, 2), (0, 1))]
    kept = [np.flatnonzero(side) for side in sides]
    small = t[np.ix_(*kept)]
    p, q, r = (
        side[states] * random.uniform(0.5, 1.5, (n_terms, len(states))).astype(t.dtype)
        for side, states in zip(sides, kept, strict=True)
    )
    for _ in range(sweeps if n_terms > 1 else 1):
        q, r = (side / side.sum(axis=1, keepdims=True) for side in (q, r))
        p, q, r = _closer(small, p, q, r)
    p, q, r = (
        _spread(side, states, len(whole))
        for side, states, whole in zip((p, q, r), kept, sides, strict=True)
    )
    return p, q, r


def _spread(rows: Floats, columns: Longs, width: int) -> Floats:
    result = np.zeros((len(rows), width), rows.dtype)
    result[:, columns] = rows
    return result


def _fibres(t: Floats, axis: int, fibres: Floats) -> tuple[Floats, Floats, Floats]:
    second_axis, third_axis = (k for k in range(3) if k != axis)
    second, third = np.divmod(np.arange(len(fibres)), t.shape[third_axis])
    mass = fibres.sum(axis=1, keepdims=True)
    sides = {
        axis: fibres,
        second_axis: mass * np.eye(t.shape[second_axis])[second],
        third_axis: mass * np.eye(t.shape[third_axis])[third],
    }
    return sides[0], sides[1], sides[2]


def _closer(t: Floats, p: Floats, q: Floats, r: Floats) -> tuple[Floats, Floats, Floats]:
    """Take one step of EM with t as the observed frequencies.

    Return the terms' new distributions.
    """
    shape = t.shape
    pairs = (q[:, :, None] * r[:, None, :]).reshape(len(p), -1)
    model = p.T @ pairs
    observed = t.reshape(shape[0], -1)
    ratio = np.divide(observed, model, out=np.zeros_like(model), where=model > 0)
    across = (p @ ratio).reshape(len(p), shape[1], shape[2])
    left = q * np.einsum("tjk,tk->tj", across, r)
    right = r * np.einsum("tjk,tj->tk", across, q)
    return p * (pairs @ ratio.T), left, right
