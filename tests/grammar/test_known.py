"""Known L-PCFGs: read, sampled from, enumerated."""

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import lpcfg.grammar.known
from lpcfg.base.errors import GrammarError, InputError
from lpcfg.engine.exact.inside_outside import tree_probability
from lpcfg.grammar.known import check_probabilities, enumerate_trees, read_lpcfg, sample_trees
from lpcfg.grammar.tables import Grammar, Tables
from lpcfg.trees.tree import Tree
from tests import naive
from tests.strategies_grammar import literal_emissions, random_grammar, random_lpcfg, random_tables

TWO_STATE = Path(__file__).resolve().parents[2] / "examples" / "two_state.toml"


# Sampling -----------------------------------------------------------------------------------------


def chain(again: float, roots: tuple[float, float] = (1.0, 0.0)) -> Tables:
    """Build a grammar of chains: S → A S with probability `again`, else S → A A. A tree of n words
    has again^(n-2).
    """
    grammar = Grammar(("S", "A"), 1, [(0, 1, 0), (0, 1, 1)], ("x",), [(1, 0)])
    tensors = [np.full((1, 1, 1), p) for p in (again, 1 - again)]
    return Tables.from_dense(grammar, [1, 1], tensors, [[1.0]], [[roots[0]], [roots[1]]])


def test_frequencies_are_the_probabilities_of_figure_4() -> None:
    tables = read_lpcfg(TWO_STATE)
    count = 30_000
    seen = Counter(sample_trees(tables, count, seed=1))
    p = dict(enumerate_trees(tables, max_words=5))
    assert set(seen) <= set(p)
    chi_squared = sum((seen[tree] - count * p[tree]) ** 2 / (count * p[tree]) for tree in p)
    freedom = len(p) - 1
    # Mean `freedom`, variance 2 × freedom: four standard deviations, for a seed that is fixed.
    assert abs(chi_squared - freedom) < 4 * (2 * freedom) ** 0.5


def test_sampled_lengths_follow_the_recursive_grammar() -> None:
    count = 20_000
    lengths = Counter(len(tree.tokens()) for tree in sample_trees(chain(0.5), count, seed=2))
    for n in (2, 3, 4, 5):
        p = 0.5 ** (n - 1)
        assert lengths[n] == pytest.approx(count * p, abs=4 * (count * p * (1 - p)) ** 0.5)


def test_a_preterminal_may_be_the_root() -> None:
    trees = Counter(sample_trees(chain(0.5, (0.25, 0.75)), 10_000, seed=3))
    expected = 10_000 * 0.75
    assert trees[Tree("A", word="x")] == pytest.approx(expected, abs=4 * (expected / 4) ** 0.5)


def test_samples_are_repeatable() -> None:
    tables = read_lpcfg(TWO_STATE)
    first, again, other = (list(sample_trees(tables, 50, seed=seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_longer_trees_are_drawn_again() -> None:
    lengths = Counter(len(t.tokens()) for t in sample_trees(chain(0.9), 3000, seed=4, max_words=3))
    p = 0.1 / (0.1 + 0.9 * 0.1)  # of two words, given two or three
    assert set(lengths) == {2, 3}
    assert lengths[2] == pytest.approx(3000 * p, abs=4 * (3000 * p * (1 - p)) ** 0.5)


def test_trees_that_are_always_longer_are_an_error() -> None:
    with pytest.raises(InputError, match="expected trees of at most 1 words, got 1000 longer ones"):
        next(sample_trees(chain(0.5), 1, seed=0, max_words=1))


def test_trees_that_never_end_are_an_error() -> None:
    with pytest.raises(InputError, match="give recursive rules less probability"):
        next(sample_trees(chain(1.0), 1, seed=0, max_words=50))


def test_long_trees_do_not_need_the_interpreters_stack() -> None:
    (tree,) = sample_trees(chain(0.9999), 1, seed=1, max_words=100_000)
    assert len(tree.tokens()) > sys.getrecursionlimit()


# Probabilities ------------------------------------------------------------------------------------


def test_random_lpcfgs_are_proper() -> None:
    rng = np.random.default_rng(0)
    grammar = random_grammar(rng)
    check_probabilities(random_lpcfg(rng, grammar, [2] * grammar.n_symbols))


IMPROPER = {
    "rules": (
        {"t": 0.8},
        r"expected the probabilities in `t` of state 0 of `S` to sum to 1 within 1e-06, got 0\.8:",
    ),
    "negative rule": ({"t": -0.5}, "expected probabilities, got -0.5 in `t` of state 0 of `S`:"),
    "words": (
        {"q": 1.5},
        r"expected the probabilities in `q` of state 0 of `A` to sum to 1 within 1e-06, got 1\.5:",
    ),
    "negative word": ({"q": -1.0}, "expected probabilities, got -1 in `q` of state 0 of `A`:"),
    "roots": (
        {"pi": 0.5},
        r"expected the probabilities in `π` of all symbols to sum to 1 within 1e-06, got 0\.5:",
    ),
    "negative root": ({"pi": -1.0}, "expected probabilities, got -1 in `π` of all symbols:"),
}


@pytest.mark.parametrize(("numbers", "message"), IMPROPER.values(), ids=IMPROPER)
def test_tables_that_are_not_an_lpcfg_are_refused(numbers: dict[str, float], message: str) -> None:
    grammar = Grammar(("S", "A"), 1, [(0, 1, 1)], ("x",), [(1, 0)])
    t, q, pi = (numbers.get(name, 1.0) for name in ("t", "q", "pi"))
    tables = Tables.from_dense(grammar, [1, 1], [np.full((1, 1, 1), t)], [[q]], [[pi], [0.0]])
    with pytest.raises(GrammarError, match=message):
        list(sample_trees(tables, 1, seed=0))


def test_a_symbol_without_rules_and_words_is_refused() -> None:
    grammar = Grammar(("S", "A", "B"), 1, [(0, 1, 1)], ("x",), [(1, 0)])
    tables = Tables.from_dense(
        grammar, [1] * 3, [np.ones((1, 1, 1))], [[1.0]], [[1.0], [0.0], [0.0]]
    )
    with pytest.raises(
        GrammarError, match="`q` of state 0 of `B` to sum to 1 within 1e-06, got 0:"
    ):
        check_probabilities(tables)


# Enumeration --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_enumeration_finds_every_tree_with_its_probability(seed: int) -> None:
    """Of any tables, negative ones too: against all derivations of all sentences."""
    rng = np.random.default_rng(seed)
    grammar = random_grammar(rng, 2, 2, 4)
    tables = random_tables(rng, grammar, 2, signed=True)
    found = dict(enumerate_trees(tables, max_words=3))
    expected = {}
    for length in (1, 2, 3):
        for sentence in np.ndindex(*[2] * length):
            words = [grammar.terminals[x] for x in sentence]
            emissions = literal_emissions(grammar, words)
            for derivation, p in naive.all_derivations(tables, emissions):
                expected[naive.as_tree(tables, words, derivation)] = p
    assert found.keys() == expected.keys()
    for tree, p in expected.items():
        assert found[tree] == pytest.approx(p, rel=1e-9)


def test_enumeration_leaves_out_impossible_and_long_trees() -> None:
    trees = list(enumerate_trees(chain(0.5), max_words=4))
    assert [(len(tree.tokens()), p) for tree, p in trees] == [(2, 0.5), (3, 0.25), (4, 0.125)]
    assert list(enumerate_trees(chain(0.5), max_words=0)) == []


# Files --------------------------------------------------------------------------------------------


def test_the_example_is_a_distribution_over_96_trees() -> None:
    tables = read_lpcfg(TWO_STATE)
    trees = list(enumerate_trees(tables, max_words=5))
    assert len(trees) == 96
    assert sum(p for _, p in trees) == pytest.approx(1, abs=1e-12)
    for tree, p in trees:
        emissions = literal_emissions(tables.grammar, tree.tokens())
        assert tree_probability(tables, tree, emissions).probability.value == pytest.approx(p)


SMALL = """
[states]
A = 1
S = 2
N = 1

[root]
S = [0.6, 0.4]

[rules]
"S -> N N" = [[[0.7]], [[0.2]]]
"S -> N  S" = [[[0.1, 0.2]], [[0.3, 0.5]]]

[words.N]
dog = [0.9]
cat = [0.1]

[words.A]
red = [1]
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "known.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_holds_symbols_rules_words_and_roots(tmp_path: Path) -> None:
    tables = read_lpcfg(written(tmp_path, SMALL))
    grammar = tables.grammar
    assert grammar.symbols == ("S", "A", "N")
    assert grammar.n_internal == 1
    assert grammar.terminals == ("cat", "dog", "red")
    assert grammar.rule_ids.keys() == {(0, 2, 0), (0, 2, 2)}
    assert tables.states.tolist() == [2, 1, 1]
    assert tables.dense(0).tolist() == [[[0.1, 0.2]], [[0.3, 0.5]]]
    assert tables.dense(1).tolist() == [[[0.7]], [[0.2]]]
    assert tables.terminal_vector(grammar.entry_ids[2, 1]).tolist() == [0.9]
    assert tables.root_vector(0).tolist() == [0.6, 0.4]
    assert tables.root_vector(1).tolist() == [0.0]


def test_the_documented_file_can_be_read(tmp_path: Path) -> None:
    lines = str(lpcfg.grammar.known.__doc__).splitlines()
    indented = [line.strip() for line in lines if line.startswith("    ")]
    tables = read_lpcfg(written(tmp_path, "\n".join(indented)))
    assert tables.grammar.n_rules == 2


BROKEN = {
    "not TOML": ("[states", "[", r"known\.toml: expected TOML: .*line 2.*: correct the file"),
    "unknown section": (
        "[root]",
        "[roots]",
        r"expected the sections \[states\], \[root\], \[rules\], \[words\], got `roots`:",
    ),
    "states are no table": (
        "[states]\nA = 1\nS = 2\nN = 1",
        "states = 3",
        r"a table \[states\], got 3",
    ),
    "no symbols": (
        "[states]\nA = 1\nS = 2\nN = 1",
        "[states]",
        r"symbols with numbers of states in \[states\], got none: write the grammar",
    ),
    "no states": ("S = 2", "S = 0", r"number of states for `S` in \[states\], got 0: give it"),
    "states are no number": ("S = 2", "S = true", r"states for `S` in \[states\], got True: give"),
    "not a rule": ("S -> N N", "S -> N", r'like "S -> NP VP" in \[rules\], got "S -> N": write'),
    "no arrow": ("S -> N N", "S N N", r'like "S -> NP VP" in \[rules\], got "S N N": write'),
    "unknown child": ("S -> N N", "S -> N X", r'symbols of \[states\] in "S -> N X", got `X`'),
    "unknown root": ("S = [0.6", "R = [0.6", r"in \[words\] and \[root\], got `R`: give it"),
    "unknown preterminal": ("words.A", "words.B", r"in \[words\] and \[root\], got `B`: give it"),
    "words are no table": (
        "[words.A]\nred = [1]",
        "[words]\nA = 1",
        r"a table \[words\.A\], got 1",
    ),
    "words of an in-terminal": (
        "words.A",
        "words.S",
        "expected rules or words for `S`, got both: take another symbol",
    ),
    "wrong shape": (
        "[[[0.7]], [[0.2]]]",
        "[[0.7], [0.2]]",
        "expected 2 x 1 x 1 numbers in nested lists for `S -> N N`, got 2 x 1: give every symbol",
    ),
    "ragged": (
        "[[[0.7]], [[0.2]]]",
        "[[[0.7]], [0.2]]",
        r"2 x 1 x 1 numbers in nested lists for `S -> N N`, got \[.*: write numbers alone",
    ),
    "no number": ("[0.9]", '["a"]', r"1 numbers .*`dog` of \[words.N\], got \['a'\]: write"),
    "a table for a number": ("[0.9]", "{a = 1}", r"`dog` of \[words.N\], got {'a': 1}: write"),
    "root of wrong shape": (
        "[0.6, 0.4]",
        "[1.0]",
        r"expected 2 numbers in nested lists for `S` of \[root\], got 1: give",
    ),
    "one number alone": ("[0.9]", "0.9", r"`dog` of \[words.N\], got one: give"),
    "not a number": (
        "[0.9]",
        "[nan]",
        r"probabilities for `dog` of \[words.N\], got \[nan\]: write",
    ),
    "improper": (
        "[0.9]",
        "[0.8]",
        "known.toml: expected the probabilities in `q` of state 0 of `N`",
    ),
}


@pytest.mark.parametrize(("old", "new", "message"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in SMALL
    with pytest.raises(GrammarError, match=message):
        read_lpcfg(written(tmp_path, SMALL.replace(old, new)))


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    absent = r"got 'No such file or directory' at .*nothing\.toml: check the path"
    with pytest.raises(InputError, match=f"expected a readable grammar file, {absent}"):
        read_lpcfg(tmp_path / "nothing.toml")
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b"# \xe9t\xe9")
    with pytest.raises(
        InputError, match=r"latin\.toml: expected UTF-8, got the byte 0xe9: convert"
    ):
        read_lpcfg(latin)
