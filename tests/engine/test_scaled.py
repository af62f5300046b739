"""Numbers beyond float64's range, against fractions, which have none."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lpcfg.engine.exact.scaled import ZERO_EXPONENT, Scaled, SignedLog

numbers = st.floats(-1e3, 1e3, allow_subnormal=False)
exponents = st.integers(-5000, 5000)
rows = st.tuples(st.lists(numbers, min_size=3, max_size=3), exponents)


def scaled(row: tuple[list[float], int]) -> Scaled:
    return Scaled.normal(np.array([row[0]]), np.array([row[1]]))


def exact(number: Scaled) -> list[Fraction]:
    return [
        Fraction(value) * Fraction(2) ** int(number.exponent[0] if value else 0)
        for value in number.values[0].tolist()
    ]


@given(rows)
def test_normal_rows_keep_their_value(row: tuple[list[float], int]) -> None:
    values, exponent = row
    largest = max(map(abs, values))
    # What is 2**1000 times smaller than its neighbour may go.
    values = [value if abs(value) >= largest * 2.0**-1000 else 0.0 for value in values]
    normal = scaled((values, exponent))
    assert exact(normal) == [Fraction(value) * Fraction(2) ** exponent for value in values]
    assert not any(values) or 0.5 <= np.abs(normal.values).max() < 1


def test_subnormal_rows_are_scaled_up() -> None:
    normal = Scaled.normal(np.array([[5e-324, 1e-323]]), np.array([0]))
    assert normal.values.tolist() == [[0.25, 0.5]]
    assert normal.exponent.tolist() == [-1072]


def test_rows_of_zeros_have_the_least_exponent() -> None:
    assert (
        Scaled.normal(np.zeros((2, 3)), np.array([7, -7])).exponent.tolist() == [ZERO_EXPONENT] * 2
    )
    assert (
        Scaled.normal(np.empty((2, 0)), np.array([7, -7])).exponent.tolist() == [ZERO_EXPONENT] * 2
    )


@given(rows, rows)
def test_sums_are_those_of_fractions(
    first: tuple[list[float], int], second: tuple[list[float], int]
) -> None:
    a, b = scaled(first), scaled(second)
    expected = [x + y for x, y in zip(exact(a), exact(b), strict=True)]
    largest = max(map(abs, (*exact(a), *exact(b))))
    a.add(b)
    for computed, number in zip(exact(a), expected, strict=True):
        assert abs(computed - number) <= largest * Fraction(1, 2**52)


@given(rows, rows)
def test_products_are_those_of_fractions(
    first: tuple[list[float], int], second: tuple[list[float], int]
) -> None:
    a, b = scaled(first), scaled(second)
    largest = max(map(abs, exact(a))) * max(map(abs, exact(b)))
    for computed, x, y in zip(exact(a * b), exact(a), exact(b), strict=True):
        assert abs(computed - x * y) <= largest * Fraction(1, 2**52)


def test_a_product_that_is_zero_leaves_a_sum_as_it_was() -> None:
    """Even where its factors are larger than what is there by more than float64's range."""
    total = Scaled(np.array([[0.75, 0.5]]), np.array([-4000]))
    total.add(
        Scaled(np.array([[1.0, 0.0]]), np.array([0]))
        * Scaled(np.array([[0.0, 1.0]]), np.array([0]))
    )
    assert total.values.tolist() == [[0.75, 0.5]]
    assert total.exponent.tolist() == [-4000]


def test_rows_of_a_sum_are_added_to_in_place() -> None:
    total = Scaled.zeros(3, 1)
    total[1:].add(Scaled(np.array([[0.5], [0.75]]), np.array([3, -2000])))
    assert total.values.tolist() == [[0.0], [0.5], [0.75]]
    assert total.exponent.tolist() == [ZERO_EXPONENT, 3, -2000]


def test_over_divides_by_a_number_beyond_range() -> None:
    rows_ = Scaled(np.array([[0.5, -0.25], [0.0, 0.0]]), np.array([-3000, ZERO_EXPONENT]))
    assert rows_.over(Scaled(np.array([[-0.5]]), np.array([-3001]))).tolist() == [[-2, 1], [0, 0]]
    assert rows_.over(Scaled(np.array([[0.0]]), np.array([ZERO_EXPONENT]))).tolist() == [[0, 0]] * 2


def test_signed_log_of_numbers_of_every_sign() -> None:
    assert SignedLog.of(0.0, 12) == SignedLog(0, -math.inf)
    assert SignedLog.of(-0.5, -3000) == SignedLog(-1, pytest.approx(-3001 * math.log(2)))
    assert SignedLog.of(3.0).value == pytest.approx(3.0)
    assert SignedLog.of(-3.0, 2).value == pytest.approx(-12.0)
    assert SignedLog.of(0.0).value == 0.0
    assert SignedLog.of(1.0, -3000).value == 0.0
