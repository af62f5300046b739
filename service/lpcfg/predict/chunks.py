"""Cut a stream of text into chunks at sentence ends, holding a few chunks at a time.

A chunk ends where no sentence goes on: behind a line, behind the empty line after a CoNLL-U
sentence, behind a paragraph of running text, or, in a paragraph that is longer than a chunk, behind
a sentence that the tokenizer finds.
"""

import hashlib
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO

from lpcfg.base.errors import InputError
from lpcfg.kinds.sentences import Segmenter
from lpcfg.predict.forms import Form
from lpcfg.text.files import decoded

_BLOCK = 1 << 16
_WINDOW = 1 << 15
"""Bytes at the end of a long paragraph in which the end of a sentence is looked for."""
_MOST = 64
"""A line, or a sentence of CoNLL-U, longer than this many chunks is refused."""
_BLANK_LINE = re.compile(rb"\n[ \t\r]*\n")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Chunk:
    """A part of a document: bytes [start, end) of it, decompressed; of Parquet, rows.

    `chars` and `lines` count what stands before it.
    """

    index: int
    start: int
    end: int
    chars: int
    lines: int
    sha256: str


class Hashing(io.RawIOBase):
    """A stream that hashes and counts the bytes that are read through it."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self.name = name
        self._stream = stream
        self._hash = hashlib.sha256()
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview") -> int:  # type: ignore[override]
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        self._hash.update(data)
        self.count += len(data)
        return len(data)

    def finish(self) -> str:
        """Read what is left, and return the SHA-256 of the whole stream."""
        while self.read(_BLOCK):
            pass
        return self._hash.hexdigest()


def cut(
    stream: IO[bytes], form: Form, size: int, name: str, segmenter: Callable[[], Segmenter]
) -> Iterator[tuple[Chunk, str]]:
    """Cut a decompressed stream into chunks of about `size` bytes, each with its text.

    The segmenter, which may have to be loaded, is asked for where a paragraph is longer.
    """
    index = start = chars = lines = 0
    buffer = bytearray()
    ended, wanted = False, size
    while not (ended and not buffer and index):
        while not ended and len(buffer) < wanted:
            block = stream.read(min(_BLOCK, wanted - len(buffer)))
            buffer += block
            ended = not block
        end = len(buffer) if ended else _end_of_chunk(buffer, form, size, name, segmenter)
        if end == 0 and not ended:  # no end of a sentence yet: read on
            wanted = len(buffer) + size
            continue
        content, wanted = bytes(buffer[:end]), size
        del buffer[:end]
        text = text_of(content, index, name, lines)
        sha256 = hashlib.sha256(content).hexdigest()
        yield Chunk(index, start, start + end, chars, lines, sha256), text
        index, start, chars = index + 1, start + end, chars + len(text)
        lines += _count_lines(text)


def text_of(content: bytes, index: int, name: str, lines: int) -> str:
    """Decode a chunk that has so many lines before it; a byte order mark is no part of the text."""
    return decoded(content.removeprefix(_BOM) if index == 0 else content, name, lines + 1)


def _count_lines(text: str) -> int:
    """Count lines as the readers of lines do: a lone \\r ends one as well."""
    if "\r" not in text:
        return text.count("\n")
    return sum(1 for _ in io.StringIO(text, newline=""))


def _end_of_chunk(
    buffer: bytearray, form: Form, size: int, name: str, segmenter: Callable[[], Segmenter]
) -> int:
    """Find the last place in a buffer where a chunk may end; 0 if there is none."""
    if form is Form.TEXT:
        return _end_of_text(buffer, size, segmenter)
    if form is Form.CONLLU:
        end = 0
        for found in _BLANK_LINE.finditer(buffer, max(0, buffer.rfind(b"\n\n") - 1)):
            end = found.end()
    else:
        end = buffer.rfind(b"\n") + 1
    if end == 0 and len(buffer) > _MOST * size:
        raise InputError(
            f"expected lines or sentences of at most {_MOST * size} bytes, got a longer one at "
            f"{name}: cut it"
        )
    return end


def _end_of_text(buffer: bytearray, size: int, segmenter: Callable[[], Segmenter]) -> int:
    """Find the end of the last paragraph, or of the last sentence but one of a long paragraph."""
    paragraph = 0
    for found in _BLANK_LINE.finditer(buffer, len(buffer) // 2):
        paragraph = found.end()
    if paragraph:
        return paragraph
    begin = max(0, len(buffer) - _WINDOW)
    while begin < len(buffer) and buffer[begin] & 0xC0 == 0x80:  # inside a character
        begin += 1
    window = bytes(buffer[begin:]).decode("utf-8", "ignore")
    starts = [one.start or 0 for one in segmenter().sentences(window)]
    if len(starts) > 2:  # the first begins before the window, the last one may go on behind it
        return begin + len(window[: starts[-1]].encode())
    if len(buffer) < 4 * size:
        return 0
    return buffer.rfind(b" ") + 1 or begin  # no text, but one must go on
