"""Turn a chunk of a document into sentences with their places in it."""

import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lpcfg.base.errors import InputError, TreebankError
from lpcfg.kinds.dependencies import conllu
from lpcfg.kinds.sentences import (
    Segmenter,
    Sentence,
    sentence_from_tagged,
    sentence_from_tokens,
)
from lpcfg.predict.chunks import Chunk
from lpcfg.predict.forms import Form
from lpcfg.text.markup import foreign, is_undecided

_SENT_ID = "# sent_id = "
_CURES = {
    "CoNLL-U": "say --input conllu",
    "Penn brackets": "ask `lpcfg tree-probability` about trees, or give their words alone",
    "HTML": "take the markup out first",
}


@dataclass(frozen=True, slots=True)
class Item:
    """A sentence of a document.

    `place` is unique in the document: the sentence's first character, or its line or number.
    `start` and `end` count the document's code points; None where it has no running text.
    """

    document: str
    place: str
    start: int | None
    end: int | None
    sentence: Sentence


@dataclass(frozen=True, slots=True)
class Failure:
    """A part of a document that cannot be read; `where` is empty for the whole document."""

    where: str
    reason: str


def items(
    name: str, form: Form, chunk: Chunk, text: str, segmenter: Segmenter
) -> Iterator[Item | Failure]:
    """Find the sentences of a chunk of the document with this name."""
    if chunk.index == 0 and form in (Form.TEXT, Form.LINES, Form.TOKENS, Form.TAGGED):
        check_plain(text, name)
    if form is Form.TEXT:
        yield from of_text(name, text, segmenter, chunk.chars)
    elif form is Form.CONLLU:
        yield from _of_conllu(name, text, chunk.lines)
    elif form is Form.JSON:
        yield from _of_json(name, text, chunk.lines, segmenter)
    else:
        yield from _of_lines(name, form, text, chunk, segmenter)


def check_plain(text: str, name: str) -> None:
    """Refuse markup, whose tags would be parsed as words."""
    kind = foreign(text)
    if kind is not None:
        raise InputError(f"expected plain text, got {kind} in {name}: {_CURES[kind]}")


def plain(chunks: Iterable[str], name: str) -> Iterator[str]:
    """Pass the chunks of a text on, the first of them when it is known to be no markup."""
    coming = iter(chunks)
    beginning = ""
    for chunk in coming:
        beginning += chunk
        if not is_undecided(beginning):
            break
    check_plain(beginning, name)
    yield beginning
    yield from coming


def sentence_of_line(form: Form, line: str, number: int, segmenter: Segmenter) -> Sentence:
    """Read a line as one sentence: its text, its tokens, or its tagged tokens."""
    if form is Form.LINES:
        return segmenter.sentence(line)
    if form is Form.TOKENS:
        return sentence_from_tokens(line.split())
    return sentence_from_tagged(line, number)


def of_text(name: str, text: str, segmenter: Segmenter, base: int = 0) -> Iterator[Item]:
    """Find the sentences of a text that begins `base` characters into its document."""
    for sentence in segmenter.sentences(text):
        start, end = base + (sentence.start or 0), base + (sentence.end or 0)
        yield Item(name, str(start), start, end, sentence)


def _of_lines(
    name: str, form: Form, text: str, chunk: Chunk, segmenter: Segmenter
) -> Iterator[Item | Failure]:
    start = chunk.chars
    for number, line in enumerate(io.StringIO(text, newline=""), start=chunk.lines + 1):
        bare = line.rstrip("\r\n")
        try:
            sentence = sentence_of_line(form, bare, number, segmenter)
        except InputError as error:
            yield Failure(f"line {number}", str(error))
        else:
            yield Item(name, str(number), start, start + len(bare), sentence)
        start += len(line)


def _of_conllu(name: str, text: str, before: int) -> Iterator[Item | Failure]:
    lines: list[str] = []
    for number, line in enumerate([*text.split("\n"), ""], start=before + 1):
        if line.strip("\r"):
            lines.append(line)
            continue
        if any(not one.startswith("#") for one in lines):
            first = number - len(lines)
            try:
                (found,) = conllu.read_string("\n".join([*lines, ""]), source=name)
            except TreebankError as error:
                where = f"line {first + error.line - 1}"
                yield Failure(where, error.problem)
            else:
                ids = [one[len(_SENT_ID) :] for one in found.comments if one.startswith(_SENT_ID)]
                place = ids[0] if ids else f"line {first}"
                yield Item(name, place, None, None, conllu.words_of(found))
        lines = []


def _of_json(name: str, text: str, before: int, segmenter: Segmenter) -> Iterator[Item | Failure]:
    good = False
    failures: list[Failure] = []
    for number, line in enumerate(text.split("\n"), start=before + 1):
        if not line.strip():
            continue
        try:
            document, content = _document_of(line, f"{name}:{number}")
        except InputError as error:
            failures.append(Failure(f"line {number}", str(error)))
        else:
            good = True
            yield from of_text(document, content, segmenter)
    if failures and not good and before == 0:
        raise InputError(f"{name} has no line of JSON with a text: {failures[0].reason}")
    yield from failures


def _document_of(line: str, default: str) -> tuple[str, str]:
    """Read {"id": …, "text": …}; where there is no id, the line stands for it."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"expected JSON, got something else: {error}") from error
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        raise InputError('expected an object with a string `text`, as {"id": "a", "text": "…"}')
    return str(value.get("id", default)), value["text"]
