"""Turn text that people type or pipe in into sentences."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lpcfg.kinds.sentences import Sentence
from lpcfg.predict.forms import Form
from lpcfg.text.files import Source, files, lines, name_of


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
        for number, sentence in enumerate(_sentences_of(one, form), start=1):
            yield Found(name_of(one), number, sentence)


def _sentences_of(file: Source, form: Form) -> Iterator[Sentence]:
    if form is Form.TEXT:
        return _of_text(file)
    return _of_conllu(file) if form is Form.CONLLU else _of_lines(form, file)


def _of_text(file: Source) -> Iterator[Sentence]:
    from lpcfg.kinds.sentences import ENGLISH
    from lpcfg.predict.documents import check_plain

    text = "".join(lines(file))
    check_plain(text, name_of(file))
    return ENGLISH.sentences(text)


def _of_lines(form: Form, file: Source) -> Iterator[Sentence]:
    from lpcfg.predict.documents import check_plain, sentence_of_line

    for number, line in enumerate(lines(file), start=1):
        if number == 1:
            check_plain(line, name_of(file))
        yield sentence_of_line(form, line.rstrip("\r\n"), number)


def _of_conllu(file: Source) -> Iterator[Sentence]:
    from lpcfg.kinds.dependencies import conllu

    return map(conllu.words_of, conllu.read(file))
