"""Answers about dependencies as JSON and as CoNLL-U."""

import math
from typing import Any

from lpcfg.dependencies import conllu
from lpcfg.dependencies.parser import ParsedArcs

FAILED = "the sentence has no words"


def parsed_json(
    found: ParsedArcs | None, *, text: str | None = None, identifier: str | int | None = None
) -> dict[str, Any]:
    """Return one answer as JSON: for each token its head (0 for the root), relation, tag, and their
    probabilities.

    `head_probability` is of the head alone, `probability` of head and relation together. None
    stands for a sentence without words, which has failed.
    """
    if found is None:
        empty: dict[str, Any] = {"id": identifier, "status": "failed", "reason": FAILED}
        return {**empty, "text": text, "tokens": [], "log_probability": None}
    arcs = found.arcs
    tokens = []
    for m, word in enumerate(arcs.words):
        upos, _, xpos = arcs.tags[m].partition("|")
        start, end = arcs.offsets[m] if arcs.offsets else (None, None)
        tokens.append(
            {
                "text": word,
                "start": start,
                "end": end,
                "tag": upos,
                "xpos": xpos or None,
                "tag_probability": round(found.tag_probabilities[m], 6),
                "head": arcs.heads[m],
                "relation": arcs.labels[m],
                "head_probability": round(found.head_probabilities[m], 6),
                "probability": round(found.probabilities[m], 6),
            }
        )
    log = found.log_probability
    return {
        "id": identifier,
        "status": "parsed",
        "reason": None,
        "text": text,
        "tokens": tokens,
        "log_probability": log if math.isfinite(log) else None,
    }


def parsed_conllu(found: ParsedArcs, text: str | None = None) -> conllu.Sentence:
    """Return one answer as a sentence of CoNLL-U, with the probability of head and relation in
    MISC.
    """
    plain = conllu.sentence_of(found.arcs, text)
    rows = []
    for row, probability in zip(plain.rows, found.probabilities, strict=True):
        misc = [] if row[conllu.MISC] == "_" else [row[conllu.MISC]]
        misc = sorted([*misc, f"Probability={probability:.4f}"])
        rows.append((*row[: conllu.MISC], "|".join(misc)))
    return conllu.Sentence(plain.comments, tuple(rows))
