"""The matrix decomposition by pivots: exact moments, the simplex problem, bad input."""

from itertools import combinations
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from lpcfg.base.errors import TrainingError
from lpcfg.grammar.tables import Doubles
from lpcfg.training.estimators.pivot_decomposition import (
    RowFactors,
    align_states,
    convex_weights,
    decompose_rows,
    emissions,
    find_pivots,
)

EXACT = 1e-9
"""Moments are exact to 1e-16 and simplices here have conditions below 1e4; the alignment stops
at moves of 1e-13, which shrink geometrically by a tenth and more in a thousand steps."""
SHARP = 1e-14
"""Optimality for tests of exactness: a hundred roundings."""


class Factors(NamedTuple):
    """Q_{f,g} = Σ_h π(h) r(f|h) s(g|h) (ACL14, matrix decomposition problem 1)."""

    rows: RowFactors
    columns: Doubles


def decompose(matrix: Doubles | sparse.csr_matrix, m: int) -> Factors:
    """Find π, r and s of a matrix whose rows and whose columns have pivots (figure 2)."""
    rows = decompose_rows(matrix, m, tolerance=SHARP)
    columns = decompose_rows(sparse.csr_matrix(matrix).T.tocsr(), m, tolerance=SHARP)
    transitions = align_states(matrix, rows.weights, columns.emissions)
    return Factors(rows, columns.emissions @ transitions.T)


class Model:
    """π, r and s with a pivot row and a pivot column for every state, in random places."""

    def __init__(self, seed: int, m: int, d: int, columns: int) -> None:
        noise = np.random.default_rng(seed)
        self.r = self._emissions(noise, d, noise.choice(d, m, replace=False))
        self.s = self._emissions(noise, columns, noise.choice(columns, m, replace=False))
        self.prior = noise.dirichlet(np.full(m, 5.0))
        self.moments = (self.r * self.prior) @ self.s.T

    @staticmethod
    def _emissions(noise: np.random.Generator, d: int, pivots: np.ndarray) -> Doubles:
        m = len(pivots)
        table = noise.dirichlet(np.full(d, 0.5), m).T
        table[pivots] = np.diag(noise.uniform(0.05, 0.2, m))
        normal: Doubles = table / table.sum(axis=0)
        return normal

    def permutation(self, pivots: np.ndarray) -> list[int]:
        """Find the state that each pivot stands for, every state once."""
        states = [int(state) for state in (self.r * self.prior)[pivots].argmax(axis=1)]
        assert sorted(states) == list(range(len(self.prior)))
        return states


SIZES = [(1, 5, 4), (2, 5, 6), (4, 20, 30), (8, 60, 50), (12, 200, 12)]


@pytest.mark.parametrize(("m", "d", "columns"), SIZES)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_exact_moments_give_back_the_model(seed: int, m: int, d: int, columns: int) -> None:
    model = Model(seed, m, d, columns)
    found = decompose(model.moments, m)
    states = model.permutation(found.rows.pivots)
    np.testing.assert_allclose(found.rows.prior, model.prior[states], atol=EXACT)
    np.testing.assert_allclose(found.rows.emissions, model.r[:, states], atol=EXACT)
    np.testing.assert_allclose(found.columns, model.s[:, states], atol=EXACT)


def test_rows_alone_need_no_pivots_among_the_columns() -> None:
    model = Model(3, 4, 30, 20)
    mixed = np.random.default_rng(3).dirichlet(np.ones(20), 4).T  # no zero anywhere
    found = decompose_rows((model.r * model.prior) @ mixed.T, 4, tolerance=SHARP)
    states = model.permutation(found.pivots)
    np.testing.assert_allclose(found.emissions, model.r[:, states], atol=EXACT)
    np.testing.assert_allclose(found.prior, model.prior[states], atol=EXACT)


def test_weights_are_the_posteriors_of_the_states() -> None:
    model = Model(4, 5, 40, 30)
    found = decompose_rows(model.moments, 5, tolerance=SHARP)
    joint = model.r * model.prior
    posterior = joint / joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(
        found.weights, posterior[:, model.permutation(found.pivots)], atol=EXACT
    )


@pytest.mark.parametrize("shrinkage", [0.0, 0.01, 1.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_neither_shrinkage_nor_seed_changes_exact_moments(shrinkage: float, seed: int) -> None:
    model = Model(5, 4, 30, 30)
    found = decompose_rows(model.moments, 4, shrinkage=shrinkage, seed=seed, tolerance=SHARP)
    np.testing.assert_allclose(
        found.emissions, model.r[:, model.permutation(found.pivots)], atol=EXACT
    )


def test_counts_and_sparse_matrices_serve_as_well_as_probabilities() -> None:
    moments = Model(6, 3, 20, 25).moments
    dense = decompose(moments, 3)
    counts = decompose(sparse.csr_matrix(moments * 4096), 3)
    np.testing.assert_array_equal(counts.rows.pivots, dense.rows.pivots)
    np.testing.assert_allclose(counts.columns, dense.columns, atol=EXACT)
    np.testing.assert_allclose(counts.rows.prior, dense.rows.prior, atol=EXACT)


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_errors_fall_as_the_root_of_the_data(seed: int) -> None:
    """Slope −½ on logarithms, ± 0.1 as theorems of this kind are tested here; the pivots of these
    models have a hundredth of the events and more."""
    model = Model(seed, 4, 30, 30)
    noise = np.random.default_rng(seed)
    sizes, errors = 10.0 ** np.arange(4, 9), []
    for events in sizes:
        counts = noise.multinomial(int(events), model.moments.ravel()).reshape(30, 30)
        frequent = np.flatnonzero(counts.sum(axis=1) >= events / 100)
        found = decompose_rows(counts.astype(float), 4, candidates=frequent)
        errors.append(np.abs(found.emissions - model.r[:, model.permutation(found.pivots)]).sum())
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.1)


def test_pivots_come_from_the_candidates() -> None:
    moments = Model(8, 3, 20, 20).moments
    free = decompose_rows(moments, 3)
    candidates = np.setdiff1d(np.arange(20), free.pivots[:1])
    assert set(decompose_rows(moments, 3, candidates=candidates).pivots) <= set(candidates)


def test_rows_never_seen_get_the_prior_and_emit_nothing() -> None:
    model = Model(9, 3, 20, 20)
    moments = np.insert(model.moments, 7, 0.0, axis=0)
    found = decompose_rows(moments, 3)
    np.testing.assert_array_equal(found.weights[7], found.prior)
    assert not found.emissions[7].any()
    assert 7 not in found.pivots


def test_alignment_of_exact_factors_is_the_permutation() -> None:
    model = Model(10, 5, 40, 40)
    joint = model.r * model.prior
    order = [3, 0, 4, 1, 2]
    weights = joint / joint.sum(axis=1, keepdims=True)
    found = align_states(model.moments, weights, model.s[:, order])
    np.testing.assert_allclose(found, np.eye(5)[:, order], atol=EXACT)


def test_emissions_and_prior_are_distributions_with_the_rows_as_marginal() -> None:
    noise = np.random.default_rng(11)
    weights, mass = noise.dirichlet(np.ones(4), 30), noise.random(30)
    emitted, prior = emissions(weights, mass)
    np.testing.assert_allclose(emitted.sum(axis=0), 1, atol=1e-14)  # sums of 30 terms
    np.testing.assert_allclose(emitted @ prior, mass / mass.sum(), atol=1e-14)


# The simplex


@given(st.integers(0, 10_000), st.integers(1, 6))
def test_the_corners_of_a_simplex_are_found(seed: int, m: int) -> None:
    noise = np.random.default_rng(seed)
    corners = noise.standard_normal((m, m + 2))
    inside = noise.dirichlet(np.ones(m), 40) @ corners
    points = np.concatenate((inside[:20], corners, inside[20:]))
    found = find_pivots(points, m, np.arange(len(points)))
    assert sorted(found) == list(range(20, 20 + m)) or m == 1  # then all points are one


def nearest_by_enumeration(point: Doubles, corners: Doubles) -> Doubles:
    """Find argmin ‖Σ γ_h w_h − v‖ by trying every face of the simplex (slow twin)."""
    m = len(corners)
    best, least = np.zeros(m), np.inf
    for size in range(1, m + 1):
        for face in combinations(range(m), size):
            base, *others = corners[list(face)]
            edges = np.reshape([other - base for other in others], (size - 1, len(base)))
            solution = np.linalg.lstsq(edges.T, point - base, rcond=None)[0]
            weights = np.zeros(m)
            weights[list(face)] = [1 - solution.sum(), *solution]
            distance = np.linalg.norm(weights @ corners - point)
            if weights.min() >= 0 and distance < least:
                best, least = weights, distance
    return best


@given(st.integers(0, 10_000), st.integers(1, 5))
def test_convex_weights_equal_the_best_face(seed: int, m: int) -> None:
    noise = np.random.default_rng(seed)
    corners = noise.standard_normal((m, m + 1))
    points = 2 * noise.standard_normal((6, m + 1))
    found = convex_weights(points, corners, tolerance=SHARP)
    centred = corners - corners.mean(axis=0)
    spread = np.linalg.eigvalsh(centred @ centred.T)[1:]  # the first belongs to Σ γ = const
    size = np.square(centred).sum(axis=1).max()
    # The docstring's bound, and as much again for the twin's own rounding (a hundred of 2⁻⁵³).
    bound = np.sqrt(m) * SHARP * size / spread.min() if m > 1 else 0.0
    for point, weights in zip(points, found, strict=True):
        assert np.abs(weights - nearest_by_enumeration(point, corners)).max() <= bound + 1e-13


@pytest.mark.parametrize("tolerance", [1e-4, 1e-10])
def test_convex_weights_are_as_optimal_as_asked(tolerance: float) -> None:
    noise = np.random.default_rng(12)
    corners, points = noise.standard_normal((60, 50)), noise.standard_normal((300, 50))
    weights = convex_weights(points, corners, tolerance=tolerance)
    assert weights.min() >= 0
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-12)  # thousands of exchanges
    gradient = (weights @ corners - points) @ corners.T
    worst = np.where(weights > 0, gradient, -np.inf).max(axis=1) - gradient.min(axis=1)
    centred = corners - corners.mean(axis=0)
    size = np.square(centred).sum(axis=1).max()
    assert worst.max() <= tolerance * size + 1e-11  # the gradient's own rounding
    assert worst.max() > tolerance * size / 1000 or tolerance < 1e-9  # it stops when it may


def test_a_corner_weighs_itself_alone() -> None:
    corners = np.random.default_rng(13).standard_normal((7, 9))
    np.testing.assert_array_equal(convex_weights(corners, corners), np.eye(7))


def test_weights_do_not_depend_on_where_the_origin_is() -> None:
    noise = np.random.default_rng(14)
    corners, points = noise.standard_normal((5, 6)), noise.standard_normal((20, 6))
    shifted = convex_weights(points + 1e3, corners + 1e3, tolerance=1e-12)
    # The shift costs three digits of sixteen, the simplex's condition about two.
    np.testing.assert_allclose(
        shifted, convex_weights(points, corners, tolerance=1e-12), atol=1e-10
    )


def test_corners_that_coincide_share_a_weight() -> None:
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    weights = convex_weights(np.array([[0.25, 3.0]]), corners)
    np.testing.assert_allclose(weights @ corners, [[0.25, 0.0]], atol=1e-8)  # the tolerance
    assert weights.sum() == pytest.approx(1, abs=1e-15)


# Bad input


def test_too_many_states_are_refused() -> None:
    with pytest.raises(TrainingError, match="expected 1 to 3 states for a matrix of 5 x 3, got 4"):
        decompose_rows(np.ones((5, 3)), 4)
    with pytest.raises(TrainingError, match=r"expected 1 to 3 states .* got 0"):
        decompose_rows(np.ones((5, 3)), 0)


def test_a_matrix_of_lower_rank_says_how_many_states_it_has() -> None:
    moments = Model(15, 3, 20, 20).moments
    with pytest.raises(TrainingError, match="have only 3: ask for at most 3 states"):
        decompose_rows(moments, 5)


@pytest.mark.parametrize("entry", [-1.0, np.nan, np.inf])
def test_entries_that_are_not_counts_are_refused(entry: float) -> None:
    with pytest.raises(TrainingError, match="got negative or non-finite entries"):
        decompose_rows(np.array([[1.0, entry], [1.0, 1.0]]), 1)


def test_a_matrix_of_zeros_is_refused() -> None:
    with pytest.raises(TrainingError, match="something in it, got 3 x 2 zeros"):
        decompose_rows(np.zeros((3, 2)), 1)


def test_too_few_candidates_are_refused() -> None:
    moments = Model(16, 3, 20, 20).moments
    with pytest.raises(TrainingError, match=r"at least 3 rows that may be pivots .* got 2: ask"):
        decompose_rows(moments, 3, candidates=np.array([1, 2]))
    with pytest.raises(TrainingError, match="at least 3 candidates for 3 pivots, got 2: ask for"):
        find_pivots(moments, 3, np.array([1, 2]))
