"""A parser held against gold trees."""

from lpcfg.evaluation.run import measure
from tests import small_models


def test_what_is_measured_is_the_same_whatever_the_workers() -> None:
    parser, gold = small_models.parser(), small_models.trees()
    one, several = (measure(parser, gold, workers=workers).as_dict() for workers in (1, 3))
    assert one.pop("sentences_per_second") > 0
    assert several.pop("sentences_per_second") > 0
    assert several == one
