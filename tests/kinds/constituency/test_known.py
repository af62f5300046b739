"""True probabilities of trees under a known grammar."""

import math
from collections import defaultdict
from pathlib import Path

import pytest

from lpcfg.base.errors import InputError
from lpcfg.grammar.known import enumerate_trees, read_lpcfg
from lpcfg.kinds.constituency.known import tree_probability
from lpcfg.trees.brackets import parse_tree

TWO_STATE = Path(__file__).resolve().parents[3] / "examples" / "two_state.toml"


def test_true_probabilities_equal_those_of_enumeration() -> None:
    tables = read_lpcfg(TWO_STATE)
    every = list(enumerate_trees(tables, 6))
    of_words: dict[tuple[str, ...], float] = defaultdict(float)
    for tree, p in every:
        of_words[tuple(tree.tokens())] += p
    for tree, p in every:
        found = tree_probability(tables, tree)
        sentence = of_words[tuple(tree.tokens())]
        assert found.sign == 1
        assert found.log_probability == pytest.approx(math.log(p), rel=1e-12)
        assert found.sentence_log_probability == pytest.approx(math.log(sentence), rel=1e-12)
        assert found.conditional_log_probability == pytest.approx(math.log(p / sentence), abs=1e-12)


@pytest.mark.parametrize(
    ("tree", "gap"),
    [
        ("(S (NP (D the) (N cat)) (VP (V saw) (A often)))", "`N → cat`"),
        ("(S (VP (V saw) (A often)) (NP (D the) (N man)))", "`S → VP NP`"),
        ("(NP (D the) (N man))", "`NP` as a root"),
    ],
)
def test_a_tree_that_a_known_grammar_lacks_has_the_gap(tree: str, gap: str) -> None:
    found = tree_probability(read_lpcfg(TWO_STATE), parse_tree(tree))
    assert (found.log_probability, found.sign) == (None, 0)
    assert found.reason == f"the grammar does not have {gap}"


def test_trees_that_are_not_binary_are_refused() -> None:
    with pytest.raises(InputError, match="with two children under 'S', got 1"):
        tree_probability(read_lpcfg(TWO_STATE), parse_tree("(S (NP (D the) (N man)))"))
