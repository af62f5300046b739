"""The treebank PCFG: relative frequencies, checked by hand and against plain counting."""

import io
from collections import Counter
from math import prod
from pathlib import Path

import numpy as np
import pytest

from lpcfg.grammar.lexicon import Emitter, Lexicon
from lpcfg.grammar.tables import Tables
from lpcfg.training.data.examples import Examples
from lpcfg.training.data.treebank import (
    Forest,
    lexicon_of,
    node_entries,
    node_rules,
    read_forest,
    strees_of,
)
from lpcfg.training.estimators import pcfg as counts

TEXT = """
(S (N dogs) (V bark))
(S (N dogs) (VP (V see) (N cats)))
(S (N cats) (VP (V see) (N cats)))
(VP (V see) (N dogs))
(N cats)
"""


def learned(forest: Forest, rare_threshold: int = 0) -> tuple[Tables, Lexicon]:
    lexicon = lexicon_of(forest, rare_threshold=rare_threshold, language="english")
    return counts.estimate(Examples.of(forest, lexicon)), lexicon


def test_probabilities_equal_counts_by_hand() -> None:
    tables, _ = learned(read_forest(io.StringIO(TEXT)))
    grammar = tables.grammar
    rules = {grammar.rule_name(r): tables.dense(r).item() for r in range(grammar.n_rules)}
    # Three S, two of them over N VP; three VP, all over V N.
    assert rules == {"S → N V": 1 / 3, "S → N VP": 2 / 3, "VP → V N": 1.0}
    roots = dict(zip(grammar.symbols, tables.c_one.tolist(), strict=True))
    assert roots == {"S": 3 / 5, "VP": 1 / 5, "N": 1 / 5, "V": 0.0}
    assert tables.c_inf.tolist() == [1.0] * len(grammar.entries)


def test_the_probability_of_a_tree_is_the_product_of_its_relative_frequencies() -> None:
    forest = read_forest(io.StringIO(TEXT))
    tables, lexicon = learned(forest)
    grammar, symbol_ids = tables.grammar, tables.grammar.symbol_ids
    rule = node_rules(forest, grammar)
    for t, stree in enumerate(strees_of(forest)):
        nodes = range(forest.tree_start[t], forest.tree_start[t + 1])
        got = float(tables.root_vector(symbol_ids[stree.label])[0])
        got *= prod(tables.dense(rule[node]).item() for node in nodes if rule[node] >= 0)
        for leaf in stree.leaves():
            emissions = Emitter(grammar, lexicon)(leaf.tokens())
            at = emissions.symbol.tolist().index(symbol_ids[leaf.label])
            got *= float(emissions.weight[at])
        expected = naive_probability(strees_of(forest), t)
        assert got == pytest.approx(expected, rel=1e-12)  # a few roundings of 2e-16


def naive_probability(strees: list, t: int) -> float:  # type: ignore[type-arg]
    nodes = [node for tree in strees for node in tree.nodes()]
    label = Counter(node.label for node in nodes)
    made = Counter((node.label, *(c.label for c in node.children), node.word) for node in nodes)
    roots = Counter(tree.label for tree in strees)
    result = roots[strees[t].label] / len(strees)
    for node in strees[t].nodes():
        key = (node.label, *(c.label for c in node.children), node.word)
        result *= made[key] / label[node.label]
    return result


@pytest.mark.parametrize("horizontal", [0, 1])
def test_rules_of_a_symbol_sum_to_one_on_a_real_treebank(treebanks: Path, horizontal: int) -> None:
    forest = read_forest(treebanks / "gum" / "dev.mrg", horizontal=horizontal)
    tables, lexicon = learned(forest, rare_threshold=3)
    grammar = tables.grammar
    sums = np.bincount(grammar.rules[:, 0], tables.parent, grammar.n_symbols)
    # At most a few hundred terms a sum, each rounded to 1e-16.
    np.testing.assert_allclose(sums[: grammar.n_internal], 1.0, rtol=1e-13)
    assert float(tables.c_one.sum()) == pytest.approx(1.0, rel=1e-13)
    assert (node_entries(forest, grammar, lexicon)[forest.is_leaf] >= 0).all()


def test_a_treebank_of_one_word_trees_has_roots_and_no_rules() -> None:
    tables, _ = learned(read_forest(io.StringIO("(N yes) (N no) (V go)")))
    assert tables.grammar.n_rules == 0
    assert tables.c_one.tolist() == [2 / 3, 1 / 3]
