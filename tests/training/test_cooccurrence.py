"""Features of one part of a treebank among those of the whole, against a dictionary."""

import numpy as np
import pytest

from lpcfg.training.estimators.cooccurrence import FeatureCounts


def counts_of(features: list[tuple[int, int]]) -> FeatureCounts:
    template, code = (np.array([one[k] for one in features], np.int64) for k in range(2))
    return FeatureCounts(template.astype(np.int32), code, np.ones(len(features), np.int64))


@pytest.mark.parametrize("seed", range(5))
def test_features_are_found_where_they_stand(seed: int) -> None:
    rng = np.random.default_rng(seed)
    # few codes, so that templates share them, and a template may begin with the last one's code
    whole = sorted({(int(t), int(c)) for t, c in rng.integers(0, [4, 9], (60, 2))})
    place = {feature: k for k, feature in enumerate(whole)}
    wanted = [feature for feature in whole if rng.random() < 0.4]
    part = counts_of(wanted)
    found = counts_of(whole).places(part.template, part.code)
    assert found.tolist() == [place[feature] for feature in wanted]


def test_no_features_have_no_places() -> None:
    empty, one = counts_of([]), counts_of([(0, 3)])
    assert one.places(empty.template, empty.code).tolist() == []
    assert empty.places(empty.template, empty.code).tolist() == []
