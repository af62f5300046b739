"""The exact engine against enumeration, plain recursion, exact arithmetic and its own sum rules."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lpcfg.base.errors import InputError
from lpcfg.engine.exact.inside_outside import ExactMarginals, Gap, inside, outside, tree_probability
from lpcfg.engine.exact.scaled import SignedLog
from lpcfg.grammar.tables import Emissions, Grammar, Tables
from lpcfg.trees.brackets import parse_tree
from lpcfg.trees.tree import Tree
from tests import naive
from tests.strategies_grammar import (
    absolute,
    change_basis,
    charts,
    literal_emissions,
    random_bases,
    random_emissions,
    random_grammar,
    random_lpcfg,
    random_tables,
)

ROUNDING = 1e-13
"""Of some hundred roundings of 1.1e-16 each, relative to the sum of all magnitudes."""


def marginals_of(tables: Tables, emissions: Emissions) -> ExactMarginals:
    return outside(inside(tables, emissions))


# Figures 4 and 5 ----------------------------------------------------------------------------------


@given(charts())
@settings(max_examples=60)
def test_inside_outside_equals_enumeration_over_trees_and_states(
    chart: tuple[Tables, Emissions],
) -> None:
    tables, emissions = chart
    trees = naive.all_derivations(tables, emissions)
    spans, rules, words = naive.marginals(trees)
    magnitude = naive.recursive_inside(absolute(tables), emissions)
    computed = marginals_of(tables, emissions)
    n, grammar = emissions.length, tables.grammar

    def close(expected: float) -> object:
        return pytest.approx(expected, rel=0, abs=ROUNDING * magnitude)

    assert computed.probability.value == close(sum(p for _, p in trees))
    for start in range(n):
        for end in range(start + 1, n + 1):
            for a in range(grammar.n_symbols):
                expected = spans.get((a, start, end), 0.0)
                assert computed.span(a, start, end).value == close(expected)
            for split in range(start + 1, end):
                for r in range(grammar.n_rules):
                    expected = rules.get((r, start, split, end), 0.0)
                    assert computed.rule(r, start, split, end).value == close(expected)
    p = computed.probability.value
    for candidate, posterior in enumerate(computed.words()):
        assert posterior * p == close(words.get((candidate,), 0.0))


@given(charts())
@settings(max_examples=60)
def test_tree_probability_equals_enumeration_over_states(chart: tuple[Tables, Emissions]) -> None:
    tables, emissions = chart
    words = ["w"] * emissions.length
    magnitude = naive.recursive_inside(absolute(tables), emissions)
    for derivation, expected in naive.all_derivations(tables, emissions):
        computed = tree_probability(tables, naive.as_tree(tables, words, derivation), emissions)
        assert computed.missing == ()
        assert computed.probability.value == pytest.approx(
            expected, rel=0, abs=ROUNDING * magnitude
        )


@given(charts(max_words=9))
@settings(max_examples=60)
def test_inside_equals_plain_recursion(chart: tuple[Tables, Emissions]) -> None:
    tables, emissions = chart
    magnitude = naive.recursive_inside(absolute(tables), emissions)
    assert inside(tables, emissions).probability.value == pytest.approx(
        naive.recursive_inside(tables, emissions), rel=0, abs=ROUNDING * magnitude
    )


@given(charts())
@settings(max_examples=60)
def test_posteriors_are_raw_marginals_over_the_signed_probability(
    chart: tuple[Tables, Emissions],
) -> None:
    computed = marginals_of(*chart)
    p, n = computed.probability, computed.chart.length
    for width in range(1, n + 1):
        for (start, a), posterior in np.ndenumerate(computed.spans(width)):
            mu = computed.span(a, start, start + width)
            assert posterior == pytest.approx(ratio(mu, p), rel=1e-12)
        for split in range(1, width):
            for (start, r), posterior in np.ndenumerate(computed.rules(width, split)):
                mu = computed.rule(r, start, start + split, start + width)
                assert posterior == pytest.approx(ratio(mu, p), rel=1e-12)


def ratio(mu: SignedLog, p: SignedLog) -> float:
    return mu.sign * p.sign * math.exp(mu.log - p.log) if mu.sign and p.sign else 0.0


# Sum rules ----------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.booleans())
@settings(max_examples=40)
def test_marginals_add_up(seed: int, length: int, signed: bool) -> None:
    """Σ_a μ(a,i,i+1) = p(x) at every word; a span's μ is that of the rules below and above it."""
    rng = np.random.default_rng(seed)
    grammar = random_grammar(rng, 2, 2, 8)
    tables = random_tables(rng, grammar, 3, signed=signed)
    emissions = random_emissions(rng, grammar, ["x"] * length)
    computed = marginals_of(tables, emissions)
    n = computed.chart.length
    below = [np.zeros_like(computed.spans(width)) for width in range(1, n + 1)]
    above = [np.zeros_like(spans) for spans in below]
    for width in range(2, n + 1):
        for split in range(1, width):
            posterior = computed.rules(width, split)
            for r, (a, b, c) in enumerate(grammar.rules.tolist()):
                below[width - 1][:, a] += posterior[:, r]
                above[split - 1][: n - width + 1, b] += posterior[:, r]
                above[width - split - 1][split:, c] += posterior[:, r]
    position = np.repeat(np.arange(n), np.diff(emissions.start))
    np.add.at(below[0], (position, emissions.symbol), computed.words())
    above[n - 1] = computed.spans(n)
    # Posteriors of signed tables may be large and cancel: rounding is relative to the largest.
    scale = 1e-11 * max(1.0, *(np.abs(spans).max() for spans in (*below, *above)))
    assert np.allclose(computed.spans(1).sum(axis=1), 1.0, rtol=0, atol=scale)
    assert np.allclose(computed.spans(n).sum(), 1.0, rtol=0, atol=scale)
    for width in range(1, n + 1):
        assert np.allclose(below[width - 1], computed.spans(width), rtol=0, atol=scale)
        assert np.allclose(above[width - 1], computed.spans(width), rtol=0, atol=scale)


# m = 1 --------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.lists(st.sampled_from("xy"), min_size=1, max_size=8))
@settings(max_examples=60)
def test_one_latent_state_reduces_to_plain_pcfg(seed: int, tokens: list[str]) -> None:
    rng = np.random.default_rng(seed)
    grammar = random_grammar(rng, 2, 2, 6)
    tables = random_lpcfg(rng, grammar, [1] * grammar.n_symbols)
    p = inside(tables, literal_emissions(grammar, tokens)).probability
    assert p.value == pytest.approx(plain(tables).inside(tokens), rel=1e-12)


def plain(tables: Tables) -> naive.Pcfg:
    """Write tables with m = 1 as a plain PCFG."""
    grammar, names = tables.grammar, tables.grammar.symbols
    return naive.Pcfg(
        rules={
            (names[a], names[b], names[c]): tables.dense(r).item()
            for r, (a, b, c) in enumerate(grammar.rules.tolist())
        },
        words={
            (names[a], grammar.terminals[x]): tables.terminal_vector(e).item()
            for e, (a, x) in enumerate(grammar.entries.tolist())
        },
        roots={name: tables.root_vector(a).item() for a, name in enumerate(names)},
    )


# Long sentences -----------------------------------------------------------------------------------


def log_of(number: Fraction) -> float:
    """Compute the natural log of a positive fraction beyond float's range."""
    return math.log(number.numerator) - math.log(number.denominator)


LEAST_LOG = -745.2
"""Below the log of the least number float64 can hold: the test shows that scaling is needed."""


def test_300_words_equal_the_count_of_binary_trees() -> None:
    """S → S S | x, its words under A: p(x) = Catalan(n - 1) t^(n-1) q^n."""
    grammar = Grammar(
        ("S", "A"), 1, np.array([(0, b, c) for b in (0, 1) for c in (0, 1)]), ("x",), [(1, 0)]
    )
    t, q = Fraction(1, 16), Fraction(1, 4)
    tables = Tables.from_dense(
        grammar, [1, 1], [np.full((1, 1, 1), float(t))] * 4, [[float(q)]], [[1.0], [0.0]]
    )
    n = 300
    catalan = math.comb(2 * (n - 1), n - 1) // n
    computed = marginals_of(tables, literal_emissions(grammar, ["x"] * n))
    assert computed.probability.sign == 1
    assert computed.probability.log < LEAST_LOG
    # A log near -700 is rounded to 1.1e-13; sums of positive numbers do the rest.
    assert computed.probability.log == pytest.approx(
        log_of(catalan * t ** (n - 1) * q**n), abs=1e-11
    )
    assert np.allclose(computed.spans(1)[:, 1], 1.0, rtol=0, atol=1e-11)
    inner = (computed.spans(width)[:, 0].sum() for width in range(2, n + 1))
    assert sum(inner) == pytest.approx(n - 1, rel=1e-11)


@pytest.mark.parametrize("flip", [1, -1])
def test_300_words_equal_a_hidden_markov_chain_in_fractions(flip: int) -> None:
    """S → A S | A A is a chain; each word may flip the sign of p(x)."""
    rng = np.random.default_rng(300)
    grammar = Grammar(("S", "A"), 1, [(0, 1, 0), (0, 1, 1)], ("x", "y"), [(1, 0), (1, 1)])
    states = [2, 2]
    drawn = random_lpcfg(rng, grammar, states)
    rounded = [np.round(drawn.dense(r) * 64) / 64 for r in range(2)]  # exact in float and Fraction
    q = [np.array([0.125, 0.0625]), flip * np.array([0.25, 0.03125])]
    tables = Tables.from_dense(grammar, states, rounded, q, [[0.5, 0.25], [0.0, 0.0]])
    tokens = rng.choice(["x", "y"], 300).tolist()

    def exact(array: np.ndarray) -> np.ndarray:
        return np.vectorize(Fraction, otypes=[object])(array)

    recursive, last = (exact(tensor) for tensor in rounded)
    vectors = [exact(q["xy".index(token)]) for token in tokens]
    f = last @ vectors[-1] @ vectors[-2]
    for vector in reversed(vectors[:-2]):
        f = recursive @ f @ vector
    expected = f @ exact(np.array([0.5, 0.25]))
    p = inside(tables, literal_emissions(grammar, tokens)).probability
    assert p.log < LEAST_LOG
    assert p.sign == (flip ** tokens.count("y"))
    assert p.log == pytest.approx(log_of(abs(expected)), abs=1e-11)


def test_300_words_equal_a_computation_in_logs() -> None:
    rng = np.random.default_rng(17)
    grammar = random_grammar(rng, 1, 1, 3)
    tables = random_lpcfg(rng, grammar, [2, 2])
    emissions = random_emissions(rng, grammar, rng.choice(["x", "y"], 300).tolist())
    emissions = replace(emissions, weight=emissions.weight / 8)
    p = inside(tables, emissions).probability
    assert p.log < LEAST_LOG
    assert p.log == pytest.approx(naive.log_inside(tables, emissions), rel=1e-12)


def test_scale_of_the_tables_does_not_matter() -> None:
    """Tables far from 1, of either sign, at lengths where p(x) leaves float64's range both ways."""
    rng = np.random.default_rng(5)
    grammar = random_grammar(rng, 2, 2, 6)
    tables = random_tables(rng, grammar, 2, signed=True)
    emissions = random_emissions(rng, grammar, ["x"] * 12)
    base = marginals_of(tables, emissions)
    for factor in (1e-80, 1e80):
        scaled = marginals_of(tables, replace(emissions, weight=emissions.weight * factor))
        assert scaled.probability.sign == base.probability.sign
        assert scaled.probability.log == pytest.approx(
            base.probability.log + 12 * math.log(factor), rel=1e-12
        )
        for width in range(1, 13):
            assert np.allclose(scaled.spans(width), base.spans(width), rtol=1e-9, atol=1e-12)


# Edges --------------------------------------------------------------------------------------------


def test_one_word_is_its_preterminals_root_weight() -> None:
    grammar = Grammar(("S", "A", "B"), 1, [(0, 1, 2)], ("x",), [(1, 0), (2, 0)])
    tables = Tables.from_dense(
        grammar, [1, 2, 1], [np.ones((1, 2, 1))], [[1.0, 2.0], [3.0]], [[9.0], [0.5, -1.0], [0.25]]
    )
    computed = marginals_of(tables, literal_emissions(grammar, ["x"]))
    assert computed.probability == SignedLog(-1, pytest.approx(math.log(0.75)))
    assert computed.spans(1).tolist() == [[0.0, 2.0, -1.0]]
    assert computed.words().tolist() == [2.0, -1.0]


def test_a_grammar_without_rules_parses_single_words_only() -> None:
    grammar = Grammar(("A",), 0, np.empty((0, 3)), ("x",), [(0, 0)])
    tables = Tables.from_dense(grammar, [1], [], [[0.5]], [[1.0]])
    assert inside(tables, literal_emissions(grammar, ["x"])).probability.value == 0.5
    assert inside(tables, literal_emissions(grammar, ["x", "x"])).probability.sign == 0


NO_PARSE = {"an unknown word": ["x", "z"], "no tree so short": ["x"], "no such order": ["y", "x"]}


@pytest.mark.parametrize("tokens", NO_PARSE.values(), ids=NO_PARSE)
def test_a_sentence_without_parse_has_probability_zero_and_zero_posteriors(
    tokens: list[str],
) -> None:
    grammar = Grammar(("S", "A", "B"), 1, [(0, 1, 2)], ("x", "y"), [(1, 0), (2, 1)])
    tables = random_lpcfg(np.random.default_rng(0), grammar, [2, 2, 2])
    tables = replace(tables, c_one=np.array([1.0, 0, 0, 0, 0, 0]))
    computed = marginals_of(tables, literal_emissions(grammar, tokens))
    assert computed.probability == SignedLog(0, -math.inf)
    assert computed.probability.value == 0.0
    for width in range(1, len(tokens) + 1):
        assert not computed.spans(width).any()
        for split in range(1, width):
            assert not computed.rules(width, split).any()
    assert not computed.words().any()


def test_signs_may_cancel_to_a_probability_of_zero() -> None:
    """μ(a, i, j) stays what it is; there is no posterior of an impossible sentence."""
    grammar = Grammar(("A", "B"), 0, np.empty((0, 3)), ("x",), [(0, 0), (1, 0)])
    tables = Tables.from_dense(grammar, [1, 1], [], [[0.5], [-0.5]], [[1.0], [1.0]])
    computed = marginals_of(tables, literal_emissions(grammar, ["x"]))
    assert computed.probability.sign == 0
    assert [computed.span(a, 0, 1).value for a in (0, 1)] == [0.5, -0.5]
    assert computed.spans(1).tolist() == [[0.0, 0.0]]


def test_two_candidates_of_one_preterminal_add_up() -> None:
    grammar = Grammar(("A",), 0, np.empty((0, 3)), ("x", "y"), [(0, 0), (0, 1)])
    tables = Tables.from_dense(grammar, [1], [], [[0.5], [0.25]], [[1.0]])
    both = Emissions(
        np.array([0, 2], np.int32),
        np.array([0, 0], np.int32),
        np.array([0, 1], np.int32),
        np.array([1.0, 2.0]),
    )
    computed = marginals_of(tables, both)
    assert computed.probability.value == 1.0
    assert computed.words().tolist() == [0.5, 0.5]
    assert tree_probability(tables, Tree("A", word="x"), both).probability.value == 1.0


def test_no_words_are_refused() -> None:
    grammar = Grammar(("A",), 0, np.empty((0, 3)), ("x",), [(0, 0)])
    tables = Tables.from_dense(grammar, [1], [], [[0.5]], [[1.0]])
    with pytest.raises(InputError, match="expected a sentence of at least one word, got none"):
        inside(tables, literal_emissions(grammar, []))


def test_float32_tables_are_computed_with_in_float64() -> None:
    rng = np.random.default_rng(2)
    grammar = random_grammar(rng)
    wide = random_lpcfg(rng, grammar, [2] * grammar.n_symbols)
    sides = {name: getattr(wide, name).astype(np.float32) for name in FLOAT_FIELDS}
    narrow = replace(wide, **sides)
    same = replace(wide, **{name: side.astype(np.float64) for name, side in sides.items()})
    emissions = literal_emissions(grammar, ["x"] * 5)
    assert inside(narrow, emissions).probability == inside(same, emissions).probability


FLOAT_FIELDS = ("parent", "left", "right", "c_inf", "c_one")


# Trees that cannot be built -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def dog_tables() -> Tables:
    grammar = Grammar(
        ("NP", "S", "D", "N", "V"),
        2,
        [(0, 2, 3), (1, 0, 4)],
        ("barks", "dog", "the"),
        [(4, 0), (3, 1), (2, 2)],
    )
    tables = random_lpcfg(np.random.default_rng(1), grammar, [2] * 5)
    return replace(tables, c_one=np.array([0, 0, 0.5, 0.5, 0, 0, 0, 0, 0, 0]))


MISSING = {
    "(S (NP (D the) (N dog)) (V barks))": [],
    "(S (NP (D the) (N cat)) (V barks))": [Gap("word", "N → cat", 1, 2)],
    "(S (NP (D the) (V dog)) (V barks))": [
        Gap("rule", "NP → D V", 0, 2),
        Gap("word", "V → dog", 1, 2),
    ],
    "(S (NP (D the) (N dog)) (ADV barks))": [
        Gap("rule", "S → NP ADV", 0, 3),
        Gap("word", "ADV → barks", 2, 3),
    ],
    "(NP (D the) (N dog))": [Gap("root", "NP", 0, 2)],
    "(X (D the) (N dog))": [Gap("rule", "X → D N", 0, 2)],
    "(NP (D the) (NP (D the) (N dog)))": [
        Gap("root", "NP", 0, 3),
        Gap("rule", "NP → D NP", 0, 3),
    ],
}


@pytest.mark.parametrize("brackets", MISSING)
def test_a_tree_that_cannot_be_built_says_what_is_missing(
    dog_tables: Tables, brackets: str
) -> None:
    tree = parse_tree(brackets)
    emissions = literal_emissions(dog_tables.grammar, tree.tokens())
    computed = tree_probability(dog_tables, tree, emissions)
    assert list(computed.missing) == MISSING[brackets]
    assert computed.probability.sign == (0 if MISSING[brackets] else 1)


def test_the_only_tree_of_a_sentence_has_its_probability(dog_tables: Tables) -> None:
    tree = parse_tree("(S (NP (D the) (N dog)) (V barks))")
    emissions = literal_emissions(dog_tables.grammar, tree.tokens())
    p = tree_probability(dog_tables, tree, emissions).probability
    assert p.log == pytest.approx(inside(dog_tables, emissions).probability.log, abs=1e-14)


@pytest.mark.parametrize(
    ("brackets", "words", "message"),
    [
        ("(S (NP (D the) (N dog)))", 2, "two children under 'S', got 1: binarize the tree first"),
        (
            "(S (NP (D the) (N dog)) (V barks))",
            2,
            "a tree over 2 words, got 3: give the tree's own",
        ),
        (
            "(S (NP (D the) (N dog)) (V barks))",
            4,
            "a tree over 4 words, got 3: give the tree's own",
        ),
    ],
)
def test_a_tree_of_the_wrong_shape_is_refused(
    dog_tables: Tables, brackets: str, words: int, message: str
) -> None:
    emissions = literal_emissions(dog_tables.grammar, ["the"] * words)
    with pytest.raises(InputError, match=message):
        tree_probability(dog_tables, parse_tree(brackets), emissions)


def test_a_tree_300_words_deep_has_its_probability() -> None:
    rng = np.random.default_rng(9)
    grammar = Grammar(("S", "A"), 1, [(0, 1, 0), (0, 1, 1)], ("x",), [(1, 0)])
    tables = random_lpcfg(rng, grammar, [2, 3])
    tree = Tree("S", (Tree("A", word="x"), Tree("A", word="x")))
    for _ in range(298):
        tree = Tree("S", (Tree("A", word="x"), tree))
    emissions = literal_emissions(grammar, ["x"] * 300)
    p = tree_probability(tables, tree, emissions).probability  # the only tree there is
    assert p.log == pytest.approx(inside(tables, emissions).probability.log, abs=1e-11)


# Bases --------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.integers(1, 8))
@settings(max_examples=40)
def test_a_basis_change_changes_no_output(seed: int, length: int) -> None:
    rng = np.random.default_rng(seed)
    grammar = random_grammar(rng, 2, 2, 6)
    tables = random_tables(rng, grammar, 3, signed=False)
    tables = change_basis(tables, random_bases(rng, tables.states.tolist()))
    emissions = random_emissions(rng, grammar, ["x"] * length)
    before = marginals_of(tables, emissions)
    changed = change_basis(tables, random_bases(rng, tables.states.tolist()))
    after = marginals_of(changed, emissions)
    assert after.probability.sign == before.probability.sign
    assert after.probability.log == pytest.approx(before.probability.log, abs=1e-9)
    assert np.allclose(after.words(), before.words(), rtol=1e-9, atol=1e-12)
    for width in range(1, length + 1):
        assert np.allclose(after.spans(width), before.spans(width), rtol=1e-9, atol=1e-12)
        for split in range(1, width):
            assert np.allclose(
                after.rules(width, split), before.rules(width, split), rtol=1e-9, atol=1e-12
            )
