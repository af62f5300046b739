"""Skip a test that lacks something, or fail it in CI."""

import os
from typing import NoReturn

import pytest


def lacking(what: str) -> NoReturn:
    """Skip this test and say why; fail it where CI is true, because CI has everything."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what} (CI must have it, so nothing is skipped)", pytrace=False)
    pytest.skip(what)
