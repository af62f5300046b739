"""EM: it equals enumeration, its likelihood never falls, and it smooths as it says."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lpcfg.base.errors import TrainingError
from lpcfg.engine.exact.inside_outside import tree_probability
from lpcfg.grammar.known import sample_trees
from lpcfg.grammar.tables import Doubles, Emissions, Tables
from lpcfg.training.data.examples import Examples
from lpcfg.training.data.treebank import forest_of, strees_of
from lpcfg.training.estimators import em, spectral
from lpcfg.training.estimators.em import (
    Corpus,
    EmConfig,
    Mixture,
    climb,
    expected,
    maximised,
    smoothed_terms,
    split,
)
from lpcfg.training.estimators.inputs import EstimatorInputs
from lpcfg.training.estimators.moments import Smoothing
from lpcfg.training.estimators.spectral import SpectralConfig
from lpcfg.trees.tree import Tree
from tests import naive_em
from tests.strategies_grammar import random_grammar, random_lpcfg
from tests.training.literal import coded

SMALL = Path(__file__).resolve().parents[2] / "examples" / "small.mrg"
NONE = Smoothing(0.0, 0.0)
SOME = Smoothing(10.0, 4.0)
PARTS = ("parent", "left", "right", "c_inf", "c_one")


def sampled(seed: int, count: int, max_words: int = 4) -> Examples:
    """Draw trees of a random L-PCFG that lacks some of the possible rules."""
    rng = np.random.default_rng(seed)
    grammar = random_grammar(rng, 2, 2, 5)
    lpcfg = random_lpcfg(rng, grammar, rng.integers(1, 4, 4).tolist(), concentration=0.5)
    drawn = list(sample_trees(lpcfg, 20 * count, seed=seed, max_words=max_words))
    words = [tree for tree in drawn if tree.word is not None]
    branching = [tree for tree in drawn if tree.word is None]
    return coded(forest_of([*words[:2], *branching[: count - 2]]))


def started(
    corpus: Corpus, seed: int, *, terms: int = 3, states: int = 3, smoothing: Smoothing = NONE
) -> Mixture:
    """Return a random start, in double precision."""
    m = np.random.default_rng(seed).integers(1, states + 1, corpus.grammar.n_symbols)
    return split(
        corpus, m.astype(np.int32), terms, smoothing, perturbation=1.0, seed=seed, dtype=np.float64
    )


def dense_tables(corpus: Corpus, seed: int) -> Tables:
    """Draw a random L-PCFG of dense tensors over the corpus' grammar."""
    rng = np.random.default_rng(seed)
    grammar = corpus.grammar
    return directions(
        corpus, random_lpcfg(rng, grammar, rng.integers(1, 3, grammar.n_symbols).tolist())
    )


def directions(corpus: Corpus, lpcfg: Tables) -> Tables:
    """Return the same L-PCFG, c∞ being q over count(a → x) / count(a)."""
    symbol = lpcfg.grammar.entries[:, 0]
    share = corpus.entry_count / corpus.symbol_count[symbol]
    weight = np.repeat(share, lpcfg.states[symbol])
    return Tables(
        lpcfg.grammar, lpcfg.states, lpcfg.terms, lpcfg.parent, lpcfg.left, lpcfg.right,
        lpcfg.c_inf / weight, lpcfg.c_one,
    )  # fmt: skip


def by_name(corpus: Corpus, tables: Tables) -> naive_em.Dense:
    """Write the L-PCFG as the slow twin takes it."""
    grammar = tables.grammar
    names, words = grammar.symbols, grammar.terminals
    share = corpus.entry_count / corpus.symbol_count[grammar.entries[:, 0]]
    return naive_em.Dense(
        {
            (names[a], names[b], names[c]): tables.dense(r)
            for r, (a, b, c) in enumerate(grammar.rules.tolist())
        },
        {
            (names[a], words[x]): share[e] * tables.terminal_vector(e)
            for e, (a, x) in enumerate(grammar.entries.tolist())
        },
        {names[a]: np.array(tables.root_vector(a)) for a in range(grammar.n_symbols)},
    )


def likelihood(corpus: Corpus, tables: Tables, trees: list[Tree]) -> float:
    """Compute log p(trees), by the exact engine."""
    grammar = corpus.grammar
    total = 0.0
    for tree in trees:
        pairs = [
            (grammar.symbol_ids[leaf.label], grammar.terminals.index(leaf.word or ""))
            for leaf in tree.leaves()
        ]
        entry = np.array([grammar.entry_ids[pair] for pair in pairs], np.int32)
        symbol = grammar.entries[entry, 0]
        weight = corpus.entry_count[entry] / corpus.symbol_count[symbol]
        start = np.arange(len(entry) + 1, dtype=np.int32)
        emissions = Emissions(start, symbol, entry, weight)
        total += tree_probability(tables, tree, emissions).probability.log
    return total


# The E-step and the M-step ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_em_on_unit_vectors_is_em_on_dense_tensors_by_enumeration(seed: int) -> None:
    examples = sampled(seed, 30)
    corpus, trees = Corpus(examples), strees_of(examples.forest)
    mixture = Mixture.of(dense_tables(corpus, seed), NONE, dtype=np.float64)
    slow = by_name(corpus, mixture.tables())
    for _ in range(3):
        counts, log_likelihood = expected(corpus, mixture, workers=1)
        mixture = maximised(corpus, mixture, counts, NONE)
        slow, slow_likelihood = naive_em.step(slow, trees)
        assert log_likelihood == pytest.approx(slow_likelihood, rel=1e-12)
        fast = by_name(corpus, mixture.tables())
        for part in ("t", "q", "pi"):
            for key, expected_numbers in getattr(slow, part).items():
                np.testing.assert_allclose(
                    getattr(fast, part)[key], expected_numbers, rtol=1e-9, atol=1e-15
                )


@pytest.mark.parametrize("seed", range(6))
def test_the_expected_counts_are_the_gradient_of_the_exact_likelihood(seed: int) -> None:
    """∂ log p(trees) / ∂ log θ of any number θ of terms, c∞ and c¹ is its expected count."""
    examples = sampled(seed, 20, max_words=6)
    corpus, trees = Corpus(examples), strees_of(examples.forest)
    mixture = started(corpus, seed)
    counts, log_likelihood = expected(corpus, mixture, workers=1)
    tables = mixture.tables()
    assert log_likelihood == pytest.approx(likelihood(corpus, tables, trees), rel=1e-12)
    states, rule = tables.states, np.repeat(np.arange(len(tables.terms)), tables.terms)
    symbols = (*tables.grammar.rules[rule].T, tables.grammar.entries[:, 0], range(len(states)))
    rng = np.random.default_rng(seed)
    h = 1e-5  # of which a central difference leaves an error of h² · 10³ or so
    for part, rows, symbol in zip(PARTS, counts, symbols, strict=True):
        count = rows[np.arange(rows.shape[1]) < states[list(symbol)][:, None]]
        numbers = getattr(tables, part)
        for n in rng.integers(0, len(numbers), 3):
            sides = []
            for factor in (np.exp(h), np.exp(-h)):
                moved = numbers.copy()
                moved[n] *= factor
                sides.append(likelihood(corpus, replace(tables, **{part: moved}), trees))
            assert (sides[0] - sides[1]) / (2 * h) == pytest.approx(count[n], abs=1e-5)


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 4))
@settings(max_examples=60)
def test_the_likelihood_never_falls(seed: int, terms: int, states: int) -> None:
    corpus = Corpus(sampled(seed, 40, max_words=8))
    mixture = started(corpus, seed, terms=terms, states=states)
    counts, _ = expected(corpus, mixture, workers=1)  # perturbed numbers do not sum to one
    mixture = maximised(corpus, mixture, counts, NONE)
    before = -np.inf
    for _ in range(12):
        counts, after = expected(corpus, mixture, workers=1)
        # Sums of 40 trees' logarithms are known to 1e-13 of themselves.
        assert after >= before - 1e-12 * abs(after)
        before = after
        mixture = maximised(corpus, mixture, counts, NONE)


def test_em_on_one_state_is_the_treebank_pcfg_after_one_step(small: Examples) -> None:
    corpus = Corpus(small)
    ones = np.ones(corpus.grammar.n_symbols, np.int32)
    mixture = split(corpus, ones, 1, NONE, perturbation=0.9, seed=1, dtype=np.float64)
    counts, _ = expected(corpus, mixture, workers=1)
    tables = maximised(corpus, mixture, counts, NONE).tables()
    share = corpus.rule_count / corpus.symbol_count[corpus.grammar.rules[:, 0]]
    np.testing.assert_allclose(tables.parent, share, rtol=1e-12)
    np.testing.assert_allclose(tables.left, 1, rtol=1e-12)
    np.testing.assert_allclose(tables.c_inf, 1, rtol=1e-12)
    np.testing.assert_allclose(tables.c_one, corpus.root_count / corpus.n_trees, rtol=1e-12)


def test_single_precision_learns_the_same(small: Examples) -> None:
    corpus = Corpus(small)
    states = np.minimum(corpus.symbol_count, 4).astype(np.int32)
    found = {}
    for dtype in (np.float32, np.float64):
        mixture = split(corpus, states, 6, SOME, perturbation=0.5, seed=1, dtype=dtype)
        for _ in range(4):
            counts, log_likelihood = expected(corpus, mixture, workers=1)
            mixture = maximised(corpus, mixture, counts, SOME)
        found[dtype] = log_likelihood
        assert mixture.tables().parent.dtype == dtype
    # Starting numbers are rounded to 6e-8, and the climb departs from there.
    assert found[np.float32] == pytest.approx(found[np.float64], rel=1e-5)


def test_known_states_are_counted(small: Examples) -> None:
    """With all states known, expected counts are counts and one step is enough."""
    forest, grammar, node_entry = small.forest, small.grammar, small.node_entry
    corpus = Corpus(small)
    state = (np.arange(forest.n_nodes) % 2).astype(np.int32)
    states = np.full(grammar.n_symbols, 2, np.int32)
    mixture = split(corpus, states, 4, NONE, perturbation=0.5, seed=1, dtype=np.float64)
    counts, _ = expected(corpus.with_states(state), mixture, workers=1)
    at_root = np.zeros((grammar.n_symbols, 2))
    np.add.at(at_root, (forest.symbol[forest.roots], state[forest.roots]), 1)
    np.testing.assert_allclose(counts.root, at_root, atol=1e-12)
    words = np.zeros((len(grammar.entries), 2))
    leaves = np.flatnonzero(forest.is_leaf)
    np.add.at(words, (node_entry[leaves], state[leaves]), 1)
    np.testing.assert_allclose(counts.lexical, words, atol=1e-12)


# Smoothing ----------------------------------------------------------------------------------------


def joint(mass: Doubles, sides: Sequence[Doubles], terms: slice, n: int) -> Doubles:
    """Compute p(i, j, k | r) of a rule's terms."""
    rows = (side[terms] for side in sides)
    result: Doubles = np.einsum("t,ti,tj,tk->ijk", mass[terms] / n, *rows)
    return result


def paper_smoothed(e: Doubles, tail: Doubles, weight: float) -> Doubles:
    """Compute λE + (1−λ)(λE² + (1−λ)(λE³ + (1−λ)E⁴)) of a joint distribution (NAACL 3.2)."""
    first, second, third = e.sum(axis=(1, 2)), e.sum(axis=(0, 2)), e.sum(axis=(0, 1))
    pairs = (
        np.einsum("ij,k->ijk", e.sum(axis=2), third)
        + np.einsum("ik,j->ijk", e.sum(axis=1), second)
        + np.einsum("jk,i->ijk", e.sum(axis=0), first)
    ) / 3
    alone = np.einsum("i,j,k->ijk", first, second, third)
    rest = 1 - weight
    return weight * e + rest * (weight * pairs + rest * (weight * alone + rest * tail))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("steps", [0, 2])
def test_smoothing_has_the_marginals_of_the_papers(seed: int, steps: int) -> None:
    """Of single states always; of pairs as long as a rule's last term is empty. Only (λ − v³)
    times the third cumulant is left out, whose marginals are zero."""
    corpus = Corpus(sampled(seed, 60))
    mixture = started(corpus, seed, smoothing=SOME)
    for _ in range(steps):
        counts, _ = expected(corpus, mixture, workers=1)
        mixture = maximised(corpus, mixture, counts, SOME)
    counts, _ = expected(corpus, mixture, workers=1)
    first, rules = mixture.shape.first, corpus.grammar.rules
    rule = np.repeat(np.arange(len(rules)), np.diff(first))
    share = np.random.default_rng(seed).dirichlet(
        np.ones(counts.parent.shape[1]), corpus.grammar.n_symbols
    )
    size = counts.parent.sum(axis=1)
    own = [np.divide(x, size[:, None], out=np.zeros(x.shape), where=size[:, None] > 0)
           for x in counts[:3]]  # fmt: skip
    mass, sides = smoothed_terms(corpus, mixture.shape, rule, counts, share, SOME)
    for r, (a, b, c) in enumerate(rules.tolist()):
        terms, n = slice(first[r], first[r + 1]), int(corpus.rule_count[r])
        tail = np.einsum("i,j,k->ijk", share[a], share[b], share[c])
        weight = float(SOME.rule_weight(n))
        wanted = paper_smoothed(joint(size, own, terms, n), tail, weight)
        got = joint(mass, sides, terms, n)
        for axis, others in enumerate([(1, 2), (0, 2), (0, 1)]):
            kept = axis if steps == 0 else others
            np.testing.assert_allclose(got.sum(axis=kept), wanted.sum(axis=kept), atol=1e-12)
        assert (got >= 0).all()


@pytest.mark.parametrize("smoothing", [NONE, SOME])
def test_em_returns_an_lpcfg(small: Examples, smoothing: Smoothing) -> None:
    """Whatever a state of a symbol may become sums to one, and so do all roots."""
    corpus = Corpus(small)
    mixture = started(corpus, 3, terms=5, states=4, smoothing=smoothing)
    for _ in range(3):
        counts, _ = expected(corpus, mixture, workers=1)
        mixture = maximised(corpus, mixture, counts, smoothing)
    dense = by_name(corpus, mixture.tables())
    total = {a: np.zeros_like(column) for a, column in dense.pi.items()}
    for (a, _, _), tensor in dense.t.items():
        assert (tensor >= 0).all()
        total[a] += tensor.sum(axis=(1, 2))
    for (a, _), row in dense.q.items():
        assert (row >= 0).all()
        total[a] += row
    for sums in total.values():
        np.testing.assert_allclose(sums, 1, rtol=1e-9)
    assert sum(column.sum() for column in dense.pi.values()) == pytest.approx(1, rel=1e-9)


def test_smoothed_em_gives_unseen_trees_a_probability(small: Examples) -> None:
    """Every combination of states has a probability under smoothing."""
    corpus = Corpus(small)
    mixture = started(corpus, 3, terms=5, states=4, smoothing=SOME)
    for _ in range(3):
        counts, _ = expected(corpus, mixture, workers=1)
        mixture = maximised(corpus, mixture, counts, SOME)
    tables = mixture.tables()
    assert all((tables.dense(r) > 0).all() for r in range(corpus.grammar.n_rules))
    assert (tables.c_inf > 0).all()


# Starting points ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_a_mixture_is_the_tables_it_came_from(seed: int) -> None:
    corpus = Corpus(sampled(seed, 20))
    tables = dense_tables(corpus, seed)
    for smoothing in (NONE, SOME):
        back = Mixture.of(tables, smoothing, dtype=np.float64).tables()
        for part in PARTS:
            np.testing.assert_array_equal(getattr(back, part), getattr(tables, part))


def test_tables_that_are_not_probabilities_are_refused(small: Examples) -> None:
    tables, _ = spectral.estimate(EstimatorInputs(small, 1, 1), SpectralConfig(states=4))
    with pytest.raises(TrainingError, match=r"`\w+` with \d+ % of its magnitude negative: start"):
        Mixture.of(tables, SOME)


def test_tables_that_exclude_a_tree_are_refused() -> None:
    corpus = Corpus(sampled(1, 20))
    tables = dense_tables(corpus, 1)
    nowhere = replace(tables, c_one=np.zeros_like(tables.c_one))
    with pytest.raises(TrainingError, match="got one they give none: start from tables trained on"):
        expected(corpus, Mixture.of(nowhere, NONE), workers=1)


# The estimator ------------------------------------------------------------------------------------


def numbers(tables: Tables) -> list[bytes]:
    return [getattr(tables, part).tobytes() for part in PARTS]


def test_the_number_of_workers_changes_no_byte(small: Examples) -> None:
    config = EmConfig(states=4, steps=3)
    runs = [numbers(em.estimate(EstimatorInputs(small, 1, n), config)[0]) for n in (1, 1, 2, 3)]
    assert runs[1:] == runs[:1] * 3
    assert numbers(em.estimate(EstimatorInputs(small, 2, 1), config)[0]) != runs[0]


def climbing(
    small: Examples, choose: Callable[[Tables], float] | None, patience: int
) -> tuple[Tables, em.EmReport]:
    corpus = Corpus(small)
    mixture = started(corpus, 1, smoothing=SOME)
    inputs = EstimatorInputs(small, 1, 1, choose=choose)
    return climb(inputs, corpus, mixture, SOME, steps=6, patience=patience)


def test_em_keeps_the_best_step_and_stops_when_patience_ends(
    small: Examples,
) -> None:
    seen: list[Tables] = []
    scores = [1.0, 3.0, 2.0, 2.5, 9.0]

    def choose(tables: Tables) -> float:
        seen.append(tables)
        return scores[len(seen) - 1]

    tables, report = climbing(small, choose, patience=2)
    assert report.scores == (1.0, 3.0, 2.0, 2.5)
    assert report.steps == 1
    assert tables is seen[1]


def test_em_keeps_the_first_of_equally_good_steps(small: Examples) -> None:
    seen: list[Tables] = []

    def choose(tables: Tables) -> float:
        seen.append(tables)
        return [1.0, 3.0, 3.0, 3.0][len(seen) - 1]

    tables, report = climbing(small, choose, patience=2)
    assert report.scores == (1.0, 3.0, 3.0, 3.0)
    assert report.steps == 1
    assert tables is seen[1]


def test_without_patience_or_choice_all_steps_are_taken(small: Examples) -> None:
    def never(tables: Tables) -> float:
        raise AssertionError(tables)

    plain, report = climbing(small, None, patience=2)
    assert report.steps == len(report.log_likelihood) == 6
    assert report.scores == ()
    impatient, _ = climbing(small, never, patience=0)
    assert numbers(impatient) == numbers(plain)


def test_the_report_has_likelihoods_and_steps(small: Examples) -> None:
    tables, report = em.estimate(EstimatorInputs(small, 1, 1), EmConfig(states=2, steps=2))
    facts = report.facts(small.grammar)
    assert facts["states"] == tables.states.tolist()
    assert facts["terms"] == tables.terms.sum()
    assert facts["steps"] == 2
    assert facts["held_out_f1"] == []
    assert facts["log_likelihood"] == [pytest.approx(x, abs=0.01) for x in report.log_likelihood]


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ({"steps": -1}, "expected `steps` of at least 0, got -1: raise it"),
        ({"patience": -1}, "expected `patience` of at least 0, got -1: raise it"),
        ({"examples": 0}, "expected `examples` of at least 1, got 0: raise it"),
        ({"perturbation": 0.0}, "expected `perturbation` above 0 up to 1, got 0.0: without it"),
        ({"states": 0}, "expected `states` of at least 1, got 0: raise it"),
    ],
)
def test_settings_out_of_range_are_refused(setting: dict[str, float], problem: str) -> None:
    with pytest.raises(TrainingError, match=problem):
        EmConfig(**setting)  # type: ignore[arg-type]
