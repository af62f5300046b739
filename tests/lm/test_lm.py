"""Latent-class bigram models and Kneser-Ney: theorems, slow twins, storage, bad input."""

import gzip
import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from benchmarks.kneser_ney import BEFORE_START, KneserNey
from scipy import sparse

from lpcfg.base.errors import InputError, SettingsError, StoreError, TrainingError
from lpcfg.grammar.tables import Doubles
from lpcfg.lm.corpus import UNKNOWN, Vocabulary, read_sentences
from lpcfg.lm.estimate import (
    Distributions,
    EstimationOptions,
    EstimatorName,
    Step,
    em_step,
    pivot_start,
    symmetric_start,
    train_lm,
)
from lpcfg.lm.model import LanguageModel, Training

SUMS = 1e-12
"""A sum of a few hundred probabilities, each rounded to 2⁻⁵³."""
TWIN = 1e-10
"""Two orders of summing a few thousand terms."""
PLAIN = Training(
    estimator="em",
    states=2,
    seed=0,
    min_count=2,
    prior=0.0,
    max_steps=1,
    pivot_steps=0,
    steps=1,
    dev_perplexity=1.0,
)


def sample(seed: int, sentences: int, words: int = 40, m: int = 3) -> list[list[str]]:
    """Draw text of a latent-class bigram model over `words` words, 4 to 12 words a sentence."""
    model = np.random.default_rng(99)  # the model is always the same; the text is not
    contexts = model.dirichlet(np.full(m, 0.2), words + 1)
    emitted = model.dirichlet(np.full(words, 0.2), m)
    chances = contexts @ emitted
    noise = np.random.default_rng(seed)
    text = []
    for _ in range(sentences):
        before, sentence = words, []
        for _ in range(noise.integers(4, 13)):
            before = int(noise.choice(words, p=chances[before]))
            sentence.append(f"w{before}")
        text.append(sentence)
    return text


TRAIN, DEV, TEST = sample(1, 400), sample(2, 80), sample(3, 80)


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return train_lm(TRAIN, DEV, EstimationOptions("pivot+em", states=3))


# EM


@pytest.mark.parametrize("prior", [0.0, 3.0])
@pytest.mark.parametrize("words_too", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_em_never_decreases_its_objective(seed: int, words_too: bool, prior: float) -> None:
    bigrams = Vocabulary.of(TRAIN).bigrams(TRAIN)
    now, objectives = symmetric_start(bigrams, 4, seed), []
    for _ in range(40):
        now, objective = em_step(bigrams, now, prior, words_too=words_too)
        objectives.append(objective)
    # Rounding of a sum of some 10³ logs, relative to the sum.
    assert min(np.diff(objectives)) >= -1e-12 * abs(objectives[0])
    assert objectives[-1] > objectives[0]


def slow_step(bigrams: Doubles, now: Distributions, prior: float) -> tuple[Doubles, Doubles, float]:
    """Compute r, s and L by the definitions, one bigram at a time."""
    n, m = now.words.shape
    contexts = np.array([prior * now.prior for _ in range(n + 1)])
    words, objective = np.zeros((n, m)), 0.0
    for w1 in range(n + 1):
        for h in range(m):
            objective += prior * now.prior[h] * math.log(now.contexts[w1, h]) if prior else 0.0
        for w2 in range(n):
            joint = [now.contexts[w1, h] * now.words[w2, h] for h in range(m)]
            objective += bigrams[w1, w2] * math.log(sum(joint)) if bigrams[w1, w2] else 0.0
            for h in range(m):
                contexts[w1, h] += bigrams[w1, w2] * joint[h] / sum(joint)
                words[w2, h] += bigrams[w1, w2] * joint[h] / sum(joint)
    return contexts / contexts.sum(axis=1, keepdims=True), words / words.sum(axis=0), objective


@pytest.mark.parametrize("prior", [0.0, 2.5])
def test_an_em_step_equals_its_slow_twin(prior: float) -> None:
    noise = np.random.default_rng(5)
    bigrams = noise.poisson(0.4, (8, 7)).astype(float) + np.eye(8, 7)
    bigrams[7, 0] = 1  # every context is seen
    start = Distributions(
        noise.dirichlet(np.ones(3), 8), noise.dirichlet(np.ones(7), 3).T, noise.dirichlet([1, 2, 3])
    )
    contexts, words, objective = slow_step(bigrams, start, prior)
    now, reached = em_step(sparse.csr_matrix(bigrams), start, prior, words_too=True)
    np.testing.assert_allclose(now.contexts, contexts, atol=TWIN)
    np.testing.assert_allclose(now.words, words, atol=TWIN)
    assert reached == pytest.approx(objective, rel=TWIN)


def test_a_context_never_seen_keeps_its_states() -> None:
    bigrams = sparse.csr_matrix(np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 1.0]]))
    start = symmetric_start(bigrams, 2, 0)
    now, _ = em_step(bigrams, start, 0.0, words_too=True)
    np.testing.assert_array_equal(now.contexts[0], start.contexts[0])


def test_one_state_is_the_unigram_model() -> None:
    trained = train_lm(TRAIN, DEV, EstimationOptions("em", states=1))
    counts = Counter(word for sentence in TRAIN for word in sentence)
    counts.update(dict.fromkeys(trained.vocabulary.words, 0))
    total = sum(counts.values())
    for word, probability in zip(
        trained.vocabulary.words[1:], trained.probabilities("w3")[1:], strict=True
    ):
        assert probability == pytest.approx(counts[word] / total, rel=TWIN)


# Pivots


EVENTS = 1e6
"""Enough for every word to be frequent enough for a pivot."""


def exact_model(seed: int) -> tuple[Doubles, Doubles, Doubles]:
    """Build r(h|w1) and s(w2|h) with pivots among the words, and the expected counts of EVENTS
    bigrams.
    """
    noise = np.random.default_rng(seed)
    m, n = 4, 30
    words = noise.dirichlet(np.full(n, 0.5), m).T
    words[:m] = np.diag(noise.uniform(0.1, 0.2, m))
    words /= words.sum(axis=0)
    contexts = noise.dirichlet(np.full(m, 0.5), n + 1)
    chances = noise.dirichlet(np.full(n + 1, 5.0))[:, None] * (contexts @ words.T)
    return contexts, words, EVENTS * chances


@pytest.mark.parametrize("seed", range(4))
def test_pivots_give_back_the_words_of_exact_moments(seed: int) -> None:
    _, words, moments = exact_model(seed)
    found = pivot_start(sparse.csr_matrix(moments), 4, 0.0, 0)
    states = [int(np.argmax(found.words[h])) for h in range(4)]
    assert sorted(states) == [0, 1, 2, 3]
    # The weights stop at 1e-8 of the simplex's size; its condition is below 1e3.
    np.testing.assert_allclose(found.words[:, states], words, atol=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_pivot_estimation_of_exact_moments_reaches_their_entropy(seed: int) -> None:
    contexts, words, moments = exact_model(seed)
    bigrams = sparse.csr_matrix(moments)
    now = pivot_start(bigrams, 4, 0.0, 0)
    for _ in range(2000):
        now, reached = em_step(bigrams, now, 0.0, words_too=False)
    entropy = -float((moments * np.log(contexts @ words.T)).sum())
    # EM nears a maximum on the boundary only as 1/steps.
    assert -reached / EVENTS == pytest.approx(entropy / EVENTS, abs=5e-4)


def test_pivot_likelihood_is_concave_so_starts_do_not_matter() -> None:
    bigrams = Vocabulary.of(TRAIN).bigrams(TRAIN)
    start = pivot_start(bigrams, 3, 1.0, 0)
    other = symmetric_start(bigrams, 3, 5).contexts
    reached = []
    for contexts in (start.contexts, other):
        now = Distributions(contexts, start.words, start.prior)
        for _ in range(1500):
            now, objective = em_step(bigrams, now, 1.0, words_too=False)
        reached.append(objective)
    assert reached[0] == pytest.approx(reached[1], rel=1e-6)  # the steps still gain 1e-7


# Trained models


@pytest.mark.parametrize("estimator", ["em", "pivot", "pivot+em"])
@pytest.mark.parametrize("prior", [0.5, 3.0])
def test_trained_distributions_sum_to_one(estimator: EstimatorName, prior: float) -> None:
    trained = train_lm(TRAIN, DEV, EstimationOptions(estimator, states=3, prior=prior))
    for context in (None, "w0", "never seen", *trained.vocabulary.words):
        probabilities = trained.probabilities(context)
        assert probabilities.min() >= 0
        assert probabilities.sum() == pytest.approx(1, abs=SUMS)
    assert trained.contexts.shape == (len(trained.vocabulary.words) + 1, 3)


@pytest.mark.parametrize("estimator", ["em", "pivot", "pivot+em"])
def test_trained_models_beat_unigrams(estimator: EstimatorName) -> None:
    unigrams = train_lm(TRAIN, DEV, EstimationOptions("em", states=1)).perplexity(TEST)
    trained = train_lm(TRAIN, DEV, EstimationOptions(estimator, states=3)).perplexity(TEST)
    assert trained < 0.9 * unigrams  # the model the text is from reaches about half of it


def test_perplexity_equals_its_slow_twin(model: LanguageModel) -> None:
    text = [*TEST, ["never", "w1", "seen", "w2", "w1"], [], ["w3"]]
    numbers = {word: number for number, word in enumerate(model.vocabulary.words)}
    logs = []
    for sentence in text:
        before = len(numbers)
        for word in sentence:
            number = numbers.get(word, 0)
            if number:
                terms = zip(model.contexts[before], model.words[number], strict=True)
                logs.append(math.log(math.fsum(r * s for r, s in terms)))
            before = number
    assert model.perplexity(text) == pytest.approx(math.exp(-math.fsum(logs) / len(logs)), rel=TWIN)


def test_the_order_of_sentences_does_not_matter(model: LanguageModel) -> None:
    assert model.perplexity(TEST[::-1]) == model.perplexity(TEST)


def test_an_impossible_word_makes_the_perplexity_infinite() -> None:
    contexts = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    words = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    trained = LanguageModel(Vocabulary((UNKNOWN, "a", "b")), contexts, words, PLAIN)
    assert trained.perplexity([["b", "b"]]) == 1.0
    with np.errstate(all="raise"):
        assert trained.perplexity([["b", "a"]]) == math.inf


@pytest.mark.parametrize("estimator", ["em", "pivot", "pivot+em"])
def test_the_model_is_that_of_the_best_step(estimator: EstimatorName) -> None:
    steps: list[Step] = []
    trained = train_lm(
        TRAIN, DEV, EstimationOptions(estimator, states=4, prior=0.1), on_step=steps.append
    )
    last = [step for step in steps if step.words_too == (estimator != "pivot")]
    best = min(last, key=lambda step: step.dev_perplexity)
    record = trained.training
    assert (record.steps or record.pivot_steps) == best.number
    assert record.dev_perplexity == best.dev_perplexity == trained.perplexity(DEV)
    assert [step.number for step in last] == list(range(1, len(last) + 1))


@pytest.mark.parametrize("estimator", ["em", "pivot", "pivot+em"])
def test_a_seed_fixes_the_model(estimator: EstimatorName) -> None:
    first, second = (
        train_lm(TRAIN, DEV, EstimationOptions(estimator, states=3, seed=7)) for _ in range(2)
    )
    np.testing.assert_array_equal(first.contexts, second.contexts)
    np.testing.assert_array_equal(first.words, second.words)


def test_other_seeds_start_em_elsewhere() -> None:
    first, second = (
        train_lm(TRAIN, DEV, EstimationOptions("em", states=3, seed=seed)) for seed in (0, 1)
    )
    assert not np.array_equal(first.words, second.words)


def test_perplexities_on_brown_reach_the_papers(treebanks: Path) -> None:
    """Within 5 % of 364 (EM) and 357 (pivot+EM), the paper's best, at an eighth of its states."""
    folder = treebanks / "brown"
    train, dev, test = (read_sentences(folder / f"{name}.txt") for name in ("train", "dev", "test"))
    chosen_on = dev[: len(dev) // 2]
    em = train_lm(train, chosen_on, EstimationOptions("em", states=32))
    pivot = train_lm(train, chosen_on, EstimationOptions("pivot+em", states=32))
    assert em.perplexity(test) <= 1.05 * 364
    assert pivot.perplexity(test) <= 1.05 * 357
    assert pivot.training.steps <= 2 < em.training.steps


# Kneser-Ney


class SlowKneserNey:
    """The formula, recursive, over dictionaries of counts (slow twin)."""

    def __init__(self, sentences: Sequence[Sequence[str]], order: int) -> None:
        frequent = Counter(word for sentence in sentences for word in sentence)
        self.known = {word for word, count in frequent.items() if count >= 2}
        self.size = len(self.known) + 1
        padded = [("<s>", *map(self.fold, sentence)) for sentence in sentences]
        self.counts: dict[int, Counter[tuple[str, ...]]] = {}
        for n in range(1, order + 1):
            grams = [s[i : i + n] for s in padded for i in range(len(s) - n + 1)]
            raw = Counter(gram for gram in grams if gram != ("<s>",))
            if n == order:
                self.counts[n] = raw
                continue
            longer = {s[i : i + n + 1] for s in padded for i in range(len(s) - n)}
            before = Counter(gram[1:] for gram in longer)
            before.update({gram: c for gram, c in raw.items() if gram[0] == "<s>"})
            self.counts[n] = before

    def fold(self, word: str) -> str:
        return word if word in self.known else UNKNOWN

    def probability(self, context: tuple[str, ...], word: str) -> float:
        n = len(context) + 1
        below = self.probability(context[1:], word) if context else 1 / self.size
        after = {g[-1]: c for g, c in self.counts[n].items() if g[:-1] == context}
        if not after:
            return below
        once, twice = (sum(c == k for c in self.counts[n].values()) for k in (1, 2))
        discount = once / (once + 2 * twice) if once else 0.5
        total = sum(after.values())
        kept = max(after.get(word, 0) - discount, 0)
        return kept / total + discount * len(after) / total * below


SMALL = TRAIN[:40]


@pytest.mark.parametrize("order", [1, 2, 3])
def test_kneser_ney_equals_its_slow_twin(order: int) -> None:
    fast, slow = KneserNey.train(SMALL, order=order), SlowKneserNey(SMALL, order)
    text = [*TEST[:6], ["never", "w1", "seen", "w2"]]
    logs = []
    for sentence in text:
        history = ("<s>", *map(slow.fold, sentence))
        for i, word in enumerate(history[1:], start=1):
            if word != UNKNOWN:
                context = history[max(0, i - order + 1) : i]
                logs.append(math.log(slow.probability(context, word)))
    assert fast.perplexity(text) == pytest.approx(math.exp(-math.fsum(logs) / len(logs)), rel=TWIN)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_kneser_ney_sums_to_one_after_any_context(order: int) -> None:
    trained = KneserNey.train(SMALL, order=order)
    start, noise = trained.vocabulary.start, np.random.default_rng(order)
    contexts = noise.integers(0, start, (60, order - 1))
    seen = trained.vocabulary.encode(SMALL)
    contexts[:20] = [words[: order - 1] for words in seen[:20]]
    if order > 1:
        contexts[20, -1] = start
        contexts[20, :-1] = BEFORE_START
    everything = np.arange(start)
    for context in contexts:
        windows = np.column_stack((np.tile(context, (start, 1)), everything))
        probabilities = trained.probabilities(windows)
        assert probabilities.min() > 0
        assert probabilities.sum() == pytest.approx(1, abs=SUMS)


def test_longer_contexts_help() -> None:
    one, two = (KneserNey.train(TRAIN, order=order).perplexity(TEST) for order in (1, 2))
    assert two < one


def test_kneser_ney_refuses_impossible_orders() -> None:
    with pytest.raises(SettingsError, match=r"expected an order from 1 .* got 0"):
        KneserNey.train(TRAIN, order=0)
    with pytest.raises(SettingsError, match="got 60"):
        KneserNey.train(TRAIN, order=60)
    with pytest.raises(InputError, match="expected a known word to score, got 2 words"):
        KneserNey.train(TRAIN, order=2).perplexity([["never", "seen"]])


# Words


def test_rare_and_marked_words_are_unknown() -> None:
    vocabulary = Vocabulary.of([["b", "a", "a", "b", "once", UNKNOWN, UNKNOWN, "c", "c", "c"]])
    assert vocabulary.words == (UNKNOWN, "c", "a", "b")
    encoded = vocabulary.encode([["a", "once", "never", UNKNOWN], []])
    assert [list(numbers) for numbers in encoded] == [[2, 0, 0, 0], []]


def test_bigrams_begin_every_sentence_anew() -> None:
    vocabulary = Vocabulary((UNKNOWN, "a", "b"))
    table = vocabulary.bigrams([["a", "b", "b"], ["b"], [], ["x", "a"]]).toarray()
    expected = np.zeros((4, 3))
    for w1, w2 in ((3, 1), (1, 2), (2, 2), (3, 2), (3, 0), (0, 1)):
        expected[w1, w2] += 1
    np.testing.assert_array_equal(table, expected)
    scored = vocabulary.scored_bigrams([["a", "b", "b"], ["b"], [], ["x", "a"]]).toarray()
    np.testing.assert_array_equal(scored, expected * [0, 1, 1])


def test_bigrams_count_every_word_once() -> None:
    table = Vocabulary.of(TRAIN).bigrams(TRAIN)
    assert table.sum() == sum(len(sentence) for sentence in TRAIN)
    pairs = Counter(pair for sentence in TRAIN for pair in pairwise(sentence))
    numbers = Vocabulary.of(TRAIN)
    for (w1, w2), count in pairs.most_common(20):
        assert table[numbers.number(w1), numbers.number(w2)] == count


def test_sentences_are_lines_of_tokens(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes("The dog  barks .\r\n\n \tÜber 1/2\n".encode())
    assert read_sentences(path) == [["The", "dog", "barks", "."], ["Über", "1/2"]]
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + path.read_bytes()))
    assert read_sentences(path) == [["The", "dog", "barks", "."], ["Über", "1/2"]]


# Storage


def test_a_stored_model_comes_back_the_same(model: LanguageModel, tmp_path: Path) -> None:
    model.save(tmp_path / "lm.npz")
    loaded = LanguageModel.load(tmp_path / "lm.npz")
    np.testing.assert_array_equal(loaded.contexts, model.contexts)
    np.testing.assert_array_equal(loaded.words, model.words)
    assert loaded.vocabulary == model.vocabulary
    assert loaded.training == model.training
    loaded.save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "lm.npz").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.npz", "lm.npz"]


def test_torn_and_altered_files_are_refused(model: LanguageModel, tmp_path: Path) -> None:
    path = tmp_path / "lm.npz"
    model.save(path)
    whole = path.read_bytes()
    for size in (0, 10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(StoreError, match=r"torn or foreign file: name one that"):
            LanguageModel.load(path)


def test_a_single_array_is_refused_as_a_model(tmp_path: Path) -> None:
    np.save(tmp_path / "array.npy", np.ones(3))
    with pytest.raises(StoreError, match=r"expected a language model in .*, got a torn"):
        LanguageModel.load(tmp_path / "array.npy")


def test_text_is_refused_as_a_model_with_a_clear_message(tmp_path: Path) -> None:
    path = tmp_path / "trees.mrg"
    path.write_text("(S (NP (DT The) (NN dog)) (VP (VBZ sleeps)))\n", encoding="utf-8")
    with pytest.raises(StoreError) as caught:
        LanguageModel.load(path)
    assert str(caught.value) == (
        f"expected a language model in {path}, got a torn or foreign file: name one that "
        "`lpcfg lm train` wrote, or train the model again"
    )


def test_an_altered_byte_is_refused_or_changes_nothing(tmp_path: Path) -> None:
    """A zip archive has bytes that mean nothing, such as times; any other is noticed."""
    path = tmp_path / "lm.npz"
    model = train_lm(
        [["a", "b", "a", "b"]], [["a"]], EstimationOptions("em", states=1, max_steps=1)
    )
    model.save(path)
    whole, refused = path.read_bytes(), 0
    for position in range(len(whole)):
        altered = bytearray(whole)
        altered[position] ^= 1 << position % 7
        path.write_bytes(altered)
        try:
            loaded = LanguageModel.load(path)
        except StoreError:
            refused += 1
        else:
            np.testing.assert_array_equal(loaded.contexts, model.contexts)
            np.testing.assert_array_equal(loaded.words, model.words)
            assert (loaded.vocabulary, loaded.training) == (model.vocabulary, model.training)
    assert refused > len(whole) / 2


def rewrite(path: Path, **changes: object) -> None:
    """Write the file again with other arrays; a text stands for its header."""
    with np.load(path) as file:
        arrays = dict(file)
    for name, value in changes.items():
        if value is None:
            del arrays[name]
        elif isinstance(value, str):
            arrays[name] = np.frombuffer(value.encode(), dtype=np.uint8)
        else:
            arrays[name] = np.asarray(value)
    np.savez(path, **arrays)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"words": np.ones((2, 2))}, r"expected `words` of shape \(\d+, 3\) .* got \(2, 2\)"),
        ({"contexts": np.ones((2, 3), np.float32)}, r"expected `contexts` .* and float32"),
        ({"contexts": None}, "torn or foreign file"),
        ({"header": "{"}, "wrong header at ``"),
        ({"header": "[]"}, "wrong header"),
        ({"words": np.array([object()])}, "torn or foreign file"),
    ],
)
def test_contradictory_files_are_refused(
    model: LanguageModel, tmp_path: Path, changes: dict[str, object], problem: str
) -> None:
    path = tmp_path / "lm.npz"
    model.save(path)
    rewrite(path, **changes)
    with pytest.raises(StoreError, match=problem):
        LanguageModel.load(path)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"format":1', '"format":2', "wrong header at `format`: Input should be 1"),
        ('"states":3', '"states":4', r"expected `contexts` of shape \(\d+, 4\)"),
        ('"states":3', '"states":"3"', r"wrong header at `training\.states`"),
        ('"seed":0,', "", r"wrong header at `training\.seed`: Field required"),
        ('"<unk>"', '"<UNK>"', "expected distinct words, the first `<unk>`"),
        ('"w1"', '"w2"', "expected distinct words"),
    ],
)
def test_wrong_headers_are_refused(
    model: LanguageModel, tmp_path: Path, old: str, new: str, problem: str
) -> None:
    path = tmp_path / "lm.npz"
    model.save(path)
    with np.load(path) as file:
        header = file["header"].tobytes().decode()
    assert old in header
    rewrite(path, header=header.replace(old, new))
    with pytest.raises(StoreError, match=problem):
        LanguageModel.load(path)


@pytest.mark.parametrize("name", ["contexts", "words"])
@pytest.mark.parametrize("value", [-0.5, math.nan, 2.0])
def test_tables_that_are_not_distributions_are_refused(
    model: LanguageModel, tmp_path: Path, name: str, value: float
) -> None:
    path = tmp_path / "lm.npz"
    model.save(path)
    table = getattr(model, name).copy()
    table[1, 1] = value
    rewrite(path, **{name: table})
    with pytest.raises(StoreError, match=f"expected `{name}` to hold distributions"):
        LanguageModel.load(path)


def test_absent_and_unwritable_paths_are_named(model: LanguageModel, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"'No such file or directory' at .*absent\.npz: check"):
        LanguageModel.load(tmp_path / "absent.npz")
    with pytest.raises(StoreError, match=r"cannot write the language .*lm\.npz: No such.*: check"):
        model.save(tmp_path / "absent" / "lm.npz")


# Bad input


def test_files_without_sentences_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    for content in (b"", b"\n \n"):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"one a line, in .*text\.txt, got no word: check"):
            read_sentences(path)
    path.write_bytes(b"fine\n\xff\n")
    with pytest.raises(InputError, match=r"\.txt:2:1: expected UTF-8, got the byte 0xff"):
        read_sentences(path)
    path.write_bytes(b"\x1f\x8b torn")
    with pytest.raises(
        InputError, match=r"whole compressed file, got a damaged one .*text\.txt: copy"
    ):
        read_sentences(path)
    with pytest.raises(InputError, match=r"readable file, got 'Is a directory' at .*: check"):
        read_sentences(tmp_path)


def test_a_text_of_one_word_has_a_model() -> None:
    trained = train_lm([["a", "a"]], [["a"]], EstimationOptions("pivot+em", states=1))
    assert trained.perplexity([["a", "a", "a"]]) == pytest.approx(1, abs=SUMS)


@pytest.mark.parametrize("text", [[], [["a", "b"], ["c"]], [[UNKNOWN, UNKNOWN]]])
def test_text_of_rare_words_only_is_refused(text: list[list[str]]) -> None:
    with pytest.raises(TrainingError, match="expected a word that occurs at least 2 times, none"):
        train_lm(text, DEV, EstimationOptions(states=1))


@pytest.mark.parametrize("estimator", ["em", "pivot", "pivot+em"])
def test_more_states_than_words_are_refused(estimator: EstimatorName) -> None:
    with pytest.raises(TrainingError, match=r"expected at most 2 states, the size .* got 3"):
        train_lm([["a", "a"]], [["a"]], EstimationOptions(estimator, states=3))


def test_more_states_than_the_text_has_pivots_are_refused() -> None:
    with pytest.raises(TrainingError, match="ask for"):
        train_lm([["a", "a"]], [["a"]], EstimationOptions("pivot", states=2))


def test_development_text_of_unknown_words_is_refused(model: LanguageModel) -> None:
    for text in ([["never", "seen"]], [], [[]]):
        words = sum(map(len, text))
        with pytest.raises(InputError, match=f"a known word to score, got {words} words, all unk"):
            train_lm(TRAIN, text, EstimationOptions(states=2))
        with pytest.raises(InputError, match="expected a known word to score"):
            model.perplexity(text)


@pytest.mark.parametrize(
    ("setting", "value", "problem"),
    [
        ("estimator", "spectral", r"expected an estimator of em, pivot, pivot\+em, got 'spectral'"),
        ("states", 0, "expected `states` of at least 1, got 0"),
        ("seed", -1, "expected `seed` of at least 0, got -1: raise it"),
        ("min_count", 0, "expected `min_count` of at least 1, got 0"),
        ("max_steps", 0, "expected `max_steps` of at least 1, got 0"),
        ("prior", -1.0, "expected a finite `prior` of at least 0, got -1"),
        ("prior", math.nan, "expected a finite `prior` of at least 0, got nan"),
        ("prior", math.inf, "expected a finite `prior` of at least 0, got inf"),
    ],
)
def test_wrong_options_are_refused(setting: str, value: object, problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        EstimationOptions(**{setting: value})  # type: ignore[arg-type]
