"""Plain text from files and standard input, line by line."""

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from lpcfg.errors import InputError

_GZIP_MAGIC = b"\x1f\x8b"


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
