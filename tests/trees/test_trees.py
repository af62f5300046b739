"""Reading, writing, normalizing, binarizing and restoring trees."""

import codecs
import gc
import gzip
import io
import itertools
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lpcfg.base.collector import collector_paused
from lpcfg.base.errors import InputError, TreebankError
from lpcfg.text.files import Source, texts
from lpcfg.trees import brackets
from lpcfg.trees.binarize import (
    LEAF_MARK,
    binarize,
    escape,
    is_intermediate,
    restore,
    split_chain,
    unescape,
)
from lpcfg.trees.brackets import (
    parse_tree,
    ptb_escape,
    ptb_unescape,
    read,
    read_string,
    without_malformed,
    write,
)
from lpcfg.trees.normalize import normalize
from lpcfg.trees.tree import Tree
from tests.strategies import NASTY_LABELS, NASTY_WORDS, chain, labels, treebank_trees, words
from tests.strategies import trees as any_trees

DEEP = 100_000


def leaf(label: str, word: str) -> Tree:
    return Tree(label, (), word)


def right_branching(depth: int) -> Tree:
    tree = leaf("NN", "end")
    for _ in range(depth - 1):
        tree = Tree("NP", (leaf("DT", "the"), tree))
    return tree


DOG = Tree("NP", (leaf("DT", "the"), leaf("NN", "dog")))


# Trees --------------------------------------------------------------------------------------------


def test_a_tree_knows_its_nodes_leaves_and_tokens() -> None:
    tree = Tree("S", (DOG, Tree("VP", (leaf("VBZ", "barks"),))))
    assert [node.label for node in tree.nodes()] == ["S", "NP", "DT", "NN", "VP", "VBZ"]
    assert tree.leaves() == [leaf("DT", "the"), leaf("NN", "dog"), leaf("VBZ", "barks")]
    assert tree.tokens() == ["the", "dog", "barks"]
    assert [node.is_leaf for node in tree.nodes()] == [False, False, True, True, False, True]
    assert repr(tree) == "(S (NP (DT the) (NN dog)) (VP (VBZ barks)))"


@pytest.mark.parametrize(
    "other",
    [
        Tree("NP", (leaf("DT", "the"), leaf("NN", "cat"))),
        Tree("NP", (leaf("DT", "the"), leaf("NNS", "dog"))),
        Tree("NX", (leaf("DT", "the"), leaf("NN", "dog"))),
        Tree("NP", (leaf("DT", "the"),)),
        Tree("NP", (leaf("DT", "the"), Tree("NN", (leaf("NN", "dog"),)))),
        "(NP (DT the) (NN dog))",
    ],
)
def test_trees_are_unequal_when_any_part_differs(other: object) -> None:
    assert other != DOG
    assert len({DOG, other}) == 2


def test_equal_trees_have_equal_hashes_however_they_are_built() -> None:
    again = parse_tree("(NP (DT the) (NN dog))")
    assert again is not DOG
    assert again == DOG
    assert len({DOG, again}) == 1


def test_the_shape_of_a_tree_is_part_of_its_hash() -> None:
    flat = Tree("A", (Tree("B", (leaf("C", "c"),)), leaf("D", "d")))
    tall = Tree("A", (Tree("B", (leaf("C", "c"), leaf("D", "d"))),))
    assert hash(flat) != hash(tall)


@pytest.mark.parametrize(
    ("children", "word", "got"), [((), None, "neither"), ((DOG,), "dog", "both")]
)
def test_a_node_has_either_children_or_a_word(
    children: tuple[Tree, ...], word: str | None, got: str
) -> None:
    message = f"expected either children or a word under 'NP', got {got}: only a leaf has a word"
    with pytest.raises(InputError, match=f"^{message}$"):
        Tree("NP", children, word)


def test_deep_trees_do_not_need_the_interpreters_stack() -> None:
    deep, again = right_branching(DEEP), right_branching(DEEP)
    assert deep == again
    assert hash(deep) == hash(again)
    assert len(deep.leaves()) == DEEP
    assert repr(deep) == write(deep)
    assert parse_tree(write(deep), max_depth=DEEP) == deep
    assert normalize(deep) == deep
    assert restore(binarize(deep)) == deep
    wide = Tree("NP", tuple(deep.leaves()))
    stree = binarize(wide, horizontal=1)
    assert stree.children[0].label == "@NP<DT"
    assert restore(stree) == wide
    tall = chain(["X"] * 5_000, DOG)
    assert restore(binarize(tall)) == tall


# Reading ------------------------------------------------------------------------------------------

TWO = [DOG, Tree("", (Tree("S", (Tree("NP", (leaf("NN", "rain"),)),)),))]


@pytest.mark.parametrize(
    "text",
    [
        "(NP (DT the) (NN dog)) ( (S (NP (NN rain))) )",
        "(NP (DT the) (NN dog))\n((S(NP(NN rain))))\n",
        "(NP (DT the)(NN dog))((S (NP (NN rain))))",
        "\ufeff(NP\r\n  (DT the)\r\n  (NN dog))\r\n\r\n(\r\n  (S (NP (NN rain))))\r\n",
        "\n\f( NP\t( DT\tthe )\v(NN\ndog\n)\n)\n(\n(S (NP (NN rain ) ) ) )",
    ],
)
@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 8, 13, 1 << 18])
def test_neither_layout_nor_chunk_borders_matter(
    text: str, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(brackets, "_CHUNK", chunk)
    assert list(read_string(text)) == TWO


def test_only_ascii_white_space_separates() -> None:
    tree = parse_tree("(N\u00a0N 10\u00a0000\u2028\x1c)")
    assert tree == leaf("N\u00a0N", "10\u00a0000\u2028\x1c")


def test_a_leaf_has_one_word_even_with_spaces_inside() -> None:
    text = "(NML (NN Xpd \t\n TTD ) (HYPH /) (NN † X PCS))"
    tree = parse_tree(text)
    assert tree.tokens() == ["Xpd TTD", "/", "† X PCS"]
    assert write(tree) == "(NML (NN Xpd TTD) (HYPH /) (NN † X PCS))"


def test_words_stay_as_they_are_written() -> None:
    assert parse_tree("(X (-LRB- -LRB-) (-LRB- [) (: \\/))").tokens() == ["-LRB-", "[", "\\/"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "b").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x").write_text("not a tree")
    (tmp_path / ".DS_Store").write_text("not a tree")
    (tmp_path / "c.mrg").write_bytes(codecs.BOM_UTF8 + "(NN c\u00e9)\r\n".encode())
    (tmp_path / "b" / "z.mrg").write_text("(NN bz)")
    (tmp_path / "b" / "a.mrg.gz").write_bytes(gzip.compress(b"(NN ba) (NN bb)"))
    (tmp_path / "a.txt").write_text("(NN a)")
    return tmp_path


def test_texts_come_without_byte_order_marks(folder: Path) -> None:
    sources: list[Source] = [folder / "c.mrg", io.StringIO("\ufeff(NN s)")]
    found = [text for source in sources for text in texts(source)]
    assert found == [(str(folder / "c.mrg"), "(NN c\u00e9)\r\n"), ("<stream>", "(NN s)")]


def tokens(source: Source | list[Source]) -> list[str]:
    return [token for tree in read(source) for token in tree.tokens()]


def test_files_folders_streams_and_lists_are_read(folder: Path) -> None:
    assert tokens(folder) == ["a", "ba", "bb", "bz", "cé"]
    assert tokens(str(folder / "b")) == ["ba", "bb", "bz"]
    assert tokens(folder / "c.mrg") == ["cé"]
    assert tokens(io.StringIO("\ufeff(NN s)")) == ["s"]
    assert tokens(io.BytesIO(gzip.compress("(NN é)".encode()))) == ["é"]
    assert tokens([folder / "a.txt", io.BytesIO(b"(NN s)"), str(folder / "b")]) == [
        *("a", "s", "ba", "bb", "bz")
    ]
    assert tokens([]) == []


def test_standard_input_is_read_as_bytes_where_it_has_any(monkeypatch: pytest.MonkeyPatch) -> None:
    latin = io.TextIOWrapper(io.BytesIO("(NN é)".encode()), encoding="latin-1")
    monkeypatch.setattr(sys, "stdin", latin)
    assert tokens("-") == ["é"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("(NN s)"))
    assert tokens(["-"]) == ["s"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("(NN s"))
    with pytest.raises(TreebankError, match=r"^<stdin>:1:6: expected '\)'"):
        tokens("-")


def test_files_are_opened_one_after_another(folder: Path) -> None:
    stream = read([folder / "a.txt", folder / "absent.mrg"])
    assert next(stream) == leaf("NN", "a")
    with pytest.raises(InputError, match=r"absent\.mrg"):
        next(stream)


def test_unreadable_sources_are_named_with_the_reason(folder: Path) -> None:
    absent = folder / "absent.mrg"
    message = (
        f"expected a readable file, got 'No such file or directory' at {absent}: "
        "check the path and its permissions"
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        list(read(absent))
    empty = folder / "empty"
    empty.mkdir()
    message = f"expected files in the folder {empty}, got none: check the path"
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        list(read(empty))


@pytest.mark.parametrize(
    "damage",
    [lambda data: data[:-6], lambda data: data[:12] + b"\xff" * 20, lambda data: data + b"tail"],
)
def test_damaged_compression_is_refused(tmp_path: Path, damage: object) -> None:
    assert callable(damage)
    path = tmp_path / "torn.mrg.gz"
    path.write_bytes(damage(gzip.compress(b"(NN a)" * 1000)))
    with pytest.raises(
        InputError,
        match=rf"^expected a whole compressed file, got a damaged one \(.+\), at {path}: copy it",
    ):
        list(read(path))


@pytest.mark.parametrize("bom", [b"", codecs.BOM_UTF8])
def test_invalid_utf8_is_refused_where_it_stands(bom: bytes) -> None:
    content = bom + "(NN é)\n(NN 🙂".encode() + b"\xe9)"
    message = "<stream>:2:6: expected UTF-8, got the byte 0xe9: convert the text to UTF-8"
    with pytest.raises(InputError, match=f"^{message}$"):
        list(read(io.BytesIO(content)))
    with pytest.raises(InputError, match=f"^{message}$"):
        list(read(io.TextIOWrapper(io.BytesIO(content), encoding="utf-8")))


MALFORMED = [
    (
        "",
        1,
        1,
        "expected at least one tree, got none: give it trees such as (NP (DT the) (NN end))",
    ),
    (
        " \r\n",
        *(1, 1),
        "expected at least one tree, got none: give it trees such as (NP (DT the) (NN end))",
    ),
    (
        "(NN a)\nfoo (NN b)",
        *(2, 1),
        "expected '(' to begin a tree, got the word 'foo': bracket it or remove it",
    ),
    (
        "(NN a))",
        *(1, 7),
        "expected '(' to begin a tree, got ')' that closes nothing: remove it or add its '('",
    ),
    (
        "(NP (NN 🙂é)) )",
        *(1, 14),
        "expected '(' to begin a tree, got ')' that closes nothing: remove it or add its '('",
    ),
    ("(())", 1, 3, "expected a label, got ')': fill or remove the empty bracket opened at 1:2"),
    ("\n( )", 2, 3, "expected a label, got ')': fill or remove the empty bracket opened at 2:1"),
    (
        "(NP\n (NN ))",
        *(2, 6),
        "expected a word or '(' after the label 'NN', got ')': "
        "fill or remove the empty bracket opened at 2:2",
    ),
    (
        "(S (NN a b (NN c)))",
        *(1, 12),
        "expected ')' after the word 'a b', got '(': bracket it with its tag",
    ),
    (
        "(NP (NN a) \u00a0)",
        *(1, 12),
        "expected '(' or ')' after a child, got the word '\\xa0': bracket it with its tag",
    ),
    (
        "(S\r\n ((NN a)))",
        *(2, 3),
        "expected a label for the bracket opened at 2:2, got '(': "
        "add one, only the outermost bracket may go without",
    ),
    (
        "(NN a)\n(S (NP\n  (NN b)\n\n",
        *(3, 9),
        "expected ')' to close the tree opened at 2:1, got the end of the text "
        "(open brackets: 2, the last from 2:4): close each where it should end",
    ),
    (
        "(",
        *(1, 2),
        "expected ')' to close the tree opened at 1:1, got the end of the text "
        "(open brackets: 1, the last from 1:1): close each where it should end",
    ),
]


@pytest.mark.parametrize(("text", "line", "column", "problem"), MALFORMED)
def test_malformed_text_is_refused_with_what_where_and_the_cure(
    text: str, line: int, column: int, problem: str
) -> None:
    with pytest.raises(
        TreebankError, match=f"^{re.escape(f'<string>:{line}:{column}: {problem}')}$"
    ) as caught:
        list(read_string(text))
    error = caught.value
    assert (error.line, error.column, error.problem) == (line, column, problem)
    assert error.source == "<string>"


def test_trees_before_the_malformed_one_are_given() -> None:
    stream = read_string("(NN a) (NN b) (NN")
    assert [next(stream), next(stream)] == [leaf("NN", "a"), leaf("NN", "b")]
    with pytest.raises(TreebankError, match=r"^<string>:1:18: "):
        next(stream)


def test_errors_name_the_source(tmp_path: Path) -> None:
    path = tmp_path / "wrong.mrg"
    path.write_text("(NN a)\n)")
    with pytest.raises(TreebankError, match=f"^{path}:2:1: expected"):
        list(read(path))
    with path.open("rb") as stream, pytest.raises(TreebankError, match=f"^{path}:2:1: expected"):
        list(read(stream))


def test_depth_is_capped() -> None:
    allowed = "(X " * 499 + "(X x" + ")" * 500
    assert len(list(parse_tree(allowed).nodes())) == 500
    message = (
        r"<string>:2:1498: expected at most 500 nested brackets, got one more: close brackets "
        r"\(the outermost is open since 1:1\) or raise the depth limit"
    )
    with pytest.raises(TreebankError, match=f"^{message}$"):
        parse_tree(f"(X\n{allowed})")
    with pytest.raises(TreebankError, match=r"^<string>:1:9: expected at most 2 nested brackets"):
        parse_tree("(S (VP\t\t(V go)))", max_depth=2)
    assert parse_tree("(NN a)", max_depth=1) == leaf("NN", "a")


@pytest.mark.parametrize(
    "text", ["(X " * DEEP + "(X x" + ")" * (DEEP + 1), "(" * DEEP, "(a" * DEEP]
)
def test_hostile_depth_is_refused_by_the_cap(text: str) -> None:
    with pytest.raises(TreebankError, match=r"expected (at most 500 nested|a label for the)"):
        parse_tree(text)


def test_a_depth_cap_below_one_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"^expected a depth limit of at least 1, got 0: raise it$"
    ):
        parse_tree("(NN a)", max_depth=0)


def test_parse_tree_refuses_more_or_fewer_than_one_tree() -> None:
    assert parse_tree(" (NP (DT the) (NN dog)) ") == DOG
    message = "trees/3:2:2: expected one tree, got a second: give each tree by itself"
    with pytest.raises(TreebankError, match=f"^{message}$"):
        parse_tree("\ufeff(NP (DT the) (NN dog))\n (NN a) (NN b)", source="trees/3")


def test_the_collector_is_left_as_it_was() -> None:
    assert gc.isenabled()
    with pytest.raises(TreebankError, match="expected"):
        list(read_string("(NN a) )"))
    assert gc.isenabled()
    with collector_paused():
        assert list(read_string("(NN a)")) == [leaf("NN", "a")]
        assert not gc.isenabled()
    assert gc.isenabled()


class NaiveReader:
    """Brackets by recursive descent, one character at a time; ValueError if malformed."""

    def __init__(self, text: str) -> None:
        self.rest = text

    def trees(self) -> list[Tree]:
        found = []
        while self.peek():
            found.append(self.tree(top=True))
        if not found:
            raise ValueError
        return found

    def peek(self) -> str:
        self.rest = self.rest.lstrip(" ")
        return self.rest[:1]

    def take(self, character: str) -> None:
        if self.peek() != character:
            raise ValueError
        self.rest = self.rest[1:]

    def word(self) -> str:
        word = ""
        while self.rest and self.rest[0] not in " ()":
            word, self.rest = word + self.rest[0], self.rest[1:]
        return word

    def tree(self, *, top: bool) -> Tree:
        self.take("(")
        self.peek()
        label = self.word()
        pieces = []
        while self.peek() not in ("(", ")", ""):
            pieces.append(self.word())
        children = []
        while not pieces and self.peek() == "(":
            children.append(self.tree(top=False))
        self.take(")")
        if not (pieces or children) or not (label or (top and children)):
            raise ValueError
        return Tree(label, tuple(children), " ".join(pieces) or None)


def test_every_short_text_is_read_or_refused_as_by_recursive_descent() -> None:
    for length in range(9):
        for characters in itertools.product("()a ", repeat=length):
            text = "".join(characters)
            try:
                expected = NaiveReader(text).trees()
            except ValueError:
                with pytest.raises(TreebankError):
                    list(read_string(text))
            else:
                assert list(read_string(text)) == expected, text


# Writing ------------------------------------------------------------------------------------------


@given(treebank_trees())
def test_reading_undoes_writing(tree: Tree) -> None:
    line = write(tree)
    assert "\n" not in line
    assert parse_tree(line, max_depth=DEEP) == tree


@pytest.mark.parametrize(
    ("tree", "kind", "text"),
    [
        (leaf("NN", "("), "word", "("),
        (leaf("NN", "a)"), "word", "a)"),
        (leaf("NN", ""), "word", ""),
        (leaf("NN", " a"), "word", " a"),
        (leaf("NN", "a  b"), "word", "a  b"),
        (leaf("NN", "a\tb"), "word", "a\tb"),
        (leaf("", "a"), "label", ""),
        (leaf("N N", "a"), "label", "N N"),
        (Tree("S(", (DOG,)), "label", "S("),
        (Tree("S", (Tree("", (DOG,)),)), "label", ""),
    ],
)
def test_trees_that_brackets_cannot_hold_are_refused(tree: Tree, kind: str, text: str) -> None:
    message = (
        f"expected a {kind} that brackets can hold, got {text!r}: replace parentheses "
        "(ptb_escape does it) and white space, and fill what is empty"
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        write(tree)
    assert repr(tree).startswith("(")


ODD = st.text("a(b) \t\u00a0", max_size=4)


@given(
    st.recursive(
        st.builds(lambda label, word: Tree(label, (), word), ODD, ODD),
        lambda trees: st.builds(Tree, ODD, st.lists(trees, min_size=1, max_size=3).map(tuple)),
        max_leaves=4,
    )
)
def test_just_the_trees_whose_every_label_and_word_fits_are_written(tree: Tree) -> None:
    def fits(text: str) -> bool:
        return text != "" and not set(text) & set("() \t")

    bare = not tree.label and tree.word is None
    labels = all(fits(node.label) or (bare and node is tree) for node in tree.nodes())
    words = all(fits(part) for word in tree.tokens() for part in word.split(" "))
    try:
        assert write(tree) == repr(tree)
    except InputError:
        assert not (labels and words)
    else:
        assert labels
        assert words


def test_ptb_escapes_are_those_of_the_treebanks() -> None:
    assert ptb_escape("()[]{}") == "-LRB--RRB--LSB--RSB--LCB--RCB-"
    assert ptb_escape("Spouse(s)") == "Spouse-LRB-s-RRB-"
    assert ptb_unescape("Spouse-LRB-s-RRB-") == "Spouse(s)"
    assert ptb_unescape("-LRB") == "-LRB"
    assert ptb_unescape("-lrb-") == "-lrb-"


@given(st.text(st.sampled_from("()[]{}-🙂a \u00a0")))
def test_ptb_unescape_undoes_ptb_escape(word: str) -> None:
    assert ptb_unescape(ptb_escape(word)) == word
    assert not set("()[]{}") & set(ptb_escape(word))


# Normalizing --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "normalized"),
    [
        ("( (S (NP-SBJ-1 (PRP it)) (VP (VBZ rains))) )", "(S (NP (PRP it)) (VP (VBZ rains)))"),
        ("(ROOT (NP=2 (NN rain)))", "(NP (NN rain))"),
        ("(TOP (ROOT (NP-SBJ-1=2 (NN rain))))", "(NP (NN rain))"),
        ("(S1 (S (NP (NN rain))))", "(S (NP (NN rain)))"),
        ("( (NP (NN a)) (. .))", "(ROOT (NP (NN a)) (. .))"),
        ("(TOP (NP (NN a)) (. .))", "(ROOT (NP (NN a)) (. .))"),
        ("( (NP (NN a)) (S (-NONE- *)))", "(NP (NN a))"),
        ("(ROOT rain)", "(ROOT rain)"),
        ("(S (ROOT (NN a)))", "(S (ROOT (NN a)))"),
        (
            "(S (NP-1 (-NONE- *)) (VP (VB go) (S (NP (-NONE- *PRO*)) (VP (-NONE- *T*)))))",
            "(S (VP (VB go)))",
        ),
        ("(NP (NP (NN a)) (SBAR (-NONE- 0)))", "(NP (NP (NN a)))"),
        ("(ADVP|PRT-CLR (RB up))", "(ADVP|PRT (RB up))"),
        ("(X (-LRB- -LRB-) (-RRB- -RRB-) (-NONE- *-1))", "(X (-LRB- -LRB-) (-RRB- -RRB-))"),
        ("(X (-- --) (= =) (-X-1 x) (PRP$-2 its))", "(X (-- --) (= =) (-X-1 x) (PRP$ its))"),
    ],
)
def test_normalizing_removes_traces_tags_and_wrappers(raw: str, normalized: str) -> None:
    assert normalize(parse_tree(raw)) == parse_tree(normalized)


@pytest.mark.parametrize("raw", ["(-NONE- *)", "( (S (NP (-NONE- *)) (VP (-NONE- *?*))))"])
def test_a_tree_of_traces_alone_normalizes_to_none(raw: str) -> None:
    assert normalize(parse_tree(raw)) is None


def naive_clean(tree: Tree) -> Tree | None:
    label = re.sub(r"(?s)^([^-=][^-=]*).*$", r"\1", tree.label)
    if tree.is_leaf:
        return None if label == "-NONE-" else leaf(label, str(tree.word))
    kept = [clean for clean in map(naive_clean, tree.children) if clean]
    return Tree(label, tuple(kept)) if kept else None


def naive_normalize(tree: Tree) -> Tree | None:
    clean = naive_clean(tree)
    if clean is None or clean.is_leaf or clean.label not in ("", "ROOT", "TOP", "S1"):
        return clean
    if len(clean.children) == 1:
        return naive_normalize(clean.children[0])
    return Tree("ROOT", clean.children)


@given(treebank_trees())
def test_normalizing_equals_its_recursive_definition_and_happens_once(tree: Tree) -> None:
    normalized = normalize(tree)
    assert normalized == naive_normalize(tree)
    if normalized is not None:
        assert normalize(normalized) == normalized
        assert write(normalized)


# S-trees ------------------------------------------------------------------------------------------

PHRASE = "(S (VP (V see) (NP (NN it)) (PP (NP (NN x))) (SBAR s)))"


@pytest.mark.parametrize(
    ("raw", "horizontal", "expected"),
    [
        ("(NN rain)", 0, "(NN rain)"),
        ("(S (NP (NN rain)))", 0, "(S|NP|NN rain)"),
        ("(NP (DT the) (NN dog))", 1, "(NP (DT the) (NN dog))"),
        (PHRASE, 0, "(S|VP (@VP (@VP (V see) (NP|NN it)) (PP|NP|NN x)) (SBAR s))"),
        (PHRASE, 1, "(S|VP (@VP<NN (@VP<NN (V see) (NP|NN it)) (PP|NP|NN x)) (SBAR s))"),
        (
            "(A|B (@ a) (C<D b) (%7C c) (-LRB- -LRB-))",
            1,
            "(A%7CB (@A%7CB<%257C (@A%7CB<C%3CD (%40 a) (C%3CD b)) (%257C c)) (-LRB- -LRB-))",
        ),
    ],
)
def test_binarizing_gives_the_documented_s_trees(raw: str, horizontal: int, expected: str) -> None:
    tree = parse_tree(raw)
    assert write(binarize(tree, horizontal=horizontal)) == expected
    assert restore(parse_tree(expected)) == tree


@pytest.mark.parametrize("horizontal", [-1, 2])
def test_other_markovization_is_refused(horizontal: int) -> None:
    message = f"expected horizontal markovization 0 or 1, got {horizontal}: choose one of the two"
    with pytest.raises(InputError, match=f"^{message}$"):
        binarize(DOG, horizontal=horizontal)


@pytest.mark.parametrize(
    ("stree", "symbol"),
    [("(@VP (V a) (NP b))", "@VP"), ("(@VP a)", "@VP"), ("(VP (V a) (@NP<X b))", "@NP<X")],
)
def test_only_the_inside_of_an_s_tree_may_be_intermediate(stree: str, symbol: str) -> None:
    message = (
        "expected an s-tree whose root and leaves have symbols of constituents, got "
        f"'{symbol}': label them without '@', or pass them through `escape`"
    )
    with pytest.raises(InputError, match=f"^{message}$"):
        restore(parse_tree(stree))


def test_symbols_are_split_into_the_labels_they_stand_for() -> None:
    assert split_chain("NP") == ["NP"]
    assert split_chain("S|VP|%7C%25") == ["S", "VP", "|%"]
    assert split_chain("S|NP<") == ["S", "NP"]
    assert split_chain("@VP") == split_chain("@VP<PP") == []
    assert [is_intermediate(symbol) for symbol in ("@VP", "@VP<PP", "%40VP", "NP")] == [
        *(True, True, False, False)
    ]


@given(st.text() | labels())
@example("%7C")
def test_unescape_undoes_escape_and_nothing_special_is_left(label: str) -> None:
    assert unescape(escape(label)) == label
    assert not set("|@<") & set(escape(label))
    assert split_chain(escape(label)) == [label]


def naive_binarize(tree: Tree, horizontal: int) -> Tree:
    """Binarize by the definition in model.md, top down."""
    names = [escape(tree.label)]
    while len(tree.children) == 1:
        tree = tree.children[0]
        names.append(escape(tree.label))
    if tree.is_leaf:
        return leaf("|".join(names), str(tree.word))
    return Tree("|".join(names), naive_pair(names[-1], list(tree.children), horizontal))


def naive_pair(bottom: str, children: list[Tree], horizontal: int) -> tuple[Tree, ...]:
    *front, last = children
    if len(front) == 1:
        return naive_binarize(front[0], horizontal), naive_binarize(last, horizontal)
    sibling = front[-1]
    while len(sibling.children) == 1:
        sibling = sibling.children[0]
    symbol = f"@{bottom}<{escape(sibling.label)}" if horizontal else f"@{bottom}"
    return Tree(symbol, naive_pair(bottom, front, horizontal)), naive_binarize(last, horizontal)


SIXTY = Tree("X", tuple(leaf(label, word) for label in NASTY_LABELS for word in NASTY_WORDS)[:60])


@given(any_trees(), st.sampled_from((0, 1)))
@example(leaf("@", "-LRB-"), 1)
@example(chain(["|", "@VP<PP", "^", "-"] * 10, leaf("%", "🙂")), 0)
@example(chain(["|", "@VP<PP", "^", "-"] * 10, SIXTY), 1)
def test_restoring_undoes_binarizing(tree: Tree, horizontal: int) -> None:
    stree = binarize(tree, horizontal=horizontal)
    assert stree == naive_binarize(tree, horizontal)
    assert all(node.is_leaf or len(node.children) == 2 for node in stree.nodes())
    assert stree.tokens() == tree.tokens()
    assert restore(stree) == tree


def with_marked_leaves(stree: Tree) -> Tree:
    if stree.is_leaf:
        return leaf(stree.label + LEAF_MARK, str(stree.word))
    return Tree(stree.label, tuple(map(with_marked_leaves, stree.children)))


@given(any_trees(), st.sampled_from((0, 1)))
def test_marked_leaves_are_restored_like_others(tree: Tree, horizontal: int) -> None:
    stree = with_marked_leaves(binarize(tree, horizontal=horizontal))
    assert all(split_chain(node.label)[-1:] for node in stree.leaves())
    assert restore(stree) == tree


@given(words(), st.lists(labels(), max_size=40))
def test_one_word_under_any_chain_is_one_node(word: str, above: list[str]) -> None:
    tree = chain(above, leaf("NN", word))
    stree = binarize(tree)
    assert stree.is_leaf
    assert split_chain(stree.label) == [*above, "NN"]
    assert restore(stree) == tree


# Real treebanks -----------------------------------------------------------------------------------


def files(treebanks: Path) -> Iterator[Path]:
    found = sorted(treebanks.rglob("*.mrg"))
    assert found
    yield from found


def every(step: int, treebanks: Path) -> Iterator[Tree]:
    """Read the trees of every file at this step."""
    for path in files(treebanks):
        yield from itertools.islice(read(path), 0, None, step)


def test_every_tree_of_every_treebank_is_written_as_it_was_read(treebanks: Path) -> None:
    for path in files(treebanks):
        found = list(read(path))
        lines = [write(tree) for tree in found]
        text = path.read_text(encoding="utf-8")
        assert "".join("".join(lines).split()) == "".join(text.split()), path
        assert list(read_string("\n".join(lines[::4]))) == found[::4], path


def test_trees_of_every_treebank_come_back(treebanks: Path) -> None:
    for tree in every(4, treebanks):
        normalized = normalize(tree)
        assert normalized is not None
        assert restore(binarize(normalized)) == normalized
        assert restore(binarize(normalized, horizontal=1)) == normalized


def test_real_s_trees_equal_their_recursive_definition(treebanks: Path) -> None:
    for tree in every(60, treebanks):
        normalized = naive_normalize(tree)
        assert normalized is not None
        assert normalize(tree) == normalized
        for horizontal in (0, 1):
            stree = naive_binarize(normalized, horizontal)
            assert binarize(normalized, horizontal=horizontal) == stree


BAD = """(S (NP (DT the) (NN dog))
   (VP (VBD barked)))
(S (NP (DT the) (NN cat)
   (VP (VBD slept)))
(S (NP (PRP it))) (VP (VBD ran)))
stray (S (X x))
(S (VP (VB go)))
"""


def test_malformed_trees_are_blanked_out_one_by_one() -> None:
    kept, faults = without_malformed(BAD, source="bank.mrg")
    assert [write(tree) for tree in read_string(kept)] == [
        "(S (NP (DT the) (NN dog)) (VP (VBD barked)))",
        "(S (VP (VB go)))",
    ]
    assert kept.count("\n") == BAD.count("\n")
    assert [(one.source, one.line) for one in faults] == [("bank.mrg", 4), ("bank.mrg", 5)]
    assert "tree opened at 3:1" in str(faults[0])


def test_sound_text_is_kept_as_it_is() -> None:
    assert without_malformed("\n (S (X x))\n(S (X y)) ") == ("\n (S (X x))\n(S (X y)) ", [])
    assert without_malformed("") == ("", [])
