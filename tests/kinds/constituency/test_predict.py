"""The facade: typed answers to whatever is asked, the same however many ask at once."""

import gc
import itertools
import math
import random
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lpcfg.base.cancel import Stop
from lpcfg.base.errors import DeadlineError, InputError, Stopped
from lpcfg.engine.exact.inside_outside import inside, outside, tree_probability
from lpcfg.engine.objectives import OBJECTIVES
from lpcfg.engine.pruned import coarse
from lpcfg.kinds.calibration_map import MonotoneMap
from lpcfg.kinds.constituency.model import to_bundle
from lpcfg.kinds.constituency.options import ParseOptions
from lpcfg.kinds.constituency.predict import FRAGMENT, LONGEST, Parser
from lpcfg.kinds.constituency.results import Analysis
from lpcfg.kinds.sentences import Constraint, Sentence
from lpcfg.store.versions import publish
from lpcfg.text.tokenize import penn_forms
from lpcfg.trees.binarize import binarize
from lpcfg.trees.brackets import write
from lpcfg.trees.tree import Tree
from tests import small_models
from tests.small_charts import NOTHING_OUT, SINGLE

STORE = Path(__file__).resolve().parents[3] / "model_store"

# Sentences of up to nine words under a model of small positive and negative numbers, whose sums
# cancel to no less than a hundredth of their terms: at most 10⁴ float32 roundings.
ROUNDING = 1e4 * SINGLE


def sentence(text: str, **given: object) -> Sentence:
    return Sentence(tuple(text.split()), **given)  # type: ignore[arg-type]


def parse(asked: Sentence, parser: Parser | None = None, **options: object) -> Analysis:
    (analysis,) = (parser or small_models.parser()).predict([asked], ParseOptions(**options))  # type: ignore[arg-type]
    return analysis


def labels(tree: Tree) -> set[str]:
    return {node.label for node in tree.nodes()}


def spans(tree: Tree) -> set[tuple[str, int, int]]:
    """Label, start and end of every constituent."""
    found: set[tuple[str, int, int]] = set()
    word = 0
    for node in tree.nodes():
        if node.is_leaf:
            word += 1
        else:
            found.add((node.label, word, word + len(node.tokens())))
    return found


TREEBANK_LABELS = set().union(*(labels(tree) for tree in small_models.trees()))
WORDS = sorted({word for tree in small_models.trees() for word in tree.tokens()})
SENTENCES = [Sentence(tuple(tree.tokens())) for tree in small_models.trees()]


# Answers to anything ----------------------------------------------------------------------------


def check_answer(asked: Sentence, analysis: Analysis) -> None:
    """Check what every answer must satisfy."""
    assert analysis.sentence is asked
    assert (analysis.reason is None) == (analysis.status == "parsed")
    assert [token.text for token in analysis.tokens] == list(asked.tokens)
    assert bool(analysis.parses) == (analysis.status != "failed")
    assert (analysis.log_probability is None) == (analysis.status != "parsed")
    for one in analysis.parses:
        assert len(one.tree.tokens()) == len(asked.tokens)
        assert labels(one.tree) <= TREEBANK_LABELS | {FRAGMENT}
        assert {(c.label, c.start, c.end) for c in one.constituents} == spans(one.tree)
        for constituent in one.constituents:
            assert (constituent.probability is None) == (analysis.status == "partial")
            assert constituent.probability is None or 0 <= constituent.probability <= 1
    if analysis.parses:
        tags = [leaf.label for leaf in analysis.parses[0].tree.leaves()]
        assert [token.tag for token in analysis.tokens] == tags
    for token in analysis.tokens:
        assert token.probability is None or 0 <= token.probability <= 1


words = st.one_of(
    st.sampled_from(WORDS),
    st.sampled_from(
        ["<", "@VP", "a|b", "\x00any", "(", ")", "-LRB-", "", " ", "\u00a0", "🦊", '"']
    ),
    st.text(max_size=8),
)
tags = st.one_of(st.none(), st.sampled_from([*sorted(TREEBANK_LABELS), "", "XX", "@S", "NP|NN"]))


@given(st.data())
def test_every_sentence_gets_a_typed_answer(data: st.DataObject) -> None:
    tokens = tuple(data.draw(st.lists(words, max_size=7)))
    size = len(tokens)
    given_tags = data.draw(st.none() | st.lists(tags, min_size=size, max_size=size).map(tuple))
    asked = Sentence(tokens, tags=given_tags)
    k, objective = data.draw(st.integers(1, 3)), data.draw(st.sampled_from(OBJECTIVES))
    check_answer(asked, parse(asked, k=k, objective=objective))


def test_no_words_are_answered_with_a_reason() -> None:
    asked = Sentence(())
    analysis = parse(asked)
    check_answer(asked, analysis)
    assert analysis.reason == "there are no tokens: send at least one word"


@pytest.mark.parametrize("word", ["Yes", "dog", "qwerty", "(", "."])
def test_one_word_is_an_analysis(word: str) -> None:
    analysis = parse(Sentence((word,)))
    check_answer(analysis.sentence, analysis)
    assert analysis.status in ("parsed", "partial")


def test_unknown_words_take_the_tags_of_their_signatures() -> None:
    analysis = parse(sentence("The gnus walked slowly to the zorkmarket ."))
    assert analysis.status == "parsed"
    assert [token.tag for token in analysis.tokens][1] in ("NNS", "NN")
    assert write(analysis.parses[0].tree).startswith("(S (NP (DT The) (NN")


def test_a_literal_model_says_which_word_it_does_not_know() -> None:
    parser = Parser(small_models.counts(rare_threshold=0))
    analysis = parse(sentence("The gnu sleeps ."), parser)
    assert analysis.status == "failed"
    assert analysis.reason == "the model does not know the word `gnu` and cannot guess"
    assert [token.tag for token in analysis.tokens] == [None] * 4
    assert parser.marginals(sentence("gnu")).reason == (
        "the model does not know the word `gnu` and cannot guess"
    )
    assert parse(sentence("The cat sleeps ."), parser).status == "parsed"


def test_tags_from_the_caller_are_respected() -> None:
    given_tags = ("DT", "NN", None, "DT", "JJ", ".")
    analysis = parse(sentence("The dog saw the cat .", tags=given_tags))
    found = [token.tag for token in analysis.tokens]
    assert [b for a, b in zip(given_tags, found, strict=True) if a] == ["DT", "NN", "DT", "JJ", "."]


def test_an_unknown_tag_changes_nothing() -> None:
    plain = parse(sentence("The dog saw the cat ."))
    tagged = parse(sentence("The dog saw the cat .", tags=("XX", "", None, "XX", "XX", "XX")))
    # tags given mean stricter pruning, which moves probabilities but not the best tree
    assert tagged.parses[0].tree == plain.parses[0].tree
    assert tagged.log_probability == pytest.approx(plain.log_probability, abs=0.01)


def test_tags_for_another_number_of_words_are_refused() -> None:
    message = "expected a tag or null for each of 3 tokens, got 2 tags: send as many"
    with pytest.raises(InputError, match=message) as caught:
        parse(sentence("The dog barks", tags=("DT", "NN")))
    assert caught.value.pointer == "/tags"


def test_wrong_options_are_refused() -> None:
    parser = small_models.parser()
    for k in (0, "2", 1.5, True, None):
        with pytest.raises(
            InputError, match="expected `k` as a whole number of at least 1, got"
        ) as e:
            parser.parse([["the"]], k=k)  # type: ignore[arg-type]
        assert e.value.pointer == "/k"
    with pytest.raises(InputError, match="expected `objective` as one of max-rule, max-marginal"):
        parser.parse([["the"]], objective="best")
    with pytest.raises(InputError, match="expected `rescore` as True or False, got 'no'"):
        parser.parse([["the"]], rescore="no")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="got 'objektive': did you mean `objective`"):
        parser.parse([["the"]], objektive="max-rule")  # type: ignore[call-arg]


# Where the grammar ends -------------------------------------------------------------------------

BEYOND_MARKS = sentence("w w w", tags=("DT", "NN", "."))
BEYOND_ALL = sentence("w w w", tags=(".", ".", "."))


def test_a_sentence_beyond_the_marked_grammar_is_parsed_without_marks() -> None:
    model = small_models.spectral()
    alone = parse(BEYOND_MARKS, Parser(replace(model, fallback=None)))
    assert alone.status == "partial"
    analysis = parse(BEYOND_MARKS)
    assert analysis.status == "parsed"
    check_answer(BEYOND_MARKS, analysis)
    assert [token.tag for token in analysis.tokens] == ["DT", "NN", "."]


def test_fragments_are_joined_unless_they_are_not_wanted() -> None:
    parser = Parser(replace(small_models.spectral(), fallback=None))
    assert parse(BEYOND_MARKS, parser).status == "partial"
    failed = parse(BEYOND_MARKS, parser, fragments=False)
    assert (failed.status, failed.parses) == ("failed", ())
    assert failed.reason == "no analysis spans all words, and fragments were not asked for"
    assert parse(SENTENCES[1], parser, fragments=False) == parse(SENTENCES[1], parser)


def test_no_other_grammar_is_tried_after_a_full_chart(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parse(BEYOND_MARKS).status == "parsed"
    monkeypatch.setattr(coarse, "FALLBACK_LIMIT", 0)
    assert parse(BEYOND_MARKS).status == "partial"


def test_a_sentence_beyond_every_grammar_gets_its_pieces() -> None:
    analysis = parse(BEYOND_ALL)
    assert analysis.status == "partial"
    assert analysis.reason == (
        "no analysis spans all words: these are the likeliest pieces, side by side"
    )
    assert write(analysis.parses[0].tree) == f"({FRAGMENT} (. w) (. w) (. w))"
    check_answer(BEYOND_ALL, analysis)
    found = small_models.parser().marginals(BEYOND_ALL)
    assert (found.status, found.spans, found.cells) == ("failed", (), ())
    assert found.reason == analysis.reason


def test_pieces_are_as_large_as_the_grammar_can_make_them() -> None:
    tags = ("DT", "NN", "VBZ", ".", ".", ".", "DT", "NN", "VBZ", ".")
    analysis = parse(sentence("The cat sleeps . . . The dog sleeps .", tags=tags))
    assert analysis.status == "partial"
    tops = analysis.parses[0].tree.children
    assert [top.label for top in tops].count("S") == 2
    assert len(tops) <= 4


# Probabilities ----------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", SENTENCES[::8], ids=lambda one: " ".join(one.tokens))
def test_log_probability_agrees_with_the_exact_engine(asked: Sentence) -> None:
    model = small_models.spectral()
    parser = Parser(model, thresholds=NOTHING_OUT)
    analysis = parse(asked, parser)
    right = inside(model.members[0], parser._emissions(asked)).probability
    assert analysis.sign == right.sign
    assert analysis.log_probability == pytest.approx(right.log, abs=ROUNDING)


def test_several_members_give_the_mean_of_their_probabilities() -> None:
    model = small_models.spectral(members=3)
    together = parse(SENTENCES[2], Parser(model, thresholds=NOTHING_OUT))
    alone = [
        parse(SENTENCES[2], Parser(replace(model, members=(one,)), thresholds=NOTHING_OUT))
        for one in model.members
    ]
    values = [(one.sign or 0) * math.exp(one.log_probability or 0.0) for one in alone]
    mean = sum(values) / 3
    assert together.sign == np.sign(mean)
    assert together.log_probability == pytest.approx(math.log(abs(mean)), abs=ROUNDING)
    assert together.negative == any(one.sign == -1 for one in alone)


def test_a_long_sentence_of_many_clauses_has_a_tree() -> None:
    parser = Parser.load("en", STORE)
    (found,) = parser.parse(
        "When the committee that had been asked to look into the delays finally published its "
        "report last week, most of the people who had complained about the new trains were "
        "surprised to learn that the company knew about the problem with the doors long before "
        "the first of them left the factory, and that nobody had told the drivers what to do."
    )
    assert found.status == "parsed"


@pytest.mark.parametrize("n", [200, 300])
def test_long_sentences_have_finite_probabilities(n: int) -> None:
    chosen = random.Random(n)
    tokens = tuple(chosen.choice(WORDS) for _ in range(n))
    analysis = parse(Sentence(tokens))
    check_answer(analysis.sentence, analysis)
    assert analysis.status == "parsed"
    assert analysis.log_probability is not None
    # words of a vocabulary of a few hundred: between one and twenty nats each
    assert -20 * n < analysis.log_probability < -n
    assert analysis.parses[0].log_probability is not None
    assert math.isfinite(analysis.parses[0].log_probability)
    assert all(math.isfinite(c.probability or 0.0) for c in analysis.parses[0].constituents)


# The k best -------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_trees_come_best_first_and_all_differ(objective: str) -> None:
    asked = sentence("The dog saw the cat with a telescope in the garden .")
    analysis = parse(asked, k=12, objective=objective)
    check_answer(asked, analysis)
    scores = [one.score for one in analysis.parses]
    assert len(scores) == 12
    assert scores == sorted(scores, reverse=True)
    assert len({write(one.tree) for one in analysis.parses}) == 12
    single = parse(asked, objective=objective)
    assert single.parses == analysis.parses[:1]


def test_derivations_that_restore_to_one_tree_count_once() -> None:
    """Symbols with and without sibling marks make the same trees."""
    asked = sentence("The dog saw the cat .")
    every = parse(asked, Parser(small_models.spectral(), thresholds=NOTHING_OUT), k=10_000)
    assert len({write(one.tree) for one in every.parses}) == len(every.parses) < 10_000


# Constraints ------------------------------------------------------------------------------------


def is_met(tree: Tree, one: Constraint) -> bool:
    found = any(
        (start, end) == (one.start, one.end) and one.label in (None, label)
        for label, start, end in spans(tree)
    )
    return found is not one.forbid


@given(st.data())
def test_constraints_hold_in_every_tree(data: st.DataObject) -> None:
    tokens = data.draw(st.sampled_from([s.tokens for s in SENTENCES if len(s.tokens) < 9]))
    ends = st.integers(0, len(tokens))
    pairs = data.draw(
        st.lists(st.tuples(ends, ends).filter(lambda p: p[0] != p[1]), min_size=1, max_size=3)
    )
    label = st.none() | st.sampled_from(["NP", "VP", "S", "PP"])
    asked = tuple(
        Constraint(min(pair), max(pair), data.draw(label), data.draw(st.booleans()))
        for pair in pairs
    )
    analysis = parse(Sentence(tokens, constraints=asked), k=3)
    check_answer(analysis.sentence, analysis)
    assert analysis.status in ("parsed", "failed")
    for one in analysis.parses:
        assert all(is_met(one.tree, constraint) for constraint in asked)
    if analysis.status == "failed":
        assert analysis.reason == ("no analysis has all constituents asked for: ask for fewer")


@cache
def literal_parser() -> Parser:
    """Build a parser in which every word is its own terminal and nothing is pruned."""
    model = replace(small_models.counts(horizontal=0, rare_threshold=0), fallback=None)
    return Parser(model, thresholds=NOTHING_OUT)


AMBIGUOUS = "She said that she liked the garden ."


@cache
def listed() -> tuple[tuple[Tree, float], ...]:
    """List all trees of AMBIGUOUS with p(tree) by the exact engine; together they are
    p(sentence).
    """
    parser = literal_parser()
    asked, tables = sentence(AMBIGUOUS), parser.model.coarse
    emissions = parser._emissions(asked)
    found = [one.tree for one in parse(asked, parser, k=10_000).parses]
    values = [
        tree_probability(tables, binarize(tree), emissions).probability.value for tree in found
    ]
    # float64 sums of a few positive numbers
    assert sum(values) == pytest.approx(inside(tables, emissions).probability.value, rel=1e-12)
    return tuple(zip(found, values, strict=True))


def test_the_constraints_tested_change_trees() -> None:
    assert len(listed()) > 4
    assert any(len({is_met(tree, one) for tree, _ in listed()}) == 2 for one in every_constraint())


def every_constraint() -> list[Constraint]:
    """List every labelled span of any tree of AMBIGUOUS, with its label, without, and forbidden."""
    found = set().union(*(spans(tree) for tree, _ in listed()))
    places = sorted({(start, end) for _, start, end in found})
    return [
        *(Constraint(start, end, label) for label, start, end in sorted(found)),
        *(Constraint(*place) for place in places),
        *(Constraint(*place, forbid=True) for place in places[::2]),
        *(Constraint(*place, "NP", forbid=True) for place in places[1::2]),
    ]


def test_closed_cells_are_exactly_the_crossing_ones() -> None:
    """Posteriors are those of the trees that have the constituents, all trees being listed."""
    for asked in itertools.combinations(every_constraint(), 2):
        left = [
            (tree, value) for tree, value in listed() if all(is_met(tree, one) for one in asked)
        ]
        analysis = parse(sentence(AMBIGUOUS, constraints=asked), literal_parser(), k=10_000)
        assert analysis.status == ("parsed" if left else "failed")
        if not left:
            continue
        total = sum(value for _, value in left)
        assert {one.tree for one in analysis.parses} == {tree for tree, _ in left}
        # products and sums of some fifty float64 numbers, seen through logs
        assert analysis.log_probability == pytest.approx(math.log(total), abs=1e-12)
        expected: dict[tuple[str, int, int], float] = {}
        for tree, value in left:
            for span in spans(tree):
                expected[span] = expected.get(span, 0.0) + value / total
        found = literal_parser().marginals(sentence(AMBIGUOUS, constraints=asked))
        assert {
            (one.label, one.start, one.end): one.probability for one in found.spans
        } == pytest.approx(expected, abs=1e-12)


def test_a_constraint_outside_of_the_sentence_is_refused() -> None:
    message = r"expected a constraint over tokens within \[0, 3\), got \[1, 4\): correct it"
    with pytest.raises(InputError, match=message) as caught:
        parse(sentence("The dog sleeps", constraints=(Constraint(0, 2), Constraint(1, 4))))
    assert caught.value.pointer == "/constraints/1"


def test_a_constraint_with_an_unknown_label_is_refused() -> None:
    message = "expected a label of the model's, got 'XP': use one of ADJP, ADVP, .*, WHNP"
    with pytest.raises(InputError, match=message) as caught:
        parse(sentence("The dog sleeps", constraints=(Constraint(0, 2), Constraint(1, 3, "XP"))))
    assert caught.value.pointer == "/constraints/1/label"


def test_a_constraint_that_the_callers_own_tags_exclude_fails() -> None:
    asked = sentence(
        "The dog saw the cat .",
        tags=("DT", "NN", "VBD", "DT", "NN", "."),
        constraints=(Constraint(0, 1, "PP"),),
    )
    analysis = parse(asked)
    assert analysis.status == "failed"
    assert analysis.reason == "no analysis has all constituents asked for: ask for fewer"
    assert small_models.parser().marginals(asked).reason == analysis.reason


# Marginals --------------------------------------------------------------------------------------


def test_marginals_are_those_of_the_constituents_of_the_best_tree() -> None:
    for asked in SENTENCES[::10]:
        found = small_models.parser().marginals(asked)
        shares = {(one.label, one.start, one.end): one.probability for one in found.spans}
        best = parse(asked).parses[0]
        assert best.constituents
        for one in best.constituents:
            assert shares[one.label, one.start, one.end] == one.probability


def test_a_threshold_and_chosen_spans_leave_out_the_rest() -> None:
    asked = sentence("The dog saw the cat with a telescope .")
    parser = small_models.parser()
    every = parser.marginals(asked)
    likely = parser.marginals(asked, threshold=0.25)
    assert likely.spans == tuple(one for one in every.spans if one.probability >= 0.25)
    assert 0 < len(likely.spans) < len(every.spans)
    some = parser.marginals(asked, spans=[(3, 8), (0, 9)])
    assert some.spans == tuple(
        one for one in every.spans if (one.start, one.end) in {(3, 8), (0, 9)}
    )
    assert some.cells == every.cells
    order = [(one.start, -one.end) for one in every.spans]
    assert order == sorted(order)
    for cell in every.cells:
        there = [one for one in every.spans if (one.start, one.end) == (cell.start, cell.end)]
        assert cell.expected == pytest.approx(math.fsum(one.probability for one in there))


def test_raw_marginals_are_of_the_grammars_own_symbols() -> None:
    asked = sentence("The dog saw the cat with a telescope .")
    parser = small_models.parser()
    raw = parser.marginals(asked, raw=True)
    assert {one.label for one in raw.spans} <= set(parser.model.grammar.symbols)
    assert any(one.label.startswith("@") for one in raw.spans)
    words = [0.0] * len(asked.tokens)
    for one in raw.spans:
        if one.end == one.start + 1:
            words[one.start] += one.probability
    # every word is below one preterminal; what was pruned away is under 5e-5 an item
    assert words == pytest.approx([1.0] * len(words), abs=1e-3)
    top = next(one for one in raw.spans if (one.start, one.end) == (0, 9))
    assert raw.log_probability is not None
    expected = raw.log_probability + math.log(top.probability)
    assert top.log_magnitude == pytest.approx(expected, abs=1e-6)
    assert top.sign == raw.sign


def test_raw_marginals_have_the_signs_and_magnitudes_of_the_exact_engine() -> None:
    """Under numbers of all signs, whose sums cancel to no less than a hundredth of their terms."""
    model = small_models.spectral()
    rng = np.random.default_rng(1)
    sides = {name: getattr(model.members[0], name) for name in ("parent", "left", "right")}
    noisy = {name: x * (1 + rng.standard_normal(len(x))) for name, x in sides.items()}
    member = replace(model.members[0], **noisy)
    parser = Parser(replace(model, members=(member,)), thresholds=NOTHING_OUT)
    negative = 0
    for asked in (one for one in SENTENCES[::10] if len(one.tokens) <= 8):
        found = parser.marginals(asked, raw=True)
        right = outside(inside(member, parser._emissions(asked)))
        whole = right.probability
        assert found.sign == whole.sign
        for one in found.spans:
            mu = right.span(model.grammar.symbol_ids[one.label], one.start, one.end)
            expected = mu.sign * math.exp(mu.log - whole.log)
            share = one.sign * math.exp(one.log_magnitude - whole.log)
            assert share == pytest.approx(expected, abs=ROUNDING)
            negative += expected * whole.sign < -ROUNDING
    assert negative > 5  # otherwise nothing here tells signs from magnitudes


def test_calibration_changes_probabilities_and_nothing_else() -> None:
    halved = MonotoneMap.from_lists([[0.0, 1.0], [0.0, 0.5]])
    plain, asked = small_models.parser(), sentence("The dog saw the cat .")
    parser = Parser(replace(plain.model, calibration=halved))
    for found, raw in zip(parser.marginals(asked).spans, plain.marginals(asked).spans, strict=True):
        assert found.probability == pytest.approx(raw.probability / 2)
        assert found.log_magnitude == raw.log_magnitude
    assert parser.marginals(asked, calibrated=False).spans == plain.marginals(asked).spans
    best, other = parse(asked, parser).parses[0], parse(asked).parses[0]
    assert best.tree == other.tree
    assert [c.probability for c in best.constituents] == pytest.approx(
        [(c.probability or 0.0) / 2 for c in other.constituents]
    )


# Many at once -----------------------------------------------------------------------------------

MIXED = [
    *SENTENCES[:24],
    BEYOND_MARKS,
    BEYOND_ALL,
    Sentence(()),
    sentence("The gnu grokked the zork .", constraints=(Constraint(2, 5),)),
]


def answered(parser: Parser, asked: Sentence) -> Analysis:
    return next(parser.predict([asked], ParseOptions(k=3)))


def test_answers_do_not_depend_on_batch_order_and_threads() -> None:
    """Equal bit for bit: every field of every answer is compared, floats included."""
    alone = [answered(Parser(small_models.spectral()), one) for one in MIXED[:4]]
    parser = Parser(small_models.spectral())
    together = list(parser.predict(MIXED, ParseOptions(k=3)))
    assert together[:4] == alone
    order = list(range(len(MIXED)))
    random.Random(0).shuffle(order)
    shuffled = list(parser.predict([MIXED[at] for at in order], ParseOptions(k=3)))
    assert shuffled == [together[at] for at in order]
    fresh = Parser(small_models.spectral())
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(answered, fresh, one) for one in MIXED * 3]
        threaded = [job.result() for job in jobs]
    assert threaded == together * 3


def test_cancelled_work_is_not_begun() -> None:
    stop = Stop()
    stop.cancel()
    with pytest.raises(Stopped, match="the work was cancelled before it was done"):
        list(small_models.parser().predict(SENTENCES, stop=stop))
    with pytest.raises(DeadlineError, match="the deadline passed before the work was done"):
        list(small_models.parser().predict(SENTENCES, stop=Stop.after(0.0)))
    with pytest.raises(DeadlineError):
        small_models.parser().marginals(SENTENCES[0], stop=Stop.after(0.0))
    with pytest.raises(DeadlineError):
        small_models.parser().tree_probability(small_models.trees()[:1], stop=Stop.after(0.0))


class Asked(Stop):
    """Counts how often the work asks whether it is still wanted."""

    def __init__(self) -> None:
        super().__init__()
        self.times = 0

    def check(self) -> None:
        self.times += 1
        super().check()


LONG = sentence("The dog saw the cat" + " in the garden" * 65)
SOUP = Sentence(tuple(random.Random(0).choices(WORDS, k=200)))


@pytest.mark.parametrize("asked", [LONG, SOUP], ids=["one reading", "no reading"])
def test_long_work_checks_for_cancellation_between_its_steps(asked: Sentence) -> None:
    stop = Asked()
    (analysis,) = small_models.parser().predict([asked], ParseOptions(k=20), stop)
    # before and after every chart, before the fine pass, and before every tree
    assert stop.times >= 4 + len(analysis.parses)


def test_work_stops_from_another_thread() -> None:
    stop = Stop()
    timer = threading.Timer(0.1, stop.cancel)
    timer.start()
    with pytest.raises(Stopped, match="its caller stopped waiting"):
        list(small_models.parser().predict([LONG] * 10_000, stop=stop))
    timer.join()


def test_work_stops_at_its_deadline() -> None:
    with pytest.raises(DeadlineError, match="send less at once or allow more time"):
        list(small_models.parser().predict([LONG] * 10_000, stop=Stop.after(0.1)))


def test_an_examination_is_the_analysis_and_every_span() -> None:
    parser = small_models.parser()
    analysis, table = parser.examine(SENTENCES[1])
    assert analysis == parse(SENTENCES[1])
    assert table is not None
    assert table().spans(0.0, None) == parser.marginals(SENTENCES[1]).spans
    assert parser.examine(BEYOND_ALL) == (parse(BEYOND_ALL), None)


# Models -----------------------------------------------------------------------------------------


def test_a_parser_is_loaded_from_a_store(tmp_path: Path) -> None:
    bundle = to_bundle(small_models.spectral(), facts={}, card="", exact=True)
    reference = publish(tmp_path, "small", bundle)
    parser = Parser.load("small", tmp_path)
    assert parser.reference is not None
    assert str(parser.reference) == str(reference)
    assert small_models.parser().reference is None
    # the words' surroundings are stored in float32, which may move what is pruned
    mine, other = parse(SENTENCES[1], parser), parse(SENTENCES[1])
    assert mine.parses[0].tree == other.parses[0].tree
    assert mine.log_probability == pytest.approx(other.log_probability, abs=1e-3)


def test_a_sentence_too_long_for_a_chart_fails_with_a_reason() -> None:
    (found,) = Parser(small_models.counts()).parse([Sentence(("the",) * (LONGEST + 1))])
    assert found.status == "failed"
    assert found.reason == "expected at most 2000 words in a sentence, got 2001: split it"


def test_the_probabilities_of_a_words_tags_add_up_to_one() -> None:
    parser = small_models.parser()
    (found,) = parser.parse([Sentence(("Anna", "saw", "dogs", "."))])
    assert all(0.0 < token.probability <= 1.0 for token in found.tokens if token.probability)
    assert found.tokens[-1].probability == pytest.approx(1.0, abs=1e-6)  # nothing else is possible


def test_words_of_a_million_letters_are_not_remembered() -> None:
    parser = Parser.load("en", STORE)

    def read(start: str) -> None:
        word = start + "a" * 10**6 + "𝒳_"  # in four bytes a letter
        parser.parse([Sentence((word,), forms=penn_forms((word,)))])

    read("first")  # kernels are loaded
    tracemalloc.start()
    try:
        for start in ("second", "third"):
            read(start)
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 10**6
