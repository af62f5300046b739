"""Learning the layer: folds, targets, gradients, and whole trainings of small treebanks."""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from lpcfg.base.errors import TrainingError
from lpcfg.engine.pruned.coarse import Pruned
from lpcfg.engine.rescoring.chart import view
from lpcfg.engine.rescoring.domains import code_of
from lpcfg.engine.rescoring.features import ITEM_FEATURES, PAD, sparse_scores
from lpcfg.engine.rescoring.hidden import Hidden, gather, hidden_scores
from lpcfg.engine.rescoring.layer import WordFacts
from lpcfg.engine.rescoring.names import RowNames, names_of
from lpcfg.grammar.tables import Grammar
from lpcfg.kinds.constituency.model import Model, from_bundle, to_bundle
from lpcfg.kinds.constituency.options import ParseOptions
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.kinds.sentences import Sentence
from lpcfg.training.config import TrainingConfig, config_of, member
from lpcfg.training.data.treebank import read_forest
from lpcfg.training.pipeline import train
from lpcfg.training.rescoring.charts import Charts, Record, Spill
from lpcfg.training.rescoring.domains import Texts, domains_of
from lpcfg.training.rescoring.examples import MARGIN, ChartExamples
from lpcfg.training.rescoring.hidden import add_gradient, no_gradient
from lpcfg.training.rescoring.jackknife import RUNS, folds_of
from lpcfg.training.rescoring.settings import RescoringSettings
from lpcfg.training.rescoring.sparse import count_slots, update
from lpcfg.training.rescoring.targets import BINARIZED, TAG, chains_of, gains, target
from lpcfg.training.summary import TrainReport
from tests.rescoring_twin import derivations, enumerated
from tests.small_charts import Case, cases
from tests.small_layers import flat_heads, random_hidden
from tests.small_models import SMALL, trees


def pruned_of(case: Case) -> Pruned | None:
    found = case.prune()
    return found if isinstance(found, Pruned) else None


# Targets ------------------------------------------------------------------------------------------

CHAINS = Grammar(
    ("NP", "NP|NP", "S", "@S", "DT", "NP|NN"),
    4,
    np.array([[0, 4, 5], [1, 4, 5], [2, 0, 5], [2, 3, 5], [3, 4, 5]], np.int32),
    ("a", "b"),
    np.array([[4, 0], [5, 1]], np.int32),
)


def gain_of(symbol: str, gold: str | None) -> float:
    """Compute what one item over a span adds, where gold has one symbol or none."""
    ids = CHAINS.symbol_ids
    width = 1 if ids[symbol] >= CHAINS.n_internal else 2
    table = np.full((width + 1, width + 1), -1, np.int32)
    if gold is not None:
        table[0, width] = ids[gold]
    spans = np.array([0], np.int32), np.array([width], np.int32)
    chart = SimpleChart(np.array([ids[symbol]], np.int32), *spans)
    return float(gains.py_func(chart, table, chains_of(CHAINS))[0])


class SimpleChart(SimpleNamespace):
    """An item alone."""

    def __init__(self, symbol: Any, start: Any, end: Any) -> None:
        super().__init__(symbol=symbol, start=start, end=end)


def test_labels_of_a_chain_count_as_a_multiset() -> None:
    assert gain_of("NP", "NP") == 1
    assert gain_of("NP|NP", "NP") == 0  # one is right and one is not
    assert gain_of("NP|NP", "NP|NP") == 2
    assert gain_of("S", "NP") == gain_of("S", None) == -1


def test_tags_count_half_and_intermediate_symbols_little() -> None:
    assert gain_of("DT", "DT") == TAG
    assert gain_of("DT", "NP|NN") == -TAG
    assert gain_of("NP|NN", "NP|NN") == 1 + TAG
    assert gain_of("@S", "@S") == BINARIZED
    assert gain_of("@S", "S") == 0


@given(cases())
def test_the_target_has_the_largest_gain_of_all_derivations(case: Case) -> None:
    if (found := pruned_of(case)) is None:
        return
    n, rng = found.length, np.random.default_rng(found.length)
    gold = rng.integers(-1, case.grammar.n_symbols, (n + 1, n + 1)).astype(np.int32)
    chains = chains_of(case.grammar)
    gain = gains(found.chart, gold, chains)
    chosen = target(found.chart, gold, chains)
    most = max(math.fsum(gain[list(items)]) for _, (items, _) in derivations(found.chart, n))
    assert gain[chosen.item].sum() == pytest.approx(most)
    of = frozenset(np.flatnonzero(chosen.item).tolist())
    with_edges = of, frozenset(np.flatnonzero(chosen.edge).tolist())
    assert with_edges in [derivation for _, derivation in derivations(found.chart, n)]


# Gradients ----------------------------------------------------------------------------------------


def record_of(case: Case, found: Pruned) -> Record:
    n = found.length
    seen = view(found.chart, found.item, found.edge, flat_heads(case.grammar).of(case.grammar), n)
    rng = np.random.default_rng(n)
    gold = rng.integers(-1, case.grammar.n_symbols, (n + 1, n + 1)).astype(np.int32)
    chosen = target(found.chart, gold, chains_of(case.grammar))
    return Record(found.chart, seen, chosen, np.arange(n, dtype=np.int32))


def examples_of(case: Case, record: Record) -> ChartExamples:
    words = ["the", "Dogs", "run", "2nd", "dog"]
    facts = WordFacts(frozenset(["the"]), ("dog",), None).of(words)
    once, domain = np.ones(1, np.int32), np.array([code_of("letters")])
    return ChartExamples([record], names_of(case.grammar), facts, once, 0.5, domain)  # type: ignore[arg-type]


def by_word(hidden: Hidden, vectors: Any, tags: Any, suffixes: Any) -> Any:
    """Compute the rows of all positions of the words, and of what is beside the sentence."""
    beside = np.tile(hidden.tag[-1] + hidden.suffix[0], (PAD, 1))
    inside = vectors @ hidden.word + hidden.tag[tags] + hidden.suffix[suffixes]
    return np.vstack([beside, inside, beside])


def log_likelihood(record: Record, item: Any, edge: Any) -> float:
    """Compute log p(target | x) with the margin, by enumeration."""
    n = len(record.words)
    item = item.astype(np.float64) + float(MARGIN) * ~record.target.item
    edge = edge.astype(np.float64) + 0.5 * record.view.edge
    root = 0.5 * record.view.root.astype(np.float64)
    log_z = enumerated(record.chart, n, item, edge, root).log_z
    top = int(np.flatnonzero(record.target.item).max())
    of_target = item[record.target.item].sum() + edge[record.target.edge].sum() + root[top]
    return float(of_target - log_z)


@given(cases(max_words=4))
def test_the_gradient_of_scores_is_that_of_the_likelihood(case: Case) -> None:
    if (found := pruned_of(case)) is None:
        return
    record = record_of(case, found)
    rng = np.random.default_rng(3)
    item, edge = (rng.normal(size=len(x)).astype(np.float32) for x in (found.item, found.edge))
    of_item, of_edge = examples_of(case, record).gradient(record, item.copy(), edge.copy())
    step = 1e-4  # of scores in float64: the second-order error is below 1e-8
    for at in rng.integers(len(item), size=3):
        up, down = item.astype(np.float64), item.astype(np.float64)
        up[at] += step
        down[at] -= step
        slope = log_likelihood(record, up, edge) - log_likelihood(record, down, edge)
        assert of_item[at] == pytest.approx(slope / (2 * step), abs=1e-5)
    for at in rng.integers(len(edge), size=3) if len(edge) else ():
        up, down = edge.astype(np.float64), edge.astype(np.float64)
        up[at] += step
        down[at] -= step
        slope = log_likelihood(record, item, up) - log_likelihood(record, item, down)
        assert of_edge[at] == pytest.approx(slope / (2 * step), abs=1e-5)


@given(cases(max_words=4))
def test_the_gradient_of_tables_is_that_of_the_likelihood(case: Case) -> None:
    if (found := pruned_of(case)) is None:
        return
    record, rng, width, rows = (
        record_of(case, found),
        np.random.default_rng(4),
        5,
        RowNames.of(case.grammar),
    )
    n, of = found.length, (rows.labels_of(case.grammar), rows.rules_of(case.grammar))
    hidden = random_hidden(rng, rows, width=width, dimensions=2, suffixes=2)
    vectors = rng.normal(size=(n, 2)).astype(np.float32)
    words = vectors, rng.integers(len(rows.tags), size=n).astype(np.int32), rng.integers(3, size=n)
    off = np.array([0, -1e9, 0, 0, 0], np.float32)  # the second unit is left out

    def value(tables: Hidden) -> float:
        without = tables._replace(label=tables.label.copy(), rule=tables.rule.copy())
        without.label[:, 1] = without.rule[:, 1] = 0.0
        by = by_word(without, vectors, words[1], words[2])
        item, edge = hidden_scores(
            record.chart, record.view.head, gather(by, n, width), without, of
        )
        return log_likelihood(record, 1.25 * item, 1.25 * edge)

    out, moved = no_gradient(hidden)
    task = record.view, record.target, np.float32(0.5)
    left = off, np.float32(1.25)
    add_gradient(record.chart, task, words, hidden, of, left, (out, moved))
    # relu has no gradient at its kinks: a direction over all entries, small steps, and a tolerance
    # for float32 scores (1e-6) over the step and for a kink that a step crosses
    step = 3e-4
    for name in Hidden._fields:
        table, told = getattr(hidden, name), getattr(out, name)
        assert not told[~getattr(moved, name)].any()
        way = rng.normal(size=table.shape).astype(np.float32)
        up, down = (hidden._replace(**{name: table + sign * step * way}) for sign in (1, -1))
        slope = (value(up) - value(down)) / (2 * step)
        assert float((told * way).sum()) == pytest.approx(slope, abs=0.05 * (1 + abs(slope)))


@given(cases(max_words=4))
def test_a_step_of_the_sparse_part_makes_the_target_likelier(case: Case) -> None:
    if (found := pruned_of(case)) is None:
        return
    record = record_of(case, found)
    examples = examples_of(case, record)
    text = examples.sparse(0)[1], record.view.head
    counts = np.zeros(1 << 12, np.uint8)
    count_slots(record.chart, text, examples.names, record.target, counts)
    assert counts.sum() >= min(record.target.item.sum() * 21, ITEM_FEATURES)
    table = np.zeros((1 << 12, 2), np.float32)
    table[:, 1] = counts > 0
    before = sparse_scores(record.chart, text, examples.names, table[:, 0])
    gradient = examples.gradient(record, before[0].copy(), before[1].copy())
    update(record.chart, text, examples.names, gradient, table, (0.01, 0.0))
    after = sparse_scores(record.chart, text, examples.names, table[:, 0])
    assert not table[counts == 0].any()
    gained = log_likelihood(record, *after) - log_likelihood(record, *before)
    assert gained >= -1e-6
    if np.abs(gradient[0]).max() > 0.1:
        assert gained > 0


# Domains ------------------------------------------------------------------------------------------


def texts(count: int = 200) -> Texts:
    """Make sentences of two domains, each of words of its own and of one that both have."""
    facts = WordFacts(frozenset(["gene", "protein", "lol", "dude", "the"]), (), None).of(
        ["gene", "protein", "lol", "dude", "the"]
    )
    rng = np.random.default_rng(1)
    domain = np.arange(count, dtype=np.int32) % 2
    words = [[2 * d + rng.integers(2), 4, 2 * d + rng.integers(2)] for d in domain]
    start = np.arange(count + 1, dtype=np.int64) * 3
    return Texts(facts[:, np.concatenate(words)], start, domain, ("abstracts", "chat"))


def test_domains_of_text_are_learned_from_words() -> None:
    told = texts()
    fold = np.arange(200) // 50
    codes = told.guessed(np.arange(200), fold.astype(np.int32), seed=1)
    wanted = [code_of(told.names[d]) for d in told.domain]
    assert codes.tolist() == wanted


def test_guesses_of_a_fold_do_not_know_its_domains() -> None:
    told = texts()
    fold = (np.arange(200) // 100).astype(np.int32)
    swapped = np.where(fold == 0, 1 - told.domain, told.domain).astype(np.int32)
    first = told.guessed(np.arange(200), fold, seed=1)
    second = replace(told, domain=swapped).guessed(np.arange(200), fold, seed=1)
    np.testing.assert_array_equal(first[fold == 0], second[fold == 0])
    assert (first[fold == 1] != second[fold == 1]).all()


def test_treebanks_of_one_name_are_one_domain() -> None:
    source = np.array([0, 1, 2, 3], np.int32)
    names, domain = domains_of(["news", "", "chat", "news"], source)
    assert (names, domain.tolist()) == (("", "chat", "news"), [2, 0, 1, 2])
    with pytest.raises(TrainingError, match="each of 4 treebanks"):
        domains_of(["news", "chat"], source)


def test_one_domain_is_nothing_to_guess() -> None:
    source = np.array([0, 1], np.int32)
    for names in ([], ["news"], ["news", "news"], ["news", ""]):
        assert domains_of(names, source)[0] == ()


# Records in files ---------------------------------------------------------------------------------


@given(cases())
def test_records_come_back_from_their_file(tmp_path_factory: Any, case: Case) -> None:
    if (found := pruned_of(case)) is None:
        return
    record = record_of(case, found)
    path = tmp_path_factory.mktemp("charts") / "spilled"
    spill = Spill(path)
    spill.add(record, 7)
    spill.add(record, 9)
    with Charts([spill.close()]) as charts:
        assert charts.trees.tolist() == [7, 9]
        for back in charts:
            for name in ("symbol", "start", "end", "edge_start", "rule", "left", "right"):
                mine, told = getattr(back.chart, name), getattr(record.chart, name)
                np.testing.assert_array_equal(mine, told)
            for mine, told in zip(
                (*back.view, *back.target, back.words),
                (*record.view, *record.target, record.words),
                strict=True,
            ):
                np.testing.assert_array_equal(mine, told)


# Folds and whole trainings ------------------------------------------------------------------------


def bank(folder: Path, copies: int) -> Path:
    path = folder / "bank.mrg"
    path.write_text(SMALL.read_text(encoding="utf-8") * copies, encoding="utf-8")
    return path


def test_folds_take_runs_of_neighbours_from_every_source(tmp_path: Path) -> None:
    path = bank(tmp_path, 1)
    forest = read_forest([path, path])
    some = np.flatnonzero(np.arange(forest.n_trees) % 3)
    fold = folds_of(forest, some, 4)
    for source in (0, 1):
        own = fold[forest.source[some] == source]
        assert np.count_nonzero(np.diff(own)) == 3  # too few trees for several runs a fold
        assert np.bincount(own, minlength=4).min() >= len(own) // 4 // 3
    many = np.repeat(some, 40)
    fold = folds_of(forest, np.sort(many), 4)
    assert np.count_nonzero(np.diff(fold)) == 2 * 4 * RUNS - 1
    assert np.bincount(fold, minlength=4).min() >= len(many) // 4 // 3


def test_folds_are_cut_between_documents(tmp_path: Path) -> None:
    rng, documents = np.random.default_rng(1), []
    for number, size in enumerate(rng.integers(20, 60, 60).tolist()):
        own = [f"w{number}x{which}" for which in range(size // 4)]
        words = [own[which] for which in rng.integers(len(own), size=size)]
        documents.append([f"(S (DT the) (NN {word}) (VBD fell))\n" for word in words])
    path = tmp_path / "documents.mrg"
    path.write_text("".join(line for lines in documents for line in lines), encoding="utf-8")
    forest = read_forest([path])
    fold = folds_of(forest, np.arange(forest.n_trees), 2)
    cuts = np.flatnonzero(np.diff(fold)) + 1
    ends = np.cumsum([len(lines) for lines in documents])
    assert len(cuts) == 2 * RUNS - 1
    assert np.isin(cuts, ends).all()


CONFIG = TrainingConfig(
    sibling_threshold=2,
    held_out=0,
    members=(member("spectral", states=2),),
    rescoring=RescoringSettings(folds=2, bits=12, passes=2, width=6, dimensions=4),
)


@cache
def layered(workers: int) -> tuple[Model, TrainReport]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        return train(bank(Path(folder), 2), CONFIG, workers=workers)


def arrays_of(model: Model) -> Iterator[tuple[str, Any]]:
    tensors = to_bundle(model, facts={}, card="").tensors
    yield from sorted(tensors.items())


def test_the_layer_is_the_same_whatever_the_workers() -> None:
    one, two = layered(1)[0], layered(2)[0]
    for (name, mine), (other, told) in zip(arrays_of(one), arrays_of(two), strict=True):
        assert name == other
        np.testing.assert_array_equal(mine, told, err_msg=name)


def test_a_layer_that_was_stored_answers_as_before() -> None:
    model = layered(1)[0]
    back = from_bundle(to_bundle(model, facts={}, card="", exact=True))
    sentences = [Sentence(tuple(tree.tokens())) for tree in trees()[:8]]
    mine, told = (list(Parser(one).predict(sentences)) for one in (model, back))
    assert [one.parses for one in mine] == [one.parses for one in told]


def test_without_rescoring_the_tensors_answer_bit_for_bit() -> None:
    model, report = layered(1)
    assert report.rescoring["trees"] == 128
    assert model.rescoring is not None
    plain = replace(model, rescoring=None, rescored_calibration=None)
    sentences = [Sentence(tuple(tree.tokens())) for tree in trees()[:20]]
    mine = list(Parser(model).predict(sentences, ParseOptions(k=3, rescore=False)))
    assert mine == list(Parser(plain).predict(sentences, ParseOptions(k=3)))
    rescored = list(Parser(model).predict(sentences, ParseOptions(k=3)))
    assert [one.parses for one in rescored] != [one.parses for one in mine]
    assert [one.log_probability for one in rescored] == [one.log_probability for one in mine]


def test_probabilities_of_all_parses_sum_to_one_at_most() -> None:
    parser = Parser(layered(1)[0])
    for tree in trees()[:10]:
        sentence = Sentence(tuple(tree.tokens()))
        (analysis,) = parser.predict([sentence], ParseOptions(k=50))
        shares = [parse.probability or 0.0 for parse in analysis.parses]
        assert 0 < sum(shares) <= 1 + 1e-9
        best = analysis.parses[0]
        (told,) = parser.tree_probability([best.tree])
        if told.conditional_log_probability is not None:
            assert told.conditional_log_probability <= 0


def test_one_word_and_constraints_work_through_the_layer() -> None:
    from lpcfg.kinds.sentences import Constraint

    parser = Parser(layered(1)[0])
    (one,) = parser.predict([Sentence(("Hello",))])
    assert [str(leaf.word) for leaf in one.parses[0].tree.leaves()] == ["Hello"]
    words = tuple(trees()[3].tokens())
    asked = Sentence(words, constraints=(Constraint(0, 2),))
    (analysis,) = parser.predict([asked])
    if analysis.status == "parsed":
        spans = {(c.start, c.end) for c in analysis.parses[0].constituents}
        assert (0, 2) in spans


def test_too_few_trees_are_trained_without_a_layer_and_said_so() -> None:
    model, report = train(SMALL, CONFIG)
    assert model.rescoring is None
    assert "64 trees are too few" in str(report.rescoring["left_out"])


def test_a_layer_may_be_left_out_or_have_settings() -> None:
    assert config_of({"rescoring": False}).rescoring is None
    assert config_of({"rescoring": True}).rescoring == RescoringSettings()
    assert config_of({"rescoring": {"width": 0}}).rescoring == RescoringSettings(width=0)
    for wrong in ({"folds": 1}, {"bits": 27}, {"trust": -1.0}, {"depth": 3}, 3):
        with pytest.raises(TrainingError, match=r"rescoring|expected"):
            config_of({"rescoring": wrong})


@pytest.mark.parametrize("domains", [(), ("a", "a", ""), ("b", "c")])
def test_domains_to_leave_out_are_among_several(domains: tuple[str, ...]) -> None:
    RescoringSettings(domains=("a", "b", ""), unfamiliar=("a",))
    with pytest.raises(TrainingError, match="`unfamiliar` that are among two or more in `domains`"):
        RescoringSettings(domains=domains, unfamiliar=("a",))
