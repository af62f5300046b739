"""The fine pass: equal to the exact engine on whole charts, near it by a bound on pruned ones."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lpcfg.engine.exact.inside_outside import inside, outside, tree_probability
from lpcfg.engine.pruned import fine, kernels
from lpcfg.engine.pruned.coarse import Pruned, Thresholds
from lpcfg.grammar.tables import Doubles, Emissions, Grammar, Tables
from lpcfg.kinds.constituency.model import Model, coarse_tables
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.kinds.constituency.tree_probability import Missing, tree_chart
from lpcfg.kinds.sentences import Sentence
from tests import small_models
from tests.naive import all_derivations, as_tree
from tests.small_charts import (
    NOTHING_OUT,
    SINGLE,
    Case,
    Exact,
    cases,
    edge_keys,
    exact,
    interpreted,
    item_keys,
    magnitudes,
    roundings,
)
from tests.strategies_grammar import (
    change_basis,
    random_emissions,
    random_grammar,
    random_lpcfg,
    random_tables,
)

# Where magnitudes sum to more than this times |p(x)|, float32 holds too little of p(x) to compare.
WORST_CONDITION = 1e3


def pruned(case: Case, thresholds: Thresholds = NOTHING_OUT) -> Pruned:
    found = case.prune(thresholds)
    assume(isinstance(found, Pruned))
    assert isinstance(found, Pruned)
    return found


@dataclass(frozen=True)
class Signed:
    """One member's p(x), and its signed posteriors of a chart's items and edges."""

    chart: Pruned
    sign: int
    log_probability: float
    item: Doubles
    edge: Doubles


def signed(case: Case, chart: Pruned) -> Signed:
    made = fine.relative(case.members[0], case.coarse).tables
    total, exponent, item, edge = kernels.fine_pass(
        chart.chart, chart.item, chart.edge, made, chart.length
    )
    log = math.log(abs(total)) + exponent * math.log(2.0) if total else -math.inf
    return Signed(chart, int(np.sign(total)), chart.log_probability + log, item, edge)


def posteriors(case: Case, chart: Pruned) -> fine.Posteriors:
    return weighted(case, chart, [1.0] * len(case.members))


def weighted(case: Case, chart: Pruned, weights: list[float]) -> fine.Posteriors:
    given = zip(case.members, weights, strict=True)
    return fine.posteriors(chart, [fine.relative(one, case.coarse, w) for one, w in given])


class Compared:
    """One member beside the exact engine, and how far float32 may be from it.

    To first order a sum errs by its roundings times the sum of its terms' magnitudes:
    |Δp| ≤ ε p⁺ and |Δμ| ≤ ε μ⁺, ε = roundings · 2⁻²⁴, so with κ = p⁺ / |p|
    |Δ(μ/p)| ≤ ε (μ⁺/|p| + |μ/p| κ). Twice that covers the second order at ε κ < 1/4.
    """

    def __init__(self, tables: Tables, emissions: Emissions, chart: Pruned) -> None:
        self.right: Exact = exact(tables, emissions)
        assume(self.right.probability.sign != 0)
        self.bound: Exact = exact(magnitudes(tables), emissions)
        self.condition = math.exp(self.bound.probability.log - self.right.probability.log)
        assume(self.condition < WORST_CONDITION)
        self.epsilon = roundings(tables, chart.chart) * SINGLE
        assert self.epsilon * self.condition < 0.25

    def check(self, found: Signed) -> None:
        assert found.sign == self.right.probability.sign
        error = found.log_probability - self.right.probability.log
        assert abs(error) <= 2 * self.epsilon * self.condition
        chart = found.chart.chart
        self._check(item_keys(chart), found.item, self.right.items, self.bound.items)
        self._check(edge_keys(chart), found.edge, self.right.edges, self.bound.edges)

    def _check(self, keys, mine, right, bound) -> None:  # type: ignore[no-untyped-def]
        assert right.keys() <= set(keys)
        true = np.array([right.get(key, 0.0) for key in keys])
        magnitude = np.array([bound.get(key, 0.0) for key in keys])
        allowed = 2 * self.epsilon * self.condition * (magnitude + np.abs(true))
        assert (np.abs(mine - true) <= allowed).all()


@given(cases())
def test_the_fine_pass_on_a_whole_chart_equals_the_exact_engine(case: Case) -> None:
    chart = pruned(case)
    compared = Compared(case.members[0], case.emissions, chart)
    found = signed(case, chart)
    compared.check(found)
    alone = posteriors(case, chart)
    assert (alone.sign, alone.log_probability) == (found.sign, found.log_probability)
    assert alone.negative == (found.sign < 0)
    np.testing.assert_array_equal(alone.ratio, found.item)


@given(cases(max_words=3))
def test_the_interpreted_fine_pass_equals_the_exact_engine(case: Case) -> None:
    with interpreted():
        chart = pruned(case)
        Compared(case.members[0], case.emissions, chart).check(signed(case, chart))


@given(cases(members=2))
def test_a_weight_of_three_counts_as_three_members(case: Case) -> None:
    chart = pruned(case)
    found = weighted(case, chart, [3.0, 1.0])
    one, other = case.members
    thrice = posteriors(replace(case, members=(one, one, one, other)), chart)
    alone = [posteriors(replace(case, members=(member,)), chart) for member in case.members]
    # float64 sums of four numbers, relative to the largest of them
    np.testing.assert_allclose(found.item, thrice.item, atol=1e-12)
    np.testing.assert_allclose(found.edge, thrice.edge, atol=1e-12)
    largest = max(1.0, *(float(np.abs(member.ratio).max()) for member in alone))
    np.testing.assert_allclose(found.ratio, thrice.ratio, atol=1e-12 * largest)
    assert found.sign == thrice.sign


@given(cases(members=3))
def test_votes_are_magnitudes_of_at_most_one(case: Case) -> None:
    chart = pruned(case)
    alone = [signed(replace(case, members=(member,)), chart) for member in case.members]
    assume(all(one.sign for one in alone))
    together = posteriors(case, chart)
    largest = [max(1.0, float(np.abs(one.item).max())) for one in alone]
    ratio = sum(one.item for one in alone) / 3
    item = sum(np.abs(one.item) / most for one, most in zip(alone, largest, strict=True)) / 3
    edge = sum(np.abs(one.edge) / most for one, most in zip(alone, largest, strict=True)) / 3
    # float64 sums of three numbers, relative to the largest of them
    np.testing.assert_allclose(together.ratio, ratio, atol=1e-12 * max(largest))
    np.testing.assert_allclose(together.item, item, atol=1e-12)
    np.testing.assert_allclose(together.edge, edge, atol=1e-12)
    assert together.item.max() <= 1.0
    values = [one.sign * math.exp(one.log_probability) for one in alone]
    assert together.sign == np.sign(sum(values))
    mean = sum(values) / 3
    scale = sum(abs(value) for value in values)
    assert together.sign * math.exp(together.log_probability) == pytest.approx(
        mean, abs=1e-12 * scale
    )
    assert together.negative == sum(one.sign < 0 for one in alone)


@given(cases())
def test_a_chart_whose_sign_flips_as_a_whole_keeps_its_posteriors(case: Case) -> None:
    chart = pruned(case)
    found = posteriors(case, chart)
    assume(exact(case.members[0], case.emissions).probability.sign != 0)
    flipped = replace(case.members[0], c_one=-case.members[0].c_one)
    other = posteriors(replace(case, members=(flipped,)), chart)
    assert other.sign == -found.sign
    assert other.log_probability == found.log_probability
    for name in ("ratio", "item", "edge"):
        np.testing.assert_array_equal(getattr(other, name), getattr(found, name))


@given(cases())
def test_without_any_member_probability_the_coarse_posteriors_remain(case: Case) -> None:
    chart = pruned(case)
    nothing = replace(case.members[0], c_one=np.zeros_like(case.members[0].c_one))
    found = posteriors(replace(case, members=(nothing,)), chart)
    assert (found.sign, found.log_probability) == (1, chart.log_probability)
    assert found.item is found.ratio is chart.item
    assert found.edge is chart.edge
    assert found.negative == 0


@given(cases(), st.floats(1e-3, 0.2), st.floats(1e-3, 0.2))
def test_pruning_changes_posteriors_by_at_most_the_removed_mass(
    case: Case, least_item: float, least_edge: float
) -> None:
    """A derivation is lost only with an item or edge of its own that is left out.

    So p and every μ change by at most L = Σ μ⁺ over what is left out, and every posterior by
    at most (L + |μ/p| L) / (|p| - L).
    """
    chart = pruned(case, Thresholds(0.0, least_item, least_edge))
    compared = Compared(case.members[0], case.emissions, chart)
    items, edges = set(item_keys(chart.chart)), set(edge_keys(chart.chart))
    lost = sum(share for key, share in compared.bound.items.items() if key not in items)
    lost += sum(share for key, share in compared.bound.edges.items() if key not in edges)
    lost *= compared.condition  # in units of |p(x)|, as posteriors are
    slack = 4 * compared.epsilon * compared.condition**2
    assume(lost + slack < 0.5)
    found = signed(case, chart)
    assert found.sign == compared.right.probability.sign
    ratio = math.exp(found.log_probability - compared.right.probability.log)
    assert abs(ratio - 1) <= lost + slack
    for keys, mine, right in (
        (item_keys(chart.chart), found.item, compared.right.items),
        (edge_keys(chart.chart), found.edge, compared.right.edges),
    ):
        true = np.array([right.get(key, 0.0) for key in keys])
        assert (np.abs(mine - true) <= (1 + np.abs(true)) * (lost + slack) / (1 - lost)).all()


@given(cases(max_words=4))
def test_a_trees_probability_equals_the_exact_engines(case: Case) -> None:
    (member,), emissions = case.members, case.emissions
    words = ["w"] * emissions.length
    bound = magnitudes(member)
    compared = 0
    for derivation, _ in all_derivations(member, emissions):
        tree = as_tree(member, words, derivation)
        chart = tree_chart(case.grammar, tree, emissions)
        assert not isinstance(chart, Missing)
        if case.coarse.c_one[derivation[0]] == 0:
            continue
        sign, log = fine.tree_ratio(chart, [fine.relative(member, case.coarse)], emissions.length)
        right = tree_probability(member, tree, emissions).probability
        largest = tree_probability(bound, tree, emissions).probability
        if right.sign == 0:
            continue
        condition = math.exp(largest.log - right.log)
        allowed = 2 * roundings(member, chart) * SINGLE * condition
        if allowed > 0.25:
            continue
        whole = log + coarse_log(case, chart)
        assert sign == right.sign
        assert abs(whole - right.log) <= allowed
        compared += 1
    assume(compared)


def coarse_log(case: Case, chart: kernels.Chart) -> float:
    rules = np.log(case.coarse.parent[chart.rule]).sum()
    words = np.log(chart.inside[chart.entry >= 0]).sum()
    return float(rules + words + np.log(case.coarse.c_one[chart.symbol[-1]]))


def test_a_trees_probability_is_the_mean_over_members() -> None:
    rng = np.random.default_rng(5)
    grammar = random_grammar(rng)
    emissions = random_emissions(rng, grammar, ["x", "x"])
    coarse = coarse_tables(grammar, np.ones(grammar.n_rules), np.ones(grammar.n_symbols))
    members = [random_tables(rng, grammar, 2, signed=False) for _ in range(2)]
    (derivation, _), *_ = all_derivations(coarse, emissions)
    chart = tree_chart(grammar, as_tree(coarse, ["x", "x"], derivation), emissions)
    assert not isinstance(chart, Missing)
    made = [fine.relative(member, coarse) for member in members]
    values = [math.exp(fine.tree_ratio(chart, [one], 2)[1]) for one in made]
    assert fine.tree_ratio(chart, made, 2) == (1, pytest.approx(math.log(sum(values) / 2)))
    assert fine.tree_ratio(chart, [], 2) == (1, 0.0)
    heavy = [fine.relative(members[0], coarse, 3.0), made[1]]
    expected = math.log((3 * values[0] + values[1]) / 4)
    assert fine.tree_ratio(chart, heavy, 2) == (1, pytest.approx(expected))


@pytest.mark.parametrize("n", [200, 300])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_long_sentences_neither_underflow_nor_overflow(n: int, scale: float) -> None:
    """Members whose rules are `scale` times the coarse ones: p(x) is scale^(n-1) times theirs.

    All numbers are positive, so float32 errs by its roundings alone; a chart of n words has chains
    of n nodes, and at n = 300 the bound is 300 · 200 · 2⁻²⁴ = 0.4 %.
    """
    rng = np.random.default_rng(n)
    grammar = random_grammar(rng, 1, 1, 2)
    true = random_lpcfg(rng, grammar, [3, 2], concentration=2.0)
    member = replace(true, parent=true.parent * scale, left=true.left)
    q = np.array([true.dense(r).sum(axis=(1, 2)).mean() for r in range(grammar.n_rules)])
    coarse = coarse_tables(grammar, q, np.array([1.0, 0.0]))
    member = replace(member, c_one=member.c_one * np.repeat([1.0, 0.0], member.states))
    emissions = random_emissions(rng, grammar, ["x"] * n)
    case = Case(coarse, (member,), emissions)
    chart = case.prune()
    assert isinstance(chart, Pruned)
    found = signed(case, chart)
    right = inside(member, emissions).probability
    assert found.sign == right.sign == 1
    allowed = (2 * n - 1) * 100 * SINGLE
    assert found.log_probability == pytest.approx(right.log, abs=allowed)
    assert np.isfinite(found.item).all()
    assert np.isfinite(found.edge).all()
    at_word = np.zeros(n)
    one = chart.chart.entry >= 0
    np.add.at(at_word, chart.chart.start[one], found.item[one])
    np.testing.assert_allclose(at_word, 1.0, atol=2 * allowed)


def against_its_coarse_grammar(n: int) -> Case:
    """Build a signed member whose best tree has a share of 2⁻ⁿ in its coarse grammar, among 2ⁿ
    trees.

    A and B span the same words in the same ways. The coarse rules of B are twice as probable as
    those of A, the member's four times less, so a chain over n words has shares of 2⁻ⁿ and 2ⁿ.
    """
    rng = np.random.default_rng(n)
    chains = [[a, *sides] for a in (1, 2) for sides in ([a, 3], [3, a], [3, 3])]
    grammar = Grammar(
        ("S", "A", "B", "X"), 3, np.array([[0, 1, 3], [0, 2, 3], *chains]), ("x",), [[3, 0]]
    )
    true = random_lpcfg(rng, grammar, [1, 3, 3, 2], concentration=2.0)
    tensors = [true.dense(r) for r in range(grammar.n_rules)]
    q = np.array([tensor.sum(axis=(1, 2)).mean() for tensor in tensors])
    parent = grammar.rules[:, 0]
    coarse = coarse_tables(grammar, q * np.where(parent == 1, 0.5, 1.0), np.array([1.0, 0, 0, 0]))
    preferred = [
        tensor * (0.25 if a == 2 else 0.5) for tensor, a in zip(tensors, parent, strict=True)
    ]
    words, roots = [true.terminal_vector(0)], [true.root_vector(a) * (a == 0) for a in range(4)]
    member = Tables.from_dense(grammar, true.states, preferred, words, roots)
    turns = [np.linalg.qr(rng.normal(size=(m, m)))[0] for m in true.states]
    member = change_basis(member, turns)
    return Case(coarse, (member,), random_emissions(rng, grammar, ["x"] * n))


@pytest.mark.parametrize("n", [40, 300])
def test_a_member_may_prefer_what_its_coarse_grammar_finds_impossible(n: int) -> None:
    """Shares of items and edges go down to 2⁻³⁰⁰ = 5e-91, far below the range of float32.

    Turning all states keeps the lengths of vectors, so a node costs no more than the roundings of
    its sums, 100 of them, and chains have n nodes: 300 · 2 · 100 · 2⁻²⁴ = 0.4 %.
    """
    case = against_its_coarse_grammar(n)
    chart = case.prune()
    assert isinstance(chart, Pruned)
    assert 0 < chart.item.min() < 2.0 ** -(n - 10)
    found = signed(case, chart)
    assert (case.members[0].parent < 0).any()
    right = outside(inside(case.members[0], case.emissions))
    allowed = 2 * n * 100 * SINGLE
    assert found.sign == right.probability.sign
    assert found.log_probability == pytest.approx(right.probability.log, abs=allowed)
    spans = [np.empty((0, 0)), *(right.spans(width) for width in range(1, n + 1))]
    items = [spans[end - start][start, a] for a, start, end in item_keys(chart.chart)]
    np.testing.assert_allclose(found.item, items, rtol=0, atol=2 * allowed)
    rules = {
        (width, split): right.rules(width, split)
        for width in range(2, n + 1)
        for split in (1, width - 1)  # all rules have a word on one side
    }
    edges = [rules[k - i, j - i][i, r] for r, i, j, k in edge_keys(chart.chart)]
    np.testing.assert_allclose(found.edge, edges, rtol=0, atol=2 * allowed)
    assert max(spans[n - 1][:, 1]) > 0.4  # A, which the coarse grammar finds impossible


def test_clipped_mass_is_the_mass_outside_zero_and_one() -> None:
    rng = np.random.default_rng(0)
    grammar = random_grammar(rng)
    case = Case(
        coarse_tables(grammar, np.ones(grammar.n_rules), np.ones(grammar.n_symbols)),
        (),
        random_emissions(rng, grammar, ["x"]),
    )
    ratio = np.array([1.25, -0.5, 0.75])
    chart = case.prune()
    assert isinstance(chart, Pruned)
    made = fine.Posteriors(chart, np.abs(ratio), ratio, ratio, 1, 0.0, 0)
    assert made.clipped_mass == 0.75


# Real grammars ----------------------------------------------------------------------------------


MEASURED = 2e-4
"""Five times the largest error of log p(x) measured on 24 sentences of gum/dev, 4e-5.

The bound of `Compared` is void for these grammars: terms of one tensor cancel, at every node.
"""


def beside_exact(
    model: Model, words: Sequence[str], thresholds: Thresholds
) -> tuple[Signed, Exact]:
    """Compute a sentence's posteriors, by the fine pass and by the exact engine."""
    parser = Parser(model, thresholds=thresholds)
    emissions = parser._emissions(Sentence(tuple(words)))
    chart = parser._own.coarse.prune(emissions, thresholds)
    assert isinstance(chart, Pruned)
    case = Case(model.coarse, model.members, emissions)
    return signed(case, chart), exact(model.members[0], emissions)


def check_whole_charts(model: Model, sentences: Sequence[Sequence[str]]) -> None:
    for words in sentences:
        found, right = beside_exact(model, words, NOTHING_OUT)
        chart = found.chart.chart
        assert found.sign == right.probability.sign
        assert found.log_probability == pytest.approx(right.probability.log, abs=MEASURED)
        allowed = MEASURED * max(1.0, float(np.abs(found.item).max()))
        items = np.array([right.items.get(key, 0.0) for key in item_keys(chart)])
        edges = np.array([right.edges.get(key, 0.0) for key in edge_keys(chart)])
        assert np.abs(found.item - items).max() <= allowed
        assert np.abs(found.edge - edges).max(initial=0.0) <= allowed


PRUNED = 0.2
"""The default thresholds take no more than this of p(x) from a sentence of up to ten words: .17
from the worst of these. Of 40 sentences of gum/dev, four lose more than .15 under `en`."""


def check_pruned_charts(model: Model, sentences: Sequence[Sequence[str]]) -> None:
    """Check that pruning only takes away what its items would add, where no number is negative."""
    for words in sentences:
        found, right = beside_exact(model, words, Thresholds())
        chart = found.chart.chart
        items, edges = set(item_keys(chart)), set(edge_keys(chart))
        lost = sum(share for key, share in right.items.items() if key not in items)
        lost += sum(share for key, share in right.edges.items() if key not in edges)
        ratio = math.exp(found.log_probability - right.probability.log)
        assert 1 - lost - MEASURED <= ratio <= 1 + MEASURED
        assert ratio > 1 - PRUNED
        true = np.array([right.items[key] for key in item_keys(chart)])
        assert np.abs(found.item - true).max() <= PRUNED / (1 - PRUNED)


@pytest.fixture(scope="module", params=["spectral", "clustering"])
def real_model(
    request: pytest.FixtureRequest, treebanks: Path, tmp_path_factory: pytest.TempPathFactory
) -> Model:
    folder = tmp_path_factory.mktemp("gum")
    return small_models.from_real_trees(treebanks, request.param, folder)


def test_on_real_grammars_the_fine_pass_equals_the_exact_engine(
    real_model: Model, treebanks: Path
) -> None:
    check_whole_charts(real_model, small_models.real_sentences(treebanks, 3, 8, 10))


@pytest.mark.parametrize("real_model", ["clustering"], indirect=True)
def test_on_real_grammars_pruning_removes_little_probability(
    real_model: Model, treebanks: Path
) -> None:
    check_pruned_charts(real_model, small_models.real_sentences(treebanks, 5, 10, 10))


def test_on_the_example_grammar_the_fine_pass_equals_the_exact_engine() -> None:
    sentences = [tree.tokens() for tree in small_models.trees()[::6]]
    check_whole_charts(small_models.spectral(), sentences)
