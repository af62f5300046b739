"""Fixtures shared by all tests: a fixed hypothesis profile and the real treebanks."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.needs import lacking

settings.register_profile(
    "lpcfg", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("lpcfg")


@pytest.fixture(scope="session")
def treebanks() -> Path:
    """Return the folder of real treebanks: LPCFG_DATA, or shared/data beside the checkout."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("LPCFG_DATA", beside))
    if not (folder / "craft" / "train.mrg").is_file():
        lacking(f"no treebanks in {folder}: set LPCFG_DATA to the folder with craft/ and gum/")
    return folder
