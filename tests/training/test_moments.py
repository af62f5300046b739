"""Moments and their smoothing against formulas written out, example by example."""

from collections import defaultdict

import numpy as np
import pytest
from numpy.random import Generator

from lpcfg.training.data import shards
from lpcfg.training.data.examples import Examples
from lpcfg.training.data.treebank import Forest, forest_of, lexicon_of
from lpcfg.training.estimators.moments import (
    KEPT,
    Occurrences,
    Projection,
    RuleSums,
    Smoothing,
    group_sums,
    third_moment,
)
from lpcfg.trees.brackets import parse_tree
from tests import naive_spectral as naive

TREES = [
    "(S (NP (D the) (N cat)) (VP (V saw) (NP (D the) (N dog))))",
    "(S (NP (D a) (N cat)) (VP (V saw) (NP (D the) (N cat))))",
    "(NP (D a) (N dog))",
    "(N cat)",
]
SMOOTHING = Smoothing(rule=3.0, lexical=2.0)


def examples_of(rare_threshold: int = 0) -> Examples:
    forest = forest_of([parse_tree(tree) for tree in TREES])
    lexicon = lexicon_of(forest, rare_threshold=rare_threshold, language="neutral")
    return Examples.of(forest, lexicon)


def random_projection(rng: Generator, forest: Forest, width: int) -> Projection:
    states = rng.integers(1, width + 1, len(forest.symbols)).astype(np.int32)
    states[0] = width
    used = np.arange(width) < states[forest.symbol][:, None]
    inside, outside = (rng.normal(size=used.shape) * used for _ in range(2))
    return Projection(forest.symbol, states, inside, outside)


@pytest.mark.parametrize("n", [1, 2, 7, 300])
@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_smoothed_moments_are_those_of_the_paper(n: int, weight: float) -> None:
    """To 1e-10 of the largest entry: the same sums in another order."""
    rng = np.random.default_rng(n)
    sides = (rng.normal(size=(n, 5)), rng.normal(size=(n, 3)), rng.normal(size=(n, 4)))
    tail = (rng.normal(size=5), rng.normal(size=3), rng.normal(size=4))
    expected = naive.smoothed(*sides, *tail, weight)
    found = RuleSums.of(sides).smoothed(tail, weight)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


def test_third_moments_do_not_depend_on_the_pieces_they_are_summed_in() -> None:
    """A cache's worth of products at a time: 2,000 examples of 16 × 16 × 16 are four pieces."""
    rng = np.random.default_rng(0)
    sides = tuple(rng.normal(size=(2000, 16)) for _ in range(3))
    expected = np.einsum("ni,nj,nk->ijk", *sides)
    np.testing.assert_allclose(third_moment(sides), expected, rtol=0, atol=1e-9)


def test_smoothing_weights_follow_the_paper() -> None:
    assert SMOOTHING.rule_weight(9).item() == pytest.approx(0.5)
    assert SMOOTHING.lexical_weight(4).item() == pytest.approx(0.5)
    assert SMOOTHING.rule_weight(np.array([0, 1])).tolist() == pytest.approx([0.0, 0.25])
    assert Smoothing(0.0, 0.0).rule_weight(np.array([0, 1, 5])).tolist() == [0.0, 1.0, 1.0]


def test_group_sums_are_those_of_double_precision() -> None:
    rng = np.random.default_rng(0)
    vectors, group = rng.normal(size=(5000, 3)).astype(np.float32), rng.integers(-1, 4, 5000)
    expected = [vectors[group == g].astype(np.float64).sum(axis=0) for g in range(4)]
    # 1,250 numbers below 5 in another order: single precision would be wrong by up to 1e-3
    np.testing.assert_allclose(group_sums(vectors, group, 4), expected, rtol=0, atol=1e-9)


def test_group_sums_ignore_negative_groups() -> None:
    vectors = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0], [9.0, 9.0]])
    found = group_sums(vectors, np.array([2, 0, 2, -1], np.int32), 4)
    assert found.tolist() == [[3.0, 4.0], [0.0, 0.0], [6.0, 9.0], [0.0, 0.0]]
    assert group_sums(vectors[:0], np.array([], np.int32), 2).tolist() == [[0.0, 0.0]] * 2


def test_occurrences_of_rules_and_what_they_average() -> None:
    examples = examples_of()
    forest, grammar, node_rule = examples.forest, examples.grammar, examples.node_rule
    projection = random_projection(np.random.default_rng(1), forest, 3)
    occurrences = Occurrences.of(examples, projection)
    for r in range(grammar.n_rules):
        nodes = np.flatnonzero(node_rule == r)
        a, b, c = grammar.rules[r]
        assert occurrences.count[r] == len(nodes)
        assert occurrences.share[r] == len(nodes) / (forest.symbol == a).sum()
        vectors = (
            projection.outside[nodes],
            projection.inside[forest.left[nodes]],
            projection.inside[forest.right[nodes]],
        )
        for side, rows, m in zip(occurrences.kept(r), vectors, occurrences.shape(r), strict=True):
            assert side.tolist() == rows[:, :m].tolist()
        h, f, g = occurrences.tail(np.array([r]))
        np.testing.assert_allclose(h[0], projection.outside[forest.symbol == a].mean(axis=0))
        np.testing.assert_allclose(f[0], projection.inside[forest.symbol == b].mean(axis=0))
        np.testing.assert_allclose(g[0], projection.inside[forest.symbol == c].mean(axis=0))


@pytest.mark.parametrize("width", [1, 2, 8, 32])
def test_third_moments_of_many_examples_are_added_in_double_precision(width: int) -> None:
    """Sums of 2¹⁶ equal products: in single precision throughout, rounding would pile up.

    A block adds 512 products, so no sum errs by more than 512 · 2⁻²⁴ = 3.1e-5 of itself. With
    blocks of 2¹⁵ the numbers of two states were wrong by 4.8e-4.
    """
    n = 1 << 16
    rng = np.random.default_rng(width)
    rows = [np.repeat(rng.random((1, width)).astype(np.float32), n, axis=0) for _ in range(3)]
    found = third_moment((rows[0], rows[1], rows[2]))
    exact = n * np.einsum("i,j,k->ijk", *(side[0].astype(np.float64) for side in rows))
    np.testing.assert_allclose(found, exact, rtol=3.1e-5)


@pytest.mark.parametrize("rare_threshold", [0, 1])
@pytest.mark.parametrize("smoothing", [SMOOTHING, Smoothing(0.0, 0.0)])
def test_terminal_directions_follow_the_paper(rare_threshold: int, smoothing: Smoothing) -> None:
    """νE^{a→x} + (1−ν)H^a; unsmoothed the plain mean; a → ANY, which no leaf has, H^a."""
    examples = examples_of(rare_threshold)
    forest, grammar, node_entry = examples.forest, examples.grammar, examples.node_entry
    projection = random_projection(np.random.default_rng(2), forest, 3)
    found = Occurrences.of(examples, projection).terminal_directions(smoothing)
    assert len(grammar.entries) == len(found)
    never = 0
    for e, (a, _) in enumerate(grammar.entries):
        own = projection.outside[node_entry == e]
        mean = projection.outside[forest.symbol == a].mean(axis=0)
        if len(own):
            root = np.sqrt(len(own))
            weight = root / (smoothing.lexical + root)
            mean = weight * own.mean(axis=0) + (1 - weight) * mean
        never += len(own) == 0
        np.testing.assert_allclose(found[e], mean, rtol=1e-12)
    assert never == (3 if rare_threshold else 0)


def test_root_vectors_are_sums_over_roots_by_the_number_of_trees() -> None:
    """Preterminals too: the last tree is a word."""
    examples = examples_of()
    forest = examples.forest
    projection = random_projection(np.random.default_rng(3), forest, 3)
    expected = defaultdict(lambda: np.zeros(3))
    for root in forest.roots:
        expected[forest.symbol[root]] += projection.inside[root] / len(TREES)
    found = Occurrences.of(examples, projection).root_vectors()
    for a in range(len(forest.symbols)):
        np.testing.assert_allclose(found[a], expected[a], rtol=1e-12, atol=0)
    assert found[forest.symbols.index("N")].any()
    assert not found[forest.symbols.index("V")].any()


def many_examples() -> Examples:
    """Build 600 trees, with rules seen 600, 400 and 200 times."""
    trees = ["(S (A (A x) (A x)) (A (A x) (B y)))"] * 200 + ["(S (A (A x) (A x)) (A x))"] * 400
    forest = forest_of([parse_tree(tree) for tree in trees])
    return Examples.of(forest, lexicon_of(forest, rare_threshold=0, language="neutral"))


@pytest.mark.parametrize("nodes", [40, 500])
def test_sums_over_shards_are_sums_over_the_treebank(
    nodes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kept examples are the same ones; sums differ by their order alone."""
    examples = many_examples()
    projection = random_projection(np.random.default_rng(4), examples.forest, 3)
    whole = Occurrences.of(examples, projection)
    monkeypatch.setattr(shards, "SHARD_NODES", nodes)
    assert len(list(shards.shards_of(examples))) > 4
    parts = Occurrences.of(examples, projection)
    for one, other in zip(whole.sides, parts.sides, strict=True):
        assert one.tobytes() == other.tobytes()
    assert whole.start.tolist() == parts.start.tolist()
    assert whole.sums.common.keys() == parts.sums.common.keys()
    assert len(whole.sums.common) > 0
    for r in range(examples.grammar.n_rules):
        one, other = whole.sums_of(r), parts.sums_of(r)
        assert one.n == other.n == whole.count[r]
        np.testing.assert_allclose(one.third, other.third, rtol=1e-10, atol=1e-10)
        for sums in ("first", "second"):
            for ours, theirs in zip(getattr(one, sums), getattr(other, sums), strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)
    for name in ("mean_inside", "mean_outside"):
        np.testing.assert_allclose(getattr(whole, name), getattr(parts, name), atol=1e-12)


def test_kept_examples_are_evenly_spaced_from_first_to_last() -> None:
    examples = many_examples()
    projection = random_projection(np.random.default_rng(5), examples.forest, 3)
    occurrences = Occurrences.of(examples, projection)
    for r, n in enumerate(occurrences.count.tolist()):
        nodes = np.flatnonzero(examples.node_rule == r)
        if n > KEPT:
            nodes = nodes[np.arange(KEPT) * (n - 1) // (KEPT - 1)]
        outside = projection.outside[nodes, : occurrences.shape(r)[0]]
        assert occurrences.kept(r)[0].tolist() == outside.tolist()
