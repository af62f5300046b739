"""The treebank that several tests of estimators learn from."""

import pytest

from lpcfg.training.data.examples import Examples
from lpcfg.training.data.treebank import read_forest
from tests.small_models import SMALL
from tests.training.literal import coded


@pytest.fixture(scope="session")
def small() -> Examples:
    """Read examples/small.mrg, with sibling marks."""
    return coded(read_forest(SMALL, horizontal=1))
