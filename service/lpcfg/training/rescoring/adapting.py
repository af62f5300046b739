"""Let a layer go on learning from a few trees of another domain.

The sparse weights continue, by the same loss, from charts of trees that the
members below have not seen: trees are cut into folds, and each is charted under members that
adapted to the others. How many passes are best is tried on one fold after learning from the rest:
none is a possible answer, so that trees which teach nothing do no harm.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lpcfg.engine.rescoring.domains import code_of
from lpcfg.engine.rescoring.layer import Layer, WordFacts
from lpcfg.engine.rescoring.names import names_of
from lpcfg.engine.rescoring.quantized import dequantize, quantize
from lpcfg.grammar.tables import Bools, Grammar, Longs, Singles, frozen
from lpcfg.kinds.constituency.model import Model
from lpcfg.training.data.treebank import Forest
from lpcfg.training.rescoring import sparse
from lpcfg.training.rescoring.charts import Charts
from lpcfg.training.rescoring.examples import ChartExamples
from lpcfg.training.rescoring.jackknife import Charting, folds_of

FEWEST = 40
"""Trees to learn from: fewer leave no fold to try passes on."""
FOLDS = 4
MOST_PASSES = 6
SETTINGS = sparse.SparseSettings(decay=0.0)

AdaptTo = Callable[[Longs], Model]
"""Adapts the members to some of the trees, by their numbers."""


class Continued(NamedTuple):
    """A layer that went on learning, from how many charts, and in how many passes."""

    layer: Layer
    charts: int
    passes: int


def continue_layer(
    layer: Layer, own: Forest, adapt_to: AdaptTo, folder: Path, *, seed: int
) -> Continued | None:
    """Let a layer go on learning from a few trees.

    Args:
        layer: the layer to begin with.
        own: the trees.
        adapt_to: adapts the members under it to some of them.
        folder: where charts are spilled.
        seed: of random numbers.

    Returns:
        The layer with what it was learned from; None if the trees are too few.
    """
    if own.n_trees < FEWEST:
        return None
    trees = np.arange(own.n_trees)
    fold = folds_of(own, trees, FOLDS)
    spilled, names = [], None
    for number in range(FOLDS):
        model = adapt_to(trees[fold != number])
        forest, grammar = joined_to(own, model.grammar)
        charting = Charting(forest, grammar, layer.heads)
        path = folder / f"own-{number}"
        spilled.append(charting.spill(model, trees[fold == number], path))
        names = names_of(grammar)
    facts = WordFacts(layer.frequent, layer.suffixes, layer.vectors).of(own.words)
    with Charts(spilled) as charts:
        if names is None or not len(charts):
            return None
        domains = _domains(layer, own, facts)[charts.trees]
        times = np.ones(len(charts), np.int32)
        examples = ChartExamples(charts, names, facts, times, layer.prior_weight, domains)
        begun = dequantize(layer.weight)
        passes = _best_passes(examples, begun, fold[charts.trees] == 0, seed)
        learned = sparse.continued(examples, SETTINGS, _table(begun), passes, seed=seed)
        *_, weight = begun, *learned
        return Continued(replace(layer, weight=quantize(weight)), len(charts), passes)


def _best_passes(examples: ChartExamples, weight: Singles, tried: Bools, seed: int) -> int:
    """Return the number of passes over the other charts after which those tried are likeliest."""
    rest = replace(examples, times=np.where(tried, 0, 1).astype(np.int32))
    chosen = np.flatnonzero(tried).tolist()
    losses = [sparse.loss(examples, weight, chosen)]
    for changed in sparse.continued(rest, SETTINGS, _table(weight), MOST_PASSES, seed=seed):
        losses.append(sparse.loss(examples, changed, chosen))
        if losses[-1] > min(losses):
            break
    return int(np.argmin(losses))


def _table(weight: Singles) -> Singles:
    """Return a table to learn in: these weights, without sums of squares."""
    return np.stack([weight, np.zeros_like(weight)], 1)


def joined_to(own: Forest, base: Grammar) -> tuple[Forest, Grammar]:
    """Number the symbols of a forest as in a grammar, and those it lacks beside them."""
    n = base.n_internal
    inside, over_words = base.symbols[:n], base.symbols[n:]
    known = set(base.symbols)
    new_inside = [name for name in own.symbols[: own.n_internal] if name not in known]
    new_over_words = [name for name in own.symbols[own.n_internal :] if name not in known]
    symbols = (*inside, *new_inside, *over_words, *new_over_words)
    number = {symbol: a for a, symbol in enumerate(symbols)}
    renamed = np.array([number[symbol] for symbol in own.symbols], np.int32)
    moved = np.array([number[symbol] for symbol in base.symbols], np.int32)
    none = np.empty((0, 2), np.int32)
    grammar = Grammar(symbols, n + len(new_inside), moved[base.rules], (), none)
    symbol = frozen(renamed[own.symbol])
    return replace(own, symbols=symbols, n_internal=grammar.n_internal, symbol=symbol), grammar


def _domains(layer: Layer, own: Forest, facts: Longs) -> Longs:
    """Return the code of every tree's domain."""
    codes = np.zeros(own.n_trees, np.int64)
    if layer.domains is not None:
        words = own.word[own.is_leaf]
        start = np.searchsorted(np.flatnonzero(own.is_leaf), own.tree_start)
        for tree in range(own.n_trees):
            own_facts = facts[:, words[start[tree] : start[tree + 1]]]
            codes[tree] = code_of(layer.domains.guess(own_facts))
    return codes
