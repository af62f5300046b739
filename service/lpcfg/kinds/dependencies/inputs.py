"""Inputs of the network for words: rows of tables, by the word and by its letters."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lpcfg.grammar.tables import Longs, Singles
from lpcfg.grammar.tagging import shape
from lpcfg.words.eigenwords import Eigenwords, fold

LEAST = {"word": 3, "end2": 10, "end3": 5, "end4": 5, "start3": 10, "shape": 10}
"""How often a fact must be seen in training to have a row of its own; row 0 is for all others."""
FACTS = tuple(LEAST)
LENGTH = 3.0
"""Eigenwords of length one are made this long: as large as all other inputs together."""


def facts_of(word: str) -> tuple[str, ...]:
    """Return the word itself, its last and first letters in lower case, and its shape."""
    lower = word.lower()
    return word, lower[-2:], lower[-3:], lower[-4:], lower[:3], shape(word)


@dataclass(frozen=True, eq=False)
class Inputs:
    """The rows of tables for words. `names[fact]` lists the values that have rows, from row 1 on;
    `vectors` are eigenwords in bytes.

    A vector's numbers are steps of `step`; row 0 is for words without one.
    """

    names: Mapping[str, tuple[str, ...]]
    folded: tuple[str, ...]
    vectors: NDArray[np.int8]
    step: float

    @classmethod
    def of(cls, words: Iterable[str], eigenwords: Eigenwords, most: int) -> "Inputs":
        """Give rows to the facts of training words, and keep the `most` frequent eigenwords."""
        count: dict[str, Counter[str]] = {fact: Counter() for fact in FACTS}
        for word, times in Counter(words).items():
            for fact, value in zip(FACTS, facts_of(word), strict=True):
                count[fact][value] += times
        names = {
            fact: tuple(sorted(v for v, n in count[fact].items() if n >= LEAST[fact]))
            for fact in FACTS
        }
        folded, vectors = eigenwords.words[:most], eigenwords.vectors[:most]
        table = np.zeros((len(folded) + 1, vectors.shape[1]), np.int8)
        step = float(np.abs(vectors).max(initial=1e-9)) / 127
        table[1:] = np.rint(vectors / step)
        return cls(names, folded, table, step * LENGTH)

    @cached_property
    def dense(self) -> Singles:
        """The vectors as numbers."""
        return self.vectors.astype(np.float32) * np.float32(self.step)

    @cached_property
    def _rows(self) -> list[dict[str, int]]:
        return [{name: k + 1 for k, name in enumerate(self.names[fact])} for fact in FACTS]

    @cached_property
    def _vector_rows(self) -> dict[str, int]:
        return {name: k + 1 for k, name in enumerate(self.folded)}

    def sizes(self) -> dict[str, int]:
        """Count how many rows the table of every fact has."""
        return {fact: len(self.names[fact]) + 1 for fact in FACTS}

    def rows(self, words: Sequence[str]) -> Longs:
        """Return the rows of every word's facts, the last column its vector's."""
        result = np.zeros((len(words), len(FACTS) + 1), np.int64)
        for m, word in enumerate(words):
            for k, value in enumerate(facts_of(word)):
                result[m, k] = self._rows[k].get(value, 0)
            result[m, -1] = self._vector_rows.get(fold(word), 0)
        return result
