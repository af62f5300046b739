"""Spectral learning (figures 7 and 8; NAACL 2 and 3): one SVD per symbol, and one pass of averages.

    features   φ and ψ of every node, counted together      training.data.features, .cooccurrence
    project    Ω^a → U, Σ, V;  Y = Σ^(−½)Uᵀφ and Z = Σ^(−½)Vᵀψ of every node
    estimate   means of Z⊗Y⊗Y per rule, smoothed, as rank-one terms          .moments, .compact

Nodes are gone through twice, shard by shard: for the sums of φψᵀ, then for those of Z⊗Y⊗Y. A worker
holds the features or projections of one shard at a time; of few shards, features are kept.

NAACL's Y = Uᵀφ and Z = Σ⁻¹Vᵀψ differ from these by the change of basis G^a = Σ^(½), which changes
no p(tree) and no μ (theorem 3). Here the singular directions have equal weights in Y and in Z. This
matters when a tensor is approximated. Signs and rotations of U and V cancel in the same way.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from scipy.sparse.linalg import svds
from threadpoolctl import threadpool_limits

from lpcfg.base.errors import TrainingError
from lpcfg.base.executors import Executor, Threads
from lpcfg.base.jit import compiled
from lpcfg.grammar.tables import Doubles, Grammar, Ints, Longs, Singles, Tables
from lpcfg.training.data.examples import Examples
from lpcfg.training.data.features import (
    ALL_TEMPLATES,
    KNOWN_TEMPLATES,
    SIMPLE_TEMPLATES,
    Features,
    NodeArrays,
    Side,
    check_templates,
)
from lpcfg.training.data.shards import Shard, shards_of
from lpcfg.training.estimators.compact import Compaction, CompactReport, tables_of
from lpcfg.training.estimators.cooccurrence import Cooccurrence, FeatureCounts, merged
from lpcfg.training.estimators.inputs import EstimatorInputs, check_least
from lpcfg.training.estimators.moments import Occurrences, Projection, Smoothing, Sums

LEAST_SINGULAR_VALUE = 1e-3
"""Least singular value relative to the first. Below it, rounding noise would be divided by."""
DENSE_BELOW = 300
"""Up to this length of its smaller side, Ω's Gram matrix is decomposed, faster than iterations."""
SCALED_CUT, UNSCALED_CUT = 0.15, 0.01
"""Default `cut`. Without scaling, the spectrum of the same states falls faster."""
KEPT_NODES = 1 << 20
"""The most nodes whose features are kept between both times, some 65 MB, which CRAFT has."""
GROUPS = 16
"""Groups of symbols, whose Ω are added up and decomposed apart."""
BACK_OFF = ((16, 10.0), (24, 15.0), (32, 25.0))
"""C of λ by the number of states, interpolated between these: more numbers, more back-off."""


@dataclass(frozen=True)
class SpectralConfig:
    """Settings of the spectral estimator.

    states              m: no symbol has more latent states than this
    templates           the feature templates in use, by name
    without             templates to leave out of these
    scaling             features are scaled by √(M_a / (count_a(i) + kappa))
    kappa               κ
    cut                 singular values below this share of the first are cut off; None: by scaling
    smoothing           estimates back off to lower moments
    rule_back_off       C in λ = √n / (C + √n) of a rule seen n times; None: by the states
    lexical_back_off    the same in ν of an entry seen n times
    terms               the most rank-one terms of a rule; None: by the states
    sweeps              of alternating least squares, for rules seen more often than they have terms
    noise               every feature is scaled by 1 + noise · N(0, 1)
    dropout             every template but SIMPLE_TEMPLATES is left out with this probability
    """

    states: int = 32
    templates: tuple[str, ...] = ALL_TEMPLATES
    without: tuple[str, ...] = ()
    scaling: bool = True
    kappa: float = 5.0
    cut: float | None = None
    smoothing: bool = True
    rule_back_off: float | None = None
    lexical_back_off: float = 4.0
    terms: int | None = None
    sweeps: int = 4
    noise: float = 0.0
    dropout: float = 0.0

    def __post_init__(self) -> None:
        check_least(self, states=1, sweeps=1, terms=1)
        for name in ("kappa", "lexical_back_off", "noise", "rule_back_off"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < np.inf:
                raise TrainingError(
                    f"expected `{name}` of 0 or more, got {value}: use 0 for none of it"
                )
        for name in ("cut", "dropout"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < 1:
                raise TrainingError(
                    f"expected `{name}` from 0 up to but not 1, got {value}: use 0 for none of it"
                )
        check_templates(self.templates + self.without)

    def chosen(self, seed: int) -> tuple[str, ...]:
        """Return the templates in use. Those dropped at random depend on the seed."""
        drawn = np.random.default_rng([seed, len(ALL_TEMPLATES)]).random(len(KNOWN_TEMPLATES))
        kept = {
            name
            for name, number in zip(KNOWN_TEMPLATES, drawn, strict=True)
            if number >= self.dropout or name in SIMPLE_TEMPLATES
        }
        return tuple(
            name
            for name in KNOWN_TEMPLATES
            if name in kept and name in self.templates and name not in self.without
        )

    @property
    def least_singular_value(self) -> float:
        """The least singular value that is kept, as a share of the first."""
        by_scaling = SCALED_CUT if self.scaling else UNSCALED_CUT
        return max(by_scaling if self.cut is None else self.cut, LEAST_SINGULAR_VALUE)

    @property
    def smoothing_weights(self) -> Smoothing:
        if not self.smoothing:
            return Smoothing(0.0, 0.0)
        states, constants = zip(*BACK_OFF, strict=True)
        by_states = float(np.interp(self.states, states, constants))
        rule = by_states if self.rule_back_off is None else self.rule_back_off
        return Smoothing(rule, self.lexical_back_off)

    @property
    def compaction(self) -> Compaction:
        by_states = max(16, 3 * self.states // 4)
        return Compaction(by_states if self.terms is None else self.terms, self.sweeps)


@dataclass(frozen=True, eq=False)
class SpectralReport(CompactReport):
    """The compaction's report, and singular_values[a], the first m of Ω^a before the cut."""

    singular_values: tuple[Doubles, ...]

    def facts(self, grammar: Grammar) -> dict[str, object]:
        """Return the report as facts for a manifest."""
        spectra = zip(grammar.symbols, self.singular_values, strict=True)
        values = {name: [round(s, 4) for s in values] for name, values in spectra}
        return {"singular_values": values, **super().facts(grammar)}


def estimate(inputs: EstimatorInputs, config: SpectralConfig) -> tuple[Tables, SpectralReport]:
    """Estimate tables by the spectral method.

    Sums are made shard by shard, by threads of this process or by another executor. Who makes
    them, how many workers there are, and BLAS threads do not change a byte.
    """
    examples, workers = inputs.examples, inputs.workers
    with Threads(workers) as threads, threadpool_limits(1):
        executor = inputs.executor or threads
        parts = _Parts(examples, config.chosen(inputs.seed))
        directions, spectra = _directions(executor, parts, config, inputs)
        with inputs.stages.stage("moments", examples.grammar.n_rules) as stage:
            totals = executor.reduce(_sums, parts, Sums.merged, 1, spectra.states, directions)
            [sums] = executor.gather(totals)
            occurrences = Occurrences(examples, spectra.states, sums)
            tables, error = tables_of(
                occurrences, config.smoothing_weights, config.compaction, workers=workers
            )
            stage.advance(examples.grammar.n_rules)
    return tables, SpectralReport(spectra.states, tables.terms, error, spectra.values)


def project(
    inputs: EstimatorInputs, config: SpectralConfig
) -> tuple[Projection, tuple[Doubles, ...]]:
    """Compute Y and Z of every node (float32), and each symbol's first m singular values."""
    with Threads(inputs.workers) as executor, threadpool_limits(1):
        parts = _Parts(inputs.examples, config.chosen(inputs.seed))
        directions, spectra = _directions(executor, parts, config, inputs)
        projected = executor.map(_projected, parts, spectra.states, directions)
    inside = np.concatenate([part.inside for part in projected])
    outside = np.concatenate([part.outside for part in projected])
    symbol = inputs.examples.forest.symbol
    projection = Projection(symbol, spectra.states, inside, outside)
    return projection, spectra.values


@dataclass(frozen=True, eq=False)
class _Spectra:
    """The number of states of every symbol, and its first m singular values."""

    states: Ints
    values: tuple[Doubles, ...]


def _directions(
    executor: Executor, parts: "_Parts", config: SpectralConfig, inputs: EstimatorInputs
) -> tuple[list[Any], _Spectra]:
    """Decompose every symbol's Ω. Return the directions, in groups of symbols, and their facts."""
    forest, n_symbols = inputs.examples.forest, inputs.examples.grammar.n_symbols
    stages = inputs.stages
    group_of = _groups(np.bincount(forest.symbol, minlength=n_symbols))
    with stages.stage("features", forest.n_nodes) as stage:
        counts = executor.reduce(_counted, parts, _merged, GROUPS, group_of)
        stage.advance(forest.n_nodes)
    with stages.stage("decomposition", n_symbols) as stage:
        directions = executor.map(_decomposed_group, counts, config, inputs.seed)
        states, values = np.ones(n_symbols, np.int32), [np.empty(0)] * n_symbols
        for facts in executor.gather(executor.map(_facts, directions)):
            for a, (m, sigma) in facts.items():
                states[a], values[a] = m, sigma
        stage.advance(n_symbols)
    return directions, _Spectra(states, tuple(values))


def _groups(count: Longs) -> Ints:
    """Deal symbols out to groups of nearly as many examples: the most frequent first."""
    group_of, size = np.zeros(len(count), np.int32), np.zeros(GROUPS, np.int64)
    for a in np.argsort(-count, kind="stable").tolist():
        group_of[a] = np.argmin(size)
        size[group_of[a]] += count[a]
    return group_of


# Work on a shard or on a group of symbols ---------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Part:
    """A shard, and the templates in use."""

    shard: Shard
    names: Sequence[str]

    @cached_property
    def sides(self) -> dict[int, tuple[Longs, Side, Side]]:
        """The examples of every symbol that has some: their nodes, and φ and ψ of these."""
        features = Features.of(NodeArrays(self.shard.examples), self.names)
        start = features.start.tolist()
        return {
            a: (features.nodes[start[a] : start[a + 1]], features.inside(a), features.outside(a))
            for a in np.flatnonzero(np.diff(features.start)).tolist()
        }


class _Parts:
    """The parts of a treebank, gone through twice. A few keep features for the second time."""

    def __init__(self, examples: Examples, names: Sequence[str]) -> None:
        self.examples, self._names = examples, names
        self._kept = list(self._made()) if examples.forest.n_nodes <= KEPT_NODES else None

    def __iter__(self) -> Iterator[_Part]:
        return self._made() if self._kept is None else iter(self._kept)

    def _made(self) -> Iterator[_Part]:
        return (_Part(shard, self._names) for shard in shards_of(self.examples))


Symbols = dict[int, Cooccurrence]


def _counted(part: _Part, group_of: Ints) -> list[Symbols]:
    """Count the features of a part's examples, in groups of symbols."""
    groups: list[Symbols] = [{} for _ in range(GROUPS)]
    for a, (_, inside, outside) in part.sides.items():
        groups[group_of[a]][a] = Cooccurrence.of(inside, outside)
    return groups


def _merged(left: Symbols, right: Symbols) -> Symbols:
    both = {a: merged(left[a], right[a]) for a in left.keys() & right.keys()}
    return {**left, **right, **both}


@dataclass(frozen=True, eq=False)
class _Direction:
    """A symbol's singular values, and the Y and Z of its single features, in rows like theirs.

    Without features, states cannot be told apart: then `rows` are none, and Y = Z = 1.
    """

    sigma: Doubles
    features: tuple[FeatureCounts, FeatureCounts]
    rows: tuple[Singles, Singles] | None

    @property
    def states(self) -> int:
        return 1 if self.rows is None else self.rows[0].shape[1]

    def project(self, side: Side, k: int, nodes: Longs, result: Singles) -> None:
        """Write Y (k = 0) or Z (k = 1) of nodes, whose features these are, to their rows."""
        if self.rows is None:
            result[nodes, 0] = 1.0
            return
        places = self.features[k].places(side.template, side.code)
        _add_rows(self.rows[k], places, side.feature, nodes, result)


Directions = dict[int, _Direction]


def _decomposed_group(group: Symbols, config: SpectralConfig, seed: int) -> Directions:
    return {a: _direction(together, a, config, seed) for a, together in group.items()}


def _direction(together: Cooccurrence, a: int, config: SpectralConfig, seed: int) -> _Direction:
    """Decompose Ω^a = (1/M_a) Σ φψᵀ of scaled features."""
    sides = (together.inside, together.outside)
    scales = [_scale(side, together.examples, config, [seed, a, k]) for k, side in enumerate(sides)]
    pairs = together.pairs
    by_row = np.repeat(scales[0] / max(together.examples, 1), np.diff(pairs.indptr))
    data = by_row * pairs.data * scales[1][pairs.indices]
    omega = scipy.sparse.csr_array((data, pairs.indices, pairs.indptr), shape=pairs.shape)
    u, sigma, v = _decomposed(omega, config.states)
    kept = int((sigma > config.least_singular_value * sigma.max(initial=0)).sum())
    if kept == 0:
        return _Direction(sigma, sides, None)
    root = np.sqrt(sigma[:kept])
    y, z = (
        (vectors[:, :kept] * (scale[:, None] / root)).astype(np.float32)
        for scale, vectors in ((scales[0], u), (scales[1], v))
    )
    return _Direction(sigma, sides, (y, z))


def _scale(
    side: FeatureCounts, examples: int, config: SpectralConfig, seed: Sequence[int]
) -> Doubles:
    """Compute the factor of every feature i, √(M_a / (count_a(i) + κ)), with noise."""
    scale = np.ones(len(side))
    if config.scaling:
        scale = np.sqrt(examples / (side.count + config.kappa))
    if config.noise:
        random = np.random.default_rng(seed)
        scale *= 1.0 + config.noise * random.standard_normal(len(side))
    return scale


def _facts(group: Directions) -> dict[int, tuple[int, Doubles]]:
    return {a: (direction.states, direction.sigma) for a, direction in group.items()}


def _projected(part: _Part, states: Ints, groups: Sequence[Directions]) -> Projection:
    """Compute Y and Z of a part's nodes."""
    symbol = part.shard.examples.forest.symbol
    width = int(states.max(initial=1))
    inside, outside = (np.zeros((len(symbol), width), np.float32) for _ in range(2))
    directions = {a: direction for group in groups for a, direction in group.items()}
    for a, (nodes, phi, psi) in part.sides.items():
        directions[a].project(phi, 0, nodes, inside)
        directions[a].project(psi, 1, nodes, outside)
    return Projection(symbol, states, inside, outside)


@compiled(borrows=True)
def _add_rows(rows: Singles, places: Longs, feature: Ints, nodes: Longs, result: Singles) -> None:
    """Add to result[nodes[e]] the rows of all features of example e."""
    for e in range(len(feature)):
        for t in range(feature.shape[1]):
            row = places[feature[e, t]]
            for i in range(rows.shape[1]):
                result[nodes[e], i] += rows[row, i]


def _sums(part: _Part, states: Ints, groups: Sequence[Directions]) -> list[Sums]:
    return [Sums.of(part.shard, _projected(part, states, groups))]


def _decomposed(omega: scipy.sparse.csr_array, states: int) -> tuple[Doubles, Doubles, Doubles]:
    """Compute U, Σ, V of the largest singular values: at most as many as states."""
    if omega.shape[0] > omega.shape[1]:
        v, sigma, u = _decomposed(omega.T.tocsr(), states)
        return u, sigma, v
    size = omega.shape[0]
    if size == 0:
        return np.empty((0, 0)), np.empty(0), np.empty((omega.shape[1], 0))
    if size > max(DENSE_BELOW, 3 * states):
        start = np.random.default_rng(0).standard_normal(size)
        u, sigma, vt = svds(omega, k=states, v0=start, rng=0)
        return u[:, ::-1], sigma[::-1], vt[::-1].T
    # Squared singular values: one of 1e-3 of the first still has a relative error of only 1e-10.
    last = min(states, size)
    gram = (omega @ omega.T).toarray()
    squares, u = scipy.linalg.eigh(gram, subset_by_index=[size - last, size - 1])
    sigma, u = np.sqrt(np.maximum(squares[::-1], 0.0)), u[:, ::-1]
    kept = sigma > 0
    return u[:, kept], sigma[kept], omega.T @ u[:, kept] / sigma[kept]
