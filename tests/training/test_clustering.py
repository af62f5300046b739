"""Clusters of nodes as states: relative frequencies, the same whatever the workers."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from lpcfg.base.errors import TrainingError
from lpcfg.grammar.tables import Tables
from lpcfg.training.data.examples import Examples
from lpcfg.training.data.treebank import forest_of
from lpcfg.training.estimators import clustering, em
from lpcfg.training.estimators.clustering import ClusteringConfig, ClusteringEmConfig, indicators
from lpcfg.training.estimators.em import EmConfig
from lpcfg.training.estimators.inputs import EstimatorInputs
from lpcfg.training.estimators.moments import Projection, Smoothing
from lpcfg.trees.binarize import binarize
from lpcfg.trees.brackets import read_string
from lpcfg.trees.normalize import normalize
from tests.training.literal import TINY, coded

SMALL = Path(__file__).resolve().parents[2] / "examples" / "small.mrg"
LITERAL = ClusteringConfig(states=3, examples=2, smoothing=False, terms=9)
"""Relative frequencies as they are: no smoothing, and terms for every number of a 3×3×3 tensor."""


def test_indicators_are_inverse_frequencies_on_the_outside() -> None:
    symbol = np.array([0, 0, 0, 0, 1], np.int32)
    clusters = indicators(symbol, np.array([1, 0, 1, 1, 0]), 3)
    assert clusters.states.tolist() == [2, 1, 1]
    assert clusters.inside.tolist() == [[0, 1], [1, 0], [0, 1], [0, 1], [1, 0]]
    third = np.float32(4 / 3)
    assert clusters.outside.tolist() == [[0, third], [4, 0], [0, third], [0, third], [1, 0]]


def learned(examples: Examples, config: ClusteringConfig) -> tuple[Tables, Projection, float]:
    clusters = clustering.cluster(EstimatorInputs(examples, 1, 1), config)
    tables, report = clustering.estimate(EstimatorInputs(examples, 1, 1), config)
    return tables, clusters, float(report.error.max())


def test_unsmoothed_tables_are_relative_frequencies_of_clusters(small: Examples) -> None:
    forest, grammar = small.forest, small.grammar
    node_rule, node_entry = small.node_rule, small.node_entry
    tables, clusters, _ = learned(small, LITERAL)
    state = np.argmax(clusters.inside, axis=1).tolist()
    symbol, rule, entry = forest.symbol.tolist(), node_rule.tolist(), node_entry.tolist()
    left, right = forest.left.tolist(), forest.right.tolist()
    seen = Counter(zip(symbol, state, strict=True))
    size, words = Counter(symbol), Counter(entry)
    for r in range(grammar.n_rules):
        a, b, c = grammar.rules[r]
        expected = np.zeros((tables.states[a], tables.states[b], tables.states[c]))
        for v in np.flatnonzero(node_rule == r):
            i, j, k = state[v], state[left[v]], state[right[v]]
            expected[i, j, k] += 1 / seen[a, i]
        # Single precision, and 27 numbers that at most 9 terms have to carry.
        np.testing.assert_allclose(tables.dense(r), expected, atol=1e-4)
    for e, (a, _) in enumerate(grammar.entries.tolist()):
        expected = np.zeros(tables.states[a])
        for v in np.flatnonzero(node_entry == e):
            expected[state[v]] += size[a] / seen[a, state[v]] / words[e]
        np.testing.assert_allclose(tables.terminal_vector(e), expected, rtol=1e-6)
    roots = Counter((symbol[v], state[v]) for v in forest.roots.tolist())
    for a in range(grammar.n_symbols):
        counts = [roots[a, i] / forest.n_trees for i in range(tables.states[a])]
        np.testing.assert_allclose(tables.root_vector(a), counts, rtol=1e-6)
    assert rule.count(-1) == sum(node >= 0 for node in entry)


@pytest.mark.parametrize("smoothing", [False, True])
def test_the_rules_of_a_state_sum_to_one(small: Examples, smoothing: bool) -> None:
    """Smoothing takes from a rule only what it gives to other states of the same rule, so the sum
    is one on average over states; without it, for every state."""
    grammar = small.grammar
    config = ClusteringConfig(states=4, examples=4, smoothing=smoothing, terms=16)
    tables, clusters, error = learned(small, config)
    assert error < 1e-2
    total = np.zeros(int(tables.root_offset[-1]))
    for r, (a, _, _) in enumerate(grammar.rules.tolist()):
        sums = tables.dense(r).sum(axis=(1, 2))
        total[tables.root_offset[a] : tables.root_offset[a + 1]] += sums
    for a in range(grammar.n_internal):
        own = total[tables.root_offset[a] : tables.root_offset[a + 1]]
        share = clusters.inside[clusters.symbol == a, : tables.states[a]].mean(axis=0)
        assert own @ share == pytest.approx(1, abs=1e-2)  # the terms' error
        if not smoothing:
            np.testing.assert_allclose(own, 1, atol=1e-2)


def test_neither_workers_nor_another_run_change_a_byte(small: Examples) -> None:
    config = ClusteringConfig(states=4, examples=4)
    runs = [clustering.estimate(EstimatorInputs(small, 2, n), config)[0] for n in (1, 1, 2, 3)]
    numbers = [(t.parent.tobytes(), t.left.tobytes(), t.c_inf.tobytes()) for t in runs]
    assert numbers[1:] == numbers[:1] * 3
    other = clustering.estimate(EstimatorInputs(small, 3, 1), config)[0]
    assert other.parent.tobytes() != runs[0].parent.tobytes()


def test_a_symbol_has_no_more_clusters_than_examples_allow(small: Examples) -> None:
    clusters = clustering.cluster(
        EstimatorInputs(small, 1, 1), ClusteringConfig(states=8, examples=5)
    )
    assert (clusters.states <= np.maximum(1, np.bincount(clusters.symbol) // 5)).all()
    assert clusters.states.max() == 8


@pytest.mark.parametrize("text", TINY)
def test_small_treebanks_have_clusters(text: str) -> None:
    trees = [binarize(tree) for tree in map(normalize, read_string(text)) if tree is not None]
    inputs = EstimatorInputs(coded(forest_of(trees)), 1, 1)
    tables, _ = clustering.estimate(inputs, ClusteringConfig(examples=1))
    assert tables.c_one.sum() == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize("name", ["dimensions", "rounds", "examples"])
def test_settings_out_of_range_are_refused(name: str) -> None:
    with pytest.raises(TrainingError, match=f"expected `{name}` of at least 1, got 0: raise it"):
        ClusteringConfig(**{name: 0})


# Clustering and EM --------------------------------------------------------------------------------


def test_em_from_clusters_starts_likelier_than_em_from_chance(small: Examples) -> None:
    config = ClusteringEmConfig(states=4, examples=4, steps=2)
    _, clustered = clustering.estimate_em(EstimatorInputs(small, 1, 1), config)
    _, by_chance = em.estimate(
        EstimatorInputs(small, 1, 1), EmConfig(states=4, examples=4, steps=6)
    )
    assert clustered.log_likelihood[0] > by_chance.log_likelihood[-1]


def test_terms_of_clusters_come_to_their_relative_frequencies(small: Examples) -> None:
    """One sweep has what does not depend on how terms share a rule; many have all of it."""
    clusters = clustering.cluster(EstimatorInputs(small, 1, 1), LITERAL)
    exact, _, _ = learned(small, LITERAL)
    distance = {}
    for sweeps in (1, 100):
        tables = em.from_clusters(
            em.Corpus(small),
            clusters.states,
            np.argmax(clusters.inside, axis=1).astype(np.int32),
            9,
            Smoothing(0.0, 0.0),
            sweeps=sweeps,
            seed=1,
            workers=1,
        ).tables()
        np.testing.assert_allclose(tables.c_inf, exact.c_inf, rtol=1e-5)
        np.testing.assert_allclose(tables.c_one, exact.c_one, rtol=1e-5)
        rules = [(tables.dense(r), exact.dense(r)) for r in range(tables.grammar.n_rules)]
        for one, other in rules:
            np.testing.assert_allclose(one.sum(axis=(1, 2)), other.sum(axis=(1, 2)), atol=1e-3)
        distance[sweeps] = sum(np.abs(one - other).sum() for one, other in rules)
    total = sum(exact.dense(r).sum() for r in range(exact.grammar.n_rules))
    assert distance[100] < 0.02 * total < distance[1]


def test_the_number_of_workers_changes_no_byte_of_em_from_clusters(small: Examples) -> None:
    config = ClusteringEmConfig(states=4, examples=4, steps=2)
    runs = [clustering.estimate_em(EstimatorInputs(small, 2, n), config)[0] for n in (1, 2, 3)]
    numbers = [(t.parent.tobytes(), t.left.tobytes(), t.c_inf.tobytes()) for t in runs]
    assert numbers[1:] == numbers[:1] * 2


def test_em_from_clusters_refuses_what_em_does() -> None:
    with pytest.raises(TrainingError, match="expected `steps` of at least 0, got -1: raise it"):
        ClusteringEmConfig(steps=-1)
