"""The observable form for given features: moments of small samples, and what is refused."""

import numpy as np
import pytest

from lpcfg.base.errors import TrainingError
from lpcfg.grammar.tables import Grammar
from lpcfg.trees.brackets import parse_tree
from lpcfg.trees.tree import Tree
from tests.observable import Features, Outside, examples, observable_form

GRAMMAR = Grammar(
    ("NP", "S", "D", "N", "V"),
    2,
    [(0, 2, 3), (1, 0, 4)],
    ("barks", "dog", "the"),
    [(4, 0), (3, 1), (2, 2)],
)
TREE = parse_tree("(S (NP (D the) (N dog)) (V barks))")


def size(tree: Tree) -> Features:
    return {"words": float(len(tree.tokens())), "a bias": 1.0}


def side(context: Outside | None) -> Features:
    return {"root": 1.0} if context is None else {"left" if context.is_left else "right": 2.0}


def test_moments_are_weighted_means_of_features() -> None:
    """Two trees, one weighted three times: (3 φψᵀ + φψᵀ) / 4 of each node, by hand."""
    noun_phrase = TREE.children[0]
    moments = examples(GRAMMAR, [TREE, noun_phrase], size, side).moments(np.array([3.0, 1.0]))
    np_, s, d, *_ = range(5)
    # φ(NP) = (2, 1); ψ is (left: 2) in the first tree and (root: 1) in the second.
    assert moments.omega[np_].tolist() == [[2 * 2 * 0.75, 2 * 1 * 0.25], [2 * 0.75, 1 * 0.25]]
    assert moments.omega[s].tolist() == [[3.0], [1.0]]
    assert moments.omega[d].tolist() == [[2.0], [2.0]]
    # ψ(NP) ⊗ φ(D) ⊗ φ(N), the φ of both being (1, 1).
    assert moments.rules[0].tolist() == [[[1.5, 1.5]] * 2, [[0.25, 0.25]] * 2]
    # ψ(S) ⊗ φ(NP) ⊗ φ(V)
    assert moments.rules[1].tolist() == [[[2.0, 2.0], [1.0, 1.0]]]
    assert [word.tolist() for word in moments.words] == [[2.0], [2.0], [2.0]]
    assert [root.tolist() for root in moments.roots] == [
        [2 * 0.25, 0.25], [3 * 0.75, 0.75], [0, 0], [0, 0], [0, 0],
    ]  # fmt: skip


def test_outside_trees_are_seen_from_the_node_upwards() -> None:
    seen: list[Outside | None] = []

    def record(context: Outside | None) -> Features:
        seen.append(context)
        return {}

    examples(GRAMMAR, [TREE], size, record)
    noun_phrase, verb = TREE.children
    above = Outside("S", verb, True, None)
    assert seen == [
        None,
        above,
        Outside("NP", noun_phrase.children[1], True, above),
        Outside("NP", noun_phrase.children[0], False, above),
        Outside("S", noun_phrase, False, None),
    ]


def test_deep_trees_do_not_need_the_interpreters_stack() -> None:
    grammar = Grammar(("S", "A"), 1, [(0, 1, 0), (0, 1, 1)], ("x",), [(1, 0)])
    leaf = Tree("A", word="x")
    tree = Tree("S", (leaf, leaf))
    for _ in range(5000):
        tree = Tree("S", (leaf, tree))
    collected = examples(grammar, [tree], lambda _: {"on": 1.0}, side)
    assert [len(rows) for rows in collected.tree] == [5001, 5002]


def test_more_states_than_the_features_tell_apart_are_refused() -> None:
    moments = examples(GRAMMAR, [TREE], size, side).moments(np.ones(1))
    with pytest.raises(
        TrainingError, match="expected at most 1 latent states for `NP`, the rank of its Ω, got 2:"
    ):
        observable_form(GRAMMAR, moments, [2, 1, 1, 1, 1])


def test_a_symbol_without_features_has_no_state() -> None:
    moments = examples(GRAMMAR, [TREE], lambda _: {}, side).moments(np.ones(1))
    with pytest.raises(TrainingError, match="at most 0 latent states for `NP`"):
        observable_form(GRAMMAR, moments, [1] * 5)


def test_a_symbol_that_no_tree_has_is_refused() -> None:
    collected = examples(GRAMMAR, [TREE, TREE.children[0]], size, side)
    with pytest.raises(TrainingError, match="expected trees with `S` in them, got none:"):
        collected.moments(np.array([0.0, 1.0]))


@pytest.mark.parametrize(
    ("brackets", "unknown"),
    [
        ("(X (D the) (N dog))", "X"),
        ("(NP (D the) (N cat))", "N → cat"),
        ("(NP (D the) (V dog))", "V → dog"),
        ("(NP (N dog) (D the))", "NP → N D"),
    ],
)
def test_a_tree_beyond_the_grammar_is_refused(brackets: str, unknown: str) -> None:
    with pytest.raises(
        TrainingError, match=f"expected trees that the grammar can build, got one with `{unknown}`:"
    ):
        examples(GRAMMAR, [parse_tree(brackets)], size, side)
