"""Count what stands beside constituents, for the coarse pass's estimates."""

import numpy as np

from lpcfg.engine.pruned.coarse import ContextTables
from lpcfg.grammar.lexicon import tags_of
from lpcfg.grammar.tables import Doubles, Ints, frozen
from lpcfg.training.data.treebank import Forest

FOLLOWING = 1e-3
"""Each tag's overall share counts as this many tokens after a tag or a constituent."""


def estimate(forest: Forest) -> ContextTables:
    """Count tags after tags, constituents that start after tags, and tags after constituents.

    The two ends of a sentence count as one more tag, the last.
    """
    names, tag_of = tags_of(forest.symbols, np.arange(len(forest.symbols)) >= forest.n_internal)
    ends, symbols = len(names), len(forest.symbols)
    leaves = np.flatnonzero(forest.is_leaf)
    # the tags of all sentences in a row, with the boundary tag before and after each
    tree = forest.tree[leaves]
    sequence = np.full(len(leaves) + forest.n_trees + 1, ends)
    place = np.arange(len(leaves)) + tree + 1
    sequence[place] = tag_of[forest.symbol[leaves]]
    first = place[np.searchsorted(tree, np.arange(forest.n_trees))]
    left = sequence[first[forest.tree] + forest.start - 1]
    right = sequence[first[forest.tree] + forest.end]
    share = np.bincount(sequence, minlength=ends + 1) / len(sequence)
    pairs = _counted(sequence[:-1], sequence[1:], (ends + 1, ends + 1))
    starts = _counted(left, forest.symbol, (ends + 1, symbols))
    follows = _counted(right, forest.symbol, (ends + 1, symbols))
    of_tag = pairs.sum(axis=1, keepdims=True)
    of_symbol = follows.sum(axis=0)
    everywhere = of_symbol / len(sequence)
    return ContextTables(
        transition=frozen((pairs + FOLLOWING * share) / (of_tag + FOLLOWING)),
        before=frozen((starts + FOLLOWING * everywhere) / (of_tag + FOLLOWING)),
        after=frozen((follows + FOLLOWING * share[:, None]) / (of_symbol + FOLLOWING)),
    )


def _counted(first: Ints, second: Ints, shape: tuple[int, int]) -> Doubles:
    counts = np.bincount(first * shape[1] + second, minlength=shape[0] * shape[1])
    return counts.reshape(shape).astype(np.float64)
