"""Long files in chunks: nothing is lost or doubled, and only a few chunks are held at a time."""

import io
import random
import tracemalloc

import pytest

from lpcfg.base.errors import InputError
from lpcfg.kinds.sentences import ENGLISH
from lpcfg.predict.chunks import Chunk, Hashing, cut
from lpcfg.predict.forms import Form
from lpcfg.text.tokenize import segments

RANDOM = random.Random(7)
SENTENCES = ("The dog barked. ", "Änne saw «it» at 5 p.m. today! ", "It's “so” old, isn't it? ")


def chunks(text: str | bytes, form: Form, size: int) -> list[tuple[Chunk, str]]:
    content = text.encode() if isinstance(text, str) else text
    return list(cut(io.BytesIO(content), form, size, "text", lambda: ENGLISH))


def paragraphs(count: int, longest: int) -> str:
    return "\n\n".join(
        "".join(RANDOM.choice(SENTENCES) for _ in range(RANDOM.randint(1, longest))).strip()
        for _ in range(count)
    )


@pytest.mark.parametrize("form", [Form.TEXT, Form.LINES, Form.CONLLU])
@pytest.mark.parametrize("size", [20, 50, 300, 10_000])
def test_chunks_join_to_the_text_and_know_what_stands_before(form: Form, size: int) -> None:
    text = paragraphs(40, 4)
    found = chunks(text, form, size)
    assert "".join(one for _, one in found) == text
    at = 0
    for number, (chunk, part) in enumerate(found):
        assert chunk.index == number
        assert chunk.start == len(text[:at].encode())
        assert (chunk.chars, chunk.lines) == (at, text.count("\n", 0, at))
        at += len(part)


def test_paragraphs_give_the_same_sentences_in_chunks_as_whole() -> None:
    text = paragraphs(60, 5)
    whole = [(one.start, one.text) for one in segments(text)]
    for size in (200, 1000):
        cut_up = [
            (chunk.chars + one.start, one.text)
            for chunk, part in chunks(text, Form.TEXT, size)
            for one in segments(part)
        ]
        assert cut_up == whole


def test_a_long_paragraph_is_cut_where_a_sentence_ends() -> None:
    text = "".join(RANDOM.choice(SENTENCES) for _ in range(2000))
    found = chunks(text, Form.TEXT, 4000)
    assert len(found) > 10
    assert all(part.rstrip()[-1] in ".!?" for _, part in found)
    cut_up = [one.text for _, part in found for one in segments(part)]
    assert cut_up == [one.text for one in segments(text)]


def test_a_text_without_sentences_is_cut_between_words() -> None:
    text = "word " * 5000
    found = chunks(text, Form.TEXT, 1000)
    assert len(found) > 1
    assert "".join(part for _, part in found) == text
    assert all(part.endswith(" ") for _, part in found)


def test_characters_are_never_cut() -> None:
    text = "日本" * 4000
    assert "".join(part for _, part in chunks(text, Form.TEXT, 999)) == text


def test_an_empty_file_is_one_empty_chunk() -> None:
    assert [part for _, part in chunks("", Form.TEXT, 10)] == [""]


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    (chunk, text), *_ = chunks(b"\xef\xbb\xbfHello.\n", Form.LINES, 3)
    assert (text, chunk.start, chunk.end) == ("Hello.\n", 0, 10)


def test_a_wrong_byte_is_found_with_its_line() -> None:
    with pytest.raises(InputError, match=r"^text:31:3: expected UTF-8"):
        chunks(b"abcdefg\n" * 30 + b"ab\xff\n", Form.LINES, 64)


def test_a_line_that_never_ends_is_refused() -> None:
    with pytest.raises(InputError, match="expected lines or sentences of at most 640 bytes"):
        chunks("x" * 1000, Form.LINES, 10)


def test_memory_is_that_of_a_few_chunks() -> None:
    """80 chunks of 50 kB pass; what is held at a time, Python objects of the tokenizer and all,
    is less than 10 of them."""
    size = 50_000
    line = SENTENCES[0] * 20 + "\n"

    class Endless(io.RawIOBase):
        left = 80 * size

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
            data = (line * (len(buffer) // len(line) + 1)).encode()[: min(len(buffer), self.left)]
            buffer[: len(data)] = data
            self.left -= len(data)
            return len(data)

    tracemalloc.start()
    hashing = Hashing(io.BufferedReader(Endless()), "endless")
    count = sum(
        1 for _ in cut(io.BufferedReader(hashing), Form.LINES, size, "endless", lambda: ENGLISH)
    )
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count >= 80
    assert hashing.count == 80 * size
    assert peak < 10 * size
