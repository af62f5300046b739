"""Symbols, rules and tables: what they hold, how they are found by name, what is refused."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lpcfg.base.errors import GrammarError
from lpcfg.grammar.tables import Grammar, Tables, frozen
from tests.strategies_grammar import entry_name, literal_emissions, random_grammar, random_tables


def dog_grammar() -> Grammar:
    return Grammar(
        symbols=("NP", "S", "D", "N", "V"),
        n_internal=2,
        rules=[(0, 2, 3), (1, 0, 4)],
        terminals=("barks", "dog", "the"),
        entries=[(4, 0), (3, 1), (4, 1), (2, 2)],
    )


def dog_tables() -> Tables:
    return random_tables(np.random.default_rng(0), dog_grammar(), 3, signed=True)


def test_rules_and_words_are_found_by_name() -> None:
    grammar = dog_grammar()
    assert (grammar.n_symbols, grammar.n_rules) == (5, 2)
    assert grammar.symbol_ids["N"] == 3
    assert grammar.rule_ids[1, 0, 4] == 1
    assert grammar.entry_ids[4, 1] == 2
    assert grammar.rule_name(1) == "S → NP V"
    assert entry_name(grammar, 3) == "D → the"


def test_entries_of_a_terminal_are_contiguous() -> None:
    assert dog_grammar().entry_start.tolist() == [0, 1, 3, 4]


def test_a_grammar_may_be_empty() -> None:
    grammar = Grammar((), 0, [], (), [])
    tables = Tables.from_dense(grammar, [], [], [], [])
    assert (tables.parent.size, tables.c_inf.size, tables.c_one.size) == (0, 0, 0)
    assert grammar.entry_start.tolist() == [0]


def test_arrays_are_frozen() -> None:
    grammar, tables = dog_grammar(), dog_tables()
    mine = np.arange(3)
    assert frozen(frozen(mine)).flags.writeable is False
    assert mine.flags.writeable
    for array in (grammar.rules, grammar.entries, grammar.entry_start, tables.states, tables.left):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


GRAMMARS: dict[str, tuple[dict[str, Any], str]] = {
    "symbol twice": (
        {"symbols": ("NP", "S", "D", "NP", "V")},
        "expected distinct symbols, got `NP` twice: merge the two",
    ),
    "terminal twice": (
        {"terminals": ("dog", "dog", "the")},
        "expected distinct terminals, got `dog` twice: merge the two",
    ),
    "more in-terminals than symbols": (
        {"n_internal": 6},
        "expected between 0 and 5 in-terminals among 5 symbols, got 6",
    ),
    "fewer in-terminals than none": (
        {"n_internal": -1},
        "expected between 0 and 5 in-terminals among 5 symbols, got -1",
    ),
    "preterminal with children": (
        {"rules": [(0, 2, 3), (2, 0, 4)]},
        "expected a parent in-terminal below 2 in rule 1, got 2",
    ),
    "unknown left child": (
        {"rules": [(0, 5, 3)]},
        "expected a left child below 5 in rule 0, got 5",
    ),
    "negative right child": (
        {"rules": [(0, 2, -1)]},
        "expected a right child below 5 in rule 0, got -1",
    ),
    "unknown preterminal": (
        {"entries": [(5, 0)]},
        "expected a preterminal below 5 in entry 0, got 5",
    ),
    "unknown terminal": (
        {"entries": [(4, 0), (4, 3)]},
        "expected a terminal below 3 in entry 1, got 3",
    ),
    "in-terminal with a word": (
        {"entries": [(4, 0), (1, 1)]},
        "expected a preterminal on the left of entry 1, got the in-terminal `S`: "
        "a symbol has words or children, not both",
    ),
    "rules in disorder": (
        {"rules": [(1, 0, 4), (0, 2, 3)]},
        "expected rules sorted by (parent, left, right) without repetition: sort them",
    ),
    "rule twice": (
        {"rules": [(0, 2, 3), (0, 2, 3)]},
        "expected rules sorted by (parent, left, right) without repetition: sort them",
    ),
    "entries in disorder": (
        {"entries": [(4, 1), (3, 1)]},
        "expected entries sorted by (terminal, preterminal) without repetition: sort them",
    ),
}


@pytest.mark.parametrize(("change", "message"), GRAMMARS.values(), ids=GRAMMARS)
def test_a_contradictory_grammar_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(GrammarError) as refusal:
        replace(dog_grammar(), **change)
    assert str(refusal.value) == message


# Tables -------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1))
def test_dense_tensors_are_carried_exactly(seed: int) -> None:
    """Also tensors with zeros, which become no terms: at most the product of two sizes remain."""
    rng = np.random.default_rng(seed)
    grammar = random_grammar(rng)
    states = rng.integers(1, 4, grammar.n_symbols)
    shapes = [tuple(states[symbol] for symbol in rule) for rule in grammar.rules]
    tensors = [rng.normal(size=shape) * (rng.random(shape) < 0.7) for shape in shapes]
    rows = [rng.normal(size=states[a]) for a in grammar.entries[:, 0]]
    columns = [rng.normal(size=m) for m in states]
    tables = Tables.from_dense(grammar, states, tensors, rows, columns)
    for r, tensor in enumerate(tensors):
        assert np.array_equal(tables.dense(r), tensor)
        assert tables.terms[r] <= tensor.size // max(tensor.shape)
        assert [side.shape for side in tables.rule(r)] == [
            (tables.terms[r], m) for m in tensor.shape
        ]
    for e, row in enumerate(rows):
        assert np.array_equal(tables.terminal_vector(e), row)
    for a, column in enumerate(columns):
        assert np.array_equal(tables.root_vector(a), column)


def test_terms_add_up_to_the_tensor() -> None:
    tables = random_tables(np.random.default_rng(3), dog_grammar(), 3, signed=True, max_terms=4)
    for r in range(2):
        parent, left, right = tables.rule(r)
        total = np.zeros((parent.shape[1], left.shape[1], right.shape[1]))
        for t in range(len(parent)):
            total += np.multiply.outer(np.multiply.outer(parent[t], left[t]), right[t])
        assert np.allclose(tables.dense(r), total, rtol=1e-14, atol=1e-15)


def test_a_rule_without_terms_is_a_tensor_of_zeros() -> None:
    full = dog_tables()
    sides = {name: np.empty(0) for name in ("parent", "left", "right")}
    tables = replace(full, terms=np.zeros(2, np.int32), **sides)
    assert not tables.dense(1).any()
    assert tables.dense(1).shape == full.dense(1).shape


def test_a_tensor_of_zeros_has_no_terms() -> None:
    grammar = Grammar(("S", "A"), 1, [(0, 1, 1)], ("x",), [(1, 0)])
    tables = Tables.from_dense(
        grammar, [2, 3], [np.zeros((2, 3, 3))], [[1, 2, 3]], [[1, 0], [0] * 3]
    )
    assert tables.terms.tolist() == [0]


TABLES: dict[str, tuple[Callable[[Tables], dict[str, Any]], str]] = {
    "states of another grammar": (
        lambda _: {"states": [1, 2]},
        "expected `states` of shape (5,), got (2,): the tables belong to another grammar",
    ),
    "terms of another grammar": (
        lambda _: {"terms": [1, 1, 1]},
        "expected `terms` of shape (2,), got (3,): the tables belong to another grammar",
    ),
    "no state": (
        lambda _: {"states": [1, 1, 1, 0, 1]},
        "expected at least one latent state for `N`, got 0",
    ),
    "negative terms": (
        lambda _: {"terms": [1, -1]},
        "expected no negative number of terms for `S → NP V`, got -1",
    ),
    "too few numbers": (
        lambda tables: {"left": tables.left[:-1]},
        "expected {left} numbers in `left`, got shape ({one_less},): publish the model again",
    ),
    "not a number": (
        lambda tables: {"c_one": np.where(np.arange(tables.c_one.size) == 1, np.nan, 1.0)},
        "expected finite numbers in `c_one`, got nan at 1: train again",
    ),
    "infinity": (
        lambda tables: {"c_inf": np.full(tables.c_inf.size, np.inf)},
        "expected finite numbers in `c_inf`, got inf at 0: train again",
    ),
}


@pytest.mark.parametrize(("change", "message"), TABLES.values(), ids=TABLES)
def test_contradictory_tables_are_refused(
    change: Callable[[Tables], dict[str, Any]], message: str
) -> None:
    tables = dog_tables()
    with pytest.raises(GrammarError) as refusal:
        replace(tables, **change(tables))
    size = tables.left.size
    assert str(refusal.value) == message.format(left=size, one_less=size - 1)


# Emissions ----------------------------------------------------------------------------------------


def test_literal_emissions_are_the_entries_of_each_word() -> None:
    emissions = literal_emissions(dog_grammar(), ["the", "cat", "dog"])
    assert emissions.length == 3
    assert emissions.start.tolist() == [0, 1, 1, 3]
    assert emissions.symbol.tolist() == [2, 3, 4]
    assert emissions.entry.tolist() == [3, 1, 2]
    assert emissions.weight.tolist() == [1.0, 1.0, 1.0]


def test_literal_emissions_of_no_words_are_empty() -> None:
    emissions = literal_emissions(dog_grammar(), [])
    assert emissions.length == 0
    assert emissions.symbol.tolist() == []
