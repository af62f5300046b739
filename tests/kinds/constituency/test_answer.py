"""The JSON of answers has the keys that scripts and the service's users rely on."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from lpcfg.kinds.constituency.answer import analysis_json, marginals_json, tree_probability_json
from lpcfg.kinds.constituency.options import ParseOptions
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.kinds.constituency.readout import as_words, constituents_of
from lpcfg.kinds.constituency.results import (
    Analysis,
    Cell,
    Constituent,
    Marginals,
    Parse,
    SpanMarginal,
    Token,
    TreeProbability,
)
from lpcfg.kinds.sentences import ENGLISH, Sentence
from tests import small_models
from tests.small_layers import random_layer

SENTENCE = Sentence(
    tokens=("(", "é"),
    text="(é",
    start=3,
    end=5,
    id="a",
    forms=("-LRB-", "é"),
    offsets=((3, 4), (4, 5)),
)


def test_an_analysis_has_the_keys_of_the_api() -> None:
    parse = Parse(
        leaves=(("-LRB-", "-LRB-"), ("NN", "é")),
        score=1.5,
        sign=-1,
        log_probability=-3.0,
        probability=0.25,
        constituents=(Constituent("X", 0, 2, 3, 5, "(é", 0.75),),
    )
    tokens = (Token("(", 3, 4, "-LRB-", 1.0), Token("é", 4, 5, "NN", 0.5))
    analysis = Analysis(SENTENCE, "parsed", None, tokens, 1, -2.0, False, 0.0, (parse,), 12.5)
    assert json.loads(json.dumps(analysis_json(analysis))) == {
        "id": "a",
        "status": "parsed",
        "reason": None,
        "text": "(é",
        "start": 3,
        "end": 5,
        "tokens": [
            {"text": "(", "start": 3, "end": 4, "tag": "-LRB-", "probability": 1.0},
            {"text": "é", "start": 4, "end": 5, "tag": "NN", "probability": 0.5},
        ],
        "log_probability": -2.0,
        "unusual": 12.5,
        "sign": 1,
        "parses": [
            {
                "tree": "(X (-LRB- -LRB-) (NN é))",
                "score": 1.5,
                "log_probability": -3.0,
                "sign": -1,
                "probability": 0.25,
                "constituents": [
                    {
                        "label": "X",
                        "start": 0,
                        "end": 2,
                        "start_char": 3,
                        "end_char": 5,
                        "probability": 0.75,
                    }
                ],
            }
        ],
    }


ASKED = (
    *[Sentence(tuple(tree.tokens())) for tree in small_models.trees()[:12]],
    *ENGLISH.sentences("The cat (a {gnu}) grokked the zork. It [slept]; the dog saw it."),
    Sentence(("The", "New York", "dog", "saw", "☃", "."), id="é", constraints=((0, 3, "NP"),)),
    Sentence(("The", "dog", "saw"), tags=("DT", None, "VBD")),
    Sentence((")", "(", ")", "a%7Cb")),
    Sentence(()),
)


@pytest.mark.parametrize("layered", [False, True])
@pytest.mark.parametrize("k", [1, 3])
def test_brackets_and_tree_of_a_parse_are_the_same(k: int, layered: bool) -> None:
    model = small_models.spectral()
    layer = random_layer(model.grammar) if layered else None
    parser = Parser(replace(model, rescoring=layer))
    statuses = Counter[str]()
    for analysis in parser.predict(ASKED, ParseOptions(k=k)):
        statuses[analysis.status] += 1
        for parse in analysis.parses:
            assert parse.brackets == str(parse.tree)
            assert parse.tree.tokens() == as_words(analysis.sentence)
            found = constituents_of(parse.tree, analysis.sentence)
            assert found == tuple(one._replace(probability=None) for one in parse.constituents)
    assert statuses["parsed"] >= 12
    assert statuses["failed"] == 1


def test_marginals_have_posterior_sign_and_magnitude_of_every_span() -> None:
    span = SpanMarginal("NP", 0, 2, 0.5, -1, -7.0)
    marginals = Marginals(SENTENCE, "parsed", None, 1, -2.0, 0.1, (span,), (Cell(0, 2, 1.5),))
    assert json.loads(json.dumps(marginals_json(marginals))) == {
        "status": "parsed",
        "reason": None,
        "log_probability": -2.0,
        "sign": 1,
        "clipped_mass": 0.1,
        "spans": [
            {
                "label": "NP",
                "start": 0,
                "end": 2,
                "probability": 0.5,
                "sign": -1,
                "log_magnitude": -7.0,
            }
        ],
        "cells": [{"start": 0, "end": 2, "expected": 1.5}],
    }


def test_a_score_says_why_a_tree_is_impossible() -> None:
    score = TreeProbability(None, 0, -2.0, None, "no rule `S → VP NP`")
    assert json.loads(json.dumps(tree_probability_json(score))) == {
        "log_probability": None,
        "sign": 0,
        "sentence_log_probability": -2.0,
        "conditional_log_probability": None,
        "reason": "no rule `S → VP NP`",
    }
