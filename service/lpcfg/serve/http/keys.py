"""API keys: their owners and their quotas.

A line of the file is `NAME SHA256 [TOKENS_PER_MINUTE]`, with the key's SHA-256 in hex. Keys should
be long and random (`openssl rand -hex 32`); a plain hash is then enough.
"""

import hashlib
import hmac
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import structlog
from fastapi.security import HTTPBearer

from lpcfg.base.errors import SettingsError
from lpcfg.serve.http.problems import Refused

_log = structlog.get_logger("lpcfg.web")
_LOOK = 1.0  # seconds between looks at the file
BEARER = HTTPBearer(auto_error=False, description="needed where the service asks for keys")
"""Declares the header in the OpenAPI description. Keys.owner reads the header itself."""
_LINE = re.compile(r"(\S+)\s+([0-9a-f]{64})(?:\s+([1-9]\d{0,8}))?")


@dataclass
class Key:
    """The owner of a key, and what is left of its quota."""

    name: str
    digest: bytes
    per_minute: int | None
    clock: Callable[[], float] = time.monotonic
    left: float = field(init=False)
    since: float = field(init=False)

    def __post_init__(self) -> None:
        self.left = float(self.per_minute or 0)
        self.since = self.clock()

    def spend(self, tokens: int) -> None:
        """Take so many tokens from the quota, which fills up again as time passes."""
        if self.per_minute is None:
            return
        self._fill(self.per_minute)
        # A request larger than a minute's quota is let through when the quota is full. It leaves
        # a debt that the following minutes pay back.
        least = min(tokens, self.per_minute)
        if self.left < least:
            raise Refused(
                "quota",
                f"expected at most {self.per_minute} tokens a minute with the key of {self.name}, "
                f"got about {tokens} with {math.floor(self.left)} left: wait, or ask for a larger "
                "quota",
                retry_after=60 * (least - self.left) / self.per_minute,
            )
        self.left -= tokens

    def correct(self, more: int) -> None:
        """Take more tokens, or give some back, once it is known how many were found."""
        if self.per_minute is not None:
            self._fill(self.per_minute)
            self.left = min(self.left - more, float(self.per_minute))

    def _fill(self, per_minute: int) -> None:
        now = self.clock()
        self.left = min(self.left + (now - self.since) * per_minute / 60, float(per_minute))
        self.since = now


class Keys:
    """The keys of a file, which is read again when it has changed."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._looked = clock()
        self._version = _version(path)
        self._keys = _read(path)

    def _look(self) -> None:
        """Read the file if it has changed. If it is faulty, keep the keys and log the reason."""
        now = self._clock()
        if now - self._looked < _LOOK:
            return
        self._looked = now
        version = _version(self._path)
        if version == self._version:
            return
        self._version = version
        try:
            keys = _read(self._path)
        except SettingsError as error:
            _log.error("keys not read", reason=str(error))
            return
        for key in keys:  # who is still there keeps what is left of the quota
            for old in self._keys:
                if (old.digest, old.per_minute) == (key.digest, key.per_minute):
                    key.left, key.since = old.left, old.since
        self._keys = keys
        _log.info("keys read", keys=len(keys))

    def __iter__(self) -> Iterator[Key]:
        return iter(self._keys)

    def owner(self, headers: Mapping[str, str]) -> Key:
        """Return the owner of the key in a request.

        Raise Refused for a missing or an unknown key.
        """
        self._look()
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not given.strip():
            given = headers.get("x-api-key", "")
        digest = hashlib.sha256(given.strip().encode()).digest()
        found = None
        for key in self._keys:  # compare with all keys, so that the time reveals nothing
            if hmac.compare_digest(key.digest, digest):
                found = key
        if found is None:
            raise Refused(
                "key",
                "expected a known key as `Authorization: Bearer KEY`, got "
                f"{'another' if given else 'none'}: ask the administrator of this service for one",
            )
        return found


def _version(path: Path) -> tuple[int, ...]:
    """Return what changes with a file's content, or nothing if the file is not there."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_size, found.st_ino


def _read(path: Path) -> list[Key]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"expected a readable file of keys, got {path}: {error}: correct the setting"
        ) from error
    contents = [line.partition("#")[0].strip() for line in lines]
    return [
        _key(content, f"{path}:{number}") for number, content in enumerate(contents, 1) if content
    ]


def _key(content: str, where: str) -> Key:
    match = _LINE.fullmatch(content)
    if match is None:
        raise SettingsError(
            f"expected `NAME SHA256 [TOKENS_PER_MINUTE]` in {where}, got something else: "
            "write the key's SHA-256 as 64 lower-case hex digits"
        )
    name, digest, quota = match.groups()
    return Key(name, bytes.fromhex(digest), None if quota is None else int(quota))
