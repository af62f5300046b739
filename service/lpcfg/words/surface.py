"""Surface metrics of two sentences, after Jha, Schwartz and Ungar (2012).

Two are of lengths. Four count what both sentences have: words as written, content words, base forms
and numerals. The same four are given as shares too, divided by √(number in a · number in b).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from lpcfg.base.extras import extra
from lpcfg.text.tokenize import tokenize

LENGTHS = ("length difference", "mean length")
COUNTED = ("common words", "common content words", "common base forms", "common numerals")
SHARES = tuple(f"share of {name}" for name in COUNTED)
SURFACE = (*LENGTHS, *COUNTED, *SHARES)

_CLOSED_CLASSES = """
a an the this that these those some any each every either neither both all no none such same
other another many much few more most less least own one i me my mine myself you your yours
yourself he him his himself she her hers herself it its itself we us our ours ourselves they
them their theirs themselves who whom whose which what whoever whatever where when why how
there here and or but nor so yet for if then than as because while although though unless
until since whether of in on at by with from to into onto over under about against between
among through during before after above below up down out off again further within without
toward towards upon across along around behind beside besides beyond near per via is am are
was were be been being have has had having do does did doing done can could will would shall
should may might must ought not n't 's 're 've 'll 'd 'm too very just also only even ever
never ca wo
"""
_FUNCTION_WORDS = frozenset(_CLOSED_CLASSES.split())
_NUMBER_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_NUMBERS = {word: str(number) for number, word in enumerate((*_NUMBER_WORDS, "ten"))}
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True)
class SentenceSets:
    """The data of a sentence that its metrics need."""

    length: int
    sets: tuple[frozenset[str], ...]
    """Words as written, content words, base forms, numerals: as `COUNTED` names them"""

    @property
    def content(self) -> list[str]:
        """Content words, sorted, so that sums have one order."""
        return sorted(self.sets[1])


def forms_in(sentence: str) -> list[str]:
    """List the tokens of a sentence, with its marks, in the forms that have vectors."""
    return [token.form for token in tokenize(sentence)]


def sentence_sets(tokens: Sequence[str]) -> SentenceSets:
    """Collect what the metrics of a sentence look at."""
    lower = [token.lower() for token in tokens]
    content = frozenset(word for word in lower if is_word(word) and word not in _FUNCTION_WORDS)
    numerals = frozenset(
        _NUMBERS.get(word, word.replace(",", ""))
        for word in lower
        if _DIGIT.search(word) or word in _NUMBERS
    )
    bases = frozenset(map(base_form, lower))
    return SentenceSets(len(tokens), (frozenset(tokens), content, bases, numerals))


def is_word(token: str) -> bool:
    """Tell words and numbers from marks and brackets."""
    return any(map(str.isalnum, token)) and not (token.startswith("-") and token.endswith("-"))


@cache
def _stemmer() -> Any:
    with extra("nltk", "stems of words"):
        from nltk.stem.porter import PorterStemmer

    return PorterStemmer()


@lru_cache(1 << 16)
def base_form(word: str) -> str:
    """Return the stem of a word in lower case, by Porter's rules."""
    return str(_stemmer().stem(word))


def surface_metrics(a: SentenceSets, b: SentenceSets) -> list[float]:
    """Return the values of `SURFACE`."""
    common = [len(of_a & of_b) for of_a, of_b in zip(a.sets, b.sets, strict=True)]
    sizes = [len(of_a) * len(of_b) for of_a, of_b in zip(a.sets, b.sets, strict=True)]
    shares = [n / np.sqrt(size) if size else 0.0 for n, size in zip(common, sizes, strict=True)]
    return [abs(a.length - b.length), (a.length + b.length) / 2, *common, *shares]
