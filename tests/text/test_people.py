"""The default model answers everyday texts; golden/people.json lists what must hold."""

import json
import math
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from lpcfg.kinds.constituency.answer import analysis_json, marginals_json
from lpcfg.kinds.constituency.options import ParseOptions
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.kinds.constituency.results import Analysis
from lpcfg.kinds.sentences import ENGLISH, Sentence
from lpcfg.trees.brackets import parse_tree, ptb_escape, write
from lpcfg.trees.draw import svg

CHECKOUT = Path(__file__).resolve().parents[2]
GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "people.json").read_text(encoding="utf-8")
)
CASES: list[dict[str, Any]] = GOLDEN["cases"]

LABELS, TAGS = set(GOLDEN["labels"].split()), set(GOLDEN["tags"].split())


@pytest.fixture(scope="module")
def parser() -> Parser:
    """Load the default model of the checkout; its absence is an error that says so."""
    return Parser.load("en", CHECKOUT / "model_store")


def analysed(parser: Parser, text: str) -> list[Analysis]:
    """Analyse a text, and check what holds of any analysis."""
    analyses = list(parser.predict(ENGLISH.sentences(text), ParseOptions(k=2)))
    for analysis in analyses:
        check_answer(analysis_json(analysis), text)
        check_trees(analysis)
    covered = {k for one in analyses for t in one.tokens for k in range(t.start or 0, t.end or 0)}
    assert covered == {k for k, character in enumerate(text) if not character.isspace()}
    return analyses


def check_answer(shown: dict[str, Any], text: str) -> None:
    """Check places, labels, probabilities and reasons of an answer as it is sent."""
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown
    assert text[shown["start"] : shown["end"]] == shown["text"]
    is_parsed = shown["status"] == "parsed"
    assert (shown["reason"] is None) == is_parsed
    assert (shown["log_probability"] is not None) == is_parsed
    assert shown["parses"]
    for token in shown["tokens"]:
        assert text[token["start"] : token["end"]] == token["text"]
        assert token["tag"] in TAGS
        check_probability(token["probability"], is_parsed)
    for one in (one for parse in shown["parses"] for one in parse["constituents"]):
        assert one["label"] in LABELS
        assert one["start_char"] == shown["tokens"][one["start"]]["start"]
        assert one["end_char"] == shown["tokens"][one["end"] - 1]["end"]
        check_probability(one["probability"], is_parsed)


def check_probability(probability: float | None, is_parsed: bool) -> None:
    assert (probability is not None) == is_parsed
    assert probability is None or 0 <= probability <= 1


def check_trees(analysis: Analysis) -> None:
    """Check that trees have the sentence's words, come back from their brackets, and can be
    drawn.
    """
    words = [ptb_escape(token.text) for token in analysis.tokens]
    for parse in analysis.parses:
        assert [ptb_escape(word) for word in parse.tree.tokens()] == words
        assert parse_tree(write(parse.tree)) == parse.tree
        inside = [node.label for node in parse.tree.nodes() if not node.is_leaf]
        assert [one.label for one in parse.constituents] == inside
        ElementTree.fromstring(svg(parse.tree))
    best = analysis.parses[0].tree
    assert [leaf.label for leaf in best.leaves()] == [token.tag for token in analysis.tokens]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_everyday_texts_get_answers(case: dict[str, Any], parser: Parser) -> None:
    analyses = analysed(parser, case["text"])
    assert len(analyses) == len(case["sentences"])
    for analysis, expected in zip(analyses, case["sentences"], strict=True):
        tokens = [token.text for token in analysis.tokens]
        assert tokens == expected["tokens"].split(" ")
        assert analysis.status in expected["status"]
        found = {
            (one.label, " ".join(tokens[one.start : one.end]))
            for one in analysis.parses[0].constituents
        }
        assert {(label, words) for label, words in expected.get("constituents", [])} <= found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_charts_show_what_people_can_read(case: dict[str, Any], parser: Parser) -> None:
    for sentence in ENGLISH.sentences(case["text"]):
        # 335 words have tens of thousands of spans, nearly all next to impossible.
        shown = marginals_json(parser.marginals(sentence, threshold=1e-6))
        assert (shown["reason"] is None) == (shown["status"] == "parsed")
        for span in shown["spans"]:
            assert span["label"] in LABELS
            assert 0 <= span["start"] < span["end"] <= len(sentence.tokens)
            check_probability(span["probability"], True)
        assert all(math.isfinite(cell["expected"]) for cell in shown["cells"])


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("a" * 2_000, 1),
        (f"The {'pneumono' * 200} barked.", 4),
        (";" * 500, 500),
        ("😀" * 100, 100),
    ],
    ids=["one letter", "one syllable", "semicolons", "emoji"],
)
def test_very_long_texts_get_answers(text: str, count: int, parser: Parser) -> None:
    (analysis,) = analysed(parser, text)
    assert len(analysis.tokens) == count


def test_a_sentence_without_tokens_fails_with_a_reason(parser: Parser) -> None:
    (analysis,) = parser.parse([Sentence(tokens=())])
    assert analysis.status == "failed"
    assert analysis.reason == "there are no tokens: send at least one word"
    assert analysis.parses == ()


def test_every_case_has_a_name_of_its_own() -> None:
    assert len({case["name"] for case in CASES}) == len(CASES)
