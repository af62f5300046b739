"""Turn text of a treebank into numbers of labels and words, valid for this text alone.

Processes of their own do this. They import nothing else: Numba would take longer than a chunk.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lpcfg.base.collector import collector_paused
from lpcfg.base.errors import TreebankError
from lpcfg.grammar.tables import Ints, Longs
from lpcfg.text.tokenize import penn_forms
from lpcfg.trees.binarize import binarize
from lpcfg.trees.brackets import read_string
from lpcfg.trees.style import Style, normalized
from lpcfg.trees.tree import Tree


def coded_text(chunk: bytes, horizontal: int, style: Style, max_depth: int) -> "CodedTrees | None":
    """Code a chunk of text. Return None if it is malformed: a diagnosis needs the whole text."""
    text = chunk.decode("utf-8", "surrogatepass")
    try:
        return coded(strees_in(text, "", horizontal, style, max_depth))
    except TreebankError:
        return None


def strees_in(
    text: str, source: str, horizontal: int, style: Style, max_depth: int
) -> Iterator[Tree]:
    for tree in normalized(read_string(text, source=source, max_depth=max_depth), style):
        yield binarize(tree, horizontal=horizontal)


@dataclass(frozen=True, eq=False)
class CodedTrees:
    """Some trees, in post-order, with codes that are valid for this part only."""

    labels: list[str]
    words: list[str]
    label: Ints
    word: Ints  # -1 inside
    sizes: Longs  # nodes of each tree


class _Codes(dict[str, int]):
    """Numbers names in their order of appearance."""

    def __missing__(self, name: str) -> int:
        self[name] = len(self)
        return self[name]


def coded(strees: Iterable[Tree]) -> CodedTrees:
    labels, words = _Codes(), _Codes()
    label: list[int] = []
    word: list[int] = []
    sizes: list[int] = []
    with collector_paused():
        for stree in strees:
            nodes = _post_order(stree)
            label += [labels[node.label] for node in nodes]
            forms = iter(_forms(nodes))
            word += [-1 if node.word is None else words[next(forms)] for node in nodes]
            sizes.append(len(nodes))
    return CodedTrees(
        list(labels),
        list(words),
        np.array(label, np.int32),
        np.array(word, np.int32),
        np.array(sizes, np.int64),
    )


def _forms(nodes: Sequence[Tree]) -> Sequence[str]:
    """Return the leaves' words in the form in which a parser looks them up."""
    leaves = [node for node in nodes if node.word is not None]
    return penn_forms(
        [leaf.word or "" for leaf in leaves], [leaf.label.rpartition("|")[2] for leaf in leaves]
    )


def _post_order(stree: Tree) -> list[Tree]:
    """List the nodes in post-order."""
    nodes: list[Tree] = []
    stack = [stree]
    while stack:
        node = stack.pop()
        nodes.append(node)
        stack += node.children
    nodes.reverse()
    return nodes
