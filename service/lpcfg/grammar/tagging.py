"""The tagger: a log-linear model of a word's tag, given the word and two words on either side.

    p(t | x, neighbours) ∝ exp Σ_k W[row_k, t]

A *code* is the CRC-32 of one fact about a word (`codes`). Feature k of word i combines two codes:
row k of `TEMPLATES` names them as (offset, code, other offset, other code). The feature's row in W
is a hash of both codes and k. A code is 0 beyond the ends of the sentence, and where a template
names none. Each row of W is stored as int8 with a scale of its own: a quarter of the size of
float32, and no tag changes.
"""

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lpcfg.base.errors import GrammarError
from lpcfg.base.jit import compiled
from lpcfg.base.prefetch import ask_for
from lpcfg.grammar.tables import Doubles, Longs, Singles, frozen

FREQUENT = 3
"""Words seen at least this often in training have features of their own."""

WORD, LOWER, LAST_1, LAST_2, LAST_3, LAST_4, LAST_5, FIRST_1, FIRST_2, FIRST_3, SHAPE = range(11)
"""Positions of a word's codes."""
N_CODES = 11
CLASS = 11
"""The place of one code more, of a model with classes of words."""
NONE = -1

TEMPLATES = frozen(
    np.array(
        [
            *((0, code, 0, NONE) for code in range(N_CODES)),
            *((side, code, 0, NONE) for side in (-1, 1) for code in (WORD, SHAPE, LAST_3)),
            *((-1, SHAPE, 0, SHAPE), (1, SHAPE, 0, SHAPE), (-2, WORD, 0, NONE), (2, WORD, 0, NONE)),
            *((-1, WORD, 0, LOWER), (1, WORD, 0, LOWER), (-1, WORD, 1, WORD)),
            *((-1, LAST_2, 0, LAST_3), (1, LAST_2, 0, LAST_3), (0, NONE, 0, NONE)),
            *((offset, CLASS, 0, NONE) for offset in (0, -1, 1)),
            *((0, CLASS, 0, SHAPE), (0, CLASS, 0, LAST_2), (-1, CLASS, 1, CLASS)),
        ],
        np.int64,
    )
)
"""The features of a word: pairs of codes, of the words at these offsets from it."""
PLAIN = len(TEMPLATES) - 6
"""How many of them, the first ones, do without classes."""

_LEAST_SCALE = 2.0**-14
"""The smallest normal float16. Weights of rows below 127 times it are rounded to its steps."""
_HASHED = (1 << 48) - 1
_DIGIT = re.compile(r"\d")


def shape(word: str) -> str:
    """Describe a word's shape: a letter for its case, then marks for digits, hyphens and signs.

    N: digits and no letters, P: neither, l: lower, C: Capital first, U: UPPER, I: one capital, M:
    miXed, o: a script without case.
    """
    if word.isalpha() and word.islower():  # most words, and nothing else is to be looked at
        return "l"
    letters = "".join(c for c in word if c.isalpha())
    digits = any(c.isdigit() for c in word)
    if not letters:
        case = "N" if digits else "P"
    elif letters.islower():
        case = "l"
    elif letters.isupper():
        case = "U" if len(letters) > 1 else "I"
    elif letters.istitle():
        case = "C"
    else:
        case = "M" if letters != letters.swapcase() else "o"
    inner = word[1:-1]
    signs = any(not c.isalnum() and c != "-" for c in inner)
    return case + "d" * (digits and case != "N") + "-" * ("-" in inner) + "." * signs


def codes(word: str, frequent: bool) -> list[int]:
    """Compute a word's codes: the word, its lower case, its last and first letters, its shape.

    A word that is not frequent has its shape in place of the word, and 0 for its lower case.
    """
    lower, form = word.lower(), shape(word)
    itself = (f"w {word}", f"l {lower}") if frequent else (f"s {form}", "s")
    ends = (f"-{n} {lower[-n:]}" for n in range(1, 6))
    starts = (f"+{n} {lower[:n]}" for n in range(1, 4))
    facts = (*itself, *ends, *starts, f"s {form}")
    return [zlib.crc32(fact.encode("utf-8", "surrogatepass")) for fact in facts]


def class_code(word: str, classes: Mapping[str, int]) -> int:
    """Compute the code of a word's class, 0 for a word without."""
    number = classes.get(_DIGIT.sub("0", word.lower()))
    return 0 if number is None else zlib.crc32(f"c {number}".encode())


@dataclass(frozen=True, eq=False)
class TagModel:
    """A log-linear tagger: W[r, t] = weight[r, t] · scale[r], tags in the lexicon's order.

    `gamma` is its weight in a word's tag against the lexicon's (see `lpcfg.grammar.lexicon`), and
    `frequent` are the words that have features of their own. `classes` are classes of words, in
    lower case and every digit a 0, learned from raw text; without any, features of classes are
    left out.
    """

    tags: tuple[str, ...]
    frequent: frozenset[str]
    weight: NDArray[np.int8]
    scale: NDArray[np.float16]
    gamma: float
    classes: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", frozen(self.weight))
        object.__setattr__(self, "scale", frozen(self.scale))
        rows = len(self.scale)
        if self.weight.shape != (rows, len(self.tags)) or rows & (rows - 1) or not rows:
            raise GrammarError(
                f"expected weights of {len(self.tags)} tags in a power of two of rows, each with "
                f"a scale, got shape {self.weight.shape} and {rows} scales: publish the model again"
            )

    @classmethod
    def rounded(
        cls,
        tags: Sequence[str],
        frequent: frozenset[str],
        weight: Singles,
        gamma: float,
        classes: Mapping[str, int] | None = None,
    ) -> "TagModel":
        """Build a model from weights, each rounded by at most half a step of its row."""
        largest = np.abs(weight).max(axis=1, initial=0.0)
        scale = np.maximum(largest / 127, _LEAST_SCALE).astype(np.float16)
        steps = np.rint(weight / scale[:, None].astype(np.float32))
        return cls(tuple(tags), frequent, steps.astype(np.int8), scale, gamma, classes or {})

    @property
    def width(self) -> int:
        """How many codes a word has."""
        return N_CODES + bool(self.classes)

    def codes(self, word: str) -> list[int]:
        """Return the codes of a word, with that of its class if the model has classes."""
        result = codes(word, word in self.frequent)
        return [*result, class_code(word, self.classes)] if self.classes else result

    def log_shares(self, words: Sequence[str]) -> Doubles:
        """Compute log p(t | x, neighbours): one row for every word of a sentence."""
        coded = np.array([self.codes(word) for word in words], np.int64).reshape(-1, self.width)
        score = scores(coded, self.weight, self.scale.astype(np.float32)).astype(np.float64)
        score -= score.max(axis=1, keepdims=True, initial=-np.inf)
        log_shares: Doubles = score - np.log(np.exp(score).sum(axis=1, keepdims=True))
        return log_shares


# Kernels ------------------------------------------------------------------------------------------


@compiled()
def templates_of(coded: Longs) -> int:
    """Count the templates for words with so many codes."""
    return len(TEMPLATES) if coded.shape[1] > N_CODES else PLAIN


@compiled(helper=True, borrows=True)
def feature_rows(coded: Longs, i: int, rows: int, out: Longs) -> None:
    """Write the rows of word i's features to `out`: row_k = hash(first code, second code, k).

    `rows` is the number of rows of W, a power of two.
    """
    for k in range(len(out)):
        first, second = 0, 0
        word, code = i + TEMPLATES[k, 0], TEMPLATES[k, 1]
        if code >= 0 and 0 <= word < len(coded):
            first = coded[word, code]
        word, code = i + TEMPLATES[k, 2], TEMPLATES[k, 3]
        if code >= 0 and 0 <= word < len(coded):
            second = coded[word, code]
        x = (first * 0x9E3779B1 + second * 0x85EBCA77 + k * 0xC2B2AE3D) & _HASHED
        x ^= x >> 17
        x = (x * 0x9E3779B1) & _HASHED
        x ^= x >> 15
        out[k] = x & (rows - 1)


@compiled()
def scores(coded: Longs, weight: NDArray[np.int8], scale: Singles) -> Any:
    """Compute Σ_k W[row_k, t]: one row for every word of a sentence."""
    result = np.zeros((len(coded), weight.shape[1]), np.float32)
    _add_weights(coded, weight, scale, np.empty((2, templates_of(coded)), np.int64), result)
    return result


@compiled(helper=True, borrows=True, fastmath={"reassoc", "contract", "nsz"})
def _add_weights(
    coded: Longs, weight: NDArray[np.int8], scale: Singles, rows: Longs, result: Singles
) -> None:
    """Add the weights of every word's features to its row of the result: Σ_k W[row_k, t].

    Weights lie anywhere in megabytes. So those of one word are asked for while those of the word
    before are added; `rows` has room for the features of both.
    """
    tags = weight.shape[1]
    for i in range(len(coded) + 1):
        # ask for the weights of word i
        if i < len(coded):
            feature_rows(coded, i, len(weight), rows[i % 2])
            for r in rows[i % 2]:
                ask_for(scale, r)
                ask_for(weight, r * tags)
                ask_for(weight, r * tags + tags - 1)
        # add those of word i − 1, which have come by now
        if i > 0:
            for r in rows[(i - 1) % 2]:
                step = scale[r]
                for t in range(tags):
                    result[i - 1, t] += step * np.float32(weight[r, t])
