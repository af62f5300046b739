"""The probability of a given tree: its rules and words, looked up in a grammar."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lpcfg.engine.kernels import Chart
from lpcfg.grammar import Emissions, Grammar
from lpcfg.trees import LEAF_MARK, SIBLING_MARK, Tree, is_intermediate, split_chain


@dataclass(frozen=True, eq=False)
class Missing:
    """What a tree needs and the grammar does not have; `nodes` of the tree, in pre-order."""

    reason: str
    nodes: tuple[int, ...]


def tree_chart(grammar: Grammar, stree: Tree, emissions: Emissions) -> Chart | Missing:
    """The chart that holds an s-tree alone, or all that the grammar lacks for it.

    Its inside values are the words' weights, and nothing at other items.
    """
    nodes = list(_in_pre_order(stree))
    n_items = len(nodes)
    symbol, start, end, entry = (np.full(n_items, -1, np.int32) for _ in range(4))
    inside, edge_start = np.zeros(n_items), np.zeros(n_items + 1, np.int64)
    edges: list[tuple[int, int, int]] = []
    lacking: list[tuple[int, str]] = []
    done: list[int] = []
    word = emissions.length
    # backwards, so that an item stands after those it is made of
    for item, (node, place) in enumerate(reversed(nodes)):
        symbol[item] = _symbol(grammar, node)
        if node.is_leaf:
            word -= 1
            done.append(item)
            start[item], end[item] = word, word + 1
            candidates = slice(emissions.start[word], emissions.start[word + 1])
            found = np.flatnonzero(emissions.symbol[candidates] == symbol[item])
            if symbol[item] >= 0 and len(found):
                entry[item] = emissions.entry[candidates][found[0]]
                inside[item] = emissions.weight[candidates][found[0]]
            else:
                lacking.append((place, f"{node.label} → {node.word}"))
        else:
            left, right = done.pop(), done.pop()
            done.append(item)
            start[item], end[item] = start[left], end[right]
            rule = grammar.rule_ids.get((int(symbol[item]), int(symbol[left]), int(symbol[right])))
            if rule is None:
                names = " ".join(child.label for child in node.children)
                lacking.append((place, f"{node.label} → {names}"))
            else:
                edges.append((rule, left, right))
        edge_start[item + 1] = len(edges)
    if lacking:
        lacking.sort(key=lambda pair: pair[0])
        names = ", ".join(f"`{name}`" for name in dict.fromkeys(name for _, name in lacking))
        return Missing(
            f"the grammar does not have {names}", tuple(sorted({place for place, _ in lacking}))
        )
    rule_ids, left_items, right_items = np.array(edges, np.int32).reshape(-1, 3).T
    return Chart(
        symbol,
        start,
        end,
        entry,
        inside,
        edge_start,
        np.ascontiguousarray(rule_ids),
        np.ascontiguousarray(left_items),
        np.ascontiguousarray(right_items),
        np.zeros(len(edges)),
    )


def _in_pre_order(stree: Tree) -> Iterator[tuple[Tree, int]]:
    """Every node with the pre-order number of the normalized tree's node that it is part of."""
    following = 0
    stack = [(stree, 0)]
    while stack:
        node, owner = stack.pop()
        place = owner
        if not is_intermediate(node.label):
            place = following
            following += len(split_chain(node.label))
        yield node, place
        stack += [(child, place) for child in reversed(node.children)]


def _symbol(grammar: Grammar, node: Tree) -> int:
    """The grammar's number of a node's symbol: marked leaves, unmarked rare siblings; or -1."""
    ids = grammar.symbol_ids
    if node.is_leaf:
        return ids.get(node.label + LEAF_MARK, ids.get(node.label, -1))
    if node.label not in ids and is_intermediate(node.label):
        return ids.get(node.label.partition(SIBLING_MARK)[0], -1)
    return ids.get(node.label, -1)
