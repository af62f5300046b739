"""Keep files of remote stores on this machine, by their hashes. They may be deleted at any time."""

import hashlib
import mmap
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from lpcfg.base.files import atomic_write


def sha256(data: bytes | memoryview) -> str:
    """Return the SHA-256 of bytes in lower-case hex."""
    return hashlib.sha256(data).hexdigest()


def mapped(path: Path) -> memoryview:
    """Map a file into memory. Processes share its pages, and those that nobody uses take no memory.

    A file that is removed or replaced while it is mapped stays as it was.
    """
    with path.open("rb") as file:
        if not os.fstat(file.fileno()).st_size:  # which cannot be mapped
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def let_go(arrays: Iterable[NDArray[Any]]) -> None:
    """Take the pages of arrays in mapped files out of this process's memory until they are used."""
    for array in arrays:
        if isinstance(file := array.base, mmap.mmap):
            file.madvise(mmap.MADV_DONTNEED)


@dataclass(frozen=True)
class Cache:
    """A folder of files that are named by their SHA-256, which is compared at every use.

    A folder that cannot be read or written is a cache that keeps nothing.
    """

    folder: Path

    @classmethod
    def of_user(cls) -> "Cache | None":
        """Return the cache in the user's home folder; None for a user without one."""
        try:
            return cls(Path.home() / ".cache" / "lpcfg")
        except RuntimeError:
            return None

    def get(self, hash: str) -> memoryview | None:
        """Return the file with this hash, mapped; None if it is not there, or damaged."""
        try:
            data = mapped(self.folder / hash)
        except OSError:
            return None
        return data if sha256(data) == hash else None

    def keep(self, hash: str, data: memoryview) -> None:
        """Keep a file whose hash was verified."""
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            atomic_write(self.folder / hash, data)
