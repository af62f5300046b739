"""Comparing two parsers: the gain, its interval, and sentences that are better or worse."""

import numpy as np
import pytest

from lpcfg.kinds.comparison import Comparison, compare
from lpcfg.kinds.constituency.brackets import evaluate
from lpcfg.kinds.constituency.evaluate import Examined, ParserEvaluation
from lpcfg.trees.brackets import parse_tree

GOLD = parse_tree("(S (NP (D the) (N dog)) (VP (V saw) (NP (D a) (N cat))))")
FLAT = parse_tree("(S (NP (D the) (N dog)) (V saw) (NP (D a) (N cat)))")
WRONG = parse_tree("(S (D the) (N dog) (VP (V saw) (D a) (N cat)))")


def found(*trees: object) -> ParserEvaluation:
    """Make a parser's results of its trees."""
    numbers = np.zeros(0)
    none = np.zeros(0, np.bool_)
    kinds = np.zeros(0, np.str_)
    examined = Examined((), numbers, numbers, none, kinds, 1.0, 0, 0, 0.0)
    return ParserEvaluation(evaluate((GOLD, tree) for tree in trees), examined)  # type: ignore[misc]


def compared(first: ParserEvaluation, second: ParserEvaluation) -> Comparison:
    return compare(("a@1", "b@1"), first, second)


def test_the_gain_is_that_of_f1_over_all_sentences() -> None:
    first, second = found(GOLD, FLAT, WRONG, WRONG), found(GOLD, GOLD, FLAT, WRONG)
    gain = compared(first, second).gain
    assert gain.total == second.brackets.brackets.f1 - first.brackets.brackets.f1 > 0
    assert (gain.better, gain.worse, gain.same) == (2, 0, 2)
    turned = compared(second, first).gain
    assert (turned.total, turned.better, turned.worse) == (-gain.total, 0, 2)


def test_a_gain_on_every_sentence_alike_is_certain() -> None:
    gain = compared(found(*[FLAT] * 20), found(*[GOLD] * 20)).gain
    assert gain.low == pytest.approx(gain.total)
    assert gain.high == pytest.approx(gain.total)


def test_a_gain_that_one_sentence_in_twenty_makes_may_be_chance() -> None:
    gain = compared(found(*[FLAT] * 20), found(GOLD, *[FLAT] * 19)).gain
    assert gain.low == 0 < gain.total < gain.high
    # Some sentence is drawn at least k times in 2.5 % of resamples; for one of twenty, k is 3.
    assert gain.high == pytest.approx(3 * gain.total, rel=0.02)  # F1 is not quite linear
