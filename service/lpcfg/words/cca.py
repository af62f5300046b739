"""Learn eigenwords from text: read it, count neighbours, find the vectors in one of three ways.

one-step     CCA of words with both neighbours                          neighbours.one_step
two-step     CCA of neighbours with each other, of words with these     neighbours.two_step
lr-mvl       one-step, then CCA with exponentially smoothed contexts    lr_mvl.improve
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from lpcfg.base.errors import TrainingError
from lpcfg.words.bigrams import Floats, PairCounter, SparseRows
from lpcfg.words.corpus import Corpus
from lpcfg.words.eigenwords import Eigenwords, fold
from lpcfg.words.lr_mvl import improve
from lpcfg.words.neighbours import CcaSettings, LearnedVectors, one_step, two_step

OnProgress = Callable[[str, int, int], None]
"""Told what is being done, and how many of how many parts are."""
Method = Literal["one-step", "two-step", "lr-mvl"]


@dataclass(frozen=True)
class EigenwordOptions:
    """The settings of learning eigenwords."""

    words: int = 100_000
    """How many words have vectors, the most frequent"""
    dimensions: int = 100
    method: Method = "one-step"
    square_roots: bool = True
    """True if counts enter by their square roots (κ = ½), False as they are (κ = 1)"""
    rates: tuple[float, ...] = (0.5,)
    """Of LR-MVL's exponential smooths, in (0, 1]"""
    rounds: int = 2
    """Of LR-MVL"""
    steps: int = 5
    """Products with Ω Ωᵀ in the search for singular vectors"""
    seed: int = 0
    threads: int = 2

    def __post_init__(self) -> None:
        for name in ("words", "dimensions", "rounds", "steps", "threads"):
            if (value := getattr(self, name)) < 1:
                raise TrainingError(f"expected {name} of 1 or more, got {value}: raise it")
        if self.method not in get_args(Method):
            known = ", ".join(get_args(Method))
            raise TrainingError(f"expected a method among {known}, got {self.method!r}: name one")
        if not self.rates or not all(0 < rate <= 1 for rate in self.rates):
            given = ", ".join(f"{rate:g}" for rate in self.rates) or "none"
            raise TrainingError(f"expected rates above 0 and up to 1, got {given}: correct them")


def learn(
    sentences: Iterable[Sequence[str]] = (),
    texts: Iterable[Path] = (),
    options: EigenwordOptions = EigenwordOptions(),
    *,
    keep: Collection[str] = (),
    on_progress: OnProgress = lambda _what, _done, _total: None,
) -> Eigenwords:
    """Learn eigenwords from tokenised sentences and from files of raw text.

    Args:
        keep: words that have vectors however rare they are, if they occur
        on_progress: told what is being done, and how many of how many parts are

    Raises:
        InputError: for a file that is not there
        TrainingError: for text without words
    """
    with Corpus() as corpus:
        _read(corpus, sentences, list(texts), on_progress)
        counts = corpus.counts()
        words = vocabulary(counts, options.words, keep)
        vectors = _find(corpus, words, options, on_progress)
        if options.method == "lr-mvl":
            token_counts = np.array([counts[word] for word in words], np.float64)
            for number in range(options.rounds):
                on_progress("smoothing contexts", number, options.rounds)
                table = unit_rows(vectors.words)
                vectors = improve(table, options.rates, corpus.blocks(words), token_counts)
            on_progress("smoothing contexts", options.rounds, options.rounds)
    return Eigenwords(words, unit_rows(vectors.words), vectors.contexts)


def _read(
    corpus: Corpus, sentences: Iterable[Sequence[str]], texts: Sequence[Path], on: OnProgress
) -> None:
    on("reading sentences", 0, 0)
    corpus.add_sentences(sentences)
    sizes = [file.stat().st_size if file.is_file() else 0 for file in texts]
    for number, file in enumerate(texts):
        before = sum(sizes[:number])

        def on_bytes(behind: int, before: int = before) -> None:
            on("reading text", before + behind, sum(sizes))

        on_bytes(0)
        corpus.add_text(file, on_bytes)


def vocabulary(counts: dict[str, int], size: int, keep: Collection[str]) -> tuple[str, ...]:
    """Return the most frequent words and those of `keep` that occur, by count, ties by spelling."""
    order = sorted(counts, key=lambda word: (-counts[word], word))
    if not order:
        raise TrainingError("expected text to learn words from, got no word: check the files")
    kept = set(map(fold, keep))
    return tuple(word for k, word in enumerate(order) if k < size or word in kept)


def _find(
    corpus: Corpus, words: Sequence[str], options: EigenwordOptions, on: OnProgress
) -> LearnedVectors:
    """Run one or two steps of CCA on counts of neighbours."""
    settings = CcaSettings(
        options.dimensions,
        options.square_roots,
        options.steps,
        options.seed,
        options.threads,
    )
    n = len(words)

    def on_step(done: int, total: int) -> None:
        on("singular vectors", done, total)

    bigrams = count_pairs(corpus, words, 1, on)
    if options.method == "two-step":
        skip_bigrams = count_pairs(corpus, words, 2, on)
        return two_step(bigrams, skip_bigrams, n, settings, on_step)
    return one_step(*bigrams, n, settings, on_step)


def count_pairs(
    corpus: Corpus, words: Sequence[str], distance: int, on: OnProgress
) -> tuple[SparseRows, SparseRows]:
    """Count which place is followed by which at a distance of 1 or 2, and the transpose.

    At distance 2, no break stands between them. Tables are (n + 2, n + 2): see `Corpus.blocks`.
    """
    what = "counting neighbours" if distance == 1 else "counting contexts"
    shape = (len(words) + 2, len(words) + 2)
    followed, follows = PairCounter(shape), PairCounter(shape)
    done = 0
    for block in corpus.blocks(words, distance):
        on(what, done, corpus.size)
        done += len(block) - distance
        first, last = block[:-distance], block[distance:]
        if distance == 2:
            within = block[1:-1] != len(words) + 1
            first, last = first[within], last[within]
        followed.add(first, last)
        follows.add(last, first)
    on(what, corpus.size, corpus.size)
    return followed.merged(), follows.merged()


def unit_rows(table: Floats) -> NDArray[np.float32]:
    """Return the rows of a table, each divided by its length; rows of zeros stay."""
    lengths = np.linalg.norm(table, axis=1, keepdims=True)
    unit: Floats = np.divide(table, lengths, out=np.zeros_like(table), where=lengths > 0)
    return unit.astype(np.float32)
