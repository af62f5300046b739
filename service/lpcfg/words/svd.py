"""The largest singular values and left vectors of a matrix that is only multiplied with.

Randomised block Krylov iteration (Musco and Musco 2015): with blocks Q_0 = orth(A Π), Π Gaussian,
and Q_{i+1} = orth(A Aᵀ Q_i), the best rank-d approximation within span(Q_0 … Q_q) is nearly that
of all space, after far fewer products than by plain power iteration on one block.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[Any]

OVERSAMPLING = 10
"""Columns of a block beyond the rank that is wanted; Halko et al. (2011) advise 5 to 10."""
SMALL = 1000
"""Rows up to which all of them cost less than a second."""


class Operator(Protocol):
    """A matrix A, (rows, columns)."""

    @property
    def shape(self) -> tuple[int, int]: ...

    def times(self, dense: Floats) -> Floats:
        """Compute A X."""
        ...

    def transposed_times(self, dense: Floats) -> Floats:
        """Compute Aᵀ X."""
        ...


@dataclass(frozen=True)
class Singular:
    """The largest singular values, descending, and the left vectors, (rows, rank)."""

    values: NDArray[np.float64]
    left: Floats


def left_singular(
    operator: Operator,
    rank: int,
    rng: np.random.Generator,
    *,
    steps: int,
    dtype: type[np.floating[Any]] = np.float32,
    on_step: Callable[[int, int], None] = lambda _done, _total: None,
) -> Singular:
    """Find `rank` singular values and left vectors by `steps` products with A Aᵀ.

    Up to `SMALL` rows, the first block spans everything and one step is exact. Signs are fixed:
    the entry of largest magnitude in every vector is positive.
    """
    rows, columns = operator.shape
    width = rows if rows <= max(SMALL, rank + OVERSAMPLING) else rank + OVERSAMPLING
    steps = min(steps, rows // width)
    on_step(0, steps)
    block = operator.times(rng.standard_normal((columns, width)).astype(dtype))
    basis = np.empty((rows, 0), dtype)
    gram = np.empty((0, 0))
    for step in range(steps):
        block = _orthonormal(block, basis)
        basis = np.concatenate([basis, block], axis=1)
        block = operator.times(operator.transposed_times(block))
        added = (basis.T @ block).astype(np.float64)  # new columns of Qᵀ A Aᵀ Q
        old = len(gram)
        grown = np.empty((old + width, old + width))
        grown[:old, :old], grown[:, old:], grown[old:, :old] = gram, added, added[:old].T
        gram = grown
        on_step(step + 1, steps)
    squares, vectors = np.linalg.eigh(gram)
    best = np.argsort(-squares, kind="stable")[:rank]
    left = basis @ vectors[:, best].astype(dtype)
    signs = np.sign(left[np.argmax(np.abs(left), axis=0), np.arange(left.shape[1])])
    return Singular(np.sqrt(np.maximum(squares[best], 0)), left * signs)


def _orthonormal(block: Floats, basis: Floats) -> Floats:
    """Return an orthonormal basis of the block's columns, orthogonal to a basis found before.

    Done twice: once leaves an error of the rounding times the block's condition.
    """
    for _ in range(2):
        block = block - basis @ (basis.T @ block)
        block = np.linalg.qr(block)[0]
    return block
