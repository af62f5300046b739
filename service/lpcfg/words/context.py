"""Compute vectors of tokens in their context: [word; left context; right context].

A context's vector is a sum over rates α of exponentially smoothed table rows:
    left_t = Σ_α z_t^α,   z_t^α = α L_α[w_{t-1}] + (1 − α) z_{t-1}^α
and likewise from the right. With the one rate 1 it is the row of the neighbour itself. Before the
first and behind the last token of a sentence stands the row of a break.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lpcfg.base.errors import GrammarError
from lpcfg.base.jit import compiled

Ints = NDArray[np.int32]
Floats = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Contexts:
    """Projections of left and right contexts; row n is that of rarer words, n + 1 of a break."""

    rates: tuple[float, ...]
    left: NDArray[np.float32]
    """(len(rates), n + 2, d)"""
    right: NDArray[np.float32]
    """(len(rates), n + 2, d)"""

    def __post_init__(self) -> None:
        if self.left.shape != self.right.shape or self.left.shape[:1] != (len(self.rates),):
            raise GrammarError(
                f"expected tables of left and right contexts for {len(self.rates)} rates, got "
                f"shapes {self.left.shape} and {self.right.shape}"
            )

    def of(self, rows: Ints) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Compute the vectors of the left and the right context of every token of a sentence, (T,
        d) each.
        """
        n_words = self.left.shape[1] - 2
        padded = np.concatenate([[n_words + 1], rows, [n_words + 1]]).astype(np.int32)
        sums = [np.zeros((len(rows), self.left.shape[2]), np.float32) for _ in range(2)]
        for rate, left, right in zip(self.rates, self.left, self.right, strict=True):
            sums[0] += smoothed(left, padded, rate)[1:-1]
            sums[1] += smoothed(right, padded[::-1].copy(), rate)[::-1][1:-1]
        return sums[0], sums[1]


@compiled()
def smoothed(table: Floats, rows: Ints, rate: float) -> Floats:
    """Compute z_t = α table[w_{t-1}] + (1 − α) z_{t-1} for every token t, with α = `rate`.

    `rows` has the table's row of every token. The last row is a break's: behind a break, z_{t-1}
    counts as 0, so that nothing before the break counts, but its own row does.
    """
    stop = len(table) - 1
    out = np.zeros((len(rows), table.shape[1]), table.dtype)
    keep = table.dtype.type(1 - rate)
    new = table.dtype.type(rate)
    for t in range(1, len(rows)):
        before = rows[t - 1]
        for k in range(table.shape[1]):
            carried = keep * out[t - 1, k] if before != stop else table.dtype.type(0)
            out[t, k] = carried + new * table[before, k]
    return out
