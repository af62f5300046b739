"""Theorem 8's numbers follow from lemmas 12, 15 and 20, and errors stay within them."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf, log, sqrt

import numpy as np
import pytest
from numpy.random import Generator

from lpcfg.base.errors import GrammarError
from lpcfg.grammar.known import enumerate_trees
from lpcfg.grammar.tables import Doubles, Grammar, Tables
from lpcfg.theory.bound import Bound, acl_theorem_3, examples_needed, theorem_8, tree_ratio
from lpcfg.theory.exact_moments import ExactMoments
from tests.observable import examples, observable_form
from tests.strategies_grammar import change_basis, random_lpcfg
from tests.theory.test_exact_moments import inside_rules, outside_rules
from tests.training.test_errata import FULL, error, perturbed
from tests.training.test_theory import KNOWN, Known, one_level, two_levels, with_roots

LACKING = Grammar(
    symbols=("S", "X", "P", "Q"),
    n_internal=2,
    rules=np.array([(0, 1, 2), (0, 2, 2), (0, 2, 3), (1, 2, 2), (1, 2, 3), (1, 3, 0)], np.int32),
    terminals=("x", "y", "z"),
    entries=np.array([(2, 0), (3, 0), (2, 1), (3, 1), (2, 2), (3, 2)], np.int32),
)
"""A recursive grammar that lacks most rules, so that γ = 0."""


def lacking(seed: int) -> Tables:
    rng = np.random.default_rng(seed)
    return with_roots(random_lpcfg(rng, LACKING, [2, 2, 2, 2], concentration=3.0), "S")


def tree_sums(tables: Tables, size: int) -> list[list[Doubles]]:
    """Compute Z(a, h, N) for N up to a size, by enumeration of trees under every root state."""
    states, offset = tables.states.tolist(), tables.root_offset
    z = [[np.zeros(m) for m in states] for _ in range(size + 1)]
    for a, m in enumerate(states):
        for h in range(m):
            unit = np.zeros(offset[-1])
            unit[offset[a] + h] = 1.0
            for tree, p in enumerate_trees(replace(tables, c_one=unit), size + 1):
                z[len(tree.tokens()) - 1][a][h] += p
    return z


@pytest.mark.parametrize("seed", range(4))
def test_the_ratio_is_that_of_enumerated_trees(seed: int) -> None:
    tables = lacking(seed)
    z = tree_sums(tables, 3)
    ratios = []
    for n in range(1, 4):
        for a in range(2):
            rules = [(b, c) for p, b, c in LACKING.rules.tolist() if p == a]
            y = sum(z[k][b].sum() * z[n - 1 - k][c].sum() for b, c in rules for k in range(n))
            ratios += [y / value for value in z[n][a] if y > 0]
    found, where = tree_ratio(tables, 3)
    assert found == pytest.approx(max(ratios), rel=1e-12)
    assert where is None


def test_the_ratio_is_at_most_one_over_the_least_rule() -> None:
    for seed in range(5):
        tables = random_lpcfg(np.random.default_rng(seed), FULL, [2, 2], concentration=5.0)
        least = min(float(tables.dense(r).min()) for r in range(FULL.n_rules))
        assert tree_ratio(tables, 4)[0] <= 1 / least


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("size", [1, 2, 3])
def test_lemma_12_holds_with_the_ratio_where_rules_are_missing(size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    true = lacking(seed)
    estimate = perturbed(rng, true, 1e-3)
    m, rho = 2, tree_ratio(true, size)[0]
    largest = max(
        float(np.linalg.norm(estimate.dense(r)[h] - true.dense(r)[h], 2))
        for r in range(LACKING.n_rules)
        for h in range(m)
    )
    words = np.abs(estimate.c_inf - true.c_inf).reshape(-1, m)
    of_words = max(words[LACKING.entries[:, 0] == a].sum(axis=0).max() for a in (2, 3))
    kappa = float(np.abs(estimate.c_one - true.c_one)[:2].sum())
    bound = m * ((1 + kappa) * (1 + rho * largest) ** size * (1 + of_words) ** (size + 1) - 1)
    assert 0 < error(true, estimate, size + 1) <= bound


@pytest.mark.parametrize("name", ["two levels, m from 1 to 3", "two sizes", "many roots"])
def test_tolerances_use_up_what_the_lemmas_allow(name: str) -> None:
    """Lemma 15 with the tolerances gives x for κ, for ρΔ and for δ', of which half is Ω's."""
    moments = ExactMoments.of(Known(name).tables).scaled()
    found = theorem_8(moments, 0.3, 0.1, 3)
    grammar = moments.lpcfg.grammar
    m = int(moments.lpcfg.states.max())
    assert (1 + found.x) ** 8 == pytest.approx(1 + 0.3 / m)
    by_name = {one.symbol: one for one in found.symbols}
    at_root = []
    for a, name_ in enumerate(grammar.symbols):
        one = by_name[name_]
        if a < grammar.n_internal:
            children = [
                by_name[grammar.symbols[b]].xi * by_name[grammar.symbols[c]].xi
                for p, b, c in grammar.rules.tolist()
                if p == a
            ]
            factor = 16 / 3 / min(children) * found.rho
            rest = one.moment_tolerance / (3 * one.sigma)
        else:
            factor = 4.0
            words = int((grammar.entries[:, 0] == a).sum())
            rest = one.moment_tolerance * sqrt(words) / (3 * one.sigma)
        assert factor * one.omega_tolerance / one.sigma**2 == pytest.approx(found.x / 2)
        assert factor * rest == pytest.approx(found.x / 2)
        assert one.omega_tolerance <= one.sigma / 3
        if moments.lpcfg.root_vector(a).any():
            at_root.append(2 / sqrt(3) * sqrt(m) / one.sigma * found.root_tolerance)
    assert max(at_root) == pytest.approx(found.x)


def test_however_large_an_error_omega_stays_within_a_third_of_sigma() -> None:
    """Lemma 15 takes ε_Ω ≤ σ/3 for granted."""
    found = theorem_8(ExactMoments.of(Known("two sizes").tables).scaled(), 1e30, 0.1, 1)
    for one in found.symbols:
        assert one.omega_tolerance == pytest.approx(one.sigma / 3)


def test_nodes_are_those_of_lemma_19() -> None:
    """√(1/M) + √((2/M) log((2|𝒩| + 1)/δ)) is the tolerance; trees are nodes by visits."""
    moments = ExactMoments.of(Known("two sizes").tables).scaled()
    found = theorem_8(moments, 0.3, 0.1, 3)
    level = log((2 * 5 + 1) / 0.1)

    def reached(count: float) -> float:
        return sqrt(1 / count) + sqrt(2 / count * level)

    assert len(found.symbols) == 5
    for one in found.symbols:
        assert reached(one.omega_nodes) == pytest.approx(one.omega_tolerance)
        assert reached(one.moment_nodes) == pytest.approx(one.moment_tolerance)
    assert reached(found.roots) == pytest.approx(found.root_tolerance)
    assert found.omega_trees == max(one.omega_nodes / one.visits for one in found.symbols)
    assert found.moment_trees == max(
        found.roots, *(one.moment_nodes / one.visits for one in found.symbols)
    )


def noise(rng: Generator, shapes: Sequence[tuple[int, ...]], length: float) -> list[Doubles]:
    """Draw arrays whose numbers together have this length."""
    drawn = [rng.normal(size=shape) for shape in shapes]
    whole = sqrt(sum(float((one**2).sum()) for one in drawn))
    return [one * (length / whole) for one in drawn]


def estimated(moments: ExactMoments, bound: Bound, rng: Generator) -> tuple[Tables, list[Doubles]]:
    """Apply figure 7 to moments that are wrong by their tolerances; also return every G^a."""
    tables, grammar = moments.lpcfg, moments.lpcfg.grammar
    u, v, sigma = [], [], []
    for a, omega in enumerate(moments.omega):
        m = int(tables.states[a])
        [wrong] = noise(rng, [omega.shape], bound.symbols[a].omega_tolerance)
        left, values, right = np.linalg.svd(omega + wrong, full_matrices=False)
        u.append(left[:, :m])
        v.append(right[:m].T)
        sigma.append(values[:m])
    g = [u[a].T @ moments.inside[a] for a in range(grammar.n_symbols)]
    k = [v[a].T @ moments.outside[a] * moments.gamma[a] for a in range(grammar.n_symbols)]
    rules, entries = grammar.rules.tolist(), grammar.entries.tolist()
    d = [
        np.einsum("ph,hij,qi,rj->pqr", k[a], tables.dense(r), g[b], g[c])
        for r, (a, b, c) in enumerate(rules)
    ]
    words = [k[a] @ tables.terminal_vector(e) for e, (a, _) in enumerate(entries)]
    roots = [g[a] @ tables.root_vector(a) for a in range(grammar.n_symbols)]
    for a in range(grammar.n_symbols):
        own, of = (d, rules) if a < grammar.n_internal else (words, entries)
        mine = [n for n, one in enumerate(of) if one[0] == a]
        extra = noise(rng, [own[n].shape for n in mine], bound.symbols[a].moment_tolerance)
        for n, wrong in zip(mine, extra, strict=True):
            own[n] = own[n] + wrong
    # A symbol that is never a root is none in any sample either, so its c¹ is 0 without error.
    of_roots = [a for a, one in enumerate(roots) if one.any()]
    drawn = noise(rng, [roots[a].shape for a in of_roots], bound.root_tolerance)
    for a, wrong in zip(of_roots, drawn, strict=True):
        roots[a] = roots[a] + wrong
    c = [one / sigma[a][:, None, None] for one, (a, _, _) in zip(d, rules, strict=True)]
    rows = [one / sigma[a] for one, (a, _) in zip(words, entries, strict=True)]
    return Tables.from_dense(grammar, tables.states, c, rows, roots), g


@pytest.mark.parametrize("make", [one_level, two_levels])
@pytest.mark.parametrize("seed", range(5))
def test_lemma_15_holds_for_moments_at_their_tolerances(make: object, seed: int) -> None:
    """And lemma 12: the error over all trees of the size is at most ε."""
    assert callable(make)
    rng = np.random.default_rng(seed)
    true: Tables = make(rng)
    size = 1 if make is one_level else 3
    moments = ExactMoments.of(true).scaled()
    found = theorem_8(moments, 0.5, 0.1, size)
    estimate, g = estimated(moments, found, rng)
    back = change_basis(estimate, [np.linalg.inv(one) for one in g])
    grammar = true.grammar
    for r in range(grammar.n_rules):
        off = back.dense(r) - true.dense(r)
        largest = max(float(np.linalg.norm(one, 2)) for one in off)
        assert 0 < found.rho * largest <= found.x
    for a in range(grammar.n_internal, grammar.n_symbols):
        own = [
            np.abs(back.terminal_vector(e) - true.terminal_vector(e))
            for e, (p, _) in enumerate(grammar.entries.tolist())
            if p == a
        ]
        assert np.sum(own, axis=0).max() <= found.x
    for a in range(grammar.n_symbols):
        assert np.abs(back.root_vector(a) - true.root_vector(a)).sum() <= found.x
    assert 0 < error(true, estimate, size + 1) <= 0.5


@pytest.mark.parametrize("chance", [0.05, 0.3])
def test_lemma_20_covers_means_of_a_thousand_samples(chance: float) -> None:
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.full(20, 0.5))
    tolerance = 0.2
    count = int(np.ceil(examples_needed(tolerance, chance)))
    means = rng.multinomial(count, p, size=1000) / count
    missed = (np.linalg.norm(means - p, axis=1) > tolerance).mean()
    assert missed <= chance


def test_half_the_error_takes_up_to_four_times_the_trees() -> None:
    """x is concave in ε, so it takes less than that, and nearly that for small ε."""
    moments = ExactMoments.of(Known("two sizes").tables).scaled()
    trees = [theorem_8(moments, e, 0.1, 3).omega_trees for e in (0.4, 0.2, 1e-3, 5e-4)]
    assert 3 < trees[1] / trees[0] < 4
    assert trees[3] / trees[2] == pytest.approx(4, rel=1e-3)
    chances = [theorem_8(moments, 0.4, d, 3).omega_trees for d in (0.1, 0.01)]
    assert 1 < chances[1] / chances[0] < 2


@pytest.mark.parametrize("name", ["one level", "two sizes"])
def test_observed_errors_are_far_below_the_bound(name: str) -> None:
    """A sample of as many trees as the bound asks for, all nodes of it."""
    known = Known(name)
    moments = ExactMoments.of(known.tables).scaled()
    size = 1 if name == "one level" else 3
    found = theorem_8(moments, 0.5, 0.1, size)
    counted = examples(known.tables.grammar, known.trees, inside_rules, outside_rules)
    rng = np.random.default_rng(3)
    trees = int(min(found.omega_trees, 1e17))
    drawn = rng.multinomial(trees, known.p / known.p.sum()).astype(float)
    learned = observable_form(known.tables.grammar, counted.moments(drawn), known.tables.states)
    assert error(known.tables, learned, size + 1) <= 0.5


def test_states_without_trees_of_a_size_make_the_bound_infinite() -> None:
    """In state 1, S never goes on, so it has no tree of two rules; state 0 has."""
    grammar = Grammar(
        ("S", "P"), 1, np.array([(0, 0, 1), (0, 1, 1)]), ("x", "y"), np.array([(1, 0), (1, 1)])
    )
    on = np.zeros((2, 2, 2))
    on[0] = 0.1
    stop = np.full((2, 2, 2), 0.25)
    stop[0] = 0.15
    words = [np.array([0.9, 0.3]), np.array([0.1, 0.7])]
    roots = [np.full(2, 0.5), np.zeros(2)]
    tables = Tables.from_dense(grammar, [2, 2], [on, stop], words, roots)
    assert tree_ratio(tables, 1)[1] is None
    assert tree_ratio(tables, 2) == (inf, "`S` in state 1 has no tree of 2 rules")
    found = theorem_8(ExactMoments.of(tables).scaled(), 0.1, 0.1, 2)
    assert found.omega_trees == inf
    told = found.as_json()
    assert (told["rho"], told["omega_trees"]) == (None, None)
    assert told["impossible"] == "`S` in state 1 has no tree of 2 rules"


def test_states_that_features_cannot_tell_apart_make_the_bound_infinite() -> None:
    known = Known("one level").tables
    c_inf = known.c_inf.copy()
    for e, (a, _) in enumerate(known.grammar.entries.tolist()):
        if known.grammar.symbols[a] == "A":
            part = slice(known.entry_offset[e], known.entry_offset[e + 1])
            c_inf[part] = c_inf[part].mean()
    moments = ExactMoments.of(replace(known, c_inf=c_inf)).scaled()
    found = theorem_8(moments, 0.1, 0.1, 1)
    assert found.symbols[known.grammar.symbol_ids["A"]].sigma == 0
    assert found.omega_trees == inf
    assert acl_theorem_3(moments, 0.1, 0.1, 1).nodes == inf


@pytest.mark.parametrize("name", KNOWN)
def test_the_acl_bound_is_its_formula(name: str) -> None:
    """Σ^a is diagonal, so elements beside its inverse's diagonal, which are 0, do not count."""
    tables = Known(name).tables
    moments = ExactMoments.of(tables).scaled()
    found = acl_theorem_3(moments, 0.2, 0.1, 2)
    sigma, elements = [], []
    basis = []
    for a, omega in enumerate(moments.omega):
        m = int(tables.states[a])
        u, values, vt = np.linalg.svd(omega, full_matrices=False)
        inner = u[:, :m].T @ omega @ vt[:m].T
        assert inner == pytest.approx(np.diag(values[:m]), abs=1e-14)
        sigma.append(values[m - 1])
        elements.append(np.diag(np.linalg.inv(inner)))
        basis.append(u[:, :m].T @ moments.inside[a])
    form = change_basis(tables, basis)  # C, c∞ and c¹; D and d∞ are those times Σ
    for r, (a, _, _) in enumerate(tables.grammar.rules.tolist()):
        values = np.linalg.svd(moments.omega[a], compute_uv=False)[: tables.states[a]]
        elements.append(form.dense(r) * values[:, None, None])
    for e, (a, _) in enumerate(tables.grammar.entries.tolist()):
        values = np.linalg.svd(moments.omega[a], compute_uv=False)[: tables.states[a]]
        elements.append(form.terminal_vector(e) * values)
    elements += [
        form.root_vector(a) for a in range(tables.grammar.n_symbols) if tables.root_vector(a).any()
    ]
    least = min(float(np.abs(one).min()) for one in elements)
    assert found.sigma == pytest.approx(min(sigma), rel=1e-9)
    assert found.least == pytest.approx(least, rel=1e-6)
    m, rules = int(tables.states.max()), tables.grammar.n_rules + len(tables.grammar.entries)
    root = 1.2 ** (1 / 11) - 1
    expected = 128 * m**2 / root**2 / least**2 / min(sigma) ** 4 * log(2 * m * rules / 0.1)
    assert found.nodes == pytest.approx(expected, rel=1e-5)
    assert found.trees == pytest.approx(found.nodes / min(v.sum() for v in moments.visits))


@pytest.mark.parametrize("given", [(0.0, 0.1, 1), (0.1, 1.0, 1), (0.1, 0.0, 1), (0.1, 0.1, 0)])
def test_impossible_questions_are_refused(given: tuple[float, float, int]) -> None:
    moments = ExactMoments.of(Known("one level").tables).scaled()
    for ask in (theorem_8, acl_theorem_3):
        with pytest.raises(GrammarError, match="expected ε above 0"):
            ask(moments, *given)
