"""Train layers over one treebank. Charts are made once.

If one layer is not to know the last fold, it is learned first, and the last one goes on from there
for one pass over all charts. That is a quarter of the work of learning anew, and as good: gum/dev
85.87 and 85.81, where the first layer has 85.57.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lpcfg.engine.rescoring.layer import Layer, WordVectors
from lpcfg.grammar.tables import Grammar, Ints, Longs
from lpcfg.grammar.tagging import FREQUENT
from lpcfg.kinds.constituency.model import Model
from lpcfg.training.data.heads import head_table
from lpcfg.training.data.treebank import Forest, rules_of, times_of
from lpcfg.training.rescoring.charts import Spilled
from lpcfg.training.rescoring.domains import kinds_of
from lpcfg.training.rescoring.estimate import Basis, Progress, learn_layer
from lpcfg.training.rescoring.jackknife import Charting, Learn, folds_of, jackknife
from lpcfg.training.rescoring.settings import RescoringSettings
from lpcfg.training.stages import Stages

FEWEST = 100
"""Trees to learn a layer from, or none: folds of fewer are too small to learn members from."""


class LayerTraining:
    """Collects charts of a forest's trees in a folder, and learns layers from them.

    Of the chosen trees, the gold ones have charts. A parser's own trees would teach the layer to
    repeat what it did. Layers begin with `start` if it is given (see `inherit`). `emphasis` says
    how often a pass visits the trees of each source, once each if not given.
    """

    def __init__(
        self,
        forest: Forest,
        chosen: Longs,
        gold: Longs,
        settings: RescoringSettings,
        vectors: WordVectors,
        start: Layer | None,
        folder: Path,
        *,
        emphasis: Sequence[int],
        seed: int,
        workers: int,
        stages: Stages,
    ) -> None:
        self._forest, self._settings, self._vectors = forest, settings, vectors
        self._start = start
        self._folder, self._seed, self._workers, self._stages = folder, seed, workers, stages
        self._grammar = Grammar(
            forest.symbols, forest.n_internal, rules_of(forest), (), np.empty((0, 2), np.int32)
        )
        self._heads = head_table(forest.symbols)
        self._charting = Charting(forest, self._grammar, self._heads)
        self._times = times_of(forest, emphasis)
        self._kinds = kinds_of(settings.domains, forest.source)
        self._chosen = chosen
        self._fold = np.full(len(chosen), -1, np.int32)
        self._fold[np.isin(chosen, gold)] = folds_of(forest, gold, settings.folds)
        self._spilled: list[Spilled] = []
        self._reached: Progress | None = None

    @property
    def last_fold(self) -> Longs:
        """The trees of the last fold."""
        last: Longs = self._chosen[self._fold == self._fold.max()]
        return last

    def add_folds(self, learn: Learn, last: Model | None = None) -> None:
        """Add the charts of all folds, each fold's under a model of all other chosen trees.

        `last` is the model of all but the last fold, if there is one already.
        """
        with self._stages.stage("jackknife", int((self._fold >= 0).sum())) as stage:
            self._spilled += jackknife(
                self._charting,
                learn,
                self._chosen,
                self._fold,
                last=last,
                folder=self._folder,
                workers=self._workers,
                stage=stage,
            )

    def layer(self, *, but_last: bool = False) -> Layer:
        """Return the layer of the charts of all folds, or of all but the last one.

        It goes on from the layer before, if there is one.
        """
        spilled = self._spilled[:-1] if but_last else self._spilled
        layer, self._reached = self._learned(spilled, self._times, self._reached, self._stages)
        return layer

    def of_kind(self, name: str) -> Longs:
        """Return the chosen trees of a kind of text."""
        names, kind = self._kinds
        found: Longs = self._chosen[kind[self._chosen] == names.index(name)]
        return found

    def layer_without(self, trees: Longs, stages: Stages) -> Layer:
        """Return a layer of its own, of the charts of all trees but these."""
        times = self._times.copy()
        times[trees] = 0
        layer, _ = self._learned(self._spilled, times, None, stages)
        return layer

    def _learned(
        self,
        spilled: Sequence[Spilled],
        times: Ints,
        before: Progress | None,
        stages: Stages,
    ) -> tuple[Layer, Progress]:
        seen = np.zeros(self._forest.n_trees, np.int32)
        trees = np.concatenate([part.trees for part in self._spilled])
        seen[trees] = times[trees]
        basis = Basis(
            self._forest,
            self._grammar,
            self._heads,
            frequent_words(self._forest, seen),
            self._vectors,
            self._start,
            times,
            self._kinds,
        )
        return learn_layer(
            basis,
            spilled,
            self._settings,
            before=before,
            seed=self._seed,
            workers=self._workers,
            stages=stages,
        )


def frequent_words(forest: Forest, times: Ints) -> frozenset[str]:
    """Choose the words with features of their own, where each tree counts so many times."""
    leaves = np.flatnonzero(forest.is_leaf)
    counts = np.bincount(forest.word[leaves], times[forest.tree[leaves]], len(forest.words))
    return frozenset(forest.words[x] for x in np.flatnonzero(counts >= FREQUENT))
