"""Decoding beside brute force: every derivation of a chart, listed and scored one by one."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lpcfg.engine.objectives import OBJECTIVES
from lpcfg.engine.pruned import decode, fine
from lpcfg.engine.pruned.coarse import Limits, Pruned, Unfinished
from lpcfg.engine.pruned.fine import Posteriors
from lpcfg.grammar.tables import Grammar
from lpcfg.kinds.constituency.model import coarse_tables
from tests.small_charts import NOTHING_OUT, Case, cases, coarse_of, interpreted
from tests.strategies_grammar import literal_emissions

# Sums of fewer than 20 float64 numbers, of which logs may be as large as log 1e-300 = -691.
ROUNDING = 1e-10
MOST = 400  # derivations of a chart that brute force lists


@st.composite
def charts(draw: st.DrawFn, max_words: int = 5) -> Posteriors:
    """Draw signed posteriors of all items and edges of a small grammar over a short sentence."""
    case: Case = draw(cases(max_words=max_words))
    found = case.prune()
    assume(isinstance(found, Pruned))
    assert isinstance(found, Pruned)
    return fine.posteriors(found, [fine.relative(case.members[0], case.coarse)])


def roots(posteriors: Posteriors) -> list[int]:
    chart = posteriors.pruned.chart
    whole = (chart.start == 0) & (chart.end == posteriors.pruned.length)
    return np.flatnonzero(whole).tolist()


def below(posteriors: Posteriors, t: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """List every derivation under item t: its items in pre-order, and its edges."""
    chart = posteriors.pruned.chart
    if chart.entry[t] >= 0:
        return [((t,), ())]
    found = []
    for e in range(chart.edge_start[t], chart.edge_start[t + 1]):
        lefts, rights = below(posteriors, chart.left[e]), below(posteriors, chart.right[e])
        for (items, edges), (more_items, more_edges) in itertools.product(lefts, rights):
            found.append(((t, *items, *more_items), (e, *edges, *more_edges)))
        assume(len(found) <= MOST)
    return found


def score(
    posteriors: Posteriors, objective: str, items: tuple[int, ...], edges: tuple[int, ...]
) -> float:
    """Compute the objectives as the module's table states them."""
    chart = posteriors.pruned.chart
    item, edge = np.abs(posteriors.item).tolist(), np.abs(posteriors.edge).tolist()
    words = [t for t in items if chart.entry[t] >= 0]
    if objective == "max-rule":
        return math.fsum([*(edge[e] for e in edges), *(item[t] for t in words)])
    if objective == "max-marginal":
        return math.fsum(item[t] for t in items)
    if objective == "max-spans":
        gain = gains(posteriors).tolist()
        rules = [*(edge[e] for e in edges), *(item[t] for t in words)]
        return math.fsum([*(gain[t] for t in items), *(rule / 10 for rule in rules)])
    above = [t for t in items if chart.entry[t] < 0]
    logs = [log(item[items[0]])]
    logs += [log(edge[e]) - log(item[t]) for e, t in zip(edges, above, strict=True)]
    return math.fsum(logs)


def gains(posteriors: Posteriors) -> np.ndarray:
    """Draw what each item adds under max-spans, the same at every call."""
    return np.random.default_rng(0).uniform(-0.5, 0.5, len(posteriors.item))


def log(number: float) -> float:
    return math.log(max(number, 1e-300))


def ranked(posteriors: Posteriors, objective: str) -> list[tuple[float, tuple[int, ...]]]:
    """List all derivations of the whole sentence with their scores, best first."""
    found = [
        (score(posteriors, objective, items, edges), items)
        for root in roots(posteriors)
        for items, edges in below(posteriors, root)
    ]
    assume(len(found) <= MOST)
    return sorted(found, key=lambda pair: -pair[0])


@pytest.mark.parametrize("objective", OBJECTIVES)
@given(charts())
def test_k_best_lists_all_derivations_in_the_order_of_their_scores(
    objective: str, posteriors: Posteriors
) -> None:
    right = ranked(posteriors, objective)
    found = list(decode.k_best(posteriors, objective, gains(posteriors)))
    assert [one.score for one in found] == pytest.approx([s for s, _ in right], abs=ROUNDING)
    by_items = {items: value for value, items in right}
    assert len(found) == len(by_items)
    for one in found:
        between = decode.edges_between(posteriors.pruned.chart, one.items)
        assert one.edges.tolist() == between.tolist()
        assert one.score == pytest.approx(by_items.pop(tuple(one.items.tolist())), abs=ROUNDING)
    assert not by_items
    scores = [one.score for one in found]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("objective", OBJECTIVES)
@given(charts())
def test_the_best_derivation_has_the_highest_score(objective: str, posteriors: Posteriors) -> None:
    found = decode.best(posteriors, objective, gains(posteriors))
    right = ranked(posteriors, objective)
    assert found.score == pytest.approx(right[0][0], abs=ROUNDING)
    by_items = {items: value for value, items in right}
    assert by_items[tuple(found.items.tolist())] == pytest.approx(found.score, abs=ROUNDING)
    between = decode.edges_between(posteriors.pruned.chart, found.items)
    assert found.edges.tolist() == between.tolist()
    assert next(decode.k_best(posteriors, objective, gains(posteriors))).score == found.score


@pytest.mark.parametrize("objective", OBJECTIVES)
@given(charts(max_words=4))
def test_k_best_computes_only_what_is_requested(objective: str, posteriors: Posteriors) -> None:
    whole = list(decode.k_best(posteriors, objective, gains(posteriors)))
    for k in range(1, min(len(whole), 6)):
        first = itertools.islice(decode.k_best(posteriors, objective, gains(posteriors)), k)
        assert [(one.items.tolist(), one.score) for one in first] == [
            (one.items.tolist(), one.score) for one in whole[:k]
        ]


@given(charts(max_words=3))
def test_decoding_is_the_same_when_kernels_are_interpreted(posteriors: Posteriors) -> None:
    for objective in OBJECTIVES:
        with interpreted():
            found = decode.best(posteriors, objective, gains(posteriors))
        compiled = decode.best(posteriors, objective, gains(posteriors))
        assert found.items.tolist() == compiled.items.tolist()


def test_max_product_is_the_most_probable_tree_of_a_plain_pcfg() -> None:
    """With one state, Π μ(a → b c) / μ(a) is p(tree | x): the viterbi tree wins."""
    grammar = Grammar(
        ("S", "A"),
        1,
        np.array([[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1]]),
        ("x",),
        np.array([[1, 0]]),
    )
    tables = coarse_tables(grammar, np.array([0.1, 0.5, 0.2, 0.2]), np.array([1.0, 0.0]))
    found = coarse_of(tables).prune(literal_emissions(grammar, ["x"] * 5), NOTHING_OUT)
    assert isinstance(found, Pruned)
    posteriors = fine.posteriors(found, [])
    derivations = list(decode.k_best(posteriors, "max-product"))
    shares = np.exp([one.score for one in derivations])
    assert shares.sum() == pytest.approx(1.0, abs=ROUNDING)
    # S → S A four words deep and S → A A at the bottom: 0.5³ · 0.2
    best = 0.5**3 * 0.2 / math.exp(found.log_probability)
    assert shares[0] == pytest.approx(best, abs=ROUNDING)


def unfinished(case: Case) -> tuple[Unfinished, np.ndarray]:
    """Find the fragments of a sentence that no root spans, and their log rules."""
    roots = np.zeros(case.grammar.n_symbols)
    coarse = coarse_of(coarse_tables(case.grammar, case.coarse.parent, roots))
    found = coarse.prune(case.emissions, NOTHING_OUT)
    assert isinstance(found, Unfinished)
    return found, coarse.log_rules(found.chart)


@given(cases(members=0))
def test_pieces_cover_the_sentence_at_the_lowest_cost(case: Case) -> None:
    found, log_rules = unfinished(case)
    chart, n = found.chart, found.length
    fragments = decode.fragments(found, log_rules)
    tops = [fragment[0] for fragment in fragments]
    assert [chart.start[t] for t in tops] == [0, *(chart.end[t] for t in tops[:-1])]
    assert chart.end[tops[-1]] == n
    price = decode.FRAGMENT_COST - np.log(np.maximum(found.merit, 1e-300))

    def cheapest(start: int) -> float:
        here = np.flatnonzero(chart.start == start).tolist()
        return min((price[t] + cheapest(chart.end[t]) for t in here), default=0.0)

    assert sum(price[t] for t in tops) == pytest.approx(cheapest(0), abs=ROUNDING)


@given(cases(members=0))
def test_a_piece_is_the_most_probable_derivation_of_its_item(case: Case) -> None:
    found, log_rules = unfinished(case)
    chart = found.chart
    for fragment in decode.fragments(found, log_rules):
        tree_items = set(fragment)
        chosen = [
            next(
                e
                for e in range(chart.edge_start[t], chart.edge_start[t + 1])
                if {int(chart.left[e]), int(chart.right[e])} <= tree_items
            )
            for t in fragment
            if chart.entry[t] < 0
        ]
        words = sum(math.log(chart.inside[t]) for t in fragment if chart.entry[t] >= 0)
        mine = words + sum(log_rules[e] for e in chosen)
        assert mine == pytest.approx(most(found, log_rules, fragment[0]), abs=ROUNDING)


def most(found: Unfinished, log_rules: np.ndarray, t: int) -> float:
    """Find the largest log probability of a derivation under item t."""
    chart = found.chart
    if chart.entry[t] >= 0:
        return math.log(chart.inside[t])
    return max(
        log_rules[e]
        + most(found, log_rules, chart.left[e])
        + most(found, log_rules, chart.right[e])
        for e in range(chart.edge_start[t], chart.edge_start[t + 1])
    )


def test_a_word_under_no_item_is_an_empty_piece() -> None:
    grammar = Grammar(("S", "A"), 1, np.array([[0, 1, 1]]), ("x",), np.array([[1, 0]]))
    coarse = coarse_of(coarse_tables(grammar, np.ones(1), np.array([1.0, 0.0])))
    limits = Limits.none(3)
    limits.cell[1, 2] = 1
    found = coarse.prune(literal_emissions(grammar, ["x"] * 3), NOTHING_OUT, limits)
    assert isinstance(found, Unfinished)
    assert decode.fragments(found, coarse.log_rules(found.chart)) == [(0,), (), (1,)]
