"""One-step CCA eigenwords: slow twins, the generalised eigenproblem, bounded memory, look-up."""

import gzip
import tempfile
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import eigh

from lpcfg.base.errors import GrammarError, InputError, TrainingError
from lpcfg.text.tokenize import tokenize
from lpcfg.words import bigrams, corpus
from lpcfg.words.bigrams import SparseRows
from lpcfg.words.cca import EigenwordOptions, learn
from lpcfg.words.corpus import Corpus, tokens_of_chunk
from lpcfg.words.eigenwords import Eigenwords
from lpcfg.words.svd import left_singular

SINGLE = 2e-4
"""float32 carries 6e-8; dividing by small lengths and gaps of singular values multiplies it."""
TWIN = 1e-9
"""Two orders of the same float64 sums, over gaps of singular values of .01 and more."""


def sample(seed: int, sentences: int, words: int = 12, states: int = 3) -> list[list[str]]:
    """Draw sentences of an HMM in which every word occurs."""
    rng = np.random.default_rng(seed)
    moves = rng.dirichlet(np.full(states, 0.5), states)
    emits = rng.dirichlet(np.full(words, 0.5), states)
    text = [[chr(97 + k) for k in range(words)]]
    for _ in range(sentences):
        state, sentence = int(rng.integers(states)), []
        for _ in range(rng.integers(2, 9)):
            sentence.append(chr(97 + rng.choice(words, p=emits[state])))
            state = int(rng.choice(states, p=moves[state]))
        text.append(sentence)
    return text


def counted(sentences: Sequence[Sequence[str]]) -> Counter[tuple[str, str]]:
    """Count pairs of neighbours one by one, with `|` around every sentence."""
    return Counter(pair for one in sentences if one for pair in pairwise(["|", *one, "|"]))


def naive_vectors(
    sentences: Sequence[Sequence[str]], words: Sequence[str], d: int, power: float
) -> np.ndarray:
    """Solve CCA of words and contexts as a dense generalised symmetric eigenproblem.

    [0 C; Cᵀ 0] v = ρ [D_w 0; 0 D_c] v: the parts of v for words are D_w^{-½} U.
    """
    pairs = counted(sentences)
    places = [*words, "|"]
    follow = np.array([[pairs[a, b] for b in places] for a in places], float)
    joint = np.hstack([follow.T[: len(words)], follow[: len(words)]]) ** power
    uses = follow.sum(axis=1) ** power
    n, c = joint.shape
    cross = np.zeros((n + c, n + c))
    cross[:n, n:], cross[n:, :n] = joint, joint.T
    values, vectors = eigh(cross, np.diag(np.concatenate([uses[:n], uses, uses])))
    found = vectors[:n, np.argsort(-values)[:d]]
    return found / np.linalg.norm(found, axis=1, keepdims=True)


@pytest.mark.parametrize("square_roots", [True, False])
def test_eigenwords_solve_the_generalised_eigenproblem(square_roots: bool) -> None:
    sentences = sample(0, 400)
    found = learn(sentences, options=EigenwordOptions(dimensions=4, square_roots=square_roots))
    naive = naive_vectors(sentences, found.words, 4, 0.5 if square_roots else 1.0)
    signs = np.sign(np.sum(found.vectors * naive, axis=0))
    assert np.abs(found.vectors - naive * signs).max() < SINGLE


def test_eigenwords_do_not_depend_on_threads_and_are_repeatable() -> None:
    sentences = sample(1, 200)
    one = learn(sentences, options=EigenwordOptions(dimensions=3, threads=1))
    two = learn(sentences, options=EigenwordOptions(dimensions=3, threads=2))
    assert one.words == two.words
    assert np.array_equal(one.vectors, two.vectors)


class Dense:
    """A dense matrix as an operator."""

    def __init__(self, table: np.ndarray) -> None:
        self.table = table
        self.shape = table.shape

    def times(self, dense: np.ndarray) -> np.ndarray:
        return self.table @ dense

    def transposed_times(self, dense: np.ndarray) -> np.ndarray:
        return self.table.T @ dense


def test_block_krylov_finds_the_singular_vectors_of_a_large_matrix() -> None:
    rng = np.random.default_rng(0)
    left = np.linalg.qr(rng.standard_normal((1500, 60)))[0]
    right = np.linalg.qr(rng.standard_normal((300, 60)))[0]
    values = 0.9 ** np.arange(60)
    found = left_singular(
        Dense(left * values @ right.T), 8, np.random.default_rng(1), steps=6, dtype=np.float64
    )
    assert np.abs(found.values - values[:8]).max() < TWIN
    assert np.abs(np.abs(np.sum(found.left * left[:, :8], axis=0)) - 1).max() < TWIN
    assert (found.left[np.argmax(np.abs(found.left), axis=0), np.arange(8)] > 0).all()


def test_a_sparse_product_is_the_dense_one() -> None:
    rng = np.random.default_rng(2)
    dense = rng.poisson(0.3, (23, 17)).astype(np.float32)
    start = np.concatenate([[0], np.cumsum((dense > 0).sum(axis=1))]).astype(np.int64)
    row, column = np.nonzero(dense)
    rows = SparseRows(start, column.astype(np.int32), dense[row, column], 17)
    other = rng.standard_normal((17, 5))
    for threads in (1, 2, 40):
        assert np.abs(rows.times(other, threads) - dense @ other).max() < TWIN
    assert np.array_equal(rows.sums(), dense.sum(axis=1))


def test_pairs_are_merged_over_any_number_of_runs_and_ranges(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(3)
    pairs = rng.integers(0, [7, 5], (400, 2)).astype(np.int32)
    expected = np.zeros((7, 5))
    np.add.at(expected, (pairs[:, 0], pairs[:, 1]), 1)
    for run in (1, 9, 1000):
        monkeypatch.setattr(bigrams, "RUN", run)
        counter = bigrams.PairCounter((7, 5))
        for part in np.array_split(pairs, 60):
            counter.add(part[:, 0], part[:, 1])
        assert np.array_equal(counter.merged().times(np.eye(5), 2), expected)


CHUNKS = """word Word, end; cannot Cannot cannot, gonna a I: can't (see done. U.S. e.g. Fig. x-ray
non-linear dont well-known 12.5% “so” wanna; ''"""


def test_a_chunk_has_the_tokens_that_it_has_within_a_sentence() -> None:
    for chunk in CHUNKS.split():
        whole = tokenize(f"they {chunk} them")
        assert tokens_of_chunk(chunk) == tuple(token.form for token in whole[1:-1]), chunk


TEXT = """Dogs bark (loudly). Cats don't. “No,” she said.
Mr. Smith met Dr. Jones in the U.S. on Monday 17! and left

He won't come, e.g. today."""
READ = [
    "dogs bark -lrb- loudly -rrb- .",
    "cats do n't .",
    "`` no , '' she said .",
    "mr. smith met dr. jones in the u.s. on monday 00 ! and left",
    "he wo n't come , e.g. today .",
]


def sentences_of(text: Corpus) -> list[list[str]]:
    """Return what a corpus has read, from its blocks."""
    words = sorted(text.counts())
    names = [*words, "?", "|"]
    numbers = [place for block in text.blocks(words) for place in block[1:]]
    read = " ".join(names[place] for place in numbers).split("|")
    return [one.split() for one in read if one.strip()]


@pytest.mark.parametrize("block", [1, 3, corpus.BLOCK])
def test_text_is_read_as_sentences_of_tokens(
    block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus, "BLOCK", block)
    file = tmp_path / "text.gz"
    file.write_bytes(gzip.compress(TEXT.encode()))
    with Corpus(max_chunks=5) as read:
        read.add_sentences([["given", "words"], [], ["x y"]])
        read.add_text(file)
        assert read.tokens == sum(read.counts().values())
        assert sentences_of(read)[2:] == [one.split() for one in READ]
        assert sentences_of(read)[0] == ["given", "words"]


def test_blocks_overlap_so_that_every_pair_of_neighbours_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sentences = sample(4, 30)
    monkeypatch.setattr(corpus, "BLOCK", 4)
    with Corpus() as text:
        text.add_sentences(sentences)
        words = sorted(text.counts())
        names = [*words, "?", "|"]
        seen = Counter(
            (names[a], names[b]) for block in text.blocks(words) for a, b in pairwise(block)
        )
    assert seen == counted(sentences)


def test_rare_words_are_forgotten_but_frequent_ones_keep_their_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(corpus, "BLOCK", 20)
    rare = [a + b for a in "abcdefghijklmnop" for b in "abcdefghijklm"][:200]
    sentences = [["often", word, "often"] for word in rare]
    with Corpus(max_words=50) as text:
        text.add_sentences(sentences)
        counts = text.counts()
        first = next(text.blocks(["often"]))
    assert counts["often"] == 400
    assert len(counts) <= 50 + 20
    assert first[:5].tolist() == [2, 0, 1, 0, 2]  # break, often, a rare word, often, break


def test_a_word_that_was_forgotten_is_counted_when_it_comes_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus, "BLOCK", 20)
    rare = " ".join(a + b for a in "abcdefgh" for b in "ijklmnop")
    file = tmp_path / "text"
    file.write_text(f"late\n{rare}\n" + "late again\n" * 100)
    with Corpus(max_words=30) as text:
        text.add_text(file)
        assert text.counts() == {"late": 100, "again": 100}
        read = sentences_of(text)
    assert read[-100:] == [["late", "again"]] * 100
    assert read[0] == ["?"]  # it was forgotten before


def test_the_vocabulary_is_the_most_frequent_words_and_those_to_keep() -> None:
    sentences = [["a", "b", "a", "c"], ["b", "a"], ["d"]]
    found = learn(sentences, options=EigenwordOptions(words=2, dimensions=2), keep={"D", "absent"})
    assert found.words == ("a", "b", "d")
    assert np.abs(np.linalg.norm(found.vectors, axis=1) - 1).max() < 1e-6  # float32's rounding


def test_a_word_is_looked_up_in_lower_case_with_its_digits_zero() -> None:
    table = np.array([[1, 0], [0, 1], [0.6, 0.8]], np.float32)
    words = Eigenwords(("may", "0,000", "often"), table)
    assert words.rows(["May", "MAY", "2,345", "never", "23"]).tolist() == [0, 0, 1, -1, -1]
    assert words.matrix(["may", "never"]).tolist() == [[1, 0], [0, 0]]
    assert words.vector("Never").tolist() == [0, 0]


def test_a_cut_answers_as_before_for_the_words_it_was_cut_to() -> None:
    words = learn(sample(5, 50), options=EigenwordOptions(dimensions=3))
    asked = ["d", "F", "b", "absent"]
    cut = words.cut(asked)
    assert set(cut.words) == {"d", "f", "b"}
    assert np.array_equal(cut.matrix(asked), words.matrix(asked))


def test_near_words_are_those_of_largest_cosine_without_the_word_itself() -> None:
    table = np.array([[1, 0], [0, 1], [0.6, 0.8], [0.8, 0.6]], np.float32)
    words = Eigenwords(("a", "b", "c", "d"), table)
    near = words.near("A", 2)
    assert [word for word, _ in near] == ["d", "c"]
    assert [cosine for _, cosine in near] == pytest.approx([0.8, 0.6])
    with pytest.raises(InputError, match="'zebra'"):
        words.near("zebra", 2)


def test_temporary_files_have_no_names_that_a_killed_process_could_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    seen = []
    learn(
        sample(6, 50),
        options=EigenwordOptions(dimensions=2, method="two-step"),
        on_progress=lambda *_: seen.append(list(tmp_path.iterdir())),
    )
    assert seen
    assert not any(seen)


def test_nothing_to_learn_from_is_refused() -> None:
    with pytest.raises(TrainingError, match="no word"):
        learn([[]])
    with pytest.raises(TrainingError, match="dimensions of 1 or more, got 0"):
        EigenwordOptions(dimensions=0)


def test_vectors_that_do_not_match_their_words_are_refused() -> None:
    with pytest.raises(GrammarError, match="each of 2 words"):
        Eigenwords(("a", "b"), np.zeros((3, 2), np.float32))
    with pytest.raises(GrammarError, match="twice"):
        Eigenwords(("a", "a"), np.zeros((2, 2), np.float32))
