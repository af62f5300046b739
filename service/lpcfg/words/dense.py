"""CCA of two views from their second moments, dense."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]

RIDGE = 1e-8
"""Added to a view's moments, as a share of their mean eigenvalue: float32 sums are no better."""


@dataclass(frozen=True)
class Canonical:
    """Projections of both views that are uncorrelated within, and correlated as strongly as can be.

    `first`ᵀ C_11 `first` = I = `second`ᵀ C_22 `second`, `first`ᵀ C_12 `second` = diag(`values`).
    """

    first: Doubles
    second: Doubles
    values: Doubles


def cca(c11: Doubles, c12: Doubles, c22: Doubles, rank: int) -> Canonical:
    """Return the `rank` strongest pairs of canonical directions."""
    first_root, second_root = inverse_root(c11), inverse_root(c22)
    left, values, right = np.linalg.svd(first_root @ c12 @ second_root)
    return Canonical(first_root @ left[:, :rank], second_root @ right[:rank].T, values[:rank])


def inverse_root(moments: Doubles) -> Doubles:
    """Compute C^{-½}, symmetric; directions without variance get none."""
    values, vectors = np.linalg.eigh((moments + moments.T) / 2)
    floor = RIDGE * max(float(values.mean()), 0.0)
    scale = np.zeros_like(values)
    np.divide(1, np.sqrt(np.maximum(values, floor)), out=scale, where=values > floor)
    result: Doubles = (vectors * scale) @ vectors.T
    return result


def cca_with_states(
    sums: NDArray[Any], moments: Doubles, counts: Doubles, dimensions: int
) -> tuple[Doubles, Doubles]:
    """Run CCA of words against dense states s of their contexts.

    Args:
        sums: of the states of each word's tokens, (n, s)
        moments: the sum of s sᵀ over all tokens, (s, s)
        counts: the number of each word's tokens, (n,)

    Returns:
        The left vectors U, (n, d), and projections of states, (s, d)
    """
    whiten = inverse_root(moments)
    scale = np.zeros_like(counts)
    np.power(counts, -0.5, out=scale, where=counts > 0)
    omega = (scale[:, None] * sums) @ whiten
    squares, vectors = np.linalg.eigh(omega.T @ omega)
    best = np.argsort(-squares, kind="stable")[:dimensions]
    values = np.sqrt(np.maximum(squares[best], 0))
    inverse = np.divide(1, values, out=np.zeros_like(values), where=values > 0)
    words = (omega @ vectors[:, best]) * inverse
    signs = np.where(words[np.argmax(np.abs(words), axis=0), np.arange(len(best))] < 0, -1.0, 1.0)
    return words * signs, whiten @ vectors[:, best] * signs
