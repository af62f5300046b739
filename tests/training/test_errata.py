"""Errors in the papers that this code does not copy (listed in lpcfg.grammar.tables).

That all nodes are examples, and not one random node per tree, is tested in test_theory.
"""

from dataclasses import replace

import numpy as np
import pytest
from numpy.random import Generator

from lpcfg.grammar.known import enumerate_trees
from lpcfg.grammar.tables import Doubles, Grammar, Tables
from tests.strategies_grammar import random_lpcfg

FULL = Grammar(
    symbols=("S", "P"),
    n_internal=1,
    rules=np.array([(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1)], np.int32),
    terminals=("x", "y"),
    entries=np.array([(1, 0), (1, 1)], np.int32),
)
"""A grammar with every rule over S and P, as lemma 12 assumes."""
STATES = [2, 2]


def perturbed(rng: Generator, tables: Tables, size: float) -> Tables:
    """Add noise of at most this size to every number of C, c∞ and c¹."""
    dense = [tables.dense(r) for r in range(tables.grammar.n_rules)]

    def noisy(numbers: Doubles) -> Doubles:
        return numbers + rng.uniform(-size, size, numbers.shape)

    made = Tables.from_dense(
        tables.grammar, tables.states, map(noisy, dense), [noisy(tables.c_inf)], [tables.c_one]
    )
    return replace(made, c_one=noisy(tables.c_one))


def bound(true: Tables, estimate: Tables, rules: int, words: int) -> float:
    """Compute lemma 12's bound with these exponents of 1 + Δ/γ and of 1 + δ, where G^a = I."""
    m = int(true.states.max())
    t = [true.dense(r) for r in range(true.grammar.n_rules)]
    gamma = min(float(one.min()) for one in t)
    delta_c = max(
        float(np.linalg.norm(estimate.dense(r)[i] - one[i], 2))
        for r, one in enumerate(t)
        for i in range(len(one))
    )
    q = np.abs(estimate.c_inf - true.c_inf).reshape(-1, m)
    delta = float(q.sum(axis=0).max())
    kappa = float(np.abs(estimate.c_one - true.c_one)[:m].sum())
    return m * ((1 + kappa) * (1 + delta_c / gamma) ** rules * (1 + delta) ** words - 1)


def error(true: Tables, estimate: Tables, words: int) -> float:
    """Compute Σ |p̂(t) − p(t)| over all trees under S with so many words."""
    both = (dict(enumerate_trees(tables, words)) for tables in (true, estimate))
    p, p_hat = ({tree: value for tree, value in one.items() if tree.label == "S"} for one in both)
    trees = [tree for tree in {**p, **p_hat} if len(tree.tokens()) == words]
    return sum(abs(p_hat.get(tree, 0.0) - p.get(tree, 0.0)) for tree in trees)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("rules", [1, 2, 3])
def test_lemma_12_holds_with_the_exponents_of_its_proof(rules: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    true = random_lpcfg(rng, FULL, STATES, concentration=5.0)
    estimate = perturbed(rng, true, 1e-3)
    found = error(true, estimate, rules + 1)
    assert 0 < found <= bound(true, estimate, rules, rules + 1)


def test_lemma_12_fails_with_the_exponents_of_its_statement() -> None:
    """A tree of N = 1 rule has N + 1 = 2 words: with m = 1 the proof's bound is attained."""
    grammar = Grammar(("S", "P"), 1, np.array([(0, 1, 1)]), ("x",), np.array([(1, 0)]))
    ones = [np.ones(1), np.zeros(1)]
    true = Tables.from_dense(grammar, [1, 1], [np.ones((1, 1, 1))], [np.ones(1)], ones)
    estimate = Tables.from_dense(
        grammar,
        [1, 1],
        [np.full((1, 1, 1), 1.1)],
        [np.full(1, 1.2)],
        [np.full(1, 1.3), np.zeros(1)],
    )
    found = error(true, estimate, 2)
    assert found == pytest.approx(bound(true, estimate, rules=1, words=2))
    assert found > bound(true, estimate, rules=0, words=1)
