"""Sums, marginals and best trees, against all projective trees one by one."""

import itertools

import numpy as np
import pytest
from benchmarks.dependency_trees.k_best import k_best_trees

from lpcfg.kinds.dependencies import eisner
from tests.kinds.dependencies import trees

SIZES = range(1, 6)


def scores(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng([n, seed]).normal(0, 2, (n + 1, n + 1))


def total(score: np.ndarray, heads: trees.Heads) -> float:
    return sum(score[head, m] for m, head in enumerate(heads, start=1))


@pytest.mark.parametrize(("n", "seed"), list(itertools.product(SIZES, range(3))))
def test_marginals_are_shares_of_all_projective_trees(n: int, seed: int) -> None:
    score = scores(n, seed)
    every = trees.projective_trees(n)
    weights = np.exp([total(score, heads) for heads in every])
    expected = np.zeros((n + 1, n + 1))
    for weight, heads in zip(weights, every, strict=True):
        for m, head in enumerate(heads, start=1):
            expected[head, m] += weight / weights.sum()
    found, log_z = eisner.marginals(score)
    assert log_z == pytest.approx(np.log(weights.sum()), abs=1e-9)
    np.testing.assert_allclose(found, expected, atol=1e-9)
    np.testing.assert_allclose(found[:, 1:].sum(axis=0), 1.0, atol=1e-9)


@pytest.mark.parametrize(("n", "seed"), list(itertools.product(SIZES, range(3))))
def test_the_best_tree_has_the_largest_sum(n: int, seed: int) -> None:
    score = scores(n, seed)
    best = max(trees.projective_trees(n), key=lambda heads: total(score, heads))
    assert tuple(eisner.best_tree(score).tolist()) == best


@pytest.mark.parametrize(("n", "k"), list(itertools.product(SIZES, (1, 7, 50))))
def test_the_k_best_trees_are_those_of_enumeration_in_order(n: int, k: int) -> None:
    score = scores(n, k)
    every = sorted(trees.projective_trees(n), key=lambda heads: -total(score, heads))[:k]
    heads, sums = k_best_trees(score, k)
    assert [tuple(row) for row in heads.tolist()] == every
    np.testing.assert_allclose(sums, [total(score, one) for one in every], atol=1e-9)


def test_an_arc_that_is_ruled_out_is_in_no_tree() -> None:
    score = scores(4, 0)
    score[2, 3] = score[0, 1] = eisner.LOG_ZERO
    found, _ = eisner.marginals(score)
    assert found[2, 3] == found[0, 1] == 0
    heads, _ = k_best_trees(score, 500)
    allowed = [h for h in trees.projective_trees(4) if h[2] != 2 and h[0] != 0]
    assert len(heads) == len(allowed)


def test_trees_of_equal_scores_are_counted() -> None:
    """Projective trees of n words with one root: 1, 2, 7, 30, 143 (the sequence A006013)."""
    counts = [np.exp(eisner.marginals(np.zeros((n + 1, n + 1)))[1]) for n in range(1, 6)]
    np.testing.assert_allclose(counts, [1, 2, 7, 30, 143])


@pytest.mark.parametrize("spread", [1, 5])
def test_products_and_logs_give_the_same(spread: float) -> None:
    score = spread * scores(40, 2)
    found, log_z = eisner.marginals_by_products(score)
    expected, expected_z = eisner.marginals_by_logs(score)
    assert log_z == pytest.approx(expected_z, abs=1e-9)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_scores_too_far_apart_for_products_are_left_to_logs() -> None:
    """The only good arcs to words 1 and 2 are a cycle: every tree is e^-2000 times as likely."""
    score = np.zeros((4, 4))
    score[1, 2] = score[2, 1] = 2000
    assert np.isnan(eisner.marginals_by_products(score)[1])
    found, log_z = eisner.marginals(score)
    assert log_z == pytest.approx(2000 + np.log(6), rel=0.01)
    np.testing.assert_allclose(found[:, 1:].sum(axis=0), 1.0, atol=1e-9)


def test_large_scores_and_long_sentences_stay_finite() -> None:
    score = 300 * scores(120, 1)
    found, log_z = eisner.marginals(score)
    assert np.isfinite(log_z)
    np.testing.assert_allclose(found[:, 1:].sum(axis=0), 1.0, atol=1e-6)
