"""Quantized weights: tables of parameters in one byte a number.

Most learned weights are small beside the largest, so levels lie closer together near zero: byte q
stands for sign(q) (q / 127)² of the largest. On gum/dev, all tables quantized so give 84.96 F1, and
84.95 as they were.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lpcfg.grammar.tables import Singles, frozen

_LARGEST_BYTE = 127
_CHUNK = 1 << 15


class QuantizedWeights(NamedTuple):
    """A table in bytes, and the magnitude of its largest number."""

    table: NDArray[np.int8]
    largest: float

    @property
    def unit(self) -> np.float32:
        """The number that q |q| = 1 stands for, so that a weight is q |q| · unit."""
        return np.float32(self.largest / _LARGEST_BYTE**2)


def quantize(table: Singles) -> QuantizedWeights:
    """Round every number to the nearest level, by the square roots of their magnitudes."""
    largest = float(np.abs(table).max(initial=0.0))
    root = np.sqrt(np.abs(table) / np.float32(largest or 1.0))
    return QuantizedWeights(
        frozen(np.copysign(np.rint(root * _LARGEST_BYTE), table).astype(np.int8)), largest
    )


def dequantize(weights: QuantizedWeights) -> Singles:
    """Return the numbers that bytes stand for."""
    q = np.arange(256, dtype=np.uint8).view(np.int8).astype(np.float64)
    value = np.copysign((q / _LARGEST_BYTE) ** 2 * weights.largest, q).astype(np.float32)
    table, numbers = weights.table.view(np.uint8).ravel(), np.empty(weights.table.size, np.float32)
    for k in range(0, len(numbers), _CHUNK):  # each byte becomes a place of eight bytes first
        chunk = slice(k, k + _CHUNK)
        value.take(table[chunk], out=numbers[chunk], mode="clip")
    return numbers.reshape(weights.table.shape)


def rounded(table: Singles) -> Singles:
    """Quantize numbers and turn them back; numbers that were rounded before stay as they are."""
    return dequantize(quantize(table))
