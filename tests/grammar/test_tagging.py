"""Tags in context: features, rounding, training, and the say they have in emissions."""

import math
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lpcfg.base.errors import GrammarError, TrainingError
from lpcfg.grammar import lexicon
from lpcfg.grammar.lexicon import Emitter, Lexicon
from lpcfg.grammar.tables import Emissions
from lpcfg.grammar.tagging import TEMPLATES, TagModel, codes, shape
from lpcfg.kinds.constituency.model import Model, from_bundle, to_bundle
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.training import tagger
from lpcfg.training.data.treebank import Forest, forest_of, lexicon_of
from lpcfg.training.stages import Stage, silent
from lpcfg.trees.binarize import binarize
from lpcfg.trees.brackets import read_string
from lpcfg.trees.normalize import normalize
from tests import small_models

SENTENCE = ("The", "dog", "saw", "a", "Zebra-like", "cat", "in", "1984", ".")
TAGS = ("A", "B", "C")


def random_model(rows: int = 64, gamma: float = 0.5) -> TagModel:
    weight = np.random.default_rng(7).standard_normal((rows, len(TAGS)))
    return TagModel.rounded(TAGS, frozenset({"dog", "the"}), weight.astype(np.float32), gamma)


# A slow twin ------------------------------------------------------------------------------------


def crc(text: str) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


def facts(word: str, known: bool) -> dict[str, int]:
    """Compute a word's codes as the documentation describes them."""
    low, looks = word.lower(), "s " + shape(word)
    found = {"word": "w " + word if known else looks, "lower": "l " + low if known else "s"}
    found |= {f"last{n}": f"-{n} {low[max(len(low) - n, 0) :]}" for n in (1, 2, 3, 4, 5)}
    found |= {f"first{n}": f"+{n} {low[0:n]}" for n in (1, 2, 3)}
    return {name: crc(fact) for name, fact in (found | {"shape": looks}).items()}


FEATURES = """
0 word; 0 lower; 0 last1; 0 last2; 0 last3; 0 last4; 0 last5; 0 first1; 0 first2; 0 first3; 0 shape
-1 word; -1 shape; -1 last3; 1 word; 1 shape; 1 last3
-1 shape 0 shape; 1 shape 0 shape; -2 word; 2 word
-1 word 0 lower; 1 word 0 lower; -1 word 1 word
-1 last2 0 last3; 1 last2 0 last3; always
0 class; -1 class; 1 class; 0 class 0 shape; 0 class 0 last2; -1 class 1 class
"""
ALL_FEATURES = FEATURES.strip().replace("\n", ";").split(";")
CLASSES = {"dog": 3, "zebra-like": 0, "0000": 7}


def slow_shares(model: TagModel, words: tuple[str, ...]) -> list[list[float]]:
    """Compute p(t | x, neighbours) in Python's own numbers."""
    said = {i: facts(word, word in model.frequent) for i, word in enumerate(words)}
    for i, word in enumerate(words):
        number = model.classes.get("".join("0" if c.isdecimal() else c for c in word.lower()))
        said[i]["class"] = 0 if number is None else crc(f"c {number}")
    features = ALL_FEATURES if model.classes else ALL_FEATURES[:27]
    result = []
    for i in range(len(words)):
        total = [0.0] * len(model.tags)
        for k, line in enumerate(features):
            parts = line.split() if line.strip() != "always" else []
            pairs = zip(parts[::2], parts[1::2], strict=True)
            found = [said.get(i + int(offset), {}).get(name, 0) for offset, name in pairs]
            one, other = (*found, 0, 0)[:2]
            mixed = (one * 2654435761 + other * 2246822519 + k * 3266489917) % 2**48
            mixed ^= mixed // 2**17
            mixed = mixed * 2654435761 % 2**48
            mixed ^= mixed // 2**15
            row = mixed % len(model.weight)
            for t in range(len(total)):
                total[t] += float(model.weight[row, t]) * float(model.scale[row])
        powers = [math.exp(value) for value in total]
        result.append([power / sum(powers) for power in powers])
    return result


@given(st.lists(st.text(min_size=1), max_size=5), st.integers(0, 10))
def test_shares_are_those_of_the_slow_twin(words: list[str], bits: int) -> None:
    model = random_model(rows=1 << bits)
    words = [*words, "dog", "Dog"]
    found = np.exp(model.log_shares(words))
    # scores are sums of 27 float32 numbers below 4: each rounds by 2⁻²⁴ of at most 108
    np.testing.assert_allclose(found, slow_shares(model, tuple(words)), rtol=27 * 108 * 2.0**-24)


@pytest.mark.parametrize("words", [SENTENCE, ("1984",), ("unheard", "of")])
def test_shares_with_classes_are_those_of_the_slow_twin(words: tuple[str, ...]) -> None:
    model = replace(random_model(rows=256), classes=CLASSES)
    found = np.exp(model.log_shares(words))
    # 33 numbers, as above
    np.testing.assert_allclose(found, slow_shares(model, words), rtol=33 * 132 * 2.0**-24)
    assert np.abs(found - np.exp(random_model(rows=256).log_shares(words))).max() > 1e-3


def test_every_template_is_in_the_twin_once() -> None:
    assert len(TEMPLATES) == len(set(map(tuple, TEMPLATES.tolist()))) == len(ALL_FEATURES) == 33


def test_a_word_that_is_not_frequent_has_no_features_of_its_own() -> None:
    assert codes("cat", True)[:2] != codes("bat", True)[:2]
    assert codes("cat", False)[:2] == codes("rug", False)[:2]
    assert codes("cat", False)[2:] == codes("cat", True)[2:]
    assert codes("cat", False)[0] == codes("cat", False)[-1] == crc("s l")


def test_no_words_have_no_shares() -> None:
    assert random_model().log_shares(()).shape == (0, 3)


# Rounding ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e-9, 1e-3, 1.0, 1e3])
def test_weights_are_rounded_by_half_a_step_of_their_row(size: float) -> None:
    weight = np.random.default_rng(3).standard_normal((256, 5)).astype(np.float32) * size
    weight[7] = 0.0
    model = TagModel.rounded(tuple("abcde"), frozenset(), weight.astype(np.float32), 0.5)
    assert (model.weight.dtype, model.scale.dtype) == (np.int8, np.float16)
    step = model.scale.astype(np.float64)[:, None]
    # a scale is a 127th of the largest, rounded to float16 (2⁻¹¹), or the smallest normal one
    largest = np.abs(weight).max(axis=1, keepdims=True)
    assert (step <= np.maximum(largest / 127 * (1 + 2.0**-11), 2.0**-14)).all()
    # 2⁻²⁴ · 127: the quotient is rounded to float32 before it is to a whole number
    assert (np.abs(model.weight * step - weight) <= (0.5 + 2.0**-17) * step).all()
    assert not model.weight[7].any()


@pytest.mark.parametrize(("rows", "scales", "tags"), [(3, 3, 3), (4, 2, 3), (4, 4, 2), (0, 0, 3)])
def test_weights_of_another_shape_are_refused(rows: int, scales: int, tags: int) -> None:
    message = r"expected weights of 3 tags in a power of two of rows.*: publish the model again"
    with pytest.raises(GrammarError, match=message):
        TagModel(
            TAGS, frozenset(), np.zeros((rows, tags), np.int8), np.ones(scales, np.float16), 0.5
        )


# Training ---------------------------------------------------------------------------------------

# `set` is a noun after `the` and a verb after `they`, both equally often
TOY = """
(S (NP (DT the) (NN set)) (VP (VB ends)))
(S (NP (PRP they)) (VP (VB set) (NP (NN tables))))
(S (NP (DT the) (NN dog)) (VP (VB barks)))
(S (NP (PRP they)) (VP (VB see) (NP (DT the) (NN dog))))
"""


def forest(text: str) -> Forest:
    trees = filter(None, map(normalize, read_string(text, source="toy")))
    return forest_of(map(binarize, trees))


@cache
def toy() -> tuple[Forest, Lexicon, TagModel]:
    bank = forest(TOY * 20)
    words = lexicon_of(bank, rare_threshold=3, language="english")
    return bank, words, learned(bank)


def learned(bank: Forest, seed: int = 1) -> TagModel:
    stage = Stage("tagger", 0, silent)
    return tagger.learn_tagger(bank, seed=seed, stage=stage, rows=1 << 10).model()


def tagged(model: TagModel, *words: str) -> list[str]:
    return [model.tags[t] for t in model.log_shares(words).argmax(axis=1)]


def test_a_rule_of_context_is_learned_exactly() -> None:
    model = toy()[2]
    assert tagged(model, "the", "set", "ends") == ["DT", "NN", "VB"]
    assert tagged(model, "they", "set", "tables") == ["PRP", "VB", "NN"]
    assert tagged(model, "they", "see", "the", "set") == ["PRP", "VB", "DT", "NN"]
    assert np.exp(model.log_shares(("they", "set", "tables"))[1].max()) > 0.99


def test_the_loss_falls_in_every_epoch() -> None:
    bank, words, _ = toy()
    leaves = np.flatnonzero(bank.is_leaf)
    word, gold = bank.word[leaves], words.tag_of[bank.symbol[leaves]]
    start = np.searchsorted(bank.tree[leaves], np.arange(bank.n_trees + 1))
    coded = np.array([codes(w, True) for w in bank.words])
    weight, squares = np.zeros((256, len(words.tags)), np.float32), np.ones(256, np.float32)
    order = np.arange(bank.n_trees)
    losses = [
        tagger.learn_epoch(
            weight, squares, coded, word, gold, start, order, 5, 0.4, len(words.tags)
        )
        for _ in range(5)
    ]
    assert losses == sorted(losses, reverse=True)
    assert losses[0] < math.log(len(words.tags))  # what is lost without learning
    assert losses[-1] < 0.2 * losses[0]


def test_powers_are_those_of_the_library_but_for_their_rounding() -> None:
    x = np.linspace(-100, 3, 2001).astype(np.float32)
    found = x.copy()
    tagger.powers(found, 3.0)
    # z⁴/24 is left out of (1 + z + …)²⁵⁶, so it is wrong by 256 z⁴/24 with z = x/256: 4e-4 at −20
    expected = np.exp(np.maximum(x.astype(np.float64) - 3, -60))
    near = x > -17
    np.testing.assert_allclose(found[near], expected[near], rtol=5e-4)
    np.testing.assert_allclose(found, expected, rtol=0.04)
    assert found[-1] == 1


def test_a_tagger_goes_on_from_what_a_part_has_taught() -> None:
    part = forest("".join(tree for tree in TOY.splitlines() if "they" not in tree) * 20)
    bank, words, anew = toy()
    stage = Stage("tagger", 0, silent)
    first = tagger.learn_tagger(part, seed=1, stage=stage, rows=1 << 10)
    before = stage.items
    found = tagger.learn_tagger(bank, seed=1, stage=stage, rows=1 << 10, before=first)
    assert stage.items - before == 2 * bank.is_leaf.sum()
    model = found.model()
    assert (first.tags, found.tags) == (("DT", "NN", "VB"), ("DT", "NN", "PRP", "VB"))
    assert tagged(model, "they", "set", "tables") == ["PRP", "VB", "NN"]
    # it starts where the part has led it, and does not change that
    start = tagger.TaggerState.start(bank, words.tags, 1 << 10, None, first)
    for column, tag in enumerate(first.tags):
        moved = start.weight[:, words.tags.index(tag)]
        np.testing.assert_array_equal(moved, first.weight[:, column])
    assert not start.weight[:, len(words.tags) :].any()
    np.testing.assert_array_equal(start.squares, first.squares)
    assert (found.squares > first.squares).any()
    assert model.weight.shape == anew.weight.shape


def test_numbers_that_fill_rows_of_weights_stay_zero() -> None:
    bank, words, _ = toy()
    stage = Stage("tagger", 0, silent)
    found = tagger.learn_tagger(bank, seed=1, stage=stage, rows=1 << 10)
    assert found.weight.shape[1] == tagger.WIDTH > len(words.tags)
    assert found.weight[:, : len(words.tags)].any()
    assert not found.weight[:, len(words.tags) :].any()


def test_the_number_of_tokens_decides_the_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    bank = toy()[0]
    size = int(bank.is_leaf.sum())
    for tokens, epochs in ((0, 3), (5 * size, 5), (100 * size, 8)):
        monkeypatch.setattr(tagger, "TOKENS", tokens)
        stage = Stage("tagger", 0, silent)
        tagger.learn_tagger(bank, seed=1, stage=stage, rows=4)
        assert stage.items == epochs * size


def same(one: TagModel, other: TagModel) -> bool:
    return (one.weight.tobytes(), one.scale.tobytes(), one.gamma, one.tags, one.frequent) == (
        other.weight.tobytes(), other.scale.tobytes(), other.gamma, other.tags, other.frequent,
    )  # fmt: skip


def test_a_seed_gives_the_same_bytes_in_any_thread() -> None:
    bank, _, model = toy()
    with ThreadPoolExecutor(3) as pool:
        for other in pool.map(lambda _: learned(bank), range(6)):
            assert same(model, other)
    assert not same(model, learned(bank, seed=2))


# Emissions --------------------------------------------------------------------------------------


def small() -> tuple[Model, TagModel]:
    model = small_models.counts()
    assert model.tagger is not None
    return model, model.tagger


def rows(emissions: Emissions, i: int) -> dict[int, tuple[int, float]]:
    at = slice(emissions.start[i], emissions.start[i + 1])
    found = (emissions.symbol[at], emissions.entry[at], emissions.weight[at])
    symbols, entries, weights = (part.tolist() for part in found)
    return dict(zip(symbols, zip(entries, weights, strict=True), strict=True))


def test_a_tagger_of_weight_zero_leaves_the_lexicons_emissions() -> None:
    model, tags = small()
    alone = Emitter(model.grammar, model.lexicon)(SENTENCE)
    found = Emitter(model.grammar, model.lexicon, replace(tags, gamma=0.0))(SENTENCE)
    np.testing.assert_array_equal(found.start, alone.start)
    np.testing.assert_array_equal(found.symbol, alone.symbol)
    np.testing.assert_array_equal(found.entry, alone.entry)
    # exponentials of logarithms of float64 numbers
    np.testing.assert_allclose(found.weight, alone.weight, rtol=1e-13)


def test_weights_are_the_lexicons_with_the_tag_shares_of_the_mixture() -> None:
    """Every p(a | x) over the lexicon's own is q(t) / p(t | x), the same for all chains of t."""
    model, tags = small()
    words = model.lexicon
    context = np.exp(tags.log_shares(SENTENCE))
    found = Emitter(model.grammar, words, tags)(SENTENCE)
    for i, word in enumerate(SENTENCE):
        _, counts = words._weighted_counts(word)
        share = words._shares(counts, words._signature(word), None)
        of_tag = np.bincount(words.tag_of, share, len(words.tags))
        mixed = context[i] ** tags.gamma * of_tag ** (1 - tags.gamma)
        mixed = (1 - lexicon.LEXICON_SHARE) * mixed / mixed.sum() + lexicon.LEXICON_SHARE * of_tag
        expected = share * (mixed / of_tag)[words.tag_of]
        kept = expected > lexicon.LEAST_SHARE * expected.max()
        seen = max(counts.sum(), lexicon.UNKNOWN_PSEUDO_COUNT)
        emitted = rows(found, i)
        assert sorted(emitted) == np.flatnonzero(kept).tolist(), word
        for a, (_, weight) in emitted.items():
            # scores are float32 sums, as above
            wanted = expected[a] * seen / words.symbol_count[a]
            assert weight == pytest.approx(wanted, rel=1e-3), (word, a)


def test_entries_are_the_words_own_or_those_of_any_word() -> None:
    model, tags = small()
    found = Emitter(model.grammar, model.lexicon, tags)(SENTENCE)
    alone = Emitter(model.grammar, model.lexicon)
    every = [alone([word], [tag]) for word in SENTENCE for tag in model.lexicon.tags]
    for i in range(len(SENTENCE)):
        size = len(model.lexicon.tags)
        known = {
            a: e for one in every[i * size : (i + 1) * size] for a, (e, _) in rows(one, 0).items()
        }
        assert all(known[a] == entry for a, (entry, _) in rows(found, i).items())


def test_a_callers_tag_decides_alone() -> None:
    model, tags = small()
    given = (None, "VB", None, "DT", "NN", None, "no such tag", "", None)
    found = Emitter(model.grammar, model.lexicon, tags)(SENTENCE, given)
    alone = Emitter(model.grammar, model.lexicon)(SENTENCE, given)
    untagged = Emitter(model.grammar, model.lexicon, tags)(SENTENCE)
    for i, tag in enumerate(given):
        other = alone if tag in model.lexicon.tag_ids else untagged
        assert rows(found, i) == rows(other, i), tag


def test_no_words_have_no_emissions() -> None:
    model, tags = small()
    found = Emitter(model.grammar, model.lexicon, tags)([])
    assert (found.start.tolist(), len(found.symbol)) == ([0], 0)


def test_a_tag_model_remembers_a_bounded_number_of_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexicon, "CACHED_WORDS", 3)
    model, tags = small()
    emit = Emitter(model.grammar, model.lexicon, tags)
    first, again = (emit([f"w{k}" for k in range(10)]) for _ in range(2))
    np.testing.assert_array_equal(first.weight, again.weight)
    assert emit._context_emitter is not None
    assert len(emit._context_emitter._cache) <= 3


def test_several_threads_get_the_results_of_one() -> None:
    model, tags = small()
    emit = Emitter(model.grammar, model.lexicon, tags)
    sentences = [tuple(tree.tokens()) for tree in small_models.trees()]
    expected = [Emitter(model.grammar, model.lexicon, tags)(words) for words in sentences]
    with ThreadPoolExecutor(4) as pool:
        for found, one in zip(pool.map(emit, sentences * 5), expected * 5, strict=True):
            np.testing.assert_array_equal(found.weight, one.weight)
            np.testing.assert_array_equal(found.entry, one.entry)


def test_trees_and_sentences_are_scored_with_the_same_weights() -> None:
    """Over all its trees, p(tree | sentence) sums to no more than one, and the best has a share."""
    parser = Parser(small_models.counts())
    for tree in small_models.trees()[:10]:
        (scored,) = parser.tree_probability([tree])
        assert scored.conditional_log_probability is not None
        # sums of a few hundred float64 terms
        assert scored.conditional_log_probability <= 1e-9


@pytest.mark.parametrize("rare_threshold", [0, 3])
def test_a_tag_model_of_another_lexicon_is_refused(rare_threshold: int) -> None:
    model = small_models.counts(rare_threshold=rare_threshold)
    assert (model.tagger is None) == (rare_threshold == 0)
    message = r"expected a tag model of the lexicon's \d+ tags and a lexicon that is not literal"
    with pytest.raises(GrammarError, match=message):
        Emitter(model.grammar, model.lexicon, random_model())


# Storage ----------------------------------------------------------------------------------------


def test_a_stored_model_tags_as_before() -> None:
    model, tags = small()
    back = from_bundle(to_bundle(model, facts={}, card="")).tagger
    assert back is not None
    assert same(back, tags)
    np.testing.assert_array_equal(back.log_shares(SENTENCE), tags.log_shares(SENTENCE))
    assert tags.weight.nbytes + tags.scale.nbytes <= tagger.ROWS * (len(tags.tags) + 2)


# Classes ----------------------------------------------------------------------------------------


def test_files_of_classes_are_read_and_malformed_lines_named(tmp_path: Path) -> None:
    path = tmp_path / "classes.txt"
    path.write_text("rain\t3\n00\t0\n", encoding="utf-8")
    assert tagger.read_classes(str(path)) == {"rain": 3, "00": 0}
    for line in ("rain 3", "rain\t", "rain\tx", "rain\t65536"):
        path.write_text(f"the\t1\n{line}\n", encoding="utf-8")
        with pytest.raises(TrainingError, match=r"in line 2 of .*classes\.txt"):
            tagger.read_classes(str(path))


def test_classes_let_a_model_tell_words_that_it_never_saw() -> None:
    forest = forest_of(map(binarize, small_models.trees()))
    nouns = {w.lower(): 1 for w, tag in leaves() if tag == "NN"}
    classes = {w.lower(): 0 for w, tag in leaves() if tag != "NN"} | nouns | {"qqq": 1, "qqr": 0}
    stage = Stage("tagger", 0, silent)
    model = tagger.learn_tagger(forest, seed=1, stage=stage, classes=classes).model()
    noun = model.tags.index("NN")
    in_class, out_of_it = (model.log_shares(("the", w, "."))[1, noun] for w in ("qqq", "qqr"))
    assert in_class > out_of_it


def leaves() -> list[tuple[str, str]]:
    return [(leaf.word or "", leaf.label) for t in small_models.trees() for leaf in t.leaves()]
