"""The model store: versions appear whole or not at all, never change, and are refused if they did.

`seal` and `rewrite` follow model_store/FORMAT.md and use no code of the store.
"""

import dataclasses
import errno
import fcntl
import hashlib
import json
import mmap
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import fsspec
import numpy as np
import pytest

from lpcfg.base.errors import StoreError
from lpcfg.store import files, storage
from lpcfg.store import versions as store
from lpcfg.store.files import Bundle
from tests.needs import lacking

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).parents[1] / "golden" / "store_manifest.json"
FILES = ("CARD.md", "grammar.json", "manifest.json", "tensors.safetensors")
LOAD_SECONDS = 0.2  # the promise for 15 MB; 0.02 was measured


def bundle(seed: int = 0, size: int = 40) -> Bundle:
    random = np.random.default_rng(seed)
    return Bundle(
        tensors={
            "C": random.standard_normal((size, 3)),
            "counts": random.integers(0, 99, 7, dtype=np.int32),
            "empty": np.zeros((0, 4), np.float32),
            "scalar": np.array(0.5 + seed),
            "known": random.random(5) < 0.5,
        },
        grammar={"symbols": ["S", "NP|é"], "words": {"don’t 🙂": seed}, "nothing": None},
        facts={"estimator": "counts", "seed": seed, "scores": {"f1": 83.25}},
        card=f"# A model\n\nSeed {seed}, naïve.\n",
    )


def same(stored: store.Stored, published: Bundle) -> bool:
    return (
        stored.tensors.keys() == published.tensors.keys()
        and all(
            loaded.dtype == array.dtype and np.array_equal(loaded, array)
            for name, array in published.tensors.items()
            for loaded in [stored.tensors[name]]
        )
        and stored.grammar == published.grammar
        and stored.manifest["facts"] == published.facts
        and stored.card == published.card
    )


def versions(place: str | Path) -> list[str]:
    return [str(listed.reference) for listed in store.list_models(place)]


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*/.[pt]*"))


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Take an empty folder for the models of the package, so that `en` is the tests' own."""
    folder = tmp_path / "package"
    monkeypatch.setattr(store, "BUILT_IN", folder)
    return folder


@pytest.fixture(params=["folder", "file URL", "memory URL"])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Make a store on a disk, the same as a URL, or one on an object store."""
    if request.param == "folder":
        yield str(tmp_path / "store")
    elif request.param == "file URL":
        yield f"file://{tmp_path}/store"
    else:
        yield from memory_store()


@pytest.fixture
def memory() -> Iterator[str]:
    yield from memory_store()


def replace_anywhere(path: str, data: bytes) -> None:
    system, inner = fsspec.core.url_to_fs(path)
    system.rm_file(inner)
    system.pipe_file(inner, data)


def memory_store() -> Iterator[str]:
    system = fsspec.filesystem("memory")
    yield "memory://models/store"
    system.store.clear()
    system.pseudo_dirs[:] = [""]


# What the calls promise, wherever the store is ----------------------------------------------------


def test_a_published_model_is_loaded_unchanged(anywhere: str) -> None:
    reference = store.publish(anywhere, "en", bundle(3))
    stored = store.load("en", anywhere)
    assert same(stored, bundle(3))
    assert stored.reference == reference == store.resolve("en@1", anywhere)
    assert (str(reference), reference.store) == ("en@1", anywhere)


def test_versions_count_up_and_a_bare_name_is_the_newest(anywhere: str) -> None:
    for seed in range(11):  # 10 must come after 9, not after 1
        assert store.publish(anywhere, "en", bundle(seed)).version == seed + 1
    assert same(store.load("en", anywhere), bundle(10))
    assert same(store.load("en@2", anywhere), bundle(1))
    assert versions(anywhere) == [f"en@{version}" for version in range(1, 12)]


def test_a_path_to_a_version_is_a_reference(anywhere: str) -> None:
    for seed in range(2):
        store.publish(anywhere, "en", bundle(seed))
    stored = store.load(f"{anywhere.removeprefix('file://')}/en/1/", "elsewhere")
    assert same(stored, bundle(0))
    assert stored.reference.version == 1


def test_a_relative_path_is_a_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.publish(tmp_path, "en", bundle())
    monkeypatch.chdir(tmp_path / "en")
    assert str(store.resolve("./1", "elsewhere")) == "en@1"


def test_listing_tells_names_sizes_times_and_facts(anywhere: str) -> None:
    assert store.list_models(anywhere) == []
    for name in ("small", "en.v2", "small"):
        store.publish(anywhere, name, bundle())
    listed = store.list_models(anywhere)
    assert [str(one.reference) for one in listed] == ["en.v2@1", "small@1", "small@2"]
    for one in listed:
        assert one.problem is None
        assert one.facts == bundle().facts
        assert one.reference == store.resolve(str(one.reference), anywhere)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", one.created)
        assert one.size == sum(file.size for file in store.verify(str(one.reference), anywhere))


def test_listing_shows_a_torn_version_beside_the_others(anywhere: str) -> None:
    store.publish(anywhere, "en", bundle())
    store.publish(anywhere, "en", bundle())
    replace_anywhere(f"{anywhere}/en/1/manifest.json", b"{}")
    torn, whole = store.list_models(anywhere)
    assert torn.problem is not None
    assert re.search(r"en/1/manifest\.json: expected the seal", torn.problem)
    assert (torn.reference.hash, torn.created, torn.size, torn.facts) == ("", "", 0, {})
    assert whole.problem is None


def test_verify_names_every_file_with_its_hash(anywhere: str) -> None:
    reference = store.publish(anywhere, "en", bundle())
    checked = store.verify("en", anywhere)
    assert sorted(Path(file.path).name for file in checked) == sorted(FILES)
    assert checked[0].path.endswith("manifest.json")
    assert checked[0].sha256 == reference.hash


def test_removed_versions_are_gone_and_their_numbers_are_not_used_again(anywhere: str) -> None:
    for seed in range(3):
        store.publish(anywhere, "en", bundle(seed))
    assert store.remove("en@3", anywhere) == "en@3"
    assert versions(anywhere) == ["en@1", "en@2"]
    assert same(store.load("en", anywhere), bundle(1))
    assert store.publish(anywhere, "en", bundle(9)).version == 4
    with pytest.raises(
        StoreError, match=r"`en@3` in .*, found none: .* has en \(versions: 1, 2, 4\)"
    ):
        store.load("en@3", anywhere)


def test_remove_wants_a_version_where_there_are_several(anywhere: str) -> None:
    for seed in range(2):
        store.publish(anywhere, "en", bundle(seed))
    with pytest.raises(StoreError, match=r"expected NAME@VERSION to remove, got `en`.* 1, 2 in .*"):
        store.remove("en", anywhere)
    assert store.remove("en@1", anywhere) == "en@1"
    assert store.remove("en", anywhere) == "en@2"
    with pytest.raises(
        StoreError, match=r"a model `en` in .*, found none: .* has en \(versions: none\)"
    ):
        store.load("en", anywhere)
    assert versions(anywhere) == []


def test_a_version_can_be_removed_by_its_path_and_when_torn(tmp_path: Path) -> None:
    for seed in range(2):
        store.publish(tmp_path, "en", bundle(seed))
    (tmp_path / "en" / "2" / "manifest.json").unlink()
    assert store.remove(f"{tmp_path}/en/2", "elsewhere") == "en@2"
    assert versions(tmp_path) == ["en@1"]


NO_NAMES = ["", "En", "en fr", "../en", ".en", "-en", "en\n", "naïve", "a" * 65, "en@1", "a/b"]


@pytest.mark.parametrize("name", NO_NAMES)
def test_names_that_could_lead_elsewhere_are_refused(name: str, anywhere: str) -> None:
    with pytest.raises(StoreError, match=r"expected a model name of 1 to 64 characters .*: choose"):
        store.publish(anywhere, name, bundle())
    assert store.list_models(anywhere) == []


@pytest.mark.parametrize("name", ["a", "7", "en.v2-craft_x", "a" * 64])
def test_ordinary_names_are_taken(name: str, tmp_path: Path) -> None:
    store.publish(tmp_path, name, bundle())
    assert str(store.resolve(name, tmp_path)) == f"{name}@1"


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("fr", r"expected a model `fr` in .*, found none: .* has en: publish"),
        (
            "en@7",
            r"expected a model `en@7` in .*, found none: .* has en \(versions: 1\): publish it",
        ),
        ("en@", r"expected a version number after `@`, got `en@`: write it as in en@1"),
        ("en@01", r"expected a version number after `@`, got `en@01`"),
        ("en@-1", r"expected a version number after `@`, got `en@-1`"),
        ("En", r"expected a model name .*, got 'En'"),
        ("en/newest", r"expected the path of a version's folder, STORE/NAME/VERSION, got `en/new"),
        ("en/../../1/x", r"expected the path of a version's folder"),
        ("/1", r"expected a model name .*, got ''"),
        ("/none-such/1", r"expected a model `none-such@1` in /, found none: / has "),
        ("memory://1", r"expected a model name .*, got ''|expected a model"),
    ],
)
def test_references_to_missing_models_list_the_existing_ones(
    reference: str, message: str, anywhere: str
) -> None:
    store.publish(anywhere, "en", bundle())
    for call in (store.load, store.resolve, store.verify, store.remove):
        with pytest.raises(StoreError, match=message):
            call(reference, anywhere)
    assert versions(anywhere) == ["en@1"]


def test_a_url_with_an_unknown_protocol_is_refused() -> None:
    with pytest.raises(StoreError, match=r"expected a folder or an fsspec URL as the store, got"):
        store.list_models("nosuch://models")


def test_a_file_in_place_of_the_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "store").touch()
    with pytest.raises(StoreError, match=r"cannot list the models in .*Not a directory.*: check"):
        store.list_models(tmp_path / "store")


# Whether publishing can work at all ---------------------------------------------------------------


def test_trying_a_store_leaves_it_as_it_was(anywhere: str) -> None:
    system, root = fsspec.core.url_to_fs(anywhere)
    store.check_publishable(anywhere, "en")
    assert versions(anywhere) == []
    assert not system.find(root)
    store.publish(anywhere, "en", bundle())
    before = sorted(system.find(root))
    store.check_publishable(anywhere, "en")
    assert sorted(system.find(root)) == before
    assert str(store.publish(anywhere, "en", bundle())) == "en@2"


def test_trying_a_store_makes_no_folders(tmp_path: Path) -> None:
    store.check_publishable(tmp_path / "not" / "yet", "en")
    assert list(tmp_path.iterdir()) == []


def test_unusable_stores_are_refused_before_anything_is_published(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in ("file", "file/store"):
        with pytest.raises(StoreError, match=r"cannot publish en into .*file.*Not a directory.*:"):
            store.check_publishable(tmp_path / place, "en")
    (tmp_path / "en").symlink_to("elsewhere")
    with pytest.raises(StoreError, match="expected a folder, found a symbolic link: choose"):
        store.check_publishable(tmp_path, "en")
    with pytest.raises(StoreError, match="expected a model name"):
        store.check_publishable(tmp_path, "No Name")
    with pytest.raises(StoreError, match="expected a folder or an fsspec URL as the store"):
        store.check_publishable("nosuch://models", "en")


@pytest.mark.parametrize("refused", ["pipe_file", "rm_file"])
def test_an_object_store_must_take_files_but_need_not_delete_them(
    refused: str, memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(path: str, *_: Any, **__: Any) -> None:
        raise PermissionError(errno.EACCES, "Access Denied", path)

    with monkeypatch.context() as patch:
        patch.setattr(fsspec.filesystem("memory"), refused, forbidden)
        if refused == "pipe_file":
            with pytest.raises(StoreError, match=r"cannot publish en into .*Access Denied.*: let"):
                store.check_publishable(memory, "en")
        else:
            store.check_publishable(memory, "en")
    assert versions(memory) == []
    assert str(store.publish(memory, "en", bundle())) == "en@1"


# What is written ----------------------------------------------------------------------------------


def seal(text: bytes) -> bytes:
    digest = hashlib.sha256(text[:-68] + b"0" * 64 + text[-4:]).hexdigest()
    return text[:-68] + digest.encode() + text[-4:]


def rewrite(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a manifest as a careless program would: sealed again, and wrong."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_bytes())
    del manifest["seal"]
    change(manifest)
    manifest["seal"] = "0" * 64
    replace(path, seal(json.dumps(manifest, indent=2).encode() + b"\n"))


def replace(path: Path, data: bytes) -> None:
    path.unlink(missing_ok=True)
    path.write_bytes(data)


def replace_recorded(folder: Path, file: str, data: bytes) -> None:
    """Change a file and its record."""
    replace(folder / file, data)
    facts = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    rewrite(folder, lambda manifest: manifest["files"].update({file: facts}))


def test_the_program_in_the_format_page_reads_a_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    published = bundle(5)
    simple = {name: published.tensors[name] for name in ("C", "counts", "empty", "scalar")}
    store.publish(tmp_path / "model_store", "en", dataclasses.replace(published, tensors=simple))
    book = (ROOT / "model_store" / "FORMAT.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", book, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    read: dict[str, Any] = {}
    exec(program.replace("model_store/NAME/1", "model_store/en/1"), read)
    assert read["manifest"]["facts"] == published.facts
    assert read["grammar"] == published.grammar
    assert read["tensors"].keys() == simple.keys()
    for name, array in simple.items():
        np.testing.assert_array_equal(read["tensors"][name], array, strict=True)


def test_the_manifest_is_the_golden_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written by this very publish; its seal and the card's hash were redone with sha256sum."""
    monkeypatch.setattr(files, "_now", lambda: datetime(2014, 6, 12, 9, 30, tzinfo=UTC))
    golden = Bundle(
        tensors={"ones": np.ones((2, 3)), "bits": np.array([True, False])},
        grammar={"symbols": ["S"]},
        facts={"estimator": "spectral", "states": 8, "licence": "CC BY 4.0"},
        card="# Golden\n",
    )
    reference = store.publish(tmp_path, "golden", golden)
    written = (tmp_path / "golden" / "1" / "manifest.json").read_bytes()
    assert written.decode() == GOLDEN.read_text(encoding="utf-8")
    assert reference.hash == hashlib.sha256(GOLDEN.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    "array",
    [
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(12.0).reshape(3, 4)[::2, ::-1],
        np.arange(4, dtype=">i4"),
        np.array(7, dtype=np.uint64),
    ],
    ids=["Fortran order", "strided view", "big-endian", "no axes"],
)
def test_arrays_of_any_memory_layout_are_restored(array: np.ndarray, tmp_path: Path) -> None:
    store.publish(tmp_path, "en", Bundle({"x": array}, {}, {}, ""))
    loaded = store.load("en", tmp_path).tensors["x"]
    np.testing.assert_array_equal(loaded, array, strict=False)
    assert loaded.shape == array.shape


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (Bundle({"x": np.array(["a"])}, {}, {}, ""), "expected tensors of F64.* `x` of dtype <U1"),
        (Bundle({"x": np.ones(2, complex)}, {}, {}, ""), "got `x` of dtype complex128: convert"),
        (Bundle({"__metadata__": np.ones(2)}, {}, {}, ""), "names other than `__metadata__`"),
        (Bundle({}, {"x": {1, 2}}, {}, ""), r"expected a JSON value for grammar\.json: .*set"),
        (Bundle({}, {"x": "\ud800"}, {}, ""), r"expected text that has a UTF-8 form for grammar"),
        (Bundle({}, {}, {"f1": float("nan")}, ""), r"expected a JSON value for manifest\.json"),
        (Bundle({}, {}, {"f1": np.float32(1)}, ""), r"manifest\.json: .*float32.*plain dicts"),
        (Bundle({}, {}, {}, "\udcff"), r"expected text that has a UTF-8 form for CARD\.md"),
    ],
)
def test_unstorable_content_is_refused_before_anything_is_written(
    wrong: Bundle, message: str, tmp_path: Path
) -> None:
    with pytest.raises(StoreError, match=message):
        store.publish(tmp_path / "store", "en", wrong)
    assert not (tmp_path / "store").exists()


# What is read -------------------------------------------------------------------------------------


def test_loaded_arrays_cannot_be_written(anywhere: str) -> None:
    store.publish(anywhere, "en", bundle())
    tensors = store.load("en", anywhere).tensors
    assert all(array.flags.aligned for array in tensors.values())
    with pytest.raises(ValueError, match=r"read-only"):
        tensors["C"][0, 0] = 1


def test_fifteen_megabytes_load_in_under_a_fifth_of_a_second(tmp_path: Path) -> None:
    store.publish(tmp_path, "en", bundle(size=15_000_000 // 24))
    took = []
    for _ in range(5):
        start = time.perf_counter()
        store.load("en", tmp_path)
        took.append(time.perf_counter() - start)
    assert min(took) < LOAD_SECONDS


Mutation = Callable[[Random, Path, Path], None]


def flip_a_bit(random: Random, path: Path, _other: Path) -> None:
    data = bytearray(path.read_bytes())
    data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    replace(path, bytes(data))


def overwrite_bytes(random: Random, path: Path, _other: Path) -> None:
    data = bytearray(path.read_bytes())
    start = random.randrange(len(data))
    for at in range(start, min(start + 16, len(data))):
        data[at] ^= random.randrange(1, 256)
    replace(path, bytes(data))


def truncate(random: Random, path: Path, _other: Path) -> None:
    data = path.read_bytes()
    replace(path, data[: random.randrange(len(data))])


def extend(random: Random, path: Path, _other: Path) -> None:
    replace(path, path.read_bytes() + random.randbytes(random.randint(1, 99)))


def swap_in_another_versions_file(_random: Random, path: Path, other: Path) -> None:
    replace(path, (other / path.name).read_bytes())


def swap_in_a_neighbour(random: Random, path: Path, _other: Path) -> None:
    neighbour = random.choice([name for name in FILES if name != path.name])
    replace(path, (path.parent / neighbour).read_bytes())


def delete(_random: Random, path: Path, _other: Path) -> None:
    path.unlink()


def link(_random: Random, path: Path, other: Path) -> None:
    copy = other.parents[1] / f"{path.parent.name}-{path.name}"
    replace(copy, path.read_bytes())
    path.unlink()
    path.symlink_to(copy)


def make_a_folder(_random: Random, path: Path, _other: Path) -> None:
    path.unlink()
    path.mkdir()


def make_a_pipe(_random: Random, path: Path, _other: Path) -> None:
    path.unlink()
    os.mkfifo(path)


MUTATIONS: list[Mutation] = [
    flip_a_bit,
    overwrite_bytes,
    truncate,
    extend,
    swap_in_another_versions_file,
    swap_in_a_neighbour,
    delete,
    link,
    make_a_folder,
    make_a_pipe,
]


@pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda mutate: mutate.__name__)
def test_a_hundred_mutations_of_each_kind_are_refused_by_the_files_name(
    mutate: Mutation, tmp_path: Path
) -> None:
    random = Random(mutate.__name__)
    for seed in range(3):
        store.publish(tmp_path / "pristine", "en", bundle(seed))
    models = tmp_path / "store" / "en"
    shutil.copytree(tmp_path / "pristine", tmp_path / "store")
    for _ in range(100):
        victim, other = random.sample(range(1, 4), 2)
        path = models / str(victim) / random.choice(FILES)
        mutate(random, path, models / str(other))
        with pytest.raises(StoreError, match=re.escape(f"{path}: expected ")):
            store.load(f"en@{victim}", tmp_path / "store")
        assert same(store.load(f"en@{other}", tmp_path / "store"), bundle(other - 1))
        shutil.rmtree(path.parent)
        shutil.copytree(tmp_path / "pristine" / "en" / str(victim), path.parent)


def test_a_hundred_random_mutations_on_an_object_store_are_refused(memory: str) -> None:
    random = Random(20140612)
    system = fsspec.filesystem("memory")
    for seed in range(2):
        store.publish(memory, "en", bundle(seed))
    for _ in range(100):
        path = f"/models/store/en/{random.randint(1, 2)}/{random.choice(FILES)}"
        before = system.cat_file(path)
        after = bytearray(before[: random.randint(1, len(before))])
        after[random.randrange(len(after))] ^= 1 << random.randrange(8)
        system.pipe_file(path, bytes(after))
        with pytest.raises(StoreError, match=re.escape(f"memory://{path}: expected ")):
            store.load(f"memory://{path.rpartition('/')[0]}", memory)
        system.pipe_file(path, before)
    assert same(store.load("en", memory), bundle(1))


def test_a_file_of_the_wrong_size_is_refused_before_it_is_read(
    anywhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.publish(anywhere, "en", bundle())
    with fsspec.open(f"{anywhere}/en/1/CARD.md", "rb") as file:
        size = len(file.read())
    replace_anywhere(f"{anywhere}/en/1/CARD.md", b"x" * 9_999)
    for kind in (storage.LocalStorage, storage.ObjectStorage):
        monkeypatch.setattr(kind, "read", manifests_only(kind.read))
    with pytest.raises(StoreError, match=rf"CARD\.md: expected {size} bytes, found 9999: it was"):
        store.load("en", anywhere)


def manifests_only(read: Callable[[Any, str], bytes]) -> Callable[[Any, str], bytes]:
    def reading(self: Any, path: str) -> bytes:
        assert path.endswith("manifest.json"), f"{path} was read"
        return read(self, path)

    return reading


def test_files_that_do_not_belong_are_refused(anywhere: str) -> None:
    store.publish(anywhere, "en", bundle())
    with fsspec.open(f"{anywhere}/en/1/notes.txt", "wb") as file:
        file.write(b"mine")
    with pytest.raises(StoreError, match=r"en/1/notes\.txt: expected no such entry, found a file"):
        store.load("en", anywhere)


def test_whole_versions_that_changed_places_are_refused(tmp_path: Path) -> None:
    for seed in range(2):
        store.publish(tmp_path, "en", bundle(seed))
    (tmp_path / "en" / "1").rename(tmp_path / "en" / "spare")
    (tmp_path / "en" / "2").rename(tmp_path / "en" / "1")
    (tmp_path / "en" / "spare").rename(tmp_path / "en" / "2")
    for version, other in ((1, 2), (2, 1)):
        message = rf"en/{version}/manifest\.json: expected the manifest of en@{version}, found that"
        with pytest.raises(StoreError, match=f"{message} of en@{other}: put each version back"):
            store.load(f"en@{version}", tmp_path)


def test_links_are_followed_neither_to_models_nor_to_versions(tmp_path: Path) -> None:
    store.publish(tmp_path / "else", "en", bundle())
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "en").symlink_to(tmp_path / "else" / "en")
    with pytest.raises(StoreError, match=r"model `en` .* has a symbolic link `en`"):
        store.load("en", tmp_path / "store")
    with pytest.raises(StoreError, match=r"store/en: expected a folder, found a symbolic link"):
        store.publish(tmp_path / "store", "en", bundle())
    (tmp_path / "else" / "en" / "2").symlink_to("1")
    with pytest.raises(StoreError, match=r"`en@2` in .* has en \(versions: 1\)"):
        store.load("en@2", tmp_path / "else")
    assert str(store.publish(tmp_path / "else", "en", bundle())) == "en@3"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.update(format="other"), r"expected the format `lpcfg-model`, found 'other'"),
        (
            lambda m: m.update(format_version=2),
            "expected format version 1, found 2: use",
        ),
        (lambda m: m.pop("facts"), "expected the fields created, facts, .*, found created, files"),
        (lambda m: m.update(extra=1), "expected the fields created, facts, .*, found .*extra"),
        (lambda m: m.update(version=True), "expected a int for `version`, found a bool"),
        (lambda m: m.update(facts=[]), "expected a dict for `facts`, found a list"),
        (lambda m: m["files"].pop("CARD.md"), "at /files: expected the fields CARD.md, grammar"),
        (lambda m: m["files"].update(x={}), "at /files: expected the fields CARD.md, grammar"),
        (
            lambda m: m["files"]["CARD.md"].update(bytes="9"),
            r"at /files/CARD\.md: expected a int for `bytes`, found a str",
        ),
        (lambda m: m["tensors"].update(C=3), "at /tensors/C: expected an object, found a int"),
        (
            lambda m: m["tensors"]["C"].update(dtype="BF16"),
            "at /tensors/C: expected a dtype out of F64, .*, found BF16",
        ),
    ],
)
def test_manifests_that_are_sealed_but_wrong_are_refused(
    change: Callable[[dict[str, Any]], object], message: str, tmp_path: Path
) -> None:
    store.publish(tmp_path, "en", bundle())
    rewrite(tmp_path / "en" / "1", change)
    with pytest.raises(StoreError, match=rf"en/1/manifest\.json.*{message}"):
        store.load("en", tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda m: m["tensors"]["C"].update(shape=[3, 40]),
            r"`C`: expected .*\[3, 40\].*, found .*\[40, 3\]",
        ),
        (lambda m: m["tensors"]["C"].update(dtype="I64"), r"`C`: expected .*I64.*, found .*F64"),
        (lambda m: m["tensors"].pop("C"), r"`C`: expected None, found .*F64"),
        (
            lambda m: m["tensors"].update(D={"dtype": "F64", "shape": []}),
            r"`D`: expected .*F64.*, found None",
        ),
    ],
)
def test_tensors_other_than_the_manifest_lists_are_refused(
    change: Callable[[dict[str, Any]], object], message: str, tmp_path: Path
) -> None:
    store.publish(tmp_path, "en", bundle())
    rewrite(tmp_path / "en" / "1", change)
    with pytest.raises(StoreError, match=rf"en/1/tensors\.safetensors {message}.*: what wrote it"):
        store.load("en", tmp_path)


@pytest.mark.parametrize(
    ("file", "data", "message"),
    [
        ("manifest.json", seal(b"[" * 40 + b'"' + b"0" * 64 + b'"]\n\n'), "expected JSON, found"),
        (
            "manifest.json",
            seal(b'["' + b"0" * 64 + b'"\n]\n'),
            "expected a JSON object, found a",
        ),
        ("grammar.json", b"{", "expected JSON, found Expecting"),
        ("grammar.json", b"[" * 100_000, "expected JSON, found maximum recursion depth"),
        ("grammar.json", b"3", "expected a JSON object, found a int"),
        ("grammar.json", b'{"x": "\xff"}', "expected UTF-8, found .*invalid start byte"),
        ("CARD.md", b"\xff", "expected UTF-8, found .*invalid start byte"),
        ("tensors.safetensors", b"\xff" * 8, "expected JSON, found"),
    ],
)
def test_recorded_files_with_senseless_content_are_refused(
    file: str, data: bytes, message: str, tmp_path: Path
) -> None:
    store.publish(tmp_path, "en", bundle())
    folder = tmp_path / "en" / "1"
    if file == "manifest.json":
        replace(folder / file, data)
    else:
        replace_recorded(folder, file, data)
    with pytest.raises(StoreError, match=rf"{re.escape(file)}: {message}.*: what wrote it went"):
        store.load("en", tmp_path)


def test_numbers_are_mapped_and_places_are_copied(tmp_path: Path) -> None:
    store.publish(tmp_path, "en", bundle())
    tensors = store.load("en", tmp_path).tensors
    assert isinstance(tensors["C"].base, mmap.mmap)
    assert tensors["counts"].base is None
    assert not any(array.flags.writeable for array in tensors.values())


def test_a_version_that_is_removed_stays_as_it_was_loaded(tmp_path: Path) -> None:
    store.publish(tmp_path, "en", bundle())
    stored = store.load("en", tmp_path)
    store.remove("en@1", tmp_path)
    stored.let_go()
    assert same(stored, bundle())


def test_places_stay_as_they_were_checked_even_if_the_file_changes(tmp_path: Path) -> None:
    store.publish(tmp_path, "en", bundle())
    stored = store.load("en", tmp_path)
    path = tmp_path / "en" / "1" / "tensors.safetensors"
    path.chmod(0o644)
    with path.open("r+b") as file:  # in place, which nothing of the store ever does
        file.write(bytes(path.stat().st_size))
    assert not stored.tensors["C"].any()
    np.testing.assert_array_equal(stored.tensors["counts"], bundle().tensors["counts"])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"[0,16]", b"[0,99]"),
        (b"[0,16]", b"[0,8 ]"),
        (b"[0,16]", b"[8,24]"),
        (b"[0,16]", b'[0,""]'),
        (b"[0,16]", b"[0]   "),
        (b"[0,16]", b"null  "),
    ],
)
def test_tensors_with_wrong_offsets_are_refused(old: bytes, new: bytes, tmp_path: Path) -> None:
    store.publish(tmp_path, "en", Bundle({"x": np.ones(2)}, {}, {}, ""))
    folder = tmp_path / "en" / "1"
    whole = (folder / "tensors.safetensors").read_bytes()
    assert old in whole
    replace_recorded(folder, "tensors.safetensors", whole.replace(old, new))
    with pytest.raises(StoreError, match=r"tensors\.safetensors: expected safetensors, found"):
        store.load("en", tmp_path)


def test_tensors_that_overlap_are_refused(tmp_path: Path) -> None:
    store.publish(tmp_path, "en", Bundle({"x": np.ones(2), "y": np.ones(2)}, {}, {}, ""))
    folder = tmp_path / "en" / "1"
    whole = (folder / "tensors.safetensors").read_bytes()
    assert b"[0,16]" in whole
    assert b"[16,32]" in whole
    replace_recorded(folder, "tensors.safetensors", whole.replace(b"[0,16]", b"[8,24]"))
    with pytest.raises(StoreError, match=r"tensors\.safetensors: expected safetensors, found"):
        store.load("en", tmp_path)


@pytest.mark.parametrize("size", [-2, 2.0, True, "2", 3, 1 << 70])
def test_tensors_of_senseless_sizes_are_refused(size: object, tmp_path: Path) -> None:
    store.publish(tmp_path, "en", Bundle({"x": np.ones(2)}, {}, {}, ""))
    folder = tmp_path / "en" / "1"
    whole = (folder / "tensors.safetensors").read_bytes()
    end = 8 + int.from_bytes(whole[:8], "little")
    header = whole[8:end].replace(b'"shape":[2]', b'"shape":[' + json.dumps(size).encode() + b"]")
    data = len(header).to_bytes(8, "little") + header + whole[end:]
    replace_recorded(folder, "tensors.safetensors", data)
    rewrite(folder, lambda manifest: manifest["tensors"]["x"].update(shape=[size]))
    with pytest.raises(StoreError, match=r"tensors\.safetensors: expected safetensors, found"):
        store.load("en", tmp_path)


# Publishers that are killed, hindered, or many ----------------------------------------------------


def publishers(mode: str, place: Path) -> dict[str, int]:
    """Run tests/store_publishers.py, whose checks are asserts of its own."""
    command = [sys.executable, "-m", "tests.store_publishers", mode, str(place)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result: dict[str, int] = json.loads(done.stdout)
    return result


def test_a_thousand_kills_at_random_moments_leave_the_old_or_the_new(tmp_path: Path) -> None:
    seen = publishers("kills", tmp_path)
    assert seen["old"] + seen["new"] == 1_000
    assert seen["old"] > 0  # kills that came too late or too soon would prove nothing
    assert seen["torn_folders"] > 0
    assert seen["left"] == 0


def test_a_kill_before_any_system_call_leaves_the_old_or_new(tmp_path: Path) -> None:
    seen = publishers("calls", tmp_path)
    assert seen["old"] > 20  # a publish makes some sixty calls, the rename nearly the last
    assert seen["new"] > 0
    assert seen["left"] == 0


def test_publishers_at_once_get_numbers_of_their_own_while_others_die(tmp_path: Path) -> None:
    seen = publishers("race", tmp_path)
    assert seen["killed"] > 0
    assert seen["left"] == 0


class Refusal:
    """Counts calls into the system and, at one of them, refuses."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, refuse_at: int, code: int) -> None:
        self.calls = 0
        for name in ("mkdir", "open", "fsync", "rename", "scandir", "listdir", "unlink"):
            monkeypatch.setattr(os, name, self.counted(getattr(os, name), refuse_at, code))

    def counted(self, call: Callable[..., Any], refuse_at: int, code: int) -> Callable[..., Any]:
        def counting(*args: Any, **keywords: Any) -> Any:
            self.calls += 1
            if self.calls == refuse_at:
                raise OSError(code, os.strerror(code), str(args[0]))
            return call(*args, **keywords)

        return counting


@pytest.mark.parametrize(
    ("code", "cure"),
    [
        (errno.ENOSPC, "No space left on device.*: free some space or choose another store"),
        (errno.EROFS, "Read-only file system.*: let this user read and write there, or choose"),
        (errno.EIO, "Input/output error.*: check that the store is there and in order"),
    ],
)
def test_any_refused_system_call_is_a_clear_error_and_no_half_version(
    code: int, cure: str, tmp_path: Path
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        total = Refusal(patch, 0, code)
        store.publish(tmp_path / "counted", "en", bundle())
    assert total.calls > 15
    for refuse_at in range(1, total.calls + 1):
        place = tmp_path / str(refuse_at)
        with pytest.MonkeyPatch.context() as patch:
            Refusal(patch, refuse_at, code)
            with pytest.raises(StoreError, match=f"cannot publish en into .*{cure}"):
                store.publish(place, "en", bundle())
        # The last two calls, opening the folder and its fsync, come when the version is there.
        there = ["en@1"] if refuse_at >= total.calls - 1 else []
        assert versions(place) == there
        assert all(same(store.load(listed, place), bundle()) for listed in there)
        store.publish(place, "en", bundle(1))
        assert same(store.load("en", place), bundle(1))
        assert leftovers(place) == []


def test_files_reach_the_disk_before_the_rename_and_it_before_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut cannot be staged here; the order of fsyncs that withstands one can be pinned."""
    steps: list[str] = []
    fsync, rename = os.fsync, os.rename

    def noted_fsync(descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        steps.append(re.sub(r"\.publish-\w+", "new", str(path.relative_to(tmp_path))))
        fsync(descriptor)

    def noted_rename(source: Path, target: Path) -> None:
        steps.append("rename")
        rename(source, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "rename", noted_rename)
    store.publish(tmp_path / "store", "en", bundle())
    files_synced = [f"store/en/new/{name}" for name in sorted(FILES)]
    assert sorted(steps[:2]) == [".", "store"]  # new folders are entries of their parents
    assert sorted(steps[2:6]) == files_synced
    assert steps[6:] == ["store/en/new", "rename", "store/en"]


def test_a_file_that_may_not_grow_leaves_no_half_version(tmp_path: Path) -> None:
    store.publish(tmp_path, "en", bundle())
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        with pytest.raises(StoreError, match=r"cannot publish en into .*File too large: free some"):
            store.publish(tmp_path, "en", bundle(size=10_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert versions(tmp_path) == ["en@1"]
    assert leftovers(tmp_path) == []


@contextmanager
def small_disk(folder: Path, options: str) -> Iterator[Path]:
    folder.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", options, "lpcfg-test", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, check=False).returncode:
        lacking("a small disk of its own needs the right to mount a tmpfs")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_leaves_no_half_version(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "size=64k") as disk:
        store.publish(disk, "en", bundle())
        with pytest.raises(StoreError, match=r"cannot publish en into .*No space left.*: free"):
            store.publish(disk, "en", bundle(size=10_000))
        assert versions(disk) == ["en@1"]
        assert leftovers(disk) == []
        assert str(store.publish(disk, "en", bundle())) == "en@2"


def test_a_read_only_disk_can_be_read_and_refuses_to_be_written(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "size=64k") as disk:
        store.publish(disk, "en", bundle())
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        assert same(store.load("en", disk), bundle())
        for name in ("en", "new"):
            with pytest.raises(StoreError, match=f"cannot publish {name} .*Read-only file system"):
                store.publish(disk, name, bundle())
            with pytest.raises(StoreError, match=f"cannot publish {name} .*Read-only file system"):
                store.check_publishable(disk, name)
        with pytest.raises(StoreError, match=r"cannot remove en from .*Read-only file system"):
            store.remove("en", disk)
        assert versions(disk) == ["en@1"]


def test_a_folder_this_user_may_not_write_is_a_clear_error() -> None:
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        store.publish(place, "en", bundle())
        for folder in (place, place / "en"):
            folder.chmod(0o555)
            stack.callback(folder.chmod, 0o755)
        if os.geteuid() == 0:  # the superuser may write anywhere
            os.seteuid(65534)
            stack.callback(os.seteuid, 0)
        for name in ("en", "new"):
            with pytest.raises(StoreError, match=f"cannot publish {name} .*Permission denied.*let"):
                store.publish(place, name, bundle())
            with pytest.raises(StoreError, match=f"cannot publish {name} .*Permission denied.*let"):
                store.check_publishable(place, name)
        assert versions(place) == ["en@1"]
        assert leftovers(place) == []


def test_published_files_carry_no_write_permission(tmp_path: Path) -> None:
    store.publish(tmp_path, "en", bundle())
    for file in FILES:
        assert (tmp_path / "en" / "1" / file).stat().st_mode & 0o222 == 0


def abandoned(place: Path, name: str, days: float = 0) -> Path:
    """Create what a publish leaves that was killed so many days ago."""
    folder = place / "en" / name
    folder.mkdir(parents=True)
    (folder / "CARD.md").touch()
    then = time.time() - days * 86_400
    os.utime(folder, (then, then))
    return folder


def test_the_next_publish_deletes_what_dead_processes_left(tmp_path: Path) -> None:
    abandoned(tmp_path, ".publish-dead")
    abandoned(tmp_path, ".trash-dead")
    (tmp_path / "en" / ".publish-link").symlink_to(tmp_path)
    assert versions(tmp_path) == []
    assert str(store.publish(tmp_path, "en", bundle())) == "en@1"
    assert leftovers(tmp_path) == [".publish-link"]  # not made by the store: not its to delete


def test_the_work_of_a_living_publisher_is_never_deleted(tmp_path: Path) -> None:
    living = abandoned(tmp_path, ".publish-living", days=30)
    descriptor = os.open(living, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    store.publish(tmp_path, "en", bundle())
    assert leftovers(tmp_path) == [".publish-living"]
    os.close(descriptor)
    store.publish(tmp_path, "en", bundle())
    assert leftovers(tmp_path) == []


def test_without_locks_only_old_leftovers_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(_descriptor: int, _mode: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    abandoned(tmp_path, ".publish-young", days=0.9)
    abandoned(tmp_path, ".publish-old", days=1.1)
    store.publish(tmp_path, "en", bundle())
    assert leftovers(tmp_path) == [".publish-young"]
    assert same(store.load("en", tmp_path), bundle())


def test_a_publisher_whose_new_folder_is_deleted_makes_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between making its folder and locking it a publisher looks dead: three ways to lose it."""
    lock, opened = fcntl.flock, os.open
    born: list[Path] = []

    def open_after_the_sweep(path: Any, *args: Any) -> int:
        if ".publish-" in Path(path).name:
            born.append(Path(path))
            if len(born) == 1:
                Path(path).rmdir()
        return opened(path, *args)

    def lock_after_the_sweep(descriptor: int, mode: int) -> None:
        if len(born) == 2:
            born[-1].rmdir()
        if len(born) == 3:
            raise BlockingIOError
        lock(descriptor, mode)

    monkeypatch.setattr(os, "open", open_after_the_sweep)
    monkeypatch.setattr(fcntl, "flock", lock_after_the_sweep)
    store.publish(tmp_path, "en", bundle())
    monkeypatch.undo()
    assert len(set(born)) >= 4
    assert same(store.load("en", tmp_path), bundle())
    store.publish(tmp_path, "en", bundle())
    assert leftovers(tmp_path) == []


def test_a_publisher_that_comes_second_takes_the_next_number(
    anywhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.publish(anywhere, "en", bundle())
    real = storage.next_version
    stale = iter([1])
    monkeypatch.setattr(storage, "next_version", lambda *asked: next(stale, None) or real(*asked))
    assert str(store.publish(anywhere, "en", bundle(1))) == "en@2"
    assert same(store.load("en@1", anywhere), bundle(0))
    assert same(store.load("en@2", anywhere), bundle(1))


# Object stores ------------------------------------------------------------------------------------


def test_an_object_store_writes_the_manifest_last_and_removes_it_first(
    memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = fsspec.filesystem("memory")
    order = []
    for name in ("pipe_file", "rm_file"):
        call = getattr(system, name)

        def noted(path: str, *args: Any, call: Any = call, **keywords: Any) -> Any:
            order.append((call.__name__, path.rpartition("/")[2]))
            return call(path, *args, **keywords)

        monkeypatch.setattr(system, name, noted)
    store.publish(memory, "en", bundle())
    assert [step[1] for step in order[:4]] == [
        "CARD.md",
        "grammar.json",
        "tensors.safetensors",
        "manifest.json",
    ]
    store.remove("en", memory)
    assert order[4:6] == [("pipe_file", ".removed-1"), ("rm_file", "manifest.json")]


@pytest.mark.parametrize("clean", [True, False], ids=["cleaned up", "left lying"])
def test_an_object_store_that_refuses_a_file_leaves_no_version(
    clean: bool, memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.publish(memory, "en", bundle())
    system = fsspec.filesystem("memory")
    pipe_file = system.pipe_file

    def full(path: str, data: bytes, **keywords: Any) -> None:
        if path.endswith("manifest.json"):
            raise OSError(errno.ENOSPC, "No space left on device", path)
        pipe_file(path, data, **keywords)

    def gone(path: str) -> None:
        raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer", path)

    with monkeypatch.context() as patch:
        patch.setattr(system, "pipe_file", full)
        if not clean:
            patch.setattr(system, "rm_file", gone)
        with pytest.raises(StoreError, match=r"cannot publish en into .*No space left.*: free"):
            store.publish(memory, "en", bundle(1))
    assert versions(memory) == ["en@1"]
    assert same(store.load("en", memory), bundle())
    assert bool(system.glob("/models/store/en/2/*")) is not clean
    assert store.publish(memory, "en", bundle(2)).version == (2 if clean else 3)


def test_an_object_store_deletes_leftovers_after_a_day(
    memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = fsspec.filesystem("memory")
    store.publish(memory, "en", bundle())
    for version, days in ((2, 0.9), (3, 1.1)):
        path = f"/models/store/en/{version}/CARD.md"
        system.pipe_file(path, b"")
        system.store[path].modified = datetime.now(UTC) - timedelta(days=days)
    system.pipe_file("/models/store/en/3/.hidden", b"")
    assert versions(memory) == ["en@1"]
    store.publish(memory, "en", bundle())  # .hidden is young: the folder may be someone's work
    assert system.exists("/models/store/en/3/CARD.md")
    system.store["/models/store/en/3/.hidden"].modified = datetime.now(UTC) - timedelta(days=2)
    store.publish(memory, "en", bundle())
    assert not system.exists("/models/store/en/3")
    assert system.exists("/models/store/en/2/CARD.md")

    def unknown(path: str) -> datetime:
        raise NotImplementedError(path)

    monkeypatch.setattr(system, "modified", unknown)
    store.publish(memory, "en", bundle())  # nothing is swept where files have no dates
    assert system.exists("/models/store/en/2/CARD.md")


def test_errors_without_a_text_are_named_by_their_kind(
    memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(*_args: Any, **_keywords: Any) -> None:
        raise TimeoutError

    monkeypatch.setattr(fsspec.filesystem("memory"), "ls", silent)
    with pytest.raises(StoreError, match=r"cannot list the models in memory.*: TimeoutError"):
        store.list_models(memory)


def test_a_model_that_a_store_lacks_is_looked_for_in_the_package(
    package: Path, anywhere: str
) -> None:
    inside = store.publish(package, "inside", bundle())
    first, second = (store.publish(package, "both", bundle(seed)) for seed in range(2))
    assert store.load("inside", anywhere).reference == inside
    assert store.load("inside@1", anywhere).reference == inside
    assert store.load("both", anywhere).reference == second
    mine = store.publish(anywhere, "both", bundle(2))
    assert store.load("both", anywhere).reference == mine
    assert store.load("both@1", anywhere).reference == mine != first
    assert store.resolve("both@2", anywhere) == second  # which the store lacks
    assert store.versions("both", anywhere) == [1]
    assert [store.exists(one, anywhere) for one in ("both@2", "both@3", "inside")] == [1, 0, 1]


def test_stores_are_looked_at_in_turn(package: Path, tmp_path: Path) -> None:
    packaged = store.publish(package, "en", bundle())
    second = store.publish(tmp_path / "second", "en", bundle())
    assert store.load("en", tmp_path / "first", tmp_path / "second").reference == second
    assert store.load("en", tmp_path / "first", tmp_path / "third").reference == packaged
    with pytest.raises(StoreError, match=r"first or .*second or .*package, found none"):
        store.load("fr", tmp_path / "first", tmp_path / "second")


def test_publishing_listing_and_removing_concern_the_given_store_alone(
    package: Path, tmp_path: Path
) -> None:
    own = tmp_path / "own"
    inside = store.publish(package, "inside", bundle())
    assert versions(own) == []
    with pytest.raises(StoreError, match=r"expected a model `inside` in .*own, found none"):
        store.remove("inside", own)
    assert store.publish(own, "inside", bundle()).version == 1
    assert versions(own) == ["inside@1"]
    assert store.remove("inside", own) == "inside@1"
    assert store.load("inside", own).reference == inside


def test_a_path_is_not_looked_for_in_the_package(package: Path, tmp_path: Path) -> None:
    store.publish(package, "en", bundle())
    with pytest.raises(StoreError, match=r"expected a model `en@1` in .*typo, found none"):
        store.load(f"{tmp_path}/typo/en/1", tmp_path)


def test_a_model_that_is_nowhere_is_told_with_every_place(package: Path, tmp_path: Path) -> None:
    store.publish(tmp_path / "own", "mine", bundle())
    for name in ("en", "en", "en-dep"):
        store.publish(package, name, bundle())
    with pytest.raises(StoreError) as told:
        store.load("en@7", tmp_path / "own")
    assert str(told.value) == (
        f"expected a model `en@7` in {tmp_path}/own or {package}, found none: {tmp_path}/own has "
        f"mine; {package} has en (versions: 1, 2), en-dep: publish it, or name another model or "
        "store"
    )
    with pytest.raises(StoreError) as told:
        store.load("fr", package)  # which is looked at once
    assert str(told.value).count(str(package)) == 2
