"""Normalize a treebank's tree into the form that is learned, scored and served."""

import re
from functools import lru_cache

from lpcfg.trees.tree import Tree, bottom_up

ROOT = "ROOT"
_WRAPPERS = frozenset({"", ROOT, "TOP", "S1"})
_TRACE = "-NONE-"


def normalize(tree: Tree) -> Tree | None:
    """Remove traces, function tags and the wrapper. Return None if nothing remains.

    - Leaves labelled -NONE- are removed, and so is every node they leave without children.
      Nothing else is removed: an NP over a single NP stays.
    - A label ends before its first '-' or '=' (NP-SBJ-1 → NP, NP=2 → NP, ADVP|PRT-CLR → ADVP|PRT),
      but a label that begins with either is kept as it is (-LRB-, -RRB-).
    - A root labelled '', ROOT, TOP or S1 is replaced by its only child. With several children it
      stays, labelled ROOT. A root that is a leaf stays.
    """
    cleaned = bottom_up(tree, _clean)
    while cleaned is not None and cleaned.label in _WRAPPERS and cleaned.word is None:
        if len(cleaned.children) > 1:
            return Tree(ROOT, cleaned.children)
        cleaned = cleaned.children[0]
    return cleaned


def _clean(node: Tree, children: list[Tree | None]) -> Tree | None:
    label = bare(node.label)
    if node.word is not None:
        if label == _TRACE:
            return None
        return node if label == node.label else Tree(label, (), node.word)
    kept = tuple([child for child in children if child is not None])
    return Tree(label, kept) if kept else None


@lru_cache(maxsize=1 << 16)
def bare(label: str) -> str:
    """Remove function tags and indices from a label."""
    return label if label.startswith(("-", "=")) else re.split("[-=]", label, maxsplit=1)[0]
