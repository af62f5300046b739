"""Decode on the full chart, by exhaustive dynamic programming over the exact marginals.

T(x) is the set of s-trees that the grammar can build over the sentence: a rule at every inner
node, a candidate over every word, a root with c¹ ≠ 0. With μ̂ = μ / p(x), the best tree in T(x)

    max-marginal   maximizes Σ |μ̂(a, i, j)| over its nodes (Goodman 1996; NAACL 3.3)
    max-rule       maximizes Σ |μ̂(rule)| over its rules, lexical ones included
    max-product    maximizes |μ̂(root)| Π |μ̂(a → b c, i, k, j) / μ̂(a, i, j)|, the product over its
                   inner nodes: its probability under the Markov tree model closest to the
                   posterior (Matsuzaki et al. 2005); for m = 1 that is p(tree | x), and the tree
                   the Viterbi tree

Magnitudes are used because spectral marginals may be negative. Among equal scores the narrowest
left child wins, then the rule that comes first in the grammar.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lpcfg.engine.exact.inside_outside import ExactMarginals
from lpcfg.grammar.tables import Doubles, Ints
from lpcfg.trees.tree import Tree

Objective = Literal["max-marginal", "max-rule", "max-product"]


@dataclass(frozen=True)
class BestTree:
    """The best s-tree and its score (for max-product, the natural log of the score)."""

    tree: Tree
    score: float


def decode(
    marginals: ExactMarginals, words: Sequence[str], objective: Objective
) -> BestTree | None:
    """Find the best tree over these words. Return None if p(x) is zero or no tree has a score.

    Under max-product, a tree has no score if the marginal of one of its nodes is zero. This can
    happen although p(x) is not zero, because signs may cancel.
    """
    if marginals.probability.sign == 0:
        return None
    search = _Search(marginals, objective)
    length, tables = marginals.chart.length, marginals.chart.flat.tables
    may_be_root = np.array([tables.root_vector(a).any() for a in range(len(tables.states))])
    score = np.where(may_be_root, search.best[length][0], -np.inf)
    if objective == "max-product":
        score += _log(marginals.spans(length)[0])
    root = int(np.argmax(score))
    if score[root] == -np.inf:
        return None
    return BestTree(search.tree(root, words), float(score[root]))


def _log(posterior: Doubles) -> Doubles:
    """Compute the log of the magnitude: -inf at zero."""
    magnitude = np.abs(posterior)
    return np.log(magnitude, out=np.full(magnitude.shape, -np.inf), where=magnitude > 0.0)


def _rule_gain(marginals: ExactMarginals, objective: Objective, width: int, split: int) -> Doubles:
    """Compute what each rule adds to the score of a tree over [i, i + width), by its split."""
    if objective == "max-marginal":
        return np.zeros(1)
    posterior = marginals.rules(width, split)
    return np.abs(posterior) if objective == "max-rule" else _log(posterior)


def _item_gain(marginals: ExactMarginals, objective: Objective, width: int) -> Doubles:
    """Compute what each symbol adds to the score of a tree over [i, i + width).

    Over single words μ(a, i, i + 1) is also the marginal of the lexical rule.
    """
    posterior = marginals.spans(width)
    if objective == "max-marginal" or (objective == "max-rule" and width == 1):
        return np.abs(posterior)
    if objective == "max-rule" or width == 1:
        return np.zeros(posterior.shape)
    log = _log(posterior)
    return np.where(posterior == 0.0, log, -log)


class _Search:
    """The search. best[width][i, a] is the best score of a tree under `a` over [i, i + width).

    `rule` and `split` have the same shape: the rule of that best tree, and the width of its left
    child.
    """

    def __init__(self, marginals: ExactMarginals, objective: Objective) -> None:
        self.grammar = marginals.chart.flat.tables.grammar
        self.best = [np.empty((0, 0)), _leaves(marginals, objective)]
        self.rule = [np.empty((0, 0), np.int32)] * 2
        self.split = [np.empty((0, 0), np.int32)] * 2
        for width in range(2, marginals.chart.length + 1):
            self._choose(*self._instances(marginals, objective, width))
            self.best[width] += _item_gain(marginals, objective, width)

    def _instances(
        self, marginals: ExactMarginals, objective: Objective, width: int
    ) -> tuple[Doubles, Ints]:
        """Find the best score of every rule over [i, i + width), and the split that gives it."""
        rows = marginals.chart.length - width + 1
        left, right = self.grammar.rules[:, 1], self.grammar.rules[:, 2]
        best = np.full((rows, self.grammar.n_rules), -np.inf)
        split_of = np.zeros(best.shape, np.int32)
        for split in range(1, width):
            score = self.best[split][:rows, left] + self.best[width - split][split:, right]
            score += _rule_gain(marginals, objective, width, split)
            split_of[score > best] = split
            np.maximum(best, score, out=best)
        return best, split_of

    def _choose(self, score: Doubles, split_of: Ints) -> None:
        """Keep the best rule of every symbol."""
        rows = np.arange(len(score))
        best = np.full((len(score), self.grammar.n_symbols), -np.inf)
        rule = np.zeros(best.shape, np.int32)
        split = np.zeros(best.shape, np.int32)
        parents, first = np.unique(self.grammar.rules[:, 0], return_index=True)
        for a, start, end in zip(parents, first, [*first[1:], score.shape[1]], strict=True):
            rule[:, a] = start + np.argmax(score[:, start:end], axis=1)
            best[:, a] = score[rows, rule[:, a]]
            split[:, a] = split_of[rows, rule[:, a]]
        self.best.append(best)
        self.rule.append(rule)
        self.split.append(split)

    def tree(self, root: int, words: Sequence[str]) -> Tree:
        """Build the tree with the best score for a root over the whole sentence."""
        finished: list[Tree] = []
        agenda = [(root, 0, len(words), False)]
        while agenda:
            a, start, width, children_done = agenda.pop()
            name = self.grammar.symbols[a]
            if width == 1:
                finished.append(Tree(name, word=words[start]))
            elif children_done:
                right, left = finished.pop(), finished.pop()
                finished.append(Tree(name, (left, right)))
            else:
                _, b, c = self.grammar.rules[self.rule[width][start, a]].tolist()
                split = int(self.split[width][start, a])
                agenda.append((a, start, width, True))
                agenda.append((c, start + split, width - split, False))
                agenda.append((b, start, split, False))
        return finished.pop()


def _leaves(marginals: ExactMarginals, objective: Objective) -> Doubles:
    """Compute the scores over single words: -inf where a symbol is no candidate."""
    emissions, gain = marginals.chart.emissions, _item_gain(marginals, objective, 1)
    position = np.repeat(np.arange(len(gain)), np.diff(emissions.start))
    best = np.full(gain.shape, -np.inf)
    best[position, emissions.symbol] = gain[position, emissions.symbol]
    return best
