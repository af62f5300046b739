"""Train layers over one treebank. Charts are made once.

If one layer is not to know the last fold, it is learned first, and the last one goes on from there
for one pass over all charts. That is a quarter of the work of learning anew, and as good: gum/dev
85.87 and 85.81, where the first layer has 85.57.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from lpcfg.engine.rescoring.layer import Layer, WordVectors
from lpcfg.grammar.tables import Grammar, Ints
from lpcfg.grammar.tagging import FREQUENT
from lpcfg.kinds.constituency.model import Model
from lpcfg.training.data.heads import head_table
from lpcfg.training.data.treebank import Forest, rules_of, times_of
from lpcfg.training.learner import Learner
from lpcfg.training.plan import LeftOut, Plan
from lpcfg.training.rescoring.charts import Spilled
from lpcfg.training.rescoring.domains import domains_of
from lpcfg.training.rescoring.estimate import LayerData, LayerState, learn_layer
from lpcfg.training.rescoring.jackknife import Charting, jackknife
from lpcfg.training.rescoring.settings import RescoringSettings
from lpcfg.training.stages import Stages


class LayerTraining:
    """Collects charts of a plan's trees in a folder, and learns layers from them.

    Trees of a parser have no charts: they would teach the layer to repeat what it did. Layers begin
    with `start` if it is given (see `inherit`).
    """

    def __init__(
        self,
        forest: Forest,
        plan: Plan,
        learner: Learner,
        settings: RescoringSettings,
        vectors: WordVectors,
        start: Layer | None,
        folder: Path,
    ) -> None:
        self._plan, self._learner, self._settings = plan, learner, settings
        self._folder = folder
        rules, entries = rules_of(forest), np.empty((0, 2), np.int32)
        self._data = LayerData(
            forest=forest,
            grammar=Grammar(forest.symbols, forest.n_internal, rules, (), entries),
            heads=head_table(forest.symbols),
            frequent=frozenset(),  # by the trees that each layer learns from
            vectors=vectors,
            start=start,
            times=times_of(forest, learner.config.emphasis),
            domains=domains_of(settings.domains, forest.source),
        )
        self._spilled: list[Spilled] = []
        self._state: LayerState | None = None

    def add_folds(self, weights: tuple[float, ...], last: Model | None = None) -> None:
        """Add the charts of all folds, each fold's under a model of all other trees.

        `weights` are those of its members. `last` is the model of all but the last fold, if there
        is one already.
        """
        plan, data, learner = self._plan, self._data, self._learner
        with learner.stages.stage("jackknife", int((plan.fold >= 0).sum())) as stage:
            self._spilled += jackknife(
                Charting(data.forest, data.grammar, data.heads),
                partial(_fold_model, Learner(learner.config), weights),
                plan.final,
                plan.fold,
                last=last,
                folder=self._folder,
                workers=learner.workers,
                stage=stage,
            )

    def layer(self, *, but_last: bool = False) -> Layer:
        """Return the layer of the charts of all folds, or of all but the last one.

        It goes on from the layer before, if there is one.
        """
        spilled = self._spilled[:-1] if but_last else self._spilled
        times, stages = self._data.times, self._learner.stages
        layer, self._state = self._learned(spilled, times, self._state, stages)
        return layer

    def layer_without(self, left_out: LeftOut, stages: Stages) -> Layer:
        """Return a layer of its own, of the charts of all trees but those of a domain."""
        times = self._data.times.copy()
        times[left_out.trees] = 0
        layer, _ = self._learned(self._spilled, times, None, stages)
        return layer

    def _learned(
        self,
        spilled: Sequence[Spilled],
        times: Ints,
        before: LayerState | None,
        stages: Stages,
    ) -> tuple[Layer, LayerState]:
        forest, learner = self._data.forest, self._learner
        seen = np.zeros(forest.n_trees, np.int32)
        trees = np.concatenate([part.trees for part in self._spilled])
        seen[trees] = times[trees]
        return learn_layer(
            replace(self._data, frequent=frequent_words(forest, seen), times=times),
            spilled,
            self._settings,
            before=before,
            seed=learner.config.seed,
            workers=learner.workers,
            stages=stages,
        )


def _fold_model(learner: Learner, weights: tuple[float, ...], forest: Forest) -> Model:
    """Learn a model like the final one from a part of the trees."""
    return replace(learner.learn(forest).model, weights=weights)


def frequent_words(forest: Forest, times: Ints) -> frozenset[str]:
    """Choose the words with features of their own, where each tree counts so many times."""
    leaves = np.flatnonzero(forest.is_leaf)
    counts = np.bincount(forest.word[leaves], times[forest.tree[leaves]], len(forest.words))
    return frozenset(forest.words[x] for x in np.flatnonzero(counts >= FREQUENT))
