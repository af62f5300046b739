"""Turn requests into sentences and trees, within the limits. This runs on the parsing threads."""

from collections.abc import Sequence

import numpy as np
from starlette.requests import Request

from lpcfg.base.cancel import Stop
from lpcfg.base.errors import InputError, LimitError
from lpcfg.kinds.sentences import Constraint, Segmenter, Sentence, sentence_from_tokens
from lpcfg.protocol.schemas import TokensInput, counted
from lpcfg.serve.http.context import context_of
from lpcfg.serve.http.requests import check_count, check_length
from lpcfg.serve.scheduling.admission import cost, cost_of_text, cost_of_tokens, tokens_of_text
from lpcfg.serve.state import Service
from lpcfg.settings import Settings
from lpcfg.trees.brackets import parse_tree
from lpcfg.trees.normalize import normalize
from lpcfg.trees.tree import Tree

AnyInput = str | TokensInput


def sentences_of(
    text: str | None,
    given: Sequence[AnyInput] | None,
    segmenter: Segmenter,
    settings: Settings,
    stop: Stop,
) -> list[Sentence]:
    """Return the sentences of a request: those found in its text, or those it lists."""
    if given is not None:
        return [
            sentence_of(one, segmenter, settings, f"/sentences/{number}")
            for number, one in enumerate(given)
        ]
    found = []
    # Sentence by sentence: the first that is too long, or too many, ends it, and so does `stop`.
    for one in segmenter.sentences(text or ""):
        stop.check()
        found.append(one)
        check_count("sentences", len(found), settings.max_sentences, "/text")
        check_length(len(one.tokens), settings, "/text", f" that begins at {one.start}")
    return found


def sentence_of(
    given: AnyInput, segmenter: Segmenter, settings: Settings, pointer: str
) -> Sentence:
    """Build one sentence, given as text or as tokens."""
    if isinstance(given, str):
        # Enough of them to say how many there are, but not 200,000 of a megabyte.
        sentence = segmenter.sentence(given, 10 * settings.max_tokens)
        check_length(len(sentence.tokens), settings, pointer)
        return sentence
    check_length(len(given.tokens), settings, f"{pointer}/tokens")
    for number, one in enumerate(given.constraints):
        if one.end > len(given.tokens):
            raise InputError(
                f"expected a constraint within {counted(len(given.tokens), 'token')}, got end "
                f"{one.end}: `start` and `end` count tokens from 0",
                pointer=f"{pointer}/constraints/{number}/end",
            )
    constraints = [
        Constraint(one.start, one.end, one.label, one.forbid) for one in given.constraints
    ]
    return sentence_from_tokens(given.tokens, given.tags, constraints, given.id)


def tree_of(text: str, settings: Settings, pointer: str) -> Tree:
    """Read one bracketed tree within the limits, without traces, function tags and wrapper."""
    most, depth = settings.max_tree_depth, _depth(text)
    if depth > most:
        raise LimitError(
            f"expected at most {most} nested brackets, got {depth}: leave this tree out",
            limit=most,
            value=depth,
            pointer=pointer,
        )
    tree = normalize(parse_tree(text, source="tree", max_depth=most))
    if tree is None:
        raise InputError(
            "expected a tree that has words, got one of traces alone: leave it out",
            pointer=pointer,
        )
    words = 0
    for node in tree.nodes():
        words += node.is_leaf
        if len(node.children) > settings.max_tree_width:
            raise LimitError(
                f"expected at most {settings.max_tree_width} children of a node, got "
                f"{len(node.children)} under {node.label!r}: leave this tree out",
                limit=settings.max_tree_width,
                value=len(node.children),
                pointer=pointer,
            )
    check_length(words, settings, pointer)
    return tree


def _depth(text: str) -> int:
    """Compute the greatest number of open brackets, in linear time, even if they are not a tree."""
    marks = np.frombuffer(text.encode(), np.uint8)
    steps = (marks == ord("(")).astype(np.int32) - (marks == ord(")")).astype(np.int32)
    return int(steps.cumsum().max(initial=0))


# Estimates, before anything is read ---------------------------------------------------------------


def admit(
    service: Service, request: Request, text: str | None, given: Sequence[AnyInput] | None
) -> None:
    """Raise if there are too many sentences, or more tokens than are left in the key's quota."""
    check_count("sentences", len(given or ()), service.settings.max_sentences, "/sentences")
    service.charge(context_of(request.scope), tokens_in(text, given))


def estimate(text: str | None, given: Sequence[AnyInput] | None, settings: Settings) -> float:
    """Estimate the seconds a request takes. Raw text is counted as sentences of 25 words."""
    if given is None:
        return cost(25) * (1 + len(text or "") / 125)
    longest = settings.max_tokens
    return sum(
        cost_of_text(one, longest) if isinstance(one, str) else cost_of_tokens(one.tokens)
        for one in given
    )


def tokens_in(text: str | None, given: Sequence[AnyInput] | None) -> int:
    """Estimate how many tokens a request has: those it lists, and one for each 4 characters."""
    if given is None:
        return tokens_of_text(text or "")
    return sum(
        tokens_of_text(one) if isinstance(one, str) else max(len(one.tokens), 1) for one in given
    )
