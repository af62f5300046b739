"""Read and write CoNLL-U without loss: comments, multiword tokens and empty nodes stay.

A sentence is its comment lines and its rows of ten fields. Only words (rows numbered 1, 2, 3 …)
have arcs; rows like `3-4` (a multiword token) and `5.1` (an empty node) are kept as they are.
"""

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from lpcfg.base.errors import InputError, TreebankError
from lpcfg.kinds import sentences
from lpcfg.kinds.dependencies.arcs import Arcs, problem_of
from lpcfg.text.files import Source, files, lines, name_of

FIELDS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
ID, FORM, _, UPOS, XPOS, _, HEAD, DEPREL, _, MISC = range(len(FIELDS))
_WORD = re.compile(r"[1-9][0-9]*")
_RANGE = re.compile(r"([1-9][0-9]*)-([1-9][0-9]*)")
_EMPTY = re.compile(r"(0|[1-9][0-9]*)\.[1-9][0-9]*")
_HEAD = re.compile(r"0|[1-9][0-9]*")
_TEXT = "# text = "
NO_SPACE = "SpaceAfter=No"
_LONGEST = 1 << 19
"""Characters of a sentence: some 10,000 words."""

Row = tuple[str, ...]


@dataclass(frozen=True)
class Sentence:
    """One sentence of a CoNLL-U file."""

    comments: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def words(self) -> list[Row]:
        """The rows of words."""
        return [row for row in self.rows if _WORD.fullmatch(row[ID])]

    @cached_property
    def has_heads(self) -> bool:
        """True if every word has a head. Files to be parsed have `_` there."""
        return all(row[HEAD] != "_" for row in self.words)

    @cached_property
    def arcs(self) -> Arcs:
        """The words' dependency tree; tags are UPOS and XPOS, as in `VERB|VBD`."""
        words = self.words
        if not self.has_heads:
            raise InputError(
                f"expected a head for every word, got `_` in {self.name}: parse the file first, "
                "or give its heads"
            )
        return Arcs(
            tuple(row[FORM] for row in words),
            tuple(int(row[HEAD]) for row in words),
            tuple(row[DEPREL] for row in words),
            tuple(f"{row[UPOS]}|{row[XPOS]}" for row in words),
            self.offsets,
        )

    @property
    def name(self) -> str:
        """The sentence's own identifier, or its first words."""
        for comment in self.comments:
            if comment.startswith("# sent_id = "):
                return comment.removeprefix("# sent_id = ")
        return repr(" ".join(row[FORM] for row in self.words[:5]))

    @cached_property
    def text(self) -> str:
        """The sentence's text: its comment, or else its words and their spaces."""
        for comment in self.comments:
            if comment.startswith(_TEXT):
                return comment.removeprefix(_TEXT)
        return "".join(form + space for form, space, _ in self._surface()).rstrip(" ")

    @cached_property
    def offsets(self) -> tuple[tuple[int, int], ...]:
        """The span of each word in `text`, or nothing if the text does not hold the words.

        Words of a multiword token share its span, unless their forms put together are the token.
        """
        result: list[tuple[int, int]] = []
        at = 0
        for form, _, parts in self._surface():
            start = self.text.find(form, at)
            if start < 0 or self.text[at:start].strip():
                return ()
            at = start + len(form)
            if "".join(parts) != form:
                result += [(start, at)] * len(parts)
                continue
            for part in parts:
                result.append((start, start + len(part)))
                start += len(part)
        return tuple(result)

    def _surface(self) -> Iterator[tuple[str, str, list[str]]]:
        """List (form, the space behind it, forms of its words) for every token of the text."""
        form_of = {int(row[ID]): row[FORM] for row in self.words}
        covered = 0
        for row in self.rows:
            span = _RANGE.fullmatch(row[ID])
            space = "" if NO_SPACE in row[MISC].split("|") else " "
            if span:
                covered = int(span[2])
                parts = [form_of[k] for k in range(int(span[1]), covered + 1)]
                yield row[FORM], space, parts
            elif _WORD.fullmatch(row[ID]) and int(row[ID]) > covered:
                yield row[FORM], space, [row[FORM]]

    def with_arcs(self, arcs: Arcs) -> "Sentence":
        """Return the sentence with these heads, relations and tags, without enhanced
        dependencies.
        """
        changed = iter(range(len(arcs.words)))
        rows = []
        for row in self.rows:
            fields = list(row)
            if _WORD.fullmatch(row[ID]):
                m = next(changed)
                fields[HEAD:9] = str(arcs.heads[m]), arcs.labels[m], "_"
                if arcs.tags:
                    fields[UPOS], _, fields[XPOS] = arcs.tags[m].partition("|")
                    fields[XPOS] = fields[XPOS] or "_"
            rows.append(tuple(fields))
        return replace(self, rows=tuple(rows))


@dataclass(frozen=True, slots=True)
class Words(sentences.Sentence):
    """The words of a sentence of CoNLL-U, which is kept so that arcs can be written into it."""

    origin: Sentence | None = None


def words_of(given: Sentence) -> Words:
    """Take the words of a sentence, and their offsets in its text where that holds them."""
    forms = [row[FORM] for row in given.words]
    if not given.offsets:
        return Words(forms, origin=given)
    text, offsets = given.text, given.offsets
    return Words(forms, text=text, start=0, end=len(text), offsets=offsets, origin=given)


def read(source: Source | Sequence[Source]) -> Iterator[Sentence]:
    """Read every sentence of a file, a folder, '-' (standard input), a stream, or several.

    Raises TreebankError with source, line and column where the text is not CoNLL-U or the heads
    are no tree, and InputError where there is nothing to read.
    """
    several = [source] if isinstance(source, str) or not isinstance(source, Sequence) else source
    for one in several:
        for file in files(one):
            yield from _read(lines(file, ends="\n", longest=_LONGEST), name_of(file))


def read_string(text: str, *, source: str = "<string>") -> Iterator[Sentence]:
    """Read every sentence of a text; `source` names it in errors."""
    # Not splitlines(): a form may hold what Python takes for the end of a line, as U+2028.
    return _read(io.StringIO(text, newline="\n"), source)


def _read(given: Iterable[str], source: str) -> Iterator[Sentence]:
    """Read every sentence of lines, which have their newlines."""
    comments: list[str] = []
    rows: list[Row] = []
    numbers: list[int] = []
    empty = True
    number = size = 0
    for number, line in enumerate(chain(given, [""]), start=1):
        line = line.removesuffix("\n").removesuffix("\r")
        size += len(line)
        if size > _LONGEST:
            problem = f"expected the end of a sentence, got none in {_LONGEST} characters: mark it"
            raise TreebankError(f"{problem} by an empty line", source=source, line=number, column=1)
        if line.startswith("#") and not rows:
            comments.append(line)
        elif line:
            rows.append(_row(line, source, number))
            numbers.append(number)
        elif rows:
            empty = False
            yield _checked(comments, rows, numbers, source)
            comments, rows, numbers, size = [], [], [], 0
    if comments:
        problem = "expected words after the comments, got the end: remove the comments"
        raise TreebankError(problem, source=source, line=number, column=1)
    if empty:
        problem = "expected sentences in CoNLL-U, got none: give a file with words"
        raise TreebankError(problem, source=source, line=1, column=1)


def write(sentences: Iterable[Sentence]) -> str:
    """Return the sentences as CoNLL-U, from which `read_string` reads equal sentences."""
    parts: list[str] = []
    for sentence in sentences:
        parts += sentence.comments
        parts += ("\t".join(row) for row in sentence.rows)
        parts.append("")
    return "\n".join((*parts, "")) if parts else ""


def sentence_of(arcs: Arcs, text: str | None = None, comments: Sequence[str] = ()) -> Sentence:
    """Return a new CoNLL-U sentence for arcs, whose offsets count characters of `text`."""
    rows: list[Row] = []
    for k, word in enumerate(arcs.words):
        upos, _, xpos = (arcs.tags[k] if arcs.tags else "_").partition("|")
        joined = text is not None and arcs.offsets and _has_no_space(arcs.offsets, k)
        misc = NO_SPACE if joined else "_"
        head, label = str(arcs.heads[k]), arcs.labels[k]
        rows.append((str(k + 1), word, "_", upos, xpos or "_", "_", head, label, "_", misc))
    line = " ".join(arcs.words) if text is None else " ".join(text.split())
    return Sentence((*(f"# {one}" for one in comments), _TEXT + line), tuple(rows))


def _has_no_space(offsets: Sequence[tuple[int, int]], k: int) -> bool:
    return k + 1 < len(offsets) and offsets[k][1] == offsets[k + 1][0]


def _row(line: str, source: str, number: int) -> Row:
    fields = tuple(line.split("\t"))
    if len(fields) != len(FIELDS):
        hint = "separate them by tabs" if len(fields) == 1 else "fill those left empty with `_`"
        problem = f"expected {len(FIELDS)} fields between tabs, got {len(fields)}: {hint}"
        raise TreebankError(problem, source=source, line=number, column=1)
    for k, field in enumerate(fields):
        if not field:
            problem = f"expected a value in the field {FIELDS[k]}, got nothing: write `_`"
            raise _error(problem, fields, k, source, number)
    return fields


def _checked(comments: list[str], rows: list[Row], lines: list[int], source: str) -> Sentence:
    _check_ids(rows, lines, source)
    words = [(row, at) for row, at in zip(rows, lines, strict=True) if _WORD.fullmatch(row[ID])]
    missing = sum(row[HEAD] == "_" for row, _ in words)
    if 0 < missing < len(words) or (words and not missing):
        for row, at in words:
            if not _HEAD.fullmatch(row[HEAD]):
                problem = (
                    f"expected a head's number, got {row[HEAD]!r}: give the number of a word, or 0"
                )
                raise _error(problem, row, HEAD, source, at)
        found = problem_of([int(row[HEAD]) for row, _ in words])
        if found:
            row, at = words[found[0] - 1]
            raise _error(found[1], row, HEAD, source, at)
    return Sentence(tuple(comments), tuple(rows))


def _check_ids(rows: list[Row], lines: list[int], source: str) -> None:
    """Check that words are numbered 1, 2, 3 … and that a range stands before the words it
    covers.
    """
    words = 0
    covered = 0
    last = sum(_WORD.fullmatch(row[ID]) is not None for row in rows)
    for row, at in zip(rows, lines, strict=True):
        span = _RANGE.fullmatch(row[ID])
        if _WORD.fullmatch(row[ID]):
            words += 1
            if row[ID] != str(words):
                problem = f"expected the word's number {words}, got {row[ID]}: number words in turn"
                raise _error(problem, row, ID, source, at)
        elif span:
            first, end = int(span[1]), int(span[2])
            if first != words + 1 or end < first or end > last or first <= covered:
                problem = (
                    f"expected a range that starts at the next word, {words + 1}, and ends at a "
                    f"word up to {last}, got {row[ID]}: correct the range"
                )
                raise _error(problem, row, ID, source, at)
            covered = end
        elif not _EMPTY.fullmatch(row[ID]) or int(row[ID].partition(".")[0]) != words:
            problem = (
                f"expected a number, a range like 1-2 or an empty node like {words}.1, "
                f"got {row[ID]!r}: correct it"
            )
            raise _error(problem, row, ID, source, at)
    if not words:
        problem = "expected words in the sentence, got none: add them or remove the sentence"
        raise TreebankError(problem, source=source, line=lines[0], column=1)


def _error(problem: str, fields: Row, k: int, source: str, line: int) -> TreebankError:
    column = 1 + sum(len(field) + 1 for field in fields[:k])
    return TreebankError(problem, source=source, line=line, column=column)
