"""EM on trees by enumeration of all latent states: slow, without scaling, apart from the code."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import log

import numpy as np

from lpcfg.grammar.tables import Doubles
from lpcfg.trees.tree import Tree

Rule = tuple[str, str, str]
Word = tuple[str, str]


@dataclass
class Dense:
    """An L-PCFG by names: t (m_a, m_b, m_c) of a rule, q (m_a) of a word, π (m_a) of a symbol."""

    t: dict[Rule, Doubles]
    q: dict[Word, Doubles]
    pi: dict[str, Doubles]


def nodes_of(tree: Tree) -> list[Tree]:
    return [tree, *(node for child in tree.children for node in nodes_of(child))]


def step(dense: Dense, trees: Sequence[Tree]) -> tuple[Dense, float]:
    """Return the next parameters, and log p(trees) under these."""
    t = {rule: np.zeros_like(tensor) for rule, tensor in dense.t.items()}
    q = {word: np.zeros_like(row) for word, row in dense.q.items()}
    pi = {a: np.zeros_like(column) for a, column in dense.pi.items()}
    likelihood = 0.0
    for tree, times in Counter(trees).items():
        joint = list(_assignments(dense, tree))
        whole = sum(p for _, p in joint)
        likelihood += times * log(whole)
        for state, p in joint:
            _count(tree, state, times * p / whole, t, q, pi)
    return _divided(t, q, pi, len(trees)), likelihood


def _assignments(dense: Dense, tree: Tree) -> list[tuple[dict[int, int], float]]:
    """List all ways to give the nodes states, with the probability of tree and states."""
    nodes = nodes_of(tree)
    found = []
    for choice in product(*(range(len(dense.pi[node.label])) for node in nodes)):
        state = {id(node): h for node, h in zip(nodes, choice, strict=True)}
        p = dense.pi[tree.label][state[id(tree)]]
        for node in nodes:
            h = state[id(node)]
            if node.word is not None:
                p *= dense.q[node.label, node.word][h]
            else:
                left, right = node.children
                rule = (node.label, left.label, right.label)
                p *= dense.t[rule][h, state[id(left)], state[id(right)]]
        found.append((state, float(p)))
    return found


def _count(
    tree: Tree,
    state: dict[int, int],
    weight: float,
    t: dict[Rule, Doubles],
    q: dict[Word, Doubles],
    pi: dict[str, Doubles],
) -> None:
    pi[tree.label][state[id(tree)]] += weight
    for node in nodes_of(tree):
        h = state[id(node)]
        if node.word is not None:
            q[node.label, node.word][h] += weight
        else:
            left, right = node.children
            rule = (node.label, left.label, right.label)
            t[rule][h, state[id(left)], state[id(right)]] += weight


def _divided(
    t: dict[Rule, Doubles], q: dict[Word, Doubles], pi: dict[str, Doubles], n_trees: int
) -> Dense:
    visits = {a: np.zeros_like(column) for a, column in pi.items()}
    for rule, counts in t.items():
        visits[rule[0]] += counts.sum(axis=(1, 2))
    for (a, _), row in q.items():
        visits[a] += row
    return Dense(
        {rule: counts / visits[rule[0]][:, None, None] for rule, counts in t.items()},
        {word: row / visits[word[0]] for word, row in q.items()},
        {a: column / n_trees for a, column in pi.items()},
    )
