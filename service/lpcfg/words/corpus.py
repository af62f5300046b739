"""Turn text into numbers of words in one pass, spilled to disk: memory does not grow with the text.

Raw text is cut into chunks at white space, and every distinct chunk is tokenised once, between two
dummy words, by the parser's own tokeniser. What this does not see is the context of a chunk:
`Fig. 3` is `Fig`, `.`, `3` (the parser: `Fig.`, `3`), and `etc.` at a sentence's end keeps its full
stop. A sentence ends after a chunk with a stop of its own if the next chunk begins with a capital
or a quotation mark, and at every line break. Words are counted folded: see `eigenwords.fold`.
"""

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from lpcfg.base.errors import InputError
from lpcfg.text.files import Source, lines
from lpcfg.text.tokenize import penn_forms, tokenize
from lpcfg.trees.brackets import read
from lpcfg.trees.normalize import normalize
from lpcfg.words.eigenwords import fold

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

BREAK = 0
"""The number that ends a sentence; words have numbers from 1."""
BLOCK = 1 << 20
"""Chunks, or tokens, worked on at a time."""
MAX_CHUNKS = 1_000_000
"""Distinct chunks remembered at a time: about 300 MB."""
MAX_WORDS = 2_000_000
"""Distinct words counted at a time: about 300 MB. Beyond, the rarest are forgotten."""

_CLOSING = frozenset({"''", "'", "-RRB-", "-RSB-", "]", ")"})
_STOPS = frozenset({".", "!", "?", "..."})
_BEGINNING = re.compile(r"[(\[]*+[\"“”„«`‘'(\[A-Z]")


def treebank_sentences(sources: Iterable[Source]) -> Iterator[tuple[str, ...]]:
    """Yield the words of every tree of treebanks, in the forms that parsers look up."""
    for source in sources:
        for tree in map(normalize, read(source)):
            if tree is not None:
                leaves = tree.leaves()
                yield penn_forms(tree.tokens(), [leaf.label for leaf in leaves])


def tokens_of_chunk(chunk: str) -> tuple[str, ...]:
    """Return the forms of the tokens in text without white space, as they are within a sentence."""
    return tuple(token.form for token in tokenize(f"x {chunk} x")[1:-1])


class _Numbering(dict[str, int]):
    """Gives names numbers in the order in which they come, from `start`. No number is used
    twice.
    """

    def __init__(self, start: int) -> None:
        super().__init__()
        self.next = start

    def __missing__(self, name: str) -> int:
        self[name] = number = self.next
        self.next += 1
        return number


class _Folded(dict[str, str]):
    """Remembers the folded forms of words, so many at a time."""

    def __missing__(self, word: str) -> str:
        if len(self) >= MAX_CHUNKS:
            self.clear()
        self[word] = folded = fold(word)
        return folded


class Corpus:
    """The words of all text added, as numbers in a temporary file that ends with the block.

    Words are counted as they come. When more than `max_words` distinct ones are held, those seen
    once are forgotten, at the next time those seen twice, and so on (as word2vec does): a frequent
    word can lose no more than the number of such times at each.
    """

    def __init__(self, max_words: int = MAX_WORDS, max_chunks: int = MAX_CHUNKS) -> None:
        self._max_words = max_words
        self._max_chunks = max_chunks
        self._numbers = _Numbering(BREAK + 1)
        self._counts = np.zeros(1, np.int64)
        self._forgotten = 0
        self._chunks = _Chunks()
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        self.tokens = 0
        self.size = 0  # tokens and breaks

    def __enter__(self) -> "Corpus":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def add_sentences(self, sentences: Iterable[Sequence[str]]) -> None:
        """Add sentences that are tokenised already."""
        block: list[int] = []
        folded = _Folded()
        for sentence in filter(len, sentences):
            block += map(self._numbers.__getitem__, map(folded.__getitem__, sentence))
            block.append(BREAK)
            if len(block) >= BLOCK:
                self._spill(np.array(block, np.int32))
                block = []
        self._spill(np.array(block, np.int32))

    def add_text(self, file: Path, on_bytes: Callable[[int], None] = lambda _bytes: None) -> None:
        """Add a file of raw text: UTF-8, also .gz, paragraphs or documents or sentences a line.

        `on_bytes` is told how many bytes of the file are behind, after every block.
        """
        if not file.is_file():
            raise InputError(f"expected a file of text, got {file}: check the path")
        with file.open("rb") as stream:
            for chunks in _blocks(lines(stream)):
                if len(self._chunks) > self._max_chunks:
                    self._chunks = _Chunks()
                self._spill(self._chunks.numbers(chunks, self._numbers))
                on_bytes(stream.tell())

    def _spill(self, numbers: Ints) -> None:
        """Write and count the numbers of a block; forget rare words where there are too many."""
        self._file.write(numbers.tobytes())
        counts = np.bincount(numbers, minlength=self._numbers.next)
        counts[: len(self._counts)] += self._counts
        self._counts = counts.astype(np.int64)
        self.size += len(numbers)
        self.tokens += int(np.count_nonzero(numbers))
        if len(self._numbers) > self._max_words:
            self._forgotten += 1
            for word, number in list(self._numbers.items()):
                if self._counts[number] <= self._forgotten:
                    del self._numbers[word]
            self._chunks = _Chunks()  # they hold the numbers of forgotten words

    def counts(self) -> dict[str, int]:
        """Count the occurrences of each word."""
        return {word: int(self._counts[number]) for word, number in self._numbers.items()}

    def blocks(self, words: Sequence[str], overlap: int = 1) -> Iterator[Ints]:
        """Yield all text in order: words by their rows in `words`, others len(words), breaks one
        more.

        It begins with a break. Every block but the first begins with the last `overlap` numbers of
        those before it, so that no pair (1) or triple (2) of neighbours is missed.
        """
        n = len(words)
        row_of = np.full(self._numbers.next, n, np.int32)
        row_of[[self._numbers[word] for word in words]] = np.arange(n, dtype=np.int32)
        row_of[BREAK] = n + 1
        last = np.array([n + 1], np.int32)
        self._file.seek(0)
        while data := self._file.read(4 * BLOCK):
            block = np.concatenate([last, row_of[np.frombuffer(data, np.int32)]])
            yield block
            last = block[-overlap:]


def _blocks(text: Iterable[str]) -> Iterator[list[list[str]]]:
    """Yield the lines of a text in chunks, so many at a time as have about `BLOCK` characters."""
    block: list[list[str]] = []
    size = 0
    for line in text:
        chunks = line.split()
        if chunks:
            block.append(chunks)
            size += len(chunks)
        if size >= BLOCK:
            yield block
            block, size = [], 0
    yield block


class _Chunks:
    """Remembers chunks: their tokens, and if a sentence may end behind or begin with each."""

    def __init__(self) -> None:
        self._ids = _Numbering(0)
        self._start = np.zeros(1, np.int64)  # chunk k has tokens start[k] to start[k + 1]
        self._tokens = np.zeros(0, np.int32)
        self._ends = np.zeros(0, np.bool_)
        self._begins = np.zeros(0, np.bool_)

    def __len__(self) -> int:
        return len(self._ids)

    def numbers(self, text: list[list[str]], numbers: _Numbering) -> Ints:
        """Return the numbers of the words in lines of chunks, with `BREAK` behind every
        sentence.
        """
        if not text:
            return np.zeros(0, np.int32)
        known = len(self)
        ids = np.fromiter(map(self._ids.__getitem__, chain.from_iterable(text)), np.int64)
        self._learn(list(islice(self._ids, known, None)), numbers)
        ends = np.zeros(len(ids), np.bool_)
        ends[:-1] = self._ends[ids[:-1]] & self._begins[ids[1:]]
        ends[np.cumsum([len(chunks) for chunks in text]) - 1] = True
        return self._unfolded(ids, ends)

    def _learn(self, chunks: Sequence[str], numbers: _Numbering) -> None:
        """Tokenise new chunks."""
        new_tokens = [tokens_of_chunk(chunk) for chunk in chunks]
        sizes = np.array([len(tokens) for tokens in new_tokens], np.int64)
        self._start = np.concatenate([self._start, self._start[-1] + np.cumsum(sizes)])
        new = [numbers[fold(token)] for tokens in new_tokens for token in tokens]
        self._tokens = np.concatenate([self._tokens, np.array(new, np.int32)])
        ends = np.array([_may_end(tokens) for tokens in new_tokens], np.bool_)
        self._ends = np.concatenate([self._ends, ends])
        begins = np.array([bool(_BEGINNING.match(chunk)) for chunk in chunks], np.bool_)
        self._begins = np.concatenate([self._begins, begins])

    def _unfolded(self, ids: Longs, ends: NDArray[np.bool_]) -> Ints:
        """Return the tokens of chunks, one after the other, with a break behind each chunk that
        ends a sentence.
        """
        sizes = self._start[ids + 1] - self._start[ids]
        stop = np.cumsum(sizes + ends)
        begin = stop - sizes - ends
        out = np.full(int(stop[-1]), BREAK, np.int32)
        within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        tokens = self._tokens[np.repeat(self._start[ids], sizes) + within]
        out[np.repeat(begin, sizes) + within] = tokens
        return out


def _may_end(tokens: Sequence[str]) -> bool:
    """Return True if a sentence may end behind these tokens: a stop, and closing marks after it."""
    behind = len(tokens) - 1
    while behind > 0 and tokens[behind] in _CLOSING:
        behind -= 1
    return behind >= 0 and tokens[behind] in _STOPS
