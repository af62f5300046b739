"""Rules' tensors as rank-one terms: exact where they should be, near and measured elsewhere."""

import numpy as np
import pytest
from numpy.random import Generator

from lpcfg.grammar.tables import Doubles, Floats, Grammar, Tables
from lpcfg.training.data.examples import Examples
from lpcfg.training.data.treebank import (
    Forest,
    forest_of,
    grammar_of,
    lexicon_of,
    node_entries,
    node_rules,
)
from lpcfg.training.estimators.compact import Compaction, Terms, compact, least_squares, tables_of
from lpcfg.training.estimators.moments import Occurrences, Projection, Smoothing
from lpcfg.trees.brackets import parse_tree
from lpcfg.trees.tree import Tree
from tests import naive_spectral as naive

SMOOTHING = Smoothing(rule=10.0, lexical=4.0)
UNSMOOTHED = Smoothing(rule=0.0, lexical=0.0)
# How often each rule S → A<n> B<n> is seen; S and its children have 8, 7 and 6 states.
COUNTS = (1, 2, 3, 5, 12, 40, 700)
SHAPE = (8, 7, 6)


def known_counts() -> list[Tree]:
    return [parse_tree(f"(S (A{n} x) (B{n} y))") for n in COUNTS for _ in range(n)]


class Known(Occurrences):
    """Occurrences that remember the projection they sum up."""

    projection: Projection


def known(examples: Examples, projection: Projection) -> Known:
    result = Known.of(examples, projection)
    assert isinstance(result, Known)
    result.projection = projection
    return result


def occurrences_of(trees: list[Tree], rng: Generator, shape: tuple[int, int, int] = SHAPE) -> Known:
    """Draw random Y and Z around means that are not zero."""
    forest = forest_of(trees)
    examples = Examples.of(forest, lexicon_of(forest, rare_threshold=0, language="neutral"))
    sizes = {"S": shape[0], "A": shape[1], "B": shape[2]}
    states = np.array([sizes[name[0]] for name in forest.symbols], np.int32)
    projection = random_projection(rng, forest, states)
    return known(examples, projection)


def random_projection(rng: Generator, forest: Forest, states: np.ndarray) -> Projection:
    width = int(states.max())
    used = np.arange(width) < states[forest.symbol][:, None]
    means = rng.normal(size=(2, width))
    inside, outside = (used * (mean + rng.normal(size=used.shape)) for mean in means)
    return Projection(forest.symbol, states, inside, outside)


def tensor_of(occurrences: Occurrences, terms: Terms, r: int) -> Doubles:
    own = terms.rule == r
    sides = [side[own, :m] for side, m in zip(terms.sides, occurrences.shape(r), strict=True)]
    return np.einsum("ti,tj,tk->ijk", *sides)


def expected_tensor(occurrences: Known, smoothing: Smoothing, r: int) -> Doubles:
    examples, projection = occurrences.examples, occurrences.projection
    sizes = occurrences.shape(r)
    nodes = np.flatnonzero(examples.node_rule == r)
    children = (examples.forest.left[nodes], examples.forest.right[nodes])
    rows = (projection.outside[nodes], *(projection.inside[child] for child in children))
    sides = [side[:, :m] for side, m in zip(rows, sizes, strict=True)]
    tail = [side[0, :m] for side, m in zip(occurrences.tail(np.array([r])), sizes, strict=True)]
    weight = float(smoothing.rule_weight(len(nodes)))
    return occurrences.share[r] * naive.smoothed(*sides, *tail, weight)


def relative(found: Floats, expected: Floats) -> float:
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


def counts_of(occurrences: Occurrences) -> list[int]:
    return occurrences.count.tolist()


def test_rules_seen_once_or_twice_are_exactly_rank_two_or_three() -> None:
    occurrences = occurrences_of(known_counts(), np.random.default_rng(0))
    terms = compact(occurrences, SMOOTHING, Compaction(16, 4), workers=1)
    for r, n in enumerate(counts_of(occurrences)):
        if n <= 2:
            assert (terms.rule == r).sum() == n + 1
            expected = expected_tensor(occurrences, SMOOTHING, r)
            # The same numbers, computed in another order.
            assert relative(tensor_of(occurrences, terms, r), expected) < 1e-12
            assert terms.error[r] < 1e-12


def test_unsmoothed_rules_seen_rarely_are_exactly_their_examples() -> None:
    occurrences = occurrences_of(known_counts(), np.random.default_rng(1))
    terms = compact(occurrences, UNSMOOTHED, Compaction(16, 4), workers=1)
    for r, n in enumerate(counts_of(occurrences)):
        if n <= 16:
            assert (terms.rule == r).sum() == n
            expected = expected_tensor(occurrences, UNSMOOTHED, r)
            assert relative(tensor_of(occurrences, terms, r), expected) < 1e-12


@pytest.mark.parametrize("smoothing", [SMOOTHING, UNSMOOTHED])
def test_no_rule_has_more_terms_than_allowed_or_than_its_examples_need(
    smoothing: Smoothing,
) -> None:
    occurrences = occurrences_of(known_counts(), np.random.default_rng(2))
    terms = compact(occurrences, smoothing, Compaction(16, 4), workers=1)
    tail = int(smoothing.rule > 0)
    found = np.bincount(terms.rule, minlength=len(COUNTS)).tolist()
    assert found == [min(n + tail, 16) for n in counts_of(occurrences)]


@pytest.mark.parametrize("smoothing", [SMOOTHING, UNSMOOTHED])
def test_the_error_is_measured(smoothing: Smoothing) -> None:
    """It is what a comparison with the dense tensor finds, and it is small for few examples."""
    occurrences = occurrences_of(known_counts(), np.random.default_rng(3))
    terms = compact(occurrences, smoothing, Compaction(16, 4), workers=1)
    assert terms.rules.tolist() == list(range(len(COUNTS)))
    for r, n in enumerate(counts_of(occurrences)):
        expected = expected_tensor(occurrences, smoothing, r)
        found = relative(tensor_of(occurrences, terms, r), expected)
        # Rounding of norms of differences that are nearly or wholly zero.
        assert terms.error[r] == pytest.approx(found, rel=1e-6, abs=1e-8)
        if n < 16:
            assert found < 0.05  # (λ − v³)T: a twentieth of the third central moment at most


@pytest.mark.parametrize("shape", [(1, 7, 6), (8, 1, 6), (8, 7, 1), (2, 3, 8), (1, 1, 1)])
def test_thin_tensors_are_exact(shape: tuple[int, int, int]) -> None:
    """A tensor of few fibres is kept as they are, however often its rule is seen."""
    occurrences = occurrences_of(known_counts(), np.random.default_rng(4), shape)
    terms = compact(occurrences, SMOOTHING, Compaction(16, 4), workers=1)
    fibres = np.prod(shape) // max(shape)
    for r, n in enumerate(counts_of(occurrences)):
        if n >= 12:
            assert (terms.rule == r).sum() == fibres
            expected = expected_tensor(occurrences, SMOOTHING, r)
            assert relative(tensor_of(occurrences, terms, r), expected) < 1e-12
            assert terms.error[r] == 0


def test_more_terms_and_more_sweeps_come_nearer() -> None:
    occurrences = occurrences_of(known_counts(), np.random.default_rng(5))
    often = counts_of(occurrences).index(700)
    errors = [
        compact(occurrences, SMOOTHING, Compaction(n_terms, sweeps), workers=1).error[often]
        for n_terms, sweeps in ((8, 1), (8, 10), (20, 10), (36, 30))
    ]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > 2 * errors[-1]


def test_least_squares_finds_a_tensor_of_few_terms() -> None:
    rng = np.random.default_rng(6)
    sides = [rng.normal(size=(2, 4, m)) for m in SHAPE]
    tensors = np.einsum("bti,btj,btk->bijk", *sides)
    start = [side + 0.1 * rng.normal(size=side.shape) for side in sides[1:]]
    found = np.einsum("bti,btj,btk->bijk", *least_squares(tensors, *start, 500))
    # It converges linearly, to the ridge.
    np.testing.assert_allclose(found, tensors, rtol=0, atol=1e-5)


def test_least_squares_survives_equal_terms_and_empty_tensors() -> None:
    """All examples equal: one term would do, and sixteen share it."""
    one = np.ones((2, 3, 3, 3))
    one[1] = 0
    ones = np.ones((2, 16, 3))
    found = np.einsum("bti,btj,btk->bijk", *least_squares(one, ones, ones, 4))
    np.testing.assert_allclose(found, one, rtol=0, atol=1e-6)


def test_examples_that_are_all_equal_make_an_exact_tensor() -> None:
    """A rule seen 700 times in one context has as many clusters as terms, all of them the same."""
    occurrences = occurrences_of(known_counts(), np.random.default_rng(7))
    projection = occurrences.projection
    first = np.array([np.flatnonzero(projection.symbol == a)[0] for a in projection.symbol])
    same = Projection(
        projection.symbol, projection.states, projection.inside[first], projection.outside[first]
    )
    grammar = occurrences.examples.grammar
    equal = known(occurrences.examples, same)
    terms = compact(equal, SMOOTHING, Compaction(16, 4), workers=1)
    for r in range(grammar.n_rules):
        expected = expected_tensor(equal, SMOOTHING, r)
        assert relative(tensor_of(equal, terms, r), expected) < 1e-6  # the ridge


def test_terms_have_sides_of_equal_length_in_the_order_of_rules() -> None:
    occurrences = occurrences_of(known_counts(), np.random.default_rng(8))
    terms = compact(occurrences, SMOOTHING, Compaction(16, 4), workers=1)
    assert (np.diff(terms.rule) >= 0).all()
    lengths = [np.linalg.norm(side, axis=1) for side in terms.sides]
    np.testing.assert_allclose(lengths[0], lengths[1], rtol=1e-10)
    np.testing.assert_allclose(lengths[0], lengths[2], rtol=1e-10)


def tables_with(occurrences: Occurrences, workers: int = 1, n_terms: int = 16) -> Tables:
    tables, _ = tables_of(occurrences, SMOOTHING, Compaction(n_terms, 4), workers=workers)
    return tables


def test_rotations_of_the_projection_cancel() -> None:
    """Orthogonal G^a, one per symbol: C, c∞ and c¹ turn with them, also those that are fitted."""
    rng = np.random.default_rng(9)
    occurrences = occurrences_of(known_counts(), rng)
    projection, grammar = occurrences.projection, occurrences.examples.grammar
    inside, outside = projection.inside.copy(), projection.outside.copy()
    bases = []
    for a, m in enumerate(projection.states):
        basis, _ = np.linalg.qr(rng.normal(size=(m, m)))
        bases.append(basis)
        own = projection.symbol == a
        inside[own, :m] = projection.inside[own, :m] @ basis
        outside[own, :m] = projection.outside[own, :m] @ basis
    turned = Projection(projection.symbol, projection.states, inside, outside)
    before = tables_with(occurrences)
    after = tables_with(Occurrences.of(occurrences.examples, turned))
    for r, (a, b, c) in enumerate(grammar.rules.tolist()):
        expected = np.einsum("ijk,ix,jy,kz->xyz", before.dense(r), bases[a], bases[b], bases[c])
        # Clusters and sweeps see the same distances; rounding may grow a little on its way.
        np.testing.assert_allclose(after.dense(r), expected, rtol=0, atol=1e-8)
    for e, (a, _) in enumerate(grammar.entries.tolist()):
        np.testing.assert_allclose(
            after.terminal_vector(e), before.terminal_vector(e) @ bases[a], atol=1e-12
        )
    for a in range(grammar.n_symbols):
        np.testing.assert_allclose(
            after.root_vector(a), before.root_vector(a) @ bases[a], atol=1e-12
        )


def test_workers_change_no_byte() -> None:
    occurrences = occurrences_of(known_counts() * 2, np.random.default_rng(10))
    one, two = (tables_with(occurrences, workers) for workers in (1, 2))
    for name in ("terms", "parent", "left", "right", "c_inf", "c_one"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes()


def test_a_forest_without_rules_has_no_terms() -> None:
    forest = forest_of([parse_tree("(N one)"), parse_tree("(N two)")])
    examples = Examples.of(forest, lexicon_of(forest, rare_threshold=0, language="neutral"))
    projection = random_projection(np.random.default_rng(11), forest, np.array([3], np.int32))
    occurrences = Occurrences.of(examples, projection)
    tables = tables_with(occurrences)
    assert len(tables.terms) == len(tables.parent) == 0
    np.testing.assert_allclose(tables.c_one, projection.inside.mean(axis=0))


def test_a_rule_never_seen_has_no_terms() -> None:
    forest = forest_of([parse_tree("(S (A x) (B y))")])
    lexicon = lexicon_of(forest, rare_threshold=0, language="neutral")
    seen = grammar_of(forest, lexicon)
    rules = np.array([*seen.rules.tolist(), [0, 2, 1]], np.int32)
    grammar = Grammar(seen.symbols, seen.n_internal, rules, seen.terminals, seen.entries)
    projection = random_projection(np.random.default_rng(12), forest, np.full(3, 2, np.int32))
    rule, entry = node_rules(forest, grammar), node_entries(forest, grammar, lexicon)
    occurrences = Occurrences.of(Examples(forest, grammar, rule, entry), projection)
    assert tables_with(occurrences).terms.tolist() == [2, 0]
