"""Publish, load, list and remove versions, and read references to them."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from lpcfg.base.cancel import FINISHING
from lpcfg.base.errors import StoreError
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
from lpcfg.store.storage import MANIFEST, VERSION, Kind, explained, open_storage, published

BUILT_IN = Path(__file__).resolve().parents[1] / "model_store"
"""Models that are part of an installed package. A name that a store lacks is looked for here."""
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


def load(reference: str, store: str | Path) -> Stored:
    """Load and verify the version that a reference names (`NAME`, `NAME@VERSION` or a path).

    Files of a remote store are read once, and kept on this machine.
    """
    return _load(reference, store, use_cache=True)[0]


def verify(reference: str, store: str | Path) -> list[CheckedFile]:
    """Verify a version as `load` does, and list the files that were checked."""
    return load_checked(reference, store)[1]


def resolve(reference: str, store: str | Path) -> Reference:
    """Find the version that a reference means now. Only its manifest is read and verified."""
    with explained(f"read {reference} from {store}"):
        place = _locate(reference, store)
        return _reference(place, read_manifest(place)[0])


def locate(reference: str, store: str | Path) -> tuple[str, str, int]:
    """Find the store, the name and the number of the version that a reference means now."""
    with explained(f"read {reference} from {store}"):
        place = _locate(reference, store)
    return place.store if "/" in reference else str(store), place.name, place.version


def versions(name: str, store: str | Path) -> list[int]:
    """List the numbers of a model's versions, the newest first. Raise StoreError without any."""
    with explained(f"read {name} from {store}"):
        check_name(name)
        home = _home(name, store)
        numbers = list(published(open_storage(home), name))
        if not numbers:
            raise StoreError(_no_version(name, home))
        return numbers


def list_models(store: str | Path) -> list[Listed]:
    """List every published version, by name and number, built-in models of other names included.

    Remains of killed publishes are left out.
    """
    with explained(f"list the models in {store}"):
        homes = dict.fromkeys(_names(store), store)
        if BUILT_IN.is_dir():
            homes = {**dict.fromkeys(_names(BUILT_IN), BUILT_IN), **homes}
        return [
            _listed(Place(open_storage(home), str(home), name, version))
            for name, home in sorted(homes.items())
            for version in sorted(published(open_storage(home), name))
        ]


def _names(store: str | Path) -> list[str]:
    return _models_among(open_storage(store).entries(""))


def _models_among(kinds: Mapping[str, Kind]) -> list[str]:
    return sorted(
        name for name, kind in kinds.items() if kind == "folder" and _NAME.fullmatch(name)
    )


def remove(reference: str, store: str | Path) -> str:
    """Remove one version, in any state, and return its NAME@VERSION.

    A bare NAME is accepted only if it has a single version. Numbers are not used again.
    """
    with explained(f"remove {reference} from {store}"):
        place = _locate(reference, store, or_built_in=False)
        if "/" not in reference and "@" not in reference:
            versions = sorted(published(place.storage, place.name))
            if len(versions) > 1:
                raise StoreError(
                    f"expected NAME@VERSION to remove, got `{reference}`, which has versions "
                    f"{join(versions)} in {place.store}: say which, as in {place}"
                )
        with FINISHING:
            place.storage.remove(place.name, place.version)
    return str(place)


# References --------------------------------------------------------------------------------------


def _locate(reference: str, store: str | Path, *, or_built_in: bool = True) -> Place:
    if "/" in reference:
        store, name, wanted = _split_path(reference)
    else:
        name, at, wanted = reference.partition("@")
        if at and not VERSION.fullmatch(wanted):
            raise StoreError(
                f"expected a version number after `@`, got `{reference}`: "
                f"write it as in {name}@1, or only {name} for its newest version"
            )
    check_name(name)
    home = _home(name, store, or_built_in=or_built_in)
    storage = open_storage(home)
    numbers = published(storage, name)
    number = next((n for n in numbers if wanted in ("", str(n))), None)
    if number is None:
        raise StoreError(_no_version(name, home, wanted))
    return Place(storage, str(home), name, number)


def _home(name: str, store: str | Path, *, or_built_in: bool = True) -> str | Path:
    """Return the store that has the model: this one, or that of the package."""
    kinds = open_storage(store).entries("")
    if kinds.get(name) == "folder":
        return store
    if not (or_built_in and (BUILT_IN / name).is_dir()):
        raise StoreError(_no_model(kinds, name, str(store)))
    return BUILT_IN


def _no_version(name: str, store: str | Path, wanted: str = "") -> str:
    versions = sorted(published(open_storage(store), name))
    return (
        f"expected a published version {wanted or 'of any number'} of `{name}` in {store}, "
        f"found {join(versions)}: publish it or name another"
    )


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


def _no_model(kinds: Mapping[str, Kind], name: str, store: str) -> str:
    found = f"a {kinds[name]} of that name" if name in kinds else "none of that name"
    names = join(_models_among(kinds))
    return (
        f"expected a model `{name}` in {store}, found {found}; models there: {names}: "
        "publish it or name another model or store"
    )


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
    return _load(reference, store, use_cache=False)


def _load(
    reference: str, store: str | Path, *, use_cache: bool
) -> tuple[Stored, list[CheckedFile]]:
    with explained(f"read {reference} from {store}"):
        place = _locate(reference, store)
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
