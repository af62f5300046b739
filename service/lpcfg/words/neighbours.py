"""One-step and two-step CCA of words with their left and right neighbours.

w            a word, one of n
c            a context: one of n + 2 neighbours: a word, a rarer word, a sentence's beginning or end
#(w, c)      how often they come together, on either side; #(w) and #(c) likewise
κ            1 for counts as they are, ½ for their square roots
Ω            #(w, c)^κ / √(#(w)^κ #(c)^κ), i.e. D_w^{-½} C_{wc} D_c^{-½}

One step (Dhillon, Foster and Ungar 2015; Stratos et al. 2015): Ω, (n, 2 (n + 2)), of words and both
neighbours at once. U, its left singular vectors, are the words' vectors, the right ones V the
contexts' projections D_c^{-½} V.

Two steps (Dhillon, Rodu, Foster and Ungar 2012): first the CCA of left with right neighbours, whose
projections φ_L, φ_R turn each occurrence's context into 2 d numbers; then that of words with these.
Rare words gain: their contexts are compared by what they are like, not by which words they are.
κ holds in the first step; in the second, contexts are no counts any more.

Square roots stabilise the variance of counts, which are nearly Poisson (Stratos et al. 2015,
section 4). D_w^{-½} U, which CCA proper asks for, differs from U by the length of rows alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lpcfg.words.bigrams import Floats, Rows
from lpcfg.words.context import Contexts
from lpcfg.words.dense import Doubles, words_against_states
from lpcfg.words.svd import Singular, left_singular

OnStep = Callable[[int, int], None]


@dataclass(frozen=True)
class Search:
    """How singular vectors are searched for."""

    dimensions: int
    square_roots: bool
    steps: int
    seed: int
    threads: int


@dataclass(frozen=True)
class Found:
    """Vectors of words, (n, d), up to the lengths of rows, and projections of contexts."""

    words: Floats
    contexts: Contexts


def one_step(followed: Rows, follows: Rows, n: int, search: Search, on_step: OnStep) -> Found:
    """Find the vectors of n words from bigrams: w followed by c, and w behind c."""
    omega = Omega([follows, followed], [followed, follows], n, search)
    found = omega.singular(on_step)
    left, right = omega.right_vectors(found)
    uses = followed.sums()
    return Found(found.left, neighbour_contexts(left, right, uses, uses))


def two_step(
    bigrams: tuple[Rows, Rows], around: tuple[Rows, Rows], n: int, search: Search, on_step: OnStep
) -> Found:
    """Find the vectors of n words from bigrams and from pairs (left, right) around a word.

    `bigrams` are, as above, w followed by c and w behind c; `around` is left by right, and right
    by left.
    """
    followed, follows = bigrams
    omega = Omega([around[0]], [around[1]], around[0].shape[0], search)
    first = omega.singular(on_step)
    left = omega.row_scale[:, None] * first.left
    right = omega.right_vectors(first)[0]
    states = [follows.times(left, search.threads)[:n], followed.times(right, search.threads)[:n]]
    projected, uses = [left, right], [table.sums() for table in around]
    words, turns = words_against_states(
        np.concatenate(states, axis=1),
        _moments(around[0], projected, uses, search.threads),
        followed.sums()[:n],
        search.dimensions,
    )
    tables = [
        side.astype(np.float64) @ turn
        for side, turn in zip(projected, np.split(turns, 2), strict=True)
    ]
    return Found(words, neighbour_contexts(tables[0], tables[1], uses[0], uses[1]))


def _moments(
    around: Rows, projected: Sequence[Floats], uses: Sequence[Doubles], threads: int
) -> Doubles:
    """Return the second moments of [left; right] states: sums over all tokens."""
    left, right = (side.astype(np.float64) for side in projected)
    cross = left.T @ around.times(right, threads)
    return np.block(
        [
            [left.T @ (uses[0][:, None] * left), cross],
            [cross.T, right.T @ (uses[1][:, None] * right)],
        ]
    )


def neighbour_contexts(
    left: Floats, right: Floats, left_uses: Doubles, right_uses: Doubles
) -> Contexts:
    """Build contexts of one neighbour a side, scaled to a mean square length of 1 over all
    tokens.
    """
    tables = [
        (table * mean_square_scale(float(uses @ (table * table).sum(axis=1)), uses.sum()))
        for table, uses in ((left, left_uses), (right, right_uses))
    ]
    first, second = (table.astype(np.float32)[None] for table in tables)
    return Contexts((1.0,), first, second)


def mean_square_scale(square: float, tokens: float) -> float:
    """Compute the factor that makes squared lengths, which sum to `square` over tokens, 1 on
    average.
    """
    return float(np.sqrt(tokens / square)) if square > 0 else 0.0


class Omega:
    """Ω of tables of counts side by side, as an operator: its first n rows."""

    def __init__(
        self, tables: Sequence[Rows], transposes: Sequence[Rows], n: int, search: Search
    ) -> None:
        self._tables, self._transposes, self._search = tables, transposes, search
        self.shape = (n, sum(table.shape[1] for table in tables))
        self.row_scale = self._scale(tables[0].sums())
        """#(w)^{-κ/2} of all rows; each table's rows have the same sums"""
        self.column_scales = [self._scale(table.sums()) for table in transposes]
        """#(c)^{-κ/2}"""

    def _scale(self, counts: Doubles) -> Doubles:
        scale = np.zeros_like(counts)
        power = -0.25 if self._search.square_roots else -0.5
        return np.power(counts, power, out=scale, where=counts > 0)

    def _times(self, table: Rows, dense: Floats) -> Floats:
        return table.times(dense, self._search.threads, roots=self._search.square_roots)

    def times(self, dense: Floats) -> Floats:
        """Compute Ω X."""
        parts = np.split(dense, np.cumsum([table.shape[1] for table in self._tables])[:-1])
        out = np.zeros((len(self.row_scale), dense.shape[1]), dense.dtype)
        for table, scale, part in zip(self._tables, self.column_scales, parts, strict=True):
            out += self._times(table, scale[:, None].astype(dense.dtype) * part)
        return (self.row_scale[:, None].astype(dense.dtype) * out)[: self.shape[0]]

    def transposed_times(self, dense: Floats) -> Floats:
        """Compute Ωᵀ X."""
        n = self.shape[0]
        padded = np.zeros((len(self.row_scale), dense.shape[1]), dense.dtype)
        padded[:n] = self.row_scale[:n, None].astype(dense.dtype) * dense
        parts = [
            scale[:, None].astype(dense.dtype) * self._times(table, padded)
            for table, scale in zip(self._transposes, self.column_scales, strict=True)
        ]
        return np.concatenate(parts)

    def singular(self, on_step: OnStep) -> Singular:
        """Compute Ω's largest singular values and left vectors."""
        search = self._search
        return left_singular(
            self,
            min(search.dimensions, *self.shape),
            np.random.default_rng(search.seed),
            steps=search.steps,
            kind=self._tables[0].value.dtype.type,
            on_step=on_step,
        )

    def right_vectors(self, found: Singular) -> list[Floats]:
        """Compute D_c^{-κ/2} V of every table: V = Ωᵀ U Σ⁻¹."""
        inverse = np.divide(
            1, found.values, out=np.zeros_like(found.values), where=found.values > 0
        )
        right = self.transposed_times(found.left) * inverse
        parts = np.split(right, np.cumsum([table.shape[1] for table in self._tables])[:-1])
        return [
            scale[:, None] * part for scale, part in zip(self.column_scales, parts, strict=True)
        ]
