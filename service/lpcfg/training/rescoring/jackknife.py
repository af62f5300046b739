"""Make charts of trees under members that have not seen these trees.

A treebank is cut into folds, each of some runs of neighbours within each of its sources, so that
no fold lacks a whole kind of text, which may stand in one place. Cuts are where the fewest rare
words occur on both sides, which is mostly between two documents: a model that has seen one half of
an article is too good at the other. With cuts at equal distances, the map of probabilities, which
the last fold gives, left .012 on craft/dev; so it leaves .008.
The charts of a fold are those of a model of all others.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from lpcfg.base.executors import Processes
from lpcfg.engine.rescoring import chart as charts
from lpcfg.engine.rescoring.names import HeadTable
from lpcfg.grammar.tables import Grammar, Ints, Longs
from lpcfg.kinds.constituency.model import Model
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.kinds.sentences import Sentence
from lpcfg.training.data.treebank import Forest, part_of
from lpcfg.training.rescoring.charts import Record, Spill, Spilled
from lpcfg.training.rescoring.targets import chains_of, target
from lpcfg.training.stages import Stage

RUNS, SHORTEST = 12, 8
"""Runs of neighbours that each fold takes from a source, or as many as have so many trees.

GUM stands genre by genre. Folds of one run each lack some, and cost .5 F1 on gum/dev.
"""

RARE, NEAR = 20, 50
"""A word that occurs up to so many times, and again within so many trees, ties these together."""

Learn = Callable[[Forest], Model]
"""Learns a model from a forest, in one thread, the same at every call."""


def folds_of(forest: Forest, trees: Longs, folds: int) -> Ints:
    """Return the fold of each of these trees, in runs of neighbours within every source.

    Runs end where a document seems to.
    """
    result = np.empty(len(trees), np.int32)
    for source in np.unique(forest.source[trees]):
        members = np.flatnonzero(forest.source[trees] == source)
        count = len(members)
        runs = folds * max(min(RUNS, count // (SHORTEST * folds)), 1)
        ties = _ties(forest, trees[members])
        cuts = [_cut(ties, count * k // runs, count // (3 * runs)) for k in range(1, runs)]
        result[members] = np.searchsorted(cuts, np.arange(count), side="right") % folds
    return result


def _ties(forest: Forest, trees: Longs) -> Longs:
    """Count, for the gap before each tree, the rare words that occur on both sides and near."""
    place = np.full(forest.n_trees, -1)
    place[trees] = np.arange(len(trees))
    leaves = np.flatnonzero(forest.is_leaf & (place[forest.tree] >= 0))
    word, tree = forest.word[leaves], place[forest.tree[leaves]]
    order = np.lexsort((tree, word))
    word, tree = word[order], tree[order]
    rare = np.bincount(word)[word[1:]] <= RARE
    near = (tree[1:] - tree[:-1] <= NEAR) & (word[1:] == word[:-1]) & rare
    change = np.zeros(len(trees) + 1, np.int64)
    np.add.at(change, tree[:-1][near] + 1, 1)
    np.add.at(change, tree[1:][near] + 1, -1)
    ties: Longs = np.cumsum(change[:-1])
    return ties


def _cut(ties: Longs, wanted: int, reach: int) -> int:
    """Return the gap with the fewest ties within reach of the one wanted; the nearest of these."""
    gaps = np.arange(max(wanted - reach, 1), min(wanted + reach + 1, len(ties)))
    return int(gaps[np.lexsort((abs(gaps - wanted), ties[gaps]))[0]]) if len(gaps) else wanted


class Charting:
    """Makes records of trees of a forest, with symbols and rules numbered as in its grammar."""

    def __init__(self, forest: Forest, grammar: Grammar, heads: HeadTable) -> None:
        self._forest, self._grammar, self._heads = forest, grammar, heads

    def spill(self, model: Model, trees: Longs, path: Path) -> Spilled:
        """Write the records of trees under a model into a file. Trees without a chart are left
        out.
        """
        recorder = _Recorder(model, self._grammar, self._heads)
        spill = Spill(path)
        for tree in trees.tolist():
            record = recorder.record(self._forest, tree)
            if record is not None:
                spill.add(record, tree)
        return spill.close()

    def fold_charts(
        self, learn: Learn, trees: Longs, fold: Ints, number: int, path: Path
    ) -> Spilled:
        """Return the records of a fold, under a model of all other trees."""
        model = learn(part_of(self._forest, trees[fold != number]))
        return self.spill(model, trees[fold == number], path)


class _Recorder:
    """Makes records under one model."""

    def __init__(self, model: Model, grammar: Grammar, heads: HeadTable) -> None:
        own = model.grammar
        self._parser, self._heads = Parser(model), heads.of(own)
        ids, rules = grammar.symbol_ids, grammar.rule_ids
        self._symbol = np.array([ids[name] for name in own.symbols], np.int32)
        renamed = self._symbol[own.rules].tolist()
        self._rule = np.array([rules[a, b, c] for a, b, c in renamed], np.int32)
        self._chains = chains_of(grammar)

    def record(self, forest: Forest, tree: int) -> Record | None:
        """Make the record of a tree; None if the model's own grammar does not span its words."""
        nodes = slice(forest.tree_start[tree], forest.tree_start[tree + 1])
        words = forest.word[nodes][forest.is_leaf[nodes]]
        forms = tuple(forest.words[x] for x in words)
        posteriors = self._parser.posteriors(Sentence(tokens=forms, forms=forms))
        if posteriors is None:
            return None
        n, chart = len(forms), posteriors.pruned.chart
        seen = charts.view(chart, posteriors.item, posteriors.edge, self._heads, n)
        chart = chart._replace(symbol=self._symbol[chart.symbol], rule=self._rule[chart.rule])
        gold = np.full((n + 1, n + 1), -1, np.int32)
        gold[forest.start[nodes], forest.end[nodes]] = forest.symbol[nodes]
        seen = seen._replace(preterminal=self._symbol[seen.preterminal])
        return Record(chart, seen, target(chart, gold, self._chains), words)


def jackknife(
    charting: Charting,
    learn: Learn,
    trees: Longs,
    fold: Ints,
    *,
    last: Model | None = None,
    folder: Path,
    workers: int,
    stage: Stage,
) -> Sequence[Spilled]:
    """Make the records of all folds, side by side where there are workers.

    Args:
        charting: which makes records.
        learn: learns the model of a fold.
        trees: to learn from.
        fold: of each tree. Those of fold −1 are learned from by all models, and have no records.
        last: the model of all but the last fold, if there is one already.
        folder: where records are spilled.
        workers: processes.
        stage: which shows progress.
    """
    count = int(fold.max()) + 1
    sizes = np.bincount(fold[fold >= 0]).tolist()
    paths = [folder / f"fold-{number}" for number in range(count)]
    tasks: list[Callable[[], Spilled]] = [
        partial(charting.fold_charts, learn, trees, fold, number, path)
        for number, path in enumerate(paths)
    ]
    if last is not None:
        tasks[-1] = partial(charting.spill, last, trees[fold == count - 1], paths[-1])
    done: list[Spilled] = []
    workers = min(workers, count)
    if workers == 1:
        for task, size in zip(tasks, sizes, strict=True):
            done.append(task())
            stage.advance(size)
        return done
    with Processes(workers) as executor:
        futures = [executor.submit(task) for task in tasks]
        for future, size in zip(futures, sizes, strict=True):
            done.append(future.result())
            stage.advance(size)
    return done
