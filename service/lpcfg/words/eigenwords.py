"""Words and their vectors."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lpcfg.base.errors import GrammarError, InputError
from lpcfg.words.context import Contexts

UNKNOWN = -1
"""The row of a word without a vector."""
_DIGIT = re.compile(r"\d")


def fold(word: str) -> str:
    """Return the form under which a word is counted: in lower case, every digit 0.

    It joins counts that few words have: a probe of tags (benchmarks.eigenwords) gained
    .4 points on gum, 1.5 on craft and .9 on mctb over words as they are written, and .1, .7 and 0
    over words in lower case alone.
    """
    return _DIGIT.sub("0", word.lower())


@dataclass(frozen=True, eq=False)
class Eigenwords:
    """Vectors of words, as rows of length one; the frequent words first.

    Words are looked up by what `fold` makes of them, and so they are stored.
    """

    words: tuple[str, ...]
    """Folded, distinct"""
    vectors: NDArray[np.float32]
    """(n, d); every row has length 1, or 0 where nothing is known of its word"""
    contexts: Contexts | None = None

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
        """Return the row of a word, -1 if it has none."""
        return self._rows.get(fold(word), UNKNOWN)

    def rows(self, words: Iterable[str]) -> NDArray[np.int32]:
        """Return the rows of words."""
        return np.fromiter(map(self.row, words), np.int32)

    def vector(self, word: str) -> NDArray[np.float32]:
        """Return the vector of a word, zero if it has none, (d,)."""
        result: NDArray[np.float32] = self.matrix([word])[0]
        return result

    def matrix(self, words: Iterable[str]) -> NDArray[np.float32]:
        """Return the vectors of words, zero where they have none, (len(words), d)."""
        rows = self.rows(words)
        result: NDArray[np.float32] = self.vectors[rows]
        result[rows == UNKNOWN] = 0
        return result

    def cut(self, words: Collection[str]) -> "Eigenwords":
        """Keep the vectors that looking up these words needs, in their order, and no contexts."""
        rows = np.unique(self.rows(words))
        rows = rows[rows >= 0]
        return Eigenwords(tuple(self.words[row] for row in rows), self.vectors[rows])

    def near(self, word: str, count: int) -> list[tuple[str, float]]:
        """Find the words whose vectors have the largest cosines with the word's, and the
        cosines.
        """
        row = self.row(word)
        if row == UNKNOWN:
            raise InputError(
                f"expected a word with a vector, got {word!r}: it is not among the "
                f"{len(self.words)} words learned: name one of them, or learn more (--words)"
            )
        cosines = self.vectors @ self.vectors[row]
        order = np.argsort(-cosines, kind="stable")
        nearest = [k for k in order[: count + 1].tolist() if k != row][:count]
        return [(self.words[k], float(cosines[k])) for k in nearest]

    def token_vectors(self, tokens: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of a sentence's tokens in context, (T, 3 d): [word; left; right]."""
        if self.contexts is None:
            raise InputError(
                "expected eigenwords with context projections, got vectors of words alone: "
                "learn them again and keep the .safetensors file"
            )
        n = len(self.words)
        known_rows = np.array([n if row == UNKNOWN else row for row in self.rows(tokens)], np.int32)
        return np.concatenate([self.matrix(tokens), *self.contexts.of(known_rows)], axis=1)
