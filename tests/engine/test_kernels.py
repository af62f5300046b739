"""The compiled loops, one by one, beside what they are told to compute."""

import itertools
import math
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lpcfg.engine.pruned import decode, fine, kernels
from lpcfg.engine.pruned.coarse import Limits, Pruned, Thresholds, rules_by_children
from lpcfg.engine.pruned.simd import LANES
from lpcfg.grammar.tables import Grammar, Singles
from lpcfg.kinds.constituency.model import coarse_tables
from tests.small_charts import (
    NOTHING_OUT,
    SINGLE,
    Case,
    cases,
    coarse_of,
    interpreted,
    random_case,
    roundings,
)
from tests.strategies_grammar import literal_emissions, random_emissions, random_tables

# float64 sums of products of fewer than 1,000 numbers, all positive.
ROUNDING = 1e-12

finite = st.floats(allow_nan=False, allow_infinity=False, width=32)


def all_pairs(symbols: int) -> Grammar:
    """List every rule there can be over some in-terminals and one preterminal."""
    rules = list(itertools.product(range(symbols), range(symbols + 1), range(symbols + 1)))
    names = (*(f"I{a}" for a in range(symbols)), "P")
    return Grammar(names, symbols, np.array(rules), ("x",), np.array([[symbols, 0]]))


# The figure of merit ------------------------------------------------------------------------


def random_context(rng: np.random.Generator, tags: int, symbols: int) -> kernels.ContextModel:
    """Draw tables in which nothing is impossible; the first symbols are in-terminals."""
    transition = rng.random((tags + 1, tags + 1)) + 0.01
    transition /= transition.sum(axis=1, keepdims=True)
    return kernels.ContextModel(
        transition=transition,
        follows=np.ascontiguousarray(transition.T),
        before=rng.random((tags + 1, symbols)),
        after=rng.random((tags + 1, symbols)),
        tag=rng.integers(0, tags, symbols).astype(np.int32),
        share=rng.random(symbols),
    )


def random_words(rng: np.random.Generator, n: int, symbols: int) -> kernels.Candidates:
    sizes = rng.integers(1, symbols + 1, n)
    chosen = [rng.choice(symbols, size, replace=False) for size in sizes]
    return kernels.Candidates(
        np.append(0, np.cumsum(sizes)).astype(np.int32),
        np.concatenate(chosen).astype(np.int32),
        np.zeros(sizes.sum(), np.int32),
        rng.random(sizes.sum()) * 1e-3,
    )


def by_enumeration(
    words: kernels.Candidates, context: kernels.ContextModel, i: int, k: int, a: int
) -> float:
    """Sum over all tags of the words outside [i, k): their probability times the chances of a
    beside them.

    That is before[t, a] after the tag at i - 1, and after[u, a] before the tag at k, the ends of
    the sentence being tags as well. Nothing is known of the words inside.
    """
    n, ends = len(words.start) - 1, context.transition.shape[0] - 1
    emission = np.zeros((n, ends))
    for w in range(n):
        for t in range(words.start[w], words.start[w + 1]):
            symbol = words.symbol[t]
            emission[w, context.tag[symbol]] += words.weight[t] * context.share[symbol]
    total = 0.0
    for tags in itertools.product(range(ends), repeat=n - (k - i)):
        first, last = (ends, *tags[:i]), (*tags[i:], ends)
        value = context.before[first[-1], a] * context.after[last[0], a]
        for row, w0 in ((first, 0), (last, k)):
            for before, after in itertools.pairwise(row):
                value *= context.transition[before, after]
            emitted = row[1:] if row is first else row[:-1]
            for w, tag in enumerate(emitted, start=w0):
                value *= emission[w, tag]
        total += value
    return total


def whole_sentence(words: kernels.Candidates, context: kernels.ContextModel) -> float:
    """Compute p(words) of the hidden Markov model by enumeration."""
    free = context._replace(before=np.ones_like(context.before), after=np.ones_like(context.after))
    n, ends = len(words.start) - 1, context.transition.shape[0] - 1
    total = 0.0
    for tag in range(ends):  # split after the last word's tag: p = Σ_tag forward · to the end
        only = np.zeros_like(free.before)
        only[tag] = context.transition[tag, ends]
        total += by_enumeration(words, free._replace(before=only), n, n, 0)
    return total


@pytest.mark.parametrize("seed", range(6))
def test_factors_of_merit_equal_a_hidden_markov_model(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, tags, symbols = int(rng.integers(1, 5)), int(rng.integers(1, 3)), 4
    context, words = random_context(rng, tags, symbols), random_words(rng, n, symbols)
    left, right, weight, exponent = kernels.merit_factors(words, context)
    scaled = np.repeat(2.0 ** -exponent.astype(float), np.diff(words.start))
    np.testing.assert_array_equal(weight, words.weight * scaled)
    probability = whole_sentence(words, context)
    for i, k in itertools.combinations(range(n + 1), 2):
        inside = 2.0 ** exponent[i:k].sum()  # what was taken out of the words within
        for a in range(symbols):
            right_value = by_enumeration(words, context, i, k, a) * inside / probability
            assert left[i, a] * right[k, a] == pytest.approx(right_value, rel=ROUNDING)


# Charts -----------------------------------------------------------------------------------------


def check_alike(case: Case, thresholds: Thresholds, limits: Limits | None = None) -> None:
    """Check that the compiled kernels and the Python they are written in make the same chart."""
    compiled = case.prune(thresholds, limits)
    with interpreted():
        plain = case.prune(thresholds, limits)
    assert type(compiled) is type(plain)
    for name, mine, other in zip(compiled.chart._fields, compiled.chart, plain.chart, strict=True):
        if name in ("inside", "value"):  # compiled sums may fuse a product with its addition
            np.testing.assert_allclose(mine, other, rtol=ROUNDING)
        else:
            np.testing.assert_array_equal(mine, other)
    if isinstance(compiled, Pruned) and isinstance(plain, Pruned):
        np.testing.assert_allclose(compiled.item, plain.item, rtol=ROUNDING)
        np.testing.assert_allclose(compiled.edge, plain.edge, rtol=ROUNDING)


@given(cases(max_words=4))
def test_interpreted_and_compiled_charts_are_alike(case: Case) -> None:
    check_alike(case, NOTHING_OUT)


share = st.floats(1e-3, 0.5)


@given(cases(max_words=5), st.builds(Thresholds, share, share, share), st.integers(0, 2**32 - 1))
def test_interpreted_and_compiled_pruned_charts_are_alike(
    case: Case, thresholds: Thresholds, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    n, symbols = case.emissions.length, case.grammar.n_symbols
    limits = Limits(
        cell=rng.choice(np.array([0, 0, 0, 0, 1, 2, 3], np.int32), (n + 1, n + 1)),
        allowed=rng.random((2, symbols)) < 0.7,
    )
    check_alike(case, thresholds, limits)
    check_alike(case, thresholds)


@pytest.mark.parametrize("compiled", [True, False])
def test_an_unlikely_rule_beside_a_likely_one_is_left_out(compiled: bool) -> None:
    rules = np.array([[0, 2, 2], [1, 2, 2]])
    grammar = Grammar(("S", "T", "A"), 2, rules, ("x",), np.array([[2, 0]]))
    tables = coarse_tables(grammar, np.array([1.0, 1e-6]), np.ones(3))
    coarse, emissions = coarse_of(tables), literal_emissions(grammar, ["x", "x"])
    with nullcontext() if compiled else interpreted():
        found = coarse.prune(emissions, Thresholds(1e-3, 0.0, 0.0))
    assert sorted(found.chart.symbol.tolist()) == [0, 2, 2]
    assert found.chart.rule.tolist() == [0]


@pytest.mark.parametrize("compiled", [True, False])
def test_charts_grow_beyond_the_room_they_start_with(compiled: bool) -> None:
    """Every cell holds every in-terminal, every split every rule: the numbers are known."""
    rng = np.random.default_rng(0)
    n, symbols = (40, 3) if compiled else (9, 9)
    grammar = all_pairs(symbols)
    tables = coarse_tables(grammar, np.full(grammar.n_rules, 1e-2), np.ones(symbols + 1))
    case = Case(tables, (), random_emissions(rng, grammar, ["x"] * n))
    if compiled:
        found = case.prune()
    else:
        with interpreted():
            found = case.prune()
    spans = n * (n - 1) // 2
    assert len(found.chart.symbol) == n + symbols * spans
    edges = 0
    for width in range(2, n + 1):
        at_split = [
            (1 if split == 1 else symbols) * (1 if width - split == 1 else symbols)
            for split in range(1, width)
        ]
        edges += (n - width + 1) * symbols * sum(at_split)
    assert len(found.chart.rule) == edges
    assert len(found.chart.symbol) > 32 * n or not compiled
    assert edges > 64 * n


@pytest.mark.parametrize("least", [0.0, 0.05])
def test_a_closed_word_leaves_a_sentence_without_analysis(least: float) -> None:
    rng = np.random.default_rng(1)
    case = random_case(rng, ["x", "x", "x"], members=0)
    limits = Limits.none(3)
    limits.cell[1, 2] = 1
    found = case.prune(Thresholds(least, 0.0, 0.0), limits)
    assert not isinstance(found, Pruned)
    assert (1, 2) not in set(zip(found.chart.start, found.chart.end, strict=True))


def test_a_sentence_without_items_has_no_probability() -> None:
    rng = np.random.default_rng(2)
    case = random_case(rng, ["x"], members=0)
    limits = Limits.none(1)
    limits.cell[0, 1] = 1
    found = case.prune(NOTHING_OUT, limits)
    assert not isinstance(found, Pruned)
    assert len(found.chart.symbol) == 0
    with interpreted():
        total, item, edge = kernels.coarse_posteriors(
            found.chart, rules_by_children(case.coarse).root, 1
        )
    assert (total, len(item), len(edge)) == (0.0, 0, 0)


# Scaling ----------------------------------------------------------------------------------------


def arrays(values: list[float]) -> Singles:
    return np.array(values, np.float32)


@pytest.mark.parametrize("compiled", [True, False])
@given(st.lists(finite, min_size=1, max_size=4))
def test_rescaling_loses_nothing_but_denormal_bits(compiled: bool, values: list[float]) -> None:
    vector = arrays(values + [0.0] * (LANES - len(values)))
    before = vector.astype(np.float64)
    with nullcontext() if compiled else interpreted():
        exponent = kernels._rescale(vector, 0, LANES)
    after = vector.astype(np.float64)
    largest = np.abs(before).max()
    if exponent == 0:
        assert largest == 0 or 2.0**-21 <= largest <= 2.0**20
        np.testing.assert_array_equal(after, before)
        return
    assert 0.5 <= np.abs(after).max() < 1
    # 2**-149 is float32's smallest number: smaller ones have no bits to keep
    np.testing.assert_allclose(after, before * 2.0**-exponent, rtol=0, atol=2.0**-149)


@pytest.mark.parametrize("compiled", [True, False])
def test_a_contribution_to_an_outside_vector_is_scaled_to_its_exponent(compiled: bool) -> None:
    down, fresh = np.zeros(1, np.int64), np.ones(1, np.bool_)
    beta, at = arrays([0.0, 0.0]), np.array([0, 2])

    def weighed(weight: float, exponent: int) -> float:
        with nullcontext() if compiled else interpreted():
            return kernels._outside_factor(0, weight, exponent, beta, at, down, fresh)

    assert weighed(0.75, -300) == 0.75  # the first one sets the exponent
    assert (down[0], fresh[0]) == (-300, False)
    beta[:] = [1.0, -2.0]
    assert weighed(0.5, -303) == 0.5 / 8
    assert weighed(0.5, -290) == 0.5 * 1024
    assert down[0] == -300
    assert weighed(0.5, -260) == 0.5  # far larger: what was there shrinks
    assert down[0] == -260
    np.testing.assert_array_equal(beta, arrays([2.0**-40, -(2.0**-39)]))
    assert float(weighed(0.5, -(10**6))) < 1e-300


@pytest.mark.parametrize("compiled", [True, False])
def test_scaling_a_members_tables_does_not_change_posteriors(compiled: bool) -> None:
    """Scales of symbols between 2⁻³⁰ and 2³⁰ drive α and β out of float32 within a few steps."""
    rng = np.random.default_rng(7)
    case = random_case(rng, ["x"] * (12 if compiled else 5), members=0)
    member = random_tables(rng, case.grammar, 3, signed=False)
    # a diagonal change of basis (theorem 3): C times 2^s(a) / (2^s(b) 2^s(c)), c∞ times 2^s(a)
    scale = rng.integers(-30, 31, case.grammar.n_symbols)
    grammar = case.grammar
    wild = type(member).from_dense(
        grammar,
        member.states,
        [
            np.ldexp(member.dense(r), int(scale[a] - scale[b] - scale[c]))
            for r, (a, b, c) in enumerate(grammar.rules.tolist())
        ],
        [
            np.ldexp(np.asarray(member.terminal_vector(e), np.float64), int(scale[a]))
            for e, (a, _) in enumerate(grammar.entries.tolist())
        ],
        [
            np.ldexp(np.asarray(member.root_vector(a), np.float64), -int(scale[a]))
            for a in range(grammar.n_symbols)
        ],
    )
    found = case.prune()
    assert isinstance(found, Pruned)
    tame = fine.posteriors(found, [fine.relative(member, case.coarse)])
    made = fine.relative(wild, case.coarse)
    if compiled:
        other = fine.posteriors(found, [made])
    else:
        with interpreted():
            other = fine.posteriors(found, [made])
    allowed = 4 * roundings(member, found.chart) * SINGLE
    np.testing.assert_allclose(other.item, tame.item, rtol=allowed, atol=1e-30)
    np.testing.assert_allclose(other.edge, tame.edge, rtol=allowed, atol=1e-30)
    assert other.log_probability == pytest.approx(tame.log_probability, abs=allowed)


# Trees of a chart -------------------------------------------------------------------------------


@given(cases(max_words=4))
def test_the_chart_of_one_derivation_holds_it_and_no_other(case: Case) -> None:
    found = case.prune()
    assume(isinstance(found, Pruned))
    chart = found.chart
    scores = np.log(chart.inside), np.zeros(len(chart.rule))
    _, back = kernels.best_tree(chart, *scores)
    items, stack = [], [len(chart.symbol) - 1]
    while stack:
        t = stack.pop()
        items.append(t)
        if back[t] >= 0:
            stack += [int(chart.right[back[t]]), int(chart.left[back[t]])]
    chosen, order = np.array(items), np.sort(items)
    edges = [int(back[t]) for t in order.tolist() if back[t] >= 0]
    assert decode.edges_between(chart, chosen).tolist() == edges
    alone = decode.single_tree(chart, chosen, np.array(edges, np.int64))
    assert alone.symbol.tolist() == chart.symbol[order].tolist()
    assert alone.start.tolist() == chart.start[order].tolist()
    assert alone.rule.tolist() == chart.rule[edges].tolist()
    assert order[alone.left].tolist() == chart.left[edges].tolist()
    assert order[alone.right].tolist() == chart.right[edges].tolist()
    assert np.diff(alone.edge_start).tolist() == (alone.entry < 0).tolist()
    assert alone.edge_start[-1] == len(edges) == found.length - 1
    assert [array.dtype for array in alone] == [array.dtype for array in chart]


@given(cases(max_words=4), st.integers(0, 2**32 - 1))
def test_a_label_has_the_posteriors_of_all_items_that_bear_it(case: Case, seed: int) -> None:
    found = case.prune()
    assume(isinstance(found, Pruned))
    rng = np.random.default_rng(seed)
    chains = [rng.integers(3, size=rng.integers(4)).tolist() for _ in case.grammar.symbols]
    start = np.append(0, np.cumsum([len(own) for own in chains])).astype(np.int32)
    flat = np.array([x for own in chains for x in own], np.int32)
    repeated = np.array([x in own[:at] for own in chains for at, x in enumerate(own)], np.bool_)
    chart, posterior = found.chart, found.item
    right, gains = [], []
    for t in range(len(chart.symbol)):
        there = (chart.start == chart.start[t]) & (chart.end == chart.end[t])
        own, before = chains[chart.symbol[t]], len(right)
        for label in own:
            bearing = [label in chains[symbol] for symbol in chart.symbol]
            right.append(float(posterior[there & bearing].sum()))
        again = repeated[start[chart.symbol[t]] : start[chart.symbol[t] + 1]]
        taken = np.where(again, posterior[t], right[before:])
        gains.append(float((np.minimum(taken, 1.0) - 0.5).sum()))
    labels = start, flat, repeated
    for label_shares in (kernels.label_shares, kernels.label_shares.py_func):
        begin, mine, told = label_shares(chart, posterior, labels, 3)
        assert mine.tolist() == pytest.approx(right, rel=ROUNDING)
        assert np.diff(begin).tolist() == [len(chains[symbol]) for symbol in chart.symbol]
        assert told.tolist() == pytest.approx(gains, rel=ROUNDING, abs=ROUNDING)


@given(cases(max_words=4))
def test_the_best_tree_of_every_item_is_the_best_of_its_edges(case: Case) -> None:
    found = case.prune()
    chart = found.chart
    rng = np.random.default_rng(0)
    item, edge = rng.normal(size=len(chart.symbol)), rng.normal(size=len(chart.rule))
    for best_tree in (kernels.best_tree, kernels.best_tree.py_func):
        best, back = best_tree(chart, item, edge)
        for t in range(len(chart.symbol)):
            totals = {
                e: edge[e] + best[chart.left[e]] + best[chart.right[e]]
                for e in range(chart.edge_start[t], chart.edge_start[t + 1])
            }
            if chart.entry[t] >= 0:
                totals[-1] = item[t]
            assert best[t] == max(totals.values(), default=-math.inf)
            assert back[t] == max(totals, key=lambda e: totals[e], default=-1)


def test_arrays_grow_by_doubling_and_keep_their_content() -> None:
    for room in (kernels._grown, kernels._grown.py_func):
        array = np.arange(4.0)
        assert room(array, 4) is array or (room(array, 4) == array).all()
        larger = room(array, 5)
        assert (len(larger), larger[:4].tolist()) == (8, [0, 1, 2, 3])
        assert len(room(array, 11)) == 11


def test_an_empty_chart_gives_no_fine_probability() -> None:
    rng = np.random.default_rng(0)
    case = random_case(rng, ["x"])
    found = case.prune()
    empty = type(found.chart)(*(column[:0] for column in found.chart))
    empty = empty._replace(edge_start=np.zeros(1, np.int64))
    made = fine.relative(case.members[0], case.coarse).tables
    for fine_pass in (kernels.fine_pass, kernels.fine_pass.py_func):
        total, exponent, item, edge = fine_pass(empty, np.empty(0), np.empty(0), made, 1)
        assert (total, exponent, len(item), len(edge)) == (0.0, 0, 0, 0)
