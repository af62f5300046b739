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

from lpcfg.words.bigrams import Floats, SparseRows
from lpcfg.words.context import Contexts
from lpcfg.words.dense import Doubles, cca_with_states
from lpcfg.words.svd import Singular, left_singular

OnStep = Callable[[int, int], None]


@dataclass(frozen=True)
class CcaSettings:
    """The settings of a CCA of counts: the rank, the κ of counts, and the search by `svd`."""

    dimensions: int
    square_roots: bool
    steps: int
    seed: int
    threads: int


@dataclass(frozen=True)
class LearnedVectors:
    """Vectors of words, (n, d), up to the lengths of rows, and projections of contexts."""

    words: Floats
    contexts: Contexts


def one_step(
    followed: SparseRows, follows: SparseRows, n: int, settings: CcaSettings, on_step: OnStep
) -> LearnedVectors:
    """Find the vectors of n words from bigrams: w followed by c, and w behind c."""
    omega = Omega([follows, followed], [followed, follows], n, settings)
    singular = omega.singular(on_step)
    left, right = omega.right_vectors(singular)
    counts = followed.sums()
    return LearnedVectors(singular.left, neighbour_contexts(left, right, counts, counts))


def two_step(
    bigrams: tuple[SparseRows, SparseRows],
    skips: tuple[SparseRows, SparseRows],
    n: int,
    settings: CcaSettings,
    on_step: OnStep,
) -> LearnedVectors:
    """Find the vectors of n words from bigrams and from skip-bigrams, pairs of the words on both
    sides of a word.

    `bigrams` are, as above, w followed by c and w behind c; `skips` are left by right, and right
    by left.
    """
    followed, follows = bigrams
    omega = Omega([skips[0]], [skips[1]], skips[0].shape[0], settings)
    first = omega.singular(on_step)
    left = omega.row_scale[:, None] * first.left
    right = omega.right_vectors(first)[0]
    states = [
        follows.times(left, settings.threads)[:n],
        followed.times(right, settings.threads)[:n],
    ]
    projected, counts = [left, right], [table.sums() for table in skips]
    words, projections = cca_with_states(
        np.concatenate(states, axis=1),
        _moments(skips[0], projected, counts, settings.threads),
        followed.sums()[:n],
        settings.dimensions,
    )
    tables = [
        side.astype(np.float64) @ projection
        for side, projection in zip(projected, np.split(projections, 2), strict=True)
    ]
    return LearnedVectors(words, neighbour_contexts(tables[0], tables[1], counts[0], counts[1]))


def _moments(
    skips: SparseRows, projected: Sequence[Floats], counts: Sequence[Doubles], threads: int
) -> Doubles:
    """Return the second moments of [left; right] states: sums over all tokens."""
    left, right = (side.astype(np.float64) for side in projected)
    cross = left.T @ skips.times(right, threads)
    return np.block(
        [
            [left.T @ (counts[0][:, None] * left), cross],
            [cross.T, right.T @ (counts[1][:, None] * right)],
        ]
    )


def neighbour_contexts(
    left: Floats, right: Floats, left_counts: Doubles, right_counts: Doubles
) -> Contexts:
    """Build contexts of one neighbour a side, scaled to a mean square length of 1 over all
    tokens.
    """
    tables = [
        (table * mean_square_scale(float(counts @ (table * table).sum(axis=1)), counts.sum()))
        for table, counts in ((left, left_counts), (right, right_counts))
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
        self,
        tables: Sequence[SparseRows],
        transposes: Sequence[SparseRows],
        n: int,
        settings: CcaSettings,
    ) -> None:
        self._tables, self._transposes, self._settings = tables, transposes, settings
        self.shape = (n, sum(table.shape[1] for table in tables))
        self.row_scale = self._scale(tables[0].sums())
        """#(w)^{-κ/2} of all rows; each table's rows have the same sums"""
        self.column_scales = [self._scale(table.sums()) for table in transposes]
        """#(c)^{-κ/2}"""

    def _scale(self, counts: Doubles) -> Doubles:
        scale = np.zeros_like(counts)
        power = -0.25 if self._settings.square_roots else -0.5
        return np.power(counts, power, out=scale, where=counts > 0)

    def _times(self, table: SparseRows, dense: Floats) -> Floats:
        return table.times(dense, self._settings.threads, roots=self._settings.square_roots)

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
        settings = self._settings
        return left_singular(
            self,
            min(settings.dimensions, *self.shape),
            np.random.default_rng(settings.seed),
            steps=settings.steps,
            dtype=self._tables[0].value.dtype.type,
            on_step=on_step,
        )

    def right_vectors(self, singular: Singular) -> list[Floats]:
        """Compute D_c^{-κ/2} V of every table: V = Ωᵀ U Σ⁻¹."""
        inverse = np.divide(
            1, singular.values, out=np.zeros_like(singular.values), where=singular.values > 0
        )
        right = self.transposed_times(singular.left) * inverse
        parts = np.split(right, np.cumsum([table.shape[1] for table in self._tables])[:-1])
        return [
            scale[:, None] * part for scale, part in zip(self.column_scales, parts, strict=True)
        ]
