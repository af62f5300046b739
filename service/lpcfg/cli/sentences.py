"""Turn text that people type or pipe in into sentences."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lpcfg.kinds.sentences import Segmenter, Sentence
from lpcfg.predict.forms import Form
from lpcfg.text.files import Source, chunks, files, lines, name_of

_LONGEST = 1 << 19
"""Characters of a line; the tokens of so many take 50 MB. Parsers refuse sentences far shorter."""


@dataclass(frozen=True, slots=True)
class Found:
    """A sentence, the file it stands in, and its number there, from 1."""

    source: str
    number: int
    sentence: Sentence


def sentences(sources: Sequence[str], form: Form, segmenter: Segmenter) -> Iterator[Found]:
    """Find the sentences of files and folders, in order; without any, those of standard input.

    What was read is answered before more is, and no more is held in memory than a window.
    """
    for one in (file for source in sources or ["-"] for file in files(source)):
        for number, sentence in enumerate(_sentences_of(one, form, segmenter), start=1):
            yield Found(name_of(one), number, sentence)


def _sentences_of(file: Source, form: Form, segmenter: Segmenter) -> Iterator[Sentence]:
    if form is Form.TEXT:
        return _of_text(file, segmenter)
    return _of_conllu(file) if form is Form.CONLLU else _of_lines(form, file, segmenter)


def _of_text(file: Source, segmenter: Segmenter) -> Iterator[Sentence]:
    from lpcfg.predict.documents import plain

    return segmenter.sentences_of_chunks(plain(chunks(file), name_of(file)))


def _of_lines(form: Form, file: Source, segmenter: Segmenter) -> Iterator[Sentence]:
    from lpcfg.predict.documents import check_plain, sentence_of_line

    for number, line in enumerate(lines(file, longest=_LONGEST), start=1):
        if number == 1:
            check_plain(line, name_of(file))
        yield sentence_of_line(form, line.rstrip("\r\n"), number, segmenter)


def _of_conllu(file: Source) -> Iterator[Sentence]:
    from lpcfg.kinds.dependencies import conllu

    return map(conllu.words_of, conllu.read(file))
