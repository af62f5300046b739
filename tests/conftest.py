"""Fixtures shared by all tests: a fixed hypothesis profile and the real treebanks."""

import os
import re
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.needs import lacking

settings.register_profile(
    "lpcfg", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("lpcfg")


STARTS_SOMETHING = re.compile(
    r"^(?:import|from) (?:subprocess|multiprocessing|playwright|moto)\b"
    r"|^from (?:benchmarks\.serving|tests\.s3) import|CliRunner",
    re.MULTILINE,
)
"""What modules of tests that start processes, services or browsers have among their imports."""


@cache
def starts_something(module: Path) -> bool:
    return STARTS_SOMETHING.search(module.read_text(encoding="utf-8")) is not None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what starts processes, services or browsers, or reads real treebanks."""
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        beside = item.path.parent / "conftest.py"
        serves = {"process", "address", "page", "service"} & set(fixtures)
        if starts_something(item.path) or "treebanks" in fixtures or (serves and beside.exists()):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def treebanks() -> Path:
    """Return the folder of real treebanks: LPCFG_DATA, or shared/data beside the checkout."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("LPCFG_DATA", beside))
    if not (folder / "craft" / "train.mrg").is_file():
        lacking(f"no treebanks in {folder}: set LPCFG_DATA to the folder with craft/ and gum/")
    return folder
