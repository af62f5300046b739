"""Read text from files, folders, standard input and open streams.

Text is UTF-8, with or without a byte order mark, and may be compressed by gzip or Zstandard. Files
may be named by paths, globs (`*.txt`) and fsspec URLs. Errors name the source, for wrong bytes also
line and column, and say what to do.
"""

import codecs
import glob
import gzip
import io
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import IO

from lpcfg.base.errors import InputError
from lpcfg.base.extras import extra
from lpcfg.base.urls import filesystem, is_url, network_failures

Source = str | Path | IO[str] | IO[bytes]
"""A file, a folder, a glob, an fsspec URL of these, `-` for standard input, or an open stream."""

_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_BOM = "\ufeff"
_CHUNK = 1 << 16  # bytes


def texts(source: Source) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of each file or stream that a source stands for.

    A folder is read recursively, its files in sorted order, hidden ones left out. Files are opened
    one after another.
    """
    for one in files(source):
        with opened(one) as (name, stream):
            content = stream.read()
        text = content if isinstance(content, str) else decoded(content, name)
        yield name, text.removeprefix(_BOM)


def chunks(source: Source) -> Iterator[str]:
    """Yield the text of one file or stream in chunks, each as soon as it is there."""
    with opened(source) as (name, stream):
        decoder = _Decoder(name)
        mark = _BOM
        while data := _available(stream):
            text = decoder.decode(data) if isinstance(data, bytes) else data.removeprefix(mark)
            mark = ""
            if text:
                yield text
        decoder.decode(b"", ended=True)


def _available(stream: IO[str] | IO[bytes]) -> str | bytes:
    """Read what is there, without waiting for more; nothing is there at the end alone."""
    read = getattr(stream, "read1", stream.read)
    return read(_CHUNK)


class _Decoder:
    """Decodes UTF-8 in chunks, without its mark; errors name source, line and column."""

    def __init__(self, name: str) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._name = name
        self._line = 1
        self._columns = 0

    def decode(self, data: bytes, *, ended: bool = False) -> str:
        try:
            text = self._decoder.decode(data, ended)
        except UnicodeDecodeError as error:
            raise _wrong_utf8(error, self._name, self._line, self._columns) from error
        self._line += text.count("\n")
        last = text.rfind("\n")
        self._columns = len(text) - 1 - last + (self._columns if last < 0 else 0)
        return text


def lines(source: Source | None, *, ends: str = "", longest: int | None = None) -> Iterator[str]:
    """Yield the lines of one file or stream, with their line ends, so that offsets can count them.

    None stands for standard input. Lines end with a newline, a carriage return or both, or with the
    one of these that `ends` is. A line of more than `longest` characters is refused when it comes.
    """
    source = "-" if source is None else source
    number = 1
    for line in _cut_into_lines(chunks(source), ends, longest):
        if longest is not None and len(line) > longest:
            raise InputError(
                f"{name_of(source)}:{number}: expected a line of at most {longest} characters, got "
                "a longer one: break it, or give it as running text"
            )
        yield line
        number += 1


def _cut_into_lines(given: Iterable[str], ends: str, longest: int | None) -> Iterator[str]:
    """Yield the lines of a text in chunks; of one that is too long, what is there, and no more."""
    begun: list[str] = []
    size = 0
    for chunk in given:
        # A carriage return at the end of a chunk may have its newline in the next one.
        may_end = "\n" in chunk or "\r" in chunk or (begun and begun[-1].endswith("\r"))
        begun.append(chunk)
        size += len(chunk)
        if may_end:
            found = io.StringIO("".join(begun), newline=ends).readlines()
            begun = [] if found[-1].endswith("\n") else [found.pop()]
            size = sum(map(len, begun))
            yield from found
        if longest is not None and size > longest:
            break
    yield from io.StringIO("".join(begun), newline=ends)


def files(source: Source) -> list[Source]:
    """List the files of a folder or glob, sorted, without hidden ones; or the source itself.

    Files of a URL are listed as URLs.
    """
    if not isinstance(source, str | Path) or str(source) == "-":
        return [source]
    found: list[Source]
    if is_url(source):
        found = [*_remote_files(str(source))]
        kind = "at"
    elif Path(source).is_dir():
        found = [*sorted(file for file in Path(source).rglob("*") if _is_seen(file, Path(source)))]
        kind = "in the folder"
    elif glob.has_magic(str(source)) and not Path(source).exists():
        matches = map(Path, glob.glob(str(source), recursive=True))
        found = [*sorted(path for path in matches if path.is_file())]
        kind = "for the pattern"
    else:
        return [source]
    if not found:
        raise InputError(f"expected files {kind} {source}, got none: check the path")
    return found


def _is_seen(file: Path, folder: Path) -> bool:
    return file.is_file() and not any(p.startswith(".") for p in file.relative_to(folder).parts)


def _remote_files(url: str) -> list[str]:
    system, path = filesystem(url)
    with _explained(url):
        if glob.has_magic(path):
            found = [one for one in system.glob(path) if not system.isdir(one)]
        else:
            found = system.find(path)
    base = path.partition("*")[0].rpartition("/")[0] if glob.has_magic(path) else path
    return sorted(
        str(system.unstrip_protocol(one))
        for one in found
        if not any(part.startswith(".") for part in one[len(base) :].split("/"))
    )


@contextmanager
def opened(source: Source) -> Iterator[tuple[str, IO[str] | IO[bytes]]]:
    """Open a source for reading, decompressed, with its name. Errors say in our words what
    fails.
    """
    name = name_of(source)
    with _explained(name):
        if isinstance(source, str | Path) and str(source) != "-":
            with _open_bytes(source) as file:
                yield name, _unpacked(file)
        else:
            stream = source if not isinstance(source, str | Path) else _stdin()
            yield name, _unpacked(stream)


@contextmanager
def stored(source: str) -> Iterator[io.BufferedReader]:
    """Open a path or a URL for reading its bytes as they are. Errors say in our words what
    fails.
    """
    with _explained(source), _open_bytes(source) as file:
        yield file


def _open_bytes(source: str | Path) -> io.BufferedReader:
    if not is_url(source):
        return Path(source).open("rb")
    system, path = filesystem(str(source))
    stream = system.open(path, "rb")
    return stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(stream)


@contextmanager
def _explained(name: str) -> Iterator[None]:
    try:
        yield
    except _damages() as error:
        raise InputError(
            f"expected a whole compressed file, got a damaged one ({error}), at {name}: copy it "
            "again"
        ) from error
    except UnicodeDecodeError as error:  # of a text stream, which decodes by itself
        raise _wrong_utf8(error, name, 1) from error
    except network_failures() as error:
        raise InputError(
            f"expected a readable file, got {getattr(error, 'strerror', None) or str(error)!r} at "
            f"{name}: check the path and its permissions"
        ) from error


def _damages() -> tuple[type[Exception], ...]:
    """List the errors of damaged compressed files."""
    found = [gzip.BadGzipFile, EOFError, zlib.error]
    modules = map(sys.modules.get, ("compression.zstd", "backports.zstd"))
    return (*found, *(one.ZstdError for one in modules if one is not None))


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
        stream = io.BufferedReader(io.BytesIO(stream.read()))  # type: ignore[arg-type]
    begins = stream.peek(len(_ZSTD_MAGIC))
    if begins.startswith(_GZIP_MAGIC):
        return gzip.GzipFile(fileobj=stream)  # type: ignore[return-value]
    return _zstd(stream) if begins.startswith(_ZSTD_MAGIC) else stream


def _zstd(stream: object) -> IO[bytes]:
    """Decompress by the module of Python 3.14, or its twin for older ones."""
    name = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    with extra("zst", "files compressed by Zstandard"):
        opened: IO[bytes] = import_module(name).ZstdFile(stream)
    return opened


def decoded(content: bytes, name: str, line: int = 1) -> str:
    """Decode UTF-8; errors name the source and count lines from `line`."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _wrong_utf8(error, name, line) from error


def _wrong_utf8(error: UnicodeDecodeError, name: str, line: int, columns: int = 0) -> InputError:
    """Say where the wrong byte stands. `columns` of this line stand before the first one."""
    before = error.object[: error.start].decode("utf-8", "replace").removeprefix(_BOM)
    line += before.count("\n")
    column = len(before) - before.rfind("\n") + (0 if "\n" in before else columns)
    return InputError(
        f"{name}:{line}:{column}: expected UTF-8, got the byte 0x{error.object[error.start]:02x}: "
        "convert the text to UTF-8"
    )
