"""Features and heads: the paper's own example by hand, and a slow twin on all other trees."""

from collections.abc import Hashable
from pathlib import Path

import numpy as np
import pytest

from lpcfg.base.errors import TrainingError
from lpcfg.training.data import features
from lpcfg.training.data.examples import Examples
from lpcfg.training.data.features import (
    ALL_TEMPLATES,
    MORE_TEMPLATES,
    TEMPLATES,
    Features,
    NodeArrays,
)
from lpcfg.training.data.heads import head_leaves, levels
from lpcfg.training.data.treebank import forest_of, lexicon_of, strees_of
from lpcfg.trees.binarize import binarize
from lpcfg.trees.brackets import parse_tree, read
from lpcfg.trees.normalize import normalize
from lpcfg.trees.tree import Tree
from tests import naive_spectral as naive

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FIGURE_1 = "(S (NP (D the) (N cat)) (VP (V saw) (NP (D the) (N dog))))"


def arrays_of(trees: list[Tree]) -> NodeArrays:
    """Return the context of s-trees in which every word is a terminal."""
    forest = forest_of(trees)
    lexicon = lexicon_of(forest, rare_threshold=0, language="neutral")
    return NodeArrays(Examples.of(forest, lexicon))


@pytest.fixture(params=["small-0", "small-1", "gum-1"])
def varied(request: pytest.FixtureRequest) -> list[Tree]:
    """Read the s-trees of the example treebank, and of a real one."""
    name, horizontal = request.param.split("-")
    if name == "small":
        source, step = EXAMPLES / "small.mrg", 1
    else:
        source, step = request.getfixturevalue("treebanks") / "gum" / "dev.mrg", 12
    trees = [normalize(tree) for tree in read(source)][::step]
    return [binarize(tree, horizontal=int(horizontal)) for tree in trees if tree is not None]


# The paper's example ------------------------------------------------------------------------------


def test_features_of_figure_1_are_those_the_paper_lists() -> None:
    """NAACL 3.1: inside at VP, outside at the second D."""
    nodes = naive.nodes_of(parse_tree(FIGURE_1))
    verb_phrase = next(node for node in nodes if node.label == "VP")
    assert naive.inside_features(verb_phrase) == {
        "inside:left": "V",
        "inside:right": "NP",
        "inside:rule": ("VP", "V", "NP"),
        "inside:rule-left": (("VP", "V", "NP"), ("V", "saw")),
        "inside:rule-right": (("VP", "V", "NP"), ("NP", "D", "N")),
        "inside:left-head": "V",
        "inside:left-words": 1,
    }
    determiner = [node for node in nodes if node.label == "D"][1]
    assert naive.inside_features(determiner) == {"word:identity": ("D", "the")}
    assert naive.outside_features(determiner) == {
        "outside:rule": ("NP", "D*", "N"),
        "outside:rules-2": (("NP", "D*", "N"), ("VP", "V", "NP*")),
        "outside:rules-3": (("NP", "D*", "N"), ("VP", "V", "NP*"), ("S", "NP", "VP*")),
        "outside:parent": "NP",
        "outside:parents": ("NP", "VP"),
        "outside:head": "N",
        "outside:left-words": 3,
        "outside:right-words": 1,
    }


def test_the_documented_examples_of_all_templates_are_of_figure_1() -> None:
    """Every template of NAACL 3.1 is there, once, under its own name."""
    nodes = naive.nodes_of(parse_tree(FIGURE_1))
    leaf = next(node for node in nodes if node.label == "V")
    inner = next(node for node in nodes if node.label == "VP")
    expected = [
        *naive.inside_features(inner),
        *naive.inside_features(leaf),
        *naive.outside_features(leaf),
    ]
    assert list(ALL_TEMPLATES) == expected
    assert {template.side for template in TEMPLATES} == {"inside", "word", "outside"}


# The slow twin ------------------------------------------------------------------------------------


def same_partition(numbers: np.ndarray, descriptions: list[Hashable]) -> bool:
    """Return True if numbers are equal exactly where descriptions are."""
    pairs = set(zip(numbers.tolist(), descriptions, strict=True))
    return len(pairs) == len(set(numbers.tolist())) == len(set(descriptions))


def test_features_differ_exactly_when_their_descriptions_do(varied: list[Tree]) -> None:
    """Feature by feature, for the examples of every symbol."""
    context = arrays_of(varied)
    nodes = [node for tree in strees_of(context.forest) for node in naive.nodes_of(tree)]
    features = Features.of(context, ALL_TEMPLATES)
    for a in range(features.n_symbols):
        own = [nodes[v] for v in features.nodes[features.start[a] : features.start[a + 1]]]
        for side, describe in (
            (features.inside(a), naive.inside_features),
            (features.outside(a), naive.outside_features),
        ):
            described = [describe(node) for node in own]
            names = list(described[0])
            assert side.feature.shape == (len(own), len(names))
            for t, name in enumerate(names):
                descriptions = [values[name] for values in described]
                assert same_partition(side.feature[:, t], descriptions), (name, own[0].label)


def test_features_of_words_are_those_of_the_words_there(varied: list[Tree]) -> None:
    """The terminal, or the last three letters, of the words at and around every node."""
    context = arrays_of(varied)
    trees = strees_of(context.forest)
    words = [[leaf.word or "" for leaf in tree.leaves()] for tree in trees]
    forest = context.forest
    codes = {template.name: template.values(context)[0] for template in MORE_TEMPLATES}
    described: dict[str, list[Hashable]] = {name: [] for name in codes}
    for v in range(forest.n_nodes):
        own, start, end = words[forest.tree[v]], int(forest.start[v]), int(forest.end[v])
        around = [None, *own, None]
        inner = [*own[start:end], None]
        itself = own[start] if forest.is_leaf[v] else None
        for name, word in {
            "inside:first-word": inner[0],
            "inside:second-word": inner[1],
            "outside:word-before": around[start],
            "outside:word-after": around[end + 1],
        }.items():
            described[name].append(word)
        for name, word in {
            "inside:first-ending": inner[0],
            "word:ending": itself,
            "outside:ending-before": around[start],
            "outside:ending-after": around[end + 1],
        }.items():
            described[name].append(word and word.lower()[-3:])
    for name, values in described.items():
        assert same_partition(codes[name], values), name


def test_heads_are_those_of_the_whole_production(varied: list[Tree]) -> None:
    forest = forest_of(varied)
    found = head_leaves(forest, levels(forest))
    for t, tree in enumerate(strees_of(forest)):
        nodes = naive.nodes_of(tree)
        first = int(forest.tree_start[t])
        for v, node in enumerate(nodes, start=first):
            assert nodes[found[v] - first] is naive.head(node)


# Heads by hand ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tree", "head"),
    [
        ("(NP (DT the) (JJ old) (NN man))", "man"),
        ("(NP (NP (DT the) (NN end)) (PP (IN of) (NP (NNS days))))", "end"),
        ("(NP (NP (NNS cats)) (CC and) (NP (NNS dogs)))", "cats"),
        ("(NP (NP (NNP Kim) (POS 's)) (NN hat))", "hat"),
        ("(VP (MD may) (RB not) (VP (VB fall)))", "may"),
        ("(VP (VBZ is) (VP (VBN seen)))", "is"),
        ("(S (PP (IN in) (NP (NNP May))) (, ,) (NP (PRP we)) (VP (VBP sing)) (. .))", "sing"),
        ("(SBAR (IN if) (S (NP (PRP we)) (VP (VBP sing))))", "if"),
        ("(PP (RB just) (IN below) (NP (NN zero)))", "below"),
        ("(PRN (-LRB- -LRB-) (NP (NNP Kim)) (-RRB- -RRB-))", "Kim"),
        ("(ADJP (RB very) (JJ old))", "old"),
        ("(QP (IN about) (CD five) (CD hundred))", "about"),
        ("(S|VP (TO to) (VP (VB sing)))", "to"),
        # A label without a row: its own label, else the leftmost that is no punctuation.
        ("(CS (ADV toch) (CS (X a) (Y b)) (Y c))", "a"),
        ("(CS (, ,) (ADV toch) (Y c))", "toch"),
        ("(CS (, ,) (. .))", ","),
    ],
)
def test_heads_of_common_productions(tree: str, head: str) -> None:
    forest = forest_of([binarize(parse_tree(tree))])
    found = head_leaves(forest, levels(forest))
    assert forest.words[forest.word[found[-1]]] == head


@pytest.mark.parametrize("horizontal", [0, 1])
def test_an_intermediate_symbol_has_the_head_of_its_part(horizontal: int) -> None:
    """@NP over `the old` of `the old man` holds `old`; @VP over `saw him` holds `saw`."""
    text = "(S (NP (DT the) (JJ old) (NN man)) (VP (VBD saw) (NP (PRP him)) (ADVP (RB often))))"
    forest = forest_of([binarize(parse_tree(text), horizontal=horizontal)])
    found = head_leaves(forest, levels(forest))
    heads = {
        forest.symbols[a].partition("<")[0]: forest.words[forest.word[leaf]]
        for a, leaf in zip(forest.symbol, found, strict=True)
        if forest.symbols[a].startswith("@")
    }
    assert heads == {"@NP": "old", "@VP": "saw"}


# Choosing templates -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL_TEMPLATES)
def test_every_template_can_be_left_out(name: str) -> None:
    context = arrays_of([parse_tree(FIGURE_1)])
    kept = [other for other in ALL_TEMPLATES if other != name]
    whole, rest = (Features.of(context, names) for names in (ALL_TEMPLATES, kept))
    side = name.partition(":")[0]
    sizes = {key: len(columns) for key, columns in whole.columns.items()}
    sizes[side] -= 1
    assert {key: len(columns) for key, columns in rest.columns.items()} == sizes


def test_counts_say_how_many_examples_have_each_feature() -> None:
    context = arrays_of([parse_tree(FIGURE_1)] * 3)
    features = Features.of(context, ALL_TEMPLATES)
    for a in range(features.n_symbols):
        for side in (features.inside(a), features.outside(a)):
            assert side.n_features == len(side.count)
            found = np.bincount(side.feature.ravel(), minlength=side.n_features)
            assert found.tolist() == side.count.tolist()
            assert side.count.min() > 0


def test_an_unknown_template_is_refused() -> None:
    with pytest.raises(TrainingError, match=r"expected feature templates among .*, got inside:no"):
        Features.of(arrays_of([parse_tree(FIGURE_1)]), ("inside:no",))


def test_pairs_of_values_stay_apart_in_grammars_too_large_for_one_number() -> None:
    first = (np.array([2**62 - 1, 5, 5, 2**62 - 1]), 2**62)
    second = (np.array([7, 7, 0, 7]), 8)
    codes, size = features._pair(first, second)
    assert codes.min() >= 0
    assert codes.max() < size
    assert same_partition(codes, [(1, 7), (0, 7), (0, 0), (1, 7)])
    alone, _ = features._pair((first[0][1:2], first[1]), (second[0][1:2], second[1]))
    assert alone[0] == codes[1]  # the same number in any part of a treebank
