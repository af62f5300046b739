"""Find a known word that a word unknown to the treebank is likely to be another spelling of.

In English: `soooo` is *so*, `goin'` is *going*, `thx` is *thanks*, and `recieve`, one letter or two
swapped letters away from a frequent word, is *receive*. An interjection stands for *oh*. In any
language, `THE` is *the*.
"""

import re
import string
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

CASE_WEIGHT = 1.0
"""How many occurrences of an unknown word its other spelling in case weighs as."""
RESPELLING_WEIGHT = 10.0
"""The same of a spelling that only the word itself has, `soooo` or `thx`."""
MISSPELLING_WEIGHT = 1.0
"""The same of a frequent word that is one mistake away."""
FREQUENT_AT_LEAST = 20
"""Occurrences of a word that others are taken for misspellings of."""
LEAST_LETTERS = 5
"""Letters of a word that may be a misspelling: of shorter ones, too many are one letter apart."""
LETTERS_LIMIT = 40
"""Letters of a word that is no misspelling: the words one mistake away from n letters have 53 n² in
all, and who sends 100,000 letters without a blank must not keep a thread for hours."""

_SHORT = {
    **dict.fromkeys(("pls", "plz"), "please"),
    **dict.fromkeys(("thx", "thanx", "tysm"), "thanks"),
    **dict.fromkeys(("tmrw", "tmr", "2moro"), "tomorrow"),
    **dict.fromkeys(("cuz", "coz", "bcoz", "b/c", "'cause"), "because"),
    **dict.fromkeys(("y'all", "yall", "ya", "u"), "you"),
    "ur": "your",
    "r": "are",
    "'t": "it",
    "ppl": "people",
    "msg": "message",
    "luv": "love",
    "w/": "with",
    "w/o": "without",
    "thru": "through",
    "tho": "though",
    "2day": "today",
    "nite": "night",
    "lil": "little",
    "ol'": "old",
    "o'": "of",
    "prolly": "probably",
    "'n'": "and",
    "'n": "and",
    "an'": "and",
    "kinda": "rather",
    "sorta": "rather",
    "rly": "really",
    "wasnt": "was",
    "isnt": "is",
    "dont": "do",
    "thats": "that",
    "bday": "birthday",
}
_SAID = (
    "lol lmao rofl omg wow yay yikes ugh ouch oops whoa hmm hm haha hahaha hehe nope yep yup nah "
    "yeah uh um huh aww meh woohoo hooray hey ow eek duh geez gosh bravo cheers idk smh tbh imo btw"
)
_INTERJECTIONS = frozenset(_SAID.split())
_RUN = re.compile(r"(\w)\1{2,}")


@dataclass(frozen=True)
class Spelling:
    """A known word, and how many occurrences of the unknown one its counts weigh as."""

    word: str
    occurrences: float


Count = Callable[[str], int]
"""How often a word was seen, 0 if never."""


def other_case(word: str, count: Count) -> Spelling | None:
    """Return the word in lower case or capitalized, whichever is known."""
    for other in (word.lower(), word.capitalize()):
        if count(other):
            return Spelling(other, CASE_WEIGHT)
    return None


def english(word: str, count: Count) -> Spelling | None:
    """Find the known word that an English word stands for, if there is one."""
    return other_case(word, count) or _respelled(word.lower(), count) or _mistaken(word, count)


def _respelled(lower: str, count: Count) -> Spelling | None:
    for other in _respellings(lower):
        if other != lower and count(other):
            return Spelling(other, RESPELLING_WEIGHT)
    return None


def _respellings(lower: str) -> Iterator[str]:
    twice, once = _RUN.sub(r"\1\1", lower), _RUN.sub(r"\1", lower)
    for word in dict.fromkeys((lower, twice, once)):
        if word in _SHORT:
            yield _SHORT[word]
        if word in _INTERJECTIONS:
            yield "oh"
        yield word
        if word.endswith("in'"):
            yield f"{word[:-1]}g"


def _mistaken(word: str, count: Count) -> Spelling | None:
    if not LEAST_LETTERS <= len(word) < LETTERS_LIMIT or not (word.isascii() and word.isalpha()):
        return None
    if word != word.lower():
        return None
    most, best = max(((count(other), other) for other in _one_mistake(word)), default=(0, ""))
    return Spelling(best, MISSPELLING_WEIGHT) if most >= FREQUENT_AT_LEAST else None


def _one_mistake(word: str) -> Iterator[str]:
    """Yield every word that is one letter more, less or other, or two swapped letters, away.

    The first letter stays: people rarely mistake it.
    """
    for k in range(1, len(word) + 1):
        before, after = word[:k], word[k:]
        for letter in string.ascii_lowercase:
            yield before + letter + after
            yield before + letter + after[1:]
        yield before + after[1:]
        if len(after) > 1:
            yield before + after[1] + after[0] + after[2:]


SPELLINGS: Mapping[str, Callable[[str, Count], Spelling | None]] = {
    "english": english,
    "neutral": other_case,
}
"""How each language looks for a known word."""
