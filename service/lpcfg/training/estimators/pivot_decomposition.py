"""Decompose a matrix by pivots (ACL14, sections 5.2 and 5.3, figure 2).

Given Q ∈ R^{d×d'} with Q_{f,g} = Σ_h π(h) r(f|h) s(g|h), find π, r and s, if every state h has a
**pivot**: a row f with r(f|h) > 0 that no other state emits (and, for s, such a column). Q may hold
counts or probabilities, because no result depends on its sum.

    p(f) = Σ_g Q_{f,g}            p(g|f) = Q_{f,g} / p(f)
    φ(g) ∈ R^m                    a projection of the columns, by CCA
    v_f = E[φ(g) | f] = Σ_h p(h|f) w_h,      w_h = E[φ(g) | h] = v of a pivot of h

The points v_f lie in a simplex whose corners are the pivots' points, and p(h|f) are f's barycentric
coordinates in it. The steps are separate functions, so that an estimator with several features per
node (section 6.2) can use its own statistics between them:

    projection → conditional_means → find_pivots → convex_weights → emissions
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds

from lpcfg.base.errors import TrainingError
from lpcfg.base.jit import compiled
from lpcfg.grammar.tables import Doubles, Longs

Matrix: TypeAlias = Doubles | sparse.csr_matrix

TOLERANCE = 1e-8
"""Optimality of convex weights, relative to the squared size of the simplex.

Counts of 10⁶ events determine a point to about 1e-3. This is two digits finer than its square.
"""
SAME_SUBSPACE = 1e-10
"""A distance this far below the first one is rounding (1e-16 times m ≤ 10³, times a thousand)."""
STEPS_PER_STATE = 1000
"""The most exchanges per row and state, so that the loop ends for a degenerate simplex too.

Rows of real counts need fewer than 10 per state.
"""
ROWS_AT_ONCE = 8192
"""Rows solved in one call: 16 MB of targets at 256 states."""


@dataclass(frozen=True, slots=True)
class RowFactors:
    """The results for the rows of Q (ACL14, matrix decomposition problem 2)."""

    pivots: Longs
    """(m,) the row taken as the pivot of each state"""
    weights: Doubles
    """(d, m) p(h|f); rows sum to one"""
    emissions: Doubles
    """(d, m) r(f|h); columns sum to one"""
    prior: Doubles
    """(m,) π(h)"""


def decompose_rows(
    matrix: Matrix,
    m: int,
    *,
    candidates: Longs | None = None,
    shrinkage: float = 0.0,
    seed: int = 0,
    tolerance: float = TOLERANCE,
) -> RowFactors:
    """Find π and r of a matrix whose rows have pivots (section 5.2). Its columns may be anything.

    Rows that are all zero get the weights π.

    Args:
        matrix: Q, of counts or probabilities.
        m: the number of states.
        candidates: the rows that may be pivots (default: all). For counts, pass the frequent rows:
            points of rare rows are noise, and noise lies farthest out. Only candidates determine
            the projection, so that no dimension is spent on differences between other rows.
        shrinkage: of the projection, in units of Q.
        seed: of the sparse solver.
        tolerance: of the convex weights.

    Raises:
        TrainingError: if Q has negative numbers or too few rows or columns.
    """
    table = _as_counts(matrix)
    if not 1 <= m <= min(table.shape):
        raise TrainingError(
            f"expected 1 to {min(table.shape)} states for a matrix of "
            f"{table.shape[0]} x {table.shape[1]}, got {m}"
        )
    mass = np.asarray(table.sum(axis=1), dtype=np.float64).ravel()
    seen = np.flatnonzero(mass)
    allowed = seen if candidates is None else np.intersect1d(candidates, seen)
    if len(allowed) < m:
        raise TrainingError(
            f"expected at least {m} rows that may be pivots of {m} states, got {len(allowed)}: "
            "ask for fewer states"
        )
    columns = projection(table[allowed], m, shrinkage=shrinkage, seed=seed)
    points = conditional_means(table, columns, mass)
    pivots = find_pivots(points, m, allowed)
    weights = convex_weights(points, points[pivots], tolerance=tolerance)
    emitted, prior = emissions(weights, mass)
    weights[mass == 0] = prior
    return RowFactors(pivots, weights, emitted, prior)


def _as_counts(matrix: Matrix) -> sparse.csr_matrix:
    """Convert Q to sparse rows of float64, and check its entries."""
    table = sparse.csr_matrix(matrix, dtype=np.float64)
    if not np.all(np.isfinite(table.data)) or np.any(table.data < 0):
        raise TrainingError(
            "expected a matrix of counts or probabilities, got negative or non-finite entries"
        )
    if not table.data.any():
        raise TrainingError(
            f"expected a matrix with something in it, got {table.shape[0]} x {table.shape[1]} zeros"
        )
    return table


def projection(matrix: Matrix, m: int, *, shrinkage: float = 0.0, seed: int = 0) -> Doubles:
    """Compute φ, (d', m): columns g by the m leading canonical directions of Q (step 1).

    φ = D_g^{-1/2} V with U Σ Vᵀ ≈ D_f^{-1/2} Q D_g^{-1/2}, where D are the diagonal sums plus
    `shrinkage`. Shrinkage keeps a rare row or column from having a canonical direction to itself.
    From exact moments, any φ gives exact recovery if it keeps the m points w_h affinely
    independent.
    """
    table = sparse.csr_matrix(matrix, dtype=np.float64)
    row_scale = _inverse_root(np.asarray(table.sum(axis=1)).ravel() + shrinkage)
    column_scale = _inverse_root(np.asarray(table.sum(axis=0)).ravel() + shrinkage)
    scaled = sparse.diags(row_scale) @ table @ sparse.diags(column_scale)
    if m < min(scaled.shape):
        start = np.random.default_rng(seed).standard_normal(min(scaled.shape))
        _, values, directions = svds(scaled, k=m, v0=start)
        directions = directions[np.argsort(-values)]
    else:  # the sparse solver cannot return all of them
        directions = np.linalg.svd(scaled.toarray(), full_matrices=False)[2]
    return np.ascontiguousarray(column_scale[:, None] * directions.T)


def _inverse_root(sums: Doubles) -> Doubles:
    """Compute 1/√sums, and 0 for sums of zero."""
    return np.divide(1.0, np.sqrt(sums), out=np.zeros_like(sums), where=sums > 0)


def conditional_means(matrix: Matrix, columns: Doubles, mass: Doubles) -> Doubles:
    """Compute v, (d, l): v_f = Σ_g Q_{f,g} φ(g) / mass_f (step 2); zero if mass_f is zero.

    `mass` is the count of f: the row sum of Q, unless f meets several columns at once.
    """
    sums = np.asarray(matrix @ columns, dtype=np.float64)
    weight = mass[:, None]
    return np.divide(sums, weight, out=np.zeros_like(sums), where=weight > 0)


def find_pivots(points: Doubles, m: int, candidates: Longs) -> Longs:
    """Find m corners of the simplex, (m,) rows of `points` (step 3, FastAnchorWords).

    The first corner is the candidate farthest from the candidates' mean. Each further one is the
    candidate farthest from the affine span of those before it. Such a distance is convex, so its
    maximum over a simplex is at a corner: of m affinely independent corners, each is found once.
    """
    if len(candidates) < m:
        raise TrainingError(
            f"expected at least {m} candidates for {m} pivots, got {len(candidates)}: "
            "ask for fewer states"
        )
    residual = points[candidates] - points[candidates].mean(axis=0)
    pivots: list[int] = []
    negligible = 0.0
    for state in range(m):
        distances = np.sqrt(np.einsum("ij,ij->i", residual, residual))
        farthest = int(np.argmax(distances))
        if state == 0:
            negligible = SAME_SUBSPACE * distances[farthest]
            residual = residual - residual[farthest]
        elif distances[farthest] <= negligible:
            raise TrainingError(
                f"expected {m} affinely independent pivots, the points have only {state}: "
                f"ask for at most {state} states"
            )
        else:
            direction = residual[farthest] / distances[farthest]
            residual = residual - np.outer(residual @ direction, direction)
        pivots.append(farthest)
    return np.asarray(candidates, dtype=np.int64)[pivots]


def convex_weights(points: Doubles, corners: Doubles, *, tolerance: float = TOLERANCE) -> Doubles:
    """Compute γ, (d, m): for every v, argmin ‖Σ_h γ_h w_h − v‖², γ_h ≥ 0, Σ_h γ_h = 1 (step 4).

    At the result the gradients g of ½‖·‖² satisfy max{g_h : γ_h > 0} − min g ≤ tolerance · R²,
    where R is the largest distance of a corner from their mean. Hence, with e the least eigenvalue
    of the corners' centred Gram matrix on Σ_h γ_h = 0, ‖γ − γ*‖ ≤ ½ √m · tolerance · R² / e.
    """
    centre = corners.mean(axis=0)
    centred = corners - centre
    gram = centred @ centred.T
    threshold = tolerance * float(gram.diagonal().max())
    weights = np.zeros((len(points), len(corners)))
    for start in range(0, len(points), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        targets = (points[rows] - centre) @ centred.T
        _project_on_simplex(gram, targets, threshold, weights[rows])
    return weights


@compiled()
def _project_on_simplex(gram: Doubles, targets: Doubles, threshold: float, out: Doubles) -> None:
    """Run pairwise Frank-Wolfe with exact line search, one row of `targets` = W v at a time.

    A step moves weight between two corners. The gradient Gγ − Wv is kept, so a step costs O(m).
    """
    m = gram.shape[0]
    gradient = np.empty(m)
    for row in range(targets.shape[0]):
        weight = out[row]
        nearest = _nearest_corner(gram, targets[row])
        weight[nearest] = 1.0
        gradient[:] = gram[nearest] - targets[row]
        for _ in range(STEPS_PER_STATE * m):
            taker = int(np.argmin(gradient))
            giver, worst = _best_giver(gram, gradient, weight, taker)
            if worst <= threshold:
                break
            step = weight[giver]
            slope = gradient[giver] - gradient[taker]
            curvature = gram[giver, giver] + gram[taker, taker] - 2 * gram[giver, taker]
            if slope < step * curvature:
                step = slope / curvature
            weight[giver] -= step
            weight[taker] += step
            gradient += step * (gram[taker] - gram[giver])


@compiled(helper=True)
def _nearest_corner(gram: Doubles, target: Doubles) -> int:
    """Find argmin_h ‖w_h − v‖²."""
    nearest, least = 0, np.inf
    for h in range(gram.shape[0]):
        distance = gram[h, h] - 2 * target[h]
        if distance < least:
            nearest, least = h, distance
    return nearest


@compiled(helper=True)
def _best_giver(gram: Doubles, gradient: Doubles, weight: Doubles, taker: int) -> tuple[int, float]:
    """Find the active corner whose exchange with `taker` gains most, and the largest slope.

    An unbounded exchange gains slope² / (2 · curvature). If two corners coincide, the curvature is
    0 or rounding, and a slope moves all the weight.
    """
    giver, gain, worst = taker, 0.0, 0.0
    for h in range(gram.shape[0]):
        slope = gradient[h] - gradient[taker]
        if weight[h] > 0 and slope > 0:
            worst = max(worst, slope)
            curvature = gram[h, h] + gram[taker, taker] - 2 * gram[h, taker]
            if slope * slope > gain * curvature:
                giver = h
                gain = slope * slope / curvature if curvature > 0 else np.inf
    return giver, worst


def emissions(weights: Doubles, mass: Doubles) -> tuple[Doubles, Doubles]:
    """Compute r(f|h) ∝ p(f) p(h|f), (d, m), and π(h) = Σ_f p(f) p(h|f), (m,).

    The rows may be one feature template of several: r then sums to one over that template.
    """
    joint = mass[:, None] * weights
    sums = joint.sum(axis=0)
    return joint / sums, sums / sums.sum()


ALIGNED = 1e-13
"""EM has settled if no transition changes by more: about 500 roundings of one."""
ALIGNMENT_STEPS = 5000
"""The most EM steps of `align_states`. Matrices of tens of states settle in hundreds."""


def align_states(
    matrix: Matrix,
    weights: Doubles,
    emitted: Doubles,
    *,
    steps: int = ALIGNMENT_STEPS,
    settled: float = ALIGNED,
) -> Doubles:
    """Compute t(h'|h), (m, m) [h, h'], rows sum to one: match states of `emitted` and `weights`.

    This is step 3. It maximises Σ_{f,g} Q_{f,g} log Σ_{h,h'} p(h|f) t(h'|h) s(g|h'), concave in t,
    by EM. With exact factors t is a permutation.
    """
    table = sparse.csr_matrix(matrix, dtype=np.float64)
    m = weights.shape[1]
    transitions = np.full((m, m), 1.0 / m)
    ratio = table.copy()
    for _ in range(steps):
        _divide_by_model(
            table.indptr, table.indices, table.data, weights @ transitions, emitted, ratio.data
        )
        expected = transitions * (weights.T @ np.asarray(ratio @ emitted))
        sums = expected.sum(axis=1, keepdims=True)
        updated = np.divide(expected, sums, out=transitions.copy(), where=sums > 0)
        moved = float(np.abs(updated - transitions).max())
        transitions = updated
        if moved <= settled:
            break
    return transitions


@compiled()
def _divide_by_model(
    row_start: Longs,
    column: Longs,
    count: Doubles,
    left: Doubles,
    right: Doubles,
    out: Doubles,
) -> None:
    """Compute out = count / (left · rightᵀ) at a sparse matrix's entries, and 0 / 0 = 0."""
    for f in range(len(row_start) - 1):
        for entry in range(row_start[f], row_start[f + 1]):
            value = 0.0
            for h in range(left.shape[1]):
                value += left[f, h] * right[column[entry], h]
            out[entry] = count[entry] / value if value > 0 else 0.0
