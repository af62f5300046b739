"""Sentences, vocabularies and bigram counts."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy import sparse

from lpcfg.base.errors import InputError, TrainingError
from lpcfg.grammar.tables import Longs
from lpcfg.text.files import lines

Sentence = Sequence[str]

UNKNOWN = "<unk>"
"""Word 0 of every vocabulary. In a text it is an unknown word too."""


def read_sentences(path: Path) -> list[list[str]]:
    """Read the sentences of a UTF-8 file: one per line, tokens between spaces, no empty lines.

    The file may be compressed by gzip.
    """
    sentences = [tokens for line in lines(path) if (tokens := line.split())]
    if not sentences:
        raise InputError(
            f"expected tokenised sentences, one a line, in {path}, got no word: check the file"
        )
    return sentences


@dataclass(frozen=True)
class Vocabulary:
    """Words by number. Number 0 is `UNKNOWN`, and number len(words) the start of a sentence."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, sentences: Iterable[Sentence], min_count: int = 2) -> "Vocabulary":
        """Collect the words seen at least `min_count` times, by frequency, then by spelling."""
        counts = Counter(word for sentence in sentences for word in sentence)
        counts.pop(UNKNOWN, None)
        known = sorted((-n, word) for word, n in counts.items() if n >= min_count)
        if not known:
            raise TrainingError(
                f"expected a word that occurs at least {min_count} times, none of "
                f"{len(counts)} does: train on more text or lower the minimum count"
            )
        return cls((UNKNOWN, *(word for _, word in known)))

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words)}

    @property
    def start(self) -> int:
        """The number of the start of a sentence, which comes before the first word."""
        return len(self.words)

    def number(self, word: str) -> int:
        """Return the word's number, or 0 if it is unknown."""
        return self._numbers.get(word, 0)

    def encode(self, sentences: Iterable[Sentence]) -> list[Longs]:
        """Encode every sentence as the numbers of its words."""
        numbers = self._numbers
        return [
            np.array([numbers.get(word, 0) for word in sentence], dtype=np.int64)
            for sentence in sentences
        ]

    def bigrams(self, sentences: Iterable[Sentence]) -> sparse.csr_matrix:
        """Count bigrams: count(w1, w2), (|V| + 1, |V|) float64.

        Sentences are independent of each other.
        """
        encoded = self.encode(sentences)
        start = np.array([self.start], dtype=np.int64)
        contexts = [np.concatenate((start, words[:-1])) for words in encoded if len(words)]
        w1 = np.concatenate((np.empty(0, np.int64), *contexts))
        w2 = np.concatenate((np.empty(0, np.int64), *encoded))
        table = sparse.coo_matrix(
            (np.ones(len(w2)), (w1, w2)), shape=(len(self.words) + 1, len(self.words))
        ).tocsr()
        table.sum_duplicates()
        return table

    def scored_bigrams(self, sentences: Iterable[Sentence]) -> sparse.csr_matrix:
        """Count the bigrams that a perplexity is computed over: those whose w2 is a known word.

        Unknown words are ignored as events (ACL14, section 8), and are `UNKNOWN` as contexts.
        """
        table = self.bigrams(sentences)
        known = np.ones(len(self.words))
        known[0] = 0.0
        scored = sparse.csr_matrix(table @ sparse.diags(known))
        scored.eliminate_zeros()
        if not scored.nnz:
            raise InputError(
                f"expected a known word to score, got {int(table.sum())} words, all unknown "
                "to the model: choose text like what it was trained on"
            )
        return scored
