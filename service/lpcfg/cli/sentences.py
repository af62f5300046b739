"""What people type or pipe in, as sentences."""

import gzip
import io
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TextIO

from lpcfg.analysis import Sentence
from lpcfg.errors import InputError

_GZIP_MAGIC = b"\x1f\x8b"


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


def lines(file: Path | None) -> Iterator[str]:
    """The lines of UTF-8, also compressed by gzip, with the ends they have: offsets count them.

    A byte order mark is no part of the text.
    """
    name = "standard input" if _is_stdin(file) else str(file)
    try:
        with _opened(file) as stream:
            yield from stream
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(
            f"expected a whole gzip file, got {name}, which is torn: compress it again"
        ) from error
    except OSError as error:
        raise InputError(
            f"expected a readable file, got {error.strerror!r} at {name}: check the path and its "
            "permissions"
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"expected UTF-8 in {name}, got {error.object[error.start : error.end]!r}: convert it"
        ) from error


def _is_stdin(file: Path | None) -> bool:
    return file is None or str(file) == "-"


@contextmanager
def _opened(file: Path | None) -> Iterator[TextIO]:
    if file is not None and not _is_stdin(file):
        with file.open("rb") as stream:
            yield _unpacked(stream)
    elif isinstance(sys.stdin, io.TextIOWrapper):
        yield _unpacked(sys.stdin.buffer)
    else:
        yield sys.stdin


def _unpacked(stream: io.BufferedReader) -> TextIO:
    is_packed = stream.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC)
    binary = gzip.GzipFile(fileobj=stream) if is_packed else stream
    return io.TextIOWrapper(binary, "utf-8-sig", newline="")


def _of_text(text: str) -> Iterable[Sentence]:
    from lpcfg.tokens import segment

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
