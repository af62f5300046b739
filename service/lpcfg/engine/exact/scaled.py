"""Numbers beyond float64's range: mantissas in float64, exponents of two as integers.

Products along a sentence leave float64's range after some 140 words. Scaling by powers of two is
exact, so the results here equal those of plain float64 arithmetic wherever that has the range.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from lpcfg.grammar.tables import Doubles, Longs

ZERO_EXPONENT = -(2**40)
"""The exponent of a row of zeros. It is lower than any other, and sums of it cannot overflow."""

_LOG_2 = math.log(2.0)
_LOWEST_SHIFT = -1100  # 2**-1100 is zero in float64: shifting any further changes nothing


@dataclass(frozen=True)
class SignedLog:
    """A real number as its sign (-1, 0, 1) and the natural log of its magnitude (-inf at zero)."""

    sign: int
    log: float

    @classmethod
    def of(cls, mantissa: float, exponent: int = 0) -> "SignedLog":
        """Represent mantissa × 2**exponent."""
        if mantissa == 0.0:
            return cls(0, -math.inf)
        return cls(int(math.copysign(1, mantissa)), math.log(abs(mantissa)) + exponent * _LOG_2)

    @property
    def value(self) -> float:
        """The number itself, or 0.0 if it is too small for float64."""
        return self.sign * math.exp(self.log)


@dataclass(frozen=True, eq=False)
class Scaled:
    """Rows of numbers: the true value of row n is values[n] × 2**exponent[n].

    A slice shares memory with its source, so `total[rows].add(product)` adds to those rows of
    `total`. Within a row the range is that of float64: an entry more than 2**1000 times smaller
    than its neighbour may become zero.
    """

    values: Doubles
    exponent: Longs

    @classmethod
    def zeros(cls, rows: int, columns: int) -> "Scaled":
        return cls(np.zeros((rows, columns)), np.full(rows, ZERO_EXPONENT, np.int64))

    @classmethod
    def normal(cls, values: Doubles, exponent: Longs) -> "Scaled":
        """Scale each row so that its largest magnitude is in [1/2, 1). The true values stay the
        same.
        """
        values = np.ascontiguousarray(values, np.float64)
        shift = np.frexp(np.abs(values).max(axis=1, initial=0.0))[1]
        normal = np.ldexp(values, -shift[:, None])
        return cls(normal, np.where(normal.any(axis=1), exponent + shift, ZERO_EXPONENT))

    def __getitem__(self, rows: slice) -> "Scaled":
        return Scaled(self.values[rows], self.exponent[rows])

    def __mul__(self, other: "Scaled") -> "Scaled":
        """Multiply entry by entry."""
        return Scaled(self.values * other.values, self.exponent + other.exponent)

    def __matmul__(self, matrix: Any) -> "Scaled":
        """Multiply every row by a matrix, dense or sparse."""
        return Scaled.normal(self.values @ matrix, self.exponent)

    def add(self, other: "Scaled") -> None:
        """Add row by row, in place."""
        theirs = np.where(other.values.any(axis=1), other.exponent, ZERO_EXPONENT)
        top = np.maximum(self.exponent, theirs)
        self.values[...] *= _power(self.exponent - top)
        self.values[...] += other.values * _power(theirs - top)
        self.exponent[...] = top

    def over(self, divisor: "Scaled") -> Doubles:
        """Divide every entry by the one number in `divisor`; by zero, return zeros."""
        if not divisor.values.any():
            return np.zeros_like(self.values)
        shift = np.where(self.values.any(axis=1), self.exponent - divisor.exponent, 0)
        return np.ldexp(self.values / divisor.values, shift[:, None])

    def entry(self, row: int, column: int) -> SignedLog:
        return SignedLog.of(float(self.values[row, column]), int(self.exponent[row]))


def _power(shift: Longs) -> Doubles:
    """Compute 2**shift as a column. No shift may be positive."""
    return np.ldexp(1.0, np.maximum(shift, _LOWEST_SHIFT))[:, None]
