"""Write answers about dependencies as JSON and as CoNLL-U."""

import math
from typing import Any

from lpcfg.kinds.dependencies.predict import ParsedArcs


def parsed_json(found: ParsedArcs) -> dict[str, Any]:
    """Return one answer as JSON: each token with its head (0: the root), relation, tag, and
    their probabilities.

    `head_probability` is of the head alone, `probability` of head and relation together.
    """
    tokens = [
        {name: _rounded(value) for name, value in token._asdict().items()} for token in found.tokens
    ]
    log = found.log_probability
    return {
        "id": found.sentence.id,
        "status": found.status,
        "reason": found.reason,
        "text": found.sentence.text,
        "tokens": tokens,
        "log_probability": log if math.isfinite(log) else None,
    }


def _rounded(value: object) -> object:
    return round(value, 6) if isinstance(value, float) else value
