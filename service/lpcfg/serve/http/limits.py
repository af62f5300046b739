"""Check how much a request holds, before anything looks at its elements one by one."""

from collections.abc import Sequence
from typing import Any

from lpcfg.base.errors import LimitError
from lpcfg.settings import Settings

MOST_CONSTRAINTS = 10_000
"""The most constraints of all sentences of a request together."""


def check_count(what: str, given: int, most: int, pointer: str) -> None:
    """Raise LimitError if a request has more of these than it may."""
    if given > most:
        raise LimitError(
            f"expected at most {most} {what} in one request, got {given}: send them in several, "
            "or line by line to /v1/batch",
            limit=most,
            value=given,
            pointer=pointer,
        )


def check_length(tokens: int, settings: Settings, pointer: str, which: str = "") -> None:
    """Raise LimitError for a sentence of more tokens than it may have."""
    if tokens > settings.max_tokens:
        raise LimitError(
            f"expected at most {settings.max_tokens} tokens in a sentence, got {tokens} in the "
            f"one{which or ' sent'}: split it",
            limit=settings.max_tokens,
            value=tokens,
            pointer=pointer,
        )


def check_size(value: Any, settings: Settings) -> None:
    """Raise LimitError for a body with longer lists than a request may have.

    A megabyte holds 349,000 elements: to look at each took 5 seconds and 885 MB.
    """
    for name in ("sentences", "trees", "pairs"):
        check_count(name, len(_list(value, name)), settings.max_sentences, f"/{name}")
    constraints = 0
    for number, one in enumerate(_list(value, "sentences")):
        pointer = f"/sentences/{number}"
        if found := check_sentence(one, settings, pointer):
            constraints += found
            check_count("constraints", constraints, MOST_CONSTRAINTS, f"{pointer}/constraints")


def check_sentence(value: Any, settings: Settings, pointer: str) -> int:
    """Raise LimitError for a sentence of too many tokens; return how many constraints it has."""
    check_length(len(_list(value, "tokens")), settings, f"{pointer}/tokens")
    return len(_list(value, "constraints"))


def _list(value: Any, name: str) -> Sequence[Any]:
    """Return a member if it is a list; what else it may be is told when it is validated."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, list) else ()
