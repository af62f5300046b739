"""Turn text that people type or pipe in into sentences."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from lpcfg.errors import InputError
from lpcfg.parsing.results import Sentence
from lpcfg.text.files import Source, files, lines, name_of
from lpcfg.text.markup import foreign


class Form(StrEnum):
    """How sentences are given."""

    TEXT = "text"
    LINES = "lines"
    TOKENS = "tokens"
    TAGGED = "tagged"
    CONLLU = "conllu"


_CURES = {
    "CoNLL-U": "say --input conllu",
    "Penn brackets": "ask `lpcfg tree-probability` about trees, or give their words alone",
    "HTML": "take the markup out first",
}


@dataclass(frozen=True, slots=True)
class Found:
    """A sentence, the file it stands in, and its number there, from 1."""

    source: str
    number: int
    sentence: Sentence


def sentences(sources: Sequence[str], form: Form) -> Iterator[Found]:
    """Find the sentences of files and folders, in order; without any, those of standard input.

    Lines are read one at a time, so each can be answered before the next is there.
    """
    for one in (file for source in sources or ["-"] for file in files(source)):
        for number, sentence in enumerate(_READERS[form](one), start=1):
            yield Found(name_of(one), number, sentence)


def _of_text(file: Source) -> Iterator[Sentence]:
    from lpcfg.parsing.sentences import sentences_in

    text = "".join(lines(file))
    _check_plain(text, name_of(file))
    return sentences_in(text)


def _of_lines(file: Source) -> Iterator[Sentence]:
    from lpcfg.parsing.sentences import sentence_from_text

    for _, line in _numbered(file):
        yield sentence_from_text(line)


def _of_tokens(file: Source) -> Iterator[Sentence]:
    from lpcfg.parsing.sentences import sentence_from_tokens

    for _, line in _numbered(file):
        yield sentence_from_tokens(line.split())


def _of_tagged(file: Source) -> Iterator[Sentence]:
    from lpcfg.parsing.sentences import sentence_from_tagged

    for number, line in _numbered(file):
        yield sentence_from_tagged(line, number)


def _of_conllu(file: Source) -> Iterator[Sentence]:
    from lpcfg.dependencies.conllu import FORM, read
    from lpcfg.parsing.sentences import sentence_from_tokens

    for one in read(file):
        words = sentence_from_tokens([row[FORM] for row in one.words])
        if one.offsets:  # they count the sentence's own text, which the file gives with it
            words = replace(words, text=one.text, start=0, end=len(one.text), offsets=one.offsets)
        yield words


_READERS = {
    Form.TEXT: _of_text,
    Form.LINES: _of_lines,
    Form.TOKENS: _of_tokens,
    Form.TAGGED: _of_tagged,
    Form.CONLLU: _of_conllu,
}


def _numbered(file: Source) -> Iterator[tuple[int, str]]:
    """Number the lines of a file, which is refused if its first line is of another kind."""
    for number, line in enumerate(lines(file), start=1):
        if number == 1:
            _check_plain(line, name_of(file))
        yield number, line.rstrip("\r\n")


def _check_plain(text: str, name: str) -> None:
    kind = foreign(text)
    if kind is not None:
        raise InputError(f"expected plain text, got {kind} in {name}: {_CURES[kind]}")
