"""Sentence similarity: metrics by hand, the ridge against its twin, laws, storage, bad input."""

from pathlib import Path

import numpy as np
import pytest

from lpcfg.base.errors import GrammarError, InputError, StoreError, TrainingError
from lpcfg.words import ridge
from lpcfg.words.eigenwords import Eigenwords
from lpcfg.words.similarity import (
    EIGENWORDS,
    Similarity,
    comparison,
    correlations,
    eigenword_similarity,
    expanded,
    pearson,
    read_pairs,
    read_scored_pairs,
    train_similarity,
)
from lpcfg.words.surface import SURFACE, base_form, forms_in, sentence_sets, surface_metrics

EXACT = 1e-12
"""Two orders of summing a few dozen numbers of size one."""
SYNONYMS = {"big": "large", "cat": "feline", "runs": "sprints", "house": "home", "red": "scarlet"}


def vectors() -> Eigenwords:
    """Make vectors with synonyms at a cosine of about .9, and all other words far from each
    other.
    """
    rng = np.random.default_rng(0)
    base = rng.standard_normal((len(SYNONYMS), 40))
    table = np.vstack([base, base + 0.4 * rng.standard_normal(base.shape)])
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    return Eigenwords((*SYNONYMS, *SYNONYMS.values()), table.astype(np.float32))


def scored(seed: int, count: int = 60) -> tuple[list[tuple[str, str]], list[float]]:
    """Make pairs of five words; the score counts those that are kept or become synonyms."""
    rng = np.random.default_rng(seed)
    names, pairs, scores = list(SYNONYMS), [], []
    for _ in range(count):
        fate = rng.integers(3, size=5)  # kept, a synonym, another word
        other = [
            (name, SYNONYMS[name], f"zz{rng.integers(99)}")[k]
            for name, k in zip(names, fate.tolist(), strict=True)
        ]
        pairs.append((" ".join(names), " ".join(other)))
        scores.append(float(np.sum(fate < 2)))
    return pairs, scores


def test_surface_metrics_count_and_share_what_sentences_have_in_common() -> None:
    a, b = (
        sentence_sets(forms_in(sentence))
        for sentence in (
            "The three dogs were barking at 1,000 cats.",
            "Three dogs bark at 1000 cats!",
        )
    )
    metrics = dict(zip(SURFACE, surface_metrics(a, b), strict=True))
    assert metrics["length difference"] == 9 - 7
    assert metrics["mean length"] == 8
    assert metrics["common words"] == 3  # dogs at cats
    assert metrics["common content words"] == 3  # three dogs cats
    assert metrics["common base forms"] == 5  # three dog bark at cat
    assert metrics["common numerals"] == 2  # 3 1000
    assert metrics["share of common words"] == pytest.approx(3 / np.sqrt(9 * 7), abs=EXACT)
    assert metrics["share of common numerals"] == pytest.approx(1, abs=EXACT)


def test_sentences_without_numerals_share_none_of_them() -> None:
    one = sentence_sets(["Dogs", "bark"])
    metrics = dict(zip(SURFACE, surface_metrics(one, one), strict=True))
    assert metrics["share of common numerals"] == 0
    assert metrics["share of common words"] == pytest.approx(1, abs=EXACT)


def test_forms_of_a_word_have_one_base_form() -> None:
    assert {base_form(word) for word in ("bark", "barks", "barked", "barking")} == {"bark"}


def test_eigenword_similarity_is_the_sum_over_pairs_of_words() -> None:
    words = vectors()
    a, b = ["big", "cat", "unknown"], ["large", "unknown", "house", "runs"]
    total = 0.0
    for one in a:
        for two in b:
            cosine = float(words.vector(one) @ words.vector(two))
            total += 1.0 if one == two else max(cosine, 0.0) ** 3
    expected = total / np.sqrt(3 * 4)
    assert eigenword_similarity(words, a, b) == pytest.approx(expected, abs=1e-6)  # float32
    assert eigenword_similarity(words, [], b) == 0


def test_ridge_solves_the_normal_equations() -> None:
    """As least squares over the rows and √λ times the identity below them."""
    rng = np.random.default_rng(1)
    rows, values = rng.standard_normal((30, 4)) * [1, 5, 0.1, 2] + 3, rng.standard_normal(30)
    for penalty in (0.01, 1.0, 100.0):
        found = ridge.fit(rows, values, penalty)
        standard = (rows - rows.mean(axis=0)) / rows.std(axis=0)
        stacked = np.vstack([standard, np.sqrt(penalty) * np.eye(4)])
        target = np.concatenate([values - values.mean(), np.zeros(4)])
        expected = np.linalg.lstsq(stacked, target, rcond=None)[0]
        assert np.abs(found.weights - expected).max() < EXACT
        assert np.abs(found.predict(rows) - standard @ expected - values.mean()).max() < EXACT


def test_a_column_that_never_varies_has_no_weight() -> None:
    rows = np.column_stack([np.arange(20.0), np.full(20, 7.0)])
    found = ridge.fit(rows, np.arange(20.0), 0.1)
    assert found.weights[1] == 0
    assert np.isfinite(found.predict(rows)).all()


def test_the_penalty_is_the_one_with_the_least_held_out_error() -> None:
    rng = np.random.default_rng(2)
    rows = rng.standard_normal((60, 8))
    for noise in (0.01, 10.0):
        values = rows[:, 0] + noise * rng.standard_normal(60)
        chosen = ridge.fit_by_folds(rows, values).penalty
        errors = {one: naive_error(rows, values, one) for one in ridge.PENALTIES}
        assert chosen == min(errors, key=errors.__getitem__)
    assert chosen > 1  # noise wants a strong penalty


def naive_error(rows: np.ndarray, values: np.ndarray, penalty: float) -> float:
    total = 0.0
    for k in range(10):
        kept = [row for row in range(len(rows)) if row % 10 != k]
        model = ridge.fit(rows[kept], values[kept], penalty)
        for row in range(k, len(rows), 10):
            total += float(model.predict(rows[row : row + 1])[0] - values[row]) ** 2
    return total


def test_features_enter_with_their_squares_and_roots() -> None:
    assert expanded(np.array([[4.0, 9.0]])).tolist() == [[4, 9, 16, 81, 2, 3]]


def test_scores_are_symmetric_and_stay_on_the_scale() -> None:
    measure = train_similarity(*scored(0), vectors())
    pairs = [*scored(1)[0], ("big " * 30, "x"), ("", ""), ("...", "!!!")]
    found = measure.score(pairs)
    turned = measure.score([(b, a) for a, b in pairs])
    assert np.abs(found - turned).max() < 1e-9  # weights of size 10³ times EXACT
    assert found.min() >= 0
    assert found.max() <= 5


def test_eigenwords_tell_synonyms_that_surface_metrics_cannot() -> None:
    train, test = scored(0), scored(1)
    surface = correlations(train_similarity(*train), [test])
    eigen = correlations(train_similarity(*train, vectors()), [test])
    assert surface.all < 0.8
    assert eigen.all > surface.all + 0.1


def test_correlations_are_of_each_set_of_all_and_a_weighted_mean() -> None:
    measure = train_similarity(*scored(0))
    sets = [scored(1, 20), scored(2, 40)]
    found = correlations(measure, sets)
    each = [np.corrcoef(measure.score(pairs), gold)[0, 1] for pairs, gold in sets]
    assert found.sets == pytest.approx(each, abs=EXACT)
    assert found.mean == pytest.approx((20 * each[0] + 40 * each[1]) / 60, abs=EXACT)
    pooled = np.corrcoef(measure.score([*sets[0][0], *sets[1][0]]), [*sets[0][1], *sets[1][1]])[
        0, 1
    ]
    assert found.all == pytest.approx(pooled, abs=EXACT)


def test_what_does_not_vary_correlates_with_nothing() -> None:
    assert pearson(np.ones(4), np.arange(4.0)) == 0


def test_words_align_where_each_is_the_others_most_similar() -> None:
    measure = train_similarity(*scored(0), vectors())
    found = measure.align(
        ["The", "big", ",", "cat", "unknown"], ["A", "feline", "large", "home", "."]
    )
    assert [(one.first, one.second) for one in found] == [(1, 2), (3, 1)]
    assert all(0.5 < one.similarity <= 1 for one in found)
    assert measure.align(["..."], ["cat"]) == []
    one = measure.align(["large", "big"], ["big"])  # `large` is not the most similar to `big`
    assert [(found.first, found.second) for found in one] == [(1, 0)]


def test_a_comparison_shows_tokens_score_and_alignments() -> None:
    measure = train_similarity(*scored(0), vectors())
    found = comparison(measure, ("big cat", "large cat"))
    assert found["score"] == measure.score([("big cat", "large cat")])[0]
    tokens = [{"text": "large", "start": 0, "end": 5}, {"text": "cat", "start": 6, "end": 9}]
    assert found["second"] == {"tokens": tokens}
    assert isinstance(found["alignments"], list)
    assert [(one["first"], one["second"]) for one in found["alignments"]] == [(0, 0), (1, 1)]
    assert comparison(train_similarity(*scored(0)), ("a", "b"))["alignments"] == []


@pytest.mark.parametrize("words", [None, vectors()])
def test_a_stored_measure_scores_as_before(words: Eigenwords | None, tmp_path: Path) -> None:
    measure = train_similarity(*scored(0), words)
    measure.save(tmp_path / "measure.safetensors")
    read = Similarity.load(tmp_path / "measure.safetensors")
    pairs = scored(1)[0]
    assert np.array_equal(read.score(pairs), measure.score(pairs))
    assert (read.columns, read.scale) == (measure.columns, measure.scale)
    assert (EIGENWORDS in read.columns) == (words is not None)


def test_files_that_are_no_measure_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "measure.safetensors"
    train_similarity(*scored(0)).save(path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StoreError, match="torn or foreign"):
        Similarity.load(path)


def test_what_cannot_be_learned_from_is_refused() -> None:
    pairs, scores = scored(0)
    with pytest.raises(TrainingError, match="each of 60 pairs, got 59"):
        train_similarity(pairs, scores[1:])
    with pytest.raises(TrainingError, match="from 0 to 5, got 6 for pair 3"):
        train_similarity(pairs, [*scores[:2], 6.0, *scores[3:]])
    with pytest.raises(TrainingError, match="10 pairs or more"):
        train_similarity(pairs[:9], scores[:9])
    with pytest.raises(GrammarError, match="expected vectors of words"):
        train_similarity(pairs, scores, columns=[EIGENWORDS])
    with pytest.raises(GrammarError, match="'weather'"):
        train_similarity(pairs, scores, columns=["weather"])
    with pytest.raises(InputError, match="surface metrics alone"):
        train_similarity(pairs, scores).align(["a"], ["b"])


def test_malformed_pairs_and_scores_are_refused_with_their_line(tmp_path: Path) -> None:
    pairs, scores = tmp_path / "pairs", tmp_path / "scores"
    pairs.write_text("a b\tc d\r\nno tab\n")
    with pytest.raises(InputError, match=":2, got 'no tab'"):
        read_pairs(pairs)
    pairs.write_text("a b\tc d\r\n\t x\n")
    with pytest.raises(InputError, match="pairs:2"):
        read_pairs(pairs)
    pairs.write_text("a b\tc d\r\n")
    assert read_pairs(pairs) == [("a b", "c d")]
    scores.write_text("4.5\nhigh\n")
    with pytest.raises(InputError, match=":2, got 'high'"):
        read_scored_pairs(pairs, scores)
    scores.write_text("4.5\n1\n")
    with pytest.raises(InputError, match=r"1 pairs in .* 2 scores"):
        read_scored_pairs(pairs, scores)
    scores.write_text("nan\n")
    with pytest.raises(InputError, match=":1, got 'nan'"):
        read_scored_pairs(pairs, scores)
    scores.write_text("4.5\n")
    with pytest.raises(TrainingError, match="got nan for pair 1"):
        train_similarity(read_scored_pairs(pairs, scores)[0], [float("nan")])
