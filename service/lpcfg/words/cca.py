"""One-step CCA of words and their neighbours (Dhillon, Foster and Ungar 2015; Stratos et al. 2015).

w            a word, one of n; W its indicator, (n,)
c            a context: which word stands left, which right; C its indicator, (2 (n + 2),): every
             side also has one place for all rarer words and one for a sentence's beginning or end
#(w, c)      how often they come together; #(w) and #(c) likewise
κ            1 for counts as they are, ½ for their square roots
Ω            (n, 2 (n + 2)): #(w, c)^κ / √(#(w)^κ #(c)^κ), i.e. D_w^{-½} C_{wc} D_c^{-½}
U            Ω's d left singular vectors, (n, d); its rows, scaled to length one, are eigenwords

Square roots stabilise the variance of counts, which are nearly Poisson (Stratos et al. 2015,
section 4). D_w^{-½} U, which CCA proper asks for, differs from U by the length of rows alone.
"""

import tempfile
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lpcfg.errors import TrainingError
from lpcfg.words.bigrams import Counter, Floats, Rows
from lpcfg.words.corpus import Corpus
from lpcfg.words.eigenwords import Eigenwords
from lpcfg.words.svd import left_singular

Progress = Callable[[str, int, int], None]
"""Told what is being done, and how many of how many parts are."""


@dataclass(frozen=True)
class Options:
    """How eigenwords are learned."""

    words: int = 100_000
    """How many words have vectors, the most frequent"""
    dimensions: int = 100
    square_roots: bool = True
    """Whether counts enter by their square roots (κ = ½) or as they are (κ = 1)"""
    steps: int = 5
    """Products with Ω Ωᵀ in the search for singular vectors"""
    seed: int = 0
    threads: int = 2

    def __post_init__(self) -> None:
        for name in ("words", "dimensions", "steps", "threads"):
            if getattr(self, name) < 1:
                raise TrainingError(f"expected {name} of 1 or more, got {getattr(self, name)}")


def learn(
    sentences: Iterable[Sequence[str]] = (),
    texts: Iterable[Path] = (),
    options: Options = Options(),
    *,
    keep: Collection[str] = (),
    on_progress: Progress = lambda _what, _done, _total: None,
) -> Eigenwords:
    """Learn eigenwords from tokenised sentences and from files of raw text.

    Words of `keep` that occur have vectors however rare they are.
    """
    with Corpus() as corpus:
        on_progress("reading sentences", 0, 0)
        corpus.add_sentences(sentences)
        files = list(texts)
        for number, file in enumerate(files):
            on_progress("reading text", number, len(files))
            corpus.add_text(file)
        on_progress("reading text", len(files), len(files))
        words = vocabulary(corpus.counts(), options.words, keep)
        with tempfile.TemporaryDirectory(prefix="lpcfg-words-") as folder:
            followed, follows = count_bigrams(corpus, words, Path(folder), on_progress)
            neighbours = Neighbours.of(followed, follows, len(words), options)
            found = left_singular(
                neighbours,
                min(options.dimensions, len(words)),
                np.random.default_rng(options.seed),
                steps=options.steps,
                on_step=lambda done, total: on_progress("singular vectors", done, total),
            )
    return Eigenwords(words, unit_rows(found.left))


def vocabulary(counts: dict[str, int], size: int, keep: Collection[str]) -> tuple[str, ...]:
    """The most frequent words and those of `keep` that occur, by count, ties by spelling."""
    order = sorted(counts, key=lambda word: (-counts[word], word))
    if not order:
        raise TrainingError("expected text to learn words from, got no word: check the files")
    kept = set(keep)
    return tuple(word for k, word in enumerate(order) if k < size or word in kept)


def count_bigrams(
    corpus: Corpus, words: Sequence[str], folder: Path, on_progress: Progress
) -> tuple[Rows, Rows]:
    """Count how often word i is followed by j, and follows j; both tables are (n + 2, n + 2)."""
    shape = (len(words) + 2, len(words) + 2)
    followed, follows = Counter(shape, folder), Counter(shape, folder)
    done = 0
    for block in corpus.blocks(words):
        on_progress("counting neighbours", done, corpus.size)
        done += len(block) - 1
        followed.add(block[:-1], block[1:])
        follows.add(block[1:], block[:-1])
    on_progress("counting neighbours", done, corpus.size)
    return followed.merged(), follows.merged()


def unit_rows(table: Floats) -> NDArray[np.float32]:
    """The rows of a table, each divided by its length; rows of zeros stay."""
    lengths = np.linalg.norm(table, axis=1, keepdims=True)
    unit: Floats = np.divide(table, lengths, out=np.zeros_like(table), where=lengths > 0)
    return unit.astype(np.float32)


@dataclass(frozen=True)
class Neighbours:
    """Ω, as an operator."""

    right: Rows
    """#(w, c)^κ of words and right neighbours, (n + 2, n + 2)"""
    left: Rows
    """The same of left neighbours: the transpose of `right`"""
    words: int
    scale: Floats
    """#(w)^{-κ/2}, also of left and of right contexts, (n + 2,); zero where there are none"""
    threads: int

    @classmethod
    def of(cls, followed: Rows, follows: Rows, words: int, options: Options) -> "Neighbours":
        """Take square roots of counts if asked to, in place, and the scale of rows and columns."""
        counts = followed.sums()
        if options.square_roots:
            counts = np.sqrt(counts)
            followed.take_roots()
            follows.take_roots()
        scale = np.zeros_like(counts)
        np.divide(1, np.sqrt(counts), out=scale, where=counts > 0)
        return cls(followed, follows, words, scale, options.threads)

    @property
    def shape(self) -> tuple[int, int]:
        return self.words, 2 * len(self.scale)

    def times(self, dense: Floats) -> Floats:
        """Ω X: X's first half is of left neighbours."""
        size = len(self.scale)
        scale = self.scale[:, None].astype(dense.dtype)
        out = self.left.times(scale * dense[:size], self.threads)
        out += self.right.times(scale * dense[size:], self.threads)
        return (scale * out)[: self.words]

    def transposed_times(self, dense: Floats) -> Floats:
        """Ωᵀ X. A word is left of what follows it, so that both tables change their parts."""
        size = len(self.scale)
        scale = self.scale[:, None].astype(dense.dtype)
        padded = np.zeros((size, dense.shape[1]), dense.dtype)
        padded[: self.words] = scale[: self.words] * dense
        sides = (self.right.times(padded, self.threads), self.left.times(padded, self.threads))
        return np.concatenate([scale * side for side in sides])
