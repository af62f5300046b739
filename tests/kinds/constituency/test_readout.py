"""From items of a chart to what people see: labels, restored trees, shares, tokens, spans."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lpcfg.base.errors import InputError
from lpcfg.engine.pruned import decode, fine, kernels
from lpcfg.engine.pruned.coarse import Pruned
from lpcfg.grammar.tables import Grammar, Tables
from lpcfg.kinds.calibration_map import MonotoneMap
from lpcfg.kinds.constituency.model import coarse_tables
from lpcfg.kinds.constituency.readout import (
    Answers,
    Labels,
    SpanTable,
    as_words,
    constituents_of,
    places,
)
from lpcfg.kinds.sentences import Sentence
from lpcfg.trees.binarize import restore
from lpcfg.trees.brackets import parse_tree
from lpcfg.trees.tree import Tree
from tests import naive
from tests.small_charts import NOTHING_OUT, coarse_of
from tests.strategies_grammar import literal_emissions

GRAMMAR = Grammar(
    symbols=("@NP<NN", "NP", "S|VP", "S|VP|NP", "a%7Cb", "DT", "NN", "NP|NN", "NP<"),
    n_internal=5,
    rules=np.array(
        [
            [0, 5, 6],
            [1, 0, 6],
            [1, 5, 6],
            [1, 6, 6],
            [2, 1, 7],
            [2, 1, 8],
            [3, 1, 7],
            [4, 1, 7],
        ]
    ),
    terminals=("the", "dog"),
    entries=np.array([[5, 0], [6, 1], [7, 1], [8, 1]]),
)
ROOTS = (0.0, 0.1, 0.4, 0.2, 0.3, 0.0, 0.0, 0.0, 0.0)
WORDS = ("the", "dog", "dog", "dog")


@dataclass(frozen=True)
class Read:
    """One sentence's answers, and its best derivation."""

    answers: Answers
    pruned: Pruned
    coarse: Tables

    @property
    def chart(self) -> kernels.Chart:
        return self.pruned.chart


# Chains with one label, with a label twice, and with another label between the two.
CHAINS = Grammar(
    symbols=("S|S", "S|VP|S", "S", "NP|NP|NN", "NP|NN"),
    n_internal=3,
    rules=np.array(
        [[0, 2, 3], [0, 3, 4], [1, 3, 0], [1, 4, 3], [2, 0, 3], [2, 1, 4], [2, 3, 1], [2, 4, 4]]
    ),
    terminals=("the", "dog"),
    entries=np.array([[3, 0], [4, 0], [3, 1], [4, 1]]),
)
CHAIN_ROOTS = (0.5, 0.2, 0.3, 0.0, 0.0)


def read(
    sentence: Sentence | None = None,
    calibration: MonotoneMap | None = None,
    grammar: Grammar = GRAMMAR,
    roots: tuple[float, ...] = ROOTS,
) -> Read:
    q = np.array([0.5, 0.3, 0.4, 0.2, 0.6, 0.4, 1.0, 1.0])
    coarse = coarse_tables(grammar, q, np.array(roots))
    found = coarse_of(coarse).prune(literal_emissions(grammar, WORDS), NOTHING_OUT)
    assert isinstance(found, Pruned)
    answers = Answers(
        sentence or Sentence(WORDS),
        Labels.of(grammar),
        lambda chart: (1, math.log(0.5) if len(chart.symbol) else 0.0),
        fine.posteriors(found, []),
        calibration,
    )
    return Read(answers, found, coarse)


# Labels -----------------------------------------------------------------------------------------


def test_a_symbol_has_the_labels_of_its_chain_top_first() -> None:
    labels = Labels.of(GRAMMAR)
    assert labels.chains == (
        (), ("NP",), ("S", "VP"), ("S", "VP", "NP"), ("a|b",), ("DT",), ("NN",), ("NP", "NN"),
        ("NP",),
    )  # fmt: skip
    for a, chain in enumerate(labels.chains):
        numbers = labels.numbers[labels.start[a] : labels.start[a + 1]].tolist()
        names = {k: name for name, k in labels.ids.items()}
        assert [names[k][0] for k in numbers] == list(chain)
        assert [names[k][1] for k in numbers] == [
            a >= GRAMMAR.n_internal and depth == len(chain) - 1 for depth in range(len(chain))
        ]
        assert np.flatnonzero(labels.has[:, a]).tolist() == sorted(numbers)


def test_a_tag_of_the_name_of_a_constituent_is_another_label() -> None:
    labels = Labels.of(GRAMMAR)
    assert labels.ids["NP", False] != labels.ids["NP", True]
    assert np.flatnonzero(labels.with_label("NP")).tolist() == [1, 3, 7]
    assert np.flatnonzero(labels.seen).tolist() == [1, 2, 3, 4, 7]


def test_an_unknown_label_is_refused_with_the_known_ones() -> None:
    message = r"expected a label of the model's, got 'DT': use one of NP, S, VP, a\|b"
    with pytest.raises(InputError, match=message) as caught:
        Labels.of(GRAMMAR).with_label("DT", pointer="/constraints/0/label")
    assert caught.value.pointer == "/constraints/0/label"


def test_a_grammar_of_bare_tags_has_no_constituents() -> None:
    bare = Grammar(("DT", "NN"), 0, np.empty((0, 3)), ("x",), np.array([[0, 0], [1, 0]]))
    assert not Labels.of(bare).seen.any()
    assert Labels.of(bare).seen.shape == (2,)


@given(st.lists(st.integers(0, GRAMMAR.n_symbols - 1)))
def test_symbols_are_spelled_as_labels_of_constituents(symbols: list[int]) -> None:
    for grammar in (GRAMMAR, CHAINS):
        known = [a % grammar.n_symbols for a in symbols]
        labels = Labels.of(grammar)
        rows, number, names = labels.spelled(np.array(known, np.int32))
        spelled = list(zip(rows.tolist(), [names[k] for k in number.tolist()], strict=True))
        expected = []
        for row, a in enumerate(known):
            chain = labels.chains[a]
            below = chain[:-1] if a >= grammar.n_internal else chain
            expected += [(row, label) for label in dict.fromkeys(below)]
        assert spelled == expected


def test_a_label_is_repeated_where_its_chain_had_it_before() -> None:
    symbols = ("@S", "NP|S|NP|NP", "S", "NP|NP")
    grammar = Grammar(symbols, 3, np.empty((0, 3)), ("x",), np.array([[3, 0]]))
    labels = Labels.of(grammar)  # the NP at the bottom of the last symbol is a tag
    assert labels.repeated.tolist() == [False, False, True, True, False, False, False]


# Trees ------------------------------------------------------------------------------------------


def test_gains_are_the_labels_expected_right_less_those_wrong() -> None:
    found = read()
    chart, item, chains = found.chart, found.answers.posteriors.item, found.answers.labels.chains
    told = []
    for t in range(len(item)):
        same = (chart.start == chart.start[t]) & (chart.end == chart.end[t])
        total = 0.0
        for depth, label in enumerate(chains[chart.symbol[t]]):
            is_tag = chart.entry[t] >= 0 and depth == len(chains[chart.symbol[t]]) - 1
            for u in np.flatnonzero(same):
                chain = chains[chart.symbol[u]]
                over_word = len(chain) - 1 if chart.entry[u] >= 0 else len(chain)
                total += item[u] * (chain[-1] == label if is_tag else label in chain[:over_word])
            total -= 0.5
        told.append(total)
    np.testing.assert_allclose(found.answers.gains(), told, atol=1e-12)


def stree(chart: kernels.Chart, items: tuple[int, ...]) -> Tree:
    """Build the s-tree of items in pre-order, by recursion."""
    following = iter(items)

    def build() -> Tree:
        t = next(following)
        name = GRAMMAR.symbols[chart.symbol[t]]
        if chart.entry[t] >= 0:
            return Tree(name, word=WORDS[chart.start[t]])
        return Tree(name, (build(), build()))

    return build()


def test_a_derivations_tree_is_its_s_tree_restored() -> None:
    found = read()
    derivations = list(decode.k_best(found.answers.posteriors, "max-rule"))
    assert len(derivations) > 3
    for derivation in derivations:
        expected = restore(stree(found.chart, derivation.items))
        assert found.answers.parse(derivation).tree == expected


def test_pieces_under_an_intermediate_symbol_are_several_trees() -> None:
    found = read()
    chart, labels = found.chart, Labels.of(GRAMMAR)
    top = next(t for t in range(len(chart.symbol)) if chart.symbol[t] == 0)
    e = chart.edge_start[top]
    items = (top, int(chart.left[e]), int(chart.right[e]))
    assert labels.trees(chart, items, ["the", "dog"]) == (
        parse_tree("(DT the)"),
        parse_tree("(NN dog)"),
    )


def test_trees_hold_the_callers_tokens_with_round_brackets_spelled_out() -> None:
    asked = Sentence(("(", "dog", "]", "dog"), forms=WORDS)
    found = read(asked)
    assert as_words(asked) == ["-LRB-", "dog", "]", "dog"]
    (derivation, *_) = decode.k_best(found.answers.posteriors, "max-rule")
    assert found.answers.parse(derivation).tree.tokens() == ["-LRB-", "dog", "]", "dog"]
    assert [token.text for token in found.answers.tokens(derivation)] == list(asked.tokens)


# Shares -----------------------------------------------------------------------------------------


Spans = dict[tuple[str, int, int], float]


def by_listing(found: Read) -> tuple[Spans, dict[tuple[str, int], float]]:
    """Compute posteriors of labelled spans and of tags, as sums of p / p(x) over all
    derivations.
    """
    spans: Spans = {}
    tags: dict[tuple[str, int], float] = {}
    for derivation in decode.k_best(found.answers.posteriors, "max-product"):
        share = math.exp(derivation.score)  # without latent states, p(tree) / p(x)
        tree = found.answers.parse(derivation).tree
        met = {(c.label, c.start, c.end) for c in constituents_of(tree, Sentence(WORDS))}
        for key in met:
            spans[key] = spans.get(key, 0.0) + share
        for w, leaf in enumerate(tree.leaves()):
            tags[leaf.label, w] = tags.get((leaf.label, w), 0.0) + share
    return spans, tags


def test_probabilities_are_those_of_labels_whatever_the_symbol() -> None:
    found = read()
    spans, tags = by_listing(found)
    for derivation in decode.k_best(found.answers.posteriors, "max-rule"):
        parse = found.answers.parse(derivation)
        # a few float64 sums
        assert [c.probability for c in parse.constituents] == pytest.approx(
            [spans[c.label, c.start, c.end] for c in parse.constituents], rel=1e-12
        )
        assert [token.probability for token in found.answers.tokens(derivation)] == pytest.approx(
            [tags[leaf.label, w] for w, leaf in enumerate(parse.tree.leaves())], rel=1e-12
        )
        assert (parse.sign, parse.log_probability) == (1, math.log(0.5) + found.pruned.log_scale)
        assert parse.score == derivation.score


def test_marginals_sum_over_the_items_that_share_a_label_and_a_span() -> None:
    found = read()
    spans, _ = by_listing(found)
    table = SpanTable.of(found.answers.posteriors, Labels.of(GRAMMAR), GRAMMAR, None)
    marginals = table.spans(0.0, None)
    assert {(one.label, one.start, one.end): one.probability for one in marginals} == pytest.approx(
        spans, rel=1e-12
    )
    for one in marginals:
        mu = spans[one.label, one.start, one.end] * math.exp(found.pruned.log_probability)
        assert one.sign == 1
        assert one.log_magnitude == pytest.approx(math.log(mu), abs=1e-12)
    for cell in table.cells():
        there = [
            p for (_, start, end), p in spans.items() if (start, end) == (cell.start, cell.end)
        ]
        assert cell.expected == pytest.approx(sum(there), rel=1e-12)


def test_a_label_that_a_chain_repeats_counts_once_a_span() -> None:
    """Against sums over all trees, listed without the engine."""
    found = read(grammar=CHAINS, roots=CHAIN_ROOTS)
    trees = naive.all_derivations(found.coarse, literal_emissions(CHAINS, WORDS))
    mu: Spans = {}
    for tree, p in trees:
        met = {
            (label, start, end)
            for symbol, start, end, *_ in naive.nodes(tree)
            for label in CHAINS.symbols[symbol].removesuffix("|NN").split("|")
        }
        for key in met:
            mu[key] = mu.get(key, 0.0) + p
    whole = sum(p for _, p in trees)
    shares = {key: p / whole for key, p in mu.items()}
    assert mu["S", 0, 4] == pytest.approx(whole)  # every tree has one S or two over all words
    table = SpanTable.of(found.answers.posteriors, Labels.of(CHAINS), CHAINS, None)
    marginals = {(one.label, one.start, one.end): one for one in table.spans(0.0, None)}
    # a few float64 sums in another order
    told = {key: one.probability for key, one in marginals.items()}
    assert told == pytest.approx(shares, rel=1e-12)
    raw = {key: one.sign * math.exp(one.log_magnitude) for key, one in marginals.items()}
    assert raw == pytest.approx(mu, rel=1e-12)
    for cell in table.cells():
        there = [p for (_, *span), p in shares.items() if span == [cell.start, cell.end]]
        assert cell.expected == pytest.approx(math.fsum(there), rel=1e-12)
    for derivation in decode.k_best(found.answers.posteriors, "max-rule"):
        for one in found.answers.parse(derivation).constituents:
            assert one.probability == pytest.approx(told[one.label, one.start, one.end], rel=1e-12)


def test_raw_marginals_are_the_items() -> None:
    found = read()
    table = SpanTable.of(found.answers.posteriors, None, GRAMMAR, None)
    mine = {(one.label, one.start, one.end): one.probability for one in table.spans(0.0, None)}
    chart = found.chart
    assert mine == {
        (GRAMMAR.symbols[a], start, end): share
        for a, start, end, share in zip(
            chart.symbol.tolist(),
            chart.start.tolist(),
            chart.end.tolist(),
            found.pruned.item.tolist(),
            strict=True,
        )
    }


def test_raw_marginals_are_signed_and_probabilities_are_votes() -> None:
    """Ratios below zero, above one and of zero, as a member gives them, under a negative p(x)."""
    found = read()
    ratio = np.full(len(found.chart.symbol), 0.5)
    ratio[:3] = -0.25, 1.5, 0.0
    votes = np.abs(ratio) / 1.5
    posteriors = replace(
        found.answers.posteriors, item=votes, ratio=ratio, sign=-1, log_probability=-7.0
    )
    table = SpanTable.of(posteriors, None, GRAMMAR, None)
    chart = found.chart
    rows = {(one.label, one.start, one.end): one for one in table.spans(0.0, None)}
    first, second, third = (
        rows[GRAMMAR.symbols[chart.symbol[t]], chart.start[t], chart.end[t]] for t in range(3)
    )
    assert (first.probability, first.sign) == (pytest.approx(0.25 / 1.5), 1)
    assert first.log_magnitude == pytest.approx(math.log(0.25) - 7.0)
    assert (second.probability, second.sign) == (1.0, -1)
    assert second.log_magnitude == pytest.approx(math.log(1.5) - 7.0)
    assert (third.probability, third.sign, third.log_magnitude) == (0.0, 0, -math.inf)
    assert posteriors.clipped_mass == 0.75  # outside of [0, 1]: .25 below and .5 above


def test_raw_marginals_of_a_label_add_up_with_their_signs() -> None:
    """S over all words is `S|VP` and `S|VP|NP`, one below zero: μ is their sum, votes add up."""
    found = read()
    chart = found.chart
    spans = zip(chart.symbol, chart.start, chart.end, strict=True)
    there = [t for t, (a, start, end) in enumerate(spans) if a in (2, 3) and (start, end) == (0, 4)]
    assert len(there) == 2
    ratio = found.answers.posteriors.ratio.copy()
    ratio[there] = 0.75, -0.125
    posteriors = replace(found.answers.posteriors, item=np.abs(ratio), ratio=ratio)
    table = SpanTable.of(posteriors, Labels.of(GRAMMAR), GRAMMAR, None)
    (one,) = (one for one in table.spans(0.0, {(0, 4)}) if one.label == "S")
    assert (one.sign, one.probability) == (1, pytest.approx(0.875))
    mu = 0.625 * math.exp(posteriors.log_probability)
    assert one.log_magnitude == pytest.approx(math.log(mu))


def test_calibration_maps_constituents_and_not_tags() -> None:
    halved = MonotoneMap.from_lists([[0.0, 1.0], [0.0, 0.5]])
    plain, mapped = read(), read(calibration=halved)
    derivation = decode.best(plain.answers.posteriors, "max-rule")
    for mine, raw in zip(
        mapped.answers.parse(derivation).constituents,
        plain.answers.parse(derivation).constituents,
        strict=True,
    ):
        assert mine.probability == pytest.approx((raw.probability or 0.0) / 2)
    assert mapped.answers.tokens(derivation) == plain.answers.tokens(derivation)


# Places -----------------------------------------------------------------------------------------


def test_constituents_and_tokens_know_their_characters() -> None:
    offsets = ((0, 3), (4, 7), (7, 8), (9, 12))
    asked = Sentence(WORDS, text="the dogs dog", offsets=offsets)
    found = read(asked)
    derivation = decode.best(found.answers.posteriors, "max-rule")
    for one in found.answers.parse(derivation).constituents:
        assert (one.start_char, one.end_char) == (offsets[one.start][0], offsets[one.end - 1][1])
    assert [(t.start, t.end) for t in found.answers.tokens(derivation)] == list(offsets)
    assert places(Sentence(WORDS)) == [(None, None)] * 4


def test_a_given_trees_constituents_come_in_pre_order_without_probabilities() -> None:
    tree = parse_tree("(S (NP (DT the) (NN dog)) (VP (VB dog) (S (NP (NN dog)))))")
    found = constituents_of(tree, Sentence(WORDS, offsets=((0, 1), (2, 3), (4, 5), (6, 7))))
    assert [(c.label, c.start, c.end, c.start_char, c.end_char) for c in found] == [
        ("S", 0, 4, 0, 7),
        ("NP", 0, 2, 0, 3),
        ("VP", 2, 4, 4, 7),
        ("S", 3, 4, 6, 7),
        ("NP", 3, 4, 6, 7),
    ]
    assert all(c.probability is None for c in found)
