"""Read text from files, folders, standard input and open streams, and write files whole.

Text is UTF-8, with or without a byte order mark, and may be compressed by gzip. Errors name the
source, for wrong bytes also line and column, and say what to do.
"""

import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from lpcfg.cancel import FINISHING
from lpcfg.errors import InputError

Source = str | Path | IO[str] | IO[bytes]
"""A file, a folder, `-` for standard input, or an open stream."""

_GZIP_MAGIC = b"\x1f\x8b"
_BOM = "\ufeff"


def texts(source: Source) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of each file or stream that a source stands for.

    A folder is read recursively, its files in sorted order, hidden ones left out. Files are opened
    one after another.
    """
    for one in files(source):
        with _opened(one) as (name, stream):
            content = stream.read()
        text = content if isinstance(content, str) else _decoded(content, name)
        yield name, text.removeprefix(_BOM)


def lines(source: Source | None) -> Iterator[str]:
    """Yield the lines of one file or stream, with their line ends, so that offsets can count them.

    None stands for standard input.
    """
    number = 0
    with _opened("-" if source is None else source) as (name, stream):
        for line in stream:
            number += 1
            text = line if isinstance(line, str) else _decoded(line, name, number)
            # Bytes are cut at \n alone; a lone \r ends a line as well.
            yield from io.StringIO(text.removeprefix(_BOM) if number == 1 else text, newline="")


def files(source: Source) -> list[Source]:
    """List the files of a folder, in sorted order without hidden ones; or the source itself."""
    if not isinstance(source, str | Path) or str(source) == "-" or not Path(source).is_dir():
        return [source]
    path = Path(source)
    found: list[Source] = [
        *sorted(
            file
            for file in path.rglob("*")
            if file.is_file() and not any(p.startswith(".") for p in file.relative_to(path).parts)
        )
    ]
    if not found:
        raise InputError(f"expected files in the folder {path}, got none: check the path")
    return found


@contextmanager
def _opened(source: Source) -> Iterator[tuple[str, IO[str] | IO[bytes]]]:
    """Open a source for reading, decompressed, with its name; say in our words what fails."""
    name = name_of(source)
    try:
        if isinstance(source, str | Path) and str(source) != "-":
            with Path(source).open("rb") as file:
                yield name, _unpacked(file)
        else:
            stream = source if not isinstance(source, str | Path) else _stdin()
            yield name, _unpacked(stream)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(
            f"expected a whole gzip file, got a damaged one ({error}), at {name}: copy it again"
        ) from error
    except UnicodeDecodeError as error:  # of a text stream, which decodes by itself
        raise _wrong_utf8(error, name, 1) from error
    except OSError as error:
        raise InputError(
            f"expected a readable file, got {error.strerror!r} at {name}: check the path and its "
            "permissions"
        ) from error


def name_of(source: Source) -> str:
    """Name a source as messages do."""
    if isinstance(source, str | Path):
        return "<stdin>" if str(source) == "-" else str(source)
    return str(getattr(source, "name", "<stream>"))


def _stdin() -> IO[str] | IO[bytes]:
    return getattr(sys.stdin, "buffer", sys.stdin)


def _unpacked(stream: IO[str] | IO[bytes]) -> IO[str] | IO[bytes]:
    if isinstance(stream.read(0), str):
        return stream
    if not isinstance(stream, io.BufferedReader):
        stream = io.BytesIO(stream.read())  # type: ignore[arg-type]
        is_packed = stream.getbuffer()[:2] == _GZIP_MAGIC
    else:
        is_packed = stream.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC)
    return gzip.GzipFile(fileobj=stream) if is_packed else stream  # type: ignore[return-value]


def _decoded(content: bytes, name: str, line: int = 1) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _wrong_utf8(error, name, line) from error


def _wrong_utf8(error: UnicodeDecodeError, name: str, line: int) -> InputError:
    """Say where the wrong byte stands; `line` is that of the first byte decoded."""
    before = error.object[: error.start].decode("utf-8", "replace").removeprefix(_BOM)
    line += before.count("\n")
    column = len(before) - before.rfind("\n")
    return InputError(
        f"{name}:{line}:{column}: expected UTF-8, got the byte 0x{error.object[error.start]:02x}: "
        "convert the text to UTF-8"
    )


def write_whole(path: Path, data: bytes) -> None:
    """Write a file that is there whole or not at all, whatever interrupts it.

    Raises OSError, after which nothing is left behind.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with FINISHING:
        try:
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
