"""Random grammars and tables for tests. Like the oracles, this imports no engine."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.random import Generator

from lpcfg.grammar.tables import Doubles, Emissions, Grammar, Tables, frozen

WORDS = ("x", "y")


def random_grammar(
    rng: Generator, n_internal: int = 2, n_preterminals: int = 2, n_rules: int = 5
) -> Grammar:
    """Draw a grammar over WORDS whose first symbol derives the first word any number of times."""
    n = n_internal + n_preterminals
    rules = {(a, *rng.integers(n_internal, n, 2).tolist()) for a in range(n_internal)}
    rules.add((0, 0, n_internal))
    while len(rules) < n_rules:
        rules.add((int(rng.integers(0, n_internal)), *rng.integers(0, n, 2).tolist()))
    entries = [
        (a, x)
        for x in range(len(WORDS))
        for a in range(n_internal, n)
        if x == 0 or rng.random() < 0.8
    ]
    symbols = [f"I{a}" for a in range(n_internal)] + [f"P{a}" for a in range(n_preterminals)]
    return Grammar(tuple(symbols), n_internal, np.array(sorted(rules)), WORDS, np.array(entries))


def random_tables(
    rng: Generator, grammar: Grammar, max_states: int, *, signed: bool, max_terms: int | None = None
) -> Tables:
    """Draw tables of random numbers: dense tensors, or sums of up to max_terms rank-one terms."""
    states = rng.integers(1, max_states + 1, grammar.n_symbols)

    def numbers(*shape: int) -> Doubles:
        return rng.normal(size=shape) if signed else rng.random(shape)

    rules, preterminals = grammar.rules.tolist(), grammar.entries[:, 0].tolist()
    rows = [numbers(states[a]) for a in preterminals]
    roots = [numbers(states[a]) for a in range(grammar.n_symbols)]
    if max_terms is None:
        tensors = [numbers(*(states[s] for s in rule)) for rule in rules]
        return Tables.from_dense(grammar, states, tensors, rows, roots)
    terms = rng.integers(0, max_terms + 1, len(rules))
    sizes = [int(terms @ states[grammar.rules[:, side]]) for side in range(3)]
    return Tables(
        grammar, states, terms, *(numbers(size) for size in sizes),
        np.concatenate(rows), np.concatenate(roots),
    )  # fmt: skip


def random_emissions(rng: Generator, grammar: Grammar, tokens: Sequence[str]) -> Emissions:
    """Return the literal emissions of the tokens, with random weights."""
    literal = literal_emissions(grammar, tokens)
    weight = rng.random(len(literal.entry)) + 0.5
    return Emissions(literal.start, literal.symbol, literal.entry, weight)


def random_lpcfg(
    rng: Generator, grammar: Grammar, states: Sequence[int], *, concentration: float = 1.0
) -> Tables:
    """Draw a proper L-PCFG (t, q, π).

    With small `concentration`, distributions are far from uniform.
    """
    rules, entries = grammar.rules.tolist(), grammar.entries.tolist()
    shapes = [tuple(states[s] for s in rule) for rule in rules]
    t = [rng.gamma(concentration, size=shape) for shape in shapes]
    q = [rng.gamma(concentration, size=states[a]) for a, _ in entries]
    pi = [rng.gamma(concentration, size=m) for m in states]
    for a, m in enumerate(states):
        own_rules = [r for r, rule in enumerate(rules) if rule[0] == a]
        own_words = [e for e, entry in enumerate(entries) if entry[0] == a]
        total = np.zeros(m)
        total += sum(t[r].sum(axis=(1, 2)) for r in own_rules)
        total += sum(q[e] for e in own_words)
        for r in own_rules:
            t[r] /= total[:, None, None]
        for e in own_words:
            q[e] /= total
    mass = sum(vector.sum() for vector in pi)
    return Tables.from_dense(grammar, states, t, q, [vector / mass for vector in pi])


def random_bases(rng: Generator, states: Sequence[int]) -> list[Doubles]:
    """Draw random invertible matrices G^a with singular values in [1/2, 2]."""
    bases = []
    for m in states:
        u, _ = np.linalg.qr(rng.normal(size=(m, m)))
        v, _ = np.linalg.qr(rng.normal(size=(m, m)))
        bases.append(u @ np.diag(rng.uniform(0.5, 2.0, m)) @ v)
    return bases


def absolute(tables: Tables) -> Tables:
    """Return the magnitudes of C, c∞ and c¹, which sums could reach without cancelling."""
    grammar = tables.grammar
    return Tables.from_dense(
        grammar,
        tables.states,
        [np.abs(tables.dense(r)) for r in range(grammar.n_rules)],
        [np.abs(tables.terminal_vector(e)) for e in range(len(grammar.entries))],
        [np.abs(tables.root_vector(a)) for a in range(grammar.n_symbols)],
    )


def change_basis(tables: Tables, bases: Sequence[Doubles]) -> Tables:
    """Compute C(y¹, y²) = (T(y¹ G^b, y² G^c)) (G^a)⁻¹, c∞ = q (G^a)⁻¹, c¹ = G^a π (theorem 3)."""
    inverse = [np.linalg.inv(basis) for basis in bases]
    grammar = tables.grammar
    tensors = [
        np.einsum("ijk,ip,qj,rk->pqr", tables.dense(r), inverse[a], bases[b], bases[c])
        for r, (a, b, c) in enumerate(grammar.rules.tolist())
    ]
    rows = [
        tables.terminal_vector(e) @ inverse[a] for e, (a, _) in enumerate(grammar.entries.tolist())
    ]
    columns = [basis @ tables.root_vector(a) for a, basis in enumerate(bases)]
    return Tables.from_dense(grammar, tables.states, tensors, rows, columns)


@st.composite
def charts(draw: Any, max_words: int = 4) -> tuple[Tables, Emissions]:
    """Draw tables of any signs, dense or of few terms, and a short sentence."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    grammar = random_grammar(rng, draw(st.integers(1, 2)), draw(st.integers(1, 2)), 4)
    max_terms = draw(st.sampled_from([None, 3]))
    tables = random_tables(rng, grammar, 2, signed=draw(st.booleans()), max_terms=max_terms)
    tokens = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=max_words))
    return tables, random_emissions(rng, grammar, tokens)


def literal_emissions(grammar: Grammar, tokens: Sequence[str]) -> Emissions:
    """Build emissions where each token is its own terminal (no unknown words)."""
    entries: list[int] = []
    start = [0]
    for token in tokens:
        if token in grammar.terminals:
            x = grammar.terminals.index(token)
            entries.extend(range(grammar.entry_start[x], grammar.entry_start[x + 1]))
        start.append(len(entries))
    entry = np.array(entries, np.int32)
    return Emissions(
        start=frozen(np.array(start, np.int32)),
        symbol=frozen(grammar.entries[entry, 0]),
        entry=frozen(entry),
        weight=frozen(np.ones(len(entry))),
    )


def entry_name(grammar: Grammar, e: int) -> str:
    """Write `A → x` of an entry."""
    a, x = grammar.entries[e]
    return f"{grammar.symbols[a]} → {grammar.terminals[x]}"
