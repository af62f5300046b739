"""Lexical heads: find the head word of a constituent, by our own table for English.

The head of a constituent is the head of one of its children. A row of the table lists groups of
child labels in order of preference, each searched from one side; the first group that has a child
decides. Every row ends with two implicit groups, searched from the side of its first group: any
child that is not punctuation, then any child. A constituent without a row, as in other treebanks,
follows `FALLBACK`: its leftmost child with its own label, else the implicit groups from the left.

So the head is the child of least rank, with ties broken by side: a minimum over the children from
left to right. An intermediate symbol (`@VP`) holds the minimum so far, by the rules of the
constituent that it belongs to; if that constituent's head is inside it, it is its head too.

In a chain (`S|VP`) the bottom label chooses among the children, and the parent sees the top label.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lpcfg.engine.rescoring.names import HeadTable, labels_of
from lpcfg.grammar.tables import Ints, Longs, frozen
from lpcfg.training.data.treebank import Forest
from lpcfg.trees.binarize import is_intermediate, split_chain

OWN = "="
_NOUNS = "NN NNS NNP NNPS NML NX"
_VERBS = "VBD VBZ VBP VB VBN VBG MD"

ENGLISH: dict[str, str] = {
    "ADJP": f"> JJ ADJP VBN VBG JJR JJS AFX, > QP CD {_NOUNS}, > RB RBR RBS $ IN DT",
    "ADVP": "> RB RBR RBS WRB, > ADVP, > IN TO CD JJ JJR JJS RP, > NN NP",
    "CAPTION": "< S FRAG SINV SBAR, < VP, < NP",
    "CIT": "> CD, < NP",
    "CONJP": "> CC RB IN",
    "FRAG": "< S SINV SQ, < VP, < NP WHNP, < PP SBAR ADJP ADVP",
    "HEADING": "< S FRAG SINV SBAR, < VP, < NP",
    "INTJ": "< UH INTJ",
    "LST": "> LS CD :",
    "NAC": f"> {_NOUNS}, > NP NAC, > CD JJ",
    "NML": f"> {_NOUNS}, > NP, > CD JJ VBG FW AFX",
    "NP": f"> {_NOUNS} POS JJR, < NP, > $ ADJP PRN, > CD, > JJ JJS RB QP DT PRP VBG FW",
    "NX": f"> {_NOUNS}, < NP, > CD JJ",
    "PP": "< IN TO VBG VBN RP FW JJ, < PP, > NP",
    "PRN": "< S SINV SBAR, < VP, < NP, < PP ADJP ADVP",
    "PRT": "> RP",
    "QP": "< $ IN, > CD, > NNS NN, > JJ RB DT QP",
    "ROOT": "< S SINV SQ SBARQ, < FRAG NP VP",
    "RRC": "> VP, < NP ADVP ADJP PP",
    "S": "< VP, < S SINV SQ, < SBAR ADJP UCP NP",
    "SBAR": "< WHNP WHPP WHADVP WHADJP IN DT, < S SQ SINV SBAR FRAG",
    "SBARQ": "< SQ S SINV, < SBARQ FRAG",
    "SINV": f"< {_VERBS}, < VP, < S SINV, < ADJP NP",
    "SQ": f"< {_VERBS}, < VP SQ S",
    "TITLE": "< S FRAG SINV SBAR, < VP, < NP",
    "UCP": "> CC",
    "VP": f"< TO, < {_VERBS}, < VP, < ADJP, < {_NOUNS} NP",
    "WHADJP": "> JJ ADJP, > WRB CC",
    "WHADVP": "> WRB, > RB CC",
    "WHNP": f"> {_NOUNS}, < WDT WP WP$ WHNP WHADJP WHPP, > NP",
    "WHPP": "< IN TO FW",
    "X": "> X NP S VP",
}
"""Constituent → groups in order of preference: `<` the leftmost of these, `>` the rightmost."""
FALLBACK = f"< {OWN}"

_BRACKETS = frozenset({"-LRB-", "-RRB-", "HYPH"})


def levels(forest: Forest) -> list[Longs]:
    """Group nodes by depth: the roots, their children, and so on."""
    result = [forest.roots.astype(np.int64)]
    while len(result[-1]):
        inside = result[-1][~forest.is_leaf[result[-1]]]
        children = np.concatenate([forest.left[inside], forest.right[inside]])
        result.append(children.astype(np.int64))
    return result[:-1]


def head_leaves(forest: Forest, by_depth: Sequence[Longs]) -> Ints:
    """Find the head leaf of every node."""
    base, top, labels = _labels(forest.symbols)
    rank, rightmost = _preferences(labels)
    partial = np.array([is_intermediate(name) for name in forest.symbols])
    head = np.arange(forest.n_nodes, dtype=np.int32)
    best = np.zeros(forest.n_nodes, np.int64)
    for nodes in reversed(by_depth):
        inside = nodes[~forest.is_leaf[nodes]]
        left, right = forest.left[inside], forest.right[inside]
        constituent = base[forest.symbol[inside]]
        so_far = rank[constituent, top[forest.symbol[left]]]
        so_far = np.where(partial[forest.symbol[left]], best[left], so_far)
        last = rank[constituent, top[forest.symbol[right]]]
        takes_last = (last < so_far) | ((last == so_far) & rightmost[constituent, last])
        head[inside] = np.where(takes_last, head[right], head[left])
        best[inside] = np.minimum(last, so_far)
    return frozen(head)


def head_child(label: str, children: Sequence[str]) -> int:
    """Choose the head child of a constituent, by the labels of both."""
    groups = _row(label)
    best, chosen = len(groups) + 2, 0
    for k, child in enumerate(children):
        rank = len(groups) + _is_punctuation(child)
        for g, (_, names) in reversed(list(enumerate(groups))):
            if child in names or (OWN in names and child == label):
                rank = g
        from_right = groups[rank if rank < len(groups) else 0][0]
        if rank < best or (rank == best and from_right):
            best, chosen = rank, k
    return chosen


@lru_cache(maxsize=4096)
def _row(label: str) -> list[tuple[bool, frozenset[str]]]:
    return _groups(ENGLISH.get(label, FALLBACK))


def head_tags(forest: Forest) -> tuple[Ints, int]:
    """Return the part of speech of every symbol as a number, and how many numbers there are.

    The part of speech is the bottom label of a preterminal chain; in-terminals have -1.
    """
    names = [split_chain(name)[-1] for name in forest.symbols[forest.n_internal :]]
    tags = sorted(set(names))
    number = {tag: k for k, tag in enumerate(tags)}
    inside = [-1] * forest.n_internal
    return frozen(np.array([*inside, *(number[name] for name in names)], np.int32)), len(tags)


def _labels(symbols: Sequence[str]) -> tuple[Ints, Ints, list[str]]:
    """Return, per symbol, the label that chooses among its children and the one its parent sees."""
    number: dict[str, int] = {}
    base, top = [], []
    for name in symbols:
        chooses, seen = labels_of(name)
        base.append(number.setdefault(chooses, len(number)))
        top.append(number.setdefault(seen, len(number)))
    return np.array(base, np.int32), np.array(top, np.int32), list(number)


def head_table(symbols: Sequence[str]) -> HeadTable:
    """Build the table that finds heads among the labels of these symbols."""
    labels = _labels(symbols)[2]
    rank, rightmost = _preferences(labels)
    return HeadTable(tuple(labels), frozen(rank.astype(np.int32)), frozen(rightmost))


def _preferences(labels: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Compute rank[constituent, child] and rightmost[constituent, rank], by numbers of labels."""
    rows = [_groups(ENGLISH.get(label, FALLBACK)) for label in labels]
    width = max(map(len, rows), default=0) + 2
    rank = np.empty((len(labels), len(labels)), np.int64)
    rightmost = np.zeros((len(labels), width), np.bool_)
    for a, (label, groups) in enumerate(zip(labels, rows, strict=True)):
        rank[a] = [len(groups) + _is_punctuation(child) for child in labels]
        rightmost[a] = groups[0][0]
        for k, (from_right, names) in reversed(list(enumerate(groups))):
            rightmost[a, k] = from_right
            preferred = [child in names or (OWN in names and child == label) for child in labels]
            rank[a, preferred] = k
    return rank, rightmost


def _groups(row: str) -> list[tuple[bool, frozenset[str]]]:
    """Parse a row into groups: (from the right?, labels) of each."""
    groups = []
    for group in row.split(", "):
        side, *names = group.split()
        groups.append((side == ">", frozenset(names)))
    return groups


def _is_punctuation(label: str) -> bool:
    return label in _BRACKETS or not any(character.isalpha() for character in label)
