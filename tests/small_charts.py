"""Pruned charts of small random grammars, and what the exact engine says of their items."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.random import Generator

from lpcfg.engine.exact.inside_outside import inside, outside
from lpcfg.engine.exact.scaled import SignedLog
from lpcfg.engine.pruned import kernels
from lpcfg.engine.pruned.coarse import Coarse, ContextTables, Limits, Pruned, Thresholds, Unfinished
from lpcfg.grammar.tables import Emissions, Grammar, Tables
from lpcfg.kinds.constituency.model import coarse_tables
from tests.strategies_grammar import WORDS, random_emissions, random_grammar, random_tables

NOTHING_OUT = Thresholds(merit=0.0, item=math.ulp(0.0), edge=0.0)
"""Keeps every item and edge that has any probability."""
SINGLE = 2.0**-24
"""The relative error of one rounding to float32."""

Key = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Case:
    """A coarse grammar, members over it, and a sentence."""

    coarse: Tables
    members: tuple[Tables, ...]
    emissions: Emissions

    @property
    def grammar(self) -> Grammar:
        return self.coarse.grammar

    def prune(
        self, thresholds: Thresholds = NOTHING_OUT, limits: Limits | None = None
    ) -> Pruned | Unfinished:
        return coarse_of(self.coarse).prune(self.emissions, thresholds, limits)


def coarse_of(tables: Tables) -> Coarse:
    """Build the coarse pass of m = 1 tables in which every preterminal is a tag."""
    grammar = tables.grammar
    tags = grammar.n_symbols - grammar.n_internal
    context = ContextTables(
        transition=np.full((tags + 1, tags + 1), 1 / (tags + 1)),
        before=np.ones((tags + 1, grammar.n_symbols)),
        after=np.ones((tags + 1, grammar.n_symbols)),
    )
    tag = np.maximum(np.arange(grammar.n_symbols) - grammar.n_internal, 0).astype(np.int32)
    return Coarse(tables, context, tag, np.ones(grammar.n_symbols))


def random_coarse(rng: Generator, grammar: Grammar) -> Tables:
    """Draw m = 1 tables with every rule and, often, every root possible."""
    roots = rng.random(grammar.n_symbols) * (rng.random(grammar.n_symbols) < 0.8)
    roots[0] = rng.random() + 0.1
    return coarse_tables(grammar, rng.random(grammar.n_rules) + 0.05, roots)


def random_case(rng: Generator, words: Sequence[str], *, members: int = 1, states: int = 3) -> Case:
    """Draw members of any signs, dense or of few terms, that allow no root the coarse grammar does
    not.

    The words are of WORDS; one that no preterminal has becomes the first of these.
    """
    grammar = random_grammar(rng, int(rng.integers(1, 3)), int(rng.integers(1, 3)), 4)
    known = {WORDS[x] for x in grammar.entries[:, 1].tolist()}
    words = [word if word in known else WORDS[0] for word in words]
    coarse = random_coarse(rng, grammar)
    found = []
    for _ in range(members):
        signed, terms = bool(rng.integers(2)), [None, 3][int(rng.integers(2))]
        tables = random_tables(rng, grammar, states, signed=signed, max_terms=terms)
        roots = tables.c_one * np.repeat(coarse.c_one > 0, tables.states)
        found.append(replace(tables, c_one=roots))
    return Case(coarse, tuple(found), random_emissions(rng, grammar, words))


@st.composite
def cases(draw: Any, max_words: int = 5, members: int = 1) -> Case:
    """Draw small grammars of all kinds, and short sentences."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    words = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=max_words))
    return random_case(rng, words, members=members)


def item_keys(chart: kernels.Chart) -> list[Key]:
    """List (symbol, start, end) of every item."""
    columns = chart.symbol.tolist(), chart.start.tolist(), chart.end.tolist()
    return list(zip(*columns, strict=True))


def edge_keys(chart: kernels.Chart) -> list[Key]:
    """List (rule, start, split, end) of every edge."""
    above = np.repeat(np.arange(len(chart.symbol)), np.diff(chart.edge_start))
    columns = (chart.rule, chart.start[above], chart.end[chart.left], chart.end[above])
    return list(zip(*(column.tolist() for column in columns), strict=True))


@dataclass(frozen=True, eq=False)
class Exact:
    """The exact engine's p(x), and posteriors μ / p(x) by the keys of items and edges.

    Those that are zero are left out.
    """

    probability: SignedLog
    items: dict[Key, float]
    edges: dict[Key, float]


def exact(tables: Tables, emissions: Emissions) -> Exact:
    """Compute the exact engine's results for a sentence."""
    marginals = outside(inside(tables, emissions))
    n = emissions.length
    items: dict[Key, float] = {}
    edges: dict[Key, float] = {}
    for width in range(1, n + 1):
        for i, row in enumerate(marginals.spans(width).tolist()):
            items |= {(a, i, i + width): share for a, share in enumerate(row) if share}
        for split in range(1, width):
            for i, row in enumerate(marginals.rules(width, split).tolist()):
                place = i, i + split, i + width
                edges |= {(r, *place): share for r, share in enumerate(row) if share}
    return Exact(marginals.probability, items, edges)


def magnitudes(tables: Tables) -> Tables:
    """Return the tables without signs, whose sums bound what sums over the tables pass through."""
    sides = ("parent", "left", "right", "c_inf", "c_one")
    return replace(tables, **{side: np.abs(getattr(tables, side)) for side in sides})


def roundings(tables: Tables, chart: kernels.Chart) -> int:
    """Bound the float32 roundings that any one product of a derivation goes through.

    A node of a derivation costs, inside and outside, the roundings of its tables (2 a number: the
    division by the coarse grammar's and the conversion), two dot products and a scaled sum of at
    most m numbers, four products of weights, and sums over all terms of the edges below and above
    it. There are 2n - 1 nodes.
    """
    below = np.diff(chart.edge_start).max(initial=0)
    children = np.concatenate([chart.left, chart.right])
    above = np.bincount(children, minlength=1).max(initial=0)
    terms = int(tables.terms.max(initial=0))
    a_node = 2 * (6 + 3 * int(tables.states.max()) + 4 + terms * int(below + above))
    return int(2 * chart.end.max() - 1) * a_node


@contextmanager
def interpreted() -> Iterator[None]:
    """Run kernels as plain Python, so that arithmetic faults raise and coverage counts lines.

    A kernel's own `py_func` would call compiled helpers, which Python cannot call.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name, kernel in list(vars(kernels).items()):
            if hasattr(kernel, "py_func"):
                patch.setattr(kernels, name, kernel.py_func)
        yield
