"""Forward-backward is inside-outside over right-branching trees, and sums over states and tags."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from lpcfg.base.errors import GrammarError, InputError
from lpcfg.engine.exact.inside_outside import inside, outside, tree_probability
from lpcfg.grammar.tables import Emissions, Grammar, Tables
from lpcfg.kinds.tags.chains import chain
from lpcfg.kinds.tags.kernel import Chains, chains_of, forward_backward
from tests.kinds.tags.hmm import WORDS, chain_grammar, random_hmm, tables_of
from tests.strategies_grammar import (
    absolute,
    literal_emissions,
    random_emissions,
    random_tables,
)

ROUNDING = 1e-12
"""Some hundred products and sums, each rounded by 1e-16 of its magnitude."""
words_of = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5)
seeds = st.integers(0, 2**32 - 1)


def test_a_chain_has_a_symbol_for_each_tag_and_its_rest() -> None:
    assert str(chain(["a", "b"], ["NN", "."])) == "(NN/> (NN a) (./>|. b))"
    assert str(chain(["a"], ["@|"])) == "(%40%7C/>|%40%7C a)"


@pytest.mark.parametrize(("words", "tags"), [([], []), (["a", "b"], ["X"])])
def test_words_and_tags_go_together(words: list[str], tags: list[str]) -> None:
    with pytest.raises(InputError, match="expected a tag for each of one or more words"):
        chain(words, tags)


@given(seeds, words_of)
@settings(max_examples=30, deadline=None)
def test_trees_have_the_probabilities_of_the_hmm(seed: int, words: list[str]) -> None:
    hmm = random_hmm(np.random.default_rng(seed), [2, 3])
    tables = tables_of(hmm)
    emissions = literal_emissions(tables.grammar, words)
    for tags, p in hmm.taggings(words):
        found = tree_probability(tables, chain(words, tags), emissions).probability.value
        assert found == pytest.approx(p, rel=ROUNDING)


def test_probabilities_of_all_sentences_sum_to_one() -> None:
    """If a sentence ends after each word with p = .4, p(at most 4 words) is 1 − .6⁴."""
    hmm = random_hmm(np.random.default_rng(1), [1, 2])
    hmm = replace(hmm, end=[np.full(m, 0.4) for m in hmm.states])
    chains = chains_of(tables_of(hmm))
    total = sum(
        np.exp(forward_backward(chains, literal_emissions(chain_grammar(hmm.tags), words)).log)
        for n in range(1, 5)
        for words in product(WORDS, repeat=n)
    )
    assert total == pytest.approx(1 - 0.6**4, rel=ROUNDING)


@given(seeds, words_of)
@settings(max_examples=30, deadline=None)
def test_posteriors_are_shares_of_all_sequences_of_tags(seed: int, words: list[str]) -> None:
    hmm = random_hmm(np.random.default_rng(seed), [2, 2])
    tables = tables_of(hmm)
    emissions = literal_emissions(tables.grammar, words)
    found = forward_backward(chains_of(tables), emissions)
    all_tags = list(hmm.taggings(words))
    p = sum(probability for _, probability in all_tags)
    assert found.sign == 1
    assert found.log == pytest.approx(np.log(p), rel=ROUNDING)
    names = [tables.grammar.symbols[a] for a in emissions.symbol]
    for i in range(len(words)):
        for c in range(emissions.start[i], emissions.start[i + 1]):
            name = names[c]
            share = sum(q for tags, q in all_tags if tags[i] == name[0]) / p
            in_place = ("|" in name) == (i == len(words) - 1)
            assert found.candidates[c] == pytest.approx(share if in_place else 0.0, rel=ROUNDING)


@given(seeds, words_of, st.booleans(), st.sampled_from([None, 3]))
@settings(max_examples=80, deadline=None)
def test_forward_backward_equals_inside_outside(
    seed: int, words: list[str], signed: bool, terms: int | None
) -> None:
    """Signed numbers may cancel: the error is then a share of the sum of magnitudes."""
    rng = np.random.default_rng(seed)
    grammar = chain_grammar("AB")
    tables = random_tables(rng, grammar, 3, signed=signed, max_terms=terms)
    emissions = random_emissions(rng, grammar, words)
    found = forward_backward(chains_of(tables), emissions)
    exact = outside(inside(tables, emissions))
    if exact.probability.sign == 0:
        assert (found.sign, found.log) == (0, -np.inf)
        assert not found.candidates.any()
        return
    whole = inside(absolute(tables), emissions).probability
    lost = ROUNDING * np.exp(whole.log - exact.probability.log)
    assume(lost < 1e-3)  # otherwise nothing but rounding is left of p(x)
    assert found.sign == exact.probability.sign
    assert found.log == pytest.approx(exact.probability.log, abs=lost + ROUNDING)
    bound = lost * (1 + np.abs(exact.words()).max())
    assert np.allclose(found.candidates, exact.words(), rtol=ROUNDING, atol=bound + ROUNDING)


def test_long_sentences_neither_underflow_nor_overflow() -> None:
    """The log of 400 words' probability is that of a forward pass in logarithms."""
    rng = np.random.default_rng(5)
    hmm = random_hmm(rng, [2, 3])
    words = [str(word) for word in rng.choice(WORDS, 400)]
    found = forward_backward(
        chains_of(tables_of(hmm)), literal_emissions(chain_grammar(hmm.tags), words)
    )
    end = np.concatenate(hmm.end)
    emit = np.log(np.concatenate(hmm.emit))
    step = np.log(np.concatenate([np.concatenate(row, axis=1) for row in hmm.follow]))
    ahead = np.log(np.concatenate(hmm.start)) + emit[:, WORDS.index(words[0])]
    for word in words[1:]:
        ahead = logsumexp((ahead + np.log(1 - end))[:, None] + step, axis=0)
        ahead += emit[:, WORDS.index(word)]
    # 400 sums of logarithms, each rounded by 1e-16 of some 1000
    assert found.log == pytest.approx(logsumexp(ahead + np.log(end)), rel=1e-11)
    per_word = np.add.reduceat(found.candidates, np.arange(400) * len(found.candidates) // 400)
    assert per_word == pytest.approx(np.ones(400), abs=1e-12)


def test_long_sentences_are_scaled_whatever_the_signs_of_numbers() -> None:
    """In the basis -I every number is negative, and no probability is another one."""
    rng = np.random.default_rng(5)
    hmm = random_hmm(rng, [2, 3])
    emissions = literal_emissions(
        chain_grammar(hmm.tags), [str(one) for one in rng.choice(WORDS, 800)]
    )
    chains = chains_of(tables_of(hmm))
    turned = Chains(*chains[:3], *(-numbers for numbers in chains[3:]))
    assert forward_backward(turned, emissions).log == forward_backward(chains, emissions).log


def test_two_candidates_of_one_preterminal_add_up() -> None:
    rng = np.random.default_rng(2)
    grammar = chain_grammar("AB")
    tables = random_tables(rng, grammar, 3, signed=True)
    one = random_emissions(rng, grammar, ["x", "y", "z"])
    size = np.diff(one.start)
    order = np.concatenate(
        [np.r_[r, r] for r in np.split(np.arange(len(one.symbol)), one.start[1:-1])]
    )
    two = Emissions(
        np.concatenate([[0], np.cumsum(2 * size)]).astype(np.int32),
        one.symbol[order],
        one.entry[order],
        one.weight[order] * np.concatenate([np.r_[np.full(n, 0.3), np.full(n, 0.7)] for n in size]),
    )
    chains = chains_of(tables)
    whole, split = forward_backward(chains, one), forward_backward(chains, two)
    assert split.log == pytest.approx(whole.log, rel=ROUNDING)
    for c, share in enumerate(whole.candidates):
        parts = split.candidates[order == c]
        assert parts.sum() == pytest.approx(share, rel=1e-10)
        assert parts == pytest.approx(np.array([0.3, 0.7]) * share, rel=1e-10)


def test_words_that_cannot_follow_have_no_probability() -> None:
    grammar = Grammar(
        ("A/>", "A", "B/>|B"), 1, np.array([(0, 1, 2)]), ("x", "y"), np.array([(1, 0), (2, 1)])
    )
    ones = [np.ones(1)] * 3
    tables = Tables.from_dense(grammar, [1, 1, 1], [np.ones((1, 1, 1))], ones[:2], ones)
    chains = chains_of(tables)
    assert forward_backward(chains, literal_emissions(grammar, ["x", "y"])).sign == 1
    found = forward_backward(chains, literal_emissions(grammar, ["y", "x"]))
    assert (found.sign, found.log) == (0, -np.inf)
    assert not found.candidates.any()


@pytest.mark.parametrize(
    "rules",
    [
        [(0, 0, 2)],  # the left child is no preterminal
        [(0, 2, 3), (1, 2, 3)],  # a preterminal under two symbols
    ],
)
def test_grammars_of_other_trees_are_refused(rules: list[tuple[int, int, int]]) -> None:
    grammar = Grammar(("S", "T", "A", "B"), 2, np.array(rules), ("x",), np.array([(2, 0), (3, 0)]))
    tables = random_tables(np.random.default_rng(0), grammar, 2, signed=False)
    with pytest.raises(GrammarError, match="expected rules `t/> → t …`"):
        chains_of(tables)
