"""The model store on S3, as a server that speaks it answers; the cache of its files."""

import hashlib
import importlib
import shutil
import sys
from pathlib import Path

import fsspec
import pytest

from lpcfg.base.errors import StoreError
from lpcfg.kinds.constituency.model import to_bundle
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.serve.edge import server
from lpcfg.settings import read_settings
from lpcfg.store import storage
from lpcfg.store import versions as store
from lpcfg.store.files import encode
from tests import small_models
from tests.s3 import bucket
from tests.store.test_store import bundle, same

__all__ = ["bucket"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the cache a home of its own."""
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path / ".cache" / "lpcfg"


def test_models_are_published_listed_verified_loaded_and_removed(bucket: str) -> None:
    place = f"{bucket}/models"
    first = store.publish(place, "en", bundle(1))
    second = store.publish(place, "en", bundle(2))
    assert [str(one.reference) for one in store.list_models(place)] == ["en@1", "en@2"]
    assert same(store.load("en@1", place), bundle(1))
    assert store.resolve("en", place) == second
    assert store.load(f"{place}/en/1", "elsewhere").reference.hash == first.hash
    assert len(store.verify("en", place)) == 4
    assert store.remove("en@2", place) == "en@2"
    assert store.publish(place, "en", bundle(3)).version == 3


def test_the_manifest_comes_last_and_two_publishers_get_two_numbers(
    bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one publisher is at work, its number is taken, and no version of it is seen."""
    place = f"{bucket}/models"
    create = storage.ObjectStorage.create
    seen = []

    def slow(self: storage.ObjectStorage, path: str, data: bytes) -> None:
        if path.endswith("1/manifest.json"):
            seen.append([one for one in store.list_models(place) if one.reference.name == "en"])
            other, _ = storage.open_storage(place).publish("en", *encode("en", bundle(2)))
            assert other == 2
        create(self, path, data)

    monkeypatch.setattr(storage.ObjectStorage, "create", slow)
    assert store.publish(place, "en", bundle(1)).version == 1
    assert seen == [[]]
    assert same(store.load("en@1", place), bundle(1))
    assert same(store.load("en@2", place), bundle(2))


def test_an_object_is_created_once(bucket: str) -> None:
    there = storage.open_storage(bucket)
    assert isinstance(there, storage.ObjectStorage)
    there.files.pipe_file(f"{bucket}/a", b"1", mode="create")
    with pytest.raises(FileExistsError):
        there.files.pipe_file(f"{bucket}/a", b"2", mode="create")
    assert there.read("a") == b"1"


def test_files_come_from_the_cache_if_their_hash_is_right(bucket: str, home: Path) -> None:
    store.publish(bucket, "en", bundle(1))
    store.load("en", bucket)
    kept = {path.name: path for path in home.iterdir()}
    assert len(kept) == 3
    for name, path in kept.items():
        assert hashlib.sha256(path.read_bytes()).hexdigest() == name
    for path in kept.values():
        path.write_bytes(b"damaged")
    assert same(store.load("en", bucket), bundle(1))
    assert all(path.read_bytes() != b"damaged" for path in kept.values())
    system = fsspec.filesystem("s3")
    tensors = f"{bucket}/en/1/tensors.safetensors"
    system.pipe_file(tensors, b"\0" * system.size(tensors))
    assert same(store.load("en", bucket), bundle(1))
    with pytest.raises(StoreError, match=r"tensors\.safetensors: expected SHA-256"):
        store.verify("en", bucket)
    shutil.rmtree(home)
    with pytest.raises(StoreError, match=r"tensors\.safetensors: expected SHA-256"):
        store.load("en", bucket)


def test_a_cache_that_cannot_be_written_is_none(bucket: str, home: Path) -> None:
    home.parent.mkdir()
    home.touch()  # a file in the folder's place
    store.publish(bucket, "en", bundle(1))
    assert same(store.load("en", bucket), bundle(1))


def test_refused_access_is_one_clear_message(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StoreError, match=r"cannot read mine from s3://nowhere|expected a model"):
        store.load("mine", "s3://nowhere")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    type(fsspec.filesystem("s3")).clear_instance_cache()
    with pytest.raises(StoreError, match=r"cannot publish en into s3://.*: .*redentials"):
        store.publish(bucket, "en", bundle())


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    known = importlib.import_module("fsspec.registry")._registry
    monkeypatch.delitem(known, "s3", raising=False)
    with pytest.raises(StoreError, match=r"pip install 'lpcfg\[s3\]'"):
        store.list_models("s3://bucket")


def test_the_service_takes_its_model_from_s3(bucket: str, home: Path) -> None:
    store.publish(bucket, "small", to_bundle(small_models.counts(), facts={}, card="# Small\n"))
    parser = Parser.load("small", bucket)
    assert str(parser("The dog barked.")[0]).startswith("(S (NP")
    shutil.rmtree(home)
    server.check(read_settings(model="small", model_store=bucket, threads=1))
    assert len(list(home.iterdir())) == 3
