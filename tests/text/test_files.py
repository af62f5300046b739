"""Text comes in chunks as soon as it is there; lines and wrong bytes are found across chunks."""

import gzip
import io
import os
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lpcfg.base.errors import InputError
from lpcfg.text import files
from lpcfg.text.files import chunks, lines

SIZES = (1, 2, 3, 5, 1 << 16)
ODD = "\ufeffé\r\n\r\n\n🙂\rb\u2028c\x0cd\n\r\r\n\ufeffe"


@pytest.fixture(params=SIZES)
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Read so many bytes or characters at once."""
    monkeypatch.setattr(files, "_CHUNK", request.param)
    return int(request.param)


def source(text: str) -> io.BufferedReader:
    return io.BufferedReader(io.BytesIO(text.encode()))  # type: ignore[arg-type]


def test_chunks_put_together_are_the_text_without_its_mark(size: int) -> None:
    assert "".join(chunks(source(ODD))) == ODD[1:]
    assert "".join(chunks(io.StringIO(ODD))) == ODD[1:]
    packed = io.BytesIO(gzip.compress(ODD.encode()))
    assert "".join(chunks(io.BufferedReader(packed))) == ODD[1:]  # type: ignore[arg-type]
    assert all(0 < len(one) <= size for one in chunks(source(ODD)))


def test_a_chunk_is_there_before_the_next_one_is_written() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as stream, os.fdopen(writing, "wb", buffering=0) as pipe:
        coming = chunks(stream)
        for text in ("The cat sat.\n", "It", "é"):
            pipe.write(text.encode())
            assert next(coming) == text
        pipe.write("é".encode()[:1])  # half a character is none yet
        pipe.write("é".encode()[1:])
        assert next(coming) == "é"
        pipe.close()
        assert list(coming) == []


@pytest.mark.usefixtures("size")
@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"caf\xe9 ok", ":1:4: expected UTF-8, got the byte 0xe9"),
        (b"\xef\xbb\xbfone\ntwo\nth\xffree", ":3:3: expected UTF-8, got the byte 0xff"),
        ("é\u2028é".encode() + b"\xc3", ":1:4: expected UTF-8, got the byte 0xc3"),
        (b"\xef\xbb\xbf\xff", ":1:1: expected UTF-8, got the byte 0xff"),
    ],
)
def test_a_wrong_byte_is_told_with_its_place(content: bytes, place: str) -> None:
    with pytest.raises(InputError, match=place):
        list(chunks(io.BufferedReader(io.BytesIO(content))))  # type: ignore[arg-type]


@given(st.text("ab\r\n\u2028é", max_size=40))
def test_lines_are_those_of_the_whole_text(text: str) -> None:
    for ends in ("", "\n"):
        whole = io.StringIO(text, newline=ends).readlines()
        for size in (1, 2, 7):
            pieces = [text[k : k + size] for k in range(0, len(text), size)]
            assert list(files._cut_into_lines(pieces, ends, None)) == whole
        assert list(lines(source(text), ends=ends)) == whole


@pytest.mark.usefixtures("size")
def test_a_line_that_is_too_long_is_refused_when_it_comes() -> None:
    assert list(lines(source("abcd\nabcde\n"), longest=6)) == ["abcd\n", "abcde\n"]
    coming = lines(source("abcd\nabcdef\nabc"), longest=6)
    assert next(coming) == "abcd\n"
    with pytest.raises(InputError, match=r":2: expected a line of at most 6 characters, got a lo"):
        next(coming)


def test_no_more_than_the_longest_line_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []

    def endless(_: object) -> Iterator[str]:
        while True:
            taken.append(1)
            yield "a" * 10

    monkeypatch.setattr(files, "chunks", endless)
    with pytest.raises(InputError, match="at most 35 characters"):
        next(lines("-", longest=35))
    assert len(taken) == 4
