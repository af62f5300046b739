"""States as clusters of nodes: k-means on projected trees, then relative frequencies.

A node's point is its row of [Y; Z] (`spectral`), each half divided by its length: the direction
describes the tree, while the length mostly shows how common its features are. With h(v) the cluster
of node v,

    Y(v) = e_h(v)        Z(v) = e_h(v) / p(h(v) | a)

so the moments of `moments` are the relative frequencies of an L-PCFG with observed states:
C = count(a(i) → b(j) c(k)) / count(a(i)), with the same smoothing. No number is negative, except
for small errors of least squares in a compacted tensor.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from threadpoolctl import threadpool_limits

from lpcfg.grammar.tables import Floats, Ints, Longs, Singles, Tables
from lpcfg.training.estimators.compact import CompactReport, tables_of
from lpcfg.training.estimators.em import Corpus, EmReport, climb, from_clusters
from lpcfg.training.estimators.inputs import EstimatorInputs, check_least
from lpcfg.training.estimators.moments import Occurrences, Projection
from lpcfg.training.estimators.spectral import SpectralConfig, project
from lpcfg.words.k_means import k_means


@dataclass(frozen=True)
class ClusteringConfig(SpectralConfig):
    """Settings of the clustering estimator, besides those of the spectral one.

    It clusters the spectral estimator's projection and takes moments as that estimator does.

    states              m: no symbol has more clusters than this
    dimensions          the most singular vectors that Y and Z have
    rounds              of k-means
    examples            a symbol has at least this many examples per cluster
    """

    states: int = 24
    dimensions: int = 32
    rounds: int = 10
    examples: int = 80

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, dimensions=1, rounds=1, examples=1)


def estimate(inputs: EstimatorInputs, config: ClusteringConfig) -> tuple[Tables, CompactReport]:
    """Estimate tables by clustering. BLAS threads do not change a byte of the result."""
    clusters, n_rules = cluster(inputs, config), inputs.examples.grammar.n_rules
    with inputs.stages.stage("moments", n_rules) as stage, threadpool_limits(1):
        occurrences = Occurrences.of(inputs.examples, clusters)
        smoothing, compaction = config.smoothing_weights, config.compaction
        tables, error = tables_of(occurrences, smoothing, compaction, workers=inputs.workers)
        stage.advance(n_rules)
    return tables, CompactReport(clusters.states, tables.terms, error)


@dataclass(frozen=True)
class ClusteringEmConfig(ClusteringConfig):
    """Settings of clustering followed by EM, besides those of the clustering estimator.

    Its `sweeps` are here steps of EM with the clusters as known states.

    steps               of EM after those
    patience            with trees to choose by, stop after this many steps without improvement, and
                        keep the best; 0 takes all steps
    """

    states: int = 32
    rule_back_off: float | None = 6.0
    steps: int = 6
    patience: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, steps=0, patience=0)


def estimate_em(inputs: EstimatorInputs, config: ClusteringEmConfig) -> tuple[Tables, EmReport]:
    """Estimate tables by EM from clusters."""
    clusters = cluster(inputs, config)
    corpus, smoothing = Corpus(inputs.examples), config.smoothing_weights
    with inputs.stages.stage("terms of clusters", config.sweeps) as stage:
        mixture = from_clusters(
            corpus,
            clusters.states,
            np.argmax(clusters.inside, axis=1).astype(np.int32),
            config.compaction.terms,
            smoothing,
            sweeps=config.sweeps,
            seed=inputs.seed,
            workers=inputs.workers,
        )
        stage.advance(config.sweeps)
    steps, patience = config.steps, config.patience
    return climb(inputs, corpus, mixture, smoothing, steps=steps, patience=patience)


def cluster(inputs: EstimatorInputs, config: ClusteringConfig) -> Projection:
    """Cluster the nodes of every symbol, and return the clusters as Y and Z."""
    projection, _ = project(inputs, replace(config, states=config.dimensions))
    n_symbols = inputs.examples.grammar.n_symbols
    with inputs.stages.stage("clusters", n_symbols) as stage:
        state = _states(projection, config, inputs)
        stage.advance(n_symbols)
    return indicators(projection.symbol, state, n_symbols)


def _states(projection: Projection, config: ClusteringConfig, inputs: EstimatorInputs) -> Ints:
    """Find the cluster of every node."""
    n_symbols = len(projection.states)
    order = np.argsort(projection.symbol, kind="stable")
    start = np.searchsorted(projection.symbol[order], np.arange(n_symbols + 1))
    state = np.zeros(len(projection.symbol), np.int32)

    def clusters(a: int) -> Longs | int:
        nodes = order[start[a] : start[a + 1]]
        m = min(config.states, len(nodes) // config.examples)
        if m <= 1:
            return 0
        width = projection.states[a]
        halves = (projection.inside[nodes, :width], projection.outside[nodes, :width])
        points = np.concatenate([_directions(half) for half in halves], axis=1)
        random = np.random.default_rng([inputs.seed, a])
        return k_means(points, m, rounds=config.rounds, random=random)

    largest_first = np.argsort(-np.diff(start), kind="stable").tolist()
    with threadpool_limits(1), ThreadPoolExecutor(inputs.workers) as pool:
        for a, own in zip(largest_first, pool.map(clusters, largest_first), strict=True):
            state[order[start[a] : start[a + 1]]] = own
    return state


def _directions(rows: Floats) -> Singles:
    """Divide the rows by their lengths."""
    length = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    result: Singles = np.divide(
        rows, length, out=np.zeros(rows.shape, np.float32), where=length > 0
    )
    return result


def indicators(symbol: Ints, state: Longs | Ints, n_symbols: int) -> Projection:
    """Return Y = e_h and Z = e_h / p(h | a) for nodes in known states."""
    states = np.ones(n_symbols, np.int32)
    np.maximum.at(states, symbol, state.astype(np.int32) + 1)
    width = int(states.max(initial=1))
    inside = np.zeros((len(symbol), width), np.float32)
    rows = np.arange(len(symbol))
    inside[rows, state] = 1.0
    of_symbol = np.bincount(symbol, minlength=n_symbols)
    of_state = np.bincount(symbol * np.int64(width) + state, minlength=n_symbols * width)
    outside = np.zeros_like(inside)
    outside[rows, state] = of_symbol[symbol] / of_state[symbol * np.int64(width) + state]
    return Projection(symbol, states, inside, outside)
