"""Spectral dependency trees (Dhillon, Rodu, Collins, Foster and Ungar 2012), Algorithm 1 corrected.

A hidden state h_m in [k] for every word; given the topology of the tree,

    p(x, h) = π(h_root) Π_arcs t_side(h_m | h_head) Π_m o(x_m | h_m),   side L or R of the head.

    O        (n, k)       [O]_{x,h} = o(x | h)
    T_L T_R  (k, k)       [T_d]_{h',h} = t_d(h' | h)
    U        (n, k)       representation of words; its columns span those of O
    U_x                   row x of U;    G = UᵀO, which is invertible
    l, u, w               words of a left modifier, its head and a right modifier of this head
    Σ_R      E[U_u U_wᵀ]                Σ_L      E[U_u U_lᵀ]
    Λ_L      E[U_l U_wᵀ]                Λ_R      Λ_Lᵀ
    K(y)     E[U_l (y · U_u) U_wᵀ]      μ_w      E[U_w]
    c_1      E[U_root]                  c_∞ᵀ     μ_wᵀ Σ_R⁻¹              = 1ᵀ G⁻¹
    E_L      Λ_L Σ_R⁻¹ = G T_L G⁻¹      E_R      Λ_R Σ_L⁻¹              = G T_R G⁻¹
    D(y)     E_L⁻¹ K(y) Σ_R⁻¹                                           = G diag(Gᵀy) G⁻¹
    r̃_iᵀ     c_∞ᵀ Π_{children j} D(E_dᵀ r̃_j) · D(U⁺ δ_x)                = r_iᵀ G⁻¹
    p(x | topology) = r̃_root · c_1

Two errata of the paper. (1) It takes each moment from all words or pairs there are. The states of
these are distributed differently, unless hidden marginals are stationary, and no product of such
moments cancels; here all but c_1 come from the *same* triples (l, u, w). (2) It asks that UᵀO be
invertible; (U U⁺) δ_x stands for δ_x above, so U must span the columns of O.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import svds

from lpcfg.base.errors import TrainingError
from lpcfg.base.jit import compiled
from lpcfg.engine.exact.scaled import SignedLog
from lpcfg.grammar.tables import Doubles, Longs
from lpcfg.kinds.dependencies.arcs import Arcs, modifiers
from lpcfg.kinds.dependencies.eisner import bottom_up
from lpcfg.kinds.dependencies.vocabulary import Vocabulary

CUT = 1e-3
"""Singular values below this share of the first are not inverted: noise would be divided by."""


@dataclass(frozen=True, eq=False)
class Examples:
    """Words (as numbers) of triples (l, u, w) and of roots; weights are counts or probabilities."""

    triples: Longs
    weights: Doubles
    roots: Longs
    root_weights: Doubles

    @classmethod
    def of(cls, trees: Iterable[Arcs], vocabulary: Vocabulary) -> "Examples":
        """Collect every pair of a left and a right modifier of the same head, and every root."""
        triples: list[tuple[int, int, int]] = []
        roots: list[int] = []
        for arcs in trees:
            x = vocabulary.numbers(arcs.words)
            below = modifiers(arcs.heads)
            roots += [x[m - 1] for m in below[0]]
            for u, children in enumerate(below[1:], start=1):
                left = [m for m in children if m < u]
                right = [m for m in children if m > u]
                triples += [(x[m - 1], x[u - 1], x[w - 1]) for m in left for w in right]
        if not triples:
            raise TrainingError(
                "expected words with modifiers on both sides to learn from, got none: "
                "give more trees"
            )
        return cls(
            np.array(triples, np.int64),
            np.ones(len(triples)),
            np.array(roots, np.int64),
            np.ones(len(roots)),
        )


@dataclass(frozen=True, eq=False)
class Representation:
    """Two vectors for every word: row x of `u` is used in moments, row x of `dual` in place of U⁺
    δ_x.

    All that is asked of them is Oᵀ u dualᵀ = Oᵀ, which u = U and dual = U (UᵀU)⁻¹ fulfil where the
    columns of U span those of O.
    """

    u: Doubles
    dual: Doubles

    @classmethod
    def of(cls, u: Doubles) -> "Representation":
        """Return the paper's: U and its pseudo-inverse."""
        return cls(u, np.asarray(np.linalg.pinv(u).T, np.float64))

    @classmethod
    def learned(cls, examples: Examples, n_words: int, states: int) -> "Representation":
        """Learn U by canonical correlation of each word of a triple with the two other words.

        With C = D^(−½) A D'^(−½) for the weights A of (word, other word and both places), D and D'
        its sums, and C ≈ Ũ S Ṽᵀ: u = D^(−½) Ũ and dual = D^(½) Ũ. Every block of A is a product
        that begins with O, so D^(−½) O lies in the span of Ũ and u dualᵀ is as the identity on O.
        """
        rows, columns, weights = [], [], []
        for k, (a, b) in enumerate(((0, 1), (1, 0), (1, 2), (2, 1), (0, 2), (2, 0))):
            rows.append(examples.triples[:, a])
            columns.append(examples.triples[:, b] + k * n_words)
            weights.append(examples.weights)
        together = scipy.sparse.coo_array(
            (np.concatenate(weights), (np.concatenate(rows), np.concatenate(columns))),
            shape=(n_words, 6 * n_words),
        ).tocsr()
        together /= together.sum()
        by_word = np.asarray(together.sum(axis=1)).ravel()
        by_other = np.asarray(together.sum(axis=0)).ravel()
        scaled = (
            scipy.sparse.diags_array(_inverse_root(by_word))
            @ together
            @ scipy.sparse.diags_array(_inverse_root(by_other))
        )
        if not 1 <= states < n_words:
            raise TrainingError(
                f"expected between 1 and {n_words - 1} states for {n_words} words, got {states}: "
                "ask for fewer states or give more trees"
            )
        start = np.random.default_rng(0).standard_normal(n_words)
        vectors, _, _ = svds(scaled, k=states, v0=start, rng=0)
        return cls(vectors * _inverse_root(by_word)[:, None], vectors * np.sqrt(by_word)[:, None])


def _inverse_root(sums: Doubles) -> Doubles:
    return np.where(sums > 0, 1.0 / np.sqrt(np.where(sums > 0, sums, 1.0)), 0.0)


@dataclass(frozen=True, eq=False)
class Operators:
    """c_1, c_∞, E_L and E_R (`up`, in this order), D as a tensor, and U⁺ δ_x in row x of `words`.

    [D(y)]_{a,c} = Σ_b `d[a, b, c]` y_b. `conditions` are those of the matrices that were inverted.
    """

    c_one: Doubles
    c_inf: Doubles
    up: Doubles
    d: Doubles
    words: Doubles
    conditions: dict[str, float]

    @classmethod
    def estimated(
        cls, examples: Examples, representation: Representation, cut: float = CUT
    ) -> "Operators":
        """Compute operators from moments. Singular values below `cut` of the first are not
        inverted.
        """
        u, share = representation.u, examples.weights / examples.weights.sum()
        left, head, right = (u[examples.triples[:, place]] for place in range(3))
        weighted = right * share[:, None]
        sigma_r, sigma_l = head.T @ weighted, head.T @ (left * share[:, None])
        lambda_l = left.T @ weighted
        k = np.einsum("ta,tb,tc->abc", left, head, weighted, optimize=True)
        sigma_r_inverse = np.linalg.pinv(sigma_r, rcond=cut)
        up = np.stack([lambda_l @ sigma_r_inverse, lambda_l.T @ np.linalg.pinv(sigma_l, rcond=cut)])
        d = np.einsum(
            "ea,abc,cf->ebf", np.linalg.pinv(up[0], rcond=cut), k, sigma_r_inverse, optimize=True
        )
        roots = examples.root_weights @ u[examples.roots] / examples.root_weights.sum()
        inverted = {"Σ_R": sigma_r, "Σ_L": sigma_l, "E_L": up[0]}
        conditions = {name: float(np.linalg.cond(matrix)) for name, matrix in inverted.items()}
        c_inf = weighted.sum(axis=0) @ sigma_r_inverse
        return cls(roots, c_inf, up, d, representation.dual, conditions)

    def probability(self, words: Sequence[int], heads: Sequence[int]) -> SignedLog:
        """Compute p(words | topology) with its sign: an estimate may be negative."""
        sign, log = self.probabilities(words, np.array([heads], np.int64))
        return SignedLog(int(sign[0]), float(log[0]))

    def probabilities(self, words: Sequence[int], candidates: Longs) -> tuple[Longs, Doubles]:
        """Compute sign and log |p| of every candidate, a row of heads each."""
        x = self.words[np.asarray(words, np.int64)]
        return _trees(self.c_one, self.c_inf, self.up, self.d, x, candidates)  # type: ignore[no-any-return]


@compiled(helper=True)
def _apply(row: Doubles, d: Doubles, y: Doubles) -> Any:
    """Compute rowᵀ D(y), divided by its largest magnitude, and the log of that magnitude."""
    k = len(row)
    result = np.zeros(k)
    for a in range(k):
        for b in range(k):
            factor = row[a] * y[b]
            for c in range(k):
                result[c] += factor * d[a, b, c]
    largest = np.abs(result).max()
    if largest == 0:
        return result, -np.inf
    return result / largest, np.log(largest)


@compiled()
def _trees(
    c_one: Doubles, c_inf: Doubles, up: Doubles, d: Doubles, x: Doubles, candidates: Longs
) -> Any:
    """Compute sign and log |p| of every row of heads."""
    count, n = candidates.shape
    signs, logs = np.zeros(count, np.int64), np.full(count, -np.inf)
    for t in range(count):
        heads = candidates[t]
        rows = np.empty((n, len(c_inf)))
        rows[:] = c_inf
        total, root = 0.0, 0
        for m in bottom_up(heads):
            row, log = _apply(rows[m - 1], d, x[m - 1])
            total += log
            head = heads[m - 1]
            if head == 0:
                root = m
                rows[m - 1] = row
            else:
                side = 0 if m < head else 1
                rows[head - 1], log = _apply(rows[head - 1], d, up[side].T @ row)
                total += log
        value = np.dot(rows[root - 1], c_one)
        if total > -np.inf and value != 0:
            signs[t] = 1 if value > 0 else -1
            logs[t] = total + np.log(abs(value))
    return signs, logs
