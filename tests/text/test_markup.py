"""Files of other kinds are recognised, and plain text is not taken for one of them."""

import pytest

from lpcfg.text.markup import foreign, is_undecided

ROW = "1\tDogs\tdog\tNOUN\tNNS\t_\t2\tnsubj\t_\t_\n"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (ROW, "CoNLL-U"),
        ("# sent_id = a\n# text = Dogs bark\n" + ROW, "CoNLL-U"),
        ("# sent_id = a", "CoNLL-U"),
        ("1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_\n" + ROW, "CoNLL-U"),
        ("\ufeff\n(S (NP (NN Dogs)) (VP (VBP bark)))", "Penn brackets"),
        ("( (S (NP-SBJ (NNS Dogs))\n    (VP (VBP bark)) (. .)))", "Penn brackets"),
        ("((S\n  (NP\n    (NNS Dogs))))", "Penn brackets"),
        ("(ROOT\n", "Penn brackets"),
        ("( (S", "Penn brackets"),
        ("<!DOCTYPE html>\n<title>Dogs</title>", "HTML"),
        ('<?xml version="1.0"?><a/>', "HTML"),
        ("<p class='x'>Dogs bark.</p>", "HTML"),
    ],
)
def test_a_file_of_another_kind_is_named(text: str, kind: str) -> None:
    assert foreign(text) == kind


@pytest.mark.parametrize(
    "text",
    [
        "",
        "(Dogs bark.)",
        "(NASA said so (NYT 2020).)",
        "(a) Dogs bark. (b) Cats sleep.",
        "((1)) and ((2))",
        "1 dog barks.",
        "1\tdog\tbarks",
        "# A heading\nDogs bark.",
        "<3 dogs",
        "<p> is a tag of HTML.",
        "x < y > z",
        "The tree (S (NP (NN dog))) has one noun.",
    ],
)
def test_plain_text_is_plain_text(text: str) -> None:
    assert foreign(text) is None


@pytest.mark.parametrize("start", ["(", "((", "(S (", "<a ", "<", "# x\n", "1\t"])
def test_hostile_beginnings_take_no_time(start: str) -> None:
    # A pattern that goes back over and over would take hours; timeouts guard the test run.
    assert foreign(start * 200_000) in (None, "Penn brackets")


@pytest.mark.parametrize("text", ["The dog", "é", "\ufeff \n[1", "{", "2 dogs", "x" * 5000])
def test_most_texts_are_plain_from_their_first_letter(text: str) -> None:
    assert not is_undecided(text)


@pytest.mark.parametrize("text", ["", " \n", "\ufeff", "(The", "<p>", "1", "# text", "\r\n("])
def test_text_that_may_be_of_another_kind_is_waited_for(text: str) -> None:
    assert is_undecided(text)
    assert not is_undecided(text + " " * 4000)  # what is looked at has come
