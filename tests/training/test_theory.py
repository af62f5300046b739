"""The theorems of Cohen, Stratos, Collins, Foster and Ungar (JMLR 2014), as tests."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import Generator

from lpcfg.engine.exact.inside_outside import inside, outside, tree_probability
from lpcfg.grammar.known import enumerate_trees
from lpcfg.grammar.tables import Doubles, Grammar, Tables
from lpcfg.theory.exact_moments import ExactMoments
from lpcfg.trees.tree import Tree
from tests import naive
from tests.observable import Examples, Features, Moments, Outside, examples, observable_form
from tests.strategies_grammar import (
    change_basis,
    literal_emissions,
    random_bases,
    random_grammar,
    random_lpcfg,
)


def probability(tables: Tables, tree: Tree) -> float:
    """Compute p(tree), by figure 4."""
    emissions = literal_emissions(tables.grammar, tree.tokens())
    return tree_probability(tables, tree, emissions).probability.value


# Theorem 3 ----------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.lists(st.sampled_from("xy"), min_size=1, max_size=4))
@settings(max_examples=60)
def test_theorem_3_linear_transforms_keep_trees_and_marginals(seed: int, tokens: list[str]) -> None:
    """p(tree) and μ under transformed parameters are those of the L-PCFG, to 1e-9 relative."""
    rng = np.random.default_rng(seed)
    grammar = random_grammar(rng, 2, 2, 5)
    lpcfg = random_lpcfg(rng, grammar, rng.integers(1, 4, grammar.n_symbols).tolist())
    transformed = change_basis(lpcfg, random_bases(rng, lpcfg.states.tolist()))
    emissions = literal_emissions(grammar, tokens)
    derivations = [
        d for a in range(4) for d in naive.derivations(lpcfg, emissions, a, 0, len(tokens))
    ]
    for derivation in derivations:
        tree = naive.as_tree(lpcfg, tokens, derivation)
        assert probability(transformed, tree) == pytest.approx(probability(lpcfg, tree), rel=1e-9)
    before, after = (outside(inside(tables, emissions)) for tables in (lpcfg, transformed))
    p = before.probability.value
    for start in range(len(tokens)):
        for end in range(start + 1, len(tokens) + 1):
            for a in range(grammar.n_symbols):
                # What cannot be is zero here and rounding error there: 1e-13 of p(x).
                expected = pytest.approx(before.span(a, start, end).value, rel=1e-9, abs=1e-13 * p)
                assert after.span(a, start, end).value == expected


# Grammars whose trees can be told apart -----------------------------------------------------------


def identity(tree: Tree) -> Features:
    """Return φ of an inside tree: the tree itself is its only feature."""
    return {tree: 1.0}


def outside_identity(context: Outside | None) -> Features:
    """Return ψ of an outside tree: the tree itself is its only feature."""
    return {context: 1.0}


def finite_grammar(
    rules: Sequence[tuple[str, str, str]], words: dict[str, int], states: dict[str, int]
) -> tuple[Grammar, list[int]]:
    """Build a grammar of these rules in which preterminal P has words[P] words of its own."""
    internal = sorted({parent for parent, _, _ in rules})
    names = [*internal, *sorted(words)]
    terminals = [f"{name}{n}".lower() for name in sorted(words) for n in range(words[name])]
    entries = [
        (names.index(name), terminals.index(f"{name}{n}".lower()))
        for name in sorted(words)
        for n in range(words[name])
    ]
    ids = sorted([names.index(symbol) for symbol in rule] for rule in rules)
    grammar = Grammar(tuple(names), len(internal), np.array(ids), tuple(terminals), entries)
    return grammar, [states.get(name, 1) for name in names]


def with_roots(tables: Tables, *roots: str) -> Tables:
    """Return the same L-PCFG with π uniform over the states of these symbols."""
    names = np.repeat(np.array(tables.grammar.symbols), tables.states)
    c_one = np.isin(names, roots).astype(float)
    return Tables(
        tables.grammar, tables.states, tables.terms, tables.parent, tables.left, tables.right,
        tables.c_inf, c_one / c_one.sum(),
    )  # fmt: skip


def one_level(rng: Generator) -> Tables:
    """Build S → A B, with two states below S."""
    grammar, states = finite_grammar([("S", "A", "B")], {"A": 3, "B": 3}, {"A": 2, "B": 2})
    return with_roots(random_lpcfg(rng, grammar, states, concentration=0.5), "S")


def two_levels(rng: Generator) -> Tables:
    """Build S → X Y, X → A B, Y → B C | A C, every symbol with its own m."""
    rules = [("S", "X", "Y"), ("X", "A", "B"), ("Y", "B", "C"), ("Y", "A", "C")]
    states = {"X": 2, "Y": 2, "A": 2, "B": 3, "C": 2}
    grammar, m = finite_grammar(rules, {"A": 3, "B": 4, "C": 3}, states)
    return with_roots(random_lpcfg(rng, grammar, m, concentration=0.5), "S")


def many_roots(rng: Generator) -> Tables:
    """Build trees of one, two and three words; X and the preterminal A may be roots."""
    rules = [("S", "X", "A"), ("S", "A", "X"), ("X", "A", "B")]
    grammar, m = finite_grammar(rules, {"A": 3, "B": 3}, {"X": 2, "A": 2, "B": 2})
    return with_roots(random_lpcfg(rng, grammar, m, concentration=0.5), "S", "X", "A")


def nearly_singular(rng: Generator) -> Tables:
    """Build `one_level` with states of A that differ by a tenth: σ₂ of Ω^A is a small part of
    σ₁.
    """
    tables = one_level(rng)
    c_inf = tables.c_inf.copy()
    for e, (a, _) in enumerate(tables.grammar.entries.tolist()):
        if tables.grammar.symbols[a] == "A":
            vector = c_inf[tables.entry_offset[e] : tables.entry_offset[e + 1]]
            vector[:] = vector.mean() + 0.1 * (vector - vector.mean())
    return Tables(
        tables.grammar, tables.states, tables.terms, tables.parent, tables.left, tables.right,
        c_inf, tables.c_one,
    )  # fmt: skip


def two_sizes(rng: Generator) -> Tables:
    """Build trees of three or four words, by the rule of X."""
    rules = [("S", "X", "B"), ("X", "A", "B"), ("X", "Y", "B"), ("Y", "A", "B")]
    grammar, m = finite_grammar(rules, {"A": 3, "B": 3}, {"X": 2, "Y": 2, "A": 2, "B": 2})
    return with_roots(random_lpcfg(rng, grammar, m, concentration=0.5), "S")


KNOWN: dict[str, tuple[Callable[[Generator], Tables], int]] = {
    "one level": (one_level, 1),
    "two levels, m from 1 to 3": (two_levels, 2),
    "many roots": (many_roots, 3),
    "nearly singular": (nearly_singular, 4),
    "two sizes": (two_sizes, 14),
}


class Known:
    """A known L-PCFG of finitely many trees, its examples and its exact distribution."""

    def __init__(self, name: str) -> None:
        make, seed = KNOWN[name]
        self.tables = make(np.random.default_rng(seed))
        enumerated = list(enumerate_trees(self.tables, max_words=4))
        self.trees = [tree for tree, _ in enumerated]
        self.p = np.array([p for _, p in enumerated])
        self.examples: Examples = examples(
            self.tables.grammar, self.trees, identity, outside_identity
        )

    def learned(self, weights: Doubles) -> Tables:
        moments = self.examples.moments(weights)
        return observable_form(self.tables.grammar, moments, self.tables.states)


@pytest.fixture(params=KNOWN, scope="module")
def known(request: pytest.FixtureRequest) -> Known:
    return Known(request.param)


def test_known_grammars_are_what_the_theorems_ask_for(known: Known) -> None:
    """Proper, every tree enumerated, and Ω^a of rank m_a; one of them nearly singular."""
    assert known.p.sum() == pytest.approx(1, abs=1e-12)
    omegas = known.examples.moments(known.p).omega
    for omega, m in zip(omegas, known.tables.states, strict=True):
        sigma = np.linalg.svd(omega, compute_uv=False)
        assert sigma[m - 1] > 1e-4
        assert sigma[m:].max(initial=0.0) < 1e-14


def test_the_nearly_singular_grammar_is_nearly_singular() -> None:
    known = Known("nearly singular")
    a = known.tables.grammar.symbol_ids["A"]
    sigma = np.linalg.svd(known.examples.moments(known.p).omega[a], compute_uv=False)
    assert sigma[1] < 0.05 * sigma[0]


# Theorem 6 ----------------------------------------------------------------------------------------


def test_theorem_6_exact_moments_by_enumeration_give_back_every_tree(known: Known) -> None:
    learned = known.learned(known.p)
    for tree, p in zip(known.trees, known.p, strict=True):
        assert probability(learned, tree) == pytest.approx(p, rel=1e-8)


@pytest.mark.parametrize("seed", range(8))
def test_theorem_6_exact_moments_by_linear_algebra_give_back_trees_and_spans(seed: int) -> None:
    """A grammar of infinitely many trees: moments from I^a, J^a and γ^a (section A.2)."""
    rng = np.random.default_rng(seed)
    grammar = Grammar(
        ("S", "X", "A", "B"),
        2,
        np.array(
            [(0, 1, 1), (0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 2), (1, 2, 3), (1, 3, 2), (1, 3, 3)]
        ),
        ("x", "y", "z"),
        [(2, 0), (3, 0), (2, 1), (3, 1), (2, 2), (3, 2)],
    )
    lpcfg = random_lpcfg(rng, grammar, [2, 3, 2, 2], concentration=0.5)
    lpcfg = with_roots(lpcfg, "S", "X")
    learned = observable_form(grammar, exact_moments(lpcfg, rng), lpcfg.states)
    for tree, p in enumerate_trees(lpcfg, max_words=4):
        assert probability(learned, tree) == pytest.approx(p, rel=1e-8)
    emissions = literal_emissions(grammar, ["x", "y", "z", "x", "y", "z"])
    before, after = (outside(inside(tables, emissions)) for tables in (lpcfg, learned))
    for width in range(1, 7):
        assert np.allclose(after.spans(width), before.spans(width), rtol=1e-8, atol=1e-10)


def exact_moments(lpcfg: Tables, rng: Generator) -> Moments:
    """Compute the expectations of `Moments` by their decomposition over latent states.

    Features are seen through a random matrix, so that no order helps.
    """
    grammar = lpcfg.grammar
    exact = ExactMoments.of(lpcfg)
    inside_means = [rng.normal(size=(9, len(mean))) @ mean for mean in exact.inside]
    outside_means = [rng.normal(size=(11, len(mean))) @ mean for mean in exact.outside]
    gamma = exact.gamma
    rules = grammar.rules.tolist()
    return Moments(
        omega=[
            i @ np.diag(g) @ j.T for i, g, j in zip(inside_means, gamma, outside_means, strict=True)
        ],
        rules=[
            np.einsum(
                "dh,h,hij,ei,fj->def",
                outside_means[a], gamma[a], lpcfg.dense(r), inside_means[b], inside_means[c],
            )
            for r, (a, b, c) in enumerate(rules)
        ],
        words=[
            outside_means[a] @ (gamma[a] * lpcfg.terminal_vector(e))
            for e, (a, _) in enumerate(grammar.entries.tolist())
        ],
        roots=[mean @ lpcfg.root_vector(a) for a, mean in enumerate(inside_means)],
    )  # fmt: skip


def test_one_random_node_a_tree_gives_biased_moments_where_sizes_vary() -> None:
    """The JMLR text draws one node of every tree, which weights a node by one over the tree's size.

    Small trees then count too much: with exact moments, no sampling error is left to blame. All
    nodes of all trees are the right examples, here and in `data.features`.
    """
    known = Known("two sizes")
    size = np.array([sum(1 for _ in tree.nodes()) for tree in known.trees])
    assert set(size.tolist()) == {5, 7}
    all_nodes, one_node = (known.examples.moments(p) for p in (known.p, known.p / size))
    grammar, states = known.tables.grammar, known.tables.states
    biased = observable_form(grammar, replace(one_node, roots=all_nodes.roots), states)
    wrong = [
        probability(biased, tree) / p - 1 for tree, p in zip(known.trees, known.p, strict=True)
    ]
    assert max(map(abs, wrong)) > 0.1
    # where all trees have one size, there is no difference
    equal = Known("one level")
    third = observable_form(
        equal.tables.grammar, equal.examples.moments(equal.p / 3), equal.tables.states
    )
    for tree, p in zip(equal.trees, equal.p, strict=True):
        assert probability(third, tree) == pytest.approx(p, rel=1e-8)


# Theorem 8 ----------------------------------------------------------------------------------------


def test_theorem_8_error_shrinks_as_one_over_the_root_of_the_sample(known: Known) -> None:
    """The log-log slope of Σ_t |p̂(t) − p(t)| on M is −0.5 ± 0.1, for M from 10⁴ to 10⁶.

    A sample of M trees is a multinomial draw of their counts. The error is a mean over 20 samples,
    which leaves the slope a standard error of about 0.02.
    """
    sizes = np.array([10_000, 31_623, 100_000, 316_228, 1_000_000])
    rng = np.random.default_rng(8)
    errors = [np.mean([error(known, size, rng) for _ in range(20)]) for size in sizes]
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.1)


def error(known: Known, size: int, rng: Generator) -> float:
    """Compute Σ_t |p̂(t) − p(t)| of a model learned from a sample of so many trees."""
    counts = rng.multinomial(size, known.p / known.p.sum()).astype(float)
    learned = dict(enumerate_trees(known.learned(counts), max_words=4))
    return sum(
        abs(learned.get(tree, 0.0) - p) for tree, p in zip(known.trees, known.p, strict=True)
    )
