"""In continuous integration, a test that lacks something fails instead of being skipped."""

import pytest

from tests.needs import lacking


def test_what_is_lacking_skips_a_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no browser"):
        lacking("no browser")


def test_what_is_lacking_fails_a_test_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no browser"):
        lacking("no browser")
