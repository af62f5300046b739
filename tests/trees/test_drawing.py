"""Drawings of trees: every node once, words in a row, no overlaps, valid XML."""

import re
import xml.etree.ElementTree as ElementTree
from itertools import pairwise
from pathlib import Path

import pytest

from lpcfg.trees.brackets import parse_tree, read
from lpcfg.trees.draw import latex, svg
from lpcfg.trees.tree import Tree

SMALL = Path(__file__).resolve().parents[2] / "examples" / "small.mrg"
SVG = "{http://www.w3.org/2000/svg}"


def texts(tree: Tree) -> list[tuple[str, float, float, bool]]:
    """List (text, x, y, is a word) of every text in the tree's drawing."""
    return texts_of(svg(tree))


def texts_of(drawing: str) -> list[tuple[str, float, float, bool]]:
    root = ElementTree.fromstring(drawing)
    return [
        (one.text or "", float(one.attrib["x"]), float(one.attrib["y"]), "class" in one.attrib)
        for one in root.iter(f"{SVG}text")
    ]


@pytest.mark.parametrize("tree", list(read(SMALL)), ids=lambda tree: tree.tokens()[0])
def test_every_label_and_word_is_drawn_once_and_words_stand_in_order(tree: Tree) -> None:
    drawn = texts(tree)
    assert [text for text, _, _, is_word in drawn if not is_word] == [
        node.label for node in tree.nodes()
    ]
    words = sorted((x, text, y) for text, x, y, is_word in drawn if is_word)
    assert [text for _, text, _ in words] == tree.tokens()
    assert len({y for _, _, y in words}) == 1


@pytest.mark.parametrize("tree", list(read(SMALL)), ids=lambda tree: tree.tokens()[0])
def test_texts_of_one_row_do_not_overlap(tree: Tree) -> None:
    rows: dict[float, list[tuple[float, str]]] = {}
    for text, x, y, _ in texts(tree):
        rows.setdefault(y, []).append((x, text))
    for row in rows.values():
        for (x1, text1), (x2, text2) in pairwise(sorted(row)):
            assert x2 - x1 > 8 * (len(text1) + len(text2)) / 2


def test_a_parent_stands_over_the_middle_of_its_children() -> None:
    x = {text: x for text, x, _, _ in texts(parse_tree("(S (A long-word) (B b))"))}
    assert x["S"] == pytest.approx((x["A"] + x["B"]) / 2, abs=0.1)  # drawn with one decimal


def test_words_are_escaped_and_a_drawing_is_one_line() -> None:
    drawn = svg(Tree("S", (Tree("<&>", word='a<b&"c"'), Tree("X", word="]]>"))))
    assert "\n" not in drawn
    root = ElementTree.fromstring(drawn)
    assert {'a<b&"c"', "]]>", "<&>"} <= {one.text for one in root.iter(f"{SVG}text")}


def test_characters_outside_xml_are_drawn_as_the_replacement_character() -> None:
    drawn = svg(Tree("S", word="a\0b\x1b\ud800\uffff😀"))
    (word,) = (text for text, _, _, is_word in texts_of(drawn) if is_word)
    assert word == "a\ufffdb\ufffd\ufffd\ufffd😀"


def test_a_tree_deeper_than_the_stack_is_drawn() -> None:
    tree = Tree("X", word="x")
    for _ in range(5000):
        tree = Tree("X", (tree,))
    assert len(re.findall("<text", svg(tree))) == 5002


def read_forest(text: str) -> Tree:
    """Read the tree of a forest environment, by the package's own rules for braces and brackets."""
    inner = text.removeprefix(r"\begin{forest} ").removesuffix(r" \end{forest}")
    stack: list[list[str | Tree]] = [[]]
    for piece in re.findall(r"\[\{(?:[^{}\\]|\\[#$%&_{}]|\\text\w+\{\})*\}|\]", inner):
        if piece != "]":
            stack.append([piece[2:-1]])
            continue
        name, *below = stack.pop()
        made: str | Tree = str(name)
        if below:
            is_leaf = isinstance(below[0], str)
            made = (
                Tree(str(name), (), str(below[0]))
                if is_leaf
                else Tree(str(name), tuple(one for one in below if isinstance(one, Tree)))
            )
        stack[-1].append(made)
    ((tree,),) = stack
    assert isinstance(tree, Tree)
    return tree


@pytest.mark.parametrize("tree", list(read(SMALL))[:8], ids=lambda tree: tree.tokens()[0])
def test_a_tree_for_latex_is_the_tree(tree: Tree) -> None:
    bare = tree.children[0]
    undone = str(read_forest(latex(bare))).replace(r"\$", "$")
    assert undone == str(bare)


def test_latex_keeps_its_own_characters_as_text() -> None:
    word = r"a_b{c}\d%e&f#g$h^i~j[k]"
    drawn = latex(Tree("NN", (), word))
    assert drawn == (
        r"\begin{forest} [{NN} [{a\_b\{c\}\textbackslash{}d\%e\&f\#g\$h\textasciicircum{}i"
        r"\textasciitilde{}j[k]}]] \end{forest}"
    )
