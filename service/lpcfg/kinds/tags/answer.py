"""Answers about tags as JSON."""

from typing import Any

from lpcfg.kinds.sentences import Sentence
from lpcfg.kinds.tags.predict import Tags

FAILED = "the sentence has no words"


def tagged_json(sentence: Sentence, found: Tags | None) -> dict[str, Any]:
    """Describe the tags of a sentence; None stands for one without words, which has failed."""
    places = sentence.offsets or [(None, None)] * len(sentence.tokens)
    tokens = (
        []
        if found is None
        else zip(sentence.tokens, places, found.tags, found.probabilities, strict=True)
    )
    return {
        "id": sentence.id,
        "status": "failed" if found is None else "tagged",
        "reason": FAILED if found is None else None,
        "text": sentence.text,
        "tokens": [
            {"text": text, "start": start, "end": end, "tag": tag, "probability": probability}
            for text, (start, end), tag, probability in tokens
        ],
        "log_probability": None if found is None else found.log_probability,
        "sign": None if found is None else found.sign,
    }
