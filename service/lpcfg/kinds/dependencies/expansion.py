"""Turn dependency trees into trees of an L-PCFG: every head is expanded outward into binary nodes.

With tag T of the head, and D, X any symbols of a finished phrase and of a head's own:

    T            the word itself, a preterminal
    T/R → X D    a right modifier D joins; X is T or T/R
    T/L → D X    a left modifier D joins; X is T, T/R or T/L
    D            a whole phrase: T', T'/R or T'/L of the modifier's tag T'

Right modifiers join before left ones, the nearest first, so a projective tree has exactly one
expansion, and `collapse` undoes it. Topology is generated with the words: a head has no further
modifier where its symbol is taken as it is. States belong to symbols, hence to tags, and every
estimator, inside-outside and decoding of this package work as they are.
"""

import numpy as np

from lpcfg.base.errors import InputError
from lpcfg.kinds.dependencies import eisner
from lpcfg.kinds.dependencies.arcs import ROOT_RELATION, UNKNOWN_RELATION, Arcs, modifiers
from lpcfg.trees.binarize import escape
from lpcfg.trees.brackets import ptb_escape, ptb_unescape
from lpcfg.trees.normalize import bare
from lpcfg.trees.tree import Tree

RIGHT, LEFT = "/R", "/L"


def part_of_speech(tag: str) -> str:
    """Return the tag that symbols are made of: XPOS where there is one, else UPOS.

    It ends where a treebank's labels end, so that no symbol is cut when trees are normalized.
    """
    first, _, last = tag.partition("|")
    return escape(bare(last if last not in ("", "_") else first))


def expand(arcs: Arcs) -> Tree:
    """Return the s-tree of a projective dependency tree with tags."""
    if not arcs.tags or not arcs.is_projective:
        lacking = "without tags" if not arcs.tags else "that crosses others"
        raise InputError(
            f"expected a projective tree with tags, got one {lacking}: tag it, or lift its arcs "
            "with `projectivized`"
        )
    below = modifiers(arcs.heads)
    phrase: dict[int, Tree] = {}
    for word in eisner.bottom_up(np.array(arcs.heads, np.int64)).tolist():
        tag = part_of_speech(arcs.tags[word - 1])
        node = Tree(tag, (), ptb_escape(arcs.words[word - 1]))
        for m in (m for m in below[word] if m > word):
            node = Tree(tag + RIGHT, (node, phrase.pop(m)))
        for m in reversed([m for m in below[word] if m < word]):
            node = Tree(tag + LEFT, (phrase.pop(m), node))
        phrase[word] = node
    return phrase[arcs.root]


def collapse(tree: Tree) -> Arcs:
    """Return the dependency tree of an expansion; relations are not part of it."""
    leaves = tree.leaves()
    heads = [0] * len(leaves)
    position, done = len(leaves), list[int]()
    for node in reversed(list(tree.nodes())):
        if node.word is not None:
            done.append(position)
            position -= 1
            continue
        if len(node.children) != 2 or not node.label.endswith((RIGHT, LEFT)):
            raise InputError(
                f"expected two children under a label that ends in {RIGHT} or {LEFT}, got "
                f"{len(node.children)} under {node.label!r}: give a tree that `expand` made"
            )
        left, right = done.pop(), done.pop()
        head, modifier = (left, right) if node.label.endswith(RIGHT) else (right, left)
        heads[modifier - 1] = head
        done.append(head)
    labels = tuple(UNKNOWN_RELATION if head else ROOT_RELATION for head in heads)
    words = tuple(ptb_unescape(str(leaf.word)) for leaf in leaves)
    return Arcs(words, tuple(heads), labels, tuple(f"_|{leaf.label}" for leaf in leaves))
