"""Arcs of a constituency tree, by the head table of `lpcfg.training.data.heads`.

The head of a constituent is the head word of one of its children; the heads of the others modify
it. Relations are not part of a constituency tree: the root's is `root`, all others are `dep`.
"""

from lpcfg.kinds.dependencies.arcs import ROOT_RELATION, UNKNOWN_RELATION, Arcs
from lpcfg.training.data.heads import head_child
from lpcfg.trees.brackets import ptb_unescape
from lpcfg.trees.tree import Tree

NOTE = "heads follow from a constituency tree by head rules; relations are not known"


def arcs_of(tree: Tree, offsets: tuple[tuple[int, int], ...] = ()) -> Arcs:
    """Return the arcs of a normalized tree; they are projective."""
    words: list[str] = []
    tags: list[str] = []
    heads: list[int] = []
    done: list[int] = []  # head words of finished nodes: on top, the leftmost
    position = len(tree.leaves())
    heads = [0] * position
    for node in reversed(list(tree.nodes())):
        if node.word is not None:
            words.append(ptb_unescape(node.word))
            tags.append(f"_|{node.label}")
            done.append(position)
            position -= 1
            continue
        children = [done.pop() for _ in node.children]
        head = children[head_child(node.label, [child.label for child in node.children])]
        for child in children:
            if child != head:
                heads[child - 1] = head
        done.append(head)
    labels = tuple(UNKNOWN_RELATION if head else ROOT_RELATION for head in heads)
    return Arcs(tuple(words[::-1]), tuple(heads), labels, tuple(tags[::-1]), offsets)
