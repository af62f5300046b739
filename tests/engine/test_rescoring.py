"""The layer against enumeration of all derivations, and against its twin that is written to be
read."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis.strategies import sampled_from

from lpcfg.base.errors import GrammarError
from lpcfg.engine.pruned import fine
from lpcfg.engine.pruned.coarse import Pruned
from lpcfg.engine.pruned.decode import derivation_log, edges_between
from lpcfg.engine.rescoring.chart import inside_outside, view
from lpcfg.engine.rescoring.domains import FACTS, Domains, code_of, slots
from lpcfg.engine.rescoring.features import (
    PAD,
    edge_slots,
    item_slots,
    new_buffers,
    sparse_scores,
)
from lpcfg.engine.rescoring.hidden import POSITIONS, gather, hidden_scores
from lpcfg.engine.rescoring.layer import (
    Layer,
    Rescorer,
    WordFacts,
    WordRows,
    WordVectors,
    padded_codes,
)
from lpcfg.engine.rescoring.names import RowNames, names_of
from lpcfg.engine.rescoring.quantized import QuantizedWeights, dequantize, quantize, rounded
from tests import rescoring_twin as twin
from tests.rescoring_twin import enumerated, hidden_edge, hidden_item
from tests.small_charts import Case, cases
from tests.small_layers import TINY, flat_heads, random_hidden, random_layer

SINGLE = 1e-4
"""Scores of a few hundred float32 terms, each rounded by 6e-8."""


def pruned_of(case: Case) -> Pruned:
    """Build the case's chart; draw another case if the grammar has no analysis."""
    found = case.prune()
    assume(isinstance(found, Pruned))
    assert isinstance(found, Pruned)
    return found


@given(cases())
def test_posteriors_and_z_are_those_of_all_derivations(case: Case) -> None:
    found = pruned_of(case)
    rng = np.random.default_rng(len(found.item))
    item = rng.normal(size=len(found.item)).astype(np.float32)
    edge = rng.normal(size=len(found.edge)).astype(np.float32)
    root = rng.normal(size=len(found.item)).astype(np.float32)
    told = enumerated(found.chart, found.length, item, edge, root)
    log_z, of_item, of_edge = inside_outside(found.chart, item, edge, root, found.length)
    assert log_z == pytest.approx(told.log_z, abs=1e-9)
    np.testing.assert_allclose(of_item, told.item, atol=1e-9)
    np.testing.assert_allclose(of_edge, told.edge, atol=1e-9)
    share = sum(float(item[t]) for t in told.best[0]) + sum(float(edge[e]) for e in told.best[1])
    share += float(root[max(told.best[0])]) - told.log_z
    rescored = replace(fine.posteriors(found, []), item=of_item, edge=of_edge)
    items, edges = np.array(sorted(told.best[0])), np.array(sorted(told.best[1]), np.int64)
    np.testing.assert_array_equal(edges_between(found.chart, items), edges)
    assert derivation_log(rescored, items, edges) == pytest.approx(share, abs=1e-8)
    if len(edges):
        assert derivation_log(rescored, items, edges[1:]) == -np.inf


@given(cases())
def test_weights_of_zero_give_the_tensors_posterior_back(case: Case) -> None:
    found = pruned_of(case)
    tensors = fine.posteriors(found, [])
    nothing = quantize(np.zeros(16, np.float32))
    layer = Layer(frozenset(), flat_heads(case.grammar), RowNames.of(case.grammar), 1.0, nothing)
    mine = Rescorer(layer, case.grammar).rescored(tensors, ["x"] * found.length)
    np.testing.assert_allclose(mine.item, tensors.item, atol=1e-5)
    np.testing.assert_allclose(mine.edge, tensors.edge, atol=1e-5)
    assert mine.rescored
    assert not tensors.rescored
    np.testing.assert_array_equal(mine.ratio, tensors.ratio)
    assert mine.log_probability == tensors.log_probability


@given(cases())
def test_rescored_posteriors_are_probabilities(case: Case) -> None:
    found = pruned_of(case)
    rescorer = Rescorer(random_layer(case.grammar), case.grammar)
    mine = rescorer.rescored(fine.posteriors(found, []), ["the"] * found.length)
    assert (mine.item >= 0).all()
    words = np.flatnonzero(found.chart.end == found.chart.start + 1)
    at = found.chart.start[words]
    np.testing.assert_allclose(np.bincount(at, mine.item[words]), 1.0, rtol=1e-9)


@given(cases())
def test_the_hidden_part_scores_as_its_formula(case: Case) -> None:
    found = pruned_of(case)
    rng, chart, n = np.random.default_rng(1), found.chart, found.length
    rows = RowNames.of(case.grammar)
    hidden = random_hidden(rng, rows, width=5, dimensions=3, suffixes=0)
    by_word = rng.normal(size=(n + 4, POSITIONS * 5)).astype(np.float32)
    places = np.array([rng.integers(i, k) for i, k in zip(chart.start, chart.end, strict=True)])
    head = places.astype(np.int32)
    of = rows.labels_of(case.grammar), rows.rules_of(case.grammar)
    item, edge = hidden_scores(chart, head, gather(by_word, n, 5), hidden, of)
    table = by_word.reshape(n + 4, POSITIONS, 5)
    for t in range(len(item)):
        i, k = int(chart.start[t]), int(chart.end[t])
        told = hidden_item(hidden, table, (i, k), int(head[t]), of[0][chart.symbol[t]])
        assert item[t] == pytest.approx(told, abs=SINGLE)
        for e in range(chart.edge_start[t], chart.edge_start[t + 1]):
            left, right = int(chart.left[e]), int(chart.right[e])
            span, heads = (i, int(chart.end[left]), k), (int(head[left]), int(head[right]))
            told = hidden_edge(hidden, table, span, heads, of[1][chart.rule[e]])
            assert edge[e] == pytest.approx(told, abs=SINGLE)


@given(cases(), sampled_from([0, code_of("letters")]))
def test_slots_of_all_features_are_those_of_their_names(case: Case, kind: int) -> None:
    found = pruned_of(case)
    n, names, chart = found.length, names_of(case.grammar), found.chart
    heads = flat_heads(case.grammar).of(case.grammar)
    seen = view(chart, found.item, found.edge, heads, n)
    facts = WordFacts(frozenset(["the"]), (), None).of(["the", "Dogs", "run", "2nd", "-"][:n])
    codes = padded_codes(facts, names.tag[seen.preterminal], kind)
    room, text = new_buffers(), (codes, seen.head)
    for t in range(len(found.item)):
        a, i, k = int(chart.symbol[t]), int(chart.start[t]), int(chart.end[t])
        count = item_slots(chart, t, text, names, room, 1023, True)
        label, marked = int(names.label[a]), int(names.marked[a])
        told = twin.item_slots(codes, i, k, int(seen.head[t]), (label, marked), 10)
        assert room[1][:count].tolist() == told
        for e in range(chart.edge_start[t], chart.edge_start[t + 1]):
            left, right, r = int(chart.left[e]), int(chart.right[e]), int(chart.rule[e])
            count = edge_slots(chart, t, e, text, names, room, 1023)
            span, two = (i, int(chart.end[left]), k), (int(seen.head[left]), int(seen.head[right]))
            rules = label, int(names.rule[r]), int(names.marked_rule[r])
            told = twin.edge_slots(codes, span, two, rules, 10)
            assert room[1][:count].tolist() == told


@given(cases())
def test_weights_in_bytes_score_as_the_numbers_they_stand_for(case: Case) -> None:
    found = pruned_of(case)
    n, names, weight = found.length, names_of(case.grammar), random_layer(case.grammar).weight
    heads = flat_heads(case.grammar).of(case.grammar)
    seen = view(found.chart, found.item, found.edge, heads, n)
    facts = WordFacts(frozenset(["the"]), (), None).of(["the"] * n)
    text = padded_codes(facts, names.tag[seen.preterminal]), seen.head
    in_bytes = sparse_scores(found.chart, text, names, weight.table)
    in_numbers = sparse_scores(found.chart, text, names, dequantize(weight))
    for one, other in zip(in_bytes, in_numbers, strict=True):
        # 29 sums of numbers of at most 1.2, in float32
        np.testing.assert_allclose(weight.unit * one, other, atol=1e-5)


def test_vectors_in_bytes_are_half_a_step_off_at_most() -> None:
    table = np.random.default_rng(0).normal(size=(3, 7)).astype(np.float32)
    table[1] = 0.0
    found = WordVectors.of(["a", "b", "c"], table)
    assert [found.row(word) for word in ("a", "A", "z")] == [0, 0, 3]
    taken = found.take(np.array([0, 1, 2, 3]))
    assert np.abs(taken[:3] - table).max() <= np.abs(table).max() / 254 + 1e-7
    assert not taken[3].any()


def test_rows_of_words_are_sums_of_their_parts() -> None:
    layer = random_layer(TINY)
    hidden, vectors = layer.hidden, layer.vectors
    assert hidden is not None
    assert vectors is not None
    words = ["the", "dog", "unseen", "the"]
    facts = WordFacts(layer.frequent, layer.suffixes, vectors).of(words)
    tags = np.zeros(len(words), np.int32)
    found = WordRows(hidden, vectors).with_tags(facts, tags)
    told = vectors.take(facts[5]) @ hidden.word + hidden.suffix[facts[4]] + hidden.tag[tags]
    np.testing.assert_allclose(found[PAD:-PAD], told, atol=SINGLE)
    beside = hidden.suffix[0] + hidden.tag[-1]
    np.testing.assert_array_equal(found[[0, 1, -2, -1]], np.tile(beside, (4, 1)))


def test_tables_in_bytes_are_half_a_level_off_at_most() -> None:
    table = np.random.default_rng(0).normal(size=(50, 7)).astype(np.float32)
    levels = quantize(table)
    assert levels.table.dtype == np.int8
    back, largest = dequantize(levels), float(np.abs(table).max())
    roots = np.sign(table) * np.sqrt(np.abs(table) / largest)
    # half of a step between square roots, and float32's rounding
    assert np.abs(np.sign(back) * np.sqrt(np.abs(back) / largest) - roots).max() <= 0.5 / 127 + 1e-6
    np.testing.assert_array_equal(rounded(back), back)
    assert np.abs(back).max() == np.float32(largest)
    assert not rounded(np.zeros(4, np.float32)).any()


def test_rare_words_are_known_by_their_shape_and_end_alone() -> None:
    facts = WordFacts(frozenset(["dog"]), ("ing",), None)
    found = facts.of(["dog", "running", "jogging", "Jogging"])
    assert len(set(found[0].tolist())) == 3
    assert found[0, 1] == found[0, 2] != found[0, 3]
    assert found[4].tolist() == [0, 1, 1, 1]


def broken(**changes: object) -> Layer:
    return replace(random_layer(TINY), **changes)  # type: ignore[arg-type]


def test_a_kind_of_text_is_guessed_only_where_it_is_sure() -> None:
    facts = WordFacts(frozenset(["gene", "lol"]), (), None)
    weight = np.zeros((1 << 12, 2), np.float32)
    for kind, word in enumerate(["gene", "lol"]):
        weight[slots(facts.of([word]), len(weight) - 1)[:FACTS], kind] += 1  # no pairs
    domains = Domains(("abstracts", "chat"), weight)
    assert domains.guess(facts.of(["gene", "the"])) == "abstracts"
    assert domains.guess(facts.of(["lol", "the"])) == "chat"
    assert domains.guess(facts.of(["gene", "lol", "the"])) == ""
    assert code_of("abstracts") != code_of("chat") != code_of("") == 0
    assert replace(domains, names=("abstracts", "")).guess(facts.of(["lol", "the"])) == ""


def test_weights_of_kinds_that_do_not_fit_are_refused() -> None:
    with pytest.raises(GrammarError, match="2 domains"):
        Domains(("abstracts", "chat"), np.zeros((8, 3), np.float32))
    with pytest.raises(GrammarError, match="a power"):
        Domains(("abstracts", "chat"), np.zeros((7, 2), np.float32))


def test_numbers_that_are_not_finite_are_refused() -> None:
    with pytest.raises(GrammarError, match="finite numbers in `weight`"):
        broken(weight=QuantizedWeights(np.zeros(16, np.int8), np.nan))
    hidden = random_layer(TINY).hidden
    assert hidden is not None
    with pytest.raises(GrammarError, match="finite numbers in `tag`"):
        broken(hidden=hidden._replace(tag=hidden.tag * np.float32(np.inf)))


def test_tables_that_do_not_fit_are_refused() -> None:
    with pytest.raises(GrammarError, match="power of two"):
        broken(weight=quantize(np.zeros(12, np.float32)))
    hidden = random_layer(TINY).hidden
    assert hidden is not None
    with pytest.raises(GrammarError, match="`rule` of the rescoring layer in shape"):
        broken(hidden=hidden._replace(rule=hidden.rule[1:]))
    with pytest.raises(GrammarError, match="vectors of words"):
        broken(vectors=None)
