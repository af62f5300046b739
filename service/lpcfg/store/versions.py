"""Publish, load, list and remove versions, and read references to them."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from lpcfg.base.cancel import FINISHING
from lpcfg.base.errors import StoreError
from lpcfg.base.files import EntryType
from lpcfg.store.cache import let_go, sha256
from lpcfg.store.files import (
    Bundle,
    Place,
    Tensors,
    decode,
    encode,
    join,
    read_files,
    read_manifest,
)
from lpcfg.store.places import package_store
from lpcfg.store.storage import MANIFEST, VERSION, explained, open_storage, published

BUILT_IN = package_store()
"""The store of the models that came with the package. A model that a store lacks is looked for
here.
"""
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


@dataclass(frozen=True)
class Reference:
    """One version of one model. `hash` is the SHA-256 of its manifest, in lower-case hex."""

    store: str
    name: str
    version: int
    hash: str

    @property
    def folder(self) -> str:
        """The version's folder, or its URL."""
        return f"{self.store}/{self.name}/{self.version}"

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


@dataclass(frozen=True)
class Stored:
    """A verified version: every file had its recorded size and hash.

    The arrays are read-only. Those of numbers are mapped from the file; places in other arrays are
    copies.
    """

    reference: Reference
    manifest: Mapping[str, object]
    tensors: Tensors
    grammar: Mapping[str, object]
    card: str

    def let_go(self) -> None:
        """Take the arrays out of memory until they are used: checks have looked at all of them."""
        let_go(self.tensors.values())


@dataclass(frozen=True)
class Listed:
    """A version as its manifest describes it; its other files were not read.

    `size` counts the bytes of all its files. `problem` says why the manifest cannot be trusted;
    then the hash, `created`, `size` and `facts` are empty.
    """

    reference: Reference
    created: str
    size: int
    facts: Mapping[str, object]
    problem: str | None = None


@dataclass(frozen=True)
class CheckedFile:
    """A file with its recorded size and SHA-256."""

    path: str
    size: int
    sha256: str


def publish(store: str | Path, name: str, bundle: Bundle) -> Reference:
    """Store a bundle as the next version of a model: all of it, or nothing.

    After a StoreError the version does not exist, with one exception: a disk that wrote everything
    and then failed to confirm the rename. That version is complete.
    """
    check_name(name)
    files, manifest_of = encode(name, bundle)
    with explained(f"publish {name} into {store}"), FINISHING:
        version, manifest = open_storage(store).publish(name, files, manifest_of)
    return Reference(str(store), name, version, sha256(manifest))


def check_publishable(store: str | Path, name: str) -> None:
    """Raise StoreError if `publish` cannot succeed. Call this before long work."""
    check_name(name)
    with explained(f"publish {name} into {store}"), FINISHING:
        open_storage(store).try_writing(name)


def load(reference: str, *stores: str | Path) -> Stored:
    """Load and verify the version that a reference names (`NAME`, `NAME@VERSION` or a path).

    It is looked for in the stores in turn, and then among the models of the package. Files of a
    remote store are read once, and kept on this machine.
    """
    return _load(reference, stores, use_cache=True)[0]


def facts_of(reference: str, *stores: str | Path) -> Mapping[str, Any]:
    """Return the facts in the manifest of the version that `load` would find."""
    with explained(f"read {reference} from {' or '.join(map(str, stores))}"):
        facts: Mapping[str, Any] = read_manifest(_locate(reference, _and_package(*stores)))[1][
            "facts"
        ]
    return facts


def exists(reference: str, *stores: str | Path) -> bool:
    """Return True if `load` would find the version. Its files are not read."""
    with explained(f"read {reference} from {stores[0]}"):
        return _find(*_parts(reference, _and_package(*stores))) is not None


def verify(reference: str, store: str | Path) -> list[CheckedFile]:
    """Verify a version as `load` does, and list the files that were checked."""
    return load_checked(reference, store)[1]


def resolve(reference: str, store: str | Path) -> Reference:
    """Find the version that a reference means now. Only its manifest is read and verified."""
    with explained(f"read {reference} from {store}"):
        place = _locate(reference, _and_package(store))
        return _reference(place, read_manifest(place)[0])


def locate(reference: str, store: str | Path) -> tuple[str, str, int]:
    """Find the store, the name and the number of the version that a reference means now."""
    with explained(f"read {reference} from {store}"):
        place = _locate(reference, _and_package(store))
    return place.store if "/" in reference else str(store), place.name, place.version


def versions(name: str, store: str | Path) -> list[int]:
    """List the numbers of a model's versions, the newest first. Raise StoreError without any."""
    with explained(f"read {name} from {store}"):
        check_name(name)
        place = _locate(name, _and_package(store))
        return list(published(place.storage, place.name))


def list_models(store: str | Path) -> list[Listed]:
    """List every published version of this store alone, by name and number.

    Remains of killed publishes are left out.
    """
    with explained(f"list the models in {store}"):
        storage = open_storage(store)
        return [
            _listed(Place(storage, str(store), name, version))
            for name in _models_among(storage.entries(""))
            for version in sorted(published(storage, name))
        ]


def _models_among(kinds: Mapping[str, EntryType]) -> list[str]:
    return sorted(
        name for name, kind in kinds.items() if kind == "folder" and _NAME.fullmatch(name)
    )


def remove(reference: str, store: str | Path) -> str:
    """Remove one version, in any state, and return its NAME@VERSION.

    A bare NAME is accepted only if it has a single version. Numbers are not used again.
    """
    with explained(f"remove {reference} from {store}"):
        place = _locate(reference, [store])
        if "/" not in reference and "@" not in reference:
            versions = sorted(published(place.storage, place.name))
            if len(versions) > 1:
                raise StoreError(
                    f"expected NAME@VERSION to remove, got `{reference}`, which has versions "
                    f"{join(versions)} in {place.store}: say which, as in {place}"
                )
        with FINISHING:
            place.storage.withdraw(place.name, place.version)
    return str(place)


# References --------------------------------------------------------------------------------------


def _locate(reference: str, stores: Sequence[str | Path]) -> Place:
    """Find a version in the first of the stores that has it. Raise StoreError if none does."""
    name, wanted, homes = _parts(reference, stores)
    place = _find(name, wanted, homes)
    if place is None:
        raise StoreError(_missing(name, wanted, homes))
    return place


def _parts(reference: str, stores: Sequence[str | Path]) -> tuple[str, str, Sequence[str | Path]]:
    """Read a reference: the name, the version's number or nothing, and where it may be."""
    if "/" in reference:
        home, name, wanted = _split_path(reference)
        stores = [home]
    else:
        name, at, wanted = reference.partition("@")
        if at and not VERSION.fullmatch(wanted):
            raise StoreError(
                f"expected a version number after `@`, got `{reference}`: "
                f"write it as in {name}@1, or only {name} for its newest version"
            )
    check_name(name)
    return name, wanted, stores


def _find(name: str, wanted: str, stores: Sequence[str | Path]) -> Place | None:
    for store in stores:
        for number in _numbers(store, name):
            if wanted in ("", str(number)):
                return Place(open_storage(store), str(store), name, number)
    return None


def _and_package(*stores: str | Path) -> list[str | Path]:
    """List these stores and behind them that of the package, each once."""
    known = {Path(store).resolve() for store in stores if "://" not in str(store)}
    of_package = [BUILT_IN] if BUILT_IN.is_dir() and BUILT_IN.resolve() not in known else []
    return [*dict.fromkeys(stores), *of_package]


def _numbers(store: str | Path, name: str) -> list[int]:
    """List the published versions of a model, the newest first; none where the store lacks it."""
    storage = open_storage(store)
    is_there = storage.entries("").get(name) == "folder"
    return list(published(storage, name)) if is_there else []


def _split_path(reference: str) -> tuple[str, str, str]:
    """Split STORE/NAME/VERSION, a local path or a URL, into its three parts."""
    path = reference.rstrip("/") if "://" in reference else os.path.abspath(reference)
    store, name, version = ["", *path.rsplit("/", 2)][-3:]
    if not VERSION.fullmatch(version):
        raise StoreError(
            f"expected the path of a version's folder, STORE/NAME/VERSION, got `{reference}`: "
            "name the numbered folder that holds manifest.json"
        )
    return store or "/", name, version


def check_name(name: str) -> None:
    """Raise StoreError for a name that no model may have."""
    if not _NAME.fullmatch(name):
        raise StoreError(
            "expected a model name of 1 to 64 characters out of a-z, 0-9, `.`, `_` and `-` that "
            f"starts with a letter or a digit, got {name!r}: choose such a name"
        )


def _missing(name: str, wanted: str, homes: Sequence[str | Path]) -> str:
    """Say which version is nowhere, where it was looked for, and what is there."""
    reference = f"{name}@{wanted}" if wanted else name
    return (
        f"expected a model `{reference}` in {' or '.join(map(str, homes))}, found none: "
        f"{'; '.join(_content(home, name) for home in homes)}: publish it, or name another model "
        "or store"
    )


def _content(store: str | Path, name: str) -> str:
    """Say which models a store has, and which versions of the one with this name."""
    kinds = open_storage(store).entries("")
    names = [
        f"{one} (versions: {join(sorted(_numbers(store, one)))})" if one == name else one
        for one in _models_among(kinds)
    ]
    if kinds.get(name, "folder") != "folder":
        names.append(f"a {kinds[name]} `{name}`")
    return f"{store} has {join(names) if names else 'no models'}"


def _listed(place: Place) -> Listed:
    try:
        data, manifest = read_manifest(place)
    except StoreError as error:
        hashless = Reference(place.store, place.name, place.version, "")
        return Listed(hashless, "", 0, {}, str(error))
    size = len(data) + sum(facts["bytes"] for facts in manifest["files"].values())
    return Listed(_reference(place, data), manifest["created"], size, manifest["facts"])


def load_checked(reference: str, store: str | Path) -> tuple[Stored, list[CheckedFile]]:
    """Load a version as `load` does, all of it from the store, and list the files checked."""
    return _load(reference, [store], use_cache=False)


def _load(
    reference: str, stores: Sequence[str | Path], *, use_cache: bool
) -> tuple[Stored, list[CheckedFile]]:
    with explained(f"read {reference} from {' or '.join(map(str, stores))}"):
        place = _locate(reference, _and_package(*stores))
        data, manifest = read_manifest(place)
        files = read_files(place, manifest, place.storage.cache() if use_cache else None)
    bundle = decode(place, files, manifest)
    let_go(bundle.tensors.values())  # all of them were hashed
    stored = Stored(
        _reference(place, data),
        cast(Mapping[str, object], manifest),
        bundle.tensors,
        bundle.grammar,
        bundle.card,
    )
    checked = [CheckedFile(place.where(MANIFEST), len(data), stored.reference.hash)]
    for file, facts in manifest["files"].items():
        checked.append(CheckedFile(place.where(file), facts["bytes"], facts["sha256"]))
    return stored, checked


def _reference(place: Place, manifest: bytes) -> Reference:
    return Reference(place.store, place.name, place.version, sha256(manifest))
