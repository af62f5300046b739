"""What people type or pipe in, as sentences."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from lpcfg.parsing.results import Sentence
from lpcfg.parsing.sentences import sentence_from_tagged, sentence_from_tokens, sentences_in
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
        yield from sentences_in("".join(lines(file)))
        return
    for number, line in enumerate(lines(file), start=1):
        if form is Form.TAGGED:
            yield sentence_from_tagged(line, number)
        else:
            yield sentence_from_tokens(line.split())
