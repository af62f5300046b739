"""S-trees: turn a normalized tree into one that is binary, and back; restore(binarize(t)) == t.

Symbols of s-trees, with every original label passed through `escape` first:

    NP            a label                  S|VP, NP|NN     a unary chain, top first
    @VP           what is left of a VP without its last children (horizontal = 0)
    @VP<PP        the same, and the last child in it is a PP (horizontal = 1)
    NP<           a leaf labelled NP, in a treebank that also has NP over children
"""

import re
from functools import lru_cache

from lpcfg.base.errors import InputError
from lpcfg.trees.tree import Tree, bottom_up

_ESCAPES = {character: f"%{ord(character):02X}" for character in "%|@<"}
_SPECIAL = re.compile("[%|@<]")
_ESCAPED = re.compile("|".join(_ESCAPES.values()))


def escape(label: str) -> str:
    """Escape a label for use in symbols: % | @ < become %25 %7C %40 %3C."""
    return _SPECIAL.sub(lambda match: _ESCAPES[match[0]], label)


def unescape(text: str) -> str:
    """Undo `escape`."""
    return _ESCAPED.sub(lambda match: chr(int(match[0][1:], 16)), text)


_escape = lru_cache(maxsize=1 << 16)(escape)

SIBLING_MARK = "<"
"""Stands in an intermediate symbol before its last child's label."""
LEAF_MARK = "<"
"""Ends a leaf's symbol if constituents of the treebank have the same label."""


def is_intermediate(symbol: str) -> bool:
    """Return True if binarization made the symbol, so that it is no constituent of the tree."""
    return symbol.startswith("@")


def split_chain(symbol: str) -> list[str]:
    """Return the original labels of an s-tree's symbol, top first; none for an intermediate one."""
    if is_intermediate(symbol):
        return []
    return [unescape(label) for label in symbol.removesuffix(LEAF_MARK).split("|")]


def binarize(tree: Tree, *, horizontal: int = 0) -> Tree:
    """Binarize a tree into an s-tree, where every node has a word or two children.

    A unary chain becomes one node, also over a leaf: its labels, top first, joined by '|'. With X
    the chain's bottom label, children c1 ... cn become ((c1 c2) ... cn). The inner nodes are
    labelled @X or, with horizontal = 1, @X<Y where Y is the bottom label of the last child inside.
    """
    if horizontal not in (0, 1):
        raise InputError(
            f"expected horizontal markovization 0 or 1, got {horizontal!r}: choose one of the two"
        )

    def combine(node: Tree, children: list[Tree]) -> Tree:
        label = _escape(node.label)
        if node.word is not None:
            return node if label == node.label else Tree(label, (), node.word)
        if len(children) == 1:
            only = children[0]
            return Tree(f"{label}|{only.label}", only.children, only.word)
        left = children[0]
        for child in children[1:-1]:
            mark = SIBLING_MARK + child.label.rpartition("|")[2] if horizontal else ""
            left = Tree(f"@{label}{mark}", (left, child))
        return Tree(label, (left, children[-1]))

    return bottom_up(tree, combine)


def restore(stree: Tree) -> Tree:
    """Turn an s-tree back: restore(binarize(tree)) == tree, for any markovization.

    A LEAF_MARK makes no difference.
    """
    restored = bottom_up(stree, _unfold)
    if is_intermediate(stree.label):
        raise _no_constituent(stree.label)
    return restored[0]


def _unfold(node: Tree, parts: list[list[Tree]]) -> list[Tree]:
    """Return a node's original trees: one, or several siblings for an intermediate symbol."""
    children = parts[0] if parts else []
    for part in parts[1:]:
        children += part
    if is_intermediate(node.label):
        if node.word is not None:
            raise _no_constituent(node.label)
        return children
    *above, bottom = split_chain(node.label)
    tree = Tree(bottom, tuple(children), node.word)
    for label in reversed(above):
        tree = Tree(label, (tree,))
    return [tree]


def _no_constituent(symbol: str) -> InputError:
    return InputError(
        f"expected an s-tree whose root and leaves have symbols of constituents, got {symbol!r}: "
        "label them without '@', or pass them through `escape`"
    )
