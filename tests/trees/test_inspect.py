"""Treebanks are checked and counted before training."""

import io

from lpcfg.trees.brackets import parse_tree
from lpcfg.trees.inspect import LONG, ODD, Inspection
from lpcfg.trees.style import RULES

TREES = """
(S1 (S (NP-SBJ (PRP We)) (VP (VBD went) (PP (TO to) (NP (NNP Rome))))))
((CAPTION (NP (NP (NN Growth)))))
((FOO (NN growth)))
((S (-NONE- *)))
(NN growth)
(ROOT (S (VP (VB go))) (S (VP (VB go))))
"""


def inspection() -> Inspection:
    return Inspection.of([io.StringIO(TREES)])


def test_sizes_labels_and_tags_are_those_of_normalized_trees() -> None:
    found = inspection().as_dict()
    assert (found["trees"], found["without_words"], found["words"]) == (5, 1, 9)
    assert (found["distinct_words"], found["seen_once"], found["longest"]) == (7, 5, 4)
    assert found["labels"]["NP"] == 4
    assert found["tags"] == {"NN": 3, "VB": 2, "PRP": 1, "VBD": 1, "TO": 1, "NNP": 1}


def test_odd_trees_are_counted_by_kind() -> None:
    counts = dict(zip(ODD, inspection().as_dict()["odd"].values(), strict=True))
    assert list(counts.values()) == [1, 0, 1, 1, 2]


def test_a_tree_is_odd_from_one_word_above_the_limit() -> None:
    found = Inspection()
    for words in (LONG, LONG + 1):
        found.add(parse_tree("(NP " + "(NN x)" * words + ")"))
    assert [len(trees) for trees in found.odd.values()] == [0, 1, 0, 0, 0]


def test_every_rule_of_style_is_counted_by_itself() -> None:
    style = inspection().as_dict()["style"]
    assert style == {**dict.fromkeys(RULES, 0), "titles": 1, "to": 1, "flat-nouns": 1}


def test_findings_name_strange_labels_and_show_odd_trees() -> None:
    text = "\n".join(inspection().findings())
    assert "labels and tags that Penn treebanks do not have: CAPTION, FOO" in text
    assert "    (ROOT (S (VP (VB go))) (S (VP (VB go))))" in text
    assert "5 trees can be read; 1 more have no words" in text
