"""Products in blocks of eight are those of NumPy, for terms and vectors of any size."""

import numpy as np
import pytest

from lpcfg.engine.pruned import simd
from lpcfg.grammar.tables import Doubles, Longs, Singles

# Sums of at most 40 products of numbers around 1, in float32.
ROUNDING = 1e-4
SIZES = [(1, 1), (3, 7), (8, 8), (9, 17), (24, 32), (17, 40)]


def stored(terms: Doubles, divisor: float) -> tuple[Singles, Longs]:
    """Store the terms of two equal rules, so that the second does not begin at 0."""
    size, m = terms.shape
    return simd.in_blocks(
        np.tile(terms.ravel(), 2),
        np.array([0, size * m]),
        np.array([size, size], np.int32),
        np.array([m, m], np.int32),
        np.array([1.0, divisor]),
    )


@pytest.mark.parametrize(("size", "m"), SIZES)
def test_terms_are_applied_to_a_vector(size: int, m: int) -> None:
    rng = np.random.default_rng(size)
    terms, vector = rng.normal(size=(size, m)), rng.normal(size=m)
    table, begin = stored(terms, 2.0)
    room = simd.padded(m)
    x, out = np.zeros(room + 5, np.float32), np.zeros(simd.padded(size) + 8, np.float32)
    x[5 : 5 + m] = vector
    simd.apply_terms(table, begin[1], m, simd.padded(size) // simd.LANES, x, 5, out, 8)
    np.testing.assert_allclose(out[8 : 8 + size], terms @ vector / 2.0, atol=ROUNDING)
    np.testing.assert_array_equal(out[:8], 0.0)


@pytest.mark.parametrize(("size", "m"), SIZES)
def test_terms_are_combined_in_given_amounts(size: int, m: int) -> None:
    rng = np.random.default_rng(m)
    terms, amount = rng.normal(size=(size, m)), rng.normal(size=size)
    table, begin = stored(terms, 0.5)
    room = simd.padded(m)
    amounts, y = np.zeros(simd.padded(size), np.float32), np.ones(room + 3, np.float32)
    amounts[:size] = amount
    blocks = len(amounts) // simd.LANES
    simd.add_terms(table, begin[1], m, blocks, 3.0, amounts, y, 3)
    np.testing.assert_allclose(y[3 : 3 + m], 1 + 6 * amount @ terms, atol=10 * ROUNDING)
    np.testing.assert_array_equal(y[:3], 1.0)


def test_blocks_are_multiplied_summed_and_measured() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 24)).astype(np.float32)
    out = np.zeros(16, np.float32)
    simd.multiply(x, 8, y, 0, 2, out)
    np.testing.assert_allclose(out, x[8:] * y[:16], atol=ROUNDING)
    assert simd.dot(x, 0, y, 8, 2) == pytest.approx(float(x[:16] @ y[8:]), abs=ROUNDING)
    assert simd.largest(x, 8, 2) == np.abs(x[8:]).max()
    assert simd.multiply_max(x, 0, y, 8, 2, out) == (x[:16] * y[8:]).max()
    np.testing.assert_array_equal(out, x[:16] * y[8:])
    assert simd.multiply_max(-np.abs(x), 0, np.abs(y), 8, 2, out) == 0
