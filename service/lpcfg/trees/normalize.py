"""Turn a treebank's tree into the tree that is learned, scored and served."""

import re
from functools import lru_cache

from lpcfg.trees.tree import Tree, bottom_up

ROOT = "ROOT"
_WRAPPERS = frozenset({"", ROOT, "TOP", "S1"})
_TRACE = "-NONE-"


def normalize(tree: Tree) -> Tree | None:
    """The tree without traces, function tags and wrapper; None if nothing remains.

    - Leaves labelled -NONE- go, and so does every node they leave without children. Nothing else
      goes: an NP that is left over a single NP stays, a bracket of the treebank like any other.
    - A label ends before its first '-' or '=' (NP-SBJ-1 → NP, NP=2 → NP, ADVP|PRT-CLR → ADVP|PRT),
      but one that begins with either is kept as it is (-LRB-, -RRB-).
    - A root labelled '', ROOT, TOP or S1 gives way to its only child. One that has several children
      stays, and is labelled ROOT. One that is a leaf stays.
    """
    cleaned = bottom_up(tree, _clean)
    while cleaned is not None and cleaned.label in _WRAPPERS and cleaned.word is None:
        if len(cleaned.children) > 1:
            return Tree(ROOT, cleaned.children)
        cleaned = cleaned.children[0]
    return cleaned


def _clean(node: Tree, children: list[Tree | None]) -> Tree | None:
    label = _bare(node.label)
    if node.word is not None:
        if label == _TRACE:
            return None
        return node if label == node.label else Tree(label, (), node.word)
    kept = tuple([child for child in children if child is not None])
    return Tree(label, kept) if kept else None


@lru_cache(maxsize=1 << 16)
def _bare(label: str) -> str:
    """A label without its function tags and indices."""
    return label if label.startswith(("-", "=")) else re.split("[-=]", label, maxsplit=1)[0]
