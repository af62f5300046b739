"""Exact moments are those of enumerated trees."""

import numpy as np
import pytest

from lpcfg.base.errors import GrammarError
from lpcfg.grammar.known import enumerate_trees
from lpcfg.grammar.tables import Grammar, Tables
from lpcfg.theory.exact_moments import ExactMoments, expected_visits
from lpcfg.trees.tree import Tree
from tests.observable import Features, Outside, examples
from tests.strategies_grammar import random_lpcfg
from tests.training.test_theory import KNOWN, Known, with_roots


def rule_of(tree: Tree) -> tuple[str, ...]:
    return (tree.label, tree.word or "", *(child.label for child in tree.children))


def inside_rules(tree: Tree) -> Features:
    """Return φ: the rules at the node and at its children."""
    below = {("child", k, rule_of(child)): 1.0 for k, child in enumerate(tree.children)}
    return {("here", rule_of(tree)): 1.0, **below}


def outside_rules(context: Outside | None) -> Features:
    """Return ψ: the rule above and the side, and the rules at the sibling and its children."""
    if context is None:
        return {"root": 1.0}
    above = ("above", context.label, context.sibling.label, context.is_left)
    return {above: 1.0, **{("sibling", k): v for k, v in inside_rules(context.sibling).items()}}


@pytest.mark.parametrize("name", KNOWN)
def test_moments_are_those_of_all_trees(name: str) -> None:
    """Features have another order there, so singular values are compared; norms are at most 1."""
    known = Known(name)
    exact = ExactMoments.of(known.tables)
    grammar = known.tables.grammar
    counted = examples(grammar, known.trees, inside_rules, outside_rules)
    moments = counted.moments(known.p)
    scaled = exact.scaled()
    for a in range(grammar.n_symbols):
        found = np.linalg.svd(exact.omega[a], compute_uv=False)
        expected = np.linalg.svd(moments.omega[a], compute_uv=False)
        size = min(len(found), len(expected))
        assert found[:size] == pytest.approx(expected[:size], abs=1e-12)
        visits = known.p[counted.tree[a]].sum()
        assert exact.visits[a].sum() == pytest.approx(visits, rel=1e-12)
        for given, mean, before in (
            (counted.phi[a], scaled.inside[a], exact.inside[a]),
            (counted.psi[a], scaled.outside[a], exact.outside[a]),
        ):
            largest = np.linalg.norm(given, axis=1).max()
            assert before == pytest.approx(largest * mean, rel=1e-12)


def recursive(share: float) -> Tables:
    """Build S → S S with this probability, else a word."""
    grammar = Grammar(("S", "P"), 1, np.array([(0, 0, 0), (0, 1, 1)]), ("x",), np.array([(1, 0)]))
    tensors = [np.full((1, 1, 1), share), np.full((1, 1, 1), 1 - share)]
    return Tables.from_dense(grammar, [1, 1], tensors, [np.ones(1)], [np.ones(1), np.zeros(1)])


def test_visits_are_those_of_a_branching_process() -> None:
    """Each S has 2·share others below it on average: 1 / (1 − 2·share) in all."""
    of_s, of_p = expected_visits(recursive(0.2))
    assert of_s == pytest.approx([1 / 0.6])
    assert of_p == pytest.approx([1.6 / 0.6])
    with pytest.raises(GrammarError, match="finite on average"):
        expected_visits(recursive(0.5))


def test_symbols_that_no_tree_has_are_refused() -> None:
    grammar = Grammar(("S", "P", "Q"), 1, np.array([(0, 1, 1)]), ("x",), np.array([(1, 0), (2, 0)]))
    lpcfg = with_roots(random_lpcfg(np.random.default_rng(0), grammar, [1, 1, 1]), "S")
    with pytest.raises(GrammarError, match="got `Q`, which none has"):
        ExactMoments.of(lpcfg)
    assert list(enumerate_trees(lpcfg, 2))
