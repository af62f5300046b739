"""Slow oracles: enumeration and plain recursion, in pure Python. Nothing here imports an engine.

Derivations are nested tuples: (a, start, end, candidate) over one word, `candidate` being a row of
the emissions; (a, start, end, rule, left, right) above.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from lpcfg.grammar.tables import Emissions, Tables
from lpcfg.trees.tree import Tree

Derivation = tuple[Any, ...]


def derivations(
    tables: Tables, emissions: Emissions, a: int, start: int, end: int
) -> Iterator[Derivation]:
    """Yield every tree under symbol a over [start, end)."""
    if end - start == 1:
        for t in range(emissions.start[start], emissions.start[end]):
            if emissions.symbol[t] == a:
                yield (a, start, end, t)
    for r, (parent, b, c) in enumerate(tables.grammar.rules.tolist()):
        if parent != a:
            continue
        for split in range(start + 1, end):
            for left in derivations(tables, emissions, b, start, split):
                for right in derivations(tables, emissions, c, split, end):
                    yield (a, start, end, r, left, right)


def nodes(derivation: Derivation) -> list[Derivation]:
    """List the derivation and all below it, parents first."""
    below = [] if len(derivation) == 4 else [*nodes(derivation[4]), *nodes(derivation[5])]
    return [derivation, *below]


def probability(tables: Tables, emissions: Emissions, derivation: Derivation) -> float:
    """Sum, over a latent state for every node, c¹ of the root times C or c∞ at every node."""
    all_nodes = nodes(derivation)
    number = {id(node): n for n, node in enumerate(all_nodes)}
    dense = {node[3]: tables.dense(node[3]) for node in all_nodes if len(node) == 6}
    total = 0.0
    for states in product(*(range(tables.states[node[0]]) for node in all_nodes)):
        term = float(tables.root_vector(derivation[0])[states[0]])
        for n, node in enumerate(all_nodes):
            if len(node) == 4:
                t = node[3]
                vector = tables.terminal_vector(emissions.entry[t])
                term *= float(emissions.weight[t]) * float(vector[states[n]])
            else:
                left, right = states[number[id(node[4])]], states[number[id(node[5])]]
                term *= float(dense[node[3]][states[n], left, right])
        total += term
    return total


def all_derivations(tables: Tables, emissions: Emissions) -> list[tuple[Derivation, float]]:
    """List every tree over the sentence, under any root, with p(tree)."""
    return [
        (tree, probability(tables, emissions, tree))
        for a in range(tables.grammar.n_symbols)
        for tree in derivations(tables, emissions, a, 0, emissions.length)
    ]


Marginal = dict[tuple[int, ...], float]


def marginals(weighted: Sequence[tuple[Derivation, float]]) -> tuple[Marginal, Marginal, Marginal]:
    """Compute μ by (a, start, end), by (rule, start, split, end) and by (candidate,)."""
    spans: Marginal = {}
    rules: Marginal = {}
    words: Marginal = {}
    for tree, weight in weighted:
        for node in nodes(tree):
            _count(spans, node[:3], weight)
            if len(node) == 4:
                _count(words, (node[3],), weight)
            else:
                _count(rules, (node[3], node[1], node[4][2], node[2]), weight)
    return spans, rules, words


def _count(counts: Marginal, key: tuple[int, ...], weight: float) -> None:
    counts[key] = counts.get(key, 0.0) + weight


def as_tree(tables: Tables, words: Sequence[str], derivation: Derivation) -> Tree:
    name = tables.grammar.symbols[derivation[0]]
    if len(derivation) == 4:
        return Tree(name, word=words[derivation[1]])
    return Tree(name, tuple(as_tree(tables, words, child) for child in derivation[4:]))


def recursive_inside(tables: Tables, emissions: Emissions) -> float:
    """Compute p(x) by memoized recursion over (symbol, span) with dense tensors and no scaling."""
    rules = tables.grammar.rules.tolist()
    dense = [tables.dense(r) for r in range(len(rules))]

    @cache
    def alpha(a: int, start: int, end: int) -> Any:
        vector = np.zeros(tables.states[a])
        if end - start == 1:
            for t in range(emissions.start[start], emissions.start[end]):
                if emissions.symbol[t] == a:
                    vector += emissions.weight[t] * tables.terminal_vector(emissions.entry[t])
        for split in range(start + 1, end):
            for r, (parent, b, c) in enumerate(rules):
                if parent == a:
                    vector += dense[r] @ alpha(c, split, end) @ alpha(b, start, split)
        return vector

    length = emissions.length
    return sum(
        float(alpha(a, 0, length) @ tables.root_vector(a)) for a in range(tables.grammar.n_symbols)
    )


def log_inside(tables: Tables, emissions: Emissions) -> float:
    """Compute log p(x) of tables without negative numbers, in logs throughout."""
    length, offset = emissions.length, tables.root_offset
    with np.errstate(divide="ignore"):  # log 0 is -inf here
        dense = [np.log(tables.dense(r)) for r in range(tables.grammar.n_rules)]
        emitted, roots = np.log(tables.c_inf), np.log(tables.c_one)
        weight = np.log(emissions.weight)
    alpha = np.full((length + 1, length + 1, offset[-1]), -np.inf)
    for width in range(1, length + 1):
        for start in range(length - width + 1):
            end = start + width
            for a in range(tables.grammar.n_symbols):
                states = slice(offset[a], offset[a + 1])
                terms = [np.full((1, tables.states[a]), -np.inf)]
                if width == 1:
                    for t in range(emissions.start[start], emissions.start[end]):
                        if emissions.symbol[t] == a:
                            first = tables.entry_offset[emissions.entry[t]]
                            vector = emitted[first : first + tables.states[a]]
                            terms.append((weight[t] + vector)[None, :])
                for r, (parent, b, c) in enumerate(tables.grammar.rules.tolist()):
                    if parent == a and width > 1:
                        left = alpha[start, start + 1 : end, offset[b] : offset[b + 1]]
                        right = alpha[start + 1 : end, end, offset[c] : offset[c + 1]]
                        split = left[:, None, :, None] + right[:, None, None, :] + dense[r]
                        terms.append(np.moveaxis(split, 1, 3).reshape(-1, tables.states[a]))
                alpha[start, end, states] = np.logaddexp.reduce(np.concatenate(terms), axis=0)
    return float(np.logaddexp.reduce(alpha[0, length] + roots))


class Pcfg:
    """A plain probabilistic grammar in dictionaries: no latent states, no tensors."""

    def __init__(
        self,
        rules: Mapping[tuple[str, str, str], float],
        words: Mapping[tuple[str, str], float],
        roots: Mapping[str, float],
    ) -> None:
        self.rules = rules
        self.words = words
        self.roots = roots

    def inside(self, tokens: Sequence[str]) -> float:
        """Compute p(x)."""
        n = len(tokens)
        chart: dict[tuple[int, int, str], float] = {}
        for i, token in enumerate(tokens):
            for (a, word), p in self.words.items():
                if word == token:
                    chart[i, i + 1, a] = p
        for width in range(2, n + 1):
            for i in range(n - width + 1):
                for k in range(i + 1, i + width):
                    for (a, b, c), p in self.rules.items():
                        score = p * chart.get((i, k, b), 0.0) * chart.get((k, i + width, c), 0.0)
                        chart[i, i + width, a] = chart.get((i, i + width, a), 0.0) + score
        return sum(p * chart.get((0, n, a), 0.0) for a, p in self.roots.items())

    def viterbi(self, tokens: Sequence[str]) -> tuple[float, Tree]:
        """Return the probability of the most probable tree, and that tree. There must be one."""
        n = len(tokens)
        best: dict[tuple[int, int, str], tuple[float, Tree]] = {}
        for i, token in enumerate(tokens):
            for (a, word), p in self.words.items():
                if word == token:
                    best[i, i + 1, a] = (p, Tree(a, word=token))
        for width in range(2, n + 1):
            for i in range(n - width + 1):
                for k in range(i + 1, i + width):
                    for (a, b, c), p in self.rules.items():
                        left, right = best.get((i, k, b)), best.get((k, i + width, c))
                        if left is None or right is None:
                            continue
                        score = p * left[0] * right[0]
                        if score > best.get((i, i + width, a), (0.0, None))[0]:
                            best[i, i + width, a] = (score, Tree(a, (left[1], right[1])))
        finished = [
            (p * best[0, n, a][0], best[0, n, a][1])
            for a, p in self.roots.items()
            if (0, n, a) in best
        ]
        return max(finished, key=lambda item: item[0])
