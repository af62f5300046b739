"""Features of arcs and siblings as numbers: codes of words, templates, a table of weights.

A template is a line like `h.tag m-1.tag m.tag +distance`: facts about words at offsets from the
head, the modifier or its nearer sibling (s), joined into one 64-bit number with the template's own
number and the arc's direction. A table maps numbers to weights; what it does not hold weighs
nothing.
"""

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from lpcfg.grammar.tables import Longs
from lpcfg.grammar.tagging import shape

Words64 = NDArray[np.uint64]
Keys = NDArray[np.uint32]

FACTS = ("form", "lower", "end", "tag", "coarse")
"""Of a word: itself and in lower case (of a rare one its shape and last letters), its last three
letters, its tag `UPOS|XPOS`, and UPOS alone."""
TAG, COARSE = FACTS.index("tag"), FACTS.index("coarse")
PAD = 2
"""Rows before word 0, the root, and behind the last word."""
DISTANCES = np.array([1, 2, 3, 4, 5, 7, 10, 15, 20, 30], np.int64)
_ANCHORS = "hms"
_BEYOND = 7  # any number: what facts of places beyond the sentence are


def fact_codes(word: str, frequent: bool) -> list[int]:
    """Return the codes of a word's facts that its tag has no part in."""
    lower = word.lower()
    itself, low = (
        (f"w {word}", f"l {lower}") if frequent else (f"s {shape(word)}", f"e {lower[-2:]}")
    )
    facts = (itself, low, f"3 {lower[-3:]}")
    return [zlib.crc32(fact.encode("utf-8", "surrogatepass")) for fact in facts]


def tag_codes(tag: str) -> list[int]:
    coarse = tag.partition("|")[0]
    return [zlib.crc32(f"{k} {text}".encode()) for k, text in (("t", tag), ("u", coarse))]


def framed(words: Longs, tags: Longs) -> Words64:
    """List the codes of a sentence's places, a row each: PAD beyond, the root, the words, PAD
    beyond.
    """
    n = len(words)
    rows = np.full((n + 2 * PAD + 1, len(FACTS)), _BEYOND, np.uint64)
    rows[PAD] = _BEYOND + 1
    rows[PAD + 1 : PAD + 1 + n, :3] = words
    rows[PAD + 1 : PAD + 1 + n, 3:] = tags
    return rows


@dataclass(frozen=True, eq=False)
class Templates:
    """Templates in arrays: parts[t, p] = (which of h, m and s, offset, fact), -1 beyond."""

    parts: Longs
    distance: Longs

    @classmethod
    def of(cls, text: str) -> "Templates":
        lines = [line.split() for line in text.strip().splitlines()]
        most = max(len([word for word in line if word[0] != "+"]) for line in lines)
        parts = np.full((len(lines), most, 3), -1, np.int64)
        distance = np.zeros(len(lines), np.int64)
        for t, line in enumerate(lines):
            for p, word in enumerate(line):
                if word == "+distance":
                    distance[t] = 1
                    continue
                place, _, fact = word.partition(".")
                parts[t, p] = _ANCHORS.index(place[0]), int(place[1:] or 0), FACTS.index(fact)
        return cls(parts, distance)


ARC = Templates.of(
    """
    h.form
    h.tag
    h.form h.tag
    m.form +distance
    m.tag +distance
    m.form m.tag
    h.tag m.tag
    h.tag m.tag +distance
    h.coarse m.coarse +distance
    h.form m.form
    h.lower m.lower
    h.form m.tag
    h.form m.tag +distance
    h.lower m.coarse +distance
    h.tag m.form
    h.tag m.form +distance
    h.coarse m.lower +distance
    h.form h.tag m.tag
    h.tag m.form m.tag
    h.form h.tag m.form m.tag
    h.end m.tag
    h.tag m.end
    h.end m.end
    h.tag h+1.tag m-1.tag m.tag
    h-1.tag h.tag m-1.tag m.tag
    h.tag h+1.tag m.tag m+1.tag
    h-1.tag h.tag m.tag m+1.tag
    h.tag m-1.tag m.tag
    h.tag m.tag m+1.tag
    h.tag h+1.tag m.tag
    h-1.tag h.tag m.tag
    h.tag m-1.tag m.tag m+1.tag +distance
    h-1.tag h.tag h+1.tag m.tag +distance
    h-1.coarse h.coarse h+1.coarse m-1.coarse m.coarse m+1.coarse
    m-2.tag m-1.tag m.tag h.coarse
    m.tag m+1.tag m+2.tag h.coarse
    h-2.coarse h-1.coarse h.tag m.coarse
    h.tag h+1.coarse h+2.coarse m.coarse
    h.tag m.tag m-1.form
    h.tag m.tag m+1.form
    h.tag m.tag h-1.form
    h.tag m.tag h+1.form
    h.form m-1.tag m.tag
    h.form m.tag m+1.tag
    h.form m.tag m+1.lower
    m.form h.coarse m+1.form
    m.form m-1.form h.coarse
    """
)
SIBLINGS = Templates.of(
    """
    s.tag m.tag
    s.tag m.tag +distance
    s.form m.tag
    s.tag m.form
    s.form m.form
    s.coarse m.coarse +distance
    s.form m.form +distance
    s.lower m.coarse
    s.coarse m.lower
    """
)
"""Of two neighbouring modifiers."""
TRIPLES = Templates.of(
    """
    h.tag s.tag m.tag
    h.tag s.tag m.tag +distance
    h.form s.tag m.tag
    h.tag s.form m.tag
    h.tag s.tag m.form
    h.coarse s.coarse m.coarse +distance
    """
)
"""Of these with their head, or of a head's first modifier, whose s is beyond the sentence."""

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)
_HIGH = np.uint64(32)


@njit(cache=True, nogil=True, inline="always")
def mixed(key: Any, value: Any) -> Any:
    key = (key ^ value) * _MULTIPLIER
    return key ^ (key >> _SHIFT)


@njit(cache=True, nogil=True, inline="always")
def place_of(keys: Keys, key: Any) -> Any:
    """Find the place of a key in an open table whose size is a power of two, or -1."""
    mask = np.uint64(len(keys) - 1)
    wanted = np.uint32(key >> _HIGH) | np.uint32(1)
    at = key & mask
    while True:
        found = keys[at]
        if found == wanted:
            return np.int64(at)
        if found == 0:
            return np.int64(-1)
        at = (at + np.uint64(1)) & mask


@njit(cache=True, nogil=True)
def joined(
    codes: Words64, at: Longs, seed: int, near: int, parts: Longs, far: Longs, out: Any
) -> Any:
    """Compute the keys of all templates; at[k] are the words, `seed` the direction, `near` the
    distance.
    """
    last = len(codes) - 1
    for t in range(len(parts)):
        key = mixed(np.uint64(t + 1), np.uint64(seed))
        if far[t]:
            key = mixed(key, np.uint64(near + 1))
        for p in range(parts.shape[1]):
            anchor = parts[t, p, 0]
            if anchor < 0:
                break
            row = at[anchor] + parts[t, p, 1] + PAD
            row = min(max(row, 0), last)
            key = mixed(key, codes[row, parts[t, p, 2]])
        out[t] = key
    return len(parts)


@njit(cache=True, nogil=True)
def bucket(distance: int) -> Any:
    return np.searchsorted(DISTANCES, distance, side="right")
