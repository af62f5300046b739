"""Bracket found, checked by hand: the arithmetic stands beside every golden case."""

import json
from pathlib import Path

import pytest

from lpcfg.base.errors import InputError
from lpcfg.kinds.constituency.brackets import BUCKETS, Counts, Group, evaluate, render
from lpcfg.trees.brackets import parse_tree, read
from lpcfg.trees.normalize import normalize
from lpcfg.trees.tree import Tree


def pair(gold: str, predicted: str | None) -> tuple[Tree, Tree | None]:
    return parse_tree(gold), None if predicted is None else parse_tree(predicted)


def strict(gold: str, predicted: str | None) -> Counts:
    return evaluate([pair(gold, predicted)]).brackets


def evalb(gold: str, predicted: str | None) -> Counts | None:
    return evaluate([pair(gold, predicted)]).per_sentence[0].evalb


GOLD = (
    "(S (NP (DT the) (NN dog)) (VP (VBD saw) (NP (NP (DT a) (NN cat)) (PP (IN in) (NP (NN May))))))"
)
WRONG = "(S (NP (DT the) (NN dog)) (VP (VBD saw) (NP (DT a) (NN cat)) (PP (IN in) (NP (NN May)))))"


def test_attachment_error_by_hand() -> None:
    # gold      S 0-7  NP 0-2  VP 2-7  NP 3-7  NP 3-5  PP 5-7  NP 6-7     7 brackets
    # predicted S 0-7  NP 0-2  VP 2-7          NP 3-5  PP 5-7  NP 6-7     6 brackets, all gold
    found = evaluate([pair(GOLD, WRONG)])
    assert found.brackets == Counts(gold=7, predicted=6, matched=6)
    assert found.brackets.precision == 100.0
    assert found.brackets.recall == pytest.approx(600 / 7)
    assert found.brackets.f1 == pytest.approx(1200 / 13)
    assert (found.exact_match, found.tag_accuracy, found.failures) == (0.0, 100.0, 0)


def test_a_perfect_tree_has_full_marks() -> None:
    found = evaluate([pair(GOLD, GOLD)])
    assert found.brackets == Counts(7, 7, 7)
    assert (found.brackets.f1, found.exact_match, found.evalb.f1) == (100.0, 100.0, 100.0)


def test_totals_add_brackets_not_percentages() -> None:
    # 6 of 7 found in one sentence and 1 of 2 in the other, with 6 and 2 predicted:
    # precision 7/8, recall 7/9, F1 2·7/17; the mean of the sentences' F1 would be 71.2.
    found = evaluate([pair(GOLD, WRONG), pair("(S (VP (VB go)))", "(S (NP (VB go)))")])
    assert found.brackets == Counts(gold=9, predicted=8, matched=7)
    assert found.brackets.f1 == pytest.approx(1400 / 17)


@pytest.mark.parametrize("root", ["TOP", "ROOT", "S1"])
def test_roots_are_not_brackets(root: str) -> None:
    assert strict(f"({root} (S (VB go)))", "(S (VB go))") == Counts(1, 1, 1)
    assert strict("( (S (VB go)))", f"({root} (NP (VB go)))") == Counts(1, 1, 0)


def test_particle_counts_as_adverb_phrase_and_preterminals_never() -> None:
    found = evaluate([pair("(S (PRT (RP up)) (PRT (RB on)))", "(S (ADVP (RP up)) (PP (RB on)))")])
    assert found.brackets == Counts(3, 3, 2)
    assert found.by_label == {
        "ADVP": Group(Counts(2, 1, 1), 2),
        "S": Group(Counts(1, 1, 1), 1),
        "PP": Group(Counts(0, 1, 0), 0),
    }
    assert list(found.by_label) == ["ADVP", "S", "PP"]


def test_unary_chains_of_one_label_are_a_multiset() -> None:
    one, two, three = "(NP (NN a))", "(NP (NP (NN a)))", "(NP (NP (NP (NN a))))"
    assert strict(two, three) == Counts(gold=2, predicted=3, matched=2)
    assert strict(three, one) == Counts(gold=3, predicted=1, matched=1)


def test_order_in_a_unary_chain_does_not_matter() -> None:
    assert strict("(S (VP (VB go)))", "(VP (S (VB go)))") == Counts(2, 2, 2)


def test_traces_are_not_tokens() -> None:
    gold = "(S (NP (-NONE- *)) (VP (VB go)))"
    assert strict(gold, "(S (VP (VB go)))") == Counts(2, 2, 2)


# The comma hangs in the NP in one tree, in the S in the other: the same spans without it.
COMMA_IN = "(S (NP (NN a) (, ,)) (VP (VB go)) (. .))"
COMMA_OUT = "(S (NP (NN a)) (, ,) (VP (VB go) (. .)))"


def test_punctuation_does_not_count_in_spans() -> None:
    assert strict(COMMA_IN, COMMA_OUT) == Counts(3, 3, 3)
    assert evalb(COMMA_IN, COMMA_OUT) == Counts(3, 3, 3)


@pytest.mark.parametrize("tag", [",", ":", "``", "''", "."])
def test_a_node_over_punctuation_alone_is_not_a_bracket(tag: str) -> None:
    assert strict(f"(S (PRN ({tag} x)) (VB go))", f"(S ({tag} x) (VB go))") == Counts(1, 1, 1)


@pytest.mark.parametrize("tag", ["-LRB-", "-RRB-", "HYPH", "SYM", "$", "?"])
def test_other_marks_are_words_as_in_collins_prm(tag: str) -> None:
    assert strict(f"(S (PRN ({tag} x)) (VB go))", f"(S ({tag} x) (VB go))") == Counts(2, 1, 1)


# The parser takes the dash for a noun. By its own tags the NP spans two words, the sentence three.
DASH = "(S (NP (NN a) (: --)) (VP (VB go)))"
NO_DASH = "(S (NP (NN a) (NN --)) (VP (VB go)))"


def test_strict_drops_punctuation_by_gold_tags_where_evalb_drops_the_sentence() -> None:
    found = evaluate([pair(DASH, NO_DASH), pair(GOLD, WRONG)])
    # 3 of 3 and 6 of 7: EVALB counts the second sentence alone.
    assert found.brackets == Counts(gold=10, predicted=9, matched=9)
    assert found.per_sentence[0].evalb is None
    assert (found.evalb, found.evalb_sentences) == (Counts(7, 6, 6), 1)
    assert found.tag_accuracy == pytest.approx(100 * 9 / 10)


def test_strict_keeps_words_that_the_parser_took_for_punctuation() -> None:
    # By gold tags three words: gold S 0-3, NP 0-2, VP 2-3; predicted S 0-3, NP 0-1, VP 1-3.
    gold = "(S (NP (NN a) (NN b)) (VP (VB go)))"
    predicted = "(S (NP (NN a)) (VP (: b) (VB go)))"
    assert strict(gold, predicted) == Counts(3, 3, 1)
    assert evalb(gold, predicted) is None


def test_evalb_leaves_out_sentences_of_equal_length_but_other_words() -> None:
    # Each tree has one word dropped, but not the same one.
    assert evalb("(S (: -) (NN x) (VB go))", "(S (NN -) (: x) (VB go))") is None
    # EVALB cannot tell equal words apart, and counts this one.
    assert evalb("(S (: -) (NN -) (VB go))", "(S (NN -) (: -) (VB go))") == Counts(1, 1, 1)


def test_evalb_skips_trees_without_words() -> None:
    assert evalb("(S (. .))", "(S (. .))") is None
    assert strict("(S (. .))", "(S (. .))") == Counts(0, 0, 0)


def test_evalb_counts_mistagged_punctuation_of_both_trees_by_their_own_tags() -> None:
    # The quote is a POS in both: a word, in EVALB and in strict found.
    gold = "(S (NP (NNS dogs) (POS ')) (VB go))"
    assert strict(gold, gold) == evalb(gold, gold) == Counts(2, 2, 2)


def test_a_failure_has_no_brackets_no_tags_and_is_not_in_evalb() -> None:
    found = evaluate([pair(GOLD, None), pair("(S (VB go))", "(S (VB go))")])
    # Recall 1/8, precision 1/1; 1 of 8 tokens has a tag.
    assert found.brackets == Counts(gold=8, predicted=1, matched=1)
    assert found.brackets.precision == 100.0
    assert (found.failures, found.exact_match) == (1, 50.0)
    assert found.tag_accuracy == pytest.approx(100 / 8)
    assert (found.evalb, found.evalb_sentences) == (Counts(1, 1, 1), 1)


def test_a_failure_is_not_exact_even_where_gold_has_no_brackets() -> None:
    assert evaluate([pair("(NN Hello)", None)]).exact_match == 0.0
    assert evaluate([pair("(NN Hello)", "(UH Hello)")]).exact_match == 100.0


def test_tags_count_over_all_tokens_and_leave_brackets_alone() -> None:
    found = evaluate([pair("(S (NN a) (. .))", "(S (NN a) (: .))")])
    assert (found.tag_accuracy, found.brackets.f1) == (50.0, 100.0)


def test_lengths_count_all_tokens_of_the_gold_tree() -> None:
    def sentence(words: int) -> str:
        return "(S " + "(NN a) " * (words - 1) + "(. .))"

    pairs = [pair(sentence(n), sentence(n)) for n in (2, 10, 11, 20, 21, 40, 41, 300)]
    pairs.append(pair(sentence(41), None))
    by_length = evaluate(pairs).by_length
    assert tuple(by_length) == BUCKETS
    assert [group.count for group in by_length.values()] == [2, 2, 2, 3]
    assert by_length["41+"].brackets == Counts(gold=3, predicted=2, matched=2)


def test_scoring_nothing_gives_zero_not_an_error() -> None:
    found = evaluate([])
    assert found.as_dict()["f1"] == found.exact_match == found.tag_accuracy == 0.0
    assert (found.sentences, found.by_label) == (0, {})


def test_trees_over_other_tokens_are_refused() -> None:
    with pytest.raises(
        InputError,
        match=r"^expected a predicted tree over the 1 tokens of its gold tree, got one over 2, "
        r"in pair 1: parse the gold tree's own tokens$",
    ):
        evaluate([pair(GOLD, GOLD), pair("(S (VB go))", "(S (VB go) (RB on))")])


def test_deep_trees_need_no_interpreter_stack() -> None:
    tree = Tree("NN", (), "a")
    for _ in range(5_000):
        tree = Tree("NP", (tree,))
    assert evaluate([(tree, tree)]).brackets == Counts(5_000, 5_000, 5_000)


def test_scores_as_json() -> None:
    found = evaluate([pair(GOLD, WRONG), pair("(S (VB go))", None)])
    assert json.loads(json.dumps(found.as_dict())) == {
        "precision": 100.0,
        "recall": 75.0,
        "f1": pytest.approx(1200 / 14),
        "exact_match": 0.0,
        "tag_accuracy": pytest.approx(700 / 8),
        "sentences": 2,
        "failures": 1,
        "evalb_f1": pytest.approx(1200 / 13),
        "evalb_sentences": 1,
        "by_length": {
            "1-10": {
                "precision": 100.0,
                "recall": 75.0,
                "f1": pytest.approx(1200 / 14),
                "count": 2,
            },
            **{
                bucket: {"precision": 0.0, "recall": 0.0, "f1": 0.0, "count": 0}
                for bucket in BUCKETS[1:]
            },
        },
        "by_label": {
            "NP": {"precision": 100.0, "recall": 75.0, "f1": pytest.approx(600 / 7), "count": 4},
            "S": {"precision": 100.0, "recall": 50.0, "f1": pytest.approx(200 / 3), "count": 2},
            "PP": {"precision": 100.0, "recall": 100.0, "f1": 100.0, "count": 1},
            "VP": {"precision": 100.0, "recall": 100.0, "f1": 100.0, "count": 1},
        },
    }


def test_scores_as_tables() -> None:
    assert render(evaluate([pair(GOLD, WRONG), pair("(S (VB go))", None)])) == (
        "sentences               2   failures 1\n"
        "precision          100.00\n"
        "recall              75.00\n"
        "F1 (strict)         85.71\n"
        "exact match          0.00\n"
        "tag accuracy        87.50\n"
        "F1 (EVALB)          92.31   on 1 of them\n"
        "\n"
        "tokens        precision   recall       F1    count\n"
        "1-10             100.00    75.00    85.71        2\n"
        "11-20                 –        –        –        0\n"
        "21-40                 –        –        –        0\n"
        "41+                   –        –        –        0\n"
        "\n"
        "label         precision   recall       F1    count\n"
        "NP               100.00    75.00    85.71        4\n"
        "S                100.00    50.00    66.67        2\n"
        "PP               100.00   100.00   100.00        1\n"
        "VP               100.00   100.00   100.00        1\n"
    )


def test_shares_of_nothing_are_dashes_and_zero_shares_are_zeros() -> None:
    """WHNP is predicted where gold has an NP, so that neither is ever right."""
    lines = render(
        evaluate([pair("(NP (DT the) (NN dog))", "(WHNP (DT the) (NN dog))")])
    ).splitlines()
    assert lines[-2:] == [
        "NP                    –     0.00     0.00        1",
        "WHNP               0.00        –     0.00        0",
    ]


def test_every_gold_tree_scores_full_marks_against_itself(treebanks: Path) -> None:
    trees = [tree for tree in map(normalize, read(treebanks / "gum" / "dev.mrg")) if tree]
    found = evaluate(zip(trees, trees, strict=True))
    assert found.sentences == 693
    assert found.brackets.is_exact
    assert found.exact_match == found.tag_accuracy == 100.0
    assert found.evalb == found.brackets
