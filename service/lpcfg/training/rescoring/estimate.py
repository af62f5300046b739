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
class Basis:
    """The data a layer is learned over.

    It has a forest with its grammar, the words with features of their own, the words' vectors, the
    layer to begin with (`inherit`), how often a pass visits each tree, and the kinds of text
    (`kinds_of`).
    """

    forest: Forest
    grammar: Grammar
    heads: HeadTable
    frequent: frozenset[str]
    vectors: WordVectors
    start: Layer | None
    times: Ints
    kinds: tuple[tuple[str, ...], Ints]


class Progress(NamedTuple):
    """How far both parts have come."""

    sparse: sparse.Progress
    hidden: hidden.State | None


def learn_layer(
    basis: Basis,
    spilled: Sequence[Spilled],
    settings: RescoringSettings,
    *,
    before: Progress | None = None,
    seed: int,
    workers: int,
    stages: Stages,
) -> tuple[Layer, Progress]:
    """Learn the layer from these charts, or go on for one pass from where learning was before.

    Its two parts are learned side by side if there are workers.
    """
    rows, ends = RowNames.of(basis.grammar), frequent_suffixes(basis.forest, SUFFIXES)
    facts = WordFacts(basis.frequent, ends, basis.vectors).of(basis.forest.words)
    with Charts(spilled) as charts, threadpool_limits(1, "blas"):
        domains, kinds = _kinds_of_text(basis, facts, charts.trees, settings, seed)
        times = basis.times[charts.trees]
        examples = ChartExamples(
            charts, names_of(basis.grammar), facts, times, settings.trust, kinds
        )

        def sparse_part() -> sparse.Progress:
            how = sparse.SparseSettings(bits=settings.bits, passes=settings.passes)
            begun = None if before is None else before.sparse
            return sparse.learn(examples, how, before=begun, seed=seed, stage=stage)

        def hidden_part() -> hidden.State:
            how = hidden.HiddenSettings(width=settings.width, passes=settings.hidden_passes)
            learner = hidden.Learner(examples, basis.vectors, rows, basis.grammar, ends)
            begun = None if before is None else before.hidden
            return learner.learn(
                how, start=basis.start, before=begun, seed=seed, workers=workers, stage=stage
            )

        passes = settings.passes if before is None else 1
        if settings.width:
            passes += settings.hidden_passes if before is None else 1
        total = passes * examples.visits
        with stages.stage("rescoring layer", total) as stage, ThreadPoolExecutor(1) as beside:
            waiting = beside.submit(sparse_part)
            if workers == 1:
                waiting.result()
            state = hidden_part() if settings.width else None
            reached = Progress(waiting.result(), state)
    tables = None if state is None else state.tables
    layer = Layer(
        frequent=basis.frequent,
        heads=basis.heads,
        rows=rows,
        prior_weight=settings.trust,
        weight=quantize(reached.sparse.weight),
        hidden=None if tables is None else Hidden(*map(rounded, tables)),
        vectors=None if tables is None else basis.vectors,
        suffixes=() if tables is None else ends,
        domains=domains,
    )
    return layer, reached


def _kinds_of_text(
    basis: Basis, facts: Longs, trees: Longs, settings: RescoringSettings, seed: int
) -> tuple[Domains | None, Longs]:
    """Learn to guess the kinds of text, and guess those of these trees. Trees that no pass visits
    have none.
    """
    names, kind = basis.kinds
    if not names:
        return None, np.zeros(len(trees), np.int64)
    forest = basis.forest
    word = forest.word[forest.is_leaf]
    start = np.searchsorted(np.flatnonzero(forest.is_leaf), forest.tree_start)
    texts = Texts(facts[:, word], start, kind, names)
    chosen = np.sort(trees[basis.times[trees] > 0])
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
