"""The folder that a run writes to: a local one, or an fsspec URL. Files appear whole or not at all.

A local file is written beside its place, under WORK, and renamed. An object store shows an object
only after its last byte came.
"""

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

from lpcfg.base.cancel import FINISHING
from lpcfg.base.errors import InputError
from lpcfg.base.urls import filesystem, is_url

WORK = ".work"
"""Holds what is not finished: files being written, and parts of long documents."""


class Folder(Protocol):
    """A tree of files. Names are relative to the folder, with `/` between their parts."""

    def where(self, name: str) -> str:
        """Return the place of a file as users know it."""

    def read(self, name: str) -> bytes: ...

    def open(self, name: str) -> IO[bytes]: ...

    def size(self, name: str) -> int | None:
        """Return the bytes of a file; None where there is none."""

    def sizes(self, under: str) -> dict[str, int]:
        """List all files below a name, with their bytes."""

    def read_all(self, under: str, ending: str) -> dict[str, bytes]:
        """Read the files right below a name that end so; return contents by their own names."""

    def writing(self, name: str) -> "Any":
        """Write a file in a `with` block. It takes its place at the end, unless that raises."""

    def write(self, name: str, data: bytes) -> None: ...

    def remove(self, name: str) -> None:
        """Remove a file, or all below a folder; nothing happens where there is none."""

    def lock(self) -> IO[bytes] | None:
        """Keep other runs out for as long as the result is open. None where this cannot be done."""


def open_folder(place: str) -> Folder:
    """Open a path or a URL as a folder to write to. A local one is made."""
    if not is_url(place):
        return LocalFolder(Path(place))
    files, root = filesystem(place)
    from fsspec.implementations.local import LocalFileSystem

    if isinstance(files, LocalFileSystem):
        return LocalFolder(Path(root))
    return RemoteFolder(files, root.rstrip("/"))


@dataclass(frozen=True)
class LocalFolder:
    """A folder on a disk."""

    root: Path

    def where(self, name: str) -> str:
        return str(self.root / name)

    def read(self, name: str) -> bytes:
        return (self.root / name).read_bytes()

    def open(self, name: str) -> IO[bytes]:
        return (self.root / name).open("rb")

    def size(self, name: str) -> int | None:
        try:
            return (self.root / name).stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return None

    def sizes(self, under: str) -> dict[str, int]:
        return {
            os.path.relpath(path, self.root): os.stat(path).st_size
            for folder, _, names in os.walk(self.root / under)
            for path in (os.path.join(folder, name) for name in names)
        }

    def read_all(self, under: str, ending: str) -> dict[str, bytes]:
        try:
            with os.scandir(self.root / under) as entries:
                paths = [entry.path for entry in entries if entry.name.endswith(ending)]
        except FileNotFoundError:
            return {}
        return {os.path.basename(path): Path(path).read_bytes() for path in sorted(paths)}

    @contextmanager
    def writing(self, name: str) -> Iterator[IO[bytes]]:
        temporary = self.root / WORK / f"{secrets.token_hex(8)}.tmp"
        temporary.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("wb") as file:
                yield file
            target = self.root / name
            with FINISHING:
                target.parent.mkdir(parents=True, exist_ok=True)
                temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    def write(self, name: str, data: bytes) -> None:
        with self.writing(name) as file:
            file.write(data)

    def remove(self, name: str) -> None:
        path = self.root / name
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)

    def lock(self) -> IO[bytes] | None:
        self.root.mkdir(parents=True, exist_ok=True)
        file = (self.root / ".lock").open("wb")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.close()
            raise InputError(
                f"expected a folder to write to, got {self.root}, where another run is writing: "
                "wait for its end or choose another folder"
            ) from error
        except OSError:  # a filesystem without locks
            file.close()
            return None
        return file


@dataclass(frozen=True)
class RemoteFolder:
    """A prefix of an object store."""

    files: Any
    root: str

    def _path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def where(self, name: str) -> str:
        return str(self.files.unstrip_protocol(self._path(name)))

    def read(self, name: str) -> bytes:
        return bytes(self.files.cat_file(self._path(name)))

    def open(self, name: str) -> IO[bytes]:
        opened: IO[bytes] = self.files.open(self._path(name), "rb")
        return opened

    def size(self, name: str) -> int | None:
        path = self._path(name)
        self.files.invalidate_cache(path)
        try:
            return int(self.files.size(path))
        except FileNotFoundError:
            return None

    def sizes(self, under: str) -> dict[str, int]:
        self.files.invalidate_cache()
        found = self.files.find(self._path(under), detail=True)
        base = self.files._strip_protocol(self.root) + "/"
        return {name.removeprefix(base): int(one["size"]) for name, one in found.items()}

    def read_all(self, under: str, ending: str) -> dict[str, bytes]:
        path = self._path(under)
        self.files.invalidate_cache(path)
        try:
            found = [one["name"] for one in self.files.ls(path, detail=True)]
        except FileNotFoundError:
            return {}
        found = [name for name in found if name.endswith(ending)]
        contents = self.files.cat(sorted(found)) if found else {}
        return {name.rpartition("/")[2]: bytes(data) for name, data in contents.items()}

    @contextmanager
    def writing(self, name: str) -> Iterator[IO[bytes]]:
        file = self.files.open(self._path(name), "wb", autocommit=False)
        try:
            yield file
        except BaseException:
            file.discard()
            raise
        file.close()
        file.commit()

    def write(self, name: str, data: bytes) -> None:
        self.files.pipe_file(self._path(name), data)

    def remove(self, name: str) -> None:
        path = self._path(name)
        self.files.invalidate_cache(path)
        try:
            self.files.rm(path, recursive=True)
        except FileNotFoundError:
            return

    def lock(self) -> IO[bytes] | None:
        return None
