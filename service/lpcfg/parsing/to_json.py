"""Write results as JSON, for `lpcfg parse --output json` and for the service.

Trees are Penn brackets with words as treebanks write them (`-LRB-`). Tokens have the caller's own
characters.
"""

from collections.abc import Iterable
from typing import Any

from lpcfg.parsing.readout import ConstituentRow, Reading, TokenRow
from lpcfg.parsing.results import Analysis, Marginals, Parse, Sentence, Status, TreeProbability
from lpcfg.trees.brackets import write

Json = dict[str, Any]


def analysis_json(analysis: Analysis | Reading) -> Json:
    """Return one sentence with its tokens and trees as JSON.

    A reading becomes JSON without trees and other values in between: to make and drop them takes
    longer than the rest.
    """
    if isinstance(analysis, Reading):
        return _reading_json(analysis)
    return _sentence(
        analysis.sentence,
        analysis.status,
        analysis.reason,
        analysis.tokens,
        analysis.log_probability,
        analysis.unusual,
        analysis.sign,
        [_parse_json(parse) for parse in analysis.parses],
    )


def _parse_json(parse: Parse) -> Json:
    constituents = [(*one[:5], one.probability) for one in parse.constituents]
    measures = parse.score, parse.sign, parse.log_probability, parse.probability
    return _parse(write(parse.tree), *measures, constituents)


def _reading_json(reading: Reading) -> Json:
    answers = reading.answers
    return _sentence(
        answers.sentence,
        "parsed",
        None,
        answers.token_rows(reading.derivations[0]),
        answers.posteriors.log_probability,
        reading.unusual,
        answers.posteriors.sign,
        [
            _parse(answers.line(one), *answers.measures(one), answers.constituent_rows(one))
            for one in reading.derivations
        ],
    )


def _sentence(
    sentence: Sentence,
    status: Status,
    reason: str | None,
    tokens: Iterable[TokenRow],
    log_probability: float | None,
    unusual: float | None,
    sign: int | None,
    parses: list[Json],
) -> Json:
    return {
        "id": sentence.id,
        "status": status,
        "reason": reason,
        "text": sentence.text,
        "start": sentence.start,
        "end": sentence.end,
        "tokens": [
            {"text": text, "start": start, "end": end, "tag": tag, "probability": probability}
            for text, start, end, tag, probability in tokens
        ],
        "log_probability": log_probability,
        "unusual": unusual,
        "sign": sign,
        "parses": parses,
    }


def _parse(
    line: str,
    score: float,
    sign: int | None,
    log_probability: float | None,
    probability: float | None,
    constituents: Iterable[ConstituentRow],
) -> Json:
    return {
        "tree": line,
        "score": score,
        "log_probability": log_probability,
        "sign": sign,
        "probability": probability,
        "constituents": [
            {
                "label": label,
                "start": start,
                "end": end,
                "start_char": start_char,
                "end_char": end_char,
                "probability": share,
            }
            for label, start, end, start_char, end_char, share in constituents
        ],
    }


def marginals_json(marginals: Marginals) -> Json:
    """Return labelled spans with their posteriors, and the expected labels of each cell."""
    return {
        "status": marginals.status,
        "reason": marginals.reason,
        "log_probability": marginals.log_probability,
        "sign": marginals.sign,
        "clipped_mass": marginals.clipped_mass,
        "spans": [
            {
                "label": span.label,
                "start": span.start,
                "end": span.end,
                "probability": span.probability,
                "sign": span.sign,
                "log_magnitude": span.log_magnitude,
            }
            for span in marginals.spans
        ],
        "cells": [
            {"start": cell.start, "end": cell.end, "expected": cell.expected}
            for cell in marginals.cells
        ],
    }


def tree_probability_json(found: TreeProbability) -> Json:
    """Return the probability of a tree as JSON, or the reason why it has none."""
    return {
        "log_probability": found.log_probability,
        "sign": found.sign,
        "sentence_log_probability": found.sentence_log_probability,
        "conditional_log_probability": found.conditional_log_probability,
        "reason": found.reason,
    }
