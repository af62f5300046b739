"""Ends of sentences: where they are, and that they stay there when the text comes in chunks."""

import random
from collections.abc import Iterator
from itertools import chain, pairwise
from typing import Any

import pytest
import sentencex
from hypothesis import given
from hypothesis import strategies as st

from lpcfg.text.languages import LANGUAGES
from lpcfg.text.sentences import Window
from lpcfg.text.tokenize import segments, segments_of
from tests.text.test_tokenize import NASTY, PROSE, nasty_strings


def sentences(text: str) -> list[str]:
    return [sentence.text for sentence in segments(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello there. How are you?", ["Hello there.", "How are you?"]),
        ("Mr. J. Doe of the U.S. Senate left. Bye", ["Mr. J. Doe of the U.S. Senate left.", "Bye"]),
        ("See Dr. No vs. Mr. Yes.", ["See Dr. No vs. Mr. Yes."]),
        ('He said: "Yes. No." (So. Not.) Fine.', ['He said: "Yes. No." (So. Not.) Fine.']),
        ("Done.Then he left. See Node.js.", ["Done.", "Then he left.", "See Node.js."]),
        ("Use asyncio.TaskGroup. It waits.", ["Use asyncio.TaskGroup.", "It waits."]),
        ("Call `torch.Tensor` first. Done.", ["Call `torch.Tensor` first.", "Done."]),
        ("At 5 p.m. Monday we met. Then left.", ["At 5 p.m. Monday we met.", "Then left."]),
        ("It shuts at 5 p.m. EST. Go.", ["It shuts at 5 p.m. EST.", "Go."]),
        ("It shuts at 5 p.m. She left.", ["It shuts at 5 p.m.", "She left."]),
        ("See vol. 2 of it. And ch. 3 too.", ["See vol. 2 of it.", "And ch. 3 too."]),
        ("Acme Inc. was sold. Bob left.", ["Acme Inc. was sold.", "Bob left."]),
        ("So good!! Really??? What?! Ok.", ["So good!!", "Really???", "What?!", "Ok."]),
        ("1. Buy milk. 2. Go home.", ["1. Buy milk.", "2. Go home."]),
        ("这是。那是。", ["这是。", "那是。"]),
        ("shown in (B) and (C)", ["shown in (B) and (C)"]),
        ("Title\n\n \n  Text", ["Title", "Text"]),
        ("Title\r\n\r\nText\u2029More", ["Title", "Text", "More"]),
        ("running\r\ntext\rgoes\u2028on\nhere.", ["running\r\ntext\rgoes\u2028on\nhere."]),
        ("Buy\n- milk\n2) bread\n • 3 eggs", ["Buy", "- milk", "2) bread", "• 3 eggs"]),
        ("A.\u00a0B. \u3000\u00a0", ["A.\u00a0B."]),
        ("Hello", ["Hello"]),
        (" \n\n\t\u2029", []),
        ("", []),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_a_letter_in_parentheses_does_not_hide_later_sentence_ends() -> None:
    text = "(A) A map of it. The region is covered. It holds 14 exons. A cluster is shown."
    assert len(sentences(text)) == 4


def test_long_paragraphs_are_cut_where_their_sentences_end() -> None:
    text = "The wild-type mice were not observed to run. " * 1200
    assert set(sentences(text)) == {"The wild-type mice were not observed to run."}


def test_an_extremely_long_sentence_is_cut_between_words() -> None:
    assert [len(s.text) for s in segments("a" * 40_000)] == [2048] * 19 + [1088]
    text = "abc def " * 4096
    assert {t.text for s in segments(text) for t in s.tokens} == {"abc", "def"}


def test_a_block_that_the_paragraph_fills_is_whole() -> None:
    text = "abcd " * 409 + "abc"  # 2,048 characters
    assert list(map(len, sentences(text))) == [2048]
    assert list(map(len, sentences(text + "d"))) == [2044, 4]
    assert list(map(len, sentences(f"\n\n{' ' * 500}{text}\n\n{' ' * 500}{text}"))) == [2048] * 2


def test_a_panic_of_sentencex_leaves_one_sentence_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    real = sentencex.get_sentence_boundaries
    monkeypatch.setattr(
        sentencex, "get_sentence_boundaries", lambda language, _: real(language, "A\u00a0. B")
    )
    assert sentences("One. Two.\nThree") == ["One. Two.", "Three"]


def test_no_other_exception_is_taken_for_a_panic(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sentencex, "get_sentence_boundaries", interrupt)
    with pytest.raises(KeyboardInterrupt):
        sentences("One. Two.")


# Text in chunks -----------------------------------------------------------------------------------

LONG = "It went on and on without an end in sight, " * 30  # 1,290 characters
SAMPLES = {
    "plain": "The cat sat. It didn't stay long, did it? No! Then it left, as Mr. Hill saw. Ok.",
    "lines": "The cat\nsat. It ran.\nDid it?\nNo. 10 cats ran.\nThen they slept.\n",
    "paragraphs": "A title\n\nSome text. More of it\n \t\n\n  here.\u2029\u2029 And here. \n \n\n",
    "line ends": "One.\r\nTwo.\r\n\r\nThree.\rFour.\r\rFive\r\n \r\nsix.\r",
    "lists": "Buy:\n- milk.\n  12) bread\n\n • eggs\n1 . no\n123. yes\n1234. no\n-no\n 1)\n- ",
    "quotations": 'He said: "Yes. No. Why?" She left. \'Tis so. “Go. Now.” "Never ended. He sat.',
    "brackets": "(A) One of it. (See below. And above.) Two [of. Them.] left. He (she. They. On.",
    "abbreviations": "See Fig. 3 of the U.S. plan at 5 p.m. Monday. Acme Inc. was sold. Mr. No. 5.",
    "items": "1. Buy milk. 2. Go home. a) Sit down. b) Lie down. Then sleep. iv) Wake up. v) Eat",
    "first item": "a. One thing is this. It is so. Then more came b.) Another. c.) A third. d) Go.",
    "no blanks": "He left.Then she came.It was.Node.js is here.这是。那是。「あ。」い。",
    "odd": "\ufeffA b\ud800. C\u3000d\u00a0! 🙂. Ok… \0 e\u0301. वह गया। هل؟ Yes.",
    "addresses": "Mail a.b@c.org. Yes. See www.x.org/a.b. No. Ask m. e@f.com. Then http://g.h. Ok.",
}
BLOCKS = {
    "a long sentence": f"{LONG}{LONG}The end. It came.",
    "a long word": f"{'ab' * 2100} c. D.",
    "a quotation over a block": f'She said: "{LONG} Yes. No." {LONG} Then. {LONG}She left. Ok.',
    "prose": PROSE * 30,
    "a block and an empty line": f"{'word ' * 408}\n{' ' * 20}\n- And so on.",
    "a block and an item": f"{'word ' * 409}wo\n123. And so on.",
    "a block and no item": f"{'word ' * 409}wo\n123 And so on.",
    "a mark behind a block": f"{'a' * 2048}'b c.",
    "blanks": f"Title\n{' ' * 1200}A line. {' ' * 30}B.\n{' ' * 999}\nC.\n{' ' * 998}D.",
}


def in_pieces(text: str, size: int) -> Iterator[str]:
    return (text[k : k + size] for k in range(0, len(text), size))


@pytest.mark.parametrize("name", SAMPLES)
def test_a_text_cut_at_every_position_has_its_sentences(name: str) -> None:
    text = SAMPLES[name]
    whole = list(segments(text))
    for cut in range(len(text) + 1):
        assert list(segments_of([text[:cut], text[cut:]])) == whole, cut
    for size in (1, 2, 3, 7, 64):
        assert list(segments_of(in_pieces(text, size))) == whole, size


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_end_alike_wherever_chunks_end(name: str) -> None:
    text = BLOCKS[name]
    whole = list(segments(text))
    for cut in range(0, len(text), 47):  # a prime: chunks end everywhere in what is repeated
        assert list(segments_of([text[:cut], "", text[cut:]])) == whole, cut
    for size in (1, 1023, 2048, 2049):
        assert list(segments_of(in_pieces(text, size))) == whole, size


def test_hostile_strings_have_their_sentences_in_chunks() -> None:
    generator = random.Random(31)
    strings = nasty_strings(6_000)
    for text in chain(strings, map("".join, zip(*[iter(strings)] * 40, strict=False))):
        size = generator.choice((1, 1, 2, 5, 40))
        assert list(segments_of(in_pieces(text, size))) == list(segments(text)), text


CLAUSES = (
    *("The cat sat. ", "It ran!\n", "Did they go home? ", "He didn't, as Dr. No said. ", "Mix. "),
    *("At 5 p.m. Monday we met. ", "In the evening at 7 p.m. Tom left. ", "Acme Inc. was sold. "),
    *("She said: ", '"Go. ', 'Now." ', "'Tis ", "(See ", "A. B. C. ", "1) One. ", "\n\n", "\n- "),
    *(
        "ii) Two. ",
        "* three ",
        "• four ",
        "[5] ",
        "<b> ",
        "`x` ",
        "and so on, ",
        "a) b ",
        "Yahoo! ",
    ),
    *(LONG, " " * 40, "\n" + " " * 20, "e.g. ", "No. ", "I. ", "www.a.org. "),
)


@given(st.lists(st.sampled_from((*CLAUSES, *CLAUSES, *NASTY)), max_size=60), st.data())
def test_any_text_cut_anywhere_has_its_sentences(parts: list[str], data: st.DataObject) -> None:
    text = "".join(parts)
    places = st.lists(st.integers(0, len(text)), max_size=8)
    cuts = [0, *sorted(data.draw(places)), len(text)]
    chunks = [text[start:end] for start, end in pairwise(cuts)]
    assert list(segments_of(chunks)) == list(segments(text))
    assert list(segments_of(text)) == list(segments(text))  # in chunks of one character


ENDLESS = {
    "lines": "The cat sat.\n",
    "a line": "The cat sat. ",
    "a word": "a",
    "blanks": " ",
    "empty lines": "\n",
    "blanks behind a line": " \t",
    "a quotation": '"The cat sat. ',
    "a bracket": "(The cat. ",
    "carriage returns": "\r",
    "items": "\n1",
}


@pytest.mark.parametrize("name", ENDLESS)
def test_an_endless_text_is_held_in_a_small_window(name: str) -> None:
    chunk = ENDLESS[name] * (10_000 // len(ENDLESS[name]))
    window = Window(LANGUAGES["english"])
    window.add("Title\n")
    for _ in range(100):
        window.add(chunk)
        # the chunk, a block, and blanks behind a line break
        assert len(window.text) == len(window.folded) <= len(chunk) + 2048 + 1000
        for _ in window.sentences(ended=False):
            pass


# Sentences as soon as they are known --------------------------------------------------------------


def known(*chunks: str) -> list[str]:
    """List the sentences that are known when these chunks have come, and more may."""
    window = Window(LANGUAGES["english"])
    found = []
    for chunk in chunks:
        window.add(chunk)
        found += [window.text[a:b] for a, b in window.sentences(ended=False)]
    return found


NEXT = "It was a very cold day, and nobody went out.\n"


def test_a_sentence_is_known_once_enough_of_the_next_one_is_there() -> None:
    assert known("The cat sat.\n") == []  # where `or so.` would go on
    assert known("The cat sat.\n", NEXT[:20]) == []
    assert known("The cat sat.\n", NEXT) == ["The cat sat."]
    assert known("The cat sat.\n", NEXT, NEXT) == ["The cat sat.", NEXT.strip()]


@pytest.mark.parametrize("gap", ["\n\n", "\r\n\r\n", "\n \t\n", "\u2029", "\n- "])
def test_a_sentence_is_known_at_the_end_of_its_paragraph(gap: str) -> None:
    assert known(f"A title{gap}") == ["A title"]
    text = 'He said: "The cat sat. It ran.'
    assert known(*text) == []
    assert known(*text, *gap) == ['He said: "The cat sat.', "It ran."]


@pytest.mark.parametrize(
    "text",
    [
        f'He said: "Yes. {NEXT}{NEXT}',  # a mark may close the quotation
        f"See (above. {NEXT}{NEXT}",
        f"a. One. {NEXT}{NEXT}",  # items `b.)` may follow
        f"ii. Two. {NEXT}{NEXT}",
        f"Title\n{' ' * 99}",
    ],
)
def test_what_later_text_may_change_is_not_yet_known(text: str) -> None:
    assert known(text) == []


def test_blanks_without_end_end_a_paragraph() -> None:
    assert sentences(f"A\n{' ' * 999}b") == [f"A\n{' ' * 999}b"]
    assert sentences(f"A\n{' ' * 1000}b") == ["A", "b"]
    assert sentences(f"A{' ' * 1000}b") == [f"A{' ' * 1000}b"]
