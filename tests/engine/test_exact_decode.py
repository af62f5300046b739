"""Decoding on the full chart, against the best of all trees."""

from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lpcfg.engine.exact.inside_outside import inside, outside, tree_probability
from lpcfg.grammar.tables import Emissions, Grammar, Tables
from lpcfg.trees.tree import Tree
from tests import naive
from tests.engine.test_inside_outside import plain
from tests.exact_decode import BestTree, Objective, decode
from tests.strategies_grammar import (
    charts,
    literal_emissions,
    random_emissions,
    random_grammar,
    random_lpcfg,
    random_tables,
)

OBJECTIVES = get_args(Objective)


def decoded(tables: Tables, emissions: Emissions, objective: Objective) -> BestTree | None:
    words = [f"w{n}" for n in range(emissions.length)]
    return decode(outside(inside(tables, emissions)), words, objective)


def scores(tables: Tables, emissions: Emissions, objective: Objective) -> dict[Tree, float]:
    """Compute the score of every tree whose root may be one, by enumerated marginals."""
    weighted = naive.all_derivations(tables, emissions)
    p = sum(weight for _, weight in weighted)
    spans, rules, _ = naive.marginals(weighted)
    words = [f"w{n}" for n in range(emissions.length)]
    result = {}
    for derivation, _ in weighted:
        score = abs(spans[derivation[:3]] / p) if objective == "max-product" else 0.0
        for node in naive.nodes(derivation):
            item = abs(spans[node[:3]] / p)
            inner = len(node) == 6
            if inner:
                rule = abs(rules[node[3], node[1], node[4][2], node[2]] / p)
            if objective == "max-product":
                score *= (rule / item if item else 0.0) if inner else 1.0
            else:
                score += rule if inner and objective == "max-rule" else item
        result[naive.as_tree(tables, words, derivation)] = score
    return result


@st.composite
def signed_charts(draw: Any) -> tuple[Tables, Emissions]:
    """Draw `charts` of both signs, with enough rules that magnitudes decide between trees."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    grammar = random_grammar(rng, 2, 2, 10)
    tables = random_tables(rng, grammar, 2, signed=True)
    return tables, random_emissions(rng, grammar, ["x"] * draw(st.integers(2, 3)))


@pytest.mark.parametrize("objective", OBJECTIVES)
@given(chart=st.one_of(charts(), signed_charts()))
@settings(max_examples=60)
def test_decoding_finds_the_best_of_all_trees(
    chart: tuple[Tables, Emissions], objective: Objective
) -> None:
    tables, emissions = chart
    best = decoded(tables, emissions, objective)
    if inside(tables, emissions).probability.sign == 0:
        assert best is None
        return
    every = scores(tables, emissions, objective)
    assert best is not None
    score = np.exp(best.score) if objective == "max-product" else best.score
    # Posteriors of signed tables may cancel to all but 1e-4 of the magnitudes they are made of.
    assert score == pytest.approx(max(every.values()), rel=1e-9)
    assert every[best.tree] == pytest.approx(score, rel=1e-9)


@given(st.integers(0, 2**32 - 1), st.lists(st.sampled_from("xy"), min_size=1, max_size=8))
@settings(max_examples=60)
def test_max_product_with_one_latent_state_is_the_viterbi_tree(
    seed: int, tokens: list[str]
) -> None:
    rng = np.random.default_rng(seed)
    grammar = random_grammar(rng, 2, 2, 6)
    tables = random_lpcfg(rng, grammar, [1] * grammar.n_symbols)
    emissions = literal_emissions(grammar, tokens)
    chart = inside(tables, emissions)
    best = decode(outside(chart), tokens, "max-product")
    if chart.probability.sign == 0:
        assert best is None
        return
    assert best is not None
    probability, _ = plain(tables).viterbi(tokens)  # other trees of the same rules are as good
    found = tree_probability(tables, best.tree, emissions).probability.value
    assert found == pytest.approx(probability, rel=1e-12)
    assert np.exp(best.score) == pytest.approx(probability / chart.probability.value, rel=1e-9)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_sentence_without_parse_has_no_best_tree(objective: Objective) -> None:
    grammar = random_grammar(np.random.default_rng(0))
    tables = random_lpcfg(np.random.default_rng(0), grammar, [1] * grammar.n_symbols)
    assert decoded(tables, literal_emissions(grammar, ["x", "unknown"]), objective) is None


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_symbol_that_is_never_a_root_is_not_chosen_as_one(objective: Objective) -> None:
    """X → Y Z would join the likely half of one tree of S with the likely half of another."""
    halves = ("C1", "C2", "C3", "D1", "D2", "D3", "Y", "Z")
    names = ["S", "X", *halves, "A"]
    ids = {name: n for n, name in enumerate(names)}
    rules = [("S", "Y", c) for c in halves[:3]] + [("S", d, "Z") for d in halves[3:6]]
    rules += [("X", "Y", "Z")] + [(half, "A", "A") for half in halves]
    coded = sorted([ids[symbol] for symbol in rule] for rule in rules)
    grammar = Grammar(tuple(names), 10, np.array(coded), ("x",), [(10, 0)])
    tensors = [np.ones((1, 1, 1))] * len(rules)
    roots = [[float(name == "S")] for name in names]
    tables = Tables.from_dense(grammar, [1] * 11, tensors, [[1.0]], roots)
    best = decoded(tables, literal_emissions(grammar, ["x"] * 4), objective)
    assert best is not None
    assert best.tree.label == "S"


def test_no_best_product_may_exist_although_the_sentence_has_a_probability() -> None:
    """Signs cancel: every tree has an X1 or a Y1 in it, whose marginals are zero, and p(x) = 1."""
    grammar = Grammar(
        ("S", "X1", "X2", "Y1", "Y2", "A"),
        5,
        [(0, 1, 3), (0, 1, 4), (0, 2, 3), *((a, 5, 5) for a in range(1, 5))],
        ("x",),
        [(5, 0)],
    )
    tensors = [np.full((1, 1, 1), number) for number in (-1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)]
    roots = [[1.0]] + [[0.0]] * 5
    tables = Tables.from_dense(grammar, [1] * 6, tensors, [[1.0]], roots)
    emissions = literal_emissions(grammar, ["x"] * 4)
    assert inside(tables, emissions).probability.value == 1.0
    assert decoded(tables, emissions, "max-product") is None
    assert decoded(tables, emissions, "max-rule") is not None
