"""The coarse pass: with nothing left out, a plain PCFG's inside and outside; what pruning keeps."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lpcfg.base.cancel import Stop
from lpcfg.base.errors import Stopped
from lpcfg.engine.pruned import coarse as coarse_pass
from lpcfg.engine.pruned import kernels
from lpcfg.engine.pruned.coarse import TRIES, Limits, Pruned, Thresholds, Unfinished
from lpcfg.grammar.tables import Grammar
from lpcfg.kinds.constituency.model import coarse_tables
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.kinds.sentences import Sentence
from tests.naive import Pcfg
from tests.small_charts import (
    NOTHING_OUT,
    Case,
    Exact,
    cases,
    coarse_of,
    edge_keys,
    exact,
    interpreted,
    item_keys,
    random_case,
)
from tests.strategies_grammar import literal_emissions, random_emissions, random_grammar

# Charts of up to five words: under 1,000 float64 roundings in any one number.
ROUNDING = 1e-12


def pruned(
    case: Case, thresholds: Thresholds = NOTHING_OUT, limits: Limits | None = None
) -> Pruned:
    found = case.prune(thresholds, limits)
    assume(isinstance(found, Pruned))
    assert isinstance(found, Pruned)
    return found


def oracle(case: Case) -> Exact:
    return exact(case.coarse, case.emissions)


def plain(case: Case, words: Sequence[str]) -> Pcfg:
    """Write the coarse grammar as dictionaries over one word a place, with the weights of the
    places.
    """
    grammar, emissions = case.grammar, case.emissions
    names = grammar.symbols
    rules = {
        (names[a], names[b], names[c]): float(q)
        for (a, b, c), q in zip(grammar.rules.tolist(), case.coarse.parent, strict=True)
    }
    over = {
        (names[emissions.symbol[t]], words[w]): float(emissions.weight[t])
        for w in range(emissions.length)
        for t in range(emissions.start[w], emissions.start[w + 1])
    }
    return Pcfg(rules, over, dict(zip(names, case.coarse.c_one.tolist(), strict=True)))


@given(cases(members=0))
def test_without_pruning_the_coarse_pass_is_the_plain_pcfg(case: Case) -> None:
    places = [str(w) for w in range(case.emissions.length)]
    probability = plain(case, places).inside(places)
    found = case.prune()
    assert isinstance(found, Pruned) == (probability > 0)
    if isinstance(found, Pruned):
        assert found.log_probability == pytest.approx(np.log(probability), abs=ROUNDING)


@given(cases(members=0))
def test_without_pruning_every_posterior_equals_the_exact_engines(case: Case) -> None:
    found, right = pruned(case), oracle(case)
    assert found.log_probability == pytest.approx(right.probability.log, abs=ROUNDING)
    items = dict(zip(item_keys(found.chart), found.item.tolist(), strict=True))
    edges = dict(zip(edge_keys(found.chart), found.edge.tolist(), strict=True))
    assert len(items) == len(found.item)
    assert len(edges) == len(found.edge)
    assert right.items.keys() <= items.keys()
    assert right.edges.keys() <= edges.keys()
    for mine, true in ((items, right.items), (edges, right.edges)):
        assert mine == pytest.approx({key: true.get(key, 0.0) for key in mine}, rel=ROUNDING)


@given(cases(members=0), st.floats(1e-3, 0.3), st.floats(1e-3, 0.3))
def test_only_items_and_edges_above_the_thresholds_stay(
    case: Case, least_item: float, least_edge: float
) -> None:
    whole, right = pruned(case), oracle(case)
    found = pruned(case, Thresholds(0.0, least_item, least_edge))
    kept = kept_by_definition(whole, least_item, least_edge)
    assert set(item_keys(found.chart)) == kept[0]
    assert set(edge_keys(found.chart)) == kept[1]
    assert found.item.tolist() == pytest.approx(
        [right.items[key] for key in item_keys(found.chart)], rel=ROUNDING
    )


def kept_by_definition(whole: Pruned, least_item: float, least_edge: float) -> tuple[set, set]:  # type: ignore[type-arg]
    """List the items and edges above the thresholds that derive words and are reached from a
    root.
    """
    chart = whole.chart
    names, edge_names = item_keys(chart), edge_keys(chart)
    items = {t for t in range(len(names)) if whole.item[t] >= least_item}
    edges = {e for e in range(len(edge_names)) if whole.edge[e] >= least_edge}
    above = np.repeat(np.arange(len(names)), np.diff(chart.edge_start)).tolist()
    while True:
        edges_now = {e for e in edges if {above[e], chart.left[e], chart.right[e]} <= items}
        below = {int(child) for e in edges_now for child in (chart.left[e], chart.right[e])}
        made = {above[e] for e in edges_now}
        items_now = {
            t
            for t in items
            if (chart.entry[t] >= 0 or t in made)
            and (t in below or names[t][1:] == (0, whole.length))
        }
        if (items_now, edges_now) == (items, edges):
            return {names[t] for t in items}, {edge_names[e] for e in edges}
        items, edges = items_now, edges_now


@given(cases(members=0), st.floats(-1, 12))
def test_estimates_fall_until_there_is_an_analysis(case: Case, size: float) -> None:
    assume(isinstance(case.prune(), Pruned))
    found = case.prune(Thresholds(10**size, 0.0, 0.0))
    coarse = coarse_of(case.coarse)
    widths = [Thresholds(10**size, 0.0, 0.0).wider(attempt) for attempt in range(TRIES)]
    assert [width.merit / 10**size for width in widths] == pytest.approx([1.0, 0.01, 1e-4])
    tries = [coarse.prune(case.emissions, width, tries=1) for width in widths]
    first = next((one for one in tries if isinstance(one, Pruned)), tries[-1])
    assert type(found) is type(first)
    assert item_keys(found.chart) == item_keys(first.chart)


def test_without_an_analysis_the_partial_chart_is_returned() -> None:
    grammar = Grammar(
        ("S", "A", "B"), 1, np.array([[0, 1, 2]]), ("x", "y"), np.array([[1, 0], [2, 1]])
    )
    tables = coarse_tables(grammar, np.ones(1), np.array([1.0, 0.0, 0.0]))
    found = coarse_of(tables).prune(literal_emissions(grammar, ["y", "x", "y"]), NOTHING_OUT)
    assert isinstance(found, Unfinished)
    assert found.length == 3
    assert sorted(item_keys(found.chart)) == [(0, 1, 3), (1, 1, 2), (2, 0, 1), (2, 2, 3)]
    assert ((found.merit > 0) & (found.merit <= 1)).all()


def test_a_grammar_without_rules_has_analyses_of_single_words() -> None:
    grammar = Grammar(("A",), 0, np.empty((0, 3)), ("x",), np.array([[0, 0]]))
    coarse = coarse_of(coarse_tables(grammar, np.empty(0), np.ones(1)))
    alone = coarse.prune(literal_emissions(grammar, ["x"]), NOTHING_OUT)
    assert isinstance(alone, Pruned)
    assert alone.log_probability == 0.0
    assert isinstance(coarse.prune(literal_emissions(grammar, ["x", "x"]), NOTHING_OUT), Unfinished)


@given(cases(members=0), st.integers(0, 2**32 - 1))
def test_limits_remove_only_forbidden_items(case: Case, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, symbols = case.emissions.length, case.grammar.n_symbols
    limits = Limits(
        cell=rng.choice(np.array([0, 0, 0, 1, 2, 3], np.int32), (n + 1, n + 1)),
        allowed=rng.random((2, symbols)) < 0.7,
    )
    whole, found = pruned(case), case.prune(NOTHING_OUT, limits)

    def is_open(key: tuple[int, ...]) -> bool:
        limit = limits.cell[key[1], key[2]]
        return bool(limit == 0 or (limit >= 2 and limits.allowed[limit - 2, key[0]]))

    chart = whole.chart
    names, edge_names = item_keys(chart), edge_keys(chart)
    built: set[int] = set()
    for t, key in enumerate(names):  # an item stands after those it is made of
        edges = range(chart.edge_start[t], chart.edge_start[t + 1])
        made = any({int(chart.left[e]), int(chart.right[e])} <= built for e in edges)
        if is_open(key) and (made or chart.entry[t] >= 0):
            built.add(t)
    roots = [t for t in built if names[t][1:] == (0, n) and case.coarse.c_one[names[t][0]] > 0]
    assert isinstance(found, Pruned) == bool(roots)
    if isinstance(found, Pruned):
        assert all(map(is_open, item_keys(found.chart)))
        assert {names[t] for t in roots} <= set(item_keys(found.chart))
        assert set(edge_keys(found.chart)) <= set(edge_names)


@given(cases(members=0))
def test_log_rules_are_the_logs_of_rule_probabilities(case: Case) -> None:
    found = pruned(case)
    logs = coarse_of(case.coarse).log_rules(found.chart)
    np.testing.assert_allclose(logs, np.log(case.coarse.parent[found.chart.rule]), atol=ROUNDING)


@pytest.mark.parametrize("n", [200, 300])
def test_long_sentences_neither_underflow_nor_overflow(n: int) -> None:
    """Word weights of 1e-8 put p(x) some 2,000 powers of ten below float64's range."""
    rng = np.random.default_rng(n)
    grammar = random_grammar(rng, 1, 1, 2)
    case = Case(
        coarse_tables(grammar, np.array([0.4, 0.6]), np.array([1.0, 0.0])),
        (),
        random_emissions(rng, grammar, ["x"] * n),
    )
    small = case.emissions.weight * 1e-8
    emissions = type(case.emissions)(
        case.emissions.start, case.emissions.symbol, case.emissions.entry, small
    )
    found = coarse_of(case.coarse).prune(emissions, Thresholds(merit=0.0))
    assert isinstance(found, Pruned)
    words = np.log(small).sum()
    assert np.isfinite(found.log_probability)
    assert found.log_probability < words
    assert np.isfinite(found.item).all()
    at_word = np.zeros(n)
    one = found.chart.entry >= 0
    np.add.at(at_word, found.chart.start[one], found.item[one])
    # every word is below one preterminal; items under 5e-5 are not there to be counted
    assert (np.abs(at_word - 1) < 1e-6).all()


def test_rules_are_grouped_by_their_children() -> None:
    rng = np.random.default_rng(3)
    grammar = random_grammar(rng, 2, 2, 9)
    tables = coarse_tables(grammar, rng.random(grammar.n_rules), np.ones(grammar.n_symbols))
    rules: kernels.Rules = coarse_of(tables)._rules
    seen = {}
    for b in range(grammar.n_symbols):
        for c in range(grammar.n_symbols):
            p = rules.pair[b, c]
            rows = range(rules.pair_start[p], rules.pair_start[p + 1]) if p >= 0 else range(0)
            for t in rows:
                seen[rules.parent[t], b, c] = (int(rules.rule[t]), float(rules.q[t]))
            if p >= 0:
                assert rules.best[p] == max(rules.q[t] for t in rows)
    assert seen == {
        (a, b, c): (r, float(tables.parent[r]))
        for r, (a, b, c) in enumerate(grammar.rules.tolist())
    }


class Unwanted(Stop):
    """Work that is cancelled right after it was last asked for, and from another thread."""

    def check(self) -> None:
        super().check()
        self.cancel()


@pytest.mark.parametrize("compiled", [True, False])
def test_building_a_chart_stops_when_it_is_cancelled(compiled: bool) -> None:
    case = random_case(np.random.default_rng(0), ["x", "x", "x"])
    built: list[kernels.Chart] = []
    coarse = coarse_of(case.coarse)
    with (
        nullcontext() if compiled else interpreted(),
        pytest.MonkeyPatch.context() as patch,
    ):
        build = kernels.build_chart

        def watched(*asked: object) -> kernels.Chart:
            built.append(build(*asked))
            return built[-1]

        patch.setattr(kernels, "build_chart", watched)
        assert isinstance(coarse.prune(case.emissions, NOTHING_OUT), Pruned)
        with pytest.raises(Stopped, match="its caller stopped waiting"):
            coarse.prune(case.emissions, NOTHING_OUT, stop=Unwanted())
    assert [len(chart.symbol) > 0 for chart in built] == [True, False]


def test_items_whose_products_might_overflow_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    case = random_case(np.random.default_rng(0), ["x", "x", "x"])
    assert isinstance(coarse_of(case.coarse).prune(case.emissions, NOTHING_OUT), Pruned)

    def with_large_weights(rules: Any, words: Any, *rest: Any) -> kernels.Chart:
        return build(rules, words._replace(weight=words.weight * 1e100), *rest)

    build = kernels.build_chart
    monkeypatch.setattr(kernels, "build_chart", with_large_weights)
    found = coarse_of(case.coarse).prune(case.emissions, NOTHING_OUT)
    assert isinstance(found, Unfinished)
    assert set(found.chart.end - found.chart.start) == {1}


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[kernels.Chart]:
    """Collect every chart that is built."""
    charts: list[kernels.Chart] = []

    def watched(*asked: Any) -> kernels.Chart:
        charts.append(build(*asked))
        return charts[-1]

    build = kernels.build_chart
    monkeypatch.setattr(kernels, "build_chart", watched)
    return charts


EN = Path(__file__).resolve().parents[2] / "model_store"


def test_items_side_by_side_do_not_exclude_what_joins_them(built: list[kernels.Chart]) -> None:
    """Check a sentence that had no analysis in its first chart when `_SEQUENCE_FACTOR` was 1."""
    bridge = """The old bridge , which the town had closed in 1998 after a flood , was repaired by
    volunteers , painted green , and opened again last spring by the mayor , her two sons , and a
    band that played until it rained ."""
    choice = """He said that he thought that they knew what the people who lived there wanted , not
    that it mattered , and that whoever came first , man or woman , young or old , rich or poor ,
    should choose ."""
    (analysis,) = Parser.load("en", EN).parse([Sentence((*bridge.split(), *choice.split()))])
    assert analysis.status == "parsed"
    assert len(built) == 1


def test_charts_of_a_long_list_have_few_items_at_a_word(built: list[kernels.Chart]) -> None:
    words = ["Species", "were", ":"]
    for k in range(45):
        words += ["M.", ["felis", "lupi", "ursi"][k % 3], ",", str(43000 + 7 * k), ";"]
    (analysis,) = Parser.load("en", EN).parse([Sentence(tuple(words))])
    assert analysis.tree is not None
    # Above 200 items the threshold rises, to 256 times at 400 and 256⁴ times at 600. There were
    # 13,000 items at a word when the best sequence of items did not count.
    assert max(int(np.bincount(chart.end).max()) for chart in built) < 600


def test_charts_of_words_in_disorder_have_few_items_at_a_word(
    built: list[kernels.Chart],
) -> None:
    text = """as that to of walking before under light which runs her what over like fast cut back
    than open who close left still round set off plan rest about so down when drink both"""
    words = text.split()
    order = np.random.default_rng(0).integers(len(words), size=150).tolist()
    Parser.load("en", EN).parse([Sentence(tuple(words[x] for x in order))])
    # 431 today; where a crowd raises no threshold, 1,000 items end at one word.
    assert max(int(np.bincount(chart.end).max()) for chart in built) < 600


def test_no_wider_chart_is_built_after_a_chart_beyond_the_limit(
    built: list[kernels.Chart], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = random_case(np.random.default_rng(0), ["x", "x", "x"])
    without_roots = replace(case.coarse, c_one=np.zeros_like(case.coarse.c_one))
    found = coarse_of(without_roots).prune(case.emissions, NOTHING_OUT)
    assert isinstance(found, Unfinished)
    assert not found.exceeds_widening_limit
    assert len(built) == TRIES
    monkeypatch.setattr(coarse_pass, "WIDENING_LIMIT", len(built[0].rule) - 1)
    found = coarse_of(without_roots).prune(case.emissions, NOTHING_OUT)
    assert isinstance(found, Unfinished)
    assert found.exceeds_widening_limit
    assert len(built) == TRIES + 1
