"""The treebank PCFG: relative frequencies with one latent state per symbol (m = 1).

It is an estimator of its own, and the coarse grammar that prunes the charts of all others.
"""

import numpy as np

from lpcfg.grammar.tables import Grammar, Ints, Tables
from lpcfg.kinds.constituency.model import coarse_tables
from lpcfg.training.data.examples import Examples
from lpcfg.training.data.treebank import Forest


def estimate(examples: Examples) -> Tables:
    """Count the examples."""
    return relative_frequencies(examples.forest, examples.grammar, examples.node_rule)


def relative_frequencies(forest: Forest, grammar: Grammar, node_rule: Ints) -> Tables:
    """Make tables of one state: C = count(a → b c) / count(a), c¹ = the share of trees rooted in a.

    c∞ is 1: p(x | a) is the lexicon's weight.
    """
    symbol = np.bincount(forest.symbol, minlength=grammar.n_symbols)
    rule = np.bincount(node_rule[~forest.is_leaf], minlength=grammar.n_rules)
    root = np.bincount(forest.symbol[forest.roots], minlength=grammar.n_symbols)
    return coarse_tables(grammar, rule / symbol[grammar.rules[:, 0]], root / forest.n_trees)
