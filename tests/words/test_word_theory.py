"""Theorems about eigenwords, on exact moments of HMMs and against slow twins."""

from collections.abc import Sequence

import numpy as np
import pytest

from lpcfg.words import corpus, lr_mvl
from lpcfg.words.bigrams import SparseRows
from lpcfg.words.cca import EigenwordOptions, count_pairs, learn, unit_rows
from lpcfg.words.corpus import Corpus
from lpcfg.words.dense import cca, cca_with_states, inverse_root
from lpcfg.words.lr_mvl import Moments, collect, segments, solve
from lpcfg.words.neighbours import CcaSettings, one_step, two_step
from tests.words.test_eigenwords import SINGLE, sample

EXACT = 1e-8
"""Exact moments in float64, through inverses of conditions up to 10⁴ or so."""
N, M = 7, 3
"""Words and hidden states of the HMMs here."""


class Hmm:
    """A stationary HMM: o(w | h), t(h' | h), π; all in the order words, rarer, break."""

    def __init__(self, seed: int, emits: np.ndarray | None = None) -> None:
        rng = np.random.default_rng(seed)
        self.emits = rng.dirichlet(np.ones(N), M).T if emits is None else emits
        moves = rng.dirichlet(np.ones(M), M).T
        values, vectors = np.linalg.eig(moves)
        start = np.real(vectors[:, np.argmax(np.real(values))])
        self.states = start / start.sum()
        self.moves = moves
        self.words = self.emits @ self.states

    def pairs(self, distance: int) -> np.ndarray:
        """Compute p(w_t = i, w_{t + distance} = j), (N, N)."""
        joint = np.linalg.matrix_power(self.moves, distance) @ np.diag(self.states)
        return self.emits @ joint.T @ self.emits.T

    def tables(self, distance: int) -> tuple[SparseRows, SparseRows]:
        padded = np.zeros((N + 2, N + 2))
        padded[:N, :N] = self.pairs(distance)
        return rows(padded), rows(padded.T)


def rows(dense: np.ndarray) -> SparseRows:
    row, column = np.nonzero(dense)
    start = np.concatenate([[0], np.cumsum((dense != 0).sum(axis=1))]).astype(np.int64)
    return SparseRows(start, column.astype(np.int32), dense[row, column], dense.shape[1])


def search(*, square_roots: bool = False, dimensions: int = M) -> CcaSettings:
    return CcaSettings(dimensions, square_roots, steps=5, seed=0, threads=1)


def nothing(_done: int, _total: int) -> None:
    """Watch no steps."""


def span(columns: np.ndarray) -> np.ndarray:
    """Return the projector onto the span of M's columns, which must be independent."""
    left, values, _ = np.linalg.svd(columns, full_matrices=False)
    assert values[M - 1] > 1e-3 * values[0]
    return left[:, :M] @ left[:, :M].T


def one(hmm: Hmm) -> np.ndarray:
    return one_step(*hmm.tables(1), N, search(), nothing).words


def two(hmm: Hmm) -> np.ndarray:
    return two_step(hmm.tables(1), hmm.tables(2), N, search(), nothing).words


def smooth(hmm: Hmm) -> np.ndarray:
    """Run LR-MVL's rounds at rate 1 on exact moments, from random vectors."""
    table = np.random.default_rng(5).standard_normal((N, M))
    for _ in range(2):
        within = table.T @ np.diag(hmm.words) @ table
        across = table.T @ hmm.pairs(2) @ table
        moments = Moments(
            np.block([[within, across], [across.T, within]]),
            np.hstack([hmm.pairs(1).T @ table, hmm.pairs(1) @ table]),
            tokens=1,
        )
        padded = np.concatenate([table, np.zeros((2, M))])
        table = solve(padded, (1.0,), moments, hmm.words).words
    return table


@pytest.mark.parametrize("method", [one, two, smooth])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_exact_moments_of_an_hmm_give_the_span_of_its_emissions(method: object, seed: int) -> None:
    """D_w^{-½} U = A up to a map of states: A's columns, times p(w), span those of O."""
    assert callable(method)
    hmm = Hmm(seed)
    vectors = np.sqrt(hmm.words)[:, None] * method(hmm)
    assert np.abs(span(vectors) - span(hmm.emits)).max() < EXACT


def clustered(seed: int) -> Hmm:
    """Build an HMM in which every word has one state."""
    rng = np.random.default_rng(seed)
    state = np.array([0, 1, 2, 0, 1, 2, 1])
    emits = rng.uniform(0.2, 1, N)[:, None] * (state[:, None] == np.arange(M))
    return Hmm(seed, emits / emits.sum(axis=0))


@pytest.mark.parametrize("square_roots", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_emissions_of_a_clustered_hmm_are_recovered(square_roots: bool, seed: int) -> None:
    """Vectors of words are equal within a state and orthogonal across (Stratos et al. 2015)."""
    hmm = clustered(seed)
    found = one_step(*hmm.tables(1), N, search(square_roots=square_roots), nothing).words
    unit = found / np.linalg.norm(found, axis=1, keepdims=True)
    cosines = unit @ unit.T
    same = (hmm.emits > 0).astype(float) @ (hmm.emits > 0).T
    assert np.abs(cosines - same).max() < EXACT
    emitted = hmm.words / (cosines @ hmm.words)
    assert np.abs(emitted - hmm.emits.max(axis=1)).max() < EXACT


def views(seed: int) -> np.ndarray:
    """Compute second moments of two views, of 4 and 5 numbers."""
    rng = np.random.default_rng(seed)
    both = rng.standard_normal((60, 9)) @ rng.standard_normal((9, 9))
    return both.T @ both / 60


def test_canonical_correlations_do_not_change_with_an_invertible_map_of_a_view() -> None:
    moments = views(0)
    turn = np.random.default_rng(1).standard_normal((4, 4))
    plain = cca(moments[:4, :4], moments[:4, 4:], moments[4:, 4:], 3)
    turned = cca(turn @ moments[:4, :4] @ turn.T, turn @ moments[:4, 4:], moments[4:, 4:], 3)
    assert np.abs(plain.values - turned.values).max() < EXACT
    signs = np.sign(np.sum(plain.second * turned.second, axis=0))
    assert np.abs(plain.second - turned.second * signs).max() < EXACT
    assert np.abs(plain.first - turn.T @ turned.first * signs).max() < EXACT


def test_canonical_directions_are_uncorrelated_and_correlate_by_their_values() -> None:
    moments = views(2)
    found = cca(moments[:4, :4], moments[:4, 4:], moments[4:, 4:], 3)
    for side, part in ((found.first, slice(0, 4)), (found.second, slice(4, 9))):
        assert np.abs(side.T @ moments[part, part] @ side - np.eye(3)).max() < EXACT
    across = found.first.T @ moments[:4, 4:] @ found.second
    assert np.abs(across - np.diag(found.values)).max() < EXACT


def test_words_against_states_is_the_cca_of_indicators_with_states() -> None:
    """And so does not change with an invertible map of the states."""
    rng = np.random.default_rng(3)
    word = np.concatenate([np.arange(6), rng.integers(6, size=194)])
    indicators = np.eye(6)[word]
    states = rng.standard_normal((200, 4)) + rng.standard_normal((6, 4))[word]
    uses, moments = indicators.sum(axis=0), states.T @ states
    expected = cca(np.diag(uses), indicators.T @ states, moments, 2)
    for turn in (np.eye(4), rng.standard_normal((4, 4))):
        turned = states @ turn
        words, projected = cca_with_states(indicators.T @ turned, turn.T @ moments @ turn, uses, 2)
        signs = np.sign(np.sum(words * expected.first, axis=0))
        assert np.abs(words / np.sqrt(uses)[:, None] - expected.first * signs).max() < EXACT
        assert np.abs(turned @ projected - states @ expected.second * signs).max() < EXACT


def test_directions_without_variance_are_left_out_of_an_inverse_root() -> None:
    root = inverse_root(np.diag([4.0, 0.0, 1.0]))
    assert np.abs(root - np.diag([0.5, 0, 1])).max() < EXACT


# Slow twins of the other two ways ----------------------------------------------------------------


def tokens_of(sentences: Sequence[Sequence[str]], words: Sequence[str]) -> list[list[int]]:
    """List the places of words with a break (n + 1) around every sentence."""
    place = {word: k for k, word in enumerate(words)}
    stop = len(words) + 1
    return [[stop, *(place.get(word, stop - 1) for word in one), stop] for one in sentences]


def indicators(places: Sequence[int], size: int) -> np.ndarray:
    return np.eye(size)[np.array(places)]


def naive_two_step(
    sentences: Sequence[Sequence[str]], words: Sequence[str], d: int, power: float
) -> np.ndarray:
    """Run two-step CCA on one row of indicators a token."""
    size = len(words) + 2
    read = tokens_of(sentences, words)
    left, word, right = (
        indicators([one[t + shift] for one in read for t in range(1, len(one) - 1)], size)
        for shift in (-1, 0, 1)
    )
    uses = [side.sum(axis=0) ** power for side in (left, right)]
    seen = [np.flatnonzero(side) for side in uses]
    joint = (left.T @ right)[np.ix_(*seen)] ** power
    first = cca(np.diag(uses[0][seen[0]]), joint, np.diag(uses[1][seen[1]]), d)
    states = np.hstack([left[:, seen[0]] @ first.first, right[:, seen[1]] @ first.second])
    known = word[:, : len(words)]
    moments = states.T @ states
    found = cca(np.diag(known.sum(axis=0)), known.T @ states, moments, d).first
    return found / np.linalg.norm(found, axis=1, keepdims=True)


@pytest.mark.parametrize("square_roots", [True, False])
def test_two_step_vectors_equal_those_from_indicators_of_tokens(square_roots: bool) -> None:
    sentences = [*sample(0, 300), ["rare"], ["a", "seldom", "b"]]
    options = EigenwordOptions(words=12, dimensions=3, method="two-step", square_roots=square_roots)
    found = learn(sentences, options=options)
    naive = naive_two_step(sentences, found.words, 3, 0.5 if square_roots else 1.0)
    assert np.abs(found.vectors @ found.vectors.T - naive @ naive.T).max() < SINGLE


def naive_smooths(places: list[int], table: np.ndarray, rate: float) -> np.ndarray:
    """Sum over the tokens before each one, up to the break that begins the sentence."""
    return np.array(
        [
            sum(rate * (1 - rate) ** j * table[places[t - 1 - j]] for j in range(t))
            for t in range(1, len(places) - 1)
        ]
    ).reshape(-1, table.shape[1])


def naive_lr_mvl(
    sentences: Sequence[Sequence[str]],
    words: Sequence[str],
    table: np.ndarray,
    rates: tuple[float, ...],
) -> np.ndarray:
    """Run one round of LR-MVL on one row of smooths a token."""
    padded = np.vstack([table.astype(np.float64), np.zeros((2, table.shape[1]))])
    read = tokens_of(sentences, words)
    left = np.vstack(
        [np.hstack([naive_smooths(one, padded, rate) for rate in rates]) for one in read]
    )
    right = np.vstack(
        [
            np.hstack([naive_smooths(one[::-1], padded, rate)[::-1] for rate in rates])
            for one in read
        ]
    )
    k = table.shape[1]
    first = cca(left.T @ left, left.T @ right, right.T @ right, k)
    states = np.hstack([left @ first.first, right @ first.second])
    known = indicators([place for one in read for place in one[1:-1]], len(words))
    moments = states.T @ states
    found = cca(np.diag(known.sum(axis=0)), known.T @ states, moments, k).first
    return found / np.linalg.norm(found, axis=1, keepdims=True)


@pytest.mark.parametrize("rounds", [1, 2])
def test_rounds_of_lr_mvl_equal_those_from_smooths_of_tokens(rounds: int) -> None:
    """Two rates: the CCA of both sides then keeps three directions of six, so that it matters."""
    sentences, rates = sample(7, 300), (0.4, 1.0)
    start = learn(sentences, options=EigenwordOptions(dimensions=3))
    options = EigenwordOptions(dimensions=3, method="lr-mvl", rates=rates, rounds=rounds)
    found = learn(sentences, options=options)
    naive = start.vectors
    for _ in range(rounds):
        naive = naive_lr_mvl(sentences, found.words, naive, rates)
    assert np.abs(found.vectors @ found.vectors.T - naive @ naive.T).max() < SINGLE


def test_moments_of_smooths_are_those_of_the_written_out_sums(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lr_mvl, "SEGMENT", 30)
    sentences, rates = sample(1, 60), (0.5, 1.0)
    table = np.random.default_rng(0).standard_normal((14, 3)).astype(np.float32)
    with Corpus() as text:
        text.add_sentences(sentences)
        words = sorted(text.counts())
        found = collect(table, rates, text.blocks(words))
    states, sums = np.zeros((12, 12)), np.zeros((12, 12))
    for places in tokens_of(sentences, words):
        left = [naive_smooths(places, table, rate) for rate in rates]
        right = [naive_smooths(places[::-1], table, rate)[::-1] for rate in rates]
        one = np.hstack([*left, *right])
        states += one.T @ one
        np.add.at(sums, places[1:-1], one)
    assert np.abs(found.states - states).max() < SINGLE * np.abs(states).max()
    assert np.abs(found.sums - sums).max() < SINGLE * np.abs(sums).max()
    assert found.tokens == sum(map(len, sentences))


@pytest.mark.parametrize("size", [8, 13, 1000])
def test_text_is_cut_where_sentences_end(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lr_mvl, "SEGMENT", size)
    text = [9, 1, 2, 3, 9, 4, 9, 5, 6, 7, 8, 9, 1, 9]
    blocks = [np.array(text[:5]), np.array(text[4:10]), np.array(text[9:])]
    cut = [piece.tolist() for piece in segments(blocks, 9)]
    assert all(piece[0] == piece[-1] == 9 and len(piece) <= size for piece in cut)
    assert [place for piece in cut for place in piece[1:]] == text[1:]


def test_a_sentence_longer_than_a_segment_is_cut_but_loses_no_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lr_mvl, "SEGMENT", 6)
    text = [9, *range(8), *range(8), 9, 3, 9]
    cut = [piece.tolist() for piece in segments([np.array(text)], 9)]
    assert all(piece[0] == piece[-1] == 9 for piece in cut)
    assert [place for piece in cut for place in piece if place != 9] == [
        place for place in text if place != 9
    ]


# Tokens in context --------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["one-step", "two-step", "lr-mvl"])
def test_a_token_has_the_vectors_of_its_word_and_of_both_contexts(method: str) -> None:
    options = EigenwordOptions(dimensions=3, method=method, rates=(0.25, 1.0), rounds=1)  # type: ignore[arg-type]
    words = learn(sample(2, 100), options=options)
    assert words.contexts is not None
    tokens = ["a", "b", "zebra", "c"]
    found = words.token_vectors(tokens)
    assert found.shape == (4, 9)
    assert np.array_equal(found[:, :3], words.matrix(tokens))
    places = tokens_of([[token] for token in tokens], words.words)
    line = [len(words.words) + 1, *(one[1] for one in places), len(words.words) + 1]
    for tables, run, part in (
        (words.contexts.left, line, slice(3, 6)),
        (words.contexts.right, line[::-1], slice(6, 9)),
    ):
        expected = sum(
            naive_smooths(run, table, rate)
            for table, rate in zip(tables, words.contexts.rates, strict=True)
        )
        step = 1 if part.start == 3 else -1
        assert np.abs(found[::step, part] - expected).max() < SINGLE


@pytest.mark.parametrize("method", ["one-step", "two-step", "lr-mvl"])
def test_contexts_have_a_mean_square_length_of_one(method: str) -> None:
    sentences = sample(3, 200)
    options = EigenwordOptions(dimensions=3, method=method)  # type: ignore[arg-type]
    words = learn(sentences, options=options)
    found = np.concatenate([words.token_vectors(one) for one in sentences])
    squares = np.square(found.reshape(len(found), 3, 3)).sum(axis=2).mean(axis=0)
    # One step counts breaks too, which stand left and right of nothing.
    assert squares == pytest.approx([1, 1, 1], rel=0.25 if method == "one-step" else SINGLE)


def test_left_contexts_of_one_step_are_the_right_singular_vectors() -> None:
    """The best projections of words and contexts predict each other: D_c⁻¹ C_cw U ∝ V."""
    hmm = Hmm(4)
    found = one_step(*hmm.tables(1), N, search(), nothing)
    vectors = found.words / np.sqrt(hmm.words)[:, None]
    for pairs, table in (
        (hmm.pairs(1), found.contexts.left),
        (hmm.pairs(1).T, found.contexts.right),
    ):
        expected = pairs @ vectors / hmm.words[:, None]
        ratio = table[0, :N] / expected
        assert np.abs(ratio / ratio[0] - 1).max() < SINGLE


def test_both_contexts_of_one_step_are_uncorrelated_with_variance_one() -> None:
    """Up to the lengths of both sides, which are scaled: s Lᵀ D L + t Rᵀ D R = I."""
    hmm = Hmm(4)
    found = one_step(*hmm.tables(1), N, search(), nothing).contexts
    sides = [table[0, :N].astype(float) for table in (found.left, found.right)]
    moments = np.stack([(side.T @ (hmm.words[:, None] * side)).ravel() for side in sides], axis=1)
    factors = np.linalg.lstsq(moments, np.eye(M).ravel(), rcond=None)[0]
    assert factors.min() > 0
    assert np.abs(moments @ factors - np.eye(M).ravel()).max() < SINGLE


@pytest.mark.parametrize("block", [1, 2, 3, corpus.BLOCK])
def test_pairs_around_a_word_do_not_cross_the_end_of_a_sentence(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus, "BLOCK", block)
    words = ("a", "b", "c")
    with Corpus() as text:
        text.add_sentences([["a", "b", "c"], ["c"], ["a", "zebra", "c"]])
        followed, follows = count_pairs(text, words, 2, lambda *_: None)
    table = followed.times(np.eye(5), 1)
    expected = np.zeros((5, 5))
    for left, right in ((4, 1), (0, 2), (1, 4), (4, 4), (4, 3), (0, 2), (3, 4)):
        expected[left, right] += 1
    assert np.array_equal(table, expected)
    assert np.array_equal(follows.times(np.eye(5), 1), expected.T)


def test_unit_rows_leave_rows_of_zeros() -> None:
    assert unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist() == pytest.approx(
        np.array([[0.6, 0.8], [0, 0]])
    )
