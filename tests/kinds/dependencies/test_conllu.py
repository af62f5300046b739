"""CoNLL-U in and out."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lpcfg.base.errors import InputError, TreebankError
from lpcfg.kinds.dependencies import conllu
from lpcfg.kinds.dependencies.arcs import Arcs

DOG = """\
# sent_id = dog-1
# text = The dog’s bone didn't  last.
1	The	the	DET	DT	_	2	det	_	_
2-3	dog’s	_	_	_	_	_	_	_	_
2	dog	dog	NOUN	NN	Number=Sing	4	nmod:poss	_	_
3	’s	's	PART	POS	_	2	case	_	_
4	bone	bone	NOUN	NN	_	7	nsubj	_	_
5-6	didn't	_	_	_	_	_	_	_	_
5	do	do	AUX	VBD	_	7	aux	_	_
6	not	not	PART	RB	_	7	advmod	_	_
6.1	very	very	ADV	RB	_	_	_	7:advmod	_
7	last	last	VERB	VB	_	0	root	_	SpaceAfter=No
8	.	.	PUNCT	.	_	7	punct	_	_

"""
ONE = "1\tYes\tyes\tINTJ\tUH\t_\t0\troot\t_\t_\n\n"


def read(text: str) -> list[conllu.Sentence]:
    return list(conllu.read_string(text))


def row(number: str, form: str, head: str) -> str:
    return "\t".join((number, form, "_", "_", "_", "_", head, "dep", "_", "_"))


def test_what_is_read_is_written_again_byte_for_byte() -> None:
    assert conllu.write(read(DOG + ONE)) == DOG + ONE


def test_arcs_leave_multiword_tokens_and_empty_nodes_out() -> None:
    arcs = read(DOG)[0].arcs
    assert arcs.words == ("The", "dog", "’s", "bone", "do", "not", "last", ".")
    assert arcs.heads == (2, 4, 2, 7, 7, 7, 0, 7)
    assert arcs.labels[1] == "nmod:poss"
    assert arcs.tags[6] == "VERB|VB"


def test_offsets_find_each_word_in_the_text() -> None:
    sentence = read(DOG)[0]
    spans = [sentence.text[start:end] for start, end in sentence.offsets]
    assert spans == ["The", "dog", "’s", "bone", "didn't", "didn't", "last", "."]


def test_a_text_that_is_not_the_words_gives_no_offsets() -> None:
    assert read("# text = No\n" + ONE)[0].offsets == ()


def test_the_text_follows_from_the_words_where_no_comment_has_it() -> None:
    without = "\n".join(line for line in DOG.split("\n") if not line.startswith("#"))
    assert read(without)[0].text == "The dog’s bone didn't last."


def test_new_arcs_replace_heads_and_nothing_else() -> None:
    sentence = read(DOG)[0]
    old = sentence.arcs
    heads = (4, 4, 2, 7, 7, 7, 0, 4)
    new = sentence.with_arcs(Arcs(old.words, heads, old.labels, old.tags))
    assert new.arcs.heads == heads
    assert new.arcs.tags == old.tags
    assert new.comments == sentence.comments
    assert [r[0] for r in new.rows] == [r[0] for r in sentence.rows]
    assert [r[5] for r in new.rows] == [r[5] for r in sentence.rows]


@given(
    st.lists(
        st.text(st.characters(exclude_characters="\t\n\r", exclude_categories=("Cs",)), min_size=1),
        min_size=1,
        max_size=5,
    )
)
def test_arcs_survive_a_file_whatever_the_words(words: list[str]) -> None:
    n = len(words)
    arcs = Arcs(tuple(words), tuple(range(n)), ("root", *["dep"] * (n - 1)), ("X|Y",) * n)
    text = conllu.write([conllu.sentence_of(arcs, comments=["made"])])
    [back] = read(text)
    assert back.arcs.words == arcs.words
    assert back.arcs.heads == arcs.heads
    assert back.arcs.tags == arcs.tags


def test_a_written_sentence_remembers_where_no_space_was() -> None:
    arcs = Arcs(("Go", "!"), (0, 1), ("root", "punct"), ("VERB|VB", "PUNCT|."), ((0, 2), (2, 3)))
    sentence = conllu.sentence_of(arcs, text="Go!")
    assert sentence.text == "Go!"
    assert read(conllu.write([sentence]))[0].offsets == arcs.offsets


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("", 1, 1, "expected sentences in CoNLL-U, got none"),
        ("\n\n", 1, 1, "expected sentences"),
        ("1 Yes\n\n", 1, 1, "expected 10 fields between tabs, got 1: separate"),
        (ONE + "1\tYes\n\n", 3, 1, "expected 10 fields between tabs, got 2"),
        (ONE.replace("yes", ""), 1, 7, "got nothing: write `_`"),
        (row("1", "a", "x") + "\n", 1, 13, "expected a head's number, got 'x'"),
        (row("1", "a", "1") + "\n", 1, 13, "expected a head from 0"),
        (row("1", "a", "2") + "\n" + row("2", "b", "1") + "\n", 1, 13, "cycle 1 → 2 → 1"),
        (row("1", "a", "0") + "\n" + row("2", "b", "0") + "\n", 2, 13, "one word with head 0"),
        (row("1", "a", "0") + "\n" + row("2", "b", "_") + "\n", 2, 13, "got '_'"),
        (row("2", "a", "0") + "\n", 1, 1, "expected the word's number 1, got 2"),
        (row("1-3", "a", "_") + "\n" + row("1", "a", "0") + "\n", 1, 1, "got 1-3"),
        (row("one", "a", "0") + "\n", 1, 1, "got 'one'"),
        (row("0.1", "a", "_") + "\n", 1, 1, "expected words in the sentence, got none"),
        (ONE + "# end\n", 4, 1, "expected words after the comments"),
    ],
)
def test_what_is_no_conllu_is_refused_with_its_line(
    text: str, line: int, column: int, message: str
) -> None:
    with pytest.raises(TreebankError) as caught:
        read(text)
    assert message in caught.value.problem
    assert (caught.value.line, caught.value.column) == (line, column)


def test_a_file_to_be_parsed_needs_no_heads() -> None:
    [sentence] = read(row("1", "a", "_") + "\n" + row("2", "b", "_") + "\n")
    assert not sentence.has_heads
    with pytest.raises(InputError, match="expected a head for every word"):
        _ = sentence.arcs


def test_windows_line_ends_and_a_missing_last_line_end_are_read() -> None:
    assert read(ONE.replace("\n", "\r\n")) == read(ONE)
    assert read(ONE.strip()) == read(ONE)


def test_a_stream_is_read_like_a_string() -> None:
    assert list(conllu.read(io.StringIO(DOG))) == read(DOG)
