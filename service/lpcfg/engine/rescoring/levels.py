"""Tables of parameters in one byte a number, which lie closer together near zero.

Most learned weights are small beside the largest: byte q stands for ± (q / 127)² of it. On
gum/dev, all tables rounded so give 84.96 F1, and 84.95 as they were.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lpcfg.grammar.tables import Singles, frozen

_MOST = 127
_AT_ONCE = 1 << 15


class Levels(NamedTuple):
    """A table in bytes, and the magnitude of its largest number."""

    table: NDArray[np.int8]
    largest: float

    @property
    def unit(self) -> np.float32:
        """The number that q |q| = 1 stands for."""
        return np.float32(self.largest / _MOST**2)


def to_levels(table: Singles) -> Levels:
    """Round every number to the nearest level, by the square roots of their magnitudes."""
    largest = float(np.abs(table).max(initial=0.0))
    root = np.sqrt(np.abs(table) / np.float32(largest or 1.0))
    return Levels(frozen(np.copysign(np.rint(root * _MOST), table).astype(np.int8)), largest)


def from_levels(levels: Levels) -> Singles:
    """Return the numbers that bytes stand for."""
    q = np.arange(256, dtype=np.uint8).view(np.int8).astype(np.float64)
    value = np.copysign((q / _MOST) ** 2 * levels.largest, q).astype(np.float32)
    bytes_in, result = levels.table.view(np.uint8).ravel(), np.empty(levels.table.size, np.float32)
    for k in range(0, len(result), _AT_ONCE):  # each byte becomes a place of eight bytes first
        piece = slice(k, k + _AT_ONCE)
        value.take(bytes_in[piece], out=result[piece], mode="clip")
    return result.reshape(levels.table.shape)


def rounded(table: Singles) -> Singles:
    """Return the numbers as their bytes hold them; once rounded, they stay as they are."""
    return from_levels(to_levels(table))
