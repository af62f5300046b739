"""Storage of a model store: a folder on a disk, or an fsspec URL. Both publish versions whole.

Both keep `NAME/NUMBER/` folders of files with a manifest, and do not read what the files say. On a
disk, a version is prepared in a temporary sibling folder and renamed into place. An object store
has no rename: there the manifest is written last, and a numbered folder without one is no version.
"""

import errno
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from lpcfg.base.errors import InputError, StoreError
from lpcfg.base.files import (
    LocalFolder,
    RemoteFolder,
    open_place,
    sync_folder,
    try_lock,
)
from lpcfg.base.urls import network_failures
from lpcfg.store.cache import Cache, mapped

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


def published(storage: "Storage", name: str) -> Iterator[int]:
    """Yield the versions of a model, newest first."""
    numbers = [
        int(entry)
        for entry, kind in storage.entries(name).items()
        if kind == "folder" and VERSION.fullmatch(entry)
    ]
    for number in sorted(numbers, reverse=True):
        if storage.is_published(f"{name}/{number}"):
            yield number


def next_version(storage: "Storage", name: str) -> int:
    """Return a number above every version that exists, is being published, or once existed."""
    entries = storage.entries(name)
    used = [int(entry) for entry in entries if VERSION.fullmatch(entry)]
    removed = [int(match[1]) for entry in entries if (match := _TOMBSTONE.fullmatch(entry))]
    return 1 + max(used + removed, default=0)


class LocalStorage(LocalFolder):
    """A folder on a disk, where renaming a folder is atomic."""

    def mapped(self, path: str) -> memoryview:
        """Return what a file holds, mapped into memory."""
        return mapped(self.root / path)

    def is_published(self, folder: str) -> bool:
        """Return True if this numbered folder holds a complete version."""
        return stat.S_ISDIR((self.root / folder).lstat().st_mode)

    def try_writing(self, name: str) -> None:
        """Raise what `publish` would raise if nothing can be written. Change nothing."""
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
        """Store the files and their manifest under a fresh number. Return the number and the
        manifest.
        """
        home = self.root / name
        _make_folders(home)
        _sweep(home)
        with _workshop(home) as folder:
            for file, data in files.items():
                self.create(f"{name}/{folder.name}/{file}", data)
            while True:
                version = next_version(self, name)
                manifest = manifest_of(version)
                (folder / MANIFEST).unlink(missing_ok=True)
                self.create(f"{name}/{folder.name}/{MANIFEST}", manifest)
                sync_folder(folder)
                if _rename_to_new(folder, home / str(version)):
                    break
        sync_folder(home)
        return version, manifest

    def cache(self) -> None:
        """Return None: files are near, and kept nowhere else."""
        return

    def withdraw(self, name: str, version: int) -> None:
        """Remove a version. Its number is not used again."""
        home = self.root / name
        (home / f".removed-{version}").touch()
        trash = home / f"{_TRASH}{secrets.token_hex(8)}"
        (home / str(version)).rename(trash)
        sync_folder(home)
        shutil.rmtree(trash, ignore_errors=True)  # the next publish deletes the rest


def _make_folders(home: Path) -> None:
    missing = [folder for folder in (home, *home.parents) if not folder.exists()]
    home.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        sync_folder(folder.parent)
    _check_real(home)


def _check_real(home: Path) -> None:
    if home.is_symlink():
        cure = "choose another name or make it a real folder"
        raise StoreError(f"{home}: expected a folder, found a symbolic link: {cure}")


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
        if try_lock(descriptor, shared=True) is not False and folder.exists():
            return folder, descriptor
        os.close(descriptor)


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
        ours = try_lock(descriptor)
        old = time.time() - os.fstat(descriptor).st_mtime > _DAY
        if ours or (ours is None and old):
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(descriptor)


class ObjectStorage(RemoteFolder):
    """An fsspec filesystem without rename. A version exists once its manifest is written, last.

    Concurrent publishers of one name get different numbers by creating their first file
    exclusively.
    """

    def mapped(self, path: str) -> memoryview:
        return memoryview(self.read(path))

    def is_published(self, folder: str) -> bool:
        return MANIFEST in self.entries(folder)

    def try_writing(self, name: str) -> None:
        probe = f"{name}/{_UNFINISHED}{secrets.token_hex(8)}"
        self.create(probe, b"")
        with suppress(OSError):  # publishing does not need permission to delete
            self.files.rm_file(self._path(probe))

    def publish(
        self, name: str, files: Mapping[str, bytes], manifest_of: ManifestOf
    ) -> tuple[int, bytes]:
        """Claim a number by creating the first of the files, a small one."""
        self._sweep(name)
        claim, *rest = files
        version = self._claim(name, claim, files[claim])
        folder = f"{name}/{version}"
        manifest = manifest_of(version)
        try:
            for file in rest:
                self._create_in_own(f"{folder}/{file}", files[file])
            self._create_in_own(f"{folder}/{MANIFEST}", manifest)
        except BaseException:
            with suppress(OSError):
                self._delete(folder)
            raise
        return version, manifest

    def cache(self) -> Cache | None:
        """Return where files of this storage are kept for the next time."""
        return None if "memory" in self.files.protocol else Cache.of_user()

    def withdraw(self, name: str, version: int) -> None:
        self.files.pipe_file(self._path(f"{name}/.removed-{version}"), b"")
        self._delete(f"{name}/{version}")

    def _claim(self, name: str, file: str, data: bytes) -> int:
        version = next_version(self, name)
        while True:
            try:
                self.create(f"{name}/{version}/{file}", data)
            except FileExistsError:
                version += 1
            else:
                return version

    def _create_in_own(self, path: str, data: bytes) -> None:
        """Create a file where nobody else does.

        One that is there is the work of a request whose answer was lost, and which was repeated.
        """
        try:
            self.create(path, data)
        except FileExistsError:
            if self.read(path) != data:
                raise

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


Storage = LocalStorage | ObjectStorage


def open_storage(store: str | Path) -> Storage:
    """Open a path or a URL as a store."""
    try:
        opened: Storage = open_place(store, LocalStorage, ObjectStorage)
    except InputError as error:
        raise StoreError(
            f"expected a folder or an fsspec URL as the store, got {store}: {error}"
        ) from error
    return opened
