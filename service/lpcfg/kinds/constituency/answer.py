"""Write results as JSON, for `lpcfg parse --output json` and for the service.

Trees are Penn brackets with words as treebanks write them (`-LRB-`). Tokens have the caller's own
characters.
"""

from typing import Any

from lpcfg.kinds.constituency.results import Analysis, Marginals, Parse, TreeProbability

Json = dict[str, Any]


def analysis_json(analysis: Analysis) -> Json:
    """Return one sentence with its tokens and trees as JSON."""
    sentence = analysis.sentence
    return {
        "id": sentence.id,
        "status": analysis.status,
        "reason": analysis.reason,
        "text": sentence.text,
        "start": sentence.start,
        "end": sentence.end,
        "tokens": [
            {"text": text, "start": start, "end": end, "tag": tag, "probability": probability}
            for text, start, end, tag, probability in analysis.tokens
        ],
        "log_probability": analysis.log_probability,
        "unusual": analysis.unusual,
        "sign": analysis.sign,
        "parses": [_parse_json(parse) for parse in analysis.parses],
    }


def _parse_json(parse: Parse) -> Json:
    return {
        "tree": parse.brackets,
        "score": parse.score,
        "log_probability": parse.log_probability,
        "sign": parse.sign,
        "probability": parse.probability,
        "constituents": [
            {
                "label": label,
                "start": start,
                "end": end,
                "start_char": start_char,
                "end_char": end_char,
                "probability": probability,
            }
            for label, start, end, start_char, end_char, _, probability in parse.constituents
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
