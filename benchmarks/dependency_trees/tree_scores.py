"""log |p| of many candidate trees under an L-PCFG of expansions, fast.

The same numbers as `engine.exact.inside_outside.tree_probability` of `expand(tree)`, without making
trees. A rule that was never seen has probability zero; among candidates that says too little, so
`missing` of these cost `UNSEEN` each, and the product goes on from the mean vector of the symbol.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from benchmarks.dependency_trees.expanded import Expanded
from numba import njit

from lpcfg.grammar.lexicon import Emitter
from lpcfg.grammar.tables import Doubles, Ints, Longs
from lpcfg.kinds.dependencies.arcs import Arcs
from lpcfg.kinds.dependencies.eisner import bottom_up
from lpcfg.kinds.dependencies.expansion import LEFT, RIGHT, part_of_speech

UNSEEN = -12.0
"""log p of a rule or a root that was never seen."""


class _Rules(NamedTuple):
    """rule[X, D, side] with side 0 for T/L → D X and 1 for T/R → X D, -1 where there is none;
    the rule's terms and the parent's symbol; the symbol of a head's symbol with a new modifier."""

    rule: Ints
    first: Longs
    parent: Doubles
    inner: Doubles
    modifier: Doubles
    above: Ints
    mean: Doubles
    root: Doubles


@dataclass(frozen=True, eq=False)
class TreeScores:
    """Scores candidates under one model."""

    model: Expanded

    def of(self, sentence: Arcs, candidates: Longs) -> tuple[Doubles, Longs]:
        """Compute log |p| of every row of heads, and how many of its rules were never seen."""
        tags = [part_of_speech(tag) for tag in sentence.tags]
        ids = self.model.grammar.symbol_ids
        known = [tag if tag in ids else None for tag in tags]
        emissions = self._emitter(sentence.words, known)
        width = self._rules.mean.shape[1]
        symbol = np.array([ids.get(tag, -1) for tag in tags], np.int64)
        leaf = np.zeros((len(tags), width))
        tables = self.model.tables
        for m in range(len(tags)):
            for t in range(emissions.start[m], emissions.start[m + 1]):
                if emissions.symbol[t] == symbol[m]:
                    vector = tables.terminal_vector(emissions.entry[t])
                    leaf[m, : len(vector)] += emissions.weight[t] * vector
        return _score(self._rules, symbol, leaf, candidates)  # type: ignore[no-any-return]

    @cached_property
    def _emitter(self) -> Emitter:
        return Emitter(self.model.grammar, self.model.lexicon)

    @cached_property
    def _rules(self) -> _Rules:
        tables, grammar = self.model.tables, self.model.grammar
        names, ids, n = grammar.symbols, grammar.symbol_ids, grammar.n_symbols
        width = int(tables.states.max(initial=1))
        rule = np.full((n, n, 2), -1, np.int32)
        terms = int(tables.terms.sum())
        sides = [np.zeros((terms, width)) for _ in range(3)]
        first = np.concatenate([[0], np.cumsum(tables.terms)]).astype(np.int64)
        mean = np.zeros((n, width))
        for r, (a, b, c) in enumerate(grammar.rules.tolist()):
            is_right = names[a].endswith(RIGHT)
            x, d = (b, c) if is_right else (c, b)
            rule[x, d, int(is_right)] = r
            parent, left, right = tables.rule(r)
            places = slice(first[r], first[r + 1])
            for to, side in zip(
                sides, (parent, left, right) if is_right else (parent, right, left), strict=True
            ):
                to[places, : side.shape[1]] = side
            mean[a, : parent.shape[1]] += parent.sum(axis=0)
        mean /= np.maximum(np.abs(mean).max(axis=1, keepdims=True), 1e-300)
        above = np.full((n, 2), -1, np.int32)
        for a, name in enumerate(names):
            tag = name.removesuffix(RIGHT).removesuffix(LEFT)
            above[a] = ids.get(tag + LEFT, -1), ids.get(tag + RIGHT, -1)
        root = np.zeros((n, width))
        for a in range(n):
            vector = tables.root_vector(a)
            root[a, : len(vector)] = vector
        return _Rules(rule, first, sides[0], sides[1], sides[2], above, mean, root)


@njit(cache=True, nogil=True)
def _joined(rules: Any, x: int, f: Doubles, d: int, g: Doubles, side: int) -> Any:
    """Join a modifier d to a head's x: return the symbol, the scaled vector, the log of its scale,
    and 1 if the rule is unseen.
    """
    above = rules.above[x, side] if x >= 0 else -1
    r = rules.rule[x, d, side] if x >= 0 and d >= 0 else -1
    result = np.zeros(len(f))
    if r >= 0:
        for t in range(rules.first[r], rules.first[r + 1]):
            factor = np.dot(rules.inner[t], f) * np.dot(rules.modifier[t], g)
            result += factor * rules.parent[t]
    largest = np.abs(result).max()
    if largest > 0:
        return above, result / largest, np.log(largest), 0
    if above >= 0:
        result[:] = rules.mean[above]
    return above, result, UNSEEN, 1


@njit(cache=True, nogil=True)
def _score(rules: Any, symbol: Longs, leaf: Doubles, candidates: Longs) -> Any:
    count, n = candidates.shape
    logs, missing = np.zeros(count), np.zeros(count, np.int64)
    for c in range(count):
        heads = candidates[c]
        symbols, vectors = symbol.copy(), leaf.copy()
        for h in bottom_up(heads):
            x, f = symbols[h - 1], vectors[h - 1].copy()
            for k in range(2 * n):
                m = k + 1 if k < n else 2 * n - k  # right ones outward, then left ones outward
                if heads[m - 1] != h or (k < n) is not (m > h):
                    continue
                side = 1 if m > h else 0
                x, f, log, unseen = _joined(rules, x, f, symbols[m - 1], vectors[m - 1], side)
                logs[c] += log
                missing[c] += unseen
            symbols[h - 1], vectors[h - 1] = x, f
            if heads[h - 1] == 0:
                value = np.dot(f, rules.root[x]) if x >= 0 else 0.0
                logs[c] += np.log(abs(value)) if value != 0 else UNSEEN
                missing[c] += value == 0
    return logs, missing
