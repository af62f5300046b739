"""Forward-backward over right-branching trees (figure 5, where all spans but words end at n).

Candidate c of word i says that preterminal a emits it with the vector e_c = weight · c∞. Let s(c)
be its chain's symbol: ā, or the preterminal itself over the last word. With α_c for the trees over
the words from i on whose first candidate is c,

    α_c = e_c                                                    at the last word
    α_c = Σ_d C^{ā → a s(d)}(e_c, α_d)                           over the candidates d of word i + 1
    β_c = c¹_{s(c)}                                              at the first word
    β_d = Σ_c C^{ā → a s(d)}_(1,2)(β_c, e_c)                     over the candidates c of word i
    μ(a → x_i) = Σ α_c · β_c                                     over the candidates c of a

Every tree has one candidate at every word, so Σ_c α_c · β_c is p(x) at each: posteriors need no
exponents. A step costs K (m + m' + m'') for the K terms of a rule, and there are n T² steps, where
inside-outside takes n³ T².
"""

from typing import Any, NamedTuple

import numpy as np

from lpcfg.base.errors import GrammarError
from lpcfg.base.jit import compiled
from lpcfg.grammar.tables import Doubles, Emissions, Grammar, Ints, Longs, Tables


class Chains(NamedTuple):
    """The tables of right-branching trees, in the form of the kernel.

    rule[a, s] is the rule ā → a s of preterminal a and the next chain's symbol s, or −1; chain[a]
    is ā, or −1. Rule r has the terms first[r] : first[r + 1], which are rows of `parent`, `left`
    and `right`, padded with zeros, as are the rows of `c_inf` and `c_one`.
    """

    rule: Ints
    chain: Ints
    first: Longs
    parent: Doubles
    left: Doubles
    right: Doubles
    c_inf: Doubles
    c_one: Doubles


def chains_of(tables: Tables) -> Chains:
    """Bring tables over right-branching trees into the kernel's form."""
    grammar = tables.grammar
    rule, chain = rules_of(grammar)
    width = int(tables.states.max(initial=1))
    parent, left, right = (
        _rows(flat, np.repeat(tables.states[grammar.rules[:, k]], tables.terms), width)
        for k, flat in enumerate((tables.parent, tables.left, tables.right))
    )
    return Chains(
        rule,
        chain,
        np.concatenate([[0], np.cumsum(tables.terms, dtype=np.int64)]),
        parent,
        left,
        right,
        _rows(tables.c_inf, tables.states[grammar.entries[:, 0]], width),
        _rows(tables.c_one, tables.states, width),
    )


def rules_of(grammar: Grammar) -> tuple[Ints, Ints]:
    """Return the rule of a preterminal and the next chain's symbol, and every preterminal's chain.

    Raise GrammarError for rules of other trees.
    """
    rule = np.full((grammar.n_symbols, grammar.n_symbols), -1, np.int32)
    chain = np.full(grammar.n_symbols, -1, np.int32)
    for r, (a, b, c) in enumerate(grammar.rules.tolist()):
        if b < grammar.n_internal or chain[b] not in (-1, a):
            raise GrammarError(
                f"expected rules `t/> → t …` of right-branching trees, got {grammar.rule_name(r)}: "
                "name a model that `lpcfg tag train` made"
            )
        rule[b, c], chain[b] = r, a
    return rule, chain


def _rows(flat: Any, lengths: Ints, width: int) -> Doubles:
    """Lay vectors of these lengths out as rows, padded with zeros."""
    rows = np.zeros((len(lengths), width))
    rows[np.arange(width) < lengths[:, None]] = flat
    return rows


class Posteriors(NamedTuple):
    """μ(a → x) / p(x) of every candidate, signed; the sign of p(x), 0 where it is zero; log |p(x)|.

    Candidates that are in no tree have 0.
    """

    candidates: Doubles
    sign: int
    log: float


def forward_backward(chains: Chains, emissions: Emissions) -> Posteriors:
    """Compute the posterior of every candidate of every word, and p(x)."""
    found, sign, log = _forward_backward(
        chains, emissions.start, emissions.symbol, emissions.entry, emissions.weight
    )
    return Posteriors(found, int(sign), float(log))


@compiled()
def _forward_backward(
    chains: Chains, start: Ints, symbol: Ints, entry: Ints, weight: Doubles
) -> Any:
    """Compute posteriors of candidates, and p(x) as sign and logarithm."""
    n, width = len(start) - 1, chains.parent.shape[1]
    emitted, alpha, beta = (
        np.zeros((len(symbol), width)),
        np.zeros((len(symbol), width)),
        np.zeros((len(symbol), width)),
    )
    for c in range(len(symbol)):
        emitted[c] = weight[c] * chains.c_inf[entry[c]]
    at_root = symbol.copy()  # s(c) of every candidate
    for c in range(start[n - 1]):
        at_root[c] = chains.chain[symbol[c]]
    log = _forward(chains, start, symbol, at_root, emitted, alpha)
    total = 0.0
    for c in range(start[1]):
        if at_root[c] >= 0:
            beta[c] = chains.c_one[at_root[c]]
            total += alpha[c] @ beta[c]
    posterior = np.zeros(len(symbol))
    if total == 0.0:
        return posterior, 0, -np.inf
    for i in range(n):
        if i:
            _backward(chains, start, i, symbol, at_root, emitted, beta)
        own = 0.0
        for c in range(start[i], start[i + 1]):
            posterior[c] = alpha[c] @ beta[c]
            own += posterior[c]
        if own != 0.0:
            posterior[start[i] : start[i + 1]] /= own
    return posterior, 1 if total > 0 else -1, log + np.log(abs(total))


@compiled(helper=True)
def _forward(
    chains: Chains, start: Ints, symbol: Ints, at_root: Ints, emitted: Doubles, alpha: Doubles
) -> Any:
    """Compute α of every candidate, scaled word by word. Return the log of all scales."""
    n, log = len(start) - 1, 0.0
    for i in range(n - 1, -1, -1):
        for c in range(start[i], start[i + 1]):
            if i == n - 1:
                alpha[c] = emitted[c]
                continue
            for d in range(start[i + 1], start[i + 2]):
                r = chains.rule[symbol[c], at_root[d]] if at_root[d] >= 0 else -1
                if r < 0:
                    continue
                for t in range(chains.first[r], chains.first[r + 1]):
                    both = (chains.left[t] @ emitted[c]) * (chains.right[t] @ alpha[d])
                    alpha[c] += both * chains.parent[t]
        log += _scaled(alpha[start[i] : start[i + 1]])
    return log


@compiled(helper=True)
def _backward(
    chains: Chains,
    start: Ints,
    i: int,
    symbol: Ints,
    at_root: Ints,
    emitted: Doubles,
    beta: Doubles,
) -> None:
    """Compute β of word i's candidates from those of the word before, scaled."""
    for d in range(start[i], start[i + 1]):
        for c in range(start[i - 1], start[i]):
            r = chains.rule[symbol[c], at_root[d]] if at_root[d] >= 0 else -1
            if r < 0:
                continue
            for t in range(chains.first[r], chains.first[r + 1]):
                both = (chains.parent[t] @ beta[c]) * (chains.left[t] @ emitted[c])
                beta[d] += both * chains.right[t]
    _scaled(beta[start[i] : start[i + 1]])


@compiled(helper=True)
def _scaled(rows: Doubles) -> Any:
    """Divide rows by their largest magnitude, in place. Return its log, 0 where all are zero."""
    largest = 0.0
    for row in rows:
        for number in row:
            largest = max(largest, abs(number))
    if largest == 0.0:
        return 0.0
    for row in rows:
        row /= largest
    return np.log(largest)
