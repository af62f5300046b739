"""A cache of answers with a limit in bytes. The least recently used answers are dropped first."""

import threading
from collections import OrderedDict
from collections.abc import Hashable

_ENTRY = 1024
"""Bytes that an entry takes besides its answer: its key with a sentence's tokens.

Measured with sentences of 20 words.
"""


class Cache:
    """A mapping from keys to bytes that threads may share."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._kept: OrderedDict[Hashable, bytes] = OrderedDict()
        self._lock = threading.Lock()
        self.bytes = 0
        self.hits = 0
        self.misses = 0

    def get(self, key: Hashable) -> bytes | None:
        """Return the answer stored under this key, or None."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                self.misses += 1
            else:
                self.hits += 1
                self._kept.move_to_end(key)
            return found

    def put(self, key: Hashable, answer: bytes) -> None:
        """Store an answer, and drop others if there is no room."""
        if len(answer) + _ENTRY > self._most:
            return
        with self._lock:
            if key in self._kept:
                return
            self._kept[key] = answer
            self.bytes += len(answer) + _ENTRY
            while self.bytes > self._most:
                _, dropped = self._kept.popitem(last=False)
                self.bytes -= len(dropped) + _ENTRY
