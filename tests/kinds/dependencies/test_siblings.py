"""Sums, marginals and best trees of second order, against all projective trees one by one."""

import itertools

import numpy as np
import pytest
from benchmarks.dependency_trees import k_best, siblings

from lpcfg.kinds.dependencies import eisner
from tests.kinds.dependencies import trees

SIZES = range(1, 6)


def scores(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng([n, seed]).normal(0, 2, (n + 1, n + 1, n + 1))


def parts(heads: trees.Heads) -> list[tuple[int, int, int]]:
    """List head, nearer sibling (or the head) and modifier of every word, by the definition."""
    result = []
    for m, head in enumerate(heads, start=1):
        between = range(min(head, m) + 1, max(head, m))
        nearer = [s for s in between if heads[s - 1] == head]
        nearest = max if head < m else min
        result.append((head, nearest(nearer, default=head), m))
    return result


def total(score: np.ndarray, heads: trees.Heads) -> float:
    return sum(score[part] for part in parts(heads))


@pytest.mark.parametrize(("n", "seed"), list(itertools.product(SIZES, range(3))))
def test_marginals_are_shares_of_all_projective_trees(n: int, seed: int) -> None:
    score = scores(n, seed)
    every = trees.projective_trees(n)
    weights = np.exp([total(score, heads) for heads in every])
    expected = np.zeros(score.shape)
    for weight, heads in zip(weights, every, strict=True):
        for part in parts(heads):
            expected[part] += weight / weights.sum()
    found, log_z = siblings.marginals(score)
    assert log_z == pytest.approx(np.log(weights.sum()), abs=1e-9)
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize(("n", "k"), list(itertools.product(SIZES, (1, 7, 50))))
def test_the_k_best_trees_are_those_of_enumeration_in_order(n: int, k: int) -> None:
    score = scores(n, k)
    every = sorted(trees.projective_trees(n), key=lambda heads: -total(score, heads))[:k]
    heads, sums = siblings.k_best_trees(score, k)
    assert [tuple(row) for row in heads.tolist()] == every
    np.testing.assert_allclose(sums, [total(score, one) for one in every], atol=1e-9)


def test_scores_of_arcs_alone_give_the_first_order() -> None:
    arcs = np.random.default_rng(0).normal(0, 2, (13, 13))
    score = np.repeat(arcs[:, None, :], 13, axis=1)
    heads, sums = siblings.k_best_trees(score, 50)
    expected, expected_sums = k_best.k_best_trees(arcs, 50)
    np.testing.assert_array_equal(heads, expected)
    np.testing.assert_allclose(sums, expected_sums, atol=1e-9)
    posterior, log_z = siblings.marginals(score)
    of_arcs, expected_log_z = eisner.marginals(arcs)
    np.testing.assert_allclose(posterior.sum(axis=1), of_arcs, atol=1e-9)
    assert log_z == pytest.approx(expected_log_z, abs=1e-9)
