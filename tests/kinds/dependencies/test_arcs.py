"""Dependency trees: what is one, projectivity, and lifting."""

import pytest
from hypothesis import given

from lpcfg.base.errors import InputError
from lpcfg.kinds.dependencies.arcs import Arcs, modifiers, problem_of, projectivized
from tests.kinds.dependencies import trees


@pytest.mark.parametrize(
    ("heads", "word", "message"),
    [
        ((2, 1, 0), 1, "got the cycle 1 → 2 → 1"),
        ((0, 3, 4, 2), 2, "got the cycle"),
        ((0, 0), 2, "got 2, the first of them word 1"),
        ((1,), 1, "other than the word itself, got 1"),
        ((0, 3), 2, "from 0 to 2, got 3"),
        ((0, -1), 2, "from 0 to 2, got -1"),
    ],
)
def test_heads_that_are_no_tree_are_explained(heads: trees.Heads, word: int, message: str) -> None:
    problem = problem_of(heads)
    assert problem is not None
    assert problem[0] == word
    assert message in problem[1]
    with pytest.raises(InputError, match="word"):
        trees.arcs_from(heads)


def test_every_word_needs_a_head_and_a_label() -> None:
    with pytest.raises(InputError, match="expected 2 labels, one for every word, got 1"):
        Arcs(("a", "b"), (0, 1), ("root",))
    with pytest.raises(InputError, match="expected 2 tags"):
        Arcs(("a", "b"), (0, 1), ("root", "dep"), ("X",))


def test_trees_are_counted_by_the_formula_of_cayley() -> None:
    """n^(n-1) rooted trees over n labelled words, all of which the check lets through."""
    assert [sum(1 for _ in trees.all_trees(n)) for n in range(1, 6)] == [1, 2, 9, 64, 625]


@pytest.mark.parametrize("n", range(1, 6))
def test_projectivity_is_the_definition_on_all_trees(n: int) -> None:
    for heads in trees.all_trees(n):
        assert trees.arcs_from(heads).is_projective is trees.is_projective(heads)


@given(trees.heads())
def test_lifting_makes_any_tree_projective_and_leaves_projective_ones(heads: trees.Heads) -> None:
    arcs = trees.arcs_from(heads)
    lifted, count = projectivized(arcs)
    assert trees.is_projective(lifted.heads)
    assert count == sum(a != b for a, b in zip(heads, lifted.heads, strict=True))
    assert (count == 0) is trees.is_projective(heads)
    for m in range(1, len(heads) + 1):  # a lifted word hangs from an ancestor of its head
        assert lifted.heads[m - 1] == 0 or trees.descends(heads, m, lifted.heads[m - 1])


def test_modifiers_are_listed_in_the_order_of_the_sentence() -> None:
    assert modifiers((2, 0, 2, 3)) == [[2], [], [1, 3], [4], []]
