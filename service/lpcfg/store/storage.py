"""Storage of a model store: a folder on a disk, or an fsspec URL. Both publish versions whole.

Both keep `NAME/NUMBER/` folders of files with a manifest, and do not read what the files say. On a
disk, a version is prepared in a temporary sibling folder and renamed into place. An object store
has no rename: there the manifest is written last, and a numbered folder without one is no version.
"""

import errno
import fcntl
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from lpcfg.base.errors import InputError, StoreError
from lpcfg.store.cache import Cache, mapped
from lpcfg.text.urls import filesystem, network_failures

MANIFEST = "manifest.json"
VERSION = re.compile(r"[1-9][0-9]{0,8}")

_TOMBSTONE = re.compile(r"\.removed-([1-9][0-9]{0,8})")
_UNFINISHED = ".publish-"
_TRASH = ".trash-"
_DAY = 86_400.0
_FULL = "free some space or choose another store"
_CHECK = "check that the store is there and in order"
_CLOSED = "let this user read and write there, or choose another store"
_CURES = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: _FULL,
    errno.EROFS: _CLOSED,
    errno.EACCES: _CLOSED,
    errno.EPERM: _CLOSED,
}

Kind = Literal["file", "folder", "symbolic link", "special file"]
ManifestOf = Callable[[int], bytes]


@contextmanager
def explained(action: str) -> Iterator[None]:
    """Turn errors of system and network into StoreErrors that name the action and the cure."""
    try:
        yield
    except network_failures() as error:
        cure = _CURES.get(getattr(error, "errno", None) or 0, _CHECK)
        problem = str(error) or type(error).__name__
        if isinstance(error, OSError) and error.strerror and error.filename:
            problem = f"{error.strerror} at {error.filename}"
        raise StoreError(f"cannot {action}: {problem}: {cure}") from error


class Storage(Protocol):
    """A tree of files. Paths are relative to the store, with `/` between their parts."""

    def where(self, path: str) -> str:
        """Return the path as users know it."""

    def entries(self, folder: str) -> dict[str, Kind]:
        """List what a folder holds. A missing folder holds nothing."""

    def size(self, path: str) -> int: ...

    def read(self, path: str) -> bytes: ...

    def mapped(self, path: str) -> memoryview:
        """Return what a file holds: mapped into memory, or read where there is nothing to map."""

    def is_published(self, folder: str) -> bool:
        """Return True if this numbered folder holds a complete version."""

    def try_writing(self, name: str) -> None:
        """Raise what `publish` would raise if nothing can be written. Change nothing."""

    def publish(
        self, name: str, files: Mapping[str, bytes], manifest_of: ManifestOf
    ) -> tuple[int, bytes]:
        """Store the files and their manifest under a fresh number. Return the number and the
        manifest.

        The first of `files` is small: an object store claims the number by creating it.
        """

    def remove(self, name: str, version: int) -> None: ...

    def cache(self) -> Cache | None:
        """Return where files of this storage are kept for the next time; None if it is near."""


def open_storage(store: str | Path) -> Storage:
    if "://" not in str(store):
        return LocalStorage(Path(store))
    try:
        files, root = filesystem(str(store))
    except InputError as error:
        raise StoreError(
            f"expected a folder or an fsspec URL as the store, got {store}: {error}"
        ) from error
    from fsspec.implementations.local import LocalFileSystem

    # A file:// URL gets the rename, not the weaker protocol of object stores.
    if isinstance(files, LocalFileSystem):
        return LocalStorage(Path(root))
    return ObjectStorage(files, root)


def published(storage: Storage, name: str) -> Iterator[int]:
    """Yield the versions of a model, newest first."""
    numbers = [
        int(entry)
        for entry, kind in storage.entries(name).items()
        if kind == "folder" and VERSION.fullmatch(entry)
    ]
    for number in sorted(numbers, reverse=True):
        if storage.is_published(f"{name}/{number}"):
            yield number


def next_version(storage: Storage, name: str) -> int:
    """Return a number above every version that exists, is being published, or once existed."""
    entries = storage.entries(name)
    used = [int(entry) for entry in entries if VERSION.fullmatch(entry)]
    removed = [int(match[1]) for entry in entries if (match := _TOMBSTONE.fullmatch(entry))]
    return 1 + max(used + removed, default=0)


@dataclass(frozen=True)
class LocalStorage:
    """A folder on a disk, where renaming a folder is atomic."""

    root: Path

    def where(self, path: str) -> str:
        return str(self.root / path)

    def entries(self, folder: str) -> dict[str, Kind]:
        try:
            with os.scandir(self.root / folder) as found:
                return {entry.name: _kind(entry) for entry in found}
        except FileNotFoundError:
            return {}

    def size(self, path: str) -> int:
        return (self.root / path).stat().st_size

    def read(self, path: str) -> bytes:
        return (self.root / path).read_bytes()

    def mapped(self, path: str) -> memoryview:
        return mapped(self.root / path)

    def is_published(self, folder: str) -> bool:
        return stat.S_ISDIR((self.root / folder).lstat().st_mode)

    def try_writing(self, name: str) -> None:
        home = self.root / name
        _check_real(home)
        there = next(folder for folder in (home, *home.parents) if folder.exists())
        probe = there / f"{_UNFINISHED}{secrets.token_hex(8)}"
        probe.mkdir()
        with suppress(FileNotFoundError):  # another publisher deleted it
            probe.rmdir()

    def publish(
        self, name: str, files: Mapping[str, bytes], manifest_of: ManifestOf
    ) -> tuple[int, bytes]:
        home = self.root / name
        _make_folders(home)
        _sweep(home)
        with _workshop(home) as folder:
            for file, data in files.items():
                _write_new(folder / file, data)
            while True:
                version = next_version(self, name)
                manifest = manifest_of(version)
                (folder / MANIFEST).unlink(missing_ok=True)
                _write_new(folder / MANIFEST, manifest)
                _sync_folder(folder)
                if _rename_to_new(folder, home / str(version)):
                    break
        _sync_folder(home)
        return version, manifest

    def cache(self) -> None:
        return None

    def remove(self, name: str, version: int) -> None:
        home = self.root / name
        (home / f".removed-{version}").touch()
        trash = home / f"{_TRASH}{secrets.token_hex(8)}"
        (home / str(version)).rename(trash)
        _sync_folder(home)
        shutil.rmtree(trash, ignore_errors=True)  # the next publish deletes the rest


def _kind(entry: os.DirEntry[str]) -> Kind:
    if entry.is_symlink():
        return "symbolic link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "special file"


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _make_folders(home: Path) -> None:
    missing = [folder for folder in (home, *home.parents) if not folder.exists()]
    home.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        _sync_folder(folder.parent)
    _check_real(home)


def _check_real(home: Path) -> None:
    if home.is_symlink():
        cure = "choose another name or make it a real folder"
        raise StoreError(f"{home}: expected a folder, found a symbolic link: {cure}")


def _write_new(path: Path, data: bytes) -> None:
    """Write a read-only file, and wait until it is on the disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o444)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(descriptor)


def _rename_to_new(folder: Path, target: Path) -> bool:
    """Rename the folder, unless the target exists.

    A folder that holds anything is never replaced.
    """
    try:
        folder.rename(target)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False
        raise
    return True


@contextmanager
def _workshop(home: Path) -> Iterator[Path]:
    """Create a temporary sibling folder: locked while in use, deleted unless it is renamed."""
    folder, descriptor = _open_workshop(home)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def _open_workshop(home: Path) -> tuple[Path, int]:
    while True:
        folder = home / f"{_UNFINISHED}{secrets.token_hex(8)}"
        folder.mkdir()
        descriptor = None
        with suppress(FileNotFoundError):  # another process deleted it before its lock
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        if descriptor is None:
            continue
        if _lock(descriptor, fcntl.LOCK_SH) is not False and folder.exists():
            return folder, descriptor
        os.close(descriptor)


def _lock(descriptor: int, mode: int) -> bool | None:
    """Lock an open folder.

    Return True if it is ours, False if another's, None without lock support.
    """
    try:
        fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _sweep(home: Path) -> None:
    """Delete what killed publishes and removals left. Living publishers hold locks on theirs."""
    for entry in list(home.iterdir()):
        if entry.name.startswith(_TRASH):
            shutil.rmtree(entry, ignore_errors=True)
        elif entry.name.startswith(_UNFINISHED):
            _sweep_unfinished(entry)


def _sweep_unfinished(folder: Path) -> None:
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return  # published or deleted by another process meanwhile
    try:
        ours = _lock(descriptor, fcntl.LOCK_EX)
        old = time.time() - os.fstat(descriptor).st_mtime > _DAY
        if ours or (ours is None and old):
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(descriptor)


@dataclass(frozen=True)
class ObjectStorage:
    """An fsspec filesystem without rename. A version exists once its manifest is written, last.

    Concurrent publishers of one name get different numbers by creating their first file
    exclusively.
    """

    files: Any
    root: str

    def where(self, path: str) -> str:
        return str(self.files.unstrip_protocol(self._path(path)))

    def _path(self, path: str) -> str:
        return f"{self.root}/{path}".rstrip("/")

    def entries(self, folder: str) -> dict[str, Kind]:
        path = self._path(folder)
        self.files.invalidate_cache(path)
        try:
            found = self.files.ls(path, detail=True)
        except FileNotFoundError:
            return {}
        return {
            info["name"].rstrip("/").rpartition("/")[2]: (
                "folder" if info["type"] == "directory" else "file"
            )
            for info in found
            if info["name"].rstrip("/") != path  # the marker object of a folder
        }

    def size(self, path: str) -> int:
        return int(self.files.size(self._path(path)))

    def read(self, path: str) -> bytes:
        return bytes(self.files.cat_file(self._path(path)))

    def mapped(self, path: str) -> memoryview:
        return memoryview(self.read(path))

    def is_published(self, folder: str) -> bool:
        return MANIFEST in self.entries(folder)

    def try_writing(self, name: str) -> None:
        probe = f"{name}/{_UNFINISHED}{secrets.token_hex(8)}"
        self._create(probe, b"")
        with suppress(OSError):  # publishing does not need permission to delete
            self.files.rm_file(self._path(probe))

    def publish(
        self, name: str, files: Mapping[str, bytes], manifest_of: ManifestOf
    ) -> tuple[int, bytes]:
        self._sweep(name)
        claim, *rest = files
        version = self._claim(name, claim, files[claim])
        folder = f"{name}/{version}"
        manifest = manifest_of(version)
        try:
            for file in rest:
                self._create(f"{folder}/{file}", files[file])
            self._create(f"{folder}/{MANIFEST}", manifest)
        except BaseException:
            with suppress(OSError):
                self._delete(folder)
            raise
        return version, manifest

    def cache(self) -> Cache | None:
        return None if "memory" in self.files.protocol else Cache.of_user()

    def remove(self, name: str, version: int) -> None:
        self.files.pipe_file(self._path(f"{name}/.removed-{version}"), b"")
        self._delete(f"{name}/{version}")

    def _create(self, path: str, data: bytes) -> None:
        if self.files.exists(self._path(path)):  # for filesystems without exclusive creation
            raise FileExistsError(errno.EEXIST, "there is a file already", self._path(path))
        self.files.pipe_file(self._path(path), data, mode="create")

    def _claim(self, name: str, file: str, data: bytes) -> int:
        version = next_version(self, name)
        while True:
            try:
                self._create(f"{name}/{version}/{file}", data)
            except FileExistsError:
                version += 1
            else:
                return version

    def _delete(self, folder: str) -> None:
        """Delete a version's files, the manifest first: without it there is no version."""
        for file in sorted(self.entries(folder), key=lambda file: file != MANIFEST):
            with suppress(FileNotFoundError):
                self.files.rm_file(self._path(f"{folder}/{file}"))

    def _sweep(self, name: str) -> None:
        """Delete what publishes left that were killed more than a day ago."""
        for entry in self.entries(name):
            folder = f"{name}/{entry}"
            if VERSION.fullmatch(entry) and not self.is_published(folder):
                files = [self._path(f"{folder}/{file}") for file in self.entries(folder)]
                if all(map(self._is_old, files)):
                    self._delete(folder)

    def _is_old(self, path: str) -> bool:
        try:
            return time.time() - float(self.files.modified(path).timestamp()) > _DAY
        except (FileNotFoundError, NotImplementedError):
            return False
