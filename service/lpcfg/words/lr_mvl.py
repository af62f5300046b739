"""LR-MVL: low-rank multi-view learning (Dhillon, Foster and Ungar 2011).

A            the words' vectors, (n, k): given first, then learned anew every round
L_t, R_t     exponential smooths of A's rows left and right of token t, at r rates, (r k,) each
φ_L, φ_R     (r k, k): the CCA of L with R
S_t          [φ_Lᵀ L_t; φ_Rᵀ R_t]; the CCA of words with S is the next A

Rows of rarer words and of breaks are zero: they say nothing, and smoothing passes over them.
One pass over the text a round: the moments of L and R and their sums per word are all it takes.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from lpcfg.base.jit import compiled
from lpcfg.words.bigrams import Floats
from lpcfg.words.context import Contexts, smoothed
from lpcfg.words.corpus import Ints
from lpcfg.words.dense import Doubles, cca, cca_with_states
from lpcfg.words.neighbours import LearnedVectors, mean_square_scale

SEGMENT = 1 << 15
"""Tokens smoothed at a time, where sentences end: 2 r k float32 each, 52 MB at r k = 200."""


@dataclass
class Moments:
    """The moments that one pass over the text collects."""

    states: Doubles
    """Σ_t [L; R] [L; R]ᵀ, (2 r k, 2 r k)"""
    sums: Floats
    """Σ_t of [L; R] per word, (n, 2 r k), float32"""
    tokens: int


def improve(
    table: Floats, rates: tuple[float, ...], blocks: Iterable[Ints], counts: Doubles
) -> LearnedVectors:
    """Do one round: from A, (n, k), to the next A and its projections of contexts."""
    padded = np.concatenate([table, np.zeros((2, table.shape[1]))]).astype(np.float32)
    return solve(padded, rates, collect(padded, rates, blocks), counts)


def solve(
    padded: Floats, rates: tuple[float, ...], moments: Moments, counts: Doubles
) -> LearnedVectors:
    """Find the next A from the moments of a round; `counts` are each word's tokens."""
    k = padded.shape[1]
    half = len(rates) * k
    second = moments.states
    pair = cca(second[:half, :half], second[:half, half:], second[half:, half:], k)
    projection = np.zeros((2 * half, 2 * k))
    projection[:half, :k], projection[half:, k:] = pair.first, pair.second
    states = moments.sums @ projection.astype(moments.sums.dtype)
    words, last = cca_with_states(states, projection.T @ second @ projection, counts, k)
    whole = projection @ last
    sides = []
    for side in (slice(0, half), slice(half, None)):
        square = np.trace(whole[side].T @ second[side, side] @ whole[side])
        scaled = whole[side] * mean_square_scale(float(square), moments.tokens)
        sides.append(np.stack([padded @ part for part in np.split(scaled, len(rates))]))
    left, right = (side.astype(np.float32) for side in sides)
    return LearnedVectors(words, Contexts(rates, left, right))


def collect(padded: Floats, rates: tuple[float, ...], blocks: Iterable[Ints]) -> Moments:
    """Collect moments of the smooths; the table's last row is a break's, the one before rarer."""
    n = len(padded) - 2
    size = 2 * len(rates) * padded.shape[1]
    moments = Moments(np.zeros((size, size)), np.zeros((n, size), np.float32), 0)
    for segment in segments(blocks, n + 1):
        back = segment[::-1].copy()
        left = [smoothed(padded, segment, rate) for rate in rates]
        right = [smoothed(padded, back, rate)[::-1] for rate in rates]
        tokens = segment <= n
        states = np.concatenate([*left, *right], axis=1)[tokens]
        moments.states += (states.T @ states).astype(np.float64)
        _add_rows(moments.sums, segment[tokens], states)
        moments.tokens += len(states)
    return moments


@compiled()
def _add_rows(table: Floats, targets: Ints, rows: Floats) -> None:
    """Add row t to table[targets[t]]; rows whose target is behind the table's end are left out."""
    for t in range(len(targets)):
        if targets[t] < len(table):
            for k in range(table.shape[1]):
                table[targets[t], k] += rows[t, k]


def segments(blocks: Iterable[Ints], stop: int) -> Iterator[Ints]:
    """Cut text into segments of about `SEGMENT` tokens that begin and end with a break.

    A sentence longer than a segment is cut where the segment ends: nobody smooths over so many.
    """
    rest = np.array([stop], np.int32)
    for block in blocks:
        rest = np.concatenate([rest, block[1:]])
        while len(rest) > SEGMENT:
            breaks = np.flatnonzero(rest[1:SEGMENT] == stop)
            cut = int(breaks[-1]) + 1 if len(breaks) else SEGMENT - 1
            yield rest[: cut + 1] if rest[cut] == stop else np.append(rest[: cut + 1], stop)
            rest = rest[cut:] if rest[cut] == stop else np.insert(rest[cut + 1 :], 0, stop)
    if len(rest) > 1:
        yield rest
