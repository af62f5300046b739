"""Words and their vectors."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lpcfg.errors import GrammarError

UNKNOWN = -1
"""The row of a word without a vector."""


@dataclass(frozen=True, eq=False)
class Eigenwords:
    """Vectors of words, as rows of length one; the frequent words first.

    A word is looked up as it is written, and where that has no vector, in lower case.
    """

    words: tuple[str, ...]
    vectors: NDArray[np.float32]
    """(n, d); every row has length 1, or 0 where nothing is known of its word"""

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or len(self.vectors) != len(self.words):
            raise GrammarError(
                f"expected a vector for each of {len(self.words)} words, got a table of shape "
                f"{self.vectors.shape}"
            )
        if len(self._rows) != len(self.words):
            raise GrammarError("expected distinct words, got a word twice")

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {word: row for row, word in enumerate(self.words)}

    @property
    def dimensions(self) -> int:
        return int(self.vectors.shape[1])

    def row(self, word: str) -> int:
        """The row of a word, -1 if it has none."""
        row = self._rows.get(word)
        return self._rows.get(word.lower(), UNKNOWN) if row is None else row

    def rows(self, words: Iterable[str]) -> NDArray[np.int32]:
        """The rows of words."""
        return np.fromiter(map(self.row, words), np.int32)

    def vector(self, word: str) -> NDArray[np.float32]:
        """The vector of a word, zero if it has none, (d,)."""
        found: NDArray[np.float32] = self.matrix([word])[0]
        return found

    def matrix(self, words: Iterable[str]) -> NDArray[np.float32]:
        """The vectors of words, zero where they have none, (len(words), d)."""
        rows = self.rows(words)
        found: NDArray[np.float32] = self.vectors[rows]
        found[rows == UNKNOWN] = 0
        return found

    def cut(self, words: Collection[str]) -> "Eigenwords":
        """Only the vectors that looking up these words needs, in the order they have here."""
        rows = np.unique(self.rows(words))
        rows = rows[rows >= 0]
        return Eigenwords(tuple(self.words[row] for row in rows), self.vectors[rows])
