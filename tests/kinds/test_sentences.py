"""Text, tokens, tagged tokens and trees become sentences."""

import pytest

from lpcfg.base.errors import InputError
from lpcfg.kinds.sentences import (
    ENGLISH,
    Constraint,
    sentence_from_tagged,
    sentence_from_tokens,
    sentence_from_tree,
)
from lpcfg.trees.tree import Tree

TREE = Tree("S", (Tree("NNS", (), "Cats"), Tree("VBP", (), "sleep")))


def test_a_text_is_cut_into_sentences_whose_offsets_count_the_whole_text() -> None:
    text = "Cats sleep.  They don't (purr)."
    first, second = ENGLISH.sentences(text)
    assert first.tokens == ("Cats", "sleep", ".")
    assert (second.start, second.end, second.text) == (13, len(text), "They don't (purr).")
    assert second.forms == ("They", "do", "n't", "-LRB-", "purr", "-RRB-", ".")
    for one in (first, second):
        assert one.offsets is not None
        assert tuple(text[start:end] for start, end in one.offsets) == one.tokens


def test_a_text_given_as_one_sentence_is_not_cut() -> None:
    sentence = ENGLISH.sentence("Cats sleep. They purr.")
    assert sentence.tokens == ("Cats", "sleep", ".", "They", "purr", ".")
    assert (sentence.start, sentence.end) == (0, 22)


def test_tokens_keep_their_tags_constraints_and_id() -> None:
    sentence = sentence_from_tokens(["a", "b"], [None, "NN"], [Constraint(0, 2)], 7)
    assert sentence.tokens == ("a", "b")
    assert (sentence.tags, sentence.constraints, sentence.id) == (
        (None, "NN"),
        (Constraint(0, 2),),
        7,
    )
    assert sentence_from_tokens(["a"]).tags is None


def test_a_tagged_line_is_cut_at_the_last_slash_of_each_item() -> None:
    sentence = sentence_from_tagged("and/or/CC 1/2/CD\n", 1)
    assert (sentence.tokens, sentence.tags) == (("and/or", "1/2"), ("CC", "CD"))


@pytest.mark.parametrize("item", ["word", "/NN", "word/", "/"])
def test_a_word_without_its_tag_is_refused_with_its_line(item: str) -> None:
    with pytest.raises(InputError, match=f"word/TAG in line 3, got `{item}`"):
        sentence_from_tagged(f"the/DT {item}", 3)


def test_a_tree_gives_its_words_and_its_tags_where_they_are_wanted() -> None:
    assert sentence_from_tree(TREE) == sentence_from_tokens(["Cats", "sleep"])
    assert sentence_from_tree(TREE, tagged=True).tags == ("NNS", "VBP")
