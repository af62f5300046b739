"""Calibration: the error by hand, and maps that are monotone, small and make probabilities true."""

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lpcfg.base.errors import GrammarError, InputError
from lpcfg.kinds.calibration import Bin, Items, calibration, fit_checked, fit_monotone
from lpcfg.kinds.calibration_map import MonotoneMap

PROBABILITY = st.floats(0, 1) | st.sampled_from([0.0, 0.05, 0.5, 1.0])
ITEMS = st.lists(st.tuples(PROBABILITY, st.booleans()), min_size=1, max_size=80)


# Measuring ----------------------------------------------------------------------------------------


def test_error_by_hand() -> None:
    # 0.9-0.95: .90 and .92 (mean .91), one of two right, off by .41, two of five items
    # 0.95-1:   .96, .98 and 1 (mean .98), all right, off by .02, three of five items
    # (2·.41 + 3·.02) / 5 = .176; .04 is below the threshold
    found = calibration([0.90, 0.92, 0.96, 0.98, 1.0, 0.04], [True, False, True, True, True, True])
    assert found.error == pytest.approx(0.176)
    assert (found.items, len(found.bins)) == (5, 20)
    assert [b.mean_probability for b in found.bins[18:]] == pytest.approx([0.91, 0.98])
    assert [(b.lower, b.accuracy, b.count) for b in found.bins[18:]] == [
        (0.9, 0.5, 2),
        (0.95, 1, 3),
    ]
    assert found.bins[0] == Bin(0.0, 0.05, 0.0, 0.0, 0)


def test_bins_hold_their_lower_bound_and_the_last_one_both() -> None:
    bounds = [i / 20 for i in range(21)]
    found = calibration(bounds, [True] * 21, threshold=0)
    assert [b.count for b in found.bins] == [1] * 19 + [2]


def test_the_threshold_itself_counts_and_bins_and_threshold_can_be_chosen() -> None:
    assert calibration([0.05, 0.049], [True, True]).items == 1
    found = calibration([0.2, 0.4, 0.6], [False, True, True], threshold=0.3, bins=2)
    assert [(b.lower, b.upper, b.count) for b in found.bins] == [(0.0, 0.5, 1), (0.5, 1.0, 1)]
    assert found.error == pytest.approx((0.6 + 0.4) / 2)


def test_without_items_the_error_is_zero() -> None:
    found = calibration([], [])
    assert (found.error, found.items) == (0.0, 0)


def test_true_probabilities_have_a_small_error() -> None:
    generator = np.random.default_rng(1)
    stated = generator.random(200_000)
    # The error of 10,000 items in a bin is about .4 standard deviations of a mean: below .004.
    assert calibration(stated, generator.random(200_000) < stated).error < 0.005
    assert calibration(stated, generator.random(200_000) < stated**3).error > 0.2


def test_calibration_as_json() -> None:
    described = json.loads(json.dumps(calibration([0.75], [True], bins=2).as_dict()))
    assert described == {
        "calibration_error": 0.25,
        "items": 1,
        "bins": [
            {"lower": 0.0, "upper": 0.5, "mean_probability": 0.0, "accuracy": 0.0, "count": 0},
            {"lower": 0.5, "upper": 1.0, "mean_probability": 0.75, "accuracy": 1.0, "count": 1},
        ],
    }


@pytest.mark.parametrize(
    ("probabilities", "correct", "message"),
    [
        ([0.5], [True, False], r"one truth value for each probability, got .* \(2,\) and \(1,\)"),
        ([[0.5]], [[True]], r"one truth value .* \(1, 1\) and \(1, 1\): pass two flat arrays"),
        ([0.5, 1.5], [True, True], r"probabilities in \[0, 1\], got 1\.5: clip them first"),
        ([float("nan")], [True], r"probabilities in \[0, 1\], got nan"),
        ([0.5], [2], r"each item to be right or not, got 2\.0: pass booleans"),
    ],
)
def test_invalid_items_are_refused(
    probabilities: list[float], correct: list[bool], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        calibration(probabilities, correct)
    with pytest.raises(InputError, match=message):
        fit_monotone(probabilities, correct)


# Mapping ------------------------------------------------------------------------------------------


def test_a_map_is_linear_between_its_knots() -> None:
    bent = MonotoneMap((0.0, 0.5, 1.0), (0.0, 0.2, 0.8))
    assert bent.apply([0, 0.25, 0.5, 0.75, 1]) == pytest.approx([0, 0.1, 0.2, 0.5, 0.8])
    assert bent.apply(np.full((2, 3), 0.5)).shape == (2, 3)


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        ((0.0,), (0.0,)),
        ((), ()),
        ((0.0, 1.0), (0.0, 0.5, 1.0)),
        ((0.1, 1.0), (0.0, 1.0)),
        ((0.0, 0.9), (0.0, 1.0)),
        ((0.0, 1.0), (0.1, 1.0)),
        ((0.0, 0.5, 0.5, 1.0), (0.0, 0.1, 0.2, 1.0)),
        ((0.0, 0.5, 1.0), (0.0, 0.5, 0.4)),
        ((0.0, 1.0), (0.0, 1.1)),
        ((0.0, 1.0), (0.0, float("nan"))),
    ],
)
def test_invalid_knots_are_refused(inputs: tuple[float, ...], outputs: tuple[float, ...]) -> None:
    with pytest.raises(GrammarError, match=r"expected a calibration map .* got \[.*: fit it again"):
        MonotoneMap(inputs, outputs)


def test_a_map_survives_json() -> None:
    fitted = fit_monotone(np.linspace(0, 1, 50), np.arange(50) % 3 == 0)
    assert MonotoneMap.from_lists(json.loads(json.dumps(fitted.as_lists()))) == fitted
    with pytest.raises(GrammarError, match="as two lists, inputs and outputs, got 1: fit it again"):
        MonotoneMap.from_lists([[0.0, 1.0]])


@given(ITEMS, st.lists(PROBABILITY, min_size=2, max_size=50))
def test_fitted_maps_are_monotone_within_bounds_and_keep_zero(
    items: list[tuple[float, bool]], asked: list[float]
) -> None:
    fitted = fit_monotone([p for p, _ in items], [right for _, right in items])
    mapped = fitted.apply(np.array([0.0, *sorted(asked), 1.0]))
    assert mapped[0] == 0
    assert mapped[-1] <= 1
    assert (np.diff(mapped) >= 0).all()
    assert len(fitted.inputs) <= 43


def test_a_fit_pools_what_is_out_of_order() -> None:
    # Shares .5 at .2, then 1 at .4 and 0 at .6 (pooled: .5), then 1 at .8.
    stated, right = [0.2, 0.2, 0.4, 0.6, 0.8], [True, False, True, False, True]
    fitted = fit_monotone(stated, right)
    assert fitted.apply([0.2, 0.4, 0.6, 0.8, 0.9]) == pytest.approx([0.5, 0.5, 0.5, 1.0, 1.0])
    assert fitted.apply([0.1, 0.7]) == pytest.approx([0.25, 0.75])


def test_weights_count_as_repetition_and_zero_weights_not_at_all() -> None:
    stated, right = [0.2, 0.2, 0.6, 0.6, 0.9], [False, True, True, False, True]
    repeated = fit_monotone(np.repeat(stated, [3, 1, 2, 1, 1]), np.repeat(right, [3, 1, 2, 1, 1]))
    weighted = fit_monotone([*stated, 0.7], [*right, False], [3, 1, 2, 1, 1, 0])
    assert weighted.inputs == pytest.approx(repeated.inputs)
    assert weighted.outputs == pytest.approx(repeated.outputs)


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [1.0, float("nan")]])
def test_invalid_weights_are_refused(weights: list[float]) -> None:
    with pytest.raises(InputError, match=r"expected 2 weights that are finite and not negative"):
        fit_monotone([0.1, 0.2], [True, True], weights)


@pytest.mark.parametrize(("stated", "weights"), [([], None), ([0.5], [0.0])])
def test_fitting_without_items_is_refused(stated: list[float], weights: list[float] | None) -> None:
    with pytest.raises(InputError, match=r"at least one item with weight .* hold out more"):
        fit_monotone(stated, [True] * len(stated), weights)


def test_maps_of_certain_and_impossible_items_are_valid() -> None:
    assert fit_monotone([1.0, 1.0], [True, False]).outputs == (0.0, 0.5)
    assert fit_monotone([0.0, 0.0], [False, False]).outputs == (0.0, 0.0)


@pytest.mark.parametrize("power", [0.5, 2.0])
def test_a_fitted_map_calibrates_other_items(power: float) -> None:
    # Most spans crowd near 0 and 1, as posteriors do; the model is over- or underconfident.
    generator = np.random.default_rng(7)
    stated = generator.beta(0.1, 0.1, 400_000)
    right = generator.random(400_000) < np.where(stated < 0.5, stated, stated**power)
    half = slice(0, 200_000), slice(200_000, 400_000)
    fitted = fit_monotone(stated[half[0]], right[half[0]])
    before = calibration(stated[half[1]], right[half[1]]).error
    after = calibration(fitted.apply(stated[half[1]]), right[half[1]]).error
    assert after < 0.01 < before


def test_a_checked_map_is_fitted_to_both_halves_if_it_helps_each() -> None:
    generator = np.random.default_rng(1)
    stated = [generator.random(20_000) for _ in range(2)]
    first, second = ((p, generator.random(20_000) < p**2) for p in stated)  # overconfident
    checked = fit_checked(first, second)
    assert checked.raw_error is not None
    assert checked.mapped_error is not None
    assert checked.mapped_error < 0.02 < 0.1 < checked.raw_error
    together = fit_monotone(*(np.concatenate(part) for part in zip(first, second, strict=True)))
    assert checked.kept == together


def test_a_kind_gets_a_map_that_is_truer_than_the_common_one() -> None:
    generator = np.random.default_rng(2)

    def items(power: float) -> Items:
        stated = generator.random(20_000)
        return stated, generator.random(20_000) < stated**power

    def joined(one: Items, other: Items) -> Items:
        return np.concatenate([one[0], other[0]]), np.concatenate([one[1], other[1]])

    first, second, rest = items(3), items(3), items(1)
    wide = joined(first, rest), joined(second, rest)
    kept = fit_checked(first, second, instead_of=wide)
    assert kept.kept == fit_monotone(*joined(first, second))
    # p³ is .25 below p on average; the common map, of p and p³ alike, leaves half of that
    assert kept.raw_error == pytest.approx(0.125, abs=0.01)  # three standard errors of shares
    # the common map is its own map, so that it needs no other
    assert fit_checked(first, second, instead_of=(first, second)).kept is None


def test_probabilities_that_are_true_need_no_map() -> None:
    half = np.repeat([0.25, 0.75], 4), np.array([1, 0, 0, 0, 1, 1, 1, 0], np.bool_)
    checked = fit_checked(half, half)
    assert checked.as_dict() == {"kept": False, "raw_error": 0.0, "mapped_error": 0.0}


def test_a_half_without_items_leaves_no_map() -> None:
    some = np.array([0.5, 0.7]), np.array([True, False])
    none = np.empty(0), np.empty(0, np.bool_)
    for halves in ((some, none), (none, some)):
        assert fit_checked(*halves).as_dict() == {
            "kept": False,
            "raw_error": None,
            "mapped_error": None,
        }


def test_applying_a_map_needs_no_optimizer() -> None:
    code = "import sys, lpcfg.kinds.calibration; print('scipy.optimize' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"
