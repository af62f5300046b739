"""Known words that unknown ones are other spellings of."""

import random
import string

import pytest

from lpcfg.grammar.lexicon import Lexicon
from lpcfg.grammar.spelling import (
    CASE_WEIGHT,
    FREQUENT_AT_LEAST,
    MISSPELLING_WEIGHT,
    RESPELLING_WEIGHT,
    english,
    other_case,
)
from tests import small_models

COUNTS = dict.fromkeys(
    ("so", "good", "going", "thanks", "because", "oh", "the", "Rome", "receive", "their", "you"),
    FREQUENT_AT_LEAST,
) | {"marine": FREQUENT_AT_LEAST - 1}


def count(word: str) -> int:
    return COUNTS.get(word, 0)


@pytest.mark.parametrize(
    ("word", "known", "occurrences"),
    [
        ("THE", "the", CASE_WEIGHT),
        ("rome", "Rome", CASE_WEIGHT),
        ("soooo", "so", RESPELLING_WEIGHT),
        ("GOOOOD", "good", RESPELLING_WEIGHT),
        ("goin'", "going", RESPELLING_WEIGHT),
        ("thx", "thanks", RESPELLING_WEIGHT),
        ("thxxx", "thanks", RESPELLING_WEIGHT),
        ("Y'all", "you", RESPELLING_WEIGHT),
        ("b/c", "because", RESPELLING_WEIGHT),
        ("lol", "oh", RESPELLING_WEIGHT),
        ("recieve", "receive", MISSPELLING_WEIGHT),
        ("receve", "receive", MISSPELLING_WEIGHT),
        ("recceive", "receive", MISSPELLING_WEIGHT),
        ("receove", "receive", MISSPELLING_WEIGHT),
    ],
)
def test_another_spelling_is_found(word: str, known: str, occurrences: float) -> None:
    found = english(word, count)
    assert found is not None
    assert (found.word, found.occurrences) == (known, occurrences)


@pytest.mark.parametrize(
    "word",
    ["murine", "Recieve", "recievee", "zeceive", "x1yz2w", "thei", "", "é", "ssss", "goin", "…"],
)
def test_other_words_stand_for_none(word: str) -> None:
    assert english(word, count) is None


def test_very_long_words_are_compared_with_no_misspellings() -> None:
    """A word of 100,000 letters kept a thread for hours."""
    asked = []
    assert english("ab" * 50_000, lambda word: asked.append(word) or 0) is None  # type: ignore[func-returns-value]
    assert len(asked) < 10


def test_other_languages_know_case_alone() -> None:
    found = other_case("THE", count)
    assert found is not None
    assert found.word == "the"
    assert other_case("soooo", count) is None


def test_every_single_mistake_behind_the_first_letter_is_undone() -> None:
    generator = random.Random(5)
    word = "because"
    only = {word: FREQUENT_AT_LEAST}
    for _ in range(500):
        k, letter = generator.randrange(1, len(word)), generator.choice(string.ascii_lowercase)
        wrong = generator.choice(
            [
                word[:k] + letter + word[k:],
                word[:k] + letter + word[k + 1 :],
                word[:k] + word[k + 1 :],
                word[:k] + word[k : k + 2][::-1] + word[k + 2 :],
            ]
        )
        found = english(wrong, lambda other: only.get(other, 0)) if wrong != word else None
        assert wrong == word or (found is not None and found.word == word)


def lexicon() -> Lexicon:
    return small_models.counts().lexicon


def test_an_unknown_spelling_has_the_tags_of_the_word_it_stands_for() -> None:
    known = max(
        filter(str.isalpha, lexicon().words), key=lambda word: lexicon().log_frequency([word])
    )
    spelled = known + known[-1] * 3
    assert spelled not in lexicon().word_ids
    x, occurrences = lexicon().look_up(spelled)
    assert x == lexicon().word_ids[known]
    assert occurrences == RESPELLING_WEIGHT
    assert lexicon().look_up(known) == (x, 0.0)
