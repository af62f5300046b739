"""Arcs from constituency trees."""

from hypothesis import given

from lpcfg.kinds.dependencies.head_rules import arcs_of
from lpcfg.training.data.heads import head_leaves, levels
from lpcfg.training.data.treebank import forest_of
from lpcfg.trees.binarize import binarize, is_intermediate
from lpcfg.trees.brackets import parse_tree
from lpcfg.trees.normalize import normalize
from lpcfg.trees.tree import Tree
from tests.strategies import treebank_trees


def heads_by_forest(tree: Tree) -> tuple[int, ...]:
    """Find heads by `head_leaves`, which works on the binarized tree in arrays."""
    forest = forest_of([binarize(tree)])
    head = head_leaves(forest, levels(forest))
    heads = [0] * int(forest.end.max())
    for node in range(forest.n_nodes):
        up = forest.parent[node]
        while up >= 0 and is_intermediate(forest.symbols[forest.symbol[up]]):
            up = forest.parent[up]
        inside = is_intermediate(forest.symbols[forest.symbol[node]])
        if up >= 0 and not inside and head[up] != head[node]:
            heads[forest.start[head[node]]] = int(forest.start[head[up]]) + 1
    return tuple(heads)


def test_heads_of_a_sentence_are_those_a_linguist_expects() -> None:
    tree = parse_tree(
        "(S (NP (DT The) (JJ old) (NN dog)) (VP (VBZ sleeps) (PP (IN on) (NP (NNS sofas)))) (. .))"
    )
    arcs = arcs_of(tree)
    assert arcs.words == ("The", "old", "dog", "sleeps", "on", "sofas", ".")
    assert arcs.heads == (3, 3, 4, 0, 4, 5, 4)
    assert arcs.labels == ("dep", "dep", "dep", "root", "dep", "dep", "dep")
    assert arcs.tags[3] == "_|VBZ"


def test_a_tree_of_one_word_is_its_root() -> None:
    arcs = arcs_of(parse_tree("(FRAG (NP (NN Bone)))"))
    assert arcs.heads == (0,)
    assert arcs.labels == ("root",)


@given(treebank_trees())
def test_heads_agree_with_those_of_the_training_features(tree: Tree) -> None:
    normalized = normalize(tree)
    if normalized is not None:
        arcs = arcs_of(normalized)
        assert arcs.heads == heads_by_forest(normalized)
        assert arcs.is_projective
