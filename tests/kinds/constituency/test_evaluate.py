"""A parser is evaluated on gold trees."""

import time
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from lpcfg.kinds.constituency import evaluate as run
from lpcfg.kinds.constituency.brackets import evaluate
from lpcfg.kinds.constituency.evaluate import evaluate_parser
from lpcfg.kinds.constituency.options import ParseOptions
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.kinds.constituency.readout import SpanTable
from lpcfg.kinds.sentences import Sentence, sentence_from_tree
from tests import small_models


def test_an_evaluation_is_the_same_whatever_the_workers() -> None:
    parser, gold = small_models.parser(), small_models.trees()
    one, several = (evaluate_parser(parser, gold, workers=n).as_json() for n in (1, 3))
    assert one.pop("sentences_per_second") > 0
    assert several.pop("sentences_per_second") > 0
    assert several == one


@pytest.mark.parametrize("tags", ["predicted", "gold"])
@pytest.mark.parametrize("objective", ["max-rule", "max-marginal"])
def test_an_evaluation_compares_the_trees_that_parsing_gives(tags: Any, objective: str) -> None:
    parser, gold = small_models.parser(), small_models.trees()[:20]
    found = evaluate_parser(parser, gold, tags=tags, options=ParseOptions(objective=objective))
    sentences = [sentence_from_tree(tree, tagged=tags == "gold") for tree in gold]
    analyses = list(parser.predict(sentences, ParseOptions(objective=objective)))
    trees = [one.parses[0].tree if one.parses else None for one in analyses]
    assert found.brackets == evaluate(zip(gold, trees, strict=True))
    facts = found.as_json()
    assert facts["clipped_mass"] == pytest.approx(sum(a.clipped_mass for a in analyses) / 20)
    assert facts["negative_share"] == sum(a.negative for a in analyses) / 20
    assert facts["partial"] == sum(a.status == "partial" for a in analyses)


def test_an_evaluation_parses_each_sentence_once(monkeypatch: pytest.MonkeyPatch) -> None:
    gold = small_models.trees()[:12]
    seen: Counter[Sentence] = Counter()
    charted = Parser._charted

    def counting(self: Parser, sentence: Sentence, *rest: Any, **options: Any) -> Any:
        seen[sentence] += 1
        return charted(self, sentence, *rest, **options)

    monkeypatch.setattr(Parser, "_charted", counting)
    evaluate_parser(small_models.parser(), gold)
    expected = Counter(sentence_from_tree(tree) for tree in gold)
    expected[sentence_from_tree(gold[0])] += 1  # compiles and loads, outside of the clock
    assert seen == expected


def test_the_clock_runs_around_parsing_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading spans and comparing trees are made slow: the time of the clock stays as it was."""
    ticks = iter(range(1000))
    within: list[int] = []

    def clock() -> float:
        within.append(next(ticks))
        return float(within[-1])

    table = SpanTable.of

    def slow(*arguments: Any) -> SpanTable:
        for _ in range(7):
            next(ticks)
        return table(*arguments)

    monkeypatch.setattr(time, "thread_time", clock)
    monkeypatch.setattr(SpanTable, "of", slow)
    gold = small_models.trees()[:5]
    found = run.examine(small_models.parser(), gold)
    assert found.seconds == 5.0  # one tick a sentence
    assert within[-1] > 4 * 7  # the others were ticked away outside of the clock


def test_pieces_and_negative_sentences_are_counted() -> None:
    parser, gold = small_models.parser(), small_models.trees()[:3]
    member = parser.model.members[0]
    turned = replace(member, c_one=-member.c_one)
    found = run.examine(Parser(replace(parser.model, members=(turned,))), gold)
    assert (found.negative, found.partial) == (3, 0)
