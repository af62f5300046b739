"""Write answers about dependencies as JSON and as CoNLL-U."""

import math
from typing import Any

from lpcfg.kinds.dependencies.predict import ParsedArcs

FAILED = "the sentence has no words"


def parsed_json(
    found: ParsedArcs | None, *, text: str | None = None, identifier: str | int | None = None
) -> dict[str, Any]:
    """Return one answer as JSON: each token with its head (0: the root), relation, tag, and
    their probabilities.

    `head_probability` is of the head alone, `probability` of head and relation together. None
    stands for a sentence without words, which has failed.
    """
    if found is None:
        empty: dict[str, Any] = {"id": identifier, "status": "failed", "reason": FAILED}
        return {**empty, "text": text, "tokens": [], "log_probability": None}
    tokens = [
        {name: _rounded(value) for name, value in token._asdict().items()} for token in found.tokens
    ]
    log = found.log_probability
    return {
        "id": identifier,
        "status": "parsed",
        "reason": None,
        "text": text,
        "tokens": tokens,
        "log_probability": log if math.isfinite(log) else None,
    }


def _rounded(value: object) -> object:
    return round(value, 6) if isinstance(value, float) else value
