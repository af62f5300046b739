"""The everyday parser: trees, probabilities, its store, its evaluation."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lpcfg.base.errors import InputError, StoreError, TrainingError
from lpcfg.kinds.dependencies import conllu
from lpcfg.kinds.dependencies import evaluate as evaluation
from lpcfg.kinds.dependencies import train as training
from lpcfg.kinds.dependencies.arcs import Arcs
from lpcfg.kinds.dependencies.card import publish
from lpcfg.kinds.dependencies.evaluate import calibration_error
from lpcfg.kinds.dependencies.model import from_bundle, to_bundle
from lpcfg.kinds.dependencies.predict import DependencyParser
from lpcfg.kinds.sentences import Sentence
from lpcfg.store.files import Bundle
from tests.kinds.dependencies import small, trees


@pytest.fixture(scope="module")
def parser() -> DependencyParser:
    return DependencyParser(small.model())


def test_a_small_language_is_parsed_right(parser: DependencyParser) -> None:
    gold = small.sentences(40, 1)
    found = [one.arcs for one in parser.parse([arcs.words for arcs in gold])]
    scores = evaluation.evaluate(gold, found)
    assert scores.uas > 98
    assert scores.las > 95
    assert scores.tag_accuracy is not None
    assert scores.tag_accuracy > 98


def test_probabilities_are_those_of_enumerated_trees(parser: DependencyParser) -> None:
    words = ("the", "dog", "saw", "a", "cat")
    [score] = parser.arc_scores([words])
    every = trees.projective_trees(5)
    weights = np.array([sum(score[h, m] for m, h in enumerate(one, 1)) for one in every])
    shares = np.exp(weights - np.logaddexp.reduce(weights))
    [found] = parser.parse([words])
    at = every.index(found.arcs.heads)
    assert found.log_probability == pytest.approx(np.log(shares[at]), abs=1e-6)
    for m, (head, p) in enumerate(
        zip(found.arcs.heads, found.head_probabilities, strict=True), start=1
    ):
        of_head = sum(s for s, one in zip(shares, every, strict=True) if one[m - 1] == head)
        assert p == pytest.approx(of_head, abs=1e-6)
        assert found.probabilities[m - 1] <= p
    for heads, share in zip(every, shares, strict=True):
        assert parser.log_probability(words, heads) == pytest.approx(np.log(share), abs=1e-6)


def test_answers_do_not_depend_on_the_company(parser: DependencyParser) -> None:
    sentences = [arcs.words for arcs in small.sentences(20, 2)]
    together = parser.parse(sentences)
    for words, found in zip(sentences, together, strict=True):
        [alone] = parser.parse([words])
        assert alone.arcs == found.arcs
        assert alone.probabilities == pytest.approx(found.probabilities, abs=1e-5)


def test_one_word_is_the_root_for_certain(parser: DependencyParser) -> None:
    [found] = parser.parse([["Unheard"]])
    assert found.arcs.heads == (0,)
    assert found.arcs.labels == ("root",)
    assert found.head_probabilities == (pytest.approx(1.0),)
    assert found.log_probability == pytest.approx(0.0)


def test_only_the_root_has_the_relation_root(parser: DependencyParser) -> None:
    for found in parser.parse([arcs.words[::-1] for arcs in small.sentences(20, 3)]):
        for head, label in zip(found.arcs.heads, found.arcs.labels, strict=True):
            assert (label == "root") is (head == 0)


def test_a_sentence_without_words_is_refused(parser: DependencyParser) -> None:
    with pytest.raises(InputError, match="got none in sentence 2"):
        parser.parse([["a"], []])


def test_text_and_tokens_give_the_same_tree(parser: DependencyParser) -> None:
    [of_text] = parser("The dog saw a cat.")
    [of_tokens] = parser.parse([["The", "dog", "saw", "a", "cat", "."]])
    assert of_text.arcs.heads == of_tokens.arcs.heads
    assert of_text.probabilities == of_tokens.probabilities
    assert [(token.start, token.end) for token in of_text.tokens][:2] == [(0, 3), (4, 7)]
    assert [token.start for token in of_tokens.tokens] == [None] * 6


def test_an_answer_prints_as_conllu_that_reads_back(parser: DependencyParser) -> None:
    [found] = parser("The dog saw a cat.")
    [read] = conllu.read_string(f"{found}\n\n")
    assert read.text == "The dog saw a cat."
    assert read.arcs.heads == found.arcs.heads
    assert read.arcs.labels == found.arcs.labels


def test_tags_and_constraints_are_refused(parser: DependencyParser) -> None:
    with pytest.raises(InputError, match="expected tokens without tags"):
        parser.parse([Sentence(["Go"], tags=["VB"])])
    with pytest.raises(InputError, match="expected tokens without constraints"):
        parser.parse([Sentence(["Go"], constraints=[(0, 1, "NP")])])


def test_tree_probabilities_say_why_there_is_none(parser: DependencyParser) -> None:
    crossing = next(h for h in trees.all_trees(4) if not trees.is_projective(h))
    found = parser.tree_probability(trees.arcs_from(crossing, ("the", "dog", "saw", "a")))
    assert found["conditional_log_probability"] is None
    assert found["reason"] == "the tree is not projective"
    good = small.sentences(1, 0)[0]
    told = parser.tree_probability(good)
    assert told["conditional_log_probability"] <= 0
    assert told["sign"] in (-1, 1)
    without = DependencyParser(replace(parser.model, spectral=None)).tree_probability(good)
    assert without["sign"] is without["log_probability"] is None


def test_a_stored_model_answers_as_before(parser: DependencyParser, tmp_path: Path) -> None:
    model, report = small.model(), training.train(small.sentences(30, 0), small.FAST)[1]
    reference, facts = publish(
        tmp_path, "dep", model, report, small.FAST, {"dev.conllu": small.sentences(10, 1)}, "ours"
    )
    again = DependencyParser.load("dep", tmp_path)
    assert again.reference == reference
    assert facts["kind" if "kind" in facts else "licence"]
    assert facts["dev"]["dev.conllu"]["uas"] > 98
    words = ("the", "river", "near", "a", "house", "found", "the", "bone", ".")
    [one], [other] = parser.parse([words]), again.parse([words])
    assert one.arcs == other.arcs
    assert other.probabilities == pytest.approx(one.probabilities, abs=0.01)  # half precision


def test_a_model_of_another_kind_is_refused() -> None:
    other = Bundle({}, {"symbols": []}, {}, "")
    with pytest.raises(StoreError, match="of kind `dependencies`, found 'constituency'"):
        from_bundle(other)
    torn = to_bundle(small.model(), facts={}, card="")
    missing = {name: a for name, a in torn.tensors.items() if name != "vectors"}
    with pytest.raises(StoreError, match=r"`vectors`: expected a tensor of I8 .*, found none"):
        from_bundle(replace(torn, tensors=missing))


def test_trees_that_are_not_projective_are_lifted_and_counted() -> None:
    crossing = next(h for h in trees.all_trees(4) if not trees.is_projective(h))
    odd = Arcs(("a", "b", "c", "d"), crossing, ("root",) * 4, ("X|X",) * 4)
    _, report = training.train([*small.sentences(30, 0), odd], small.FAST)
    assert (report.sentences, report.not_projective, report.lifted) == (31, 1, 1)
    with pytest.raises(TrainingError, match="got none"):
        training.train([], small.FAST)
    with pytest.raises(TrainingError, match="`members` of 1 or more, got 0"):
        training.Config(members=0)


# Evaluation ---------------------------------------------------------------------------------------


def test_scores_count_words_with_and_without_punctuation() -> None:
    gold = Arcs(("Go", "home", "!"), (0, 1, 1), ("root", "obl", "punct"), ("V", "N", "PUNCT"))
    wrong = Arcs(("Go", "home", "!"), (0, 1, 2), ("root", "obj", "punct"), ("V", "V", "PUNCT"))
    scores = evaluation.evaluate([gold], [wrong])
    assert scores.uas == pytest.approx(200 / 3)
    assert scores.las == pytest.approx(100 / 3)
    assert (scores.uas_without_punctuation, scores.las_without_punctuation) == (100, 50)
    assert (scores.complete, scores.complete_without_punctuation) == (0, 100)
    assert scores.tag_accuracy == pytest.approx(200 / 3)


def test_only_trees_over_the_same_words_are_compared() -> None:
    one, other = trees.arcs_from((0,), ("a",)), trees.arcs_from((0,), ("b",))
    with pytest.raises(InputError, match="the same words in both trees of sentence 1"):
        evaluation.evaluate([one], [other])
    with pytest.raises(InputError, match="got 0 for 1"):
        evaluation.evaluate([one], [])


def test_calibration_error_is_zero_where_shares_are_probabilities() -> None:
    assert calibration_error([0.5] * 4, [True, False] * 2) == pytest.approx(0)
    assert calibration_error([0.9] * 4, [True, False] * 2) == pytest.approx(0.4)
