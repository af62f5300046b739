"""Learn the layer from a treebank's charts: both parts apart, and rounded as they are stored."""

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from lpcfg.engine.rescoring.domains import Domains
from lpcfg.engine.rescoring.hidden import Hidden
from lpcfg.engine.rescoring.layer import Layer, WordFacts, WordVectors, suffix
from lpcfg.engine.rescoring.names import HeadTable, RowNames, names_of
from lpcfg.engine.rescoring.quantized import quantize, rounded
from lpcfg.grammar.tables import Grammar, Ints, Longs
from lpcfg.training.data.treebank import Forest
from lpcfg.training.rescoring import hidden, sparse
from lpcfg.training.rescoring.charts import Charts, Spilled
from lpcfg.training.rescoring.domains import Texts
from lpcfg.training.rescoring.examples import ChartExamples
from lpcfg.training.rescoring.jackknife import folds_of
from lpcfg.training.rescoring.settings import RescoringSettings
from lpcfg.training.stages import Stages

SUFFIXES = 1000
"""The most frequent ends of words have rows of their own in the hidden part."""


@dataclass(frozen=True, eq=False)
class LayerData:
    """The data that a layer is learned from.

    They are a forest with its grammar, the words with features of their own, the words' vectors,
    the layer to begin with (`inherit`), how often a pass visits each tree, and the domains
    (`domains_of`).
    """

    forest: Forest
    grammar: Grammar
    heads: HeadTable
    frequent: frozenset[str]
    vectors: WordVectors
    start: Layer | None
    times: Ints
    domains: tuple[tuple[str, ...], Ints]


class LayerState(NamedTuple):
    """Both parts of a layer while they are learned."""

    sparse: sparse.SparseState
    hidden: hidden.HiddenState | None


def learn_layer(
    data: LayerData,
    spilled: Sequence[Spilled],
    settings: RescoringSettings,
    *,
    before: LayerState | None = None,
    seed: int,
    workers: int,
    stages: Stages,
) -> tuple[Layer, LayerState]:
    """Learn the layer.

    Args:
        data: what is known of the trees.
        spilled: their charts.
        settings: of the layer.
        before: where learning goes on for one pass, instead of beginning.
        seed: of random numbers.
        workers: with two or more, both parts are learned side by side.
        stages: where the stage is recorded.

    Returns:
        The layer, and its state to go on from.
    """
    rows, ends = RowNames.of(data.grammar), frequent_suffixes(data.forest, SUFFIXES)
    facts = WordFacts(data.frequent, ends, data.vectors).of(data.forest.words)
    with Charts(spilled) as charts, threadpool_limits(1, "blas"):
        domains, codes = _domains(data, facts, charts.trees, settings, seed)
        times = data.times[charts.trees]
        examples = ChartExamples(
            charts, names_of(data.grammar), facts, times, settings.trust, codes
        )

        def sparse_part() -> sparse.SparseState:
            how = sparse.SparseSettings(bits=settings.bits, passes=settings.passes)
            begun = None if before is None else before.sparse
            return sparse.learn(examples, how, before=begun, seed=seed, stage=stage)

        def hidden_part() -> hidden.HiddenState:
            how = hidden.HiddenSettings(width=settings.width, passes=settings.hidden_passes)
            learner = hidden.HiddenLearner(examples, data.vectors, rows, data.grammar, ends)
            begun = None if before is None else before.hidden
            return learner.learn(
                how, start=data.start, before=begun, seed=seed, workers=workers, stage=stage
            )

        passes = settings.passes if before is None else 1
        if settings.width:
            passes += settings.hidden_passes if before is None else 1
        total = passes * examples.visits
        with stages.stage("rescoring layer", total) as stage, ThreadPoolExecutor(1) as beside:
            waiting = beside.submit(sparse_part)
            if workers == 1:
                waiting.result()
            hidden_state = hidden_part() if settings.width else None
            state = LayerState(waiting.result(), hidden_state)
    tables = None if state.hidden is None else state.hidden.tables
    layer = Layer(
        frequent=data.frequent,
        heads=data.heads,
        rows=rows,
        prior_weight=settings.trust,
        weight=quantize(state.sparse.weight),
        hidden=None if tables is None else Hidden(*map(rounded, tables)),
        vectors=None if tables is None else data.vectors,
        suffixes=() if tables is None else ends,
        domains=domains,
    )
    return layer, state


def _domains(
    data: LayerData, facts: Longs, trees: Longs, settings: RescoringSettings, seed: int
) -> tuple[Domains | None, Longs]:
    """Learn to guess domains, and guess those of these trees. Trees that no pass visits have
    none.
    """
    names, domain = data.domains
    if not names:
        return None, np.zeros(len(trees), np.int64)
    forest = data.forest
    word = forest.word[forest.is_leaf]
    start = np.searchsorted(np.flatnonzero(forest.is_leaf), forest.tree_start)
    texts = Texts(facts[:, word], start, domain, names)
    chosen = np.sort(trees[data.times[trees] > 0])
    guessed = np.zeros(forest.n_trees, np.int64)
    guessed[chosen] = texts.guessed(chosen, folds_of(forest, chosen, settings.folds), seed)
    return texts.domains(chosen, seed), guessed[trees]


def frequent_suffixes(forest: Forest, most: int) -> tuple[str, ...]:
    """Return the most frequent ends of a forest's words, ties by spelling."""
    times = np.bincount(forest.word[forest.is_leaf], minlength=len(forest.words)).tolist()
    counts: Counter[str] = Counter()
    for word, count in zip(forest.words, times, strict=True):
        counts[suffix(word)] += count
    return tuple(sorted(counts, key=lambda end: (-counts[end], end))[:most])
