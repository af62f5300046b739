"""Compute the true probabilities of trees under a known grammar, without pruning.

Trees that `lpcfg sample` drew can so be held against a model that was learned from them.
"""

import numpy as np

from lpcfg.engine.exact.inside_outside import Gap, inside
from lpcfg.engine.exact.inside_outside import tree_probability as exact_probability
from lpcfg.grammar.tables import Emissions, Grammar, Tables
from lpcfg.kinds.constituency.results import TreeProbability
from lpcfg.trees.tree import Tree


def tree_probability(tables: Tables, stree: Tree) -> TreeProbability:
    """Compute log p(tree), log p(sentence) and log p(tree | sentence) of an s-tree."""
    emissions = _emissions(tables.grammar, stree.tokens())
    sentence = inside(tables, emissions).probability
    found = exact_probability(tables, stree, emissions)
    of_sentence = sentence.log if sentence.sign else None
    if found.missing:
        return TreeProbability(None, 0, of_sentence, None, _reason(found.missing))
    log = found.probability.log
    return TreeProbability(log, found.probability.sign, sentence.log, log - sentence.log, None)


def _emissions(grammar: Grammar, words: list[str]) -> Emissions:
    """List the preterminals of every word; a word that the grammar does not have has none."""
    ids = {word: x for x, word in enumerate(grammar.terminals)}
    entries = [np.flatnonzero(grammar.entries[:, 1] == ids.get(word, -1)) for word in words]
    entry = np.concatenate(entries).astype(np.int32)
    return Emissions(
        np.concatenate([[0], np.cumsum([len(one) for one in entries])]).astype(np.int32),
        grammar.entries[entry, 0],
        entry,
        np.ones(len(entry)),
    )


def _reason(missing: tuple[Gap, ...]) -> str:
    told = ", ".join(
        f"`{one.name}` as a root" if one.kind == "root" else f"`{one.name}`" for one in missing
    )
    return f"the grammar does not have {told}"
