"""Spectral learning (figures 7 and 8; NAACL 2 and 3): one SVD per symbol, and one pass of averages.

    features   φ and ψ of every node                                     lpcfg.train.data.features
    project    Ω^a → U, Σ, V;  Y = Σ^(−½)Uᵀφ and Z = Σ^(−½)Vᵀψ of every node
    estimate   means of Z⊗Y⊗Y per rule, smoothed, as rank-one terms          .moments, .compact

NAACL's Y = Uᵀφ and Z = Σ⁻¹Vᵀψ differ from these by the change of basis G^a = Σ^(½), which changes
no p(tree) and no μ (theorem 3). Here the singular directions have equal weights in Y and in Z. This
matters when a tensor is approximated. Signs and rotations of U and V cancel in the same way.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse
from scipy.sparse.linalg import svds
from threadpoolctl import threadpool_limits

from lpcfg.errors import TrainingError
from lpcfg.grammar.tables import Doubles, Grammar, Singles, Tables
from lpcfg.train.data.examples import Examples
from lpcfg.train.data.features import (
    ALL_TEMPLATES,
    KNOWN_TEMPLATES,
    SIMPLE_TEMPLATES,
    Context,
    Features,
    Side,
)
from lpcfg.train.estimators.compact import Compaction, CompactReport, tables_of
from lpcfg.train.estimators.moments import Occurrences, Projection, Smoothing
from lpcfg.train.stages import Stages

LEAST_SINGULAR_VALUE = 1e-3
"""Least singular value relative to the first. Below it, rounding noise would be divided by."""
DENSE_BELOW = 300
"""Up to this length of its smaller side, Ω's Gram matrix is decomposed, faster than iterations."""
SCALED_CUT, UNSCALED_CUT = 0.15, 0.01
"""Default `cut`. Without scaling, the spectrum of the same states falls faster."""
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
        for name, least in (("states", 1), ("sweeps", 1), ("terms", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise TrainingError(f"expected `{name}` of at least {least}, got {value}: raise it")
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
        unknown = sorted(set(self.templates + self.without) - set(KNOWN_TEMPLATES))
        if unknown:
            raise TrainingError(
                f"expected feature templates among {', '.join(KNOWN_TEMPLATES)}, "
                f"got {', '.join(unknown)}: correct the name"
            )

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


def estimate(
    examples: Examples,
    config: SpectralConfig,
    *,
    seed: int,
    workers: int,
    stages: Stages | None = None,
) -> tuple[Tables, SpectralReport]:
    """Estimate tables by the spectral method. Workers and BLAS threads do not change a byte."""
    stages = stages or Stages()
    projection, singular_values = project(
        examples, config, seed=seed, workers=workers, stages=stages
    )
    with stages.stage("moments", examples.grammar.n_rules) as stage, threadpool_limits(1):
        occurrences = Occurrences.of(examples, projection)
        tables, error = tables_of(
            occurrences,
            config.smoothing_weights,
            config.compaction,
            workers=workers,
        )
        stage.advance(examples.grammar.n_rules)
    return tables, SpectralReport(projection.states, tables.terms, error, singular_values)


def project(
    examples: Examples,
    config: SpectralConfig,
    *,
    seed: int,
    workers: int,
    stages: Stages | None = None,
) -> tuple[Projection, tuple[Doubles, ...]]:
    """Compute Y and Z of every node (float32), and each symbol's first m singular values."""
    stages = stages or Stages()
    n_nodes = examples.forest.n_nodes
    with stages.stage("features", n_nodes) as stage:
        context = Context(examples)
        features = Features.of(context, config.chosen(seed))
        stage.advance(n_nodes)
    decomposition = _Decomposition(features, config, seed)
    states = np.ones(features.n_symbols, np.int32)
    inside, outside = (np.zeros((n_nodes, config.states), np.float32) for _ in range(2))
    values = [np.empty(0)] * features.n_symbols
    # The largest symbol first, so that it does not keep one worker busy at the end.
    order = np.argsort(-np.diff(features.start), kind="stable").tolist()
    with (
        stages.stage("decomposition", len(order)) as stage,
        threadpool_limits(1),
        ThreadPoolExecutor(workers) as pool,
    ):
        for a, (sigma, y, z) in zip(order, pool.map(decomposition.of, order), strict=True):
            nodes = features.nodes[features.start[a] : features.start[a + 1]]
            values[a], states[a] = sigma, y.shape[1]
            inside[nodes, : y.shape[1]], outside[nodes, : z.shape[1]] = y, z
        stage.advance(len(order))
    width = int(states.max(initial=1))
    projection = Projection(examples.forest.symbol, states, inside[:, :width], outside[:, :width])
    return projection, tuple(values)


@dataclass(frozen=True, eq=False)
class _Decomposition:
    """The decomposition of symbols' Ω, with the features and settings that it needs."""

    features: Features
    config: SpectralConfig
    seed: int

    def of(self, a: int) -> tuple[Doubles, Singles, Singles]:
        """Decompose Ω^a. Return its singular values, and Y and Z of the examples of symbol a."""
        phi, psi = self.features.inside(a), self.features.outside(a)
        scales = [self._scale(side, a, k) for k, side in enumerate((phi, psi))]
        u, sigma, v = _decomposed(_omega(phi, psi, scales), self.config.states)
        kept = int((sigma > self.config.least_singular_value * sigma.max(initial=0)).sum())
        if kept == 0:  # no features, so states cannot be told apart
            one = np.ones((len(phi.feature), 1), np.float32)
            return sigma, one, one
        root = np.sqrt(sigma[:kept])
        y, z = (
            _indicators(side, np.float32)
            @ (vectors[:, :kept] * (scale[:, None] / root)).astype(np.float32)
            for side, scale, vectors in ((phi, scales[0], u), (psi, scales[1], v))
        )
        return sigma, y, z

    def _scale(self, side: Side, a: int, k: int) -> Doubles:
        """Compute the factor of every feature i, √(M_a / (count_a(i) + κ)), with noise."""
        config = self.config
        scale = np.ones(side.n_features)
        if config.scaling:
            scale = np.sqrt(len(side.feature) / (side.count + config.kappa))
        if config.noise:
            random = np.random.default_rng([self.seed, a, k])
            scale *= 1.0 + config.noise * random.standard_normal(side.n_features)
        return scale


def _indicators(side: Side, dtype: type[np.floating]) -> scipy.sparse.csr_array:
    """Build φ or ψ of every example, unscaled: a row of ones and zeros."""
    n, templates = side.feature.shape
    return scipy.sparse.csr_array(
        (
            np.ones(n * templates, dtype),
            side.feature.ravel(),
            templates * np.arange(n + 1),
        ),
        shape=(n, side.n_features),
    )


def _omega(phi: Side, psi: Side, scales: list[Doubles]) -> scipy.sparse.csr_array:
    """Compute Ω^a = (1/M_a) Σ φψᵀ of scaled features."""
    together = _indicators(phi, np.float64).T.tocsr() @ _indicators(psi, np.float64)
    rows = scipy.sparse.diags_array(scales[0] / max(len(phi.feature), 1))
    return rows @ together @ scipy.sparse.diags_array(scales[1])


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
