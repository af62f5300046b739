"""Treebanks as forests: nothing lost, nothing moved, the same bytes however they are read."""

import gzip
import io
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lpcfg.base import executors
from lpcfg.base.errors import InputError, TrainingError, TreebankError
from lpcfg.base.executors import Pool
from lpcfg.grammar.lexicon import ANY
from lpcfg.grammar.tables import Grammar
from lpcfg.text.tokenize import penn_forms
from lpcfg.training.data import treebank
from lpcfg.training.data.treebank import (
    Forest,
    forest_of,
    grammar_of,
    lexicon_of,
    node_entries,
    node_rules,
    read_forest,
    strees_of,
    unmarked,
)
from lpcfg.trees.binarize import LEAF_MARK, SIBLING_MARK, binarize, restore, split_chain
from lpcfg.trees.brackets import read
from lpcfg.trees.normalize import normalize
from lpcfg.trees.tree import Tree
from tests.strategies_grammar import entry_name

ARRAYS = ("symbol", "left", "right", "parent", "start", "end", "word", "tree_start", "source")

# The label A stands over words and over children on purpose.
leaves = st.builds(
    lambda label, word: Tree(label, (), word),
    st.sampled_from(["A", "N", "V|N", "é"]),
    st.sampled_from(["x", "y", "-LRB-", "\U0001f600", "a\u00a0b"]),
)
strees = st.recursive(
    leaves,
    lambda inner: st.builds(
        lambda label, left, right: Tree(label, (left, right)),
        st.sampled_from(["A", "S|VP", "@S", "@S<N"]),
        inner,
        inner,
    ),
    max_leaves=12,
)


def contents(forest: Forest) -> list[object]:
    arrays = [getattr(forest, name) for name in ARRAYS]
    return [forest.symbols, forest.n_internal, forest.words, *((a.dtype, *a) for a in arrays)]


def forest_from(text: str, **options: int) -> Forest:
    return read_forest(io.StringIO(text), **options)


def spans(tree: Tree, start: int = 0) -> list[tuple[str, int, int, str | None]]:
    """Label, start, end and word of every node in post-order, by plain recursion."""
    found: list[tuple[str, int, int, str | None]] = []
    end = start + (tree.word is not None)
    for child in tree.children:
        found += spans(child, end)
        end = found[-1][2]
    return [*found, (tree.label, start, end, tree.word)]


@given(st.lists(strees, min_size=1, max_size=5))
def test_a_forest_restores_its_s_trees_exactly(trees: list[Tree]) -> None:
    assert strees_of(forest_of(trees)) == trees


@given(st.lists(strees, min_size=1, max_size=5))
def test_arrays_of_a_forest_describe_its_trees(trees: list[Tree]) -> None:
    forest = forest_of(trees)
    expected = [row for tree in trees for row in spans(tree)]
    names = [forest.symbols[a].removesuffix(LEAF_MARK) for a in forest.symbol]
    words = [None if x < 0 else forest.words[x] for x in forest.word]
    rows = zip(names, forest.start.tolist(), forest.end.tolist(), words, strict=True)
    assert list(rows) == expected
    for node in np.flatnonzero(~forest.is_leaf):
        left, right = forest.left[node], forest.right[node]
        assert forest.parent[left] == forest.parent[right] == node
        assert forest.start[node] == forest.start[left] <= forest.end[left] == forest.start[right]
        assert forest.end[node] == forest.end[right]
    assert (forest.left[forest.is_leaf] == -1).all()
    assert (forest.right[forest.is_leaf] == -1).all()
    assert np.flatnonzero(forest.parent < 0).tolist() == forest.roots.tolist()
    assert np.bincount(forest.tree).tolist() == np.diff(forest.tree_start).tolist()


@given(st.lists(strees, min_size=1, max_size=5))
def test_no_symbol_has_both_words_and_children(trees: list[Tree]) -> None:
    forest = forest_of(trees)
    assert (forest.is_leaf == (forest.symbol >= forest.n_internal)).all()
    internal, preterminals = (
        forest.symbols[: forest.n_internal],
        forest.symbols[forest.n_internal :],
    )
    assert list(internal) == sorted(set(internal))
    assert list(preterminals) == sorted(set(preterminals))
    assert not set(internal) & set(preterminals)


def test_the_preterminal_of_a_name_that_also_has_children_is_marked() -> None:
    forest = forest_from("(S (NP it) (VP (V is) (NP (D the) (N end))))")
    assert forest.symbols == ("NP", "S", "VP", "D", "N", "NP<", "V")
    assert forest.n_internal == 3
    text = "(S (NP it) (VP (V is) (NP (D the) (N end))))"
    assert [repr(restore(stree)) for stree in strees_of(forest)] == [text]


def test_symbols_of_chains_are_those_of_the_whole_chain() -> None:
    forest = forest_from("( (S (NP (NN time)) (VP (VBZ flies))) )")
    assert forest.symbols == ("S", "NP|NN", "VP|VBZ")
    assert forest.words == ("flies", "time")


def in_forms(tree: Tree) -> Tree:
    """Return the tree with its words in the forms that a parser looks up."""
    forms = iter(penn_forms(tree.tokens(), [leaf.label for leaf in tree.leaves()]))

    def rebuilt(node: Tree) -> Tree:
        if node.is_leaf:
            return Tree(node.label, (), next(forms))
        return Tree(node.label, tuple(rebuilt(child) for child in node.children))

    return rebuilt(tree)


def test_words_are_kept_in_the_forms_that_a_parser_looks_up() -> None:
    forest = forest_from("(S (`` \") (NP (NN end)) ('' \") (POS ’s))")
    assert forest.words == ("''", "'s", "``", "end")


@pytest.mark.parametrize("horizontal", [0, 1])
def test_real_trees_come_back_from_the_forest(treebanks: Path, horizontal: int) -> None:
    source = treebanks / "gum" / "dev.mrg"
    forest = read_forest(source, horizontal=horizontal, sibling_threshold=0)
    normal = [in_forms(tree) for tree in map(normalize, read(source)) if tree is not None]
    assert strees_of(forest) == [binarize(tree, horizontal=horizontal) for tree in normal]
    assert [restore(stree) for stree in strees_of(forest)] == normal


def test_the_forest_does_not_depend_on_the_number_of_workers(
    treebanks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = treebanks / "gum" / "dev.mrg"
    whole = read_forest(source, horizontal=1)
    monkeypatch.setattr(treebank, "_CHUNK", 1 << 15)
    monkeypatch.setattr(executors, "ENOUGH", 1)
    for workers in (1, 2, 3):
        with Pool(workers) as beside:
            chunks = read_forest(source, horizontal=1, pool=beside)
        assert contents(chunks) == contents(whole)


def test_chunks_are_cut_between_trees_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(treebank, "_CHUNK", 4)
    text = "(S (A \U0001f600)\n   (B b))(S (A c) (B d))\n\n ( (S\n(A e)\n(B f)) ) \n"
    chunks = [chunk.decode() for chunk in treebank._chunks(text)]
    assert "".join(chunks) == text
    assert [chunk.strip() for chunk in chunks] == [
        "(S (A \U0001f600)\n   (B b))",
        "(S (A c) (B d))",
        "( (S\n(A e)\n(B f)) )",
    ]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ("(S (A a) b)", r"bank\.mrg:41:10: expected '\(' or '\)' after a child, got the word 'b'"),
        ("(S (A a)))", r"bank\.mrg:41:10: expected '\(' to begin a tree, got '\)'"),
        ("(S (A a)", r"bank\.mrg:81:.*expected '\)' to close the tree opened at 41:1"),
    ],
)
def test_an_error_in_a_later_piece_names_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int, bad: str, problem: str
) -> None:
    monkeypatch.setattr(treebank, "_CHUNK", 64)
    monkeypatch.setattr(executors, "ENOUGH", 1)
    good = "(S (A a) (B b))\n" * 40
    (tmp_path / "bank.mrg").write_text(good + bad + "\n" + good)
    with Pool(workers) as beside, pytest.raises(TreebankError, match=problem):
        read_forest(tmp_path / "bank.mrg", pool=beside)


def test_sources_may_be_a_file_a_folder_a_stream_or_several(tmp_path: Path) -> None:
    one, two = "(S (A a) (B b))", "(S (B b) (C c))"
    (tmp_path / "1.mrg").write_text(one)
    (tmp_path / "2.mrg.gz").write_bytes(gzip.compress(two.encode()))
    expected = contents(forest_from(one + two))
    assert contents(read_forest(tmp_path)) == expected
    assert contents(read_forest(str(tmp_path))) == expected
    several = read_forest([tmp_path / "1.mrg", io.BytesIO(two.encode())])
    assert several.source.tolist() == [0, 1]
    assert contents(replace(several, source=np.zeros(2, np.int32))) == expected


def test_an_empty_text_is_refused() -> None:
    with pytest.raises(TreebankError, match="1:1: expected at least one tree, got none: give it"):
        forest_from(" \n")


def test_a_treebank_of_traces_alone_is_refused(tmp_path: Path) -> None:
    (tmp_path / "traces.mrg").write_text("(S (NP (-NONE- *)))")
    with pytest.raises(
        TrainingError, match=r"at least one tree with words in .*traces\.mrg, got none: give files"
    ):
        read_forest(tmp_path / "traces.mrg")


def test_trees_left_empty_by_normalizing_are_skipped() -> None:
    forest = forest_from("(S (NP (-NONE- *))) (S (A a) (B b)) (S (-NONE- 0))")
    assert forest.n_trees == 1


def test_no_sources_are_refused() -> None:
    with pytest.raises(TrainingError, match="words in an empty list of sources, got none"):
        read_forest([])
    with pytest.raises(InputError, match=r"readable file.*nowhere\.mrg: check the path"):
        read_forest("nowhere.mrg")


def test_deeper_trees_than_allowed_are_refused() -> None:
    text = "(S " * 30 + "(A a)" + ")" * 30
    assert forest_from(text).n_nodes == 1
    with pytest.raises(TreebankError, match="at most 20 nested brackets"):
        forest_from(text, max_depth=20)


@pytest.mark.parametrize(
    ("text", "symbols", "n_internal", "n_nodes"),
    [
        ("(S (A a) (B b))", ("S", "A", "B"), 1, 3),
        ("(X (A a)) (A b) (A b)", ("A", "X|A"), 0, 3),
        ("(S (A a) (B b))" * 50, ("S", "A", "B"), 1, 150),
    ],
    ids=["one tree", "only one-word trees", "all trees equal"],
)
def test_small_treebanks_make_forests_and_grammars(
    text: str, symbols: tuple[str, ...], n_internal: int, n_nodes: int
) -> None:
    forest = forest_from(text)
    assert (forest.symbols, forest.n_internal, forest.n_nodes) == (symbols, n_internal, n_nodes)
    lexicon = lexicon_of(forest, rare_threshold=3, language="english")
    grammar = grammar_of(forest, lexicon)
    assert (node_rules(forest, grammar) >= 0).tolist() == (~forest.is_leaf).tolist()
    assert (node_entries(forest, grammar, lexicon) >= 0).tolist() == forest.is_leaf.tolist()


def test_sibling_marks_seen_too_rarely_are_dropped() -> None:
    often, seldom = "(V (A a) (B b) (C c))" * 3, "(V (A a) (D d) (C c))" * 2
    forest = forest_from(often + seldom, horizontal=1, sibling_threshold=3)
    assert forest.symbols == ("@V", "@V<B", "V", "A", "B", "C", "D")
    assert np.bincount(forest.symbol)[:2].tolist() == [2, 3]
    kept = forest_from(often + seldom, horizontal=1, sibling_threshold=2)
    assert kept.symbols[:2] == ("@V<B", "@V<D")


def test_without_marks_a_forest_is_that_of_bare_intermediates(treebanks: Path) -> None:
    source = treebanks / "gum" / "dev.mrg"
    marked = read_forest(source, horizontal=1)
    assert any(SIBLING_MARK in name for name in marked.symbols)
    assert contents(unmarked(marked)) == contents(read_forest(source, horizontal=0))


def test_the_fingerprint_is_that_of_the_trees() -> None:
    text = "(S (NP-SBJ (D the) (N end)) (VP (V is) (ADJP (R very) (J near)) (. .)))"
    forest = forest_from(text)
    same = [
        forest_from("( (S (NP=2 (D the) (N end))\n\t(VP (V is) (ADJP (R very) (J near)) (. .))))"),
        forest_from(text, horizontal=1, sibling_threshold=0),
        forest_from(text + "(S (NP (-NONE- *)))"),
    ]
    assert {other.fingerprint for other in same} == {forest.fingerprint}
    different = [
        forest_from(text.replace("near", "far")),
        forest_from(text.replace("VP", "XP")),
        forest_from(text + text),
        forest_from("(S (NP (D the) (N end)) (VP (V is) (ADJP (R very) (J near))) (. .))"),
    ]
    assert forest.fingerprint not in {other.fingerprint for other in different}


def naive_counts(forest: Forest) -> tuple[Counter[tuple[str, ...]], Counter[tuple[str, str]]]:
    """Count rules and (preterminal, word) pairs of the s-trees, by name."""
    rules: Counter[tuple[str, ...]] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    for node in (node for tree in strees_of(forest) for node in tree.nodes()):
        if node.word is None:
            rules[(node.label, *(child.label for child in node.children))] += 1
        else:
            pairs[(node.label, node.word)] += 1
    return rules, pairs


def named_rules(grammar: Grammar) -> list[tuple[str, ...]]:
    return [tuple(grammar.symbols[s] for s in rule) for rule in grammar.rules]


def test_the_grammar_has_every_rule_and_every_entry_seen(treebanks: Path) -> None:
    forest = read_forest(treebanks / "gum" / "dev.mrg", horizontal=1)
    assert not any(name.endswith(LEAF_MARK) for name in forest.symbols)
    lexicon = lexicon_of(forest, rare_threshold=3, language="english")
    grammar = grammar_of(forest, lexicon)
    rules, pairs = naive_counts(forest)
    counts = np.bincount(node_rules(forest, grammar)[~forest.is_leaf], minlength=grammar.n_rules)
    assert dict(zip(named_rules(grammar), counts.tolist(), strict=True)) == rules
    terminal = dict(zip(forest.words, lexicon.word_terminal.tolist(), strict=True))
    expected: Counter[tuple[str, str]] = Counter()
    for (label, word), n in pairs.items():
        expected[(label, lexicon.terminals[terminal[word]])] += n
    entry = node_entries(forest, grammar, lexicon)[forest.is_leaf]
    seen = np.bincount(entry, minlength=len(grammar.entries))
    names = [(grammar.symbols[a], grammar.terminals[x]) for a, x in grammar.entries]
    assert {name: n for name, n in zip(names, seen.tolist(), strict=True) if n} == expected
    assert {name for name in names if name[1] == ANY} == {
        (name, ANY) for name in forest.symbols[forest.n_internal :]
    }


def test_a_literal_lexicon_makes_every_word_a_terminal() -> None:
    forest = forest_from("(S (A a) (B b)) (S (B a) (A a))")
    lexicon = lexicon_of(forest, rare_threshold=0, language="english")
    grammar = grammar_of(forest, lexicon)
    assert [entry_name(grammar, e) for e in range(len(grammar.entries))] == [
        "A → a",
        "B → a",
        "B → b",
    ]


def test_a_grammar_of_other_trees_is_refused() -> None:
    small, large = forest_from("(S (A a) (A a))"), forest_from("(S (A a) (S (A a) (A a)))")
    lexicon = lexicon_of(small, rare_threshold=0, language="english")
    grammar = grammar_of(small, lexicon)
    with pytest.raises(TrainingError, match="the grammar made from this forest, got one without"):
        node_rules(large, grammar)


def test_forests_are_read_only() -> None:
    forest = forest_from("(S (A a) (B b))")
    for name in ARRAYS:
        with pytest.raises(ValueError, match="read-only"):
            getattr(forest, name)[0] = 7


def test_a_marked_preterminal_has_the_labels_of_an_unmarked_one() -> None:
    assert split_chain("NP|NN" + LEAF_MARK) == split_chain("NP|NN") == ["NP", "NN"]


def test_every_tree_knows_which_source_it_comes_from(tmp_path: Path) -> None:
    (tmp_path / "a.mrg").write_text("(S (A x)) (S (A y))")
    (tmp_path / "b.mrg").write_text("(S (A z))")
    sources = [tmp_path / "b.mrg", tmp_path / "a.mrg", tmp_path / "b.mrg"]
    forest = read_forest(sources)
    assert forest.source.tolist() == [0, 1, 1, 2]
    assert [tree.tokens() for tree in strees_of(forest)] == [["z"], ["x"], ["y"], ["z"]]
