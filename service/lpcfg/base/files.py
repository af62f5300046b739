"""Write files whole or not at all, and lock them: on a disk, or by fsspec in an object store.

On a disk, a file is written beside its place, brought to the disk and renamed. An object store
shows an object only after its last byte came.
"""

import errno
import fcntl
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, TypeVar

from lpcfg.base.cancel import FINISHING
from lpcfg.base.urls import filesystem, is_url

UNFINISHED = ".tmp"
"""The ending of files that are being written, or that a killed process has left."""
EntryType = Literal["file", "folder", "symbolic link", "special file"]
L = TypeVar("L")
R = TypeVar("R")


@contextmanager
def atomic_writer(
    path: Path, *, scratch: Path | None = None, durable: bool = True
) -> Iterator[IO[bytes]]:
    """Write a file in a `with` block. It takes its place at the end, whole, unless that raises.

    Args:
        path: its place; what stands there is replaced
        scratch: the folder where it is written; by default the one that it lies in
        durable: wait until it is on the disk; without this, a power failure may leave it shorter
    """
    temporary = (scratch or path.parent) / f".{secrets.token_hex(8)}{UNFINISHED}"
    try:
        with temporary.open("wb") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def atomic_write(path: Path, data: bytes | memoryview) -> None:
    """Write a file whole or not at all, even if the process is interrupted.

    Raises OSError, after which nothing is left behind.
    """
    with FINISHING, atomic_writer(path) as file:
        file.write(data)


def sync_folder(folder: Path) -> None:
    """Bring what a folder lists to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def try_lock(descriptor: int, *, shared: bool = False) -> bool | None:
    """Lock an open file or folder until it is closed, without waiting.

    Return True if it is ours, False if another's, None without lock support.
    """
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


@dataclass(frozen=True)
class LocalFolder:
    """A folder on a disk. Names are relative to it, with `/` between their parts.

    Files are written below `scratch`, and wait for no disk.
    """

    root: Path
    scratch: str = ""

    def where(self, name: str) -> str:
        """Return the place of a file as users know it."""
        return str(self.root / name)

    def entries(self, name: str) -> dict[str, EntryType]:
        """List what a folder holds. A missing folder holds nothing."""
        try:
            with os.scandir(self.root / name) as found:
                return {entry.name: _type_of(entry) for entry in found}
        except FileNotFoundError:
            return {}

    def sizes(self, name: str) -> dict[str, int]:
        """List all files below a folder, with their bytes."""
        return {
            os.path.relpath(path, self.root): os.stat(path).st_size
            for folder, _, names in os.walk(self.root / name)
            for path in (os.path.join(folder, file) for file in names)
        }

    def size(self, name: str) -> int | None:
        """Return the bytes of a file; None where there is none."""
        try:
            return (self.root / name).stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return None

    def read(self, name: str) -> bytes:
        return (self.root / name).read_bytes()

    def read_all(self, name: str, ending: str) -> dict[str, bytes]:
        """Read the files right below a folder that end so; return contents by their own names."""
        names = sorted(one for one in self.entries(name) if one.endswith(ending))
        return {one: self.read(f"{name}/{one}") for one in names}

    def open(self, name: str) -> IO[bytes]:
        return (self.root / name).open("rb")

    @contextmanager
    def writer(self, name: str) -> Iterator[IO[bytes]]:
        """Write a file in a `with` block. It takes its place at the end, unless that raises."""
        scratch, path = self.root / self.scratch, self.root / name
        scratch.mkdir(parents=True, exist_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_writer(path, scratch=scratch, durable=False) as file:
            yield file

    def write(self, name: str, data: bytes) -> None:
        """Write a file whole, or leave what was there."""
        with self.writer(name) as file:
            file.write(data)

    def create(self, name: str, data: bytes) -> None:
        """Write a read-only file, and wait until it is on the disk. Raise FileExistsError if there
        is one already.
        """
        descriptor = os.open(self.root / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o444)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)

    def remove(self, name: str) -> None:
        """Remove a file, or all below a folder; nothing happens where there is none."""
        path = self.root / name
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _type_of(entry: os.DirEntry[str]) -> EntryType:
    if entry.is_symlink():
        return "symbolic link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "special file"


@dataclass(frozen=True)
class RemoteFolder:
    """A prefix of an object store, or of another fsspec filesystem: all that `LocalFolder` has."""

    files: Any
    root: str

    def _path(self, name: str) -> str:
        return f"{self.root}/{name}".rstrip("/")

    def where(self, name: str) -> str:
        return str(self.files.unstrip_protocol(self._path(name)))

    def entries(self, name: str) -> dict[str, EntryType]:
        path = self._path(name)
        self.files.invalidate_cache(path)
        try:
            found = self.files.ls(path, detail=True)
        except FileNotFoundError:
            return {}
        return {
            one["name"].rstrip("/").rpartition("/")[2]: (
                "folder" if one["type"] == "directory" else "file"
            )
            for one in found
            if one["name"].rstrip("/") != path  # the marker object of a folder
        }

    def sizes(self, name: str) -> dict[str, int]:
        self.files.invalidate_cache()
        found = self.files.find(self._path(name), detail=True)
        base = self.files._strip_protocol(self.root) + "/"
        return {path.removeprefix(base): int(one["size"]) for path, one in found.items()}

    def size(self, name: str) -> int | None:
        path = self._path(name)
        self.files.invalidate_cache(path)
        try:
            return int(self.files.size(path))
        except FileNotFoundError:
            return None

    def read(self, name: str) -> bytes:
        return bytes(self.files.cat_file(self._path(name)))

    def read_all(self, name: str, ending: str) -> dict[str, bytes]:
        names = sorted(one for one in self.entries(name) if one.endswith(ending))
        contents = self.files.cat([self._path(f"{name}/{one}") for one in names]) if names else {}
        return {path.rpartition("/")[2]: bytes(data) for path, data in contents.items()}

    def open(self, name: str) -> IO[bytes]:
        opened: IO[bytes] = self.files.open(self._path(name), "rb")
        return opened

    @contextmanager
    def writer(self, name: str) -> Iterator[IO[bytes]]:
        file = self.files.open(self._path(name), "wb", autocommit=False)
        try:
            yield file
        except BaseException:
            file.discard()
            file.forced = True  # so that closing sends nothing
            file.close()
            raise
        file.close()
        file.commit()

    def write(self, name: str, data: bytes) -> None:
        self.files.pipe_file(self._path(name), data)

    def create(self, name: str, data: bytes) -> None:
        path = self._path(name)
        if self.files.exists(path):  # for filesystems without exclusive creation
            raise FileExistsError(errno.EEXIST, "there is a file already", path)
        self.files.pipe_file(path, data, mode="create")

    def remove(self, name: str) -> None:
        path = self._path(name)
        self.files.invalidate_cache(path)
        with suppress(FileNotFoundError):
            self.files.rm(path, recursive=True)


Folder = LocalFolder | RemoteFolder


def open_place(
    place: str | Path, local: Callable[[Path], L], remote: Callable[[Any, str], R]
) -> L | R:
    """Open a path or a URL by the function for a folder on a disk, or for another filesystem.

    A file:// URL is a folder on a disk: renaming promises more than object stores do.
    """
    if not is_url(str(place)):
        return local(Path(place))
    files, root = filesystem(str(place))
    from fsspec.implementations.local import LocalFileSystem

    if isinstance(files, LocalFileSystem):
        return local(Path(root))
    return remote(files, root.rstrip("/"))
