"""Publishing into an S3 that fails now and then."""

from pathlib import Path

import pytest

from lpcfg.store import versions as store
from tests.s3 import Flaky, flaky_bucket
from tests.store.test_store import bundle, same

__all__ = ["flaky_bucket"]


def test_versions_are_published_once_where_one_request_in_twenty_fails(
    flaky_bucket: tuple[str, Flaky], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A creation that is repeated, because its answer was lost, finds the file that it made."""
    monkeypatch.setenv("HOME", str(tmp_path))
    place, flaky = flaky_bucket
    flaky.share = 1 / 20
    published = {str(store.publish(place, "en", bundle(k))): bundle(k) for k in range(12)}
    for name, expected in published.items():
        assert same(store.load(name, place), expected)
    flaky.share = 0
    assert [str(one.reference) for one in store.list_models(place)] == list(published)
    assert len(published) == 12
    assert flaky.failed["lost"]
