"""Symbols, rules and the three tables of a latent-variable PCFG.

THE NOTATION, used by all code, comments and tests of this package. Figures, equations, theorems
and sections are those of Cohen, Stratos, Collins, Foster and Ungar, "Spectral Learning of
Latent-Variable PCFGs" (JMLR 2014), unless marked NAACL ("Experiments with Spectral Learning of
Latent-Variable PCFGs", 2013) or ACL14 (Cohen and Collins, "A Provably Correct Learning Algorithm
for Latent-Variable PCFGs", 2014).

Trees and symbols (sections 3 and 4)

    N = I + P        nonterminals: in-terminals [0, I) and preterminals [I, N), disjoint
    a → b c          a binary rule, a in [0, I); b and c are any nonterminals
    a → x            a lexical rule ("entry"), a in [I, N); x is a terminal: a word or a word class
    m_a              number of latent states of symbol a; h is one state. The papers have one m
    [start, end)     a span: half-open, over tokens counted from 0. The papers' spans (i, j) are
                     closed and count from 1, so their (i, j) is [i − 1, j) here
    x, n             a sentence and its length; N in the papers' figures 3 and 5

Parameters (figures 4 and 5, theorem 3, remark 4)

    t, q, π          an L-PCFG: p(a → b c, h₂, h₃ | a, h₁), p(x | a, h), p(a, h) at the root. π and
                     c¹ cover preterminals too: there are sentences of one word
    C^{a→b c}        (m_a, m_b, m_c), with the axes (parent, left, right) everywhere
    c∞_{a→x}         (m_a,), a row: the terminal vector
    c¹_a             (m_a,), a column: the root vector
    G^a              (m_a, m_a), invertible: a change of basis, which changes no result (theorem 3)

    Every estimator gives C, c∞ and c¹. An L-PCFG is itself of this form: C = T, c∞ = q and c¹ = π
    (remark 4). Spectral estimates may have negative components.

Inside-outside

    f                inside vector of a tree's node, a row; p(tree) = f_root · c¹ (figure 4)
    α^{a,i,j}        inside vector of symbol a over a span, a row (figure 5)
    β^{a,i,j}        outside vector, a column (figure 5)
    μ(a, i, j)       marginal α · β; μ(a → b c, i, k, j) is that of a rule (figure 5; NAACL 3.3)
    p(x)             Σ_a α^{a,0,n} · c¹_a. A posterior is μ / p(x)

Spectral estimation (section 7, figures 7 and 8)

    φ, ψ             features of inside and outside trees (section 7.1; templates: NAACL 3.1)
    Ω^a              E[φ ψᵀ | a] (equation 21), estimated in figure 8
    U, Σ, V          its truncated singular value decomposition, Ω^a ≈ U Σ Vᵀ (lemma 7, figure 8)
    σ                a singular value; σ_m is the m-th largest
    Y, Z             projections of φ and ψ. JMLR: Y = Uᵀφ, Z = Vᵀψ, and Σ⁻¹ is applied later
                     (equations 14 and 15). NAACL: Z = Σ⁻¹Vᵀψ. Y₂ and Y₃ are the Y of a node's
                     left and right child
    M_a              number of examples (nodes) of symbol a. N_a in figure 7 and theorem 8: see
                     "Errors in the papers" below
    κ                constant in the scale √(M_a / (count_a(i) + κ)) of feature i (NAACL 3.1)
    E^{a→b c}        mean of Z ⊗ Y₂ ⊗ Y₃ over a rule's examples; C = count(a → b c) / count(a) · E
    E², E³, E⁴       its back-off estimates, which are products of fewer means (NAACL 3.2)
    H^a, F^a         means of Z and of Y over all nodes of a, for E⁴ and for entries (NAACL 3.2)
    λ, ν             weights of E in the smoothing of rules and of entries (NAACL 3.2)
    D, d∞            E[⟦R₁ = a → b c⟧ Z Y₂ᵀ Y₃ᵀ | a] and its lexical twin (figure 7, step 2)
    I^a, J^a         E[φ | a, h] and E[ψ | a, h], one column per state (definition 5)

Pivots (ACL14, figures 1 and 2)

    Q                matrix of co-occurrence counts, Q_{f,g} = Σ_h π(h) r(f | h) s(g | h)
    π, r, s          its factors: p(h), p(f | h) and p(g | h)
    w_h, γ           the corner of state h, and the weights of the corners in a point v_f

A rule's tensor is a sum of K_r rank-one terms,

    C[i, j, k] = Σ_t parent[t, i] · left[t, j] · right[t, k].

It is stored and applied only in this form, because a smoothed tensor of a rule seen n times is a
sum of few such terms. Any dense tensor is a sum of at most m_a m_b, m_b m_c or m_a m_c of them
(`Tables.from_dense`).

Errors in the papers that the code does not copy

    Section 8 draws one random node per tree. This weights a node by 1 / (nodes of its tree), and
    where trees differ in size it biases p(tree) (by up to 50 %). Here every node is an example.
    Theorem 8 has the factor n in its bound on N_a for preterminals. It belongs to the bound on
    M_a, as the proof in section B.4 has it: n comes from d∞ (lemma 15).
    N_a and M_a change places: figure 7 calls its own count N_a and figure 8 calls its own M_a, but
    theorem 8 and lemma 19 use N_a for Ω (figure 8) and M_a for D and d∞ (figure 7).
    Lemma 12 has the exponents N − 1 and N. They are N and N + 1, as in its proof: a tree of N
    binary rules has N + 1 words.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lpcfg.base.errors import GrammarError

Shorts = NDArray[np.int16]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]
Doubles = NDArray[np.float64]
Singles = NDArray[np.float32]
Bools = NDArray[np.bool_]
Scalar = TypeVar("Scalar", bound=np.generic)


def frozen(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return the array, contiguous and read-only."""
    result = np.ascontiguousarray(array)
    if result.flags.writeable:
        result = result.view()
        result.flags.writeable = False
    return result


@dataclass(frozen=True, eq=False)
class Grammar:
    """Symbols, binary rules a → b c and lexical rules a → x ("entries"), without their numbers.

    Rules are sorted by (a, b, c), entries by (x, a). The class of words `ANY`, when it is a
    terminal, stands for every word a preterminal was not seen with.
    """

    symbols: tuple[str, ...]
    n_internal: int
    rules: Ints
    terminals: tuple[str, ...]
    entries: Ints

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", frozen(np.asarray(self.rules, np.int32).reshape(-1, 3)))
        object.__setattr__(
            self, "entries", frozen(np.asarray(self.entries, np.int32).reshape(-1, 2))
        )
        _check_grammar(self)

    @property
    def n_symbols(self) -> int:
        return len(self.symbols)

    @property
    def n_rules(self) -> int:
        return len(self.rules)

    @cached_property
    def symbol_ids(self) -> Mapping[str, int]:
        return {name: a for a, name in enumerate(self.symbols)}

    @cached_property
    def rule_ids(self) -> Mapping[tuple[int, int, int], int]:
        return {(a, b, c): r for r, (a, b, c) in enumerate(self.rules.tolist())}

    @cached_property
    def entry_ids(self) -> Mapping[tuple[int, int], int]:
        """(preterminal, terminal) → entry."""
        return {(a, x): e for e, (a, x) in enumerate(self.entries.tolist())}

    @cached_property
    def entry_start(self) -> Longs:
        """Offsets: the entries of terminal x are entry_start[x] : entry_start[x + 1]."""
        bounds = np.arange(len(self.terminals) + 1)
        return frozen(np.searchsorted(self.entries[:, 1], bounds).astype(np.int64))

    def rule_name(self, r: int) -> str:
        a, b, c = (self.symbols[s] for s in self.rules[r])
        return f"{a} → {b} {c}"


def _check_grammar(grammar: Grammar) -> None:
    n, i = grammar.n_symbols, grammar.n_internal
    _check_names("symbol", grammar.symbols)
    _check_names("terminal", grammar.terminals)
    if not 0 <= i <= n:
        raise GrammarError(f"expected between 0 and {n} in-terminals among {n} symbols, got {i}")
    rules, entries = grammar.rules, grammar.entries
    _check_ids("rule", rules, (i, n, n), ("parent in-terminal", "left child", "right child"))
    _check_ids("entry", entries, (n, len(grammar.terminals)), ("preterminal", "terminal"))
    if len(entries) and entries[:, 0].min() < i:
        e = int(np.argmin(entries[:, 0]))
        raise GrammarError(
            f"expected a preterminal on the left of entry {e}, got the in-terminal "
            f"`{grammar.symbols[entries[e, 0]]}`: a symbol has words or children, not both"
        )
    _check_sorted("rules", "(parent, left, right)", rules)
    _check_sorted("entries", "(terminal, preterminal)", entries[:, ::-1])


def _check_names(kind: str, names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise GrammarError(f"expected distinct {kind}s, got `{twice}` twice: merge the two")


def _check_ids(kind: str, rows: Ints, bounds: Sequence[int], roles: Sequence[str]) -> None:
    for column, (bound, role) in enumerate(zip(bounds, roles, strict=True)):
        wrong = np.flatnonzero((rows[:, column] < 0) | (rows[:, column] >= bound))
        if len(wrong):
            raise GrammarError(
                f"expected a {role} below {bound} in {kind} {wrong[0]}, "
                f"got {rows[wrong[0], column]}"
            )


def _check_sorted(kind: str, order: str, rows: Ints) -> None:
    step = np.diff(rows.astype(np.int64), axis=0)
    first = np.argmax(step != 0, axis=1) if len(step) else np.empty(0, np.int64)
    if len(step) and (np.take_along_axis(step, first[:, None], axis=1) <= 0).any():
        raise GrammarError(f"expected {kind} sorted by {order} without repetition: sort them")


class Offsets:
    """The places where the numbers of rules, entries and symbols begin in the arrays of tables."""

    grammar: Grammar
    states: Ints
    terms: Ints

    @cached_property
    def side_start(self) -> tuple[Longs, Longs, Longs]:
        """Offsets of each rule's numbers in `parent`, `left` and `right`."""
        sizes = self.terms[:, None].astype(np.int64) * self.states[self.grammar.rules]
        return tuple(_starts(sizes[:, side]) for side in range(3))  # type: ignore[return-value]

    @cached_property
    def entry_offset(self) -> Longs:
        """Offset of each entry's c∞ in `c_inf`."""
        return _starts(self.states[self.grammar.entries[:, 0]])

    @cached_property
    def root_offset(self) -> Longs:
        """Offset of each symbol's c¹ in `c_one`."""
        return _starts(self.states)


@dataclass(frozen=True, eq=False)
class Tables(Offsets):
    """The parameters of one model over a grammar: m_a, C, c∞ and c¹ as flat frozen arrays.

    `terms[r]` is K_r. `parent`, `left` and `right` hold the terms of all rules one after the other
    (K_r vectors of m_a, m_b and m_c numbers), in the grammar's order. `c_inf` holds c∞ of all
    entries and `c_one` c¹ of all symbols in the same way. Read them with `rule`,
    `terminal_vector` and `root_vector`.
    """

    grammar: Grammar
    states: Ints
    terms: Ints
    parent: Floats
    left: Floats
    right: Floats
    c_inf: Floats
    c_one: Floats

    def __post_init__(self) -> None:
        for name in ("states", "terms"):
            object.__setattr__(self, name, frozen(np.asarray(getattr(self, name), np.int32)))
        for name in ("parent", "left", "right", "c_inf", "c_one"):
            object.__setattr__(self, name, frozen(np.asarray(getattr(self, name))))
        _check_tables(self)

    def rule(self, r: int) -> tuple[Floats, Floats, Floats]:
        """Return the terms of rule r, of shapes (K_r, m_a), (K_r, m_b) and (K_r, m_c)."""
        sides = []
        flats = (self.parent, self.left, self.right)
        for symbol, start, flat in zip(self.grammar.rules[r], self.side_start, flats, strict=True):
            shape = self.terms[r], self.states[symbol]
            sides.append(flat[start[r] : start[r + 1]].reshape(shape))
        return sides[0], sides[1], sides[2]

    def dense(self, r: int) -> Doubles:
        """Return C of rule r as one (m_a, m_b, m_c) array."""
        parent, left, right = (np.asarray(side, np.float64) for side in self.rule(r))
        tensor: Doubles = np.einsum("ti,tj,tk->ijk", parent, left, right)
        return tensor

    def terminal_vector(self, e: int) -> Floats:
        """Return c∞ of entry e."""
        return self.c_inf[self.entry_offset[e] : self.entry_offset[e + 1]]

    def root_vector(self, a: int) -> Floats:
        """Return c¹ of symbol a."""
        return self.c_one[self.root_offset[a] : self.root_offset[a + 1]]

    @classmethod
    def from_dense(
        cls,
        grammar: Grammar,
        states: Sequence[int] | Ints,
        tensors: Iterable[Doubles],
        terminal_vectors: Iterable[Doubles],
        root_vectors: Iterable[Doubles],
    ) -> "Tables":
        """Build tables equal to these dense C, c∞ and c¹, each list in the grammar's order."""
        sides = [_exact_terms(np.asarray(tensor, np.float64)) for tensor in tensors]
        return cls(
            grammar=grammar,
            states=np.asarray(states, np.int32),
            terms=np.array([len(parent) for parent, _, _ in sides], np.int32),
            parent=_flat(parent for parent, _, _ in sides),
            left=_flat(left for _, left, _ in sides),
            right=_flat(right for _, _, right in sides),
            c_inf=_flat(terminal_vectors),
            c_one=_flat(root_vectors),
        )


def _flat(vectors: Iterable[Doubles]) -> Doubles:
    parts = [np.asarray(vector, np.float64).ravel() for vector in vectors]
    return np.concatenate(parts) if parts else np.empty(0)


def _starts(sizes: Ints | Longs) -> Longs:
    return frozen(np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64))


def _exact_terms(tensor: Doubles) -> tuple[Doubles, Doubles, Doubles]:
    """Split a dense tensor into rank-one terms: fibres of its longest axis, and unit vectors."""
    axis = int(np.argmax(tensor.shape))
    others = [tensor.shape[k] for k in range(3) if k != axis]
    fibres = np.moveaxis(tensor, axis, 2).reshape(-1, tensor.shape[axis])
    kept = np.flatnonzero(fibres.any(axis=1))
    first, second = np.divmod(kept, others[1])
    sides = [np.eye(others[0])[first], np.eye(others[1])[second]]
    sides.insert(axis, fibres[kept])
    return sides[0], sides[1], sides[2]


def _check_tables(tables: Tables) -> None:
    grammar = tables.grammar
    sizes = {"states": grammar.n_symbols, "terms": grammar.n_rules}
    for name, size in sizes.items():
        if getattr(tables, name).shape != (size,):
            raise GrammarError(
                f"expected `{name}` of shape ({size},), got {getattr(tables, name).shape}: "
                "the tables belong to another grammar"
            )
    if grammar.n_symbols and tables.states.min() < 1:
        a = int(np.argmin(tables.states))
        raise GrammarError(
            f"expected at least one latent state for `{grammar.symbols[a]}`, got {tables.states[a]}"
        )
    if grammar.n_rules and tables.terms.min() < 0:
        r = int(np.argmin(tables.terms))
        raise GrammarError(
            f"expected no negative number of terms for `{grammar.rule_name(r)}`, "
            f"got {tables.terms[r]}"
        )
    starts = (*tables.side_start, tables.entry_offset, tables.root_offset)
    for name, start in zip(("parent", "left", "right", "c_inf", "c_one"), starts, strict=True):
        _check_numbers(name, getattr(tables, name), int(start[-1]))


def _check_numbers(name: str, numbers: Floats, size: int) -> None:
    if numbers.shape != (size,):
        raise GrammarError(
            f"expected {size} numbers in `{name}`, got shape {numbers.shape}: "
            "publish the model again"
        )
    if not np.isfinite(numbers).all():
        place = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise GrammarError(
            f"expected finite numbers in `{name}`, got {numbers[place]} at {place}: train again"
        )


@dataclass(frozen=True, eq=False)
class Emissions:
    """The candidate preterminals of each word of a sentence, and their weights.

    Candidates of word w are start[w] : start[w + 1]; candidate t says that preterminal `symbol[t]`
    emits the word with terminal vector weight[t] · c∞ of entry[t].
    """

    start: Ints
    symbol: Ints
    entry: Ints
    weight: Doubles

    @property
    def length(self) -> int:
        return len(self.start) - 1
