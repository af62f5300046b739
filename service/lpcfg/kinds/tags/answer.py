"""Answers about tags as JSON."""

from typing import Any

from lpcfg.kinds.tags.predict import Tags


def tagged_json(found: Tags) -> dict[str, Any]:
    """Return the tags of a sentence as JSON."""
    return {
        "id": found.sentence.id,
        "status": found.status,
        "reason": found.reason,
        "text": found.sentence.text,
        "tokens": [token._asdict() for token in found.tokens],
        "log_probability": found.log_probability,
        "sign": found.sign,
    }
