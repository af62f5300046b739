"""What people type or pipe in, as sentences."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path

from lpcfg.errors import InputError
from lpcfg.parsing.results import Sentence
from lpcfg.text.files import lines


class Form(StrEnum):
    """How sentences are given."""

    TEXT = "text"
    TOKENS = "tokens"
    TAGGED = "tagged"


def sentences(file: Path | None, form: Form) -> Iterator[Sentence]:
    """The sentences of a file or, for None and `-`, of standard input.

    Tokens and tagged tokens come as one sentence a line, which is answered as soon as it is read.
    """
    if form is Form.TEXT:
        yield from _of_text("".join(lines(file)))
    else:
        read = _tagged if form is Form.TAGGED else _tokens
        yield from (read(line, number) for number, line in enumerate(lines(file), start=1))


def _of_text(text: str) -> Iterable[Sentence]:
    from lpcfg.text.tokenize import segment

    for part in segment(text):
        yield Sentence(
            tokens=tuple(token.text for token in part.tokens),
            text=part.text,
            start=part.start,
            end=part.end,
            forms=tuple(token.form for token in part.tokens),
            offsets=tuple((token.start, token.end) for token in part.tokens),
        )


def _tokens(line: str, number: int) -> Sentence:
    del number
    return Sentence(tokens=tuple(line.split()))


def _tagged(line: str, number: int) -> Sentence:
    tokens, tags = [], []
    for item in line.split():
        token, slash, tag = item.rpartition("/")
        if not (token and slash and tag):
            raise InputError(
                f"expected word/TAG in line {number}, got `{item}`: give every word its tag, or "
                "use --input tokens"
            )
        tokens.append(token)
        tags.append(tag)
    return Sentence(tokens=tuple(tokens), tags=tuple(tags))
