"""A cache of answers with a limit in bytes. The least recently used answers are dropped first."""

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

_ENTRY = 1024
"""Bytes that an entry takes besides its answer: its key with a sentence's tokens.

Measured with sentences of 20 words.
"""
V = TypeVar("V")


class Cache(Generic[V]):
    """A mapping from keys to values with sizes, which threads may share."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._kept: OrderedDict[Hashable, tuple[V, int]] = OrderedDict()
        self._lock = threading.Lock()
        self.bytes = 0
        self.hits = 0
        self.misses = 0

    def get(self, key: Hashable) -> V | None:
        """Return the value stored under this key, or None."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                self.misses += 1
                return None
            self.hits += 1
            self._kept.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: V, size: int) -> None:
        """Store a value of so many bytes, and drop others if there is no room."""
        size += _ENTRY
        if size > self._most:
            return
        with self._lock:
            if key in self._kept:
                return
            self._kept[key] = value, size
            self.bytes += size
            while self.bytes > self._most:
                _, (_, dropped) = self._kept.popitem(last=False)
                self.bytes -= dropped
