"""Find the target: the derivation of a chart that is nearest to the gold tree.

It maximises, over derivations, 1 for every constituent label that gold has over the span and −1
for every one that gold has not, half as much for tags, and `BINARIZED` for an intermediate symbol
binarized as in gold. Labels of a chain count as a multiset: `NP|NP` over one NP is right once.
"""

from typing import NamedTuple

import numpy as np

from lpcfg.base.jit import compiled
from lpcfg.engine.pruned.kernels import Chart, best_tree
from lpcfg.grammar.tables import Bools, Doubles, Grammar, Ints, frozen
from lpcfg.trees.binarize import is_intermediate, split_chain

TAG, BINARIZED = 0.5, 0.02


class Chains(NamedTuple):
    """Symbol a stands for the labels number[start[a] : start[a + 1]], worth `gain` each, or is
    `partial`: intermediate. Tags are other labels than constituents of the same name."""

    start: Ints
    number: Ints
    gain: Ints
    partial: Bools


class Target(NamedTuple):
    """The items and edges of a chart's derivation that is nearest to the gold tree."""

    item: Bools
    edge: Bools


def chains_of(grammar: Grammar) -> Chains:
    """Return the labels of a grammar's symbols."""
    ids: dict[tuple[str, bool], int] = {}
    number, gain, start = [], [], [0]
    for a, symbol in enumerate(grammar.symbols):
        chain = split_chain(symbol)
        for depth, label in enumerate(chain):
            is_tag = a >= grammar.n_internal and depth == len(chain) - 1
            number.append(ids.setdefault((label, is_tag), len(ids)))
            gain.append(TAG if is_tag else 1.0)
        start.append(len(number))
    return Chains(
        frozen(np.array(start, np.int32)),
        frozen(np.array(number, np.int32)),
        frozen(np.array(gain)),
        frozen(np.array([is_intermediate(symbol) for symbol in grammar.symbols], np.bool_)),
    )


@compiled()
def gains(chart: Chart, gold: Ints, chains: Chains) -> Doubles:
    """Compute what every item adds; gold[i, k] is the gold symbol over [i, k), or −1."""
    start, number, partial = chains.start, chains.number, chains.partial
    result = np.zeros(len(chart.symbol))
    for t in range(len(chart.symbol)):
        a, right = chart.symbol[t], gold[chart.start[t], chart.end[t]]
        if partial[a]:
            result[t] = BINARIZED if a == right else 0.0
            continue
        for s in range(start[a], start[a + 1]):
            before, there = 0, 0
            for other in range(start[a], s):
                before += number[other] == number[s]
            if right >= 0:
                for other in range(start[right], start[right + 1]):
                    there += number[other] == number[s]
            result[t] += chains.gain[s] if before < there else -chains.gain[s]
    return result


@compiled()
def _nearest(chart: Chart, gain: Doubles, n: int) -> tuple[Bools, Bools]:
    items, edges = np.zeros(len(chart.symbol), np.bool_), np.zeros(len(chart.rule), np.bool_)
    of_edge = np.empty(len(chart.rule))
    for t in range(len(gain)):
        of_edge[chart.edge_start[t] : chart.edge_start[t + 1]] = gain[t]
    total, back = best_tree(chart, gain, of_edge)
    root = len(gain) - 1
    for t in range(root, -1, -1):
        if chart.start[t] > 0 or chart.end[t] < n:
            break
        if total[t] > total[root]:
            root = t
    items[root] = True
    for t in range(root, -1, -1):
        if items[t] and back[t] >= 0:
            edges[back[t]] = True
            items[chart.left[back[t]]] = True
            items[chart.right[back[t]]] = True
    return items, edges


def target(chart: Chart, gold: Ints, chains: Chains) -> Target:
    """Return the target of a chart; gold[i, k] is the gold symbol over [i, k), or −1."""
    return Target(*_nearest(chart, gains(chart, gold, chains), len(gold) - 1))
