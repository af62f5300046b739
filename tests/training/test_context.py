"""Counts of what stands beside constituents, worked out by hand and by walking the trees."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from lpcfg.training.data.context import FOLLOWING, estimate
from lpcfg.training.data.treebank import forest_of
from lpcfg.trees.binarize import binarize, split_chain
from lpcfg.trees.brackets import parse_tree
from lpcfg.trees.tree import Tree
from tests import small_models

TREES = (
    "(S (NP (DT the) (NN dog)) (VB barks))",
    "(S (NN dogs) (VP (VB see) (NP (DT a) (NN cat))))",
    "(NN dogs)",
)


def context(*texts: str):  # type: ignore[no-untyped-def]
    forest = forest_of(binarize(parse_tree(text)) for text in texts)
    return forest, estimate(forest)


def test_context_tables_are_smoothed_counts() -> None:
    """Tags in a row, E for the ends: E DT NN VB E NN VB DT NN E NN E, twelve in all."""
    forest, found = context(*TREES)
    assert forest.symbols == ("NP", "S", "VP", "DT", "NN", "VB")
    dt, nn, vb, ends = range(4)
    share = np.array([2, 4, 2, 4]) / 12
    assert found.transition[dt] == pytest.approx(
        (np.array([0, 2, 0, 0]) + FOLLOWING * share) / (2 + FOLLOWING)
    )
    assert found.transition[ends] == pytest.approx(
        (np.array([1, 2, 0, 0]) + FOLLOWING * share) / (3 + FOLLOWING)
    )
    assert found.transition[nn] == pytest.approx(
        (np.array([0, 0, 2, 2]) + FOLLOWING * share) / (4 + FOLLOWING)
    )
    everywhere = np.array([2, 2, 1, 2, 4, 2]) / 12
    # after VB (seen twice): once the NP `a cat` and its DT start
    assert found.before[vb] == pytest.approx(
        (np.array([1, 0, 0, 1, 0, 0]) + FOLLOWING * everywhere) / (2 + FOLLOWING)
    )
    # after the start of a sentence (seen three times): S twice, NP, DT, NN twice
    assert found.before[ends] == pytest.approx(
        (np.array([1, 2, 0, 1, 2, 0]) + FOLLOWING * everywhere) / (3 + FOLLOWING)
    )
    # an NP is followed by VB once, by the end once
    assert found.after[:, 0] == pytest.approx(
        (np.array([0, 0, 1, 1]) + FOLLOWING * share) / (2 + FOLLOWING)
    )


def by_walking(trees: list[Tree]) -> tuple[Counter, Counter, Counter]:  # type: ignore[type-arg]
    """Count pairs of tags, (tag before, symbol) and (symbol, tag after); None stands for the
    ends.
    """
    pairs: Counter = Counter()  # type: ignore[type-arg]
    before: Counter = Counter()  # type: ignore[type-arg]
    after: Counter = Counter()  # type: ignore[type-arg]
    for tree in trees:
        tags = [None, *(split_chain(leaf.label)[-1] for leaf in tree.leaves()), None]
        pairs.update(pairwise(tags))

        def walk(node: Tree, start: int, tags: list = tags) -> int:  # type: ignore[type-arg]
            end = start + 1 if node.is_leaf else start
            for child in node.children:
                end = walk(child, end)
            before[tags[start], node.label] += 1
            after[node.label, tags[end + 1]] += 1
            return end

        walk(tree, 0)
    return pairs, before, after


def test_a_treebanks_tables_are_what_walking_its_trees_counts() -> None:
    strees = [binarize(tree) for tree in small_models.trees()]
    forest = forest_of(strees)
    found = estimate(forest)
    pairs, before, after = by_walking(strees)
    tags = sorted({split_chain(s)[-1] for s in forest.symbols[forest.n_internal :]})
    names: list[str | None] = [*tags, None]
    symbols = [s.removesuffix("<") for s in forest.symbols]
    total = {tag: sum(n for (first, _), n in pairs.items() if first == tag) for tag in names}
    # what is mixed in is at most FOLLOWING tokens' worth of a share below one
    for t, tag in enumerate(names):
        rows = ((found.transition[t], pairs, names), (found.before[t], before, symbols))
        for row, counted, columns in rows:
            exact = np.array([counted[tag, column] for column in columns]) / total[tag]
            np.testing.assert_allclose(row, exact, atol=2 * FOLLOWING)
    for a, symbol in enumerate(symbols):
        counts = np.array([after[symbol, tag] for tag in names])
        np.testing.assert_allclose(found.after[:, a], counts / counts.sum(), atol=FOLLOWING)


def test_rows_are_distributions_without_zeros() -> None:
    found = small_models.counts().context
    for table in (found.transition, found.before, found.after):
        assert (table > 0).all()
        assert not table.flags.writeable
    np.testing.assert_allclose(found.transition.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(found.after.sum(axis=0), 1.0, rtol=1e-12)
