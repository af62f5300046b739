"""How many trees the theorems ask for: JMLR's theorem 8 and ACL12's theorem 3, as numbers.

Theorem 8, with its constants, follows from lemmas 12, 15 and 19. For trees of N binary rules, let

    L = log((2|𝒩| + 1) / δ)          x = (1 + ε/m)^(1/(2N + 2)) − 1

If κ, ρΔ and δ' of lemma 15 are at most x each, lemma 12 bounds Σ |p̂ − p| by ε. Lemma 12 has 1/γ, γ
the least t of all rules, which is 0 for any grammar that lacks a rule. Its proof needs only

    ρ = max Y(N') / Z(a, h, N')      over a, h and 1 ≤ N' ≤ N,

where Y sums over the rules that a has. Half of x each goes to Ω and to the other moments:

    preterminals    ε_Ω = min(xσ²/8, σ/3)             ε_d = 3xσ / (8√n)
    in-terminals    ε_Ω = min(3xξ²σ² / (32ρ), σ/3)    ε_D = 9xξ²σ / (32ρ)
    roots           ε_π = √3 xσ / (2√m)

with σ = σ_m(Ω^a), ξ² the least ξ_b ξ_c over rules a → b c, ξ_b = σ_m(I^b), n the words of a, and m
the largest m_a. A moment with tolerance τ needs ((1 + √(2L)) / τ)² examples (lemma 19). Examples
are taken as independent nodes, and Ω has its own. Nodes of one tree are not independent, so trees,
which are nodes over expected visits, are counted as if they were.

ACL12's theorem 3 bounds p̂ / p of one tree. Its Λ is the least magnitude of any element of c¹, d∞, D
and (Σ^a)⁻¹. As printed it is 0 for m ≥ 2: with U and V singular vectors of Ω, Σ^a is diagonal. Here
Λ leaves out what is zero by construction: beside the diagonal, and c¹ of symbols that are no root.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import inf, isfinite, log, sqrt
from typing import Any

import numpy as np

from lpcfg.base.errors import GrammarError
from lpcfg.grammar.tables import Doubles, Tables
from lpcfg.theory.exact_moments import ExactMoments


@dataclass(frozen=True)
class SymbolBound:
    """The needs of one symbol under theorem 8: nodes for Ω, and nodes for its other moments."""

    symbol: str
    states: int
    sigma: float
    xi: float
    visits: float
    omega_tolerance: float
    moment_tolerance: float
    omega_nodes: float
    moment_nodes: float


@dataclass(frozen=True)
class Bound:
    """The needs of theorem 8, so that Σ |p̂ − p| ≤ ε over trees of N rules with chance ≥ 1 − δ.

    `impossible` names the symbol, state and size for which ρ is infinite, if there is one.
    """

    epsilon: float
    delta: float
    size: int
    x: float
    rho: float
    impossible: str | None
    symbols: tuple[SymbolBound, ...]
    root_tolerance: float
    roots: float

    @property
    def omega_trees(self) -> float:
        """Trees for the singular value decompositions."""
        return max(symbol.omega_nodes / symbol.visits for symbol in self.symbols)

    @property
    def moment_trees(self) -> float:
        """Other trees for the means."""
        return max(self.roots, *(symbol.moment_nodes / symbol.visits for symbol in self.symbols))

    def as_json(self) -> dict[str, Any]:
        """Return all numbers; infinite ones are null."""
        values = asdict(self)
        values["symbols"] = [_finite(asdict(symbol)) for symbol in self.symbols]
        totals = {"omega_trees": self.omega_trees, "moment_trees": self.moment_trees}
        return _finite({**values, **totals})


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not isfinite(value) else value
        for name, value in values.items()
    }


def theorem_8(moments: ExactMoments, epsilon: float, delta: float, size: int) -> Bound:
    """Compute theorem 8's numbers for trees of `size` binary rules; features must be scaled."""
    _check(epsilon, delta, size)
    tables, grammar = moments.lpcfg, moments.lpcfg.grammar
    m = int(tables.states.max())
    x = (1 + epsilon / m) ** (1 / (2 * size + 2)) - 1
    rho, impossible = tree_ratio(tables, size)
    sigma = [_least(omega, k) for omega, k in zip(moments.omega, tables.states, strict=True)]
    xi = [_least(inside, k) for inside, k in zip(moments.inside, tables.states, strict=True)]
    chance = delta / (2 * grammar.n_symbols + 1)
    words = np.bincount(grammar.entries[:, 0], minlength=grammar.n_symbols)
    symbols = []
    for a, name in enumerate(grammar.symbols):
        if a < grammar.n_internal:
            pairs = [xi[b] * xi[c] for p, b, c in grammar.rules.tolist() if p == a]
            least = min(pairs) / rho if isfinite(rho) else 0.0
            omega = 3 * x * least * sigma[a] ** 2 / 32
            other = 9 * x * least * sigma[a] / 32
        else:
            omega, other = x * sigma[a] ** 2 / 8, 3 * x * sigma[a] / (8 * sqrt(words[a]))
        omega = min(omega, sigma[a] / 3)
        numbers = examples_needed(omega, chance), examples_needed(other, chance)
        visits = float(moments.visits[a].sum())
        states = int(tables.states[a])
        symbols.append(SymbolBound(name, states, sigma[a], xi[a], visits, omega, other, *numbers))
    roots = [sigma[a] for a in range(grammar.n_symbols) if tables.root_vector(a).any()]
    at_root = sqrt(3) * x * min(roots) / (2 * sqrt(m))
    of_roots = examples_needed(at_root, chance)
    return Bound(epsilon, delta, size, x, rho, impossible, tuple(symbols), at_root, of_roots)


def _check(epsilon: float, delta: float, size: int) -> None:
    if not (epsilon > 0 and 0 < delta < 1 and size >= 1):
        raise GrammarError(
            f"expected ε above 0, δ between 0 and 1 and a size of 1 or more, got {epsilon:g}, "
            f"{delta:g} and {size}: correct them"
        )


def examples_needed(tolerance: float, chance: float) -> float:
    """Compute how many vectors of length 1 at most have their mean within the tolerance.

    The chance of a larger error is at most `chance` (lemma 20).
    """
    return ((1 + sqrt(2 * log(1 / chance))) / tolerance) ** 2 if tolerance > 0 else inf


def _least(matrix: Doubles, m: int) -> float:
    """Compute σ_m; 0 where it is a rounding error, by the bound of numpy.linalg.matrix_rank."""
    values = np.linalg.svd(matrix, compute_uv=False)
    if len(values) < m:
        return 0.0
    rounding = values[0] * max(matrix.shape) * np.finfo(np.float64).eps
    return float(values[m - 1]) if values[m - 1] > rounding else 0.0


def tree_ratio(lpcfg: Tables, size: int) -> tuple[float, str | None]:
    """Compute ρ for trees of at most `size` binary rules, and where it is infinite, if it is.

    Z(a, h, N) is the probability that a(h) has a tree of N rules. Y(N) sums the products of Z over
    the children of the rules that a has. A symbol that has no tree of a size needs no ratio there.
    """
    grammar = lpcfg.grammar
    tensors = [lpcfg.dense(r) for r in range(grammar.n_rules)]
    z = [[np.zeros(m) for m in lpcfg.states.tolist()] for _ in range(size + 1)]
    for e, (a, _) in enumerate(grammar.entries.tolist()):
        z[0][a] += lpcfg.terminal_vector(e)
    largest, where = 0.0, None
    for n in range(1, size + 1):
        y = np.zeros(grammar.n_internal)
        for r, (a, b, c) in enumerate(grammar.rules.tolist()):
            for k in range(n):
                left, right = z[k][b], z[n - 1 - k][c]
                z[n][a] += tensors[r] @ right @ left
                y[a] += left.sum() * right.sum()
        for a in np.flatnonzero(y > 0).tolist():
            if not z[n][a].min() > 0 and where is None:
                h = int(z[n][a].argmin())
                where = f"`{grammar.symbols[a]}` in state {h} has no tree of {n} rules"
            with np.errstate(divide="ignore"):
                largest = max(largest, float((y[a] / z[n][a]).max()))
    return largest, where


@dataclass(frozen=True)
class RelativeBound:
    """The needs of ACL12's theorem 3: nodes of every symbol, and trees that have them."""

    least: float
    sigma: float
    nodes: float
    trees: float

    def as_json(self) -> dict[str, Any]:
        """Return all numbers; infinite ones are null."""
        return _finite(asdict(self))


def acl_theorem_3(moments: ExactMoments, epsilon: float, delta: float, size: int) -> RelativeBound:
    """Compute the nodes for 1 − ε ≤ p̂ / p ≤ 1 + ε of a tree of `size` binary rules.

    M_a ≥ 128 m² log(2mR/δ) / (((1 + ε)^(1/(2N + 1)) − 1)² Λ² σ⁴), with all N = 2·size + 1 rules of
    the tree and the R rules of the grammar.
    """
    _check(epsilon, delta, size)
    tables, grammar = moments.lpcfg, moments.lpcfg.grammar
    m = int(tables.states.max())
    sigma = min(_least(omega, k) for omega, k in zip(moments.omega, tables.states, strict=True))
    least = _least_element(moments) if sigma > 0 else 0.0
    root = (1 + epsilon) ** (1 / (2 * (2 * size + 1) + 1)) - 1
    rules = grammar.n_rules + len(grammar.entries)
    nodes = inf
    if least > 0:
        nodes = 128 * m**2 * log(2 * m * rules / delta) / (root**2 * least**2 * sigma**4)
    fewest = min(float(visit.sum()) for visit in moments.visits)
    return RelativeBound(least, sigma, nodes, nodes / fewest)


def _least_element(moments: ExactMoments) -> float:
    """Compute Λ with U and V the singular vectors of Ω (lemma 7, equations 14-16)."""
    tables, grammar = moments.lpcfg, moments.lpcfg.grammar
    g, k, inverse = [], [], []
    for a, omega in enumerate(moments.omega):
        m = int(tables.states[a])
        u, values, vt = np.linalg.svd(omega, full_matrices=False)
        g.append(u[:, :m].T @ moments.inside[a])
        k.append(vt[:m] @ moments.outside[a])
        inverse.append(1 / values[:m])
    elements: list[Sequence[float] | Doubles] = list(inverse)
    for r, (a, b, c) in enumerate(grammar.rules.tolist()):
        weighted = k[a] * moments.gamma[a]
        elements.append(np.einsum("ph,hij,qi,rj->pqr", weighted, tables.dense(r), g[b], g[c]))
    for e, (a, _) in enumerate(grammar.entries.tolist()):
        elements.append((k[a] * moments.gamma[a]) @ tables.terminal_vector(e))
    elements += [
        g[a] @ tables.root_vector(a)
        for a in range(grammar.n_symbols)
        if tables.root_vector(a).any()
    ]
    return min(float(np.abs(element).min()) for element in elements)
