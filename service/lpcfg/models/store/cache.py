"""Keep files of remote stores on this machine, by their hashes. They may be deleted at any time."""

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lpcfg.text.files import write_whole


def sha256(data: bytes) -> str:
    """Return the SHA-256 of bytes in lower-case hex."""
    return hashlib.sha256(data).hexdigest()


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

    def get(self, hash: str) -> bytes | None:
        """Return the file with this hash; None if it is not there, or damaged."""
        try:
            data = (self.folder / hash).read_bytes()
        except OSError:
            return None
        return data if sha256(data) == hash else None

    def keep(self, hash: str, data: bytes) -> None:
        """Keep a file whose hash was verified."""
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            write_whole(self.folder / hash, data)
