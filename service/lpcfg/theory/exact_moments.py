"""Exact moments of a known L-PCFG, by their decomposition over states (section A.2).

The features say which rules are near a node. φ: at the node, and at its children; ψ: above it (and
on which side of that rule it is), at its sibling, and at the sibling's children. Every node of
every tree is an example, so p(h | a) is the share of state h in the expected visits of a (see
`lpcfg.grammar.tables`, "Errors in the papers").
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lpcfg.base.errors import GrammarError
from lpcfg.grammar.known import check_probabilities
from lpcfg.grammar.tables import Doubles, Grammar, Tables


def expected_visits(lpcfg: Tables) -> list[Doubles]:
    """Compute how many nodes with symbol a and state h a tree has on average: v = π + v·t."""
    offset = lpcfg.root_offset
    step = np.zeros((offset[-1], offset[-1]))
    for r, (a, b, c) in enumerate(lpcfg.grammar.rules.tolist()):
        tensor = lpcfg.dense(r)
        step[offset[a] : offset[a + 1], offset[b] : offset[b + 1]] += tensor.sum(axis=2)
        step[offset[a] : offset[a + 1], offset[c] : offset[c + 1]] += tensor.sum(axis=1)
    if np.abs(np.linalg.eigvals(step)).max(initial=0.0) >= 1:
        raise GrammarError(
            "expected trees that are finite on average, got a grammar without such an average: "
            "give recursive rules less probability"
        )
    visits = np.linalg.solve(np.eye(offset[-1]) - step.T, np.asarray(lpcfg.c_one, np.float64))
    return np.split(visits, offset[1:-1])


@dataclass(frozen=True, eq=False)
class ExactMoments:
    """I^a and J^a (definition 5), a column per state, and the expected visits of states."""

    lpcfg: Tables
    inside: Sequence[Doubles]
    outside: Sequence[Doubles]
    visits: Sequence[Doubles]

    @classmethod
    def of(cls, lpcfg: Tables) -> "ExactMoments":
        """Compute the moments of an L-PCFG in its own parameters (t, q, π)."""
        check_probabilities(lpcfg)
        visits = expected_visits(lpcfg)
        for name, visit in zip(lpcfg.grammar.symbols, visits, strict=True):
            if not visit.sum() > 0:
                raise GrammarError(
                    f"expected symbols that trees have, got `{name}`, which none has: leave it out"
                )
        return cls(lpcfg, *_feature_means(lpcfg, visits), visits)

    @cached_property
    def gamma(self) -> list[Doubles]:
        """p(h | a) of every symbol."""
        return [visit / visit.sum() for visit in self.visits]

    @cached_property
    def omega(self) -> list[Doubles]:
        """Ω^a = I^a diag(γ^a) (J^a)ᵀ of every symbol (lemma 7)."""
        both = zip(self.inside, self.gamma, self.outside, strict=True)
        return [i @ (g[:, None] * j.T) for i, g, j in both]

    def scaled(self) -> "ExactMoments":
        """Divide φ and ψ of every symbol by their largest norms, as theorem 8 assumes."""
        inside, outside = _largest_norms(self.lpcfg.grammar)
        return ExactMoments(
            self.lpcfg,
            [mean / norm for mean, norm in zip(self.inside, inside, strict=True)],
            [mean / norm for mean, norm in zip(self.outside, outside, strict=True)],
            self.visits,
        )


def _largest_norms(grammar: Grammar) -> tuple[Doubles, Doubles]:
    """Compute the largest norms of φ and ψ of every symbol: the root of how many rules they see."""
    seen = np.where(np.arange(grammar.n_symbols) < grammar.n_internal, 3.0, 1.0)
    outside = np.ones(grammar.n_symbols)
    for _, b, c in grammar.rules.tolist():
        outside[b] = max(outside[b], 1 + seen[c])
        outside[c] = max(outside[c], 1 + seen[b])
    return np.sqrt(seen), np.sqrt(outside)


def _feature_means(lpcfg: Tables, visits: Sequence[Doubles]) -> tuple[list[Doubles], list[Doubles]]:
    """Compute E[φ | a, h] and E[ψ | a, h]; both are made of indicators, block by block."""
    grammar = lpcfg.grammar
    rules, entries = grammar.rules.tolist(), grammar.entries.tolist()
    tensors = [lpcfg.dense(r) for r in range(grammar.n_rules)]
    n_rules, kinds = len(rules), len(rules) + len(entries)
    here, left, right = ([np.zeros((kinds, m)) for m in lpcfg.states.tolist()] for _ in range(3))
    for r, (a, _, _) in enumerate(rules):
        here[a][r] = tensors[r].sum(axis=(1, 2))
    for e, (a, _) in enumerate(entries):
        here[a][n_rules + e] = lpcfg.terminal_vector(e)
    for r, (a, b, c) in enumerate(rules):
        left[a] += np.einsum("hij,ki->kh", tensors[r], here[b])
        right[a] += np.einsum("hij,kj->kh", tensors[r], here[c])
    inside = [np.concatenate(blocks) for blocks in zip(here, left, right, strict=True)]
    above = [np.zeros((2 * n_rules + 1, m)) for m in lpcfg.states.tolist()]
    sibling = [np.zeros((3 * kinds, m)) for m in lpcfg.states.tolist()]
    for r, (a, b, c) in enumerate(rules):
        above[b][2 * r] += visits[a] @ tensors[r].sum(axis=2)
        above[c][2 * r + 1] += visits[a] @ tensors[r].sum(axis=1)
        sibling[b] += np.einsum("h,hij,kj->ki", visits[a], tensors[r], inside[c])
        sibling[c] += np.einsum("h,hij,ki->kj", visits[a], tensors[r], inside[b])
    for a in range(grammar.n_symbols):
        above[a][-1] += lpcfg.root_vector(a)
    # A state that is never visited has no outside tree: its column is zero, and Ω lacks rank.
    outside = [
        np.concatenate(blocks) / np.where(visit > 0, visit, 1.0)
        for *blocks, visit in zip(above, sibling, visits, strict=True)
    ]
    return inside, outside
