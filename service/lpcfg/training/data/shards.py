"""Cut examples into shards: runs of trees that fit into a worker's memory.

Shards depend on the treebank alone, never on the number of workers, so sums over shards are the
same wherever they are made.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lpcfg.grammar.tables import Longs
from lpcfg.training.data.examples import Examples
from lpcfg.training.data.treebank import Forest

SHARD_NODES = 1 << 18
"""Nodes after which a shard ends with its tree: some 5,500 sentences of 24 words."""


@dataclass(frozen=True, eq=False)
class Shard:
    """A run of trees with the grammar, symbols and words of the whole treebank.

    `nodes` are its nodes in the whole. Rule r occurs `before[r]` times in the shards before it, and
    `count[r]` times in all.
    """

    examples: Examples
    nodes: slice
    before: Longs
    count: Longs


def shards_of(examples: Examples) -> Iterator[Shard]:
    """Yield the shards of a treebank, in order."""
    forest, n_rules = examples.forest, examples.grammar.n_rules
    rules = examples.node_rule
    count = np.bincount(rules[rules >= 0], minlength=n_rules)
    before = np.zeros(n_rules, np.int64)
    first = 0
    while first < forest.n_trees:
        end = forest.tree_start[first] + SHARD_NODES
        last = min(int(np.searchsorted(forest.tree_start, end)), forest.n_trees)
        part = _part(examples, first, last)
        nodes = slice(int(forest.tree_start[first]), int(forest.tree_start[last]))
        yield Shard(part, nodes, before, count)
        own = part.node_rule
        before = before + np.bincount(own[own >= 0], minlength=n_rules)
        first = last


def _part(examples: Examples, first: int, last: int) -> Examples:
    """Return the examples of trees [first, last), in the numbers of the whole."""
    forest = examples.forest
    start, end = forest.tree_start[first], forest.tree_start[last]
    left, right, parent = (
        np.where(side[start:end] >= 0, side[start:end] - start, -1).astype(np.int32)
        for side in (forest.left, forest.right, forest.parent)
    )
    part = Forest(
        symbols=forest.symbols,
        n_internal=forest.n_internal,
        words=forest.words,
        symbol=forest.symbol[start:end],
        left=left,
        right=right,
        parent=parent,
        start=forest.start[start:end],
        end=forest.end[start:end],
        word=forest.word[start:end],
        tree_start=forest.tree_start[first : last + 1] - start,
        source=forest.source[first:last],
    )
    rules, entries = examples.node_rule[start:end], examples.node_entry[start:end]
    return Examples(part, examples.grammar, rules, entries)
